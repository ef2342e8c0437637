"""Two layers side by side: how their conventions, their operators and their numbers differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np

from pyrnnx.conventions import (
    CANONICAL,
    AnyArray,
    Convention,
    bias_blocks,
    canonical_for,
    convert_weights,
    coupling,
    rearrange,
    weight_axes,
)
from pyrnnx.errors import ArgumentError
from pyrnnx.layer import Layer
from pyrnnx.op import RecurrentOp

DEFAULT_SIZES = {"T": 5, "N": 3, "I": 4}
CALL_ARGUMENTS = ("X", "sequence_lens", "initial_h", "initial_c")


class UnboundLayer(Protocol):
    """A layer whose weights are inputs, such as one read from a `<layer>` element."""

    @property
    def op(self) -> RecurrentOp: ...
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
class Comparison:
    """What `compare` found; printed as a table.

    Attributes
    ----------
    a, b : str
        The two layers, as errors name them, with their convention.
    conventions : tuple of Difference
        How the arrays are arranged: axes, gate order, bias form, names, what is required.
    operators : tuple of Difference
        How the operators differ: activations, clip and the like. Empty for two descriptions of one layer.
    numbers : dict
        For each output, by canonical name: the largest absolute difference, in the canonical arrangement.
    """

    a: str
    b: str
    conventions: tuple[Difference, ...]
    operators: tuple[Difference, ...]
    numbers: Mapping[str, float]

    @property
    def largest_difference(self) -> float:
        """The largest absolute difference over all outputs; NaN if one has a NaN where the other has none."""
        return float(np.max(list(self.numbers.values())))

    def __str__(self) -> str:
        rows = [("", self.a, self.b)]
        rows += [(one.aspect, one.a, one.b) for one in (*self.conventions, *self.operators)]
        lines = _table(rows)
        if not self.operators:
            lines.append("operators: the same")
        lines += [f"largest difference of {name}: {value:.3g}" for name, value in self.numbers.items()]
        return "\n".join(lines)


def compare_layers(a: AnyLayer, b: AnyLayer, inputs: Mapping[str, Any] | None, seed: int) -> Comparison:
    """As `compare`, of two layers."""
    for aspect in ("cell", "direction", "hidden_size"):
        first, second = (getattr(one.op, aspect) for one in (a, b))
        if first != second:
            raise _mismatch(aspect, a, first, b, second)
    rng = np.random.default_rng(seed)
    bound_a, bound_b = _bind(a, b, rng)
    if bound_a.input_size != bound_b.input_size:
        raise _mismatch("input_size", a, bound_a.input_size, b, bound_b.input_size)
    arrays = _inputs(dict(inputs or {}), (a, b), bound_a, rng)
    outputs = [_run(layer, arrays) for layer in (bound_a, bound_b)]
    return Comparison(
        f"{a.label} ({a.convention.name})",
        f"{b.label} ({b.convention.name})",
        _differences(_describe(a.op, a.convention), _describe(b.op, b.convention)),
        _differences(_describe_op(a.op), _describe_op(b.op)),
        {name: largest_difference(outputs[0][name], outputs[1][name]) for name in outputs[0]},
    )


def _mismatch(aspect: str, a: AnyLayer, first: Any, b: AnyLayer, second: Any) -> ArgumentError:
    first, second = (getattr(value, "value", value) for value in (first, second))
    return ArgumentError(f"compare: {aspect} is {first} in {a.label} and {second} in {b.label}; expected the same")


def _table(rows: list[tuple[str, str, str]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return [lines[0], "  ".join("-" * width for width in widths), *lines[1:]]


def _bind(a: AnyLayer, b: AnyLayer, rng: np.random.Generator) -> tuple[Layer, Layer]:
    giver = next((one for one in (a, b) if isinstance(one, Layer)), None)
    weights = _random_weights(a, b, rng) if giver is None else _canonical_weights(giver)
    arrangement = canonical_for((giver or a).convention)
    layers = []
    for layer in (a, b):
        if isinstance(layer, Layer):
            layers.append(layer)
            continue
        if "B" in weight_axes(layer.op, layer.convention) and "B" not in weights:
            D, GH = weights["W"].shape[:2]
            weights = {**weights, "B": np.zeros((D, 2 * GH), weights["W"].dtype)}
        layers.append(layer.bind(**convert_weights(layer.op, weights, arrangement, layer.convention, layer.label)))
    return layers[0], layers[1]


def _canonical_weights(layer: Layer) -> dict[str, AnyArray]:
    return convert_weights(layer.op, layer.weights, layer.convention, canonical_for(layer.convention))


def _random_weights(a: AnyLayer, b: AnyLayer, rng: np.random.Generator) -> dict[str, AnyArray]:
    sizes = DEFAULT_SIZES | dict(getattr(b, "sizes", {})) | dict(getattr(a, "sizes", {}))
    D, H, G = a.op.num_directions, a.op.hidden_size, len(a.op.gates)
    shapes = {"W": (D, G * H, sizes["I"]), "R": (D, G * H, H), "B": (D, 2 * G * H)}
    dtype = a.dtype or b.dtype or "float32"
    return {name: rng.normal(0, H**-0.5, shape).astype(dtype) for name, shape in shapes.items()}


def _inputs(
    given: dict[str, Any], layers: tuple[AnyLayer, ...], bound: Layer, rng: np.random.Generator
) -> dict[str, Any]:
    """Canonical inputs of a call: those that were given, and random ones for the rest."""
    op = bound.op
    for name in given:
        if name not in CALL_ARGUMENTS or (name == "initial_c" and not op.has_cell_state):
            raise ArgumentError(f"compare: inputs has {name!r}; expected names out of {', '.join(CALL_ARGUMENTS)}")
    sizes = dict(DEFAULT_SIZES)
    for layer in layers:
        sizes.update(getattr(layer, "sizes", {}))
    sizes["I"] = bound.input_size
    X = given.get("X")
    if X is None:
        X = rng.normal(size=(sizes["T"], sizes["N"], sizes["I"])).astype(bound.dtype)
    T, N = np.shape(X)[:2] if np.ndim(X) == 3 else (0, 0)
    state = (op.num_directions, N, op.hidden_size)
    arrays = {"X": X, "sequence_lens": given.get("sequence_lens")}
    if arrays["sequence_lens"] is None:
        arrays["sequence_lens"] = rng.integers(min(1, T), T + 1, N, dtype=np.int32)
    for name in ("initial_h", "initial_c") if op.has_cell_state else ("initial_h",):
        arrays[name] = given[name] if name in given else rng.normal(size=state).astype(bound.dtype)
    return arrays


def _run(layer: Layer, arrays: Mapping[str, Any]) -> dict[str, AnyArray]:
    """Canonical arrays through a layer of any convention, and its outputs made canonical."""
    convention = layer.convention
    given = {"sequence_lens": arrays["sequence_lens"] if convention.axes_of("sequence_lens") else None}
    for name, value in arrays.items():
        if name != "sequence_lens":
            array = np.asarray(value).astype(layer.dtype, copy=False)
            given[name] = (
                rearrange(array, CANONICAL.axes_of(name), convention.axes_of(name)) if array.ndim == 3 else array
            )
    outputs = layer.run(**given)
    return {
        name: rearrange(array, convention.axes_of(name), CANONICAL.axes_of(name))
        for name, array in zip(layer.output_names, outputs, strict=True)
    }


def largest_difference(a: AnyArray, b: AnyArray) -> float:
    """The largest absolute difference of two arrays of one shape; NaN if only one of them has a NaN at a place."""
    wide_a, wide_b = (array.astype(np.float64) for array in (a, b))
    both_nan = np.isnan(wide_a) & np.isnan(wide_b)
    with np.errstate(invalid="ignore"):  # inf - inf, where both are the same infinity
        distance = np.abs(wide_a - wide_b)
    return float(np.max(np.where(both_nan | (wide_a == wide_b), 0, distance), initial=0))


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
