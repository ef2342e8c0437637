"""Two layers side by side: how their conventions, their operators and their numbers differ."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

import numpy as np

from pyrnnx.comparison.aspects import Difference, differing_conventions, differing_operators
from pyrnnx.comparison.gates import Gates, Source, gates
from pyrnnx.comparison.inputs import NO_DIMS, call_inputs, converted, random_array
from pyrnnx.comparison.numbers import Deviation, Verdict, deviation, largest
from pyrnnx.comparison.steps import Place, Profile, output_profile
from pyrnnx.comparison.views.text import layer_lines
from pyrnnx.comparison.weights import WeightBlock, compare_weights, differing, directions
from pyrnnx.conventions import AXIS_NAMES, CANONICAL, Convention, canonical_for, convert_weights, rearrange, weight_axes
from pyrnnx.dtypes import AnyArray
from pyrnnx.errors import ArgumentError, printable, shortened, shown
from pyrnnx.layer import Layer
from pyrnnx.op import RecurrentOp

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
class Comparison(Verdict):
    """What `compare` found in two layers; printed as a table.

    It holds the two layers until its `gates` are asked for, or it is copied or pickled.

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
    weights : tuple of WeightBlock
        For each weight, direction and gate: how far the two are from each other, in the canonical arrangement.
    profiles : dict
        For each output, by canonical name: where the two part, and the largest difference of each step.
    """

    a: str
    b: str
    conventions: tuple[Difference, ...]
    operators: tuple[Difference, ...]
    deviations: Mapping[str, Deviation]
    paired_by: str = ""
    not_compared: str = ""
    weights: tuple[WeightBlock, ...] = ()
    profiles: Mapping[str, Profile] = field(default_factory=dict)
    _source: Source | None = field(default=None, compare=False, repr=False)

    @property
    def largest_difference(self) -> float:
        """The largest absolute difference over all outputs.

        Infinity where one has a NaN, and the other a number; NaN where nothing was compared: outputs without elements.
        """
        return largest(self.numbers.values())

    @property
    def first_difference(self) -> Place | None:
        """The first number of Y, else of Y_h, else of Y_c, that is beyond the tolerance of `equal` (see `Profile`)."""
        return next((one.first for one in self.profiles.values() if one.first is not None), None)

    @property
    def gates(self) -> Mapping[str, Profile]:
        """Where the gates part: by name, in the order in which a step computes them.

        "i", "z", ... are the gates of the ONNX text after their activation, "i_in" what goes into that, "H" and "C" the
        states after the step. They are computed when they are first asked for, in float64 by `pyrnnx.testing.reference`
        from the weights of both layers and what `compare` ran them on; so they are equal where only the arithmetic of
        the two differs, as with `weight_dtype`. Empty where the layers and their outputs are the same. It is slow: of
        many steps only the first are taken, and `gates_note` says which.
        """
        return self._by_gate.profiles

    @property
    def first_gate(self) -> Place | None:
        """Where `gates` part first: in the earliest step, and there in the first by the equations."""
        return self._by_gate.first

    @property
    def gates_note(self) -> str:
        """Which steps `gates` leave out, or why there are none; else empty."""
        return self._by_gate.note

    @cached_property
    def _by_gate(self) -> Gates:
        if self._source is None or not (self.operators or differing(self.weights) or self.largest_difference > 0):
            return Gates()
        return gates(self._source, 0 if self.first_difference is None else self.first_difference.row)

    def _complete(self) -> bool:
        return not self.not_compared

    def _deviations(self) -> Iterable[Deviation]:
        return self.deviations.values()

    def __getstate__(self) -> dict[str, Any]:
        """With the gates, in place of the layers, which may be large."""
        return {**self.__dict__, "_by_gate": self._by_gate, "_source": None}

    def __hash__(self) -> int:
        return hash((self.a, self.b, self.conventions, self.operators, frozenset(self.deviations.items())))

    def __repr__(self) -> str:
        return self._repr(f"{printable(shortened(self.a))} and {printable(shortened(self.b))}")

    def __str__(self) -> str:
        return "\n".join(layer_lines(self))

    def to_dict(self) -> dict[str, Any]:
        from pyrnnx.comparison.views.plain import layer_dict

        return layer_dict(self)

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """A picture of the differences over time and hidden units: an image for each direction and output.

        Its colours are the logarithm of the largest absolute difference of all rows of the batch. Of more than 1024
        steps or units, the largest of several is shown.

        Parameters
        ----------
        path : path, optional
            A file to write the picture to; its suffix says in which format, such as .png or .svg.

        Returns
        -------
        matplotlib.figure.Figure

        Raises
        ------
        PyrnnxError
            matplotlib is not installed (``pip install pyrnnx[plot]``); there are no numbers; a path that cannot be
            written.
        """
        from pyrnnx.comparison.views.plot import plot_layers

        return plot_layers(self, path)

    def _repr_html_(self) -> str:
        from pyrnnx.comparison.views.notebook import layer_html

        return layer_html(self)


def compare_layers(
    a: AnyLayer,
    b: AnyLayer,
    inputs: Mapping[str, Any] | None,
    seed: int,
    dims: Mapping[str, int] = NO_DIMS,
) -> Comparison:
    """As `compare`, of two layers."""
    bound, arrays = prepared_call(a, b, inputs, seed, dims)
    bound_a, bound_b = bound
    outputs = [run_layer(layer, arrays) for layer in bound]
    deviations, profiles = {}, {}
    for name, first in outputs[0].items():
        second = outputs[1][name]
        deviations[name] = deviation(first, second) or Deviation(math.inf)
        profiles[name] = output_profile(name, first, second, directions(bound_a.op), arrays["sequence_lens"])
    return Comparison(
        with_convention(a),
        with_convention(b),
        differing_conventions(bound_a, bound_b, a.convention, b.convention),
        differing_operators(bound_a.op, bound_b.op),
        deviations,
        weights=compare_weights(bound_a, bound_b),
        profiles=profiles,
        _source=Source(bound_a, bound_b, arrays),
    )


def prepared_call(
    a: AnyLayer,
    b: AnyLayer,
    inputs: Mapping[str, Any] | None,
    seed: int,
    dims: Mapping[str, int] = NO_DIMS,
) -> tuple[tuple[Layer, Layer], dict[str, AnyArray]]:
    """The two layers with weights, and what both are called with: canonical arrays by canonical name.

    Raises
    ------
    PyrnnxError
        Layers for which no input fits both; inputs that do not fit; weights that a convention cannot express.
    """
    _same_kind(a, b)
    rng = np.random.default_rng(seed)
    bound = _bind(a, b, rng)
    if bound[0].input_size != bound[1].input_size:
        raise _mismatch("input_size", a, bound[0].input_size, b, bound[1].input_size)
    one_step = next((label(layer) for layer in bound if "T" not in layer.convention.axes_of("X")), "")
    sizes = _sizes(a, b) | _chosen(dims, one_step) | {"I": bound[0].input_size}
    dtypes = [layer.dtype.name for layer in bound]
    return bound, call_inputs(inputs or {}, bound[0].op, sizes, dtypes, rng, one_step)


def _chosen(dims: Mapping[str, int], one_step: str) -> dict[str, int]:
    """Sizes of T and N as a caller names them."""
    names = {AXIS_NAMES[axis]: axis for axis in "TN"}
    for name, size in dims.items():
        if name not in names:
            raise ArgumentError(f"compare: dims has {shown(name)}; expected of layers {', '.join(names)}")
        if names[name] == "T" and one_step and size != 1:
            raise ArgumentError(f"compare: dims has {name} {size}; expected 1: {one_step} runs one step")
    return {names[name]: size for name, size in dims.items()}


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
    if all("P" in getattr(layer, "arguments", ()) for layer in (a, b)):
        shapes["P"] = (D, 3 * H)
    dtype = str(a.dtype or b.dtype or "float32")
    scale, what = H**-0.5, f"of {label(a)}"
    return {name: random_array(f"compare: {name} {what}", shape, [dtype], rng, scale) for name, shape in shapes.items()}


def _sizes(*layers: AnyLayer) -> dict[str, int]:
    """Sizes of the axes of X: the last layer that fixes one has it."""
    sizes = dict(DEFAULT_SIZES)
    for layer in layers:
        sizes |= getattr(layer, "sizes", {})
    return sizes


def run_layer(layer: Layer, arrays: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
    """Canonical arrays through a layer of any convention, and its outputs made canonical."""
    convention = layer.convention
    given: dict[str, Any] = {
        name: rearrange(
            converted(name, array, layer.dtype, label(layer)), CANONICAL.axes_of(name), convention.axes_of(name)
        )
        for name, array in arrays.items()
        if name != "sequence_lens"
    }
    if convention.axes_of("sequence_lens") and "sequence_lens" in arrays:
        given["sequence_lens"] = arrays["sequence_lens"]
    outputs = layer.run(**given)
    return {
        name: rearrange(array, convention.axes_of(name), CANONICAL.axes_of(name))
        for name, array in zip(layer.output_names, outputs, strict=True)
    }
