"""ONNX Runtime, for segments without recurrent operators: one session each, in memory that is bounded."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from pyrnnx.errors import shortened

from ..onnx_package import import_onnx

FIRST_OPSET = 7  # of the default domain: what ONNX Runtime promises
_IR_VERSION = 10
# Sums of int8 products saturate at 16 bits on processors without VNNI unless the first is asked for. Threads of several
# sessions, and ours, would wait actively for each other's processors. Weights are no memory of a call.
_CONFIGURATION = {
    "session.x64quantprecision": "1",
    "session.intra_op.allow_spinning": "0",
    "session.use_env_allocators": "1",
    "session.use_device_allocator_for_initializers": "1",
}
# What depends on constants is folded already, within a budget that ONNX Runtime does not have.
_DISABLED = ["ConstantFolding"]


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


@cache
def last_opset() -> int:
    """The newest of the default domain that ONNX Runtime takes: tried, for nothing tells it."""
    onnx = import_onnx()
    x = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, None)
    node = onnx.helper.make_node("Identity", ["x"], ["y"])
    for version in range(onnx.defs.onnx_opset_version(), FIRST_OPSET, -1):
        try:
            _session(segment_model([node], {"x": x.type}, ["y"], [], {"": version}), _onnxruntime().SessionOptions())
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


def segment_model(
    nodes: Sequence[Any],
    inputs: Mapping[str, Any],
    outputs: Sequence[str],
    constants: Sequence[Any],
    opsets: Mapping[str, int],
) -> Any:
    """A segment as a model.

    Parameters
    ----------
    nodes : sequence of onnx.NodeProto
    inputs : mapping
        {name: onnx.TypeProto}.
    outputs : sequence of str
    constants : sequence of onnx.TensorProto
    opsets : mapping
        Version by domain.
    """
    onnx = import_onnx()
    graph = onnx.GraphProto(name="segment")
    graph.node.extend(nodes)
    graph.input.extend(onnx.ValueInfoProto(name=name, type=type_) for name, type_ in inputs.items())
    graph.output.extend(onnx.ValueInfoProto(name=name) for name in outputs)
    graph.initializer.extend(constants)
    versions = [onnx.OperatorSetIdProto(domain=domain, version=version) for domain, version in opsets.items()]
    return onnx.ModelProto(ir_version=_IR_VERSION, graph=graph, opset_import=versions)


def session_of(model: Any, threads: int, memory_limit: int) -> Any:
    """The onnxruntime.InferenceSession of a segment.

    Its operators have to be those of `last_opset`, or older.

    Raises
    ------
    NotRunnable
    """
    ort = _onnxruntime()
    _memory.bound(ort, memory_limit)
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    for key, value in _CONFIGURATION.items():
        options.add_session_config_entry(key, value)
    for one in model.opset_import:
        if not one.domain:
            one.version = min(one.version, last_opset())
    return _session(model, options)


def _session(model: Any, options: Any) -> Any:
    options.log_severity_level = 4  # what matters is raised; its warnings are about shapes that files declare wrongly
    try:
        return _onnxruntime().InferenceSession(
            model.SerializeToString(),
            options,
            providers=["CPUExecutionProvider"],
            disabled_optimizers=_DISABLED,
            enable_fallback=0,  # to the same provider, with a message on standard output
        )
    except Exception as error:  # of several types
        raise NotRunnable(shortened(str(error))) from None


def ortvalue(array: Any) -> Any:
    """An OrtValue over the memory of a C-contiguous array."""
    return _onnxruntime().OrtValue.ortvalue_from_numpy(array)
