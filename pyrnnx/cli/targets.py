"""Check that a command does not overwrite a file that it reads."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from pyrnnx.errors import ArgumentError, shown

AnyPath = str | os.PathLike[str]


def check_not_read(label: str, target: AnyPath, sources: Iterable[AnyPath | None]) -> None:
    """Raise if writing a file would replace a file that the command reads.

    Links are followed, and hard links to one file are the same file.

    Parameters
    ----------
    label : str
        Command and option for the error message: "run: --output".
    target : path
        The file to write.
    sources : iterable of paths
        Files that the command reads: models, including their files of weights, and arrays. None is skipped.

    Raises
    ------
    ArgumentError
        The target is one of these files.
    PyrnnxError
        An ONNX model that cannot be read, so that its files of weights are unknown.
    """
    if not os.path.exists(target):
        return
    for source in sources:
        for path in () if source is None else _read_files(Path(source)):
            if _is_same(target, path):
                raise ArgumentError(
                    f"{label}: {shown(os.fspath(target))} is the same file as {shown(str(path))}, which is read; "
                    "expected another name"
                )


def input_files(texts: Iterable[str] | None) -> Iterator[str]:
    """Yield the possible paths in each text of ``--input``, which is NAME=FILE or FILE."""
    for text in texts or ():
        yield text
        yield text.rpartition("=")[2]


def _read_files(source: Path) -> Iterator[Path]:
    """Yield a file, and the files of its weights if it is a model."""
    yield source
    suffix = source.suffix.lower()
    if suffix == ".xml":
        yield source.with_suffix(".bin")
    elif suffix == ".onnx":
        from pyrnnx.frontends.onnx.file import external_files

        yield from external_files(source)


def _is_same(target: AnyPath, path: Path) -> bool:
    try:
        return os.path.samefile(target, path)
    except (OSError, ValueError):  # ValueError: a null character in the path
        return False
