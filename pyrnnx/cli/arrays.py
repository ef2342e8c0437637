"""Arrays from files and from the command line, and files of outputs."""

from __future__ import annotations

import os
import warnings
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from pyrnnx._internal import npy
from pyrnnx._internal.dtypes import AnyArray, named_dtype
from pyrnnx._internal.files import open_regular
from pyrnnx._internal.writing import write_files
from pyrnnx.cli.arguments import named
from pyrnnx.config import get_memory_limit
from pyrnnx.errors import ArgumentError, reason_of, shortened, shown
from pyrnnx.operator.tensor_info import TensorInfo

EXPECTED = "NAME=FILE.npy, NAME=NUMBER or FILE.npz"


def read_npz(label: str, path: str) -> dict[str, AnyArray]:
    """Return the arrays of an .npz file, without objects, which could run code, and within the memory limit."""
    with _opened(label, path, "an .npz file, without objects") as file, zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        total, limit = sum(info.file_size for info in members), get_memory_limit()
        if total > limit:
            raise ValueError(f"its arrays take {total} bytes, more than the {limit} allowed")
        arrays = {}
        for info in members:
            with archive.open(info) as member:
                arrays[info.filename.removesuffix(".npy")] = _array(member, info.file_size)
        return arrays


def read_npy(label: str, path: str) -> AnyArray:
    with _opened(label, path, "an .npy file, without objects") as file:
        return _array(file, os.fstat(file.fileno()).st_size)


def _array(file: Any, size: int) -> AnyArray:
    npy.shape_of_npy(file, size)
    file.seek(0)
    return np.asarray(np.lib.format.read_array(file, allow_pickle=False))


@contextmanager
def _opened(label: str, path: str, expected: str) -> Iterator[BinaryIO]:
    """Open a file; raise what its readers raise, of many types, as an ArgumentError, and ignore their warnings."""
    with open_regular(label, path, expected=expected) as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            yield file
        except Exception as error:
            why = reason_of(error)
            raise ArgumentError(f"{label}: {shown(path)} cannot be read ({why}); expected {expected}") from None


def given_inputs(label: str, texts: Sequence[str] | None, infos: Sequence[TensorInfo]) -> dict[str, AnyArray]:
    """Return the values of ``--input`` by the names of inputs, of which texts may use an alias.

    A text is NAME=FILE.npy; NAME=NUMBER, which fills an input of a declared shape; or FILE.npz with arrays by name.
    """
    by_name = {alias: info for info in infos for alias in info.aliases} | {info.name: info for info in infos}
    arrays: dict[str, AnyArray] = {}

    for text in texts or ():
        is_archive = text.lower().endswith(".npz") and not any(text.startswith(f"{name}=") for name in by_name)
        values: Mapping[str, Any] = read_npz(label, text) if is_archive else named(label, [text], EXPECTED)
        for name, value in values.items():
            if name not in by_name:
                raise ArgumentError(f"{label}: {shown(name)} is unknown; {_nearest(name, by_name)}")
            info = by_name[name]
            if info.name in arrays:
                raise ArgumentError(f"{label}: {shown(info.name)} is given twice; expected it once")
            arrays[info.name] = _value(label, info, value) if isinstance(value, str) else value
    return arrays


def _value(label: str, info: TensorInfo, text: str) -> AnyArray:
    """Return the array of a file, or an array filled with a number."""
    suffix = Path(text).suffix.lower()
    if suffix == ".npy":
        return read_npy(label, text)
    where = f"{label}: {shown(info.name)} is {shown(text)}"
    if suffix == ".npz":
        raise ArgumentError(
            f"{where}; expected an .npy file, or {text} without a name, because an .npz file has arrays by name"
        )
    sizes = [size for size in info.shape or () if isinstance(size, int)]
    if info.shape is None or len(sizes) < len(info.shape):
        raise ArgumentError(f"{where}; expected an .npy file: a number is only for inputs of a declared shape")
    try:
        dtype = named_dtype(info.dtype or "float32")
        number: Any = int(text) if dtype.kind in "iub" else float(text)
        return np.full(sizes, number, dtype)
    except (ValueError, OverflowError, TypeError, MemoryError):
        raise ArgumentError(f"{where}; expected an .npy file, or a number of type {info.dtype}") from None


def inputs_of(label: str, texts: Sequence[str] | None, model: str) -> dict[str, AnyArray] | None:
    """Return `given_inputs` for the model at a path, or None without texts; load the model only if it is needed."""
    if not texts:
        return None
    if len(texts) == 1 and texts[0].lower().endswith(".npz") and "=" not in texts[0]:
        return read_npz(label, texts[0])
    from pyrnnx.load import read_model_or_layer

    ports: Any = read_model_or_layer(model).inputs  # the inputs of a single layer have another class
    infos = (
        port if isinstance(port, TensorInfo) else TensorInfo(port.name, port.dtype, tuple(port.shape)) for port in ports
    )
    return given_inputs(label, texts, list(infos))


def _nearest(name: str, names: Mapping[str, Any]) -> str:
    near = get_close_matches(name, names, n=1)
    hint = f"; did you mean {shown(near[0])}?" if near else ""
    return f"expected one of {shortened(', '.join(names))}{hint}" if names else "expected none: there are no inputs"


def write_npz(label: str, path: str, arrays: Mapping[str, Any]) -> None:
    for name, value in arrays.items():
        if not isinstance(value, np.ndarray) or value.dtype.hasobject:
            raise ArgumentError(
                f"{label}: {shown(name)} is a {type(value).__name__}; expected an array of numbers for an .npz file"
            )
    write_files(label, {Path(path): lambda file: npy.write_npz(file, arrays)})
