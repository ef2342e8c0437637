"""Source of zarr folders: an array, a group of arrays, or a ragged array as values and offsets."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx._internal.extras import import_package
from pyrnnx.errors import ArgumentError, PyrnnxError, reason_of, shown
from pyrnnx.scoring.sources.base import Bad, Items, Source, attempted, listed
from pyrnnx.scoring.sources.storage import Files

DESCRIPTIONS = ("zarr.json", ".zarray", ".zgroup")  # files with these names describe an array or a group
VALUES, OFFSETS, NAMES = "values", "offsets", "names"
_ROWS = ""  # as the first entry of a place: a row of the array itself


def import_zarr() -> Any:
    return import_package("zarr", "score: zarr", "zarr")


class ZarrSource(Source):
    """Source of a zarr folder in one of three forms.

    - An array [N, T, ...]: N items of one length, named by their numbers.
    - A group with the arrays "values" [sum of lengths, ...] and "offsets" [N + 1]: item i is
      ``values[offsets[i]:offsets[i + 1]]``, named by the array "names" [N] of strings, else by its number.
    - A group of arrays [T, ...]: each is an item, named by the array's name.
    """

    kind = "zarr"

    def items(self) -> Items:
        try:
            for path in self.files():
                self.storage.open(path).close()  # rejects a FIFO, on which zarr would block
            root = self._root()
            return self._rows(root) if hasattr(root, "shape") else self._arrays(root)
        except PyrnnxError:
            raise
        except Exception as error:  # descriptions and codecs raise errors of many types
            raise self._unreadable(error) from error

    def _unreadable(self, error: Exception) -> ArgumentError:
        return ArgumentError(f"score: source {shown(self.path)} cannot be read as zarr ({reason_of(error)})")

    def _rows(self, array: Any) -> Items:
        if len(array.shape) < 2:
            raise ArgumentError(f"score: zarr array {shown(self.path)} has shape {array.shape}; expected [N, T, ...]")
        count = array.shape[0]
        names = list(map(str, range(count)))
        return listed(names, [(_ROWS, i, i + 1) for i in range(count)], [array.shape[1:]] * count)

    def _arrays(self, root: Any) -> Items:
        # zarr's own list of members raises for an array with a broken description.
        storage = self.storage
        folders = next(iter(storage.walk(self.path)), ("", [], []))[1]
        for name in folders:
            if os.path.islink(os.path.join(self.path, name)):
                raise ArgumentError(
                    f"score: {shown(name)} of zarr group {shown(self.path)} is a link; expected an array, because "
                    "links are not followed"
                )
        keys = [
            name
            for name in sorted(folders)
            if any(storage.kind(os.path.join(self.path, f"{name}/{file}")) for file in DESCRIPTIONS[:2])
        ]
        members = {key: attempted(root.__getitem__, key) for key in keys}
        arrays = {key: item for key, item in members.items() if isinstance(item, Bad) or hasattr(item, "shape")}
        if VALUES in arrays and OFFSETS in arrays:
            return self._ragged(root, NAMES in arrays)
        if not arrays:
            raise ArgumentError(f"score: zarr group {shown(self.path)} has no arrays")
        shapes = [array if isinstance(array, Bad) else array.shape for array in arrays.values()]
        return listed(list(arrays), [(key,) for key in arrays], shapes)

    def _ragged(self, root: Any, has_names: bool) -> Items:
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
        offsets = offsets.astype(np.int64)
        count = len(offsets) - 1
        names = list(map(str, np.ravel(root[NAMES][...]) if has_names else range(count)))
        if len(names) != count:
            raise ArgumentError(
                f'score: zarr group {shown(self.path)} has {len(names)} "names" and {count + 1} "offsets"; expected '
                "one more offset than names"
            )
        places = [(VALUES, *pair) for pair in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)]
        return listed(names, places, [(length, *values[1:]) for length in np.diff(offsets).tolist()])

    def read(self, places: Sequence[Any]) -> Iterator[AnyArray | Bad]:
        root = self._root()
        for run in _adjacent(places):
            # One read per run: a compressed chunk, which many items may share, is decoded only once.
            try:
                pieces = _pieces(root, run)
            except Exception as error:  # noqa: PERF203  # codecs raise errors of many types
                if len(run) == 1:
                    yield Bad(reason_of(error))
                else:
                    yield from (item for place in run for item in self.read([place]))
            else:
                yield from pieces

    def file_of(self, place: Any) -> str | None:
        return None  # the chunks of an array are files

    def _root(self) -> Any:
        zarr = import_zarr()
        try:
            return zarr.open(self.path, mode="r")
        except Exception as error:  # zarr raises errors of many types for other folders
            raise self._unreadable(error) from error

    def files(self) -> list[str]:
        """Return the sorted paths of all descriptions."""
        paths: list[str] = []
        storage = self.storage
        for parent, folders, files in storage.walk(self.path):
            folders.sort()
            descriptions = {name: os.path.join(parent, name) for name in files if name in DESCRIPTIONS}
            paths += descriptions.values()
            if ".zarray" in descriptions or (
                "zarr.json" in descriptions and _is_array(storage, descriptions["zarr.json"])
            ):
                folders.clear()  # skip its chunks: perhaps millions
        return sorted(paths)


def _is_array(storage: Files, path: str) -> bool:
    """Return whether a description in format 3 is that of an array."""
    try:
        with storage.open(path, 0) as file:
            description = json.loads(file.read().decode("utf-8"))
    except Exception:  # object stores raise errors of many types
        return False
    return isinstance(description, dict) and description.get("node_type") == "array"


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
