"""Sources of sequences: one class for each format."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from pyrnnx._internal import scalars
from pyrnnx._internal.files import is_path
from pyrnnx.errors import ArgumentError, shown
from pyrnnx.scoring.sources.arrays import NpySource, NpzSource
from pyrnnx.scoring.sources.audio import AudioSource
from pyrnnx.scoring.sources.base import Source, files_with
from pyrnnx.scoring.sources.parquet import ParquetSource
from pyrnnx.scoring.sources.storage import FILE, normal, shown_path, storage_of
from pyrnnx.scoring.sources.zarr import DESCRIPTIONS, ZarrSource

SOURCES: dict[str, type[Source]] = {
    cls.kind: cls for cls in (ZarrSource, NpySource, NpzSource, ParquetSource, AudioSource)
}
_KINDS = {suffix: cls.kind for cls in SOURCES.values() for suffix in cls.suffixes}


def open_source(
    path: str | os.PathLike[str],
    kind: str | None = None,
    column: str | None = None,
    *,
    channels: Any = None,
    rate: Any = None,
) -> Source:
    """Return the source at a path, of the format `kind` or else of its files. The arguments are those of `score`."""
    absolute = check_exists(path)
    if kind is not None and (not isinstance(kind, str) or kind not in SOURCES):
        raise ArgumentError(f"score: source_format is {shown(kind)}; expected one of {', '.join(SOURCES)}")
    if column is not None and not isinstance(column, str):
        raise ArgumentError(f"score: column is {shown(column)}; expected a name")
    kind = kind or _kind(absolute)
    options: dict[str, tuple[Any, type[Source]]] = {
        "column": (column, ParquetSource),
        "channels": (_channels(channels), AudioSource),
        "rate": (None if rate is None else scalars.integer("score", "rate", rate, 1), AudioSource),
    }
    for name, (value, cls) in options.items():
        if value is not None and kind != cls.kind:
            raise ArgumentError(
                f"score: {name} is {shown(value)}, and the source is {kind}; expected a source of {cls.kind}"
            )
    chosen = SOURCES[kind]
    return chosen(absolute, **{name: value for name, (value, cls) in options.items() if cls is chosen})


def check_exists(path: Any) -> str:
    """Return the absolute path of a source, or its URL."""
    if not is_path(path) or "\0" in os.fspath(path):
        raise ArgumentError(f"score: source is {shown_path(path)}; expected a path")
    absolute = normal(os.fspath(path))
    if storage_of(absolute).kind(absolute) is None:
        raise ArgumentError(f"score: source {shown_path(path)} does not exist; expected a file, a folder or a URL")
    return absolute


def _channels(channels: Any) -> Any:
    """Return the index of a channel, "mean" or None."""
    if channels is None or channels == "mean":
        return channels
    if channels == "first":
        return 0
    if isinstance(channels, str) and channels.isdecimal():
        channels = int(channels)
    return scalars.integer(
        "score", "channels", channels, 0, expected='"mean", "first", or the index of a channel from 0'
    )


def _kind(path: str) -> str:
    """Return the format of the files at a path."""
    storage, suffixes = storage_of(path), ", ".join(_KINDS)
    if storage.kind(path) == FILE:
        suffix = Path(path).suffix.lower()
        if suffix in _KINDS:
            return _KINDS[suffix]
        raise ArgumentError(
            f"score: source {shown(path)} is a file; expected a folder, or a file that ends in {suffixes}"
        )
    if any(storage.kind(os.path.join(path, name)) for name in DESCRIPTIONS):
        return ZarrSource.kind
    paths = [file.lower() for file in files_with(path, ("",))[0]]
    kinds = list(dict.fromkeys(kind for end, kind in _KINDS.items() if any(file.endswith(end) for file in paths)))
    if not kinds:
        files = "no files of a known format" if paths else "no files"
        raise ArgumentError(
            f"score: source {shown(path)} has {files}; expected a zarr folder, or files that end in {suffixes}"
        )
    if len(kinds) > 1:
        raise ArgumentError(
            f"score: source {shown(path)} has files of several formats ({', '.join(kinds)}); expected files of one "
            "format, or source_format, which chooses one"
        )
    return kinds[0]
