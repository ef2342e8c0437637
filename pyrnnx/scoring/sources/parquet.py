"""Source of Parquet files: each list of a column is an item."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.errors import ArgumentError, PyrnnxError, reason_of, shown
from pyrnnx.scoring.packages import import_pyarrow
from pyrnnx.scoring.sources.base import Source
from pyrnnx.scoring.sources.items import Bad, Items, consecutive

ROWS = 256  # rows decoded at once, because a row group may be larger than memory
NAMES = "name"


class _Listing(NamedTuple):
    names: list[str]
    lengths: list[int]
    places: list[tuple[tuple[str, int], int]]
    bad: dict[int, str]

    def add(self, name: str, length: int, place: tuple[tuple[str, int], int]) -> None:
        self.names.append(name)
        self.lengths.append(length)
        self.places.append(place)


class ParquetSource(Source):
    """Source of a .parquet file or a folder of them; a row's list [T], or list of lists [T, I], is an item.

    The column "name" names the items if it has strings; else file and row do: "part.parquet:17".
    """

    kind = "parquet"
    suffixes = (".parquet",)

    def __init__(self, path: str, column: str | None = None) -> None:
        super().__init__(path)
        self.column, self.options = column, {"column": column}

    def items(self) -> Items:
        listing = _Listing([], [], [], {})
        for path in self.files():
            relative = self.name_of(path)
            try:
                with self._open(path) as file:
                    self._list(listing, path, relative, file)
            except PyrnnxError:
                raise
            except Exception as error:  # decoders and object stores raise errors of many types
                listing.bad[len(listing.names)] = f"it cannot be read as Parquet ({reason_of(error)})"
                listing.add(relative, 0, ((path, 0), 0))
        return Items(listing.names, np.array(listing.lengths, np.int64), listing.places, listing.bad)

    def _list(self, listing: _Listing, path: str, relative: str, file: Any) -> None:
        column = self._column(path, file)
        has_names = file.schema_arrow.names.count(NAMES) == 1
        columns = [column, NAMES] if has_names else [column]
        start = 0
        for group in range(file.num_row_groups):
            row, place = 0, (path, group)
            for batch in file.iter_batches(ROWS, [group], columns=columns):
                names = batch.column(NAMES).to_pylist() if has_names else [None] * len(batch)
                lengths = import_pyarrow().compute.list_value_length(batch.column(column)).to_pylist()
                for name, length in zip(names, lengths, strict=True):
                    if length is None:
                        listing.bad[len(listing.names)] = "null; expected a list"
                    listing.add(
                        name if isinstance(name, str) else f"{relative}:{start + row}",
                        length or 0,
                        (place, row),
                    )
                    row += 1
            start += row

    def read(self, places: Sequence[Any]) -> Iterator[AnyArray | Bad]:
        for (path, group), run in consecutive(places):
            rows = [places[index][1] for index in run]
            count = 0
            try:
                with self._open(path) as file:
                    for values in self._rows(file, self._column(path, file), group, rows):
                        count += 1
                        yield values
                reason = "it is not there any more"
            except Exception as error:  # decoders raise errors of many types
                reason = f"row group {group} of {shown(path)} cannot be read ({reason_of(error)})"
            yield from [Bad(reason)] * (len(run) - count)

    def _rows(self, file: Any, column: str, group: int, rows: list[int]) -> Iterator[AnyArray | Bad]:
        """Yield the values of rows of a row group, whose numbers are in ascending order."""
        start, remaining = 0, iter(rows)
        row = next(remaining, None)
        for batch in file.iter_batches(ROWS, [group], columns=[column]):
            while row is not None and row < start + len(batch):
                yield _values(batch.column(column)[row - start].values)
                row = next(remaining, None)
            start += len(batch)
            if row is None:
                return

    @contextmanager
    def _open(self, path: str) -> Iterator[Any]:
        parquet = import_pyarrow().parquet
        with self.storage.open(path) as raw, parquet.ParquetFile(raw) as file:
            yield file

    def file_of(self, place: Any) -> str | None:
        return str(place[0][0])

    def _column(self, path: str, file: Any) -> str:
        types = import_pyarrow().types
        lists = [
            field.name
            for field in file.schema_arrow
            if types.is_list(field.type) or types.is_large_list(field.type) or types.is_fixed_size_list(field.type)
        ]
        twice = next((name for name in lists if file.schema_arrow.names.count(name) > 1), None)
        if twice is not None and self.column in (None, twice):
            raise ArgumentError(f"score: {shown(path)} has two columns {shown(twice)}; expected one")
        if self.column is None and len(lists) == 1:
            return str(lists[0])
        if self.column not in lists:
            raise ArgumentError(
                f"score: column is {shown(self.column)}; expected a column of lists of {shown(path)}: "
                f"{', '.join(map(shown, lists)) or 'there is none'}"
            )
        return str(self.column)


def _values(values: Any) -> AnyArray | Bad:
    """Return the values of one list; nested lists of equal length become further axes."""
    if values is None:
        return Bad("null; expected a list")
    types = import_pyarrow().types
    sizes = [len(values)]
    while types.is_list(values.type) or types.is_large_list(values.type) or types.is_fixed_size_list(values.type):
        widths = set(import_pyarrow().compute.list_value_length(values).to_pylist())
        if None in widths or len(widths) > 1:
            return Bad(f"lists of different lengths ({', '.join(sorted(map(str, widths)))}) in one sequence")
        inner = values.type.list_size if types.is_fixed_size_list(values.type) else 0
        sizes.append(widths.pop() if widths else inner)
        values = values.flatten()
    if values.null_count or not (types.is_floating(values.type) or types.is_integer(values.type)):
        return Bad(f"{'nulls' if values.null_count else values.type} in a list; expected numbers")
    return np.asarray(values.to_numpy(zero_copy_only=False)).reshape(sizes)
