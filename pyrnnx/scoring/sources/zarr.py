"""Zarr: an array, a group of arrays, or a ragged array as values and offsets."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pyrnnx.dtypes import AnyArray
from pyrnnx.errors import ArgumentError, PyrnnxError, printable, shown
from pyrnnx.scoring.items import Bad, Items
from pyrnnx.scoring.packages import import_zarr
from pyrnnx.scoring.sources.base import Source, attempted, listed

VALUES, OFFSETS, NAMES = "values", "offsets", "names"
_ROWS = ""  # in places: the array itself, of which each row is an item


class ZarrSource(Source):
    """A zarr folder, in one of three forms.

    - An array [N, T, ...]: N items of one length, called by their numbers.
    - A group with the arrays "values" [sum of lengths, ...] and "offsets" [N + 1]: item i is
      ``values[offsets[i]:offsets[i + 1]]``, called by the array "names" [N] of strings, else by its number.
    - A group of arrays [T, ...]: an item each, called by their names.
    """

    kind = "zarr"

    def items(self) -> Items:
        try:
            return self._items(self._root())
        except PyrnnxError:
            raise
        except Exception as error:  # of descriptions and codecs, of many kinds
            raise ArgumentError(
                f"score: source {shown(self.path)} cannot be read as zarr ({printable(str(error))})"
            ) from error

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
        keys = [key for key, one in members.items() if isinstance(one, Bad) or hasattr(one, "shape")]
        if VALUES in keys and OFFSETS in keys:
            return self._ragged(root, keys)
        if not keys:
            raise ArgumentError(f"score: zarr group {shown(self.path)} has no arrays")
        shapes = [one if isinstance(one, Bad) else one.shape for key, one in members.items() if key in keys]
        return listed(keys, [(key,) for key in keys], shapes)

    def _members(self) -> list[str]:
        """Names in the group, of members with broken descriptions, too, which zarr's own list would fail for."""
        described = (".zarray", "zarr.json")
        return [
            one.name
            for one in sorted(Path(self.path).iterdir())
            if any(os.path.lexists(one / name) for name in described)
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
                f'score: zarr group {shown(self.path)}: "offsets" are not rising integers from 0 to {total}, the '
                'length of "values"'
            )
        offsets = offsets.astype(np.int64)
        count = len(offsets) - 1
        names = list(map(str, np.ravel(root[NAMES][...]))) if NAMES in keys else list(map(str, range(count)))
        if len(names) != count:
            raise ArgumentError(
                f'score: zarr group {shown(self.path)} has {len(names)} "names" and {count + 1} "offsets"; expected '
                "one name less than offsets"
            )
        pairs = zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)
        places = [(VALUES, *pair) for pair in pairs]
        return listed(names, places, [(length, *values[1:]) for length in np.diff(offsets).tolist()])

    def read(self, places: Sequence[Any]) -> Iterator[AnyArray | Bad]:
        root = self._root()
        for run in _beside(places):
            # In one piece: a compressed chunk, which many items share, is opened once.
            try:
                found = _piece(root, run)
            except Exception as error:  # noqa: PERF203  # of codecs, of many kinds
                yield from [Bad(printable(str(error)))] if len(run) == 1 else self._one_by_one(run)
            else:
                yield from found

    def _one_by_one(self, places: Sequence[Any]) -> Iterator[AnyArray | Bad]:
        for place in places:
            yield from self.read([place])

    def _root(self) -> Any:
        try:
            return import_zarr().open(self.path, mode="r")
        except Exception as error:  # zarr has errors of many kinds for what is no zarr folder
            raise ArgumentError(
                f"score: source {shown(self.path)} cannot be read as zarr ({printable(str(error))})"
            ) from error

    def files(self) -> list[str]:
        found = []
        for here, folders, files in os.walk(self.path):
            folders.sort()
            found += [os.path.join(here, one) for one in files if one in (".zarray", ".zgroup", "zarr.json")]
            if _is_array(here, files):  # its description alone: there may be millions of chunks
                folders.clear()
        return sorted(found)


def _is_array(folder: str, files: Sequence[str]) -> bool:
    if "zarr.json" in files:
        try:
            found = json.loads(Path(folder, "zarr.json").read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return False
        return isinstance(found, dict) and found.get("node_type") == "array"
    return ".zarray" in files


def _beside(places: Sequence[Any]) -> Iterator[list[Any]]:
    """Runs of places that end where the next begins."""
    run: list[Any] = []
    for place in places:
        if run and not (len(place) == len(run[-1]) > 1 and place[1] == run[-1][2]):
            yield run
            run = []
        run.append(place)
    if run:
        yield run


def _piece(root: Any, run: Sequence[Any]) -> list[AnyArray]:
    if len(run[0]) == 1:
        return [np.asarray(root[run[0][0]][...])]
    array = root[VALUES] if run[0][0] == VALUES else root
    start = run[0][1]
    values = np.asarray(array[start : run[-1][2]])
    pieces = [values[first - start : last - start] for _, first, last in run]
    return pieces if run[0][0] == VALUES else [piece[0] for piece in pieces]
