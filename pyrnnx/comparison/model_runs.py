"""What two models are run on, and which of their inputs and outputs belong together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from pyrnnx.comparison.inputs import INPUTS, made_shape, random_array, random_lengths
from pyrnnx.conventions import CALL_ARGUMENTS, CANONICAL, OPENVINO_SEQUENCE, OUTPUTS, rearrange
from pyrnnx.dtypes import FLOAT_TYPES, INTEGERS, AnyArray
from pyrnnx.errors import ArgumentError, PyrnnxError, printable, shortened, shown
from pyrnnx.model import LayerValue, Model
from pyrnnx.tensor_info import Dimension, Interval, TensorInfo

# Of open dimensions, where inputs are made: of the first one of an input, often the batch, and of its others. The first
# with which both models run: some take one row alone, and a convolution takes a minimum of samples.
OPEN_SIZES = ((3, 3), (1, 1), (1, 64), (1, 512), (3, 512))
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


def run_at_random(a: Model, b: Model, inputs: Matched, seed: int) -> Run:
    """Both models on random numbers, of the first of `OPEN_SIZES` with which both run.

    Raises
    ------
    PyrnnxError
        Inputs that cannot be made; what the models reject with all sizes.
    """
    first: PyrnnxError | None = None
    for sizes in OPEN_SIZES:
        made, is_open = _made(a, b, inputs, seed, sizes)
        try:
            return _run(a, b, inputs, made)
        except PyrnnxError as error:
            first = first or error
        if not is_open:
            break
    assert first is not None  # there are sizes
    raise type(first)(
        f"compare: {model_label(a)} and {model_label(b)} do not both run on random inputs of the sizes that they "
        f"declare; inputs=... can give others ({first})"
    ) from first


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


def _made(a: Model, b: Model, inputs: Matched, seed: int, sizes: tuple[int, int]) -> tuple[dict[str, AnyArray], bool]:
    """Arrays by the names of a, and whether one of their dimensions is open."""
    rng, known = np.random.default_rng(seed), _Open(sizes)
    infos_a, infos_b = ({info.name: info for info in model.inputs} for model in (a, b))
    made = {}
    for both in inputs.names.values():
        info, other = infos_a[both[0]], infos_b[both[1]]
        made[info.name] = _random(info, _dimensions(info, other, inputs.axes.get(both)), known, rng)
    axes = {first: both[0] for (first, _), both in inputs.axes.items() if first in made}
    steps = [made[name].shape[one.index("T")] for name, one in axes.items() if "T" in one]
    for name, one in axes.items():
        if steps and one == "N" and infos_a[name].dtype in INTEGERS:  # lengths, which a layer takes as they are
            made[name] = random_lengths(rng, min(steps), made[name].size).astype(made[name].dtype)
    return made, known.asked


def _dimensions(info: TensorInfo, other: TensorInfo, axes: tuple[str, str] | None) -> Sequence[Dimension]:
    """What either model declares, in the order of a."""
    theirs = other.shape
    if axes is not None and theirs is not None and len(theirs) == len(axes[1]):
        sizes = dict(zip(axes[1], theirs, strict=True))
        theirs = tuple([sizes.get(axis, 1) for axis in axes[0]])
    dimensions = info.shape or theirs or ()
    if theirs is None or len(theirs) != len(dimensions):
        return dimensions
    pairs = zip(dimensions, theirs, strict=True)
    return tuple([two if isinstance(two, int) and not isinstance(one, int) else one for one, two in pairs])


class _Open:
    """The sizes of open dimensions, the same for the same symbol."""

    def __init__(self, sizes: tuple[int, int]) -> None:
        self._sizes, self._symbols, self.asked = sizes, dict[str, int](), False

    def shape(self, dimensions: Sequence[Dimension]) -> list[int]:
        place = count()
        return [one if isinstance(one, int) else self._size(one, next(place)) for one in dimensions]

    def _size(self, dimension: str | Interval | None, place: int) -> int:
        self.asked, size = True, self._sizes[min(place, 1)]
        if isinstance(dimension, str):
            return self._symbols.setdefault(dimension, size)
        if dimension is None:
            return size
        low, high = dimension
        return max(low, size if high is None else min(size, high))


def _random(info: TensorInfo, dimensions: Sequence[Dimension], sizes: _Open, rng: np.random.Generator) -> AnyArray:
    """Numbers of the input's type; integers are ones, which are legal as most indices."""
    what = f"input {shown(info.name)}"
    shape = made_shape(what, sizes.shape(dimensions))
    if info.dtype in FLOAT_TYPES:
        return random_array(what, shape, [str(info.dtype)], rng)
    if info.dtype in (*INTEGERS, "bool"):
        return np.ones(shape, info.dtype)
    raise ArgumentError(f"compare: {what} has type {info.dtype}; inputs=... must give it")
