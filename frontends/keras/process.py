"""HDF5 weights of a .keras file, read in a process of its own, because HDF5 may hang or crash on a damaged file.

Groups have Keras' paths; arrays must be stored in the file itself.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np

from pyrnnx._internal.child_process import Child, DiedError, serve
from pyrnnx._internal.dtypes import AnyArray
from pyrnnx._internal.extras import import_package, needs
from pyrnnx.errors import FormatError, PyrnnxError, printable, shortened, shown

SECONDS = 60.0  # time limit of the process for an empty file
BYTES_A_SECOND = 2**24  # further bytes for each further second of the limit
LONGEST_MESSAGE = 2**16  # bytes
DTYPES = ("float16", "float32", "float64")  # of HDF5; Keras stores bfloat16 as raw bytes

_PROGRAM = "from pyrnnx.frontends.keras.process import main; main()"
_ARRAYS, _REJECTED = b"A", b"R"  # first byte of an answer: arrays one after another, as .npy; text of a FormatError


def read_weights(
    label: str, contents: bytes, parents: Sequence[tuple[str, str]], cells: Sequence[tuple[str, int]]
) -> list[AnyArray]:
    """Run `read_variables` in a process, safe from damaged and malicious files."""
    if find_spec("h5py") is None:
        raise PyrnnxError(needs("reading .keras files", "h5py", "keras"))
    request = json.dumps({"label": label, "parents": parents, "cells": cells}).encode()
    seconds = SECONDS + len(contents) / BYTES_A_SECOND
    try:
        with Child.start(_PROGRAM) as child:
            answer = io.BytesIO(child.ask(request, b"\n", contents, timeout=seconds))
    except TimeoutError:
        raise FormatError(f"{label}: the weights are damaged (HDF5 did not finish in {seconds:.0f} s)") from None
    except DiedError as error:
        if error.status == 1:  # an unexpected exception
            raise PyrnnxError(
                f"{label}: the Python process that reads the weights failed; check that h5py works"
            ) from None
        raise FormatError(
            f"{label}: the weights are damaged (HDF5 crashed on them, exit status {error.status})"
        ) from None
    except OSError as error:
        raise PyrnnxError(
            f"{label}: the weights cannot be read in another process ({shortened(str(error))})"
        ) from error
    if answer.read(1) == _REJECTED:
        raise FormatError(answer.read(LONGEST_MESSAGE).decode(errors="replace"))
    return [_array(label, answer) for _, count in cells for _ in range(count)]


def _array(label: str, answer: io.BytesIO) -> AnyArray:
    try:
        array: AnyArray = np.load(answer, allow_pickle=False)
    except (ValueError, EOFError, MemoryError) as error:
        raise FormatError(f"{label}: the weights cannot be read ({shortened(str(error))})") from error
    if array.dtype.kind == "V":
        array = array.view(import_package("ml_dtypes", f"{label}: reading weights in bfloat16", "onnx").bfloat16)
    return array


def main() -> None:
    serve(_answer)


def _answer(message: bytes) -> bytes:
    """Answer a line of JSON and an HDF5 file with its arrays, or with what is wrong with it."""
    head, _, contents = message.partition(b"\n")
    request = json.loads(head)
    try:
        arrays = read_variables(request["label"], contents, request["parents"], request["cells"])
    except FormatError as error:
        return _REJECTED + str(error).encode(errors="backslashreplace")
    answer = io.BytesIO()
    answer.write(_ARRAYS)
    for array in arrays:
        np.save(answer, array, allow_pickle=False)
    return answer.getvalue()


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


def read_variables(
    label: str, contents: bytes, parents: Sequence[tuple[str, str]], cells: Sequence[tuple[str, int]]
) -> list[AnyArray]:
    """Read the variables of each cell (path, count) of a layer below its parents (name, default group)."""
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
