"""ONNX Runtime, for segments without recurrent operators: one session each, in memory that is bounded."""

from __future__ import annotations

import ctypes
import math
import os
import threading
import weakref
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from pyrnnx.errors import shortened

from ..graph.constants import array_of, named, without_values
from ..graph.walk import all_nodes, subgraphs
from ..onnx_package import import_onnx
from .types import element_types

FIRST_OPSET = 7  # of the default domain: what ONNX Runtime promises
_SURE_OPSET = 17  # which every ONNX Runtime for Python 3.11 takes, so that it need not be tried
_IR_VERSION = 10
# Threads of several sessions, and ours, would wait actively for each other's processors. Weights are no memory of a
# call.
_CONFIGURATION = {
    "session.intra_op.allow_spinning": "0",
    "session.use_env_allocators": "1",
    "session.use_device_allocator_for_initializers": "1",
}
# Without these, sums of int8 products saturate at 16 bits on processors without VNNI; with them, there are no kernels
# for int8 activations.
_PRECISE = {"session.x64quantprecision": "1"}
# What depends on constants is folded already, within a budget that ONNX Runtime does not have. And weights that a file
# has in floating point stay so.
_DISABLED = ["ConstantFolding", "WeightBiasQuantization"]
# Ends the process at Transpose -> MatMul of float16 with a constant.
_DISABLED_FLOAT16 = ["MatmulTransposeFusion"]
_ELEMENT_TYPES = ("to", "dtype", "output_dtype")  # attributes that say which elements a node makes
_LARGE = 1024  # bytes; smaller constants may be shapes, which ONNX Runtime looks at
_SLACK = 2**24  # bytes; an arena is handed out in larger pieces than what is asked of it


class NotRunnable(Exception):  # noqa: N818  # no error of a caller's
    """ONNX Runtime has no kernel for a node, or does not take the types of a segment."""


@cache
def _onnxruntime() -> Any:
    try:
        import onnxruntime
    except ImportError:
        return None
    return onnxruntime


def is_installed() -> bool:
    return _onnxruntime() is not None


def runnable_opset(version: int) -> int:
    """The opset of the default domain, or the newest that ONNX Runtime takes, if that is older."""
    return version if version <= _SURE_OPSET else min(version, last_opset())


@cache
def last_opset() -> int:
    """The newest of the default domain that ONNX Runtime takes: tried, for nothing tells it."""
    onnx = import_onnx()
    x = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, None)
    node = onnx.helper.make_node("Identity", ["x"], ["y"])
    for version in range(onnx.defs.onnx_opset_version(), FIRST_OPSET, -1):
        try:
            _session(
                segment_model([node], ["x"], {"x": x.type}, ["y"], {}, {"": version}), _onnxruntime().SessionOptions()
            )
        except NotRunnable:
            continue
        return version
    return FIRST_OPSET


class _Memory:
    """The memory of all sessions: an arena as large as the limit was when they were made, and a little larger.

    So what a segment needs inside is bounded too; what it gives is counted exactly, beside the results of other steps.
    """

    def __init__(self) -> None:
        self._lock, self._limit = threading.Lock(), -1

    def bound(self, ort: Any, limit: int) -> None:
        """Let sessions that are made from now on share an arena of so many bytes."""
        with self._lock:
            if limit != self._limit:
                kind, where = ort.OrtAllocatorType.ORT_ARENA_ALLOCATOR, ort.OrtMemType.DEFAULT
                arena = ort.OrtArenaCfg({"max_mem": limit + _SLACK, "arena_extend_strategy": 1})
                ort.create_and_register_allocator(ort.OrtMemoryInfo("Cpu", kind, 0, where), arena)
                self._limit = limit


_memory = _Memory()
_sessions: weakref.WeakSet[Any] = weakref.WeakSet()


def _keep_sessions() -> None:
    """Let those that a forked process has of the one before live for ever.

    They would end with that process's threads, and wait for these: `config.settings` says that others are needed.
    """
    for session in list(_sessions):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(session))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_keep_sessions)


def segment_model(
    nodes: Sequence[Any],
    inputs: Iterable[str],
    types: Mapping[str, Any],
    outputs: Sequence[str],
    constants: Mapping[str, Any],
    opsets: Mapping[str, int],
) -> Any:
    """A segment as a model.

    Parameters
    ----------
    nodes : sequence of onnx.NodeProto
    inputs : iterable of str
    types : mapping
        onnx.TypeProto of those inputs whose types are known, by name.
    outputs : sequence of str
    constants : mapping
        onnx.TensorProto or array by name.
    opsets : mapping
        Version by domain.
    """
    onnx = import_onnx()
    graph = onnx.GraphProto(name="segment")
    graph.node.extend(nodes)
    graph.input.extend(onnx.ValueInfoProto(name=name, type=types.get(name)) for name in inputs)
    graph.output.extend(onnx.ValueInfoProto(name=name) for name in outputs)
    graph.initializer.extend(named(one, name) for name, one in constants.items())
    versions = [onnx.OperatorSetIdProto(domain=domain, version=version) for domain, version in opsets.items()]
    return onnx.ModelProto(ir_version=_IR_VERSION, graph=graph, opset_import=versions)


def session_of(label: str, model: Any, constants: Mapping[str, Any], threads: int, memory_limit: int) -> Any:
    """The onnxruntime.InferenceSession of a segment.

    Parameters
    ----------
    label : str
        How errors name the whole model.
    model : onnx.ModelProto
        Of `segment_model`, without constants; it is changed. Its operators have to be those of `last_opset`, or older.
    constants : mapping
        Its constants, as `segment_model` takes them.
    threads, memory_limit : int

    Raises
    ------
    NotRunnable
    FormatError
        A constant that cannot be read.
    """
    ort = _onnxruntime()
    _memory.bound(ort, memory_limit)

    for one in model.opset_import:
        if not one.domain:
            one.version = runnable_opset(one.version)
    given = {}
    for name, tensor in constants.items():
        stub = without_values(tensor, name)
        if size := _handed_over(stub):
            array = np.ascontiguousarray(array_of(tensor, label))
            given[name] = ortvalue(array)
            stub.data_location = stub.EXTERNAL
            for key, entry in (("location", "memory"), ("offset", "0"), ("length", str(size))):
                stub.external_data.add(key=key, value=entry)
        model.graph.initializer.append(stub if name in given else named(tensor, name))

    def options(configuration: Mapping[str, str]) -> Any:
        made = ort.SessionOptions()
        made.intra_op_num_threads, made.inter_op_num_threads = threads, 1
        for key, value in configuration.items():
            made.add_session_config_entry(key, value)
        # Copied while the session is made, and only then: not into a message, into its bytes, and out of those again.
        made.add_external_initializers(list(given), list(given.values()))
        return made

    try:
        return _session(model, options(_CONFIGURATION | _PRECISE))
    except NotRunnable as error:
        if "NOT_IMPLEMENTED" not in str(error):
            raise
        return _session(model, options(_CONFIGURATION))


def _handed_over(tensor: Any) -> int:
    """The bytes of a tensor whose array ONNX Runtime gets, in place of its message; 0 of one that is small.

    And of one whose element type NumPy itself does not have.
    """
    try:
        dtype = import_onnx().helper.tensor_dtype_to_np_dtype(tensor.data_type)
    except (KeyError, ValueError):
        return 0
    size: int = math.prod(tensor.dims) * dtype.itemsize
    return size if dtype.isbuiltin == 1 and dtype.kind in "biuf" and size >= _LARGE else 0


def _session(model: Any, options: Any) -> Any:
    options.log_severity_level = 4  # what matters is raised; its warnings are about shapes that files declare wrongly
    try:
        session = _onnxruntime().InferenceSession(
            model.SerializeToString(),
            options,
            providers=["CPUExecutionProvider"],
            disabled_optimizers=[*_DISABLED, *(_DISABLED_FLOAT16 if _has_float16(model) else ())],
            enable_fallback=0,  # to the same provider, with a message on standard output
        )
    except Exception as error:  # of several types
        raise NotRunnable(shortened(str(error))) from None
    _sessions.add(session)
    return session


def _has_float16(model: Any) -> bool:
    """Whether any value may be float16: an input, a constant, or what a node makes of others."""
    graph, number = model.graph, import_onnx().TensorProto.FLOAT16
    if any(number in element_types(one.type) for one in graph.input):
        return True
    nodes = list(all_nodes(graph.node))
    attributes = [one for node in nodes for one in node.attribute]
    graphs = [graph, *(body for node in nodes for _, body in subgraphs(node))]
    tensors = [one for each in graphs for one in each.initializer] + [one.t for one in attributes]
    made = [one.i for one in attributes if one.name in _ELEMENT_TYPES]
    return number in made or any(one.data_type == number for one in tensors)


def ortvalue(array: Any) -> Any:
    """An OrtValue over the memory of a C-contiguous array."""
    return _onnxruntime().OrtValue.ortvalue_from_numpy(array)
