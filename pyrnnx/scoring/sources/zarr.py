"""Source of zarr folders: an array, a group of arrays, or a ragged array as values and offsets."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.errors import ArgumentError, PyrnnxError, reason_of, shown
from pyrnnx.scoring.packages import import_zarr
from pyrnnx.scoring.sources.base import Source
from pyrnnx.scoring.sources.items import Bad, Items, attempted, listed
from pyrnnx.scoring.sources.storage import Files

VALUES, OFFSETS, NAMES = "values", "offsets", "names"
_ROWS = ""  # as the first entry of a place: a row of the array itself


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
            return self._items(self._root())
        except PyrnnxError:
            raise
        except Exception as error:  # descriptions and codecs raise errors of many types
            raise self._unreadable(error) from error

    def _unreadable(self, error: Exception) -> ArgumentError:
        return ArgumentError(f"score: source {shown(self.path)} cannot be read as zarr ({reason_of(error)})")

    def _items(self, root: Any) -> Items:
        if hasattr(root, "shape"):
            if len(root.shape) < 2:
                raise ArgumentError(
                    f"score: zarr array {shown(self.path)} has shape {root.shape}; expected [N, T, ...]"
                )
            count = root.shape[0]
            names = list(map(str, range(count)))
            return listed(names, [(_ROWS, i, i + 1) for i in range(count)], [root.shape[1:]] * count)
        members = {key: attempted(root.__getitem__, key) for key in self._members()}
        keys = [key for key, member in members.items() if isinstance(member, Bad) or hasattr(member, "shape")]
        if VALUES in keys and OFFSETS in keys:
            return self._ragged(root, keys)
        if not keys:
            raise ArgumentError(f"score: zarr group {shown(self.path)} has no arrays")
        arrays = [members[key] for key in keys]
        shapes = [array if isinstance(array, Bad) else array.shape for array in arrays]
        return listed(keys, [(key,) for key in keys], shapes)

    def _members(self) -> list[str]:
        """Return the names in the group, also those with broken descriptions, for which zarr's own list raises."""
        storage = self.storage
        for name in (VALUES, OFFSETS, NAMES):
            if os.path.islink(os.path.join(self.path, name)):
                raise ArgumentError(
                    f"score: {shown(name)} of zarr group {shown(self.path)} is a link; expected an array, because "
                    "links are not followed"
                )
        folders = next(iter(storage.walk(self.path)), ("", [], []))[1]
        return [
            name
            for name in sorted(folders)
            if any(storage.has(storage.join(self.path, f"{name}/{file}")) for file in (".zarray", "zarr.json"))
        ]

    def _ragged(self, root: Any, keys: list[str]) -> Items:
        offsets = np.asarray(root[OFFSETS][...])
        values = root[VALUES].shape
        if not values:
            raise ArgumentError(f'score: zarr group {shown(self.path)}: "values" has no axes; expected [T, ...]')
        total = values[0]
        sound = offsets.ndim == 1 and len(offsets) and offsets.dtype.kind in "iu"
        if not sound or offsets[0] < 0 or offsets[-1] > total or (np.diff(offsets.astype(np.int64)) < 0).any():
            raise ArgumentError(
                f'score: zarr group {shown(self.path)}: "offsets" are not ascending integers from 0 to {total}, the '
                'length of "values"'
            )
        offsets = offsets.astype(np.int64)
        count = len(offsets) - 1
        names = list(map(str, np.ravel(root[NAMES][...]))) if NAMES in keys else list(map(str, range(count)))
        if len(names) != count:
            raise ArgumentError(
                f'score: zarr group {shown(self.path)} has {len(names)} "names" and {count + 1} "offsets"; expected '
                "one more offset than names"
            )
        pairs = zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)
        places = [(VALUES, *pair) for pair in pairs]
        return listed(names, places, [(length, *values[1:]) for length in np.diff(offsets).tolist()])

    def read(self, places: Sequence[Any]) -> Iterator[AnyArray | Bad]:
        root = self._root()
        for run in _adjacent(places):
            # One read per run: a compressed chunk, which many items may share, is decoded only once.
            try:
                pieces = _pieces(root, run)
            except Exception as error:  # noqa: PERF203  # codecs raise errors of many types
                yield from [Bad(reason_of(error))] if len(run) == 1 else self._one_by_one(run)
            else:
                yield from pieces

    def file_of(self, place: Any) -> str | None:
        return None  # the chunks of an array are files

    def _one_by_one(self, places: Sequence[Any]) -> Iterator[AnyArray | Bad]:
        for place in places:
            yield from self.read([place])

    def _root(self) -> Any:
        try:
            return import_zarr().open(self.path, mode="r")
        except Exception as error:  # zarr raises errors of many types for other folders
            raise self._unreadable(error) from error

    def files(self) -> list[str]:
        paths: list[str] = []
        storage = self.storage
        for parent, folders, files in storage.walk(self.path):
            folders.sort()
            descriptions = {
                name: storage.join(parent, name) for name in files if name in (".zarray", ".zgroup", "zarr.json")
            }
            paths += descriptions.values()
            if ".zarray" in descriptions or (
                "zarr.json" in descriptions and _is_array(storage, descriptions["zarr.json"])
            ):  # skip its chunks: perhaps millions
                folders.clear()
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
