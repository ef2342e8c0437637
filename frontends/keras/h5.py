"""The HDF5 file of weights in a .keras file: groups by Keras' paths, and plain arrays that lie in the file itself."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from pyrnnx.dtypes import AnyArray
from pyrnnx.errors import FormatError, PyrnnxError, printable, shortened, shown

DTYPES = ("float16", "float32", "float64")  # that Keras stores


class WeightsFile:
    """An open file of weights.

    A link to somewhere else, or an array of which the numbers are in other files, is an error: they could be anything
    that this process may read.
    """

    def __init__(self, label: str, h5py: Any, file: Any, size: int) -> None:
        self._label, self._h5py, self._file, self._size = label, h5py, file, size
        self._read = 0  # bytes of arrays

    def child_of_name(self, path: str, name: str, otherwise: str) -> str:
        """The path of the group below `path` whose layer has that name; `otherwise` where names are not stored."""
        parent = self._group(path)
        stored = {}
        for key in parent:
            child = self._found(parent, key)
            names = self._found(child, "vars") if isinstance(child, self._h5py.Group) and "vars" in child else None
            given = None if names is None else names.attrs.get("name")
            if isinstance(given, str):
                stored[given] = f"{path}/{key}"
        if stored and name not in stored:
            raise FormatError(f"{self._label}: {shown(path)} has no weights of {shown(name)}")
        return stored.get(name, f"{path}/{otherwise}")

    def arrays(self, path: str, count: int) -> list[AnyArray]:
        """The variables of a layer or cell, which are numbered.

        Raises
        ------
        FormatError
            Another number of them; arrays that are none of numbers, or do not lie in the file.
        """
        group = self._group(f"{path}/vars")
        if len(group) != count:
            raise FormatError(f"{self._label}: {shown(path)} has {len(group)} variables; expected {count}")
        return [self._array(f"{path}/vars/{k}", self._found(group, str(k))) for k in range(count)]

    def _group(self, path: str) -> Any:
        found = self._file
        for name in path.split("/"):
            if not isinstance(found, self._h5py.Group):
                break
            found = self._found(found, name)
        if not isinstance(found, self._h5py.Group):
            raise FormatError(f"{self._label}: {shown(path)} is no group")
        return found

    def _found(self, group: Any, name: str) -> Any:
        link = group.get(name, getlink=True)
        if link is None:
            raise FormatError(f"{self._label}: {shown(group.name)} has no {shown(name)}")
        if not isinstance(link, self._h5py.HardLink):
            raise FormatError(f"{self._label}: {shown(name)} in {shown(group.name)} is a link to somewhere else")
        return group[name]

    def _array(self, path: str, dataset: Any) -> AnyArray:
        if not isinstance(dataset, self._h5py.Dataset) or dataset.shape is None:
            raise FormatError(f"{self._label}: {shown(path)} is no array")
        if dataset.external or dataset.is_virtual:
            raise FormatError(f"{self._label}: the numbers of {shown(path)} are not in the file")
        # Keras stores the bfloat16 of ml_dtypes as two bytes without a meaning, and says what they are.
        is_bfloat16 = (
            dataset.dtype.kind == "V" and dataset.dtype.itemsize == 2 and dataset.attrs.get("dtype") == "bfloat16"
        )
        if dataset.dtype.name not in DTYPES and not is_bfloat16:
            allowed = ", ".join(DTYPES)
            raise FormatError(f"{self._label}: {shown(path)} has dtype {dataset.dtype}; expected one of {allowed}")
        # Numbers that are not stored, but a value for all of them; HDF5 makes room for a chunk, however few are in it.
        for what, shape in (("shape", dataset.shape), ("chunks of shape", dataset.chunks or ())):
            if math.prod(shape) * dataset.dtype.itemsize > self._size:
                raise FormatError(f"{self._label}: {shown(path)} has {what} {shape}; the file has {self._size} bytes")
        self._read += dataset.nbytes
        if self._read > self._size:
            raise FormatError(
                f"{self._label}: with {shown(path)}, arrays of {self._read} bytes are read, some of them more than "
                f"once; the file has {self._size} bytes"
            )
        return np.asarray(dataset[()])


def read_weights(
    label: str, contents: bytes, parents: Sequence[tuple[str, str]], cells: Sequence[tuple[str, int]]
) -> list[AnyArray]:
    """The variables of a layer; those in bfloat16 as two bytes without a meaning, as they are stored.

    Parameters
    ----------
    label : str
        How errors name the layer.
    contents : bytes
        The HDF5 file.
    parents : sequence of tuple
        Of each model that the layer is in, from the outermost, and of itself: the name, and what the group is called
        where names are not stored.
    cells : sequence of tuple
        The path of each cell below its layer, and how many variables it has.

    Raises
    ------
    FormatError
        No HDF5 file, a damaged one, or one without these variables.
    """
    import h5py

    try:
        with h5py.File(io.BytesIO(contents), "r") as file:
            weights, where = WeightsFile(label, h5py, file, len(contents)), ""
            for own, otherwise in parents:
                where = weights.child_of_name(f"{where}/layers".lstrip("/"), own, otherwise)
            return [array for path, count in cells for array in weights.arrays(f"{where}/{path}", count)]
    except PyrnnxError:
        raise
    except Exception as error:  # HDF5 finds damage where it reads, as errors of many kinds
        raise FormatError(
            f"{label}: the weights are no HDF5 file, or damaged ({printable(shortened(str(error)))})"
        ) from error
