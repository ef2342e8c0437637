"""Folders of .npy and .npz files: each array is an item."""

from __future__ import annotations

import math
import os
import zipfile
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

import numpy as np

from pyrnnx.dtypes import AnyArray
from pyrnnx.scoring.items import Bad, Items, consecutive
from pyrnnx.scoring.sources.base import Source, attempted, folder_with, listed, regular


class NpySource(Source):
    """A folder of .npy files [T, ...]; the items are called by their paths in it."""

    kind = "npy"

    def items(self) -> Items:
        paths = self.files()
        names = [os.path.relpath(path, self.path) for path in paths]
        return listed(names, [(name,) for name in names], [attempted(_shape_of_file, path) for path in paths])

    def read(self, places: Sequence[Any]) -> Iterator[AnyArray | Bad]:
        for (name,) in places:
            yield attempted(_load, os.path.join(self.path, name))

    def files(self) -> list[str]:
        return folder_with(self.kind, self.path, ".npy")


class NpzSource(Source):
    """A folder of .npz files of arrays [T, ...]; the items are called "path in the folder/name of the array"."""

    kind = "npz"

    def items(self) -> Items:
        names: list[str] = []
        shapes: list[tuple[int, ...] | Bad] = []
        places: list[tuple[str, str]] = []
        for path in self.files():
            relative = os.path.relpath(path, self.path)
            members = attempted(_members, path)
            for name, shape in [("", members)] if isinstance(members, Bad) else members:
                names.append(f"{relative}/{name}" if name else relative)
                shapes.append(shape)
                places.append((relative, name))
        return listed(names, places, shapes)

    def read(self, places: Sequence[Any]) -> Iterator[AnyArray | Bad]:
        for relative, run in consecutive(places):
            opened = attempted(_load, os.path.join(self.path, relative))
            if isinstance(opened, Bad):
                yield from [opened] * len(run)
                continue
            with opened:
                for index in run:
                    yield attempted(opened.__getitem__, places[index][1])

    def files(self) -> list[str]:
        return folder_with(self.kind, self.path, ".npz")


def _load(path: str) -> Any:
    return np.load(regular(path), allow_pickle=False)


def _members(path: str) -> list[tuple[str, tuple[int, ...] | Bad]]:
    """Names of the arrays in an .npz file, and their shapes."""
    with zipfile.ZipFile(regular(path)) as archive:
        return [(name.removesuffix(".npy"), attempted(_shape_of_member, archive, name)) for name in archive.namelist()]


def _shape_of_member(archive: zipfile.ZipFile, name: str) -> tuple[int, ...]:
    with archive.open(name) as file:
        return _shape(file, archive.getinfo(name).file_size)


def _shape_of_file(path: str) -> tuple[int, ...]:
    with open(regular(path), "rb") as file:
        return _shape(file, os.fstat(file.fileno()).st_size)


def _shape(file: Any, size: int) -> tuple[int, ...]:
    """The shape that the head of an .npy file of `size` bytes says.

    Raises
    ------
    ValueError
        No such head; an array of objects, or of more than the file holds.
    """
    shape, dtype = _head(file)
    if dtype.hasobject:
        raise ValueError("an array of Python objects; expected numbers")
    count, there = math.prod(shape) * dtype.itemsize, size - file.tell()
    if count > there:
        raise ValueError(f"it has {there} bytes of values; its head says {count}")
    return shape


def _head(file: BinaryIO) -> tuple[tuple[int, ...], np.dtype[Any]]:
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(file)
    return shape, dtype
