"""What two models are run on, and which of their inputs and outputs belong together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from pyrnnx.comparison.inputs import HINT, INPUTS
from pyrnnx.comparison.random_inputs import Wanted, random_inputs, symbols_of
from pyrnnx.conventions import CALL_ARGUMENTS, CANONICAL, OPENVINO_SEQUENCE, OUTPUTS, rearrange
from pyrnnx.dtypes import AnyArray
from pyrnnx.errors import ArgumentError, PyrnnxError, printable, shortened, shown
from pyrnnx.layer import Layer
from pyrnnx.model import LayerValue, Model
from pyrnnx.tensor_info import TensorInfo

_CANONICAL_NAMES = {
    convention.name_of(argument): argument
    for convention in (CANONICAL, OPENVINO_SEQUENCE)
    for argument in (*CALL_ARGUMENTS, *OUTPUTS)
}
Axes = Mapping[tuple[str, str], tuple[str, str]]  # of an array of two models, by its names in them
LayerValues = Mapping[str, Mapping[str, LayerValue]]


class Matched(NamedTuple):
    """Inputs or outputs of two models: by the name in the results the names in a and in b, "" where there is none.

    `axes`: of those that both give to, or take from, a pair of layers as they are.
    """

    names: Mapping[str, tuple[str, str]]
    axes: Axes

    def in_b(self, name: str, array: Any) -> Any:
        """An array of a as b has it."""
        axes = self.axes.get(self.names.get(name, ("", "")))
        if axes is None or np.ndim(array) != len(axes[0]):
            return array
        return rearrange(np.asarray(array), *axes)

    def in_a(self, first: str, second: str, array: Any) -> Any:
        """An output of b, by the names of both, as a would have it."""
        axes = self.axes.get((first, second))
        return array if axes is None or axes[0] == axes[1] else rearrange(np.asarray(array), axes[1], axes[0])


def model_label(model: Model) -> str:
    """How errors and tables name a model."""
    return printable(shortened(model.label))


def matched_outputs(a: Model, b: Model, axes: Axes) -> Matched:
    """Of both models."""
    return Matched(_matched(a.outputs, b.outputs), axes)


def matched_inputs(a: Model, b: Model, axes: Axes) -> Matched:
    """Of each input that a model requires.

    Raises
    ------
    ArgumentError
        One that is only in one of them.
    """
    required = [[info for info in model.inputs if not info.optional] for model in (a, b)]
    matched = _matched(*required, alike=True)
    for name, (first, second) in matched.items():
        if not (first and second):
            raise ArgumentError(
                f"compare: {model_label(a)} and {model_label(b)} have not the same inputs; {shown(name)} is only in one"
            )
    return Matched(matched, axes)


def axes_of_layers(a: LayerValues, b: LayerValues, pairs: Sequence[tuple[str, str]]) -> Axes:
    """How what paired layers take and give is arranged in their models, where that is told by all of them alike."""
    found: dict[tuple[str, str], set[tuple[str, str]]] = {}
    for first, second in pairs:
        mine, theirs = a.get(first, {}), b.get(second, {})
        for argument in (*CALL_ARGUMENTS, *OUTPUTS):
            if argument in mine and argument in theirs:
                axes = mine[argument].axes, theirs[argument].axes
                for names in ((one, other) for one in mine[argument].names for other in theirs[argument].names):
                    found.setdefault(names, set()).add(axes)
    return {names: next(iter(axes)) for names, axes in found.items() if len(axes) == 1}


def two_conventions(*matched: Matched) -> str:
    """How the names of one array show that two models are arranged by two conventions; empty where they do not.

    Also empty where layers tell how all arrays with such names are arranged.
    """
    words, told = "", True
    for one in matched:
        for first, second in one.names.values():
            canonical = _CANONICAL_NAMES.get(first)
            if canonical is None or canonical != _CANONICAL_NAMES.get(second):
                continue
            told = told and (first, second) in one.axes
            if first != second and not words:
                words = (
                    f"they name their arrays by two conventions ({first}, {second}), and so arrange them differently"
                )
    return "" if told else words


def _matched(a: Sequence[TensorInfo], b: Sequence[TensorInfo], *, alike: bool = False) -> dict[str, tuple[str, str]]:
    """By the names that both have, then by those that two conventions have for one array, the rest in order.

    An empty name stands for none. `alike`: of the rest, only those of equal dtype and rank.
    """
    free = {info.name: info for info in b}
    by_name = {alias: info.name for info in b for alias in info.aliases} | {name: name for name in free}
    by_convention = {_CANONICAL_NAMES[name]: name for name in free if name in _CANONICAL_NAMES}
    pairs: dict[str, str] = {}
    for names in (by_name.get, lambda name: by_convention.get(_CANONICAL_NAMES.get(name, ""))):
        for info in a:
            if info.name not in pairs and (second := names(info.name)) in free:
                pairs[info.name] = free.pop(second).name
    for info in a:
        if info.name not in pairs:
            found = next((name for name, other in free.items() if not alike or _alike(info, other)), "")
            free.pop(found, None)
            pairs[info.name] = found
    return {info.name: (info.name, pairs[info.name]) for info in a} | {name: ("", name) for name in free}


def _alike(a: TensorInfo, b: TensorInfo) -> bool:
    """Whether dtype and rank are the same, as far as they are declared."""
    dtypes, shapes = {a.dtype, b.dtype} - {None}, [info.shape for info in (a, b) if info.shape is not None]
    return len(dtypes) < 2 and len({len(shape) for shape in shapes}) < 2


class Run(NamedTuple):
    """What two models were run on, and what they gave, by their own names."""

    inputs_a: dict[str, Any]
    inputs_b: dict[str, Any]
    outputs_a: dict[str, Any]
    outputs_b: dict[str, Any]


def run_on(a: Model, b: Model, inputs: Matched, given: Mapping[str, Any]) -> Run:
    """Both models on what the caller gave, by the names of a.

    Raises
    ------
    PyrnnxError
        Names that a has not; what the models reject.
    """
    names = {alias: info.name for info in a.inputs for alias in (*info.aliases, info.name)}
    for name in given:
        if name not in names:
            expected = ", ".join(info.name for info in a.inputs)
            raise ArgumentError(f"{INPUTS} has {shown(name)}; expected names out of {expected}")
    try:
        return _run(a, b, inputs, {names[name]: value for name, value in given.items()})
    except PyrnnxError as error:
        raise type(error)(f"compare: {error} (inputs=... gives both models the arrays to run on)") from error


def run_at_random(a: Model, b: Model, inputs: Matched, seed: int, dims: Mapping[str, int]) -> Run:
    """Both models on random numbers, of the first sizes with which both run; `dims`: sizes of symbolic dimensions.

    Raises
    ------
    PyrnnxError
        Inputs that cannot be made; what the models reject with all sizes.
    """
    first: PyrnnxError | None = None
    for made in random_inputs(_wanted(a, b, inputs), seed, dims, "compare", HINT):
        try:
            return _run(a, b, inputs, made)
        except PyrnnxError as error:  # noqa: PERF203  # whether sizes suit is what a run tells
            first = first or error
    assert first is not None  # there are sizes
    raise type(first)(
        f"compare: {model_label(a)} and {model_label(b)} do not both run on random inputs of the sizes that they "
        f"declare; inputs=... can give others ({first})"
    ) from first


def random_calls(
    model: Model, given: Mapping[str, AnyArray], seed: int, dims: Mapping[str, int], what: str, hint: str
) -> Iterator[dict[str, AnyArray]]:
    """Inputs of a call of one model: those that are given, and for the others random numbers, of sizes after sizes.

    Parameters
    ----------
    model : Model
    given : mapping
        By the names of inputs; their shapes say what symbolic dimensions are.
    seed, dims, what, hint
        As of `random_inputs`.

    Raises
    ------
    ArgumentError
        As of `random_inputs`.
    """
    layers = model._layer_values()
    axes = axes_of_layers(layers, layers, [(name, name) for name in layers])
    inputs = _completed(model, layers)
    required = [info for info in inputs.values() if not info.optional or info.name in given]
    known = {name: size for info in required if info.name in given for name, size in _symbols(info, given[info.name])}
    wanted = [Wanted(info, info, axes.get((info.name, info.name))) for info in required]
    symbols = symbols_of(inputs.values())
    for name in dims:
        if name not in symbols:
            raise ArgumentError(
                f"{what}: dims has {shown(name)}; expected symbolic dimensions of the inputs: "
                f"{', '.join(symbols) or 'there are none'}"
            )
    open_ones = [one for one in wanted if one.info.name not in given]
    there = symbols_of(one.info for one in open_ones)
    sizes = {name: size for name, size in {**known, **dims}.items() if name in there}
    for made in random_inputs(open_ones, seed, sizes, what, hint):
        yield {info.name: given[info.name] if info.name in given else made[info.name] for info in required}


def _symbols(info: TensorInfo, array: AnyArray) -> Iterator[tuple[str, int]]:
    """What a shape says of the symbols of a declaration."""
    for dimension, size in zip(info.shape or (), array.shape, strict=False):
        if isinstance(dimension, str):
            yield dimension, size


def _run(a: Model, b: Model, inputs: Matched, given: dict[str, Any]) -> Run:
    with kept_states(a, b):
        outputs = a(given)  # before anything is done with what a may reject
        there = {inputs.names.get(name, (name, name))[1]: inputs.in_b(name, value) for name, value in given.items()}
        return Run(given, there, outputs, b(there))


@contextmanager
def kept_states(*models: Model) -> Iterator[None]:
    """Leave the variables of models as they were."""
    states: list[tuple[Any, dict[str, Any]]] = []
    for model in models:
        if getattr(model, "variables", ()):
            stateful: Any = model
            states.append((stateful, dict(stateful.state)))
    try:
        yield
    finally:
        for stateful, state in states:
            stateful.state = state


def _wanted(a: Model, b: Model, inputs: Matched) -> list[Wanted]:
    infos_a, infos_b = (_completed(model, model._layer_values()) for model in (a, b))
    return [Wanted(infos_a[both[0]], infos_b[both[1]], inputs.axes.get(both)) for both in inputs.names.values()]


def _completed(model: Model, values: LayerValues) -> dict[str, TensorInfo]:
    """The inputs by name; with the sizes that layers give them, where these take them as they are."""
    infos = {info.name: info for info in model.inputs}
    for name, arguments in values.items():
        layer = model.layers[name]
        if not isinstance(layer, Layer):
            continue
        sizes = {"I": layer.input_size, "H": layer.op.hidden_size, "D": layer.op.num_directions}
        for axes, names in arguments.values():
            for info in [infos[one] for one in names if one in infos]:
                declared = info.shape or (None,) * len(axes)
                if len(declared) == len(axes):
                    shape = [
                        sizes.get(axis, one) if not isinstance(one, int) else one
                        for axis, one in zip(axes, declared, strict=True)
                    ]
                    infos[info.name] = replace(info, shape=tuple(shape))
    return infos
