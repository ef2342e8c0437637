"""Random inputs of models that show differences: several calls, of several sizes, with integers that vary."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple

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
VARIED, WITHOUT_ZERO, NARROW, ONES = range(4)
_FEW = 8
_SINGLE = ((*range(_FEW), 12, 24), (1, 2), (0, 1))  # of an input that is one number, such as a mode or a trip count
_SMALL = (range(_FEW), range(1, 4), range(1, 3))  # of an unknown role
_MOST_FLAGS = 4  # that have all values together
_SCALES = (1.0, 2.0, 8.0, 0.1)  # of the floats of each call


class Wanted(NamedTuple):
    """An input as two models declare it (or one, twice), its axes in both, where these are known, and its role."""

    info: TensorInfo
    other: TensorInfo
    axes: tuple[str, str] | None = None
    role: Role = Role()

    @property
    def is_integer(self) -> bool:
        return self.info.dtype in (*INTEGERS, "bool")

    @property
    def is_flag(self) -> bool:
        return self.info.dtype == "bool" or self.role.is_mask

    @property
    def selects(self) -> bool:
        """True if its numbers select from a known number of rows."""
        return self.is_integer and self.role.rows is not None and not self.is_flag

    @property
    def is_length(self) -> bool:
        return self.info.dtype in INTEGERS and (self.role.is_length or (self.axes is not None and self.axes[0] == "N"))


@dataclass
class Maker:
    """Makes the inputs of one call after another.

    Attributes
    ----------
    wanted : sequence of Wanted
    seed : int
    dims : mapping
        Sizes of symbolic dimensions.
    what, hint : str
        How errors begin, and which other way to pass an array they suggest.
    inner_steps : callable
        Returns the time steps of the layers in a call, if they take no input of the model as X.
    is_open : bool
        Whether an input has a dimension whose size is free; known after the first call.
    first_kind : int
        Kind of the integers that are tried first.
    attempt : int
        Place of the call among all, also those that are refused: each has another of the single numbers.
    """

    wanted: Sequence[Wanted]
    seed: int
    dims: Mapping[str, int]
    what: str
    hint: str
    inner_steps: Callable[[dict[str, AnyArray]], Sequence[int]] = lambda arrays: ()
    is_open: bool = field(default=False, init=False)
    first_kind: int = field(default=VARIED, init=False)
    attempt: int = field(default=0, init=False)
    _seen: dict[str, set[int]] = field(default_factory=dict, init=False)
    _rows: dict[str, AnyArray] = field(default_factory=dict, init=False)
    _decks: dict[str, list[int]] = field(default_factory=dict, init=False)
    _flags: dict[str, int] = field(default_factory=dict, init=False)
    _calls: int = field(default=0, init=False)
    _rounds: int = field(default=0, init=False)
    _singles: set[str] = field(default_factory=set, init=False)
    _passed: set[str] = field(default_factory=set, init=False)

    def __post_init__(self) -> None:
        check_dims(self.dims, symbols_of(info for entry in self.wanted for info in entry[:2]), self.what)

    def first_calls(self) -> Iterator[tuple[Sizes, int, dict[str, AnyArray]]]:
        """Yield sizes, kinds of integers and arrays, until a model accepts them.

        Raises
        ------
        ArgumentError
            An input of a type of which there are no random numbers, or that is too large.
        """
        has_integers = any(entry.is_integer for entry in self.wanted)
        kinds = [(VARIED, WITHOUT_ZERO, NARROW), (ONES,)] if has_integers else [(VARIED,)]
        for group in kinds:
            for sizes in OPEN_SIZES:
                for kind in group[min(self.first_kind, len(group) - 1) :]:
                    yield sizes, kind, self.arrays(sizes, kind, optional=False)
                if not self.is_open:
                    break
            for attempt in range(1, self._rounds):
                self.attempt = attempt
                for sizes in OPEN_SIZES if self.is_open else OPEN_SIZES[:1]:
                    yield sizes, group[0], self.arrays(sizes, group[0], optional=False)

    def arrays(self, sizes: Sizes, kind: int, *, optional: bool = True) -> dict[str, AnyArray]:
        """Return the arrays of the next call by the names of the first model, with or without optional inputs."""
        rng = np.random.default_rng([self.seed, self._calls] if self._calls else self.seed)
        known = _Open(sizes, self.dims)
        arrays = {}
        for entry in self.wanted:
            shape = known.shape(_dimensions(entry))
            arrays[entry.info.name] = self._array(entry, shape, kind, rng)
        self.is_open = known.asked
        lengths = [entry for entry in self.wanted if entry.is_length]
        if lengths:
            steps = self._steps(arrays)
            for entry in lengths:
                T = steps if steps is not None else _steps_beside(entry, self.wanted, arrays)
                array = arrays[entry.info.name]
                arrays[entry.info.name] = self._lengths(entry.info.name, array, T, kind, rng)
        left_out = [] if optional else [entry.info.name for entry in self.wanted if entry.info.optional]
        return {name: array for name, array in arrays.items() if name not in left_out}

    def accepted(self, arrays: Mapping[str, AnyArray]) -> None:
        """Record the integers of a call that was compared."""
        self._calls += 1
        self._passed |= arrays.keys()
        lengths = [arrays[entry.info.name] for entry in self.wanted if entry.is_length and entry.info.name in arrays]
        is_whole = all(array.size and (array == array.flat[0]).all() for array in lengths)
        for entry in self.wanted:
            if not entry.is_integer or entry.info.name not in arrays:
                continue
            numbers = arrays[entry.info.name].astype(np.int64).ravel()
            if not entry.selects or entry.is_length:
                self._seen.setdefault(entry.info.name, set()).update(numbers.tolist())
            if entry.selects and (is_whole or entry.is_length):
                rows = self._rows_of(entry)
                rows[numbers[numbers < rows.size]] = True

    def progress(self) -> tuple[int, ...]:
        """Return a value that changes when a call has integers that no call had before."""
        rows = sum(int(rows.sum()) for rows in self._rows.values())
        return rows, sum(map(len, self._seen.values())), min(self._calls, 2 ** min(len(self._flags), _MOST_FLAGS))

    def left(self) -> list[str]:
        """Return, for each input whose numbers did not vary enough yet, what is left, in words."""
        words = []
        for entry in self.wanted:
            seen, name = self._seen.get(entry.info.name, set()), shown(entry.info.name)
            if entry.info.name not in self._passed:
                words.append(f"input {name} had no other value than its default")
                continue
            if not entry.is_integer:
                if entry.role.rows is not None:
                    words.append(f"input {name} selects from {entry.role.rows} rows by numbers that are no integers")
                continue
            if entry.selects:
                rows = self._rows_of(entry)
                if not rows.all():
                    words.append(f"input {name} selects from {rows.size} rows, of which {rows.sum()} were compared")
            if (entry.selects and not entry.is_length) or entry.info.name in self.fixed():
                continue
            if len(seen) < 2 or (entry.is_length and not self._decks.get(entry.info.name)):
                words.append(f"input {name} could not be varied")
            elif missing_numbers := set(self._decks.get(entry.info.name, ())) - seen:
                words.append(f"input {name} was never {' or '.join(map(str, sorted(missing_numbers)))}")
        if self._calls < 2 ** min(len(self._flags), _MOST_FLAGS):
            words.append(f"flags {', '.join(map(shown, self._flags))} did not have all values together")
        return words

    def _array(self, entry: Wanted, sizes: Sequence[int], kind: int, rng: np.random.Generator) -> AnyArray:
        info = entry.info
        name = f"{self.what}: input {shown(info.name)}"
        if info.dtype in FLOAT_TYPES:
            scale = _SCALES[self._calls % len(_SCALES)]
            return random_array(name, sizes, [str(info.dtype)], rng, scale, hint=self.hint)
        if not entry.is_integer:
            raise ArgumentError(f"{name} has type {info.dtype}; pass it as {self.hint}")
        shape = made_shape(name, sizes, self.hint)
        if kind == ONES or entry.is_length:
            return np.ones(shape, info.dtype)
        array = np.array(self._integers(entry, math.prod(shape), kind, rng), np.int64).reshape(shape)
        return array.astype(info.dtype)

    def _integers(self, entry: Wanted, number: int, kind: int, rng: np.random.Generator) -> AnyArray:
        """Return numbers of an input: those that no call had yet come first."""
        name, role = entry.info.name, entry.role
        if entry.is_flag:
            flags = (rng.random(number) < 0.7) | (np.arange(number) == 0) | self._covers()
            return flags if number > 1 else np.full(number, self._flag(name))
        self._decks[name] = []
        if entry.selects:
            rows = self._rows_of(entry)
            deck = np.arange(min(rows.size, 2) if kind == NARROW else rows.size)
            is_new = ~rows[deck]
        else:
            limits = np.iinfo(str(entry.info.dtype))
            numbers = set(_SINGLE[kind] if number == 1 else _SMALL[kind][:number])
            if kind == VARIED and number > _FEW and limits.max < 2**16:  # samples and codes, which have all numbers
                numbers = set(np.linspace(limits.min, limits.max, 256).astype(int).tolist())
            if kind == VARIED:
                self._decks[name] = [value for value in role.values if limits.min <= value <= limits.max]
                numbers |= set(self._decks[name])
            if number == 1:
                return np.array([self._single(name, sorted(numbers), kind)])
            deck = np.array(sorted(numbers))
            is_new = ~np.isin(deck, list(self._seen.get(name, ())))
        fresh, rest = rng.permutation(deck[is_new]), rng.permutation(deck[~is_new])
        return rng.permutation(np.resize(np.concatenate([fresh, rest]), number))

    def _rows_of(self, entry: Wanted) -> AnyArray:
        """Return a mask of the rows that an input selected in a call."""
        return self._rows.setdefault(entry.info.name, np.zeros(entry.role.rows or 0, bool))

    def _single(self, name: str, numbers: Sequence[int], kind: int) -> int:
        """Return the next of the numbers of an input: 1 and 0 come first, together for all inputs."""
        self._rounds = max(self._rounds, len(numbers))
        self._singles.add(name)
        if name in self.fixed():
            return next(iter(self._seen[name]))
        first = [number for number in ((0, 1) if kind == NARROW else (1, 0)) if number in numbers]
        others = [number for number in numbers if number not in first]
        rng = np.random.default_rng([self.seed, *name.encode()])
        return int([*first, *rng.permutation(others)][self.attempt % len(numbers)])

    def _flag(self, name: str) -> bool:
        """Return the value of a flag that is a single one: all of these have all values together in some call."""
        return not self._calls >> self._flags.setdefault(name, len(self._flags)) & 1

    def _steps(self, arrays: dict[str, AnyArray]) -> int | None:
        """Return the time steps of the inputs of layers, or of the layers inside; None if they are not known."""
        known = {entry.info.name: entry.axes[0] for entry in self.wanted if entry.axes is not None}
        steps = [arrays[name].shape[letters.index("T")] for name, letters in known.items() if "T" in letters]
        return min(steps or self.inner_steps(arrays), default=None)

    def _lengths(self, name: str, like: AnyArray, steps: int, kind: int, rng: np.random.Generator) -> AnyArray:
        if kind == ONES:
            return like
        if kind == NARROW or self._covers():
            return np.full_like(like, steps)
        least = int(kind == WITHOUT_ZERO)
        wanted = {least, min(1, steps), steps}
        self._decks[name] = [*wanted]
        first = sorted(wanted - self._seen.get(name, set()), reverse=True)
        return spread_lengths(rng, steps, like.size, least, first).astype(like.dtype).reshape(like.shape)

    @property
    def has_optional(self) -> bool:
        return any(entry.info.optional for entry in self.wanted)

    def has_untried(self) -> bool:
        """Return whether some single numbers were not in any call yet, accepted or refused."""
        return self.attempt + 1 < self._rounds

    def fixed(self) -> list[str]:
        """Return the inputs of one number of which the model accepts one only, if all were tried."""
        if self.attempt < self._rounds:
            return []
        return [name for name in sorted(self._singles) if len(self._seen.get(name, ())) == 1]

    def rows_left(self) -> int:
        """Return how many rows no integer of a call has selected yet, of the input that has most."""
        entries = [entry for entry in self.wanted if entry.selects and not entry.is_length]
        return max((int((~self._rows_of(entry)).sum()) for entry in entries), default=0)

    def _covers(self) -> bool:
        """Return whether a call selects rows that padding must not hide."""
        return self._calls > 0 and self.rows_left() > 0


def _steps_beside(entry: Wanted, wanted: Sequence[Wanted], arrays: Mapping[str, AnyArray]) -> int:
    """Return the size of the axis that other inputs have next to the rows of an input of lengths; else the batch."""
    rows, own = entry.info.shape or (), arrays[entry.info.name]
    count = own.shape[0] if own.ndim else 1
    steps = []
    for other in wanted:
        array, symbols = arrays[other.info.name], (other.info.shape or ())[:2]
        if array.ndim < 2 or other.is_length:
            continue
        named = [
            place for place, symbol in enumerate(symbols) if rows and isinstance(symbol, str) and symbol == rows[0]
        ]
        same = named or [place for place in (0, 1) if array.shape[place] == count]
        if same:
            steps.append(array.shape[1 - same[0]])
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


class _Open:
    """The sizes of open dimensions, the same for the same symbol."""

    def __init__(self, sizes: Sizes, dims: Mapping[str, int]) -> None:
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
