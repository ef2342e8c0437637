"""Facts about recurrent layers, gathered once: for reprs, and `pyrnnx inspect` as text and JSON."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, TypeAlias

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx._internal.immutable import Immutable
from pyrnnx.operator.conventions import CALL_ARGUMENTS
from pyrnnx.operator.op import Direction, RecurrentOp
from pyrnnx.operator.quantized import Quantized

Facts: TypeAlias = dict[str, Any]  # values of JSON, by the keys of `pyrnnx inspect --json`
NO_WEIGHTS = "weights are no constants"
_QUANTIZED = "DynamicQuantizeLSTM"


class Described(Immutable):
    """Base of layers, with weights or without, whose repr shows their facts."""

    def facts(self) -> Facts:
        """Return the facts about the layer, with the keys of ``pyrnnx inspect --json``."""
        return layer_facts(self)

    def __repr__(self: Any) -> str:
        facts = self.facts()
        reduced = f" with weights in {facts['weight_dtype']}" if facts["weight_dtype"] else ""
        sizes = (f"{name}={'?' if facts[name] is None else facts[name]}" for name in ("input_size", "hidden_size"))
        words = (facts["direction"], *sizes, f"{facts['dtype'] or 'any dtype'}{reduced}", facts["convention"])
        return f"<{type(self).__name__} {self.label}: {', '.join(filter(None, words))}>"


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
    operator = _operator(layer, weights)
    return {
        "operator": operator,
        "direction": None if op is None else op.direction.value,
        "hidden_size": None if op is None else op.hidden_size,
        "activations": [] if op is None else [list(map(str, functions)) for functions in op.activations],
        "clip": None if op is None else op.clip,
        "convention": layer.convention.name,
        "input_size": input_size,
        "dtype": None if layer.dtype is None else str(layer.dtype),
        "weight_dtype": getattr(layer, "weight_dtype", None),
        "parameters": None if weights is None else sum(_size(weight) for weight in weights.values()),
        "mflop_per_step": _mflop(op, input_size),
        "weights": None if weights is None else {name: list(weight.shape) for name, weight in weights.items()},
        "constants": {name: list(array.shape) for name, array in constants.items()},
        "inputs": [layer.convention.name_of(name) for name in CALL_ARGUMENTS if name in inputs and name != "X"],
        "unusual": [*_unusual(layer, op, weights, operator), *(f"constant {name}" for name in constants)],
    }


def rows(facts: Facts) -> list[tuple[str, str]]:
    """Return the name and the text of each fact that has a value."""
    sizes, mflop, parameters = ("input_size", "hidden_size"), facts["mflop_per_step"], facts["parameters"]
    texts = {
        "operator": f"{facts['operator']}, {facts['convention']}",
        "direction": facts["direction"],
        ", ".join(sizes): ", ".join("?" if facts[name] is None else f"{facts[name]:,}" for name in sizes),
        "activations": "; reverse: ".join(dict.fromkeys(map(", ".join, facts["activations"]))),
        "type": facts["dtype"] or "any",
        "parameters": "" if parameters is None else f"{parameters:,}",
        "work": "" if mflop is None else f"{mflop:.3g} MFLOP per time step and row",
        "weights": _shapes(facts["weights"] or {}),
        "inputs besides X": ", ".join(facts["inputs"]),
        "constants": _shapes(facts["constants"]),
        "unusual": ", ".join(facts["unusual"]),
    }
    return [(name, text) for name, text in texts.items() if text]


def _shapes(shapes: Mapping[str, list[int]]) -> str:
    return ", ".join(f"{name} {shape}" for name, shape in shapes.items())


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


def _unusual(layer: Any, op: RecurrentOp | None, weights: Mapping[str, Any] | None, operator: str) -> list[str]:
    """Return the properties that ports to another runtime get wrong most easily."""
    weight_dtype = getattr(layer, "weight_dtype", None)
    has_lengths = "sequence_lens" in getattr(layer, "node_inputs", ()) and "sequence_lens" not in layer.constants
    unusual = (
        (layer.convention.name == "ONNX, layout 1", "layout=1"),
        *(() if op is None else _unusual_attributes(op)),
        (weights is None, NO_WEIGHTS),
        (weights is not None and "P" in weights and weights["P"].any(), "peepholes"),
        (operator == _QUANTIZED, "quantized: weights, X and h in 8 bits"),
        (weight_dtype is not None, f"weight_dtype={weight_dtype}"),
        (has_lengths, "lengths of rows"),
    )
    return [text for applies, text in unusual if applies]


def _unusual_attributes(op: RecurrentOp) -> tuple[tuple[bool, str], ...]:
    return (
        (op.direction is Direction.REVERSE, "reverse"),
        (op.linear_before_reset, "linear_before_reset"),
        (op.input_forget, "input_forget"),
        (op.clip is not None, f"clip={op.clip}"),
        (not op.has_default_activations, "activations"),
    )
