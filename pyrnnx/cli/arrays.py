"""Arrays of files and of the command line, and arrays in a few numbers."""

from __future__ import annotations

import math
import os
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from pyrnnx.cli.arguments import named
from pyrnnx.config import get_memory_limit
from pyrnnx.dtypes import AnyArray, named_dtype
from pyrnnx.errors import ArgumentError, PyrnnxError, shortened, shown
from pyrnnx.files import check_writable, open_regular, write_files
from pyrnnx.tensor_info import TensorInfo

_ARCHIVES, _ARRAYS = (".npz",), (".npy",)
_ZIP, _MAGIC = b"PK\x03\x04", np.lib.format.MAGIC_PREFIX


def read_npz(label: str, path: str, accept: Callable[[str], object] = lambda name: None) -> dict[str, AnyArray]:
    """The arrays of an .npz file.

    Parameters
    ----------
    label : str
        Who reads it, as errors name it.
    path : str
    accept : callable
        Is called with each name before anything is read, and raises of one that is not wanted.

    Raises
    ------
    ArgumentError
        A file that is not there, is no .npz file, or holds objects, which would run code, or something else than
        arrays; arrays that do not lie in it, or that take more than `pyrnnx.get_memory_limit`.
    """
    with open_regular(label, path, expected="an .npz file") as file:
        if file.read(len(_MAGIC)) == _MAGIC:
            raise ArgumentError(f"{label}: {shown(path)} holds one array; expected an .npz file")
        with _told(label, path, "an .npz file"), zipfile.ZipFile(file) as archive:
            members = {one.filename.removesuffix(".npy"): one for one in archive.infolist()}
            for name in members:
                accept(name)
            total, limit = sum(one.file_size for one in members.values()), get_memory_limit()
            if total > limit:
                raise ValueError(f"its arrays take {total} bytes, more than the {limit} allowed")
            found = {}
            for name, one in members.items():
                with archive.open(one) as member:
                    found[name] = _array(member, one.file_size)
            return found


def read_npy(label: str, path: str) -> AnyArray:
    """The array of an .npy file.

    Raises
    ------
    ArgumentError
        A file that is not there, is no .npy file, or holds objects; an array that does not lie in it.
    """
    with open_regular(label, path, expected="an .npy file") as file:
        if file.read(len(_ZIP)) == _ZIP:
            raise ArgumentError(f"{label}: {shown(path)} is an .npz file; expected an .npy file")
        file.seek(0)
        with _told(label, path, "an .npy file"):
            return _array(file, os.fstat(file.fileno()).st_size)


def _array(file: Any, size: int) -> AnyArray:
    """What stands in a file of so many bytes; NumPy makes room for what the header says before it reads."""
    read_header = {(1, 0): np.lib.format.read_array_header_1_0}
    version = np.lib.format.read_magic(file)
    shape, _, dtype = read_header.get(version, np.lib.format.read_array_header_2_0)(file)
    if min(shape, default=0) < 0:  # which old versions of NumPy take
        raise ValueError(f"its shape {shape} has a size below 0")
    needed = math.prod(shape) * dtype.itemsize
    if not dtype.hasobject and needed > size:
        raise ValueError(f"its shape {shape} and type {dtype} take {needed} bytes; it has {size}")
    file.seek(0)
    array = np.lib.format.read_array(file, allow_pickle=False)
    return np.asarray(array)


@contextmanager
def _told(label: str, path: str, expected: str) -> Iterator[None]:
    """What NumPy and zipfile raise, of many types, as an ArgumentError."""
    try:
        yield
    except PyrnnxError:
        raise
    except Exception as error:
        why = shortened(" ".join(str(error).split()) or type(error).__name__)
        raise ArgumentError(
            f"{label}: {shown(path)} cannot be read ({why}); expected {expected}, without objects"
        ) from None


def given_inputs(label: str, texts: Sequence[str] | None, infos: Sequence[TensorInfo]) -> dict[str, AnyArray]:
    """What ``--input`` says, by the names of inputs.

    Parameters
    ----------
    label : str
        The command and the option, as errors name them.
    texts : sequence of str
        NAME=FILE.npy; NAME=NUMBER, for an input of a declared shape, filled with that; or FILE.npz, of arrays by name.
    infos : sequence of TensorInfo
        The inputs that there are; of each a name or an alias.

    Raises
    ------
    ArgumentError
        A text of another form; a file that cannot be read; a name that no input has, or that is given twice.
    """
    by_name = {alias: info for info in infos for alias in info.aliases} | {info.name: info for info in infos}
    found: dict[str, AnyArray] = {}

    def known(name: str) -> TensorInfo:
        if name not in by_name:
            raise ArgumentError(f"{label}: {shown(name)} is unknown; {_nearest(name, by_name)}")
        return by_name[name]

    def put(name: str, make: Callable[[TensorInfo], AnyArray]) -> None:
        info = known(name)
        if info.name in found:
            raise ArgumentError(f"{label}: {shown(info.name)} is given twice")
        found[info.name] = make(info)

    for one in texts or ():
        if one.lower().endswith(_ARCHIVES) and not any(one.startswith(f"{name}=") for name in by_name):
            for name, array in read_npz(label, one, known).items():
                put(name, lambda _, array=array: array)  # type: ignore[misc]
            continue
        for name, value in named(label, [one], "NAME=FILE.npy, NAME=NUMBER or FILE.npz").items():
            if value.lower().endswith(_ARCHIVES):
                raise ArgumentError(
                    f"{label}: {shown(name)} is {shown(value)}; expected an .npy file, or {value} alone, without a "
                    "name: an .npz file has arrays by their names"
                )
            if value.lower().endswith(_ARRAYS):
                put(name, lambda _, value=value: read_npy(label, value))  # type: ignore[misc]
            else:
                put(name, lambda info, value=value: _filled(label, info, value))  # type: ignore[misc]
    return found


def inputs_of(label: str, texts: Sequence[str] | None, model: str) -> dict[str, AnyArray] | None:
    """As `given_inputs`, of a model's path: loaded where inputs have names; None where nothing is given."""
    if not texts:
        return None
    if len(texts) == 1 and texts[0].lower().endswith(_ARCHIVES) and "=" not in texts[0]:
        return read_npz(label, texts[0])
    from pyrnnx.load import load

    ports: Any = load(model).inputs  # those of a layer that stands alone are of another class
    infos = [one if isinstance(one, TensorInfo) else TensorInfo(one.name, one.dtype, tuple(one.shape)) for one in ports]
    return given_inputs(label, texts, infos)


def _nearest(name: str, names: Mapping[str, Any]) -> str:
    near = get_close_matches(name, names, n=1)
    hint = f"; did you mean {shown(near[0])}?" if near else ""
    return f"expected one of {shortened(', '.join(names))}{hint}" if names else "expected none, for there are no inputs"


def _filled(label: str, info: TensorInfo, text: str) -> AnyArray:
    """An array of one number."""
    shape = info.shape
    if shape is None or not all(isinstance(size, int) for size in shape):
        raise ArgumentError(
            f"{label}: {shown(info.name)} is {shown(text)}; expected an .npy file: only an input whose shape is "
            "declared can be a number"
        )
    try:
        dtype = named_dtype(info.dtype or "float32")
        number: Any = int(text) if dtype.kind in "iub" else float(text)
        return np.full(tuple(size for size in shape if isinstance(size, int)), number, dtype)
    except (ValueError, OverflowError, TypeError, MemoryError):
        raise ArgumentError(
            f"{label}: {shown(info.name)} is {shown(text)}; expected an .npy file, or a number of type {info.dtype}"
        ) from None


def check_npz(label: str, path: str) -> None:
    """Whether `write_npz` may write there, as far as can be told before.

    Raises
    ------
    ArgumentError
        Another suffix; as of `check_writable`.
    """
    if Path(path).suffix.lower() not in _ARCHIVES:
        raise ArgumentError(f"{label}: {shown(path)}; expected the name of an .npz file")
    check_writable(label, path)


def write_npz(label: str, path: str, arrays: Mapping[str, Any]) -> None:
    """Arrays by name to a new .npz file; one that is there is replaced at once, or stays as it is.

    Raises
    ------
    ArgumentError
        What `check_npz` rejects; values that are no arrays of numbers; a file that cannot be written.
    """
    check_npz(label, path)
    for name, value in arrays.items():
        if not isinstance(value, np.ndarray) or value.dtype.hasobject:
            raise ArgumentError(f"{label}: {shown(name)} is a {type(value).__name__}, which no .npz file holds")

    def write(file: BinaryIO) -> None:
        # One after the other into the archive, for a name may be any text, "file" too.
        with zipfile.ZipFile(file, "w") as archive:
            for name, value in arrays.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, np.asanyarray(value), allow_pickle=False)

    write_files(label, {Path(path): write})


def summary(value: Any) -> dict[str, Any]:
    """An array as values of JSON: "dtype", "shape", and of numbers "min", "mean", "max" (NaN aside) and "nan"."""
    if not isinstance(value, (np.ndarray, np.generic)):
        return {"kind": type(value).__name__, "length": len(value) if hasattr(value, "__len__") else None}
    array = np.asarray(value)
    found: dict[str, Any] = {"dtype": array.dtype.name, "shape": list(array.shape)}
    if array.dtype.kind not in "biufV" or array.dtype.names:
        return found
    wide = array.astype(np.float64)
    numbers = wide[~np.isnan(wide)]
    with np.errstate(invalid="ignore", over="ignore"):  # infinities of both signs
        many = {"min": numbers.min(), "mean": numbers.mean(), "max": numbers.max()} if numbers.size else {}
    return {**found, **{name: float(one) for name, one in many.items()}, "nan": int(wide.size - numbers.size)}


def seconds(value: float) -> str:
    """A duration for a person: "1.23 ms"."""
    if value <= 0 or not math.isfinite(value):
        return f"{value:g} s"
    for factor, unit in ((1, "s"), (1e-3, "ms"), (1e-6, "us")):
        if value >= factor:
            return f"{value / factor:.3g} {unit}"
    return f"{value * 1e9:.3g} ns"
