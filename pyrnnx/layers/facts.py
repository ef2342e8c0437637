"""Facts about recurrent layers, gathered once: for reprs, notebooks, and `pyrnnx inspect` as text and JSON."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx._internal.facts import Facts, line, page
from pyrnnx._internal.immutable import Immutable
from pyrnnx.operator.conventions import CALL_ARGUMENTS
from pyrnnx.operator.op import RecurrentOp
from pyrnnx.operator.quantized import Quantized

NO_WEIGHTS = "weights are no constants"
_QUANTIZED = "DynamicQuantizeLSTM"
_UNKNOWN: Facts = {"direction": None, "hidden_size": None, "activations": [], "clip": None, "unusual": []}


class Described(Immutable):
    """Base of layers, with weights or without, that shows their facts."""

    def facts(self) -> Facts:
        """Return the facts about the layer, with the keys of ``pyrnnx inspect --json``."""
        return layer_facts(self)

    def _title(self: Any) -> str:
        return f"{type(self).__name__} {self.label}"

    def _repr_html_(self) -> str:
        return page(self._title(), self.facts())

    def __repr__(self) -> str:
        return line(self._title(), self.facts())


def layer_facts(layer: Any, values: Collection[str] = ()) -> Facts:
    """Return the facts about a layer, or one without weights, with the keys of ``pyrnnx inspect --json``.

    `values` are the canonical names of the arguments that are values of the layer's model.
    """
    op: RecurrentOp | None = layer.op
    weights: Mapping[str, AnyArray | Quantized] | None = getattr(layer, "kept_weights", None)
    input_size = layer.sizes.get("I") if weights is None else layer.input_size
    constants = {name: layer.constants[name] for name in CALL_ARGUMENTS if name in getattr(layer, "constants", ())}
    inputs = getattr(layer, "node_inputs", None)  # an ONNX node lists them, an IR layer does not
    inputs = {*values} - {*constants} if inputs is None else inputs
    facts = {**(_UNKNOWN if op is None else op.facts()), "operator": _operator(layer, weights)}
    unusual = facts.pop("unusual")
    return {
        **facts,
        "convention": layer.convention.name,
        "input_size": input_size,
        "dtype": None if layer.dtype is None else str(layer.dtype),
        "weight_dtype": getattr(layer, "weight_dtype", None),
        "parameters": None if weights is None else sum(_size(weight) for weight in weights.values()),
        "mflop_per_step": _mflop(op, input_size),
        "weights": None if weights is None else {name: list(weight.shape) for name, weight in weights.items()},
        "constants": {name: list(array.shape) for name, array in constants.items()},
        "inputs": [layer.convention.name_of(name) for name in CALL_ARGUMENTS if name in inputs and name != "X"],
        "unusual": [
            *(["layout=1"] if layer.convention.name == "ONNX, layout 1" else []),
            *unusual,
            *_unusual(layer, weights, facts["operator"]),
            *(f"constant {name}" for name in constants),
        ],
    }


def _operator(layer: Any, weights: Mapping[str, AnyArray | Quantized] | None) -> str:
    if hasattr(layer, "operation"):
        return str(layer.operation.versioned_name)
    if weights is None:
        return str(layer.node.op_type)
    return _QUANTIZED if isinstance(weights["W"], Quantized) else str(layer.op.cell)


def _size(weight: AnyArray | Quantized) -> int:
    return weight.codes.size if isinstance(weight, Quantized) else weight.size


def _mflop(op: RecurrentOp | None, input_size: int | None) -> float | None:
    """Return the MFLOP of a row and time step: a multiplication and an addition per element of W and R."""
    if op is None or input_size is None:
        return None
    return 2 * op.num_directions * len(op.gates) * op.hidden_size * (input_size + op.hidden_size) / 1e6


def _unusual(layer: Any, weights: Mapping[str, Any] | None, operator: str) -> list[str]:
    """Return the properties besides those of the operator that ports to another runtime get wrong most easily."""
    weight_dtype = getattr(layer, "weight_dtype", None)
    has_lengths = "sequence_lens" in getattr(layer, "node_inputs", ()) and "sequence_lens" not in layer.constants
    unusual = (
        (weights is None, NO_WEIGHTS),
        (weights is not None and "P" in weights and weights["P"].any(), "peepholes"),
        (operator == _QUANTIZED, "quantized: weights, X and h in 8 bits"),
        (weight_dtype is not None, f"weight_dtype={weight_dtype}"),
        (has_lengths, "lengths of rows"),
    )
    return [text for applies, text in unusual if applies]
