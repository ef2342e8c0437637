"""Facts about a model, as values of JSON."""

from __future__ import annotations

from typing import Any

from pyrnnx._internal.facts import Facts
from pyrnnx.errors import PyrnnxError
from pyrnnx.layers.facts import layer_facts
from pyrnnx.models.model import Model, layer_values
from pyrnnx.operator.tensor_info import Dimension, Interval, TensorInfo


def model_facts(model: Model) -> Facts:
    """Return the facts of a whole model, with the keys of ``pyrnnx inspect --json``."""
    try:
        values = layer_values(model)
        layers = [{"name": name, **layer_facts(layer, values.get(name, {}))} for name, layer in model.layers.items()]
        problem, why_none = "", model.layers.why_none
    except PyrnnxError as error:
        layers, problem, why_none = [], str(error), ""
    plan: list[Facts] = []
    try:
        plan = [{"runner": runner, "what": what, "why": why} for runner, what, why in model.plan.rows()]
    except PyrnnxError as error:
        problem = problem or str(error)
    return {
        "model": model.label,
        "format": "ONNX" if hasattr(model, "proto") else "OpenVINO IR",
        "ir_version": _ir_version(model),
        "opsets": _opsets(model),
        "inputs": [tensor_facts(info) for info in model.inputs],
        "outputs": [tensor_facts(info) for info in model.outputs],
        "variables": [tensor_facts(info) for info in getattr(model, "variables", ())],
        "layers": layers,
        "why_no_layers": why_none,
        "plan": plan,
        "cannot_run": problem,
    }


def _ir_version(model: Any) -> int:
    """Return the version of the file format, ONNX or OpenVINO IR."""
    return int(model.proto.ir_version if hasattr(model, "proto") else model.net.version)


def _opsets(model: Any) -> dict[str, int]:
    """Return the versions of operator sets by domain; an IR has none."""
    if hasattr(model, "proto"):
        return {entry.domain or "ai.onnx": entry.version for entry in model.proto.opset_import}
    return {}


def tensor_facts(info: TensorInfo) -> Facts:
    """Return the facts of an input, output or variable; an open dimension is None, an interval a text "1..8"."""
    shape = None if info.shape is None else [_dimension(size) for size in info.shape]
    return {
        "name": info.name,
        "dtype": info.dtype,
        "shape": shape,
        "aliases": list(info.aliases),
        "optional": info.optional,
    }


def _dimension(size: Dimension) -> int | str | None:
    return str(size) if isinstance(size, Interval) else size
