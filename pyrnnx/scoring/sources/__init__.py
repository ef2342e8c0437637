"""Sources of sequences: one class for each format."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from pyrnnx.errors import ArgumentError, shown
from pyrnnx.scoring.sources.arrays import NpySource, NpzSource
from pyrnnx.scoring.sources.audio import AudioSource
from pyrnnx.scoring.sources.base import Source, files_with
from pyrnnx.scoring.sources.parquet import ParquetSource
from pyrnnx.scoring.sources.storage import FILE, absolute, storage_of
from pyrnnx.scoring.sources.zarr import DESCRIPTIONS, ZarrSource

SOURCES: dict[str, type[Source]] = {
    cls.kind: cls for cls in (ZarrSource, NpySource, NpzSource, ParquetSource, AudioSource)
}
_KINDS = {suffix: cls.kind for cls in SOURCES.values() for suffix in cls.suffixes}
_OPTIONS: dict[str, type[Source]] = {"column": ParquetSource, "channels": AudioSource, "rate": AudioSource}


def open_source(path: str | os.PathLike[str], kind: str | None = None, **options: Any) -> Source:
    """Return the source at a path, of the format `kind` or else of its files.

    `options` are the arguments of `score` for one format; None for one that is not set.
    """
    normal = absolute(path)
    if kind is not None and (not isinstance(kind, str) or kind not in SOURCES):
        raise ArgumentError(f"score: source_format is {shown(kind)}; expected one of {', '.join(SOURCES)}")
    chosen = SOURCES[kind or _kind(normal)]
    given = {name: value for name, value in options.items() if value is not None}
    for name, value in given.items():
        if _OPTIONS[name] is not chosen:
            raise ArgumentError(
                f"score: {name} is {shown(value)}, and the source is {chosen.kind}; expected a source of "
                f"{_OPTIONS[name].kind}"
            )
    return chosen(normal, **given)


def _kind(path: str) -> str:
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
