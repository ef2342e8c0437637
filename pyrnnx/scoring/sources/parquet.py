"""Parquet: a column of lists, each an item."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pyrnnx.dtypes import AnyArray
from pyrnnx.errors import ArgumentError, PyrnnxError, printable, shown
from pyrnnx.scoring.items import Bad, Items, consecutive
from pyrnnx.scoring.packages import import_pyarrow
from pyrnnx.scoring.sources.base import Source, folder_with, regular

ROWS = 256  # decoded at once: a row group may be larger than memory
NAMES = "name"


class _Listed(NamedTuple):
    names: list[str]
    lengths: list[int]
    places: list[tuple[tuple[str, int], int]]
    bad: dict[int, str]

    def add(self, name: str, length: int, place: tuple[tuple[str, int], int]) -> None:
        self.names.append(name)
        self.lengths.append(length)
        self.places.append(place)


class ParquetSource(Source):
    """A .parquet file or a folder of them; a row's list [T], or list of lists [T, I], is an item.

    Items are called by the column "name", if there is one of strings, else by file and row: "part.parquet:17".

    Parameters
    ----------
    path : str
    column : str, optional
        Default: the only column of lists.
    """

    kind = "parquet"

    def __init__(self, path: str, column: str | None = None) -> None:
        super().__init__(path)
        self.column = column

    def items(self) -> Items:
        found = _Listed([], [], [], {})
        for path in self.files():
            relative = os.path.relpath(path, self.path) if Path(self.path).is_dir() else Path(path).name
            try:
                with self._open(path) as file:
                    self._list(found, path, relative, file)
            except (OSError, ValueError, import_pyarrow().ArrowException) as error:
                if isinstance(error, PyrnnxError):
                    raise
                found.bad[len(found.names)] = f"it cannot be read as Parquet ({printable(str(error))})"
                found.add(relative, 0, ((path, 0), 0))
        return Items(found.names, np.array(found.lengths, np.int64), found.places, found.bad)

    def _list(self, found: _Listed, path: str, relative: str, file: Any) -> None:
        column = self._column(path, file)
        has_names = file.schema_arrow.names.count(NAMES) == 1
        wanted = [column, NAMES] if has_names else [column]
        start = 0
        for group in range(file.num_row_groups):
            row = 0
            for batch in file.iter_batches(ROWS, [group], columns=wanted):
                own = batch.column(NAMES).to_pylist() if has_names else [None] * len(batch)
                lengths = import_pyarrow().compute.list_value_length(batch.column(column)).to_pylist()
                for name, length in zip(own, lengths, strict=True):
                    if length is None:
                        found.bad[len(found.names)] = "null; expected a list"
                    found.add(
                        name if isinstance(name, str) else f"{relative}:{start + row}",
                        length or 0,
                        ((path, group), row),
                    )
                    row += 1
            start += row

    def read(self, places: Sequence[Any]) -> Iterator[AnyArray | Bad]:
        for (path, group), run in consecutive(places):
            rows = [places[index][1] for index in run]
            given = 0
            try:
                with self._open(path) as file:
                    for one in self._rows(file, self._column(path, file), group, rows):
                        given += 1
                        yield one
                missing = "it is not there any more"
            except Exception as error:  # of decoders, of many kinds
                missing = f"row group {group} of {shown(path)} cannot be read ({printable(str(error))})"
            yield from [Bad(missing)] * (len(run) - given)

    def _rows(self, file: Any, column: str, group: int, rows: list[int]) -> Iterator[AnyArray | Bad]:
        """Rows of a row group, by their rising numbers."""
        start, wanted = 0, iter(rows)
        row = next(wanted, None)
        for batch in file.iter_batches(ROWS, [group], columns=[column]):
            while row is not None and row < start + len(batch):
                yield _values(batch.column(column)[row - start].values)
                row = next(wanted, None)
            start += len(batch)
            if row is None:
                return

    def _open(self, path: str) -> Any:
        return import_pyarrow().parquet.ParquetFile(regular(path))

    def _column(self, path: str, file: Any) -> str:
        types = import_pyarrow().types
        lists = [
            field.name
            for field in file.schema_arrow
            if types.is_list(field.type) or types.is_large_list(field.type) or types.is_fixed_size_list(field.type)
        ]
        twice = next((one for one in lists if file.schema_arrow.names.count(one) > 1), None)
        if twice is not None and self.column in (None, twice):
            raise ArgumentError(f"score: {shown(path)} has two columns {shown(twice)}; expected one")
        if self.column is None and len(lists) == 1:
            return str(lists[0])
        if self.column not in lists:
            given = "column is not given" if self.column is None else f"column is {shown(self.column)}"
            raise ArgumentError(
                f"score: {given}; {shown(path)} has the columns of lists {', '.join(map(shown, lists)) or 'none'}"
            )
        return str(self.column)

    def files(self) -> list[str]:
        return [self.path] if Path(self.path).is_file() else folder_with(self.kind, self.path, ".parquet")


def _values(found: Any) -> AnyArray | Bad:
    """The values of one list, of lists of one length as an array of more axes."""
    if found is None:
        return Bad("null; expected a list")
    types = import_pyarrow().types
    sizes = [len(found)]
    while types.is_list(found.type) or types.is_large_list(found.type) or types.is_fixed_size_list(found.type):
        widths = set(import_pyarrow().compute.list_value_length(found).to_pylist())
        if None in widths or len(widths) > 1:
            return Bad(f"lists of different lengths ({', '.join(sorted(map(str, widths)))}) in one sequence")
        inner = found.type.list_size if types.is_fixed_size_list(found.type) else 0
        sizes.append(widths.pop() if widths else inner)
        found = found.flatten()
    if found.null_count or not (types.is_floating(found.type) or types.is_integer(found.type)):
        return Bad(f"{'nulls' if found.null_count else found.type} in a list; expected numbers")
    return np.asarray(found.to_numpy(zero_copy_only=False)).reshape(sizes)
