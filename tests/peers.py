"""Peers for comparison, ONNX Runtime and OpenVINO: one thread, quiet, float32; tests without them are skipped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from pyrnnx.testing.numbers import Array


def onnxruntime_session(model: Any, *, optimize: bool = True, entries: Mapping[str, str] = MappingProxyType({})) -> Any:
    """Return a session for a path, bytes or a ModelProto; `entries` are entries of its configuration."""
    onnxruntime = pytest.importorskip("onnxruntime")
    options = onnxruntime.SessionOptions()
    if not optimize:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    for key, value in entries.items():
        options.add_session_config_entry(key, value)
    source = str(model) if isinstance(model, str | Path) else model
    source = source if isinstance(source, str | bytes) else source.SerializeToString()
    return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


def run_onnxruntime(model: Any, inputs: Mapping[str, Array]) -> list[Array]:
    return [np.asarray(array) for array in onnxruntime_session(model).run(None, dict(inputs))]


def compile_openvino(model: Any, fixed: Mapping[str, Array] | None = None, **config: Any) -> Any:
    """Compile an openvino.Model, or the IR at a path with the shapes of the arrays `fixed`."""
    openvino = pytest.importorskip("openvino")
    core = openvino.Core()
    if fixed is not None:
        model = core.read_model(model)
        model.reshape({name: list(array.shape) for name, array in fixed.items()})
    # the default is bfloat16 on processors that support it
    config = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1} | config
    return core.compile_model(model, "CPU", config)


def run_openvino(model: Any, inputs: Mapping[str, Any] | Sequence[Any], *, fixed: bool = False) -> list[Array]:
    """Return the outputs in order; `fixed` requires inputs by name."""
    named = inputs if fixed and isinstance(inputs, Mapping) else None
    compiled = compile_openvino(model, named)
    results = compiled(inputs)
    return [np.array(results[port]) for port in compiled.outputs]
