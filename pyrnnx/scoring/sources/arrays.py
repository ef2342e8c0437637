"""Folders of .npy and .npz files: each array is an item."""

from __future__ import annotations

import math
import os
import zipfile
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.errors import FormatError
from pyrnnx.scoring.sources.base import Bad, FileSource, Items, Source, attempted, consecutive, listed
from pyrnnx.scoring.sources.storage import HEAD, Files


class NpySource(FileSource):
    """Source of .npy files [T, ...] in a folder."""

    kind = "npy"
    suffixes = (".npy",)

    def header(self, path: str) -> tuple[int, ...]:
        with self.storage.open(path, HEAD) as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(0)
            return _shape(file, size)

    def values(self, path: str) -> AnyArray:
        with self.storage.open(path, 0) as file:
            values: AnyArray = np.load(file, allow_pickle=False)
            return values


class NpzSource(Source):
    """Source of .npz files with arrays [T, ...] in a folder; items are named "path in the folder/name of the array"."""

    kind = "npz"
    suffixes = (".npz",)

    def items(self) -> Items:
        names: list[str] = []
        shapes: list[tuple[int, ...] | Bad] = []
        places: list[tuple[str, str]] = []
        for path in self.files():
            relative = self.name_of(path)
            members = attempted(_members, self.storage, path)
            for name, shape in [("", members)] if isinstance(members, Bad) else members:
                names.append(f"{relative}/{name}" if name else relative)
                shapes.append(shape)
                places.append((relative, name))
        return listed(names, places, shapes)

    def read(self, places: Sequence[Any]) -> Iterator[AnyArray | Bad]:
        for relative, run in consecutive(places):
            file = attempted(self.storage.open, self.path_of(relative))
            if isinstance(file, Bad):
                yield from [file] * len(run)
                continue
            with file:
                archive = attempted(partial(np.load, allow_pickle=False), file)
                for index in run:
                    yield archive if isinstance(archive, Bad) else attempted(archive.__getitem__, places[index][1])


def _members(storage: Files, path: str) -> list[tuple[str, tuple[int, ...] | Bad]]:
    """Return the names and shapes of the arrays in an .npz file."""
    with storage.open(path, HEAD) as file, zipfile.ZipFile(file) as archive:
        return [(name.removesuffix(".npy"), attempted(_shape_of_member, archive, name)) for name in archive.namelist()]


def _shape_of_member(archive: zipfile.ZipFile, name: str) -> tuple[int, ...]:
    with archive.open(name) as file:
        return _shape(file, archive.getinfo(name).file_size)


def _shape(file: Any, size: int) -> tuple[int, ...]:
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
