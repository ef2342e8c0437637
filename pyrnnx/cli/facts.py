"""What is known of a model and its recurrent layers, as values of JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyrnnx.conventions import CALL_ARGUMENTS
from pyrnnx.dtypes import AnyArray
from pyrnnx.errors import PyrnnxError
from pyrnnx.layer import Layer
from pyrnnx.model import Model
from pyrnnx.op import CELLS, RecurrentOp
from pyrnnx.tensor_info import Dimension, Interval, TensorInfo

Facts = dict[str, Any]
NO_WEIGHTS = "weights are no constants"


def model_facts(model: Model) -> Facts:
    """Of a whole model, by the keys that ``pyrnnx inspect --json`` has."""
    try:
        layers = [layer_facts(name, layer) for name, layer in model.layers.items()]
        given = model._layer_values()
        for one in layers:  # of an IR, whose layers do not say it themselves
            one["inputs"] = one["inputs"] or _inputs(given.get(one["name"], {}), one["constants"])
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
    """Of either format's file."""
    return int(model.proto.ir_version if hasattr(model, "proto") else model.net.version)


def _inputs(values: Mapping[str, Any], constants: Mapping[str, Any]) -> list[str]:
    """Arguments of a call that are values of the model."""
    return [name for name in CALL_ARGUMENTS if name in values and name not in constants]


def _opsets(model: Any) -> dict[str, int]:
    """Versions of the operators, by their domains; of an IR, that of the format."""
    if hasattr(model, "proto"):
        return {one.domain or "ai.onnx": one.version for one in model.proto.opset_import}
    return {}


def tensor_facts(info: TensorInfo) -> Facts:
    """Of an input, an output or a variable; an open dimension is None, and an interval a text "1..8"."""
    shape = None if info.shape is None else [_dimension(one) for one in info.shape]
    return {
        "name": info.name,
        "dtype": info.dtype,
        "shape": shape,
        "aliases": list(info.aliases),
        "optional": info.optional,
    }


def _dimension(one: Dimension) -> int | str | None:
    return str(one) if isinstance(one, Interval) else one


def layer_facts(name: str, layer: Any) -> Facts:
    """Of a recurrent layer of either format, with weights or without."""
    op: RecurrentOp | None = layer.op
    weights: Mapping[str, AnyArray] | None = layer.weights if isinstance(layer, Layer) else None
    input_size = layer.input_size if isinstance(layer, Layer) else layer.sizes.get("I")
    found: Facts = {
        "name": name,
        "operator": _operator(layer),
        "convention": layer.convention.name,
        "direction": None if op is None else op.direction.value,
        "input_size": input_size,
        "hidden_size": None if op is None else op.hidden_size,
        "activations": [] if op is None else [[str(one) for one in each] for each in op.activations],
        "clip": None if op is None else op.clip,
        "dtype": None if layer.dtype is None else str(layer.dtype),
        "weight_dtype": getattr(layer, "weight_dtype", None),
        "parameters": None if weights is None else sum(one.size for one in weights.values()),
        "mflop_per_step": _mflop(op, input_size),
        "constants": {key: list(one.shape) for key, one in _constants(layer).items()},
        "inputs": sorted(getattr(layer, "node_inputs", ()), key=CALL_ARGUMENTS.index),
        "unusual": _unusual(layer, op, weights),
    }
    return found


def _constants(layer: Any) -> dict[str, AnyArray]:
    """Arguments of a call that a layer holds, in the order of a call."""
    held = getattr(layer, "constants", {})
    return {name: held[name] for name in CALL_ARGUMENTS if name in held}


def _operator(layer: Any) -> str:
    operation = getattr(layer, "operation", None)
    if operation is not None:
        return str(operation.versioned_name)
    if _is_quantized(layer):
        return "DynamicQuantizeLSTM"
    return str(layer.op.cell if layer.op is not None else layer.node.op_type)


def _is_quantized(layer: Any) -> bool:
    """By its class, so that the front-end of ONNX need not be imported."""
    return any("Quantized" in one.__name__ for one in type(layer).__mro__)


def _mflop(op: RecurrentOp | None, input_size: int | None) -> float | None:
    """Of a row of one time step: a multiplication and an addition for each element of W and R."""
    if op is None or input_size is None:
        return None
    return 2 * op.num_directions * len(op.gates) * op.hidden_size * (input_size + op.hidden_size) / 1e6


def _unusual(layer: Any, op: RecurrentOp | None, weights: Mapping[str, AnyArray] | None) -> list[str]:
    """What a port to another runtime gets wrong most easily."""
    found = []
    if layer.convention.name == "ONNX, layout 1":
        found.append("layout=1")
    if op is not None:
        found += _of_op(op)
    if weights is None:
        found.append(NO_WEIGHTS)
    elif "P" in weights and weights["P"].any():
        found.append("peepholes")
    if _is_quantized(layer):
        found.append("quantized: weights, X and h in 8 bits")
    if getattr(layer, "weight_dtype", None):
        found.append(f"weight_dtype={layer.weight_dtype}")
    inputs, constants = getattr(layer, "node_inputs", ()), _constants(layer)
    if "sequence_lens" in inputs and "sequence_lens" not in constants:
        found.append("lengths of rows")
    return found + [f"constant {name}" for name in constants]


def _of_op(op: RecurrentOp) -> list[str]:
    default = [CELLS[op.cell].activations] * op.num_directions
    unusual: Sequence[tuple[bool, str]] = (
        (op.direction.value == "reverse", "reverse"),
        (op.linear_before_reset, "linear_before_reset"),
        (op.input_forget, "input_forget"),
        (op.clip is not None, f"clip={op.clip}"),
        ([tuple(map(str, each)) for each in op.activations] != default, "activations"),
    )
    return [text for there, text in unusual if there]
