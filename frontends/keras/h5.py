"""HDF5 weights of a .keras file: groups by Keras' paths, and arrays stored in the file itself."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.errors import FormatError, PyrnnxError, printable, shortened, shown

DTYPES = ("float16", "float32", "float64")  # of HDF5; Keras stores bfloat16 as raw bytes


class WeightsFile:
    """An open file of weights.

    Links, and arrays stored in other files, are errors: they could read any file that this process may read.
    """

    def __init__(self, label: str, h5py: Any, file: Any, size: int) -> None:
        self._label, self._h5py, self._file, self._size = label, h5py, file, size
        self._read = 0  # bytes of arrays

    def child_of_name(self, path: str, name: str, otherwise: str) -> str:
        """Return the path of the group of a layer in the group `path`; `path/otherwise` if no names are stored."""
        parent = self._group(path)
        paths = {}
        for key in parent:
            child = self._child(parent, key)
            names = self._child(child, "vars") if isinstance(child, self._h5py.Group) and "vars" in child else None
            stored = None if names is None else names.attrs.get("name")
            if isinstance(stored, str):
                paths[stored] = f"{path}/{key}"
        if paths and name not in paths:
            raise FormatError(f"{self._label}: {shown(path)} has no weights of {shown(name)}")
        return paths.get(name, f"{path}/{otherwise}")

    def arrays(self, path: str, count: int) -> list[AnyArray]:
        """Return the numbered variables of a layer or cell.

        Raises
        ------
        FormatError
            Their number is not `count`, or one is not an array of numbers in this file.
        """
        group = self._group(f"{path}/vars")
        if len(group) != count:
            raise FormatError(f"{self._label}: {shown(path)} has {len(group)} variables; expected {count}")
        return [self._array(f"{path}/vars/{k}", self._child(group, str(k))) for k in range(count)]

    def _group(self, path: str) -> Any:
        node = self._file
        for name in path.split("/"):
            if not isinstance(node, self._h5py.Group):
                break
            node = self._child(node, name)
        if not isinstance(node, self._h5py.Group):
            raise FormatError(f"{self._label}: {shown(path)} is not a group")
        return node

    def _child(self, group: Any, name: str) -> Any:
        link = group.get(name, getlink=True)
        if link is None:
            raise FormatError(f"{self._label}: {shown(group.name)} has no {shown(name)}")
        if not isinstance(link, self._h5py.HardLink):
            raise FormatError(f"{self._label}: {shown(name)} in {shown(group.name)} is a soft or external link")
        return group[name]

    def _array(self, path: str, dataset: Any) -> AnyArray:
        if not isinstance(dataset, self._h5py.Dataset) or dataset.shape is None:
            raise FormatError(f"{self._label}: {shown(path)} is not an array")
        if dataset.external or dataset.is_virtual:
            raise FormatError(f"{self._label}: the numbers of {shown(path)} are not in the file")
        # Keras stores bfloat16 as raw bytes, with an attribute for the dtype.
        is_bfloat16 = (
            dataset.dtype.kind == "V" and dataset.dtype.itemsize == 2 and dataset.attrs.get("dtype") == "bfloat16"
        )
        if dataset.dtype.name not in DTYPES and not is_bfloat16:
            allowed = ", ".join(DTYPES)
            raise FormatError(f"{self._label}: {shown(path)} has dtype {dataset.dtype}; expected one of {allowed}")
        # An array may have a fill value instead of numbers, and HDF5 allocates whole chunks: both can exceed the file.
        for kind, shape in (("shape", dataset.shape), ("chunks of shape", dataset.chunks or ())):
            if math.prod(shape) * dataset.dtype.itemsize > self._size:
                raise FormatError(f"{self._label}: {shown(path)} has {kind} {shape}; the file has {self._size} bytes")
        self._read += dataset.nbytes
        if self._read > self._size:
            raise FormatError(
                f"{self._label}: the arrays up to {shown(path)} have {self._read} bytes, but the file only "
                f"{self._size}; expected arrays that are stored once"
            )
        return np.asarray(dataset[()])


def read_weights(
    label: str, contents: bytes, parents: Sequence[tuple[str, str]], cells: Sequence[tuple[str, int]]
) -> list[AnyArray]:
    """Read the variables of a layer; those in bfloat16 as raw bytes.

    Parameters
    ----------
    label : str
        Name of the layer in errors.
    contents : bytes
        The HDF5 file.
    parents : sequence of tuple
        Name and default group of each model that contains the layer, from the outermost, and of the layer itself.
    cells : sequence of tuple
        Path in the layer's group, and number of variables, of each cell.

    Raises
    ------
    FormatError
        The contents are not an HDF5 file, damaged, or lack these variables.
    """
    import h5py

    try:
        with h5py.File(io.BytesIO(contents), "r") as file:
            weights, group = WeightsFile(label, h5py, file, len(contents)), ""
            for name, otherwise in parents:
                group = weights.child_of_name(f"{group}/layers".lstrip("/"), name, otherwise)
            return [array for path, count in cells for array in weights.arrays(f"{group}/{path}", count)]
    except PyrnnxError:
        raise
    except Exception as error:  # of many types, raised while reading
        raise FormatError(
            f"{label}: the weights are damaged, or not an HDF5 file ({printable(shortened(str(error)))})"
        ) from error
