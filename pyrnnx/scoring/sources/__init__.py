"""Where sequences come from: one class for each format."""

from __future__ import annotations

import os
from pathlib import Path

from pyrnnx.errors import ArgumentError, shown
from pyrnnx.scoring.sources.arrays import NpySource, NpzSource
from pyrnnx.scoring.sources.base import Source, files_with
from pyrnnx.scoring.sources.parquet import ParquetSource
from pyrnnx.scoring.sources.wav import WavSource
from pyrnnx.scoring.sources.zarr import ZarrSource

SOURCES: dict[str, type[Source]] = {
    one.kind: one for one in (ZarrSource, NpySource, NpzSource, ParquetSource, WavSource)
}
_SUFFIXES = ("npy", "npz", "parquet", "wav")


def open_source(path: str | os.PathLike[str], kind: str | None, column: str | None) -> Source:
    """The source at a path; of what format is told by its files, unless `kind` says it.

    Raises
    ------
    ArgumentError
        No such path or kind; files of several formats, or of none; a column of what has none.
    """
    if not isinstance(path, (str, os.PathLike)) or not isinstance(os.fspath(path), str):
        raise ArgumentError(f"score: source is {shown(path)}; expected a path")
    if kind is not None and (not isinstance(kind, str) or kind not in SOURCES):
        raise ArgumentError(f"score: source_format is {shown(kind)}; expected one of {', '.join(SOURCES)}")
    if "\0" in os.fspath(path):
        raise ArgumentError(f"score: source is {shown(path)}; expected a path, which has no NUL")
    absolute = os.path.abspath(path)
    if column is not None and not isinstance(column, str):
        raise ArgumentError(f"score: column is {shown(column)}; expected a name")
    if not os.path.exists(absolute):
        raise ArgumentError(f"score: source {shown(os.fspath(path))} does not exist")
    kind = kind or _kind(absolute)
    if kind == ParquetSource.kind:
        return ParquetSource(absolute, column)
    if column is not None:
        raise ArgumentError(f"score: column is {shown(column)}, and the source is {kind}; expected a Parquet source")
    return SOURCES[kind](absolute)


def _kind(path: str) -> str:
    if Path(path).is_file():
        if path.lower().endswith(".parquet"):
            return ParquetSource.kind
        raise ArgumentError(f"score: source {shown(path)} is a file; expected a folder, or a .parquet file")
    if any((Path(path) / one).exists() for one in ("zarr.json", ".zarray", ".zgroup")):
        return ZarrSource.kind
    found = [kind for kind in _SUFFIXES if files_with(path, f".{kind}")]
    if len(found) != 1:
        what = f"files of several formats ({', '.join(found)})" if found else "files of no known format"
        raise ArgumentError(
            f"score: source {shown(path)} holds {what}; expected one of {', '.join(SOURCES)}, or source_format"
        )
    return found[0]
