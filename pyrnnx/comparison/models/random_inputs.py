"""Random inputs of models that show differences: several calls, of several sizes, with integers that vary."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from pyrnnx._internal.dtypes import FLOAT_TYPES, INTEGERS, AnyArray
from pyrnnx.comparison.inputs import made_shape, random_array, spread_lengths
from pyrnnx.errors import ArgumentError, shown
from pyrnnx.models.roles import Role
from pyrnnx.operator.tensor_info import Dimension, Interval, TensorInfo

Sizes = tuple[int, int]  # of an input's open dimensions: of the first, often the batch, and of the others
# Sizes in the order in which they are tried: some models take one row or one step only, and a convolution needs a
# minimum of samples.
OPEN_SIZES: tuple[Sizes, ...] = ((3, 3), (1, 3), (3, 1), (1, 64), (1, 512), (3, 512), (1, 1))
# Integers in the order in which they are tried, for models that refuse some.
VARIED, WITHOUT_ZERO, NARROW = range(3)
_FEW = 8
_SINGLE = ((*range(_FEW), 12, 24), (1, 2), (0, 1))  # of an input that is one number, such as a mode or a trip count
_SMALL = (range(_FEW), range(1, 4), range(1, 3))  # of an unknown role
_MOST_FLAGS = 4  # that have all values together
_SCALES = (1.0, 2.0, 8.0, 0.1)  # of the floats of each call


@dataclass
class Wanted:
    """An input as two models declare it (or one, twice), and its numbers in the calls so far."""

    info: TensorInfo
    other: TensorInfo
    axes: tuple[str, str] | None  # in both, where these are known
    role: Role
    has_passed: bool = False
    is_single: bool = False  # one number that is no flag
    seen: set[int] = field(default_factory=set)  # of rows that it selects, those that no padding hid
    needed: set[int] = field(default_factory=set)  # numbers that it must have had, beside rows

    @property
    def name(self) -> str:
        return self.info.name

    @property
    def is_integer(self) -> bool:
        return self.info.dtype in (*INTEGERS, "bool")

    @property
    def is_flag(self) -> bool:
        return self.info.dtype == "bool" or self.role.is_mask

    @property
    def is_length(self) -> bool:
        return self.info.dtype in INTEGERS and (self.role.is_length or (self.axes is not None and self.axes[0] == "N"))

    @property
    def selects(self) -> bool:
        """True if its numbers select from a known number of rows."""
        return self.is_integer and self.role.rows is not None and not (self.is_flag or self.is_length)

    @property
    def rows_left(self) -> int:
        """The number of rows that it has not selected yet."""
        return (self.role.rows or 0) - len(self.seen) if self.selects else 0

    def accept(self, array: AnyArray, *, is_whole: bool) -> None:
        """Record the numbers of a call, in which rows may be shorter unless it `is_whole`."""
        self.has_passed = True
        if self.is_integer and (is_whole or not self.selects):
            self.seen.update(array.astype(np.int64).ravel().tolist())

    def left(self, *, is_fixed: bool) -> str:
        """Return what is missing in the calls, in words; empty if nothing is."""
        name, rows = f"input {shown(self.name)}", self.role.rows
        if not self.has_passed:
            return f"{name} had no other value than its default"
        if not self.is_integer:
            return f"{name} selects from {rows} rows by numbers that are no integers" if rows is not None else ""
        if self.selects:
            return f"{name} selects from {rows} rows, of which {len(self.seen)} were compared" if self.rows_left else ""
        if is_fixed:
            return ""
        if len(self.seen) < 2 or (self.is_length and not self.needed):
            return f"{name} could not be varied"
        missing = sorted(self.needed - self.seen)
        return f"{name} was never {' or '.join(map(str, missing))}" if missing else ""


class Maker:
    """Maker of the inputs of one call after another.

    `dims` are sizes of symbolic dimensions; `what` and `hint` say how errors begin, and which other way to pass an
    array they suggest; `inner_steps` returns the time steps of the layers in a call, if they take no input as X.
    """

    def __init__(
        self,
        wanted: Sequence[Wanted],
        seed: int,
        dims: Mapping[str, int],
        what: str,
        hint: str,
        inner_steps: Callable[[dict[str, AnyArray]], Sequence[int]],
    ) -> None:
        self._seed, self._dims, self._what, self._hint = seed, dims, what, hint
        self._inner_steps = inner_steps
        self.wanted = {entry.name: entry for entry in wanted}
        self.attempt = 0  # place of the call among all, also those that are refused: each has another single number
        dimensions = [dimension for entry in wanted for dimension in _dimensions(entry)]
        self.is_open = any(not isinstance(dimension, int) and dimension not in dims for dimension in dimensions)
        self.has_optional = any(entry.info.optional for entry in wanted)
        self._calls = 0
        self._rounds = 0  # attempts that the single numbers need
        self._flags: dict[str, int] = {}  # single ones: all of these have all values together in some call

    def first_calls(self) -> Iterator[tuple[Sizes, int, dict[str, AnyArray]]]:
        """Yield sizes, kinds of integers and arrays, until a model accepts them."""
        has_integers = any(entry.is_integer for entry in self.wanted.values())
        kinds = (VARIED, WITHOUT_ZERO, NARROW) if has_integers else (VARIED,)
        choices = OPEN_SIZES if self.is_open else OPEN_SIZES[:1]
        for sizes in choices:
            for kind in kinds:
                yield sizes, kind, self.arrays(sizes, kind, optional=False)
        for attempt in range(1, self._rounds):
            self.attempt = attempt
            for sizes in choices:
                yield sizes, kinds[0], self.arrays(sizes, kinds[0], optional=False)

    def arrays(self, sizes: Sizes, kind: int, *, optional: bool = True) -> dict[str, AnyArray]:
        """Return the arrays of the next call by the names of the first model, with or without optional inputs."""
        rng = np.random.default_rng([self._seed, self._calls] if self._calls else self._seed)
        known = dict(self._dims)
        arrays = {
            name: self._array(entry, _shape(entry, sizes, known), kind, rng) for name, entry in self.wanted.items()
        }
        lengths = [entry for entry in self.wanted.values() if entry.is_length]
        steps = self._steps(arrays) if lengths else None
        for entry in lengths:
            T = steps if steps is not None else _steps_beside(entry, self.wanted.values(), arrays)
            arrays[entry.name] = self._lengths(entry, arrays[entry.name], T, kind, rng)
        return {name: array for name, array in arrays.items() if optional or not self.wanted[name].info.optional}

    def accepted(self, arrays: Mapping[str, AnyArray]) -> None:
        """Record the integers of a call that was compared."""
        self._calls += 1
        lengths = [array for name, array in arrays.items() if self.wanted[name].is_length]
        is_whole = all(array.size and (array == array.flat[0]).all() for array in lengths)
        for name, array in arrays.items():
            self.wanted[name].accept(array, is_whole=is_whole)

    def progress(self) -> tuple[int, ...]:
        """Return a value that changes when a call has integers that no call had before."""
        return sum(len(entry.seen) for entry in self.wanted.values()), min(self._calls, self._combinations)

    def left(self) -> list[str]:
        """Return, for each input whose numbers did not vary enough yet, what is left, in words."""
        fixed = self.fixed()
        words = [entry.left(is_fixed=name in fixed) for name, entry in self.wanted.items()]
        if self._calls < self._combinations:
            words.append(f"flags {', '.join(map(shown, self._flags))} did not have all values together")
        return list(filter(None, words))

    @property
    def _combinations(self) -> int:
        return 1 << min(len(self._flags), _MOST_FLAGS)

    def has_untried(self) -> bool:
        """Return whether some single numbers were not in any call yet, accepted or refused."""
        return self.attempt + 1 < self._rounds

    def fixed(self) -> list[str]:
        """Return the inputs of one number of which the model accepts one only, if all were tried."""
        if self.attempt < self._rounds:
            return []
        return [name for name, entry in self.wanted.items() if entry.is_single and len(entry.seen) == 1]

    def rows_left(self) -> int:
        """Return how many rows no integer of a call has selected yet, of the input that has most."""
        return max([0, *(entry.rows_left for entry in self.wanted.values())])

    def _covers(self) -> bool:
        """Return whether a call selects rows that padding must not hide."""
        return self._calls > 0 and self.rows_left() > 0

    def _array(self, entry: Wanted, sizes: Sequence[int], kind: int, rng: np.random.Generator) -> AnyArray:
        info = entry.info
        name = f"{self._what}: input {shown(info.name)}"
        if info.dtype in FLOAT_TYPES:
            scale = _SCALES[self._calls % len(_SCALES)]
            return random_array(name, sizes, [str(info.dtype)], rng, scale, hint=self._hint)
        if not entry.is_integer:
            raise ArgumentError(f"{name} has type {info.dtype}; pass it as {self._hint}")
        shape = made_shape(name, sizes, self._hint)
        if entry.is_length:
            return np.ones(shape, info.dtype)
        return self._integers(entry, math.prod(shape), kind, rng).reshape(shape).astype(info.dtype)

    def _integers(self, entry: Wanted, number: int, kind: int, rng: np.random.Generator) -> AnyArray:
        """Return numbers of an input: those that no call had yet come first."""
        name, role, entry.needed = entry.name, entry.role, set()
        if entry.is_flag:
            if number == 1:
                return np.array([not self._calls >> self._flags.setdefault(name, len(self._flags)) & 1])
            flags: AnyArray = (rng.random(number) < 0.7) | (np.arange(number) == 0) | self._covers()
            return flags
        if entry.selects:
            deck = np.arange(min(role.rows or 0, 2) if kind == NARROW else role.rows or 0)
        else:
            limits = np.iinfo(str(entry.info.dtype))
            numbers = set(_SINGLE[kind] if number == 1 else _SMALL[kind][:number])
            if kind == VARIED and number > _FEW and limits.max < 2**16:  # samples and codes, which have all numbers
                numbers = set(np.linspace(limits.min, limits.max, 256).astype(int).tolist())
            if kind == VARIED:
                entry.needed = {value for value in role.values if limits.min <= value <= limits.max}
            if number == 1:
                return np.array([self._single(name, sorted(numbers | entry.needed), kind)])
            deck = np.array(sorted(numbers | entry.needed))
        is_new = ~np.isin(deck, list(entry.seen))
        fresh, rest = rng.permutation(deck[is_new]), rng.permutation(deck[~is_new])
        return rng.permutation(np.resize(np.concatenate([fresh, rest]), number))

    def _single(self, name: str, numbers: Sequence[int], kind: int) -> int:
        """Return the next of the numbers of an input: 1 and 0 come first, together for all inputs."""
        self._rounds = max(self._rounds, len(numbers))
        self.wanted[name].is_single = True
        if name in self.fixed():
            return min(self.wanted[name].seen)
        first = [number for number in ((0, 1) if kind == NARROW else (1, 0)) if number in numbers]
        others = [number for number in numbers if number not in first]
        rng = np.random.default_rng([self._seed, *name.encode()])
        return int([*first, *rng.permutation(others)][self.attempt % len(numbers)])

    def _steps(self, arrays: dict[str, AnyArray]) -> int | None:
        """Return the time steps of the inputs of layers, or of the layers inside; None if they are not known."""
        known = {entry.name: entry.axes[0] for entry in self.wanted.values() if entry.axes is not None}
        steps = [arrays[name].shape[letters.index("T")] for name, letters in known.items() if "T" in letters]
        return min(steps or self._inner_steps(arrays), default=None)

    def _lengths(self, entry: Wanted, like: AnyArray, steps: int, kind: int, rng: np.random.Generator) -> AnyArray:
        if kind == NARROW or self._covers():
            return np.full_like(like, steps)
        least = int(kind == WITHOUT_ZERO)
        entry.needed = {least, min(1, steps), steps}
        first = sorted(entry.needed - entry.seen, reverse=True)
        return spread_lengths(rng, steps, like.size, least, first).astype(like.dtype).reshape(like.shape)


def _steps_beside(entry: Wanted, wanted: Iterable[Wanted], arrays: Mapping[str, AnyArray]) -> int:
    """Return the size of the axis that other inputs have next to the rows of an input of lengths; else the batch."""
    own = arrays[entry.name]
    rows = own.shape[0] if own.ndim else 1
    shapes = [arrays[other.name].shape[:2] for other in wanted if not other.is_length]
    steps = [shape[1 - shape.index(rows)] for shape in shapes if len(shape) == 2 and rows in shape]
    return max(steps, default=3)


def check_dims(dims: Mapping[str, int], symbols: Sequence[str], what: str) -> None:
    """Raise an ArgumentError for sizes of other dimensions than the symbolic ones of the inputs."""
    for name in dims:
        if name not in symbols:
            raise ArgumentError(
                f"{what}: dims has {shown(name)}; expected symbolic dimensions of the inputs: "
                f"{', '.join(symbols) or 'there are none'}",
                argument="dims",
            )


def symbols_of(infos: Iterable[TensorInfo]) -> list[str]:
    """Return the symbolic dimensions of inputs, each once."""
    return list(
        dict.fromkeys(dimension for info in infos for dimension in info.shape or () if isinstance(dimension, str))
    )


def _dimensions(entry: Wanted) -> Sequence[Dimension]:
    """Return the dimensions that either model declares, in the order of the first."""
    info, axes, theirs = entry.info, entry.axes, entry.other.shape
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


def _shape(entry: Wanted, sizes: Sizes, known: dict[str, int]) -> list[int]:
    """Return the shape of an input; open dimensions get `sizes`, the same for the same symbol."""
    shape, place = [], 0
    for dimension in _dimensions(entry):
        size = sizes[min(place, 1)]
        if isinstance(dimension, int):
            size = dimension
        elif isinstance(dimension, str):
            size = known.setdefault(dimension, size)
        elif isinstance(dimension, Interval):
            size = max(dimension.low, size if dimension.high is None else min(size, dimension.high))
        place += not isinstance(dimension, int)
        shape.append(size)
    return shape
