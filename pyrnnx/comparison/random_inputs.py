"""Random inputs of models, of their declared sizes or of several sizes in turn."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import NamedTuple

import numpy as np

from pyrnnx._internal.dtypes import FLOAT_TYPES, INTEGERS, AnyArray
from pyrnnx.comparison.inputs import made_shape, random_array, random_lengths
from pyrnnx.errors import ArgumentError, shown
from pyrnnx.operator.tensor_info import Dimension, Interval, TensorInfo

# Sizes of an input's open dimensions: of the first, often the batch, and of the others. The first pair with which the
# model runs is used: some models take one row only, and a convolution needs a minimum of samples.
OPEN_SIZES = ((3, 3), (1, 1), (1, 64), (1, 512), (3, 512))


class Wanted(NamedTuple):
    """An input as two models declare it (or one, twice), and its axes in both, where these are known."""

    info: TensorInfo
    other: TensorInfo
    axes: tuple[str, str] | None = None


def random_inputs(
    wanted: Sequence[Wanted],
    seed: int,
    dims: Mapping[str, int],
    what: str,
    hint: str,
    inner_steps: Callable[[dict[str, AnyArray]], Sequence[int]] = lambda arrays: (),
) -> Iterator[dict[str, AnyArray]]:
    """Yield arrays by the names of the first model: normally distributed floats, and ones for integers.

    `dims` sets symbolic dimensions. Each round takes the next pair of `OPEN_SIZES` for all other open dimensions; if
    none is open, there is one round. Lengths of rows are at most the time steps of the inputs of layers, or else what
    `inner_steps` returns for the arrays. Errors begin with `what`, and suggest `hint` as another way to pass an array.

    Raises
    ------
    ArgumentError
        Names that are no symbol of these inputs; an input of a type of which there are no random numbers.
    """
    check_dims(dims, symbols_of(info for pair in wanted for info in pair[:2]), what)
    for sizes in OPEN_SIZES:
        rng, known = np.random.default_rng(seed), _Open(sizes, dims)
        arrays = {}
        for info, other, axes in wanted:
            arrays[info.name] = _random(what, hint, info, known.shape(_dimensions(info, other, axes)), rng)
        known_axes = {info.name: axes[0] for info, _, axes in wanted if axes is not None}
        steps = [arrays[name].shape[letters.index("T")] for name, letters in known_axes.items() if "T" in letters]
        lengths = [
            name for name, letters in known_axes.items() if letters == "N" and arrays[name].dtype.name in INTEGERS
        ]
        if lengths and not steps:
            steps = [*inner_steps(arrays)]
        for name in lengths if steps else ():
            arrays[name] = random_lengths(rng, min(steps), arrays[name].size).astype(arrays[name].dtype)
        yield arrays
        if not known.asked:
            return


def check_dims(dims: Mapping[str, int], symbols: Sequence[str], what: str) -> None:
    """Raise an ArgumentError for sizes of other dimensions than the symbolic ones of the inputs."""
    for name in dims:
        if name not in symbols:
            raise ArgumentError(
                f"{what}: dims has {shown(name)}; expected symbolic dimensions of the inputs: "
                f"{', '.join(symbols) or 'there are none'}"
            )


def symbols_of(infos: Iterable[TensorInfo]) -> list[str]:
    """Return the symbolic dimensions of inputs, each once."""
    return list(
        dict.fromkeys(dimension for info in infos for dimension in info.shape or () if isinstance(dimension, str))
    )


def _dimensions(info: TensorInfo, other: TensorInfo, axes: tuple[str, str] | None) -> Sequence[Dimension]:
    """Return the dimensions that either model declares, in the order of the first."""
    theirs = other.shape
    if axes is not None and theirs is not None and len(theirs) == len(axes[1]):
        sizes = dict(zip(axes[1], theirs, strict=True))
        theirs = tuple([sizes.get(axis, 1) for axis in axes[0]])
    dimensions = info.shape or theirs or ()
    if theirs is None or len(theirs) != len(dimensions):
        return dimensions
    pairs = zip(dimensions, theirs, strict=True)
    return tuple(
        [
            other_size if isinstance(other_size, int) and not isinstance(mine, int) else mine
            for mine, other_size in pairs
        ]
    )


class _Open:
    """The sizes of open dimensions, the same for the same symbol."""

    def __init__(self, sizes: tuple[int, int], dims: Mapping[str, int]) -> None:
        self._sizes, self._symbols, self._known, self.asked = sizes, dict[str, int](), dims, False

    def shape(self, dimensions: Sequence[Dimension]) -> list[int]:
        place = count()
        return [self._size(dimension, place) for dimension in dimensions]

    def _size(self, dimension: Dimension, places: Iterator[int]) -> int:
        if isinstance(dimension, int):
            return dimension
        place = next(places)
        if isinstance(dimension, str) and dimension in self._known:
            return self._known[dimension]
        self.asked, size = True, self._sizes[min(place, 1)]
        if isinstance(dimension, str):
            return self._symbols.setdefault(dimension, size)
        if not isinstance(dimension, Interval):
            return size
        return max(dimension.low, size if dimension.high is None else min(size, dimension.high))


def _random(what: str, hint: str, info: TensorInfo, sizes: Sequence[int], rng: np.random.Generator) -> AnyArray:
    name = f"{what}: input {shown(info.name)}"
    if info.dtype in FLOAT_TYPES:
        return random_array(name, sizes, [str(info.dtype)], rng, hint=hint)
    if info.dtype in (*INTEGERS, "bool"):
        return np.ones(made_shape(name, sizes, hint), info.dtype)
    raise ArgumentError(f"{name} has type {info.dtype}; pass it as {hint}")
