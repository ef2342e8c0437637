"""Folders of .npy and .npz files: each array is an item."""

from __future__ import annotations

import math
import os
import zipfile
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.errors import FormatError
from pyrnnx.scoring.sources.base import Bad, FileSource, Row, Shape, attempted
from pyrnnx.scoring.sources.storage import HEAD


class NpySource(FileSource):
    """Source of .npy files [T, ...] in a folder."""

    kind = "npy"
    suffixes = (".npy",)

    def listing(self, path: str, file: str) -> Iterator[Row]:
        with self.storage.open(path, HEAD) as raw:
            size = raw.seek(0, os.SEEK_END)
            raw.seek(0)
            yield file, _shape(raw, size), None

    def values(self, path: str, places: Sequence[Any]) -> Iterator[AnyArray | Bad]:
        with self.storage.open(path, 0) as raw:
            yield attempted(lambda: np.load(raw, allow_pickle=False))


class NpzSource(FileSource):
    """Source of .npz files with arrays [T, ...] in a folder; items are named "path in the folder/name of the array"."""

    kind = "npz"
    suffixes = (".npz",)

    def listing(self, path: str, file: str) -> Iterator[Row]:
        with self.storage.open(path, HEAD) as raw, zipfile.ZipFile(raw) as archive:
            for member in archive.infolist():
                name = member.filename.removesuffix(".npy")
                yield f"{file}/{name}", attempted(_shape_of_member, archive, member), name

    def values(self, path: str, places: Sequence[Any]) -> Iterator[AnyArray | Bad]:
        with self.storage.open(path) as raw:
            archive = np.load(raw, allow_pickle=False)
            for name in places:
                yield attempted(archive.__getitem__, name)


def _shape_of_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Shape:
    with archive.open(member) as file:
        return _shape(file, member.file_size)


def _shape(file: Any, size: int) -> Shape:
    """Return the shape in the header of an .npy file of `size` bytes."""
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(file)
    if dtype.hasobject:
        raise FormatError("it is an array of Python objects; expected numbers")
    declared, available = math.prod(shape) * dtype.itemsize, size - file.tell()
    if declared > available:
        raise FormatError(f"it has {available} bytes of values; its header declares {declared}")
    return shape
