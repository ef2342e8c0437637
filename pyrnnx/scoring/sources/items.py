"""Items, the sequences of a source, as a listing without their values."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.errors import PyrnnxError, printable, reason_of

MOST = 2**62  # largest number of elements of an item


@dataclass(frozen=True)
class Items:
    """Listing of a source's items in order, without their values."""

    names: Sequence[str]  # unique names
    lengths: AnyArray  # sizes of the first axis; 0 for an item that cannot be read
    places: Sequence[Any]  # location of each item, small and picklable, for `Source.read`
    # by index: why an item cannot be read, as far as the listing shows
    bad: Mapping[int, str] = field(default_factory=dict)
    counts: AnyArray | None = None  # number of elements of each item, as far as the listing shows. Default: `lengths`
    stamps: AnyArray | None = None  # `Source.stamps` at the time of the listing

    def __len__(self) -> int:
        return len(self.names)


@dataclass(frozen=True)
class Bad:
    """Placeholder for an item's values that gives the reason why there are none."""

    reason: str


Shape = tuple[int, ...]
Result = TypeVar("Result")


def attempted(read: Callable[..., Result], *arguments: Any) -> Result | Bad:
    """Return the result of `read`, or a `Bad` if it raises: readers of broken files raise errors of any type."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of readers, about headers that are old or damaged
            return read(*arguments)
    except PyrnnxError as error:
        return Bad(printable(str(error)))
    except Exception as error:
        early = isinstance(error, EOFError) and not str(error)
        return Bad(f"it cannot be read ({'it ends too early' if early else reason_of(error)})")


def listed(names: Sequence[str], places: Sequence[Any], shapes: Sequence[Shape | Bad]) -> Items:
    """Return items of these shapes; a `Bad` in place of a shape makes a bad item."""
    checked = [_checked(shape) for shape in shapes]
    bad = {index: shape.reason for index, shape in enumerate(checked) if isinstance(shape, Bad)}
    sound = [(0,) if isinstance(shape, Bad) else shape for shape in checked]
    lengths, counts = [shape[0] for shape in sound], [math.prod(shape) for shape in sound]
    return Items(names, np.array(lengths, np.int64), places, bad, np.array(counts, np.int64))


def _checked(shape: Shape | Bad) -> Shape | Bad:
    if isinstance(shape, Bad):
        return shape
    if not shape:
        return Bad("an array without axes; expected [T, ...]")
    if min(shape) < 0 or max(math.prod(shape), *shape) > MOST:
        return Bad(f"it has shape {shape}; expected at most {MOST} numbers")
    return shape


def consecutive(places: Sequence[tuple[Any, ...]]) -> Iterator[tuple[Any, list[int]]]:
    """Yield each run of places with the same first entry (a file, a row group): the entry and the indices."""
    run: list[int] = []
    for index, place in enumerate(places):
        if run and place[0] != places[run[0]][0]:
            yield places[run[0]][0], run
            run = []
        run.append(index)
    if run:
        yield places[run[0]][0], run
