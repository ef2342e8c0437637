"""Source of Parquet files: each list of a column is an item."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx._internal.extras import import_package
from pyrnnx.errors import ArgumentError, shown
from pyrnnx.scoring.sources.base import Bad, FileSource, Row

ROWS = 256  # rows decoded at once, because a row group may be larger than memory
NAMES = "name"
NULL = Bad("null; expected a list")


def import_pyarrow() -> Any:
    for module in ("pyarrow.compute", "pyarrow.parquet", "pyarrow.types"):
        import_package(module, "score: Parquet", "score")
    return import_package("pyarrow", "score: Parquet", "score")


class ParquetSource(FileSource):
    """Source of a .parquet file or a folder of them; a row's list [T], or list of lists [T, I], is an item.

    The column "name" names the items if it has strings; else file and row do: "part.parquet:17".
    """

    kind = "parquet"
    suffixes = (".parquet",)

    def __init__(self, path: str, column: Any = None) -> None:
        super().__init__(path)
        if column is not None and not isinstance(column, str):
            raise ArgumentError(f"score: column is {shown(column)}; expected a name")
        import_pyarrow()
        self.column, self.options = column, {"column": column}

    def listing(self, path: str, file: str) -> Iterator[Row]:
        list_length = import_pyarrow().compute.list_value_length
        with self._open(path) as (parquet, column):
            has_names = parquet.schema_arrow.names.count(NAMES) == 1
            columns = [column, NAMES] if has_names else [column]
            number = 0  # of a row in the file
            for group in range(parquet.num_row_groups):
                row = 0
                for batch in parquet.iter_batches(ROWS, [group], columns=columns):
                    names = batch.column(NAMES).to_pylist() if has_names else [None] * len(batch)
                    lengths = list_length(batch.column(column)).to_pylist()
                    for name, length in zip(names, lengths, strict=True):
                        own_name = name if isinstance(name, str) else f"{file}:{number}"
                        yield own_name, NULL if length is None else (length,), (group, row)
                        row, number = row + 1, number + 1

    def values(self, path: str, places: Sequence[Any]) -> Iterator[AnyArray | Bad]:
        with self._open(path) as (parquet, column):
            for group, own_places in groupby(places, itemgetter(0)):
                rows = [row for _, row in own_places]
                start = 0
                for batch in parquet.iter_batches(ROWS, [group], columns=[column]):
                    lists, end = batch.column(column), start + len(batch)
                    for row in rows[bisect_left(rows, start) : bisect_left(rows, end)]:
                        yield _values(lists[row - start].values)
                    start = end
                    if rows[-1] < end:
                        break

    @contextmanager
    def _open(self, path: str) -> Iterator[tuple[Any, str]]:
        """Yield an open file and the name of its column."""
        with self.storage.open(path) as raw, import_pyarrow().parquet.ParquetFile(raw) as file:
            yield file, self._column(file)

    def _column(self, file: Any) -> str:
        lists = [field.name for field in file.schema_arrow if _is_list(field.type)]
        column = lists[0] if self.column is None and len(lists) == 1 else self.column
        if lists.count(column) != 1:
            columns = ", ".join(map(shown, lists)) or "it has none"
            raise ArgumentError(f"column is {shown(column)}; expected a column of lists: {columns}")
        return str(column)


def _is_list(kind: Any) -> bool:
    types = import_pyarrow().types
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def _values(values: Any) -> AnyArray | Bad:
    """Return the values of one list; nested lists of equal length become further axes."""
    if values is None:
        return NULL
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
