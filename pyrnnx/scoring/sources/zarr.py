"""Source of zarr folders: an array, a group of arrays, or a ragged array as values and offsets."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx._internal.extras import import_package
from pyrnnx.errors import ArgumentError, PyrnnxError, reason_of, shown
from pyrnnx.scoring.sources.base import Bad, Items, Row, Source, attempted, listed

DESCRIPTIONS = ("zarr.json", ".zarray", ".zgroup")  # files with these names describe an array or a group
VALUES, OFFSETS, NAMES = "values", "offsets", "names"
_ROWS = ""  # as the first entry of a place: a row of the array itself


def import_zarr() -> Any:
    return import_package("zarr", "score: zarr", "score")


class ZarrSource(Source):
    """Source of a zarr folder: an array [N, T, ...], a group of arrays, or values and offsets, perhaps with names.

    The place of an item is its array, and its first and last step (or row) if it is a part of the array.
    """

    kind = "zarr"

    def items(self) -> Items:
        try:
            return listed(self._items())
        except PyrnnxError:
            raise
        except Exception as error:  # descriptions and codecs raise errors of many types
            raise ArgumentError(
                f"score: source {shown(self.path)} cannot be read as zarr ({reason_of(error)})"
            ) from error

    def _items(self) -> Sequence[Row]:
        descriptions = self.files()
        for path in descriptions:
            self.storage.open(path).close()  # rejects a FIFO, on which zarr would block
        root = import_zarr().open(self.path, mode="r")
        if hasattr(root, "shape"):
            if len(root.shape) < 2:
                raise ArgumentError(
                    f"score: zarr array {shown(self.path)} has shape {root.shape}; expected [N, T, ...]"
                )
            return [(str(i), root.shape[1:], (_ROWS, i, i + 1)) for i in range(root.shape[0])]
        # zarr's own list of members raises for an array with a broken description.
        keys = sorted({os.path.relpath(os.path.dirname(path), self.path) for path in descriptions} - {"."})
        members = {key: attempted(root.__getitem__, key) for key in keys}
        arrays = {key: array for key, array in members.items() if isinstance(array, Bad) or hasattr(array, "shape")}
        if VALUES in arrays and OFFSETS in arrays:
            return self._ragged(root, NAMES in arrays)
        if not arrays:
            raise ArgumentError(f"score: zarr group {shown(self.path)} has no arrays")
        return [(key, array if isinstance(array, Bad) else array.shape, (key,)) for key, array in arrays.items()]

    def _ragged(self, root: Any, has_names: bool) -> Sequence[Row]:
        offsets = np.asarray(root[OFFSETS][...])
        values = root[VALUES].shape
        if not values:
            raise ArgumentError(f'score: zarr group {shown(self.path)}: "values" has no axes; expected [T, ...]')
        sound = offsets.ndim == 1 and len(offsets) and offsets.dtype.kind in "iu"
        if not sound or offsets[0] < 0 or offsets[-1] > values[0] or (np.diff(offsets.astype(np.int64)) < 0).any():
            raise ArgumentError(
                f'score: zarr group {shown(self.path)}: "offsets" are not ascending integers from 0 to {values[0]}, '
                'the length of "values"'
            )
        limits = offsets.tolist()
        count = len(limits) - 1
        names = list(map(str, np.ravel(root[NAMES][...]) if has_names else range(count)))
        if len(names) != count:
            raise ArgumentError(
                f'score: zarr group {shown(self.path)} has {len(names)} "names" and {count + 1} "offsets"; expected '
                "one more offset than names"
            )
        return [
            (name, (end - start, *values[1:]), (VALUES, start, end))
            for name, start, end in zip(names, limits[:-1], limits[1:], strict=True)
        ]

    def read(self, places: Sequence[Any]) -> Iterator[AnyArray | Bad]:
        root = import_zarr().open(self.path, mode="r")
        for run in _adjacent(places):
            # One read per run: a compressed chunk, which many items may share, is decoded only once.
            pieces = attempted(_pieces, root, run)
            if not isinstance(pieces, Bad):
                yield from pieces
            elif len(run) == 1:
                yield pieces
            else:
                yield from (item for place in run for item in self.read([place]))

    def files(self) -> list[str]:
        """Return the descriptions of the folder and of those in it; the chunks of arrays, perhaps millions, are not."""
        _, folders, names = next(self.storage.walk(self.path))
        paths = [os.path.join(self.path, name) for name in names if name in DESCRIPTIONS]
        for folder in (os.path.join(self.path, name) for name in folders):
            _, _, names = next(self.storage.walk(folder))
            paths += [os.path.join(folder, name) for name in names if name in DESCRIPTIONS]
        return sorted(paths)


def _adjacent(places: Sequence[Any]) -> Iterator[list[Any]]:
    """Yield runs of places in which each ends at the start of the next."""
    run: list[Any] = []
    for place in places:
        if run and not (len(place) == len(run[-1]) > 1 and place[1] == run[-1][2]):
            yield run
            run = []
        run.append(place)
    if run:
        yield run


def _pieces(root: Any, run: Sequence[Any]) -> list[AnyArray]:
    if len(run[0]) == 1:
        return [np.asarray(root[run[0][0]][...])]
    array = root[VALUES] if run[0][0] == VALUES else root
    start = run[0][1]
    values = np.asarray(array[start : run[-1][2]])
    pieces = [values[first - start : last - start] for _, first, last in run]
    return pieces if run[0][0] == VALUES else [piece[0] for piece in pieces]
