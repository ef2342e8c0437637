"""Folders of .npy and .npz files: each array is an item."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx._internal.npy import shape_of_npy
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
            yield file, shape_of_npy(raw, size), None

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
        return shape_of_npy(file, member.file_size)
