"""Source of Parquet files: each list of a column is an item."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx._internal.extras import import_package
from pyrnnx.errors import ArgumentError, PyrnnxError, reason_of, shown
from pyrnnx.scoring.sources.base import Bad, Items, Source, consecutive

ROWS = 256  # rows decoded at once, because a row group may be larger than memory
NAMES = "name"


def import_pyarrow() -> Any:
    """Return pyarrow with the modules that scoring uses."""
    for module in ("pyarrow.compute", "pyarrow.parquet", "pyarrow.types"):
        import_package(module, "score: Parquet", "parquet")
    return import_package("pyarrow", "score: Parquet", "parquet")


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
        names: list[str] = []
        lengths: list[int] = []
        places: list[Any] = []
        bad: dict[int, str] = {}
        for path in self.files():
            try:
                for name, length, place in self._listing(path):
                    if length is None:
                        bad[len(names)] = "null; expected a list"
                    names.append(name)
                    lengths.append(length or 0)
                    places.append(place)
            except PyrnnxError:  # noqa: PERF203  # a try for each file
                raise
            except Exception as error:  # decoders and object stores raise errors of many types
                bad[len(names)] = f"it cannot be read as Parquet ({reason_of(error)})"
                names.append(self.name_of(path))
                lengths.append(0)
                places.append(((path, 0), 0))
        return Items(names, np.array(lengths, np.int64), places, bad)

    def _listing(self, path: str) -> Iterator[tuple[str, int | None, Any]]:
        """Yield name, length (None for a null) and place of each row of a file."""
        list_length = import_pyarrow().compute.list_value_length
        with self._open(path) as file:
            column = self._column(path, file)
            has_names = file.schema_arrow.names.count(NAMES) == 1
            columns = [column, NAMES] if has_names else [column]
            start = 0
            for group in range(file.num_row_groups):
                row, place = 0, (path, group)
                for batch in file.iter_batches(ROWS, [group], columns=columns):
                    names = batch.column(NAMES).to_pylist() if has_names else [None] * len(batch)
                    lengths = list_length(batch.column(column)).to_pylist()
                    for name, length in zip(names, lengths, strict=True):
                        named = name if isinstance(name, str) else f"{self.name_of(path)}:{start + row}"
                        yield named, length, (place, row)
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
        """Return the column with this source's name, or the only column of lists."""
        names = file.schema_arrow.names
        lists = [field.name for field in file.schema_arrow if _is_list(field.type)]
        column = lists[0] if self.column is None and len(set(lists)) == 1 else self.column
        if column in lists and names.count(column) > 1:
            raise ArgumentError(f"score: {shown(path)} has two columns {shown(column)}; expected one")
        if column not in lists:
            raise ArgumentError(
                f"score: column is {shown(column)}; expected a column of lists of {shown(path)}: "
                f"{', '.join(map(shown, lists)) or 'there is none'}"
            )
        return str(column)


def _is_list(kind: Any) -> bool:
    types = import_pyarrow().types
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def _values(values: Any) -> AnyArray | Bad:
    """Return the values of one list; nested lists of equal length become further axes."""
    if values is None:
        return Bad("null; expected a list")
    types = import_pyarrow().types
    sizes = [len(values)]
    while _is_list(values.type):
        widths = set(import_pyarrow().compute.list_value_length(values).to_pylist())
        if None in widths or len(widths) > 1:
            return Bad(f"lists of different lengths ({', '.join(sorted(map(str, widths)))}) in one sequence")
        inner = values.type.list_size if types.is_fixed_size_list(values.type) else 0
        sizes.append(widths.pop() if widths else inner)
        values = values.flatten()
    if values.null_count or not (types.is_floating(values.type) or types.is_integer(values.type)):
        return Bad(f"{'nulls' if values.null_count else values.type} in a list; expected numbers")
    return np.asarray(values.to_numpy(zero_copy_only=False)).reshape(sizes)
