"""Two layers side by side: how their conventions, their operators and their numbers differ."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np

from pyrnnx.comparison.inputs import call_inputs, converted, random_array
from pyrnnx.comparison.numbers import Deviation, Verdict, deviation, in_words, largest
from pyrnnx.conventions import (
    CALL_ARGUMENTS,
    CANONICAL,
    Convention,
    bias_blocks,
    canonical_for,
    convert_weights,
    coupling,
    rearrange,
    weight_axes,
)
from pyrnnx.dtypes import AnyArray
from pyrnnx.errors import ArgumentError, printable, shortened
from pyrnnx.layer import Layer
from pyrnnx.op import RecurrentOp

DEFAULT_SIZES = {"T": 5, "N": 3, "I": 4}


@runtime_checkable
class UnboundLayer(Protocol):
    """A layer whose weights are inputs, such as one read from a `<layer>` element.

    `op` is None where the layer does not say its hidden_size.
    """

    @property
    def op(self) -> RecurrentOp | None: ...
    @property
    def convention(self) -> Convention: ...
    @property
    def label(self) -> str: ...
    @property
    def dtype(self) -> str | None: ...
    @property
    def sizes(self) -> Mapping[str, int]: ...
    def bind(self, W: Any, R: Any, B: Any) -> Layer: ...


AnyLayer: TypeAlias = Layer | UnboundLayer


@dataclass(frozen=True)
class Difference:
    """One aspect in which two layers are not the same."""

    aspect: str
    a: str
    b: str


@dataclass(frozen=True)
class Comparison(Verdict):
    """What `compare` found in two layers; printed as a table.

    Attributes
    ----------
    a, b : str
        The two layers, as errors name them, with their convention.
    conventions : tuple of Difference
        How the arrays are arranged: axes, gate order, bias form, names, what is required, and the weights' dtype.
    operators : tuple of Difference
        How the operators differ: activations, clip and the like. Empty for two descriptions of one layer.
    deviations : dict
        For each output, by canonical name: how far the two are from each other, in the canonical arrangement.
    paired_by : str
        Of layers of two models: what makes them a pair, such as "equal weights".
    not_compared : str
        Of layers of two models: why there are no numbers, such as weights that a convention cannot express.
    """

    a: str
    b: str
    conventions: tuple[Difference, ...]
    operators: tuple[Difference, ...]
    deviations: Mapping[str, Deviation]
    paired_by: str = ""
    not_compared: str = ""

    @property
    def numbers(self) -> dict[str, float]:
        """For each output, by canonical name: the largest absolute difference (see `Deviation.largest`)."""
        return {name: one.largest for name, one in self.deviations.items()}

    @property
    def largest_difference(self) -> float:
        """The largest absolute difference over all outputs.

        Infinity where one has a NaN, and the other a number; NaN where nothing was compared: outputs without elements.
        """
        return largest(self.numbers.values())

    def _complete(self) -> bool:
        return not self.not_compared

    def _deviations(self) -> Iterable[Deviation]:
        return self.deviations.values()

    def __hash__(self) -> int:
        return hash((self.a, self.b, self.conventions, self.operators, frozenset(self.deviations.items())))

    def __str__(self) -> str:
        rows = [("", self.a, self.b)]
        rows += [(one.aspect, one.a, one.b) for one in (*self.conventions, *self.operators)]
        lines = _table(rows)
        if self.paired_by:
            lines.append(f"a pair by: {self.paired_by}")
        if self.not_compared:
            lines.append(f"not compared: {printable(self.not_compared)}")
        elif not self.operators:
            lines.append("operators: the same")
        lines += [f"largest difference of {name}: {in_words(value)}" for name, value in self.numbers.items()]
        return "\n".join(lines)


def compare_layers(a: AnyLayer, b: AnyLayer, inputs: Mapping[str, Any] | None, seed: int) -> Comparison:
    """As `compare`, of two layers."""
    _same_kind(a, b)
    rng = np.random.default_rng(seed)
    bound_a, bound_b = bound = _bind(a, b, rng)
    if bound_a.input_size != bound_b.input_size:
        raise _mismatch("input_size", a, bound_a.input_size, b, bound_b.input_size)
    one_step = next((label(layer) for layer in bound if "T" not in layer.convention.axes_of("X")), "")
    sizes = _sizes(a, b) | {"I": bound_a.input_size}
    dtypes = [layer.dtype.name for layer in bound]
    arrays = call_inputs(inputs or {}, bound_a.op, sizes, dtypes, rng, one_step)
    outputs = [_run(layer, arrays) for layer in bound]
    conventions = _differences(_describe(bound_a.op, a.convention), _describe(bound_b.op, b.convention))
    if bound_a.dtype != bound_b.dtype:
        conventions += (Difference("dtype", str(bound_a.dtype), str(bound_b.dtype)),)
    conventions += _differing_constants(bound_a, bound_b)
    return Comparison(
        with_convention(a),
        with_convention(b),
        conventions,
        _differences(_describe_op(bound_a.op), _describe_op(bound_b.op)),
        {name: deviation(outputs[0][name], outputs[1][name]) or Deviation(math.inf) for name in outputs[0]},
    )


def _differing_constants(a: Layer, b: Layer) -> tuple[Difference, ...]:
    """What the layers take where a call leaves it out: the numbers are compared on inputs that leave nothing out."""
    names = [name for name in CALL_ARGUMENTS if name in a.constants or name in b.constants]
    differing = [name for name in names if not _same_constant(a, b, name)]
    if not differing:
        return ()
    texts = [", ".join(name for name in differing if name in layer.constants) or "none" for layer in (a, b)]
    return (Difference("constants", texts[0], f"{texts[1]}, other values" if texts[0] == texts[1] else texts[1]),)


def _same_constant(a: Layer, b: Layer, name: str) -> bool:
    if name not in a.constants or name not in b.constants:
        return False
    first, second = (
        rearrange(layer.constants[name], layer.convention.axes_of(name), CANONICAL.axes_of(name)) for layer in (a, b)
    )
    return np.array_equal(first, second)


def with_convention(layer: AnyLayer) -> str:
    """How a table names a layer."""
    return f"{label(layer)} ({layer.convention.name})"


def label(layer: AnyLayer) -> str:
    """How errors and tables name a layer."""
    return printable(shortened(layer.label))


def _same_kind(a: AnyLayer, b: AnyLayer) -> None:
    """Reject layers for which no input fits both."""
    for layer in (a, b):
        if layer.op is None:
            raise ArgumentError(
                f"compare: {label(layer)} does not say its hidden_size; expected a layer that says it, or has weights"
            )
    for aspect in ("cell", "direction", "hidden_size"):
        first, second = (getattr(one.op, aspect) for one in (a, b))
        if first != second:
            raise _mismatch(aspect, a, first, b, second)


def _mismatch(aspect: str, a: AnyLayer, first: Any, b: AnyLayer, second: Any) -> ArgumentError:
    first, second = (getattr(value, "value", value) for value in (first, second))
    return ArgumentError(f"compare: {aspect} is {first} in {label(a)} and {second} in {label(b)}; expected the same")


def _table(rows: list[tuple[str, str, str]]) -> list[str]:
    rows = [(printable(aspect), printable(a), printable(b)) for aspect, a, b in rows]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return [lines[0], "  ".join("-" * width for width in widths), *lines[1:]]


def _bind(a: AnyLayer, b: AnyLayer, rng: np.random.Generator) -> tuple[Layer, Layer]:
    if isinstance(a, Layer) and isinstance(b, Layer):
        return a, b
    owner = next((one for one in (a, b) if isinstance(one, Layer)), None)
    weights = _random_weights(a, b, rng) if owner is None else _canonical_weights(owner)
    arrangement = canonical_for((owner or a).convention)
    layers = []
    for layer in (a, b):
        if isinstance(layer, Layer):
            layers.append(layer)
            continue
        assert layer.op is not None  # by _same_kind
        if "B" in weight_axes(layer.op, layer.convention) and "B" not in weights:
            D, GH = weights["W"].shape[:2]
            weights = {**weights, "B": np.zeros((D, 2 * GH), weights["W"].dtype)}
        layers.append(layer.bind(**convert_weights(layer.op, weights, arrangement, layer.convention, layer.label)))
    return layers[0], layers[1]


def _canonical_weights(layer: Layer) -> dict[str, AnyArray]:
    return convert_weights(layer.op, layer.weights, layer.convention, canonical_for(layer.convention))


def _random_weights(a: AnyLayer, b: AnyLayer, rng: np.random.Generator) -> dict[str, AnyArray]:
    op = a.op
    assert op is not None  # by _same_kind
    I = _sizes(b, a)["I"]
    D, H, G = op.num_directions, op.hidden_size, len(op.gates)
    shapes = {"W": (D, G * H, I), "R": (D, G * H, H), "B": (D, 2 * G * H)}
    dtype = str(a.dtype or b.dtype or "float32")
    return {name: random_array(f"{name} of {label(a)}", shape, [dtype], rng, H**-0.5) for name, shape in shapes.items()}


def _sizes(*layers: AnyLayer) -> dict[str, int]:
    """Sizes of the axes of X: the last layer that fixes one has it."""
    sizes = dict(DEFAULT_SIZES)
    for layer in layers:
        sizes |= getattr(layer, "sizes", {})
    return sizes


def _run(layer: Layer, arrays: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
    """Canonical arrays through a layer of any convention, and its outputs made canonical."""
    convention = layer.convention
    given: dict[str, Any] = {
        name: rearrange(
            converted(name, array, layer.dtype, label(layer)), CANONICAL.axes_of(name), convention.axes_of(name)
        )
        for name, array in arrays.items()
        if name != "sequence_lens"
    }
    if convention.axes_of("sequence_lens"):
        given["sequence_lens"] = arrays["sequence_lens"]
    outputs = layer.run(**given)
    return {
        name: rearrange(array, convention.axes_of(name), CANONICAL.axes_of(name))
        for name, array in zip(layer.output_names, outputs, strict=True)
    }


def _differences(a: Mapping[str, str], b: Mapping[str, str]) -> tuple[Difference, ...]:
    return tuple(Difference(aspect, a[aspect], b[aspect]) for aspect in a if a[aspect] != b.get(aspect, a[aspect]))


def _describe(op: RecurrentOp, convention: Convention) -> dict[str, str]:
    """Every aspect in which conventions can differ, in words."""
    arguments = ["sequence_lens", "initial_h", "Y_h"] + (["initial_c", "Y_c"] if op.has_cell_state else [])
    states = [name for name in arguments if name != "sequence_lens"]
    axes = weight_axes(op, convention)
    required = sorted(convention.name_of(name) for name in convention.required if name in (*arguments, "B"))
    lengths = convention.length_dtypes if convention.axes_of("sequence_lens") else ()
    coupled = {"coupled gates (input_forget)": coupling(convention)} if op.input_forget else {}
    return {
        "axes of X": _axes(convention.axes_of("X")),
        "axes of Y": _axes(convention.axes_of("Y")),
        f"axes of {', '.join(states)}": _axes(convention.axes_of("initial_h")),
        "shape of W": f"[{', '.join(axes['W'])}]",
        "gate order": ", ".join(convention.gate_order(op.cell)),
        "B": f"{', '.join(bias_blocks(op, convention))}: [{', '.join(axes['B'])}]",
        "P (peepholes)": ", ".join(convention.peepholes) if "P" in axes else "none",
        **coupled,
        "names": ", ".join(convention.name_of(name) for name in arguments),
        "required beside X, W, R": ", ".join(required) or "nothing",
        "dtype of lengths": "no lengths" if not lengths else lengths[0] if len(lengths) == 1 else "any integer type",
    }


def _axes(axes: str) -> str:
    return f"[{', '.join(axes)}]"


def _describe_op(op: RecurrentOp) -> dict[str, str]:
    return {
        "activations": "; ".join(", ".join(map(str, functions)) for functions in op.activations),
        "clip": str(op.clip),
        "linear_before_reset": str(op.linear_before_reset),
        "input_forget": str(op.input_forget),
    }
