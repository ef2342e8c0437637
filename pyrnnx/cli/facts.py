"""Facts about a model and its recurrent layers, as values of JSON."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.errors import PyrnnxError
from pyrnnx.layers.layer import Layer
from pyrnnx.models.model import Model, layer_values
from pyrnnx.operator.conventions import CALL_ARGUMENTS
from pyrnnx.operator.op import CELLS, RecurrentOp
from pyrnnx.operator.tensor_info import Dimension, Interval, TensorInfo

Facts = dict[str, Any]
NO_WEIGHTS = "weights are no constants"


def model_facts(model: Model) -> Facts:
    """Return the facts of a whole model, with the keys of ``pyrnnx inspect --json``."""
    try:
        values = layer_values(model)
        layers = [layer_facts(name, layer, values.get(name, {})) for name, layer in model.layers.items()]
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


def layer_facts(name: str, layer: Any, values: Collection[str] = ()) -> Facts:
    """Return the facts of a recurrent layer of either format, with weights or without.

    Parameters
    ----------
    name : str
    layer : Layer, or one without weights
    values : collection of str
        Canonical names of the arguments that are values of the layer's model.
    """
    op: RecurrentOp | None = layer.op
    weights: Mapping[str, AnyArray] | None = layer.weights if isinstance(layer, Layer) else None
    input_size = layer.input_size if isinstance(layer, Layer) else layer.sizes.get("I")
    return {
        "name": name,
        "operator": _operator(layer),
        "convention": layer.convention.name,
        "direction": None if op is None else op.direction.value,
        "input_size": input_size,
        "hidden_size": None if op is None else op.hidden_size,
        "activations": [] if op is None else [[str(name) for name in names] for names in op.activations],
        "clip": None if op is None else op.clip,
        "dtype": None if layer.dtype is None else str(layer.dtype),
        "weight_dtype": getattr(layer, "weight_dtype", None),
        "parameters": None if weights is None else sum(array.size for array in weights.values()),
        "mflop_per_step": _mflop(op, input_size),
        "constants": {key: list(array.shape) for key, array in _constants(layer).items()},
        "inputs": [layer.convention.name_of(key) for key in _inputs(layer, values)],
        "unusual": _unusual(layer, op, weights),
    }


def _inputs(layer: Any, values: Collection[str]) -> list[str]:
    """Return the arguments of a call besides X that are inputs: a node lists them, an IR layer does not."""
    inputs = getattr(layer, "node_inputs", None)
    if inputs is None:
        inputs = {*values} - {*_constants(layer)}
    return [name for name in CALL_ARGUMENTS if name in inputs and name != "X"]


def _constants(layer: Any) -> dict[str, AnyArray]:
    """Return the constant arguments of a layer in the order of a call."""
    constants = getattr(layer, "constants", {})
    return {name: constants[name] for name in CALL_ARGUMENTS if name in constants}


def _operator(layer: Any) -> str:
    operation = getattr(layer, "operation", None)
    if operation is not None:
        return str(operation.versioned_name)
    if _is_quantized(layer):
        return "DynamicQuantizeLSTM"
    return str(layer.op.cell if layer.op is not None else layer.node.op_type)


def _is_quantized(layer: Any) -> bool:
    """Return whether a layer is quantized, judged by its class to avoid importing the ONNX front-end."""
    return any("Quantized" in cls.__name__ for cls in type(layer).__mro__)


def _mflop(op: RecurrentOp | None, input_size: int | None) -> float | None:
    """Return the MFLOP of a row and time step: a multiplication and an addition per element of W and R."""
    if op is None or input_size is None:
        return None
    return 2 * op.num_directions * len(op.gates) * op.hidden_size * (input_size + op.hidden_size) / 1e6


def _unusual(layer: Any, op: RecurrentOp | None, weights: Mapping[str, AnyArray] | None) -> list[str]:
    """Return the properties that ports to another runtime get wrong most easily."""
    words = []
    if layer.convention.name == "ONNX, layout 1":
        words.append("layout=1")
    if op is not None:
        words += _unusual_of_op(op)
    if weights is None:
        words.append(NO_WEIGHTS)
    elif "P" in weights and weights["P"].any():
        words.append("peepholes")
    if _is_quantized(layer):
        words.append("quantized: weights, X and h in 8 bits")
    if getattr(layer, "weight_dtype", None):
        words.append(f"weight_dtype={layer.weight_dtype}")
    inputs, constants = getattr(layer, "node_inputs", ()), _constants(layer)
    if "sequence_lens" in inputs and "sequence_lens" not in constants:
        words.append("lengths of rows")
    return words + [f"constant {name}" for name in constants]


def _unusual_of_op(op: RecurrentOp) -> list[str]:
    default = [CELLS[op.cell].activations] * op.num_directions
    unusual: Sequence[tuple[bool, str]] = (
        (op.direction.value == "reverse", "reverse"),
        (op.linear_before_reset, "linear_before_reset"),
        (op.input_forget, "input_forget"),
        (op.clip is not None, f"clip={op.clip}"),
        ([tuple(map(str, names)) for names in op.activations] != default, "activations"),
    )
    return [text for applies, text in unusual if applies]
