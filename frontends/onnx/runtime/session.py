"""ONNX Runtime sessions with pyrnnx's operators, in bounded memory."""

from __future__ import annotations

import ctypes
import json
import math
import os
import threading
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pyrnnx._internal.dtypes import named_dtype
from pyrnnx.layers import custom_operators

from ..graph.constants import PLAIN, add_without_values, array_of, named, shape_of
from ..onnx_package import import_onnx
from .optimizers import disabled_optimizers
from .types import Contents, Tensors, Types, contents_of

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto

    from ..graph.constants import Tensor

FIRST_OPSET = 7  # oldest opset of the default domain that ONNX Runtime supports
_SURE_OPSET = 17  # supported by every ONNX Runtime for Python 3.11
_IR_VERSION = 10
_CONFIGURATION = {
    # The shared arena bounds the memory of a call; weights are not part of a call.
    "session.use_env_allocators": "1",
    "session.use_device_allocator_for_initializers": "1",
    # Idle threads of the pool spin between two nodes (default: for 50 ms), but not until the next frame of a stream.
    "session.intra_op.spin_duration_us": "100",
}
# Without this, sums of int8 products saturate at 16 bits on processors without VNNI. With it, kernels for int8
# activations are missing.
_PRECISE = {"session.x64quantprecision": "1"}
_DTYPES = frozenset(PLAIN.values())
_LARGE = 1024  # bytes; smaller constants may be shapes, which ONNX Runtime reads
_SLACK = 2**24  # bytes; an arena rounds allocations up


class NotRunnable(Exception):  # noqa: N818  # never reaches a caller
    """Raised if ONNX Runtime lacks a kernel for a node, or rejects the types of a graph."""


@cache
def _onnxruntime() -> Any:
    try:
        import onnxruntime
    except ImportError:
        return None
    return onnxruntime


def is_installed() -> bool:
    """Return whether ONNX Runtime can be imported."""
    return _onnxruntime() is not None


def runnable_opset(version: int) -> int:
    """Return the opset of the default domain, at most the newest that ONNX Runtime supports."""
    return version if version <= _SURE_OPSET else min(version, last_opset())


@cache
def last_opset() -> int:
    """Return the newest opset that ONNX Runtime supports, by trial: no function returns it."""
    onnx = import_onnx()
    x = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, None)
    graph = onnx.GraphProto(name="opset", input=[x], output=[onnx.ValueInfoProto(name="y")])
    graph.node.append(onnx.helper.make_node("Identity", ["x"], ["y"]))
    for version in range(onnx.defs.onnx_opset_version(), FIRST_OPSET, -1):
        try:
            _session(model_of(graph, {"": version}), _onnxruntime().SessionOptions(), contents_of(graph))
        except NotRunnable:
            continue
        return version
    return FIRST_OPSET


class _Memory:
    """Arena that sessions share, a little larger than the memory limit at their creation."""

    def __init__(self) -> None:
        self._lock, self._limit = threading.Lock(), -1

    def bound(self, ort: Any, limit: int) -> None:
        """Make later sessions share an arena of `limit` bytes."""
        with self._lock:
            if limit != self._limit:
                kind, where = ort.OrtAllocatorType.ORT_ARENA_ALLOCATOR, ort.OrtMemType.DEFAULT
                arena = ort.OrtArenaCfg({"max_mem": limit + _SLACK, "arena_extend_strategy": 1})
                ort.create_and_register_allocator(ort.OrtMemoryInfo("Cpu", kind, 0, where), arena)
                self._limit = limit


_memory = _Memory()
_sessions: weakref.WeakSet[Any] = weakref.WeakSet()


@dataclass(frozen=True)
class Profile:
    """Sessions that write profiles of their runs, to files whose names begin with `prefix`."""

    prefix: str
    sessions: list[Any] = field(default_factory=list)

    def events(self) -> list[dict[str, Any]]:
        """End the profiles, and return the events of all."""
        paths = [Path(session.end_profiling()) for session in self.sessions]
        return [event for path in paths for event in json.loads(path.read_text(encoding="utf-8"))]


_profile: ContextVar[Profile | None] = ContextVar("profile", default=None)


@contextmanager
def profiled(folder: Path) -> Iterator[Profile]:
    """Let the sessions that are created inside write profiles to a folder."""
    profile = Profile(str(folder / "profile"))
    token = _profile.set(profile)
    try:
        yield profile
    finally:
        _profile.reset(token)


def _keep_sessions() -> None:
    """Leak the sessions that a forked process inherits.

    Their destructors would wait for threads that the fork did not copy. `config.settings` makes programs replace them.
    """
    for session in list(_sessions):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(session))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_keep_sessions)


def model_of(graph: GraphProto, opsets: Mapping[str, int]) -> ModelProto:
    """Return an onnx.ModelProto of a graph.

    Parameters
    ----------
    graph : onnx.GraphProto
    opsets : mapping
        Version by domain.
    """
    model: ModelProto = import_onnx().ModelProto(graph=graph)
    set_opsets(model, opsets)
    return model


def set_opsets(model: ModelProto, opsets: Mapping[str, int]) -> None:
    """Set the opsets by domain, and the IR version of sessions, in an onnx.ModelProto."""
    model.ir_version = _IR_VERSION
    for domain, version in opsets.items():
        model.opset_import.add(domain=domain, version=version)


def nodes_model(
    nodes: Sequence[NodeProto],
    inputs: Iterable[str],
    types: Types,
    outputs: Sequence[str],
    constants: Tensors,
    opsets: Mapping[str, int],
) -> ModelProto:
    """Return an onnx.ModelProto of nodes.

    Parameters
    ----------
    nodes : sequence of onnx.NodeProto
    inputs : iterable of str
    types : mapping
        onnx.TypeProto of inputs with known types, by name.
    outputs : sequence of str
    constants : mapping
        onnx.TensorProto or array by name.
    opsets : mapping
        Version by domain.
    """
    onnx = import_onnx()
    graph = onnx.GraphProto(name="nodes", node=nodes)
    graph.input.extend(onnx.ValueInfoProto(name=name, type=types.get(name)) for name in inputs)
    graph.output.extend(onnx.ValueInfoProto(name=name) for name in outputs)
    graph.initializer.extend(named(tensor, name) for name, tensor in constants.items())
    return model_of(graph, opsets)


# Element types that NumPy has only from ml_dtypes; a session takes and returns no arrays of them.
_FOREIGN = {"tensor(bfloat16)": "bfloat16"} | {
    f"tensor({name.replace('_', '')})": name
    for name in ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz")
}


class _ForeignSession:
    """Session that also takes and returns arrays of foreign types, as bits."""

    def __init__(self, session: Any) -> None:
        self._session, self._values = session, _onnxruntime().OrtValue

    def run(self, outputs: Sequence[str], feeds: Mapping[str, Any]) -> list[Any]:
        """Return the values of the named outputs."""
        arrays = {name: np.asarray(value, order="C") for name, value in feeds.items()}
        values = {name: self._value(array) for name, array in arrays.items()}
        return [_array(value) for value in self._session.run_with_ort_values(list(outputs), values)]

    def _value(self, array: Any) -> Any:
        if array.dtype.name not in _FOREIGN.values():
            return self._values.ortvalue_from_numpy(array)
        bits = array.view(np.dtype(f"u{array.itemsize}"))
        element = import_onnx().helper.np_dtype_to_tensor_dtype(array.dtype)
        return self._values.ortvalue_from_numpy_with_onnx_type(bits, element)


def _array(value: Any) -> Any:
    name = _FOREIGN.get(value.data_type())
    if name is None:
        return value.numpy()
    dtype, shape = named_dtype(name), value.shape()
    size = math.prod(shape) * dtype.itemsize
    memory = (ctypes.c_char * size).from_address(value.data_ptr()) if size else b""
    return np.frombuffer(bytearray(memory), dtype).reshape(shape)


def new_session(
    label: str,
    model: ModelProto,
    constants: Tensors,
    threads: int,
    memory_limit: int,
    contents: Contents | None = None,
) -> Any:
    """Return an onnxruntime.InferenceSession, or an object with its method `run`.

    Parameters
    ----------
    label : str
        How errors name the model.
    model : onnx.ModelProto
        Without constants at its top level, modified in place. Its operators are those of `last_opset` or older.
    constants : mapping
        onnx.TensorProto or array by name.
    threads, memory_limit : int
    contents : Contents, optional
        Contents of the model's graph with its constants.

    Raises
    ------
    NotRunnable
    FormatError
        A constant that cannot be read.
    """
    ort = _onnxruntime()
    _memory.bound(ort, memory_limit)
    for opset in model.opset_import:
        if not opset.domain:
            opset.version = runnable_opset(opset.version)
    arrays = {}
    for name, tensor in constants.items():
        if not (size := _shared_bytes(tensor)):
            model.graph.initializer.append(named(tensor, name))
            continue
        arrays[name] = ort.OrtValue.ortvalue_from_numpy(np.ascontiguousarray(array_of(tensor, label)))
        stub = add_without_values(model.graph.initializer, tensor, name)
        stub.data_location = stub.EXTERNAL
        for key, entry in (("location", "memory"), ("offset", "0"), ("length", str(size))):
            stub.external_data.add(key=key, value=entry)

    def options(configuration: Mapping[str, str]) -> Any:
        result = ort.SessionOptions()
        result.intra_op_num_threads, result.inter_op_num_threads = threads, 1
        for key, value in configuration.items():
            result.add_session_config_entry(key, value)
        # ONNX Runtime copies these arrays once, and values in a message three times.
        result.add_external_initializers(list(arrays), list(arrays.values()))
        result.register_custom_ops_library(custom_operators.library_path())
        if (profile := _profile.get()) is not None:
            result.enable_profiling, result.profile_file_prefix = True, profile.prefix
        return result

    contents = contents_of(model.graph) if contents is None else contents
    try:
        session = _session(model, options(_CONFIGURATION | _PRECISE), contents)
    except NotRunnable as error:
        if "NOT_IMPLEMENTED" not in str(error):
            raise
        session = _session(model, options(_CONFIGURATION), contents)
    types = {value.type for value in (*session.get_inputs(), *session.get_outputs())}
    return session if types.isdisjoint(_FOREIGN) else _ForeignSession(session)


def _shared_bytes(tensor: Tensor) -> int:
    """Return the bytes of a tensor to pass as an array; 0 if it is small or NumPy lacks its type."""
    dtype = tensor.dtype if isinstance(tensor, np.ndarray) else PLAIN.get(tensor.data_type)
    size = math.prod(shape_of(tensor)) * dtype.itemsize if dtype in _DTYPES else 0
    return size if size >= _LARGE else 0


def _session(model: ModelProto, options: Any, contents: Contents) -> Any:
    options.log_severity_level = 4  # errors raise; warnings are about wrong declared shapes
    try:
        session = _onnxruntime().InferenceSession(
            model.SerializeToString(),
            options,
            providers=["CPUExecutionProvider"],
            disabled_optimizers=disabled_optimizers(contents),
            enable_fallback=0,  # would print a message and use the same provider
        )
    except Exception as error:  # of several types
        raise NotRunnable(str(error)) from None
    _sessions.add(session)
    if options.enable_profiling and (profile := _profile.get()) is not None:
        profile.sessions.append(session)
    return session
