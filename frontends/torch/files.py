"""Files of weights: .safetensors, read array by array, and .pt, read without running code."""

from __future__ import annotations

import io
import os
import pickletools
import re
import warnings
import zipfile
from collections import deque
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any, NamedTuple

from pyrnnx._internal.extras import needs
from pyrnnx._internal.files import is_path, open_regular
from pyrnnx.errors import (
    ArgumentError,
    FormatError,
    PyrnnxError,
    UnsupportedError,
    printable,
    shortened,
    shown,
    wrong_suffix,
)

from .tensors import bfloat16, is_tensor

SAFETENSORS, PICKLED = (".safetensors",), (".pt", ".pth", ".bin", ".ckpt")
OPERATIONS = 2**20  # limit of the pickles of a file: a tensor takes about 40, and loading them all some 6 seconds
SHARED = 100  # limit of all tensors, in sizes of the file: modules may share tensors, which are stored once
_ARCHIVE = b"PK\x03\x04"  # first bytes of a .pt file since PyTorch 1.6
_SCRIPT = "it is a TorchScript archive"
_EXPECTED = "expected only tensors, as written by torch.save(module.state_dict(), path)"
_PICKLES = 5  # of an older file, before the numbers


class _Bounded(io.BufferedReader):
    """A file whose reads allocate at most its size; otherwise a length in a damaged pickle could need 4 GiB."""

    def __init__(self, file: Any, size: int) -> None:
        super().__init__(file)  # a second buffer on the open file
        self._size = size

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(size if size is None else min(size, self._size))


class Arrays(NamedTuple):
    """Names and reader of the arrays of a state_dict or a file; `label` is its name in errors."""

    label: str
    names: Collection[str]
    read: Callable[[str], Any]


def open_arrays(source: Any, closing: ExitStack) -> Arrays:
    """Open a mapping or a path; `closing` closes the file."""
    if isinstance(source, Mapping):
        arrays = _flat(source)
        return Arrays("from_state_dict", arrays, arrays.__getitem__)
    if not is_path(source):
        raise ArgumentError(
            f"from_state_dict: source is {shown(source)}; expected a mapping of arrays, or the path of a "
            ".safetensors or .pt file"
        )
    label, suffix = printable(shortened(os.fspath(source))), Path(source).suffix.lower()
    if suffix in SAFETENSORS:
        return _open_safetensors(label, source, closing)
    if suffix in PICKLED:
        return _load_pickled(label, source)
    allowed = f"one of {', '.join((*SAFETENSORS, *PICKLED))}"
    raise FormatError(f"{label}: {wrong_suffix(source, allowed)}")


def _flat(mapping: Mapping[Any, Any]) -> dict[str, Any]:
    """Flatten nested mappings, with names joined by "."; skip names that are not strings.

    A mapping that occurs several times, even in itself, is visited once.
    """
    flat: dict[str, Any] = {}
    queue: deque[tuple[str, Mapping[Any, Any]]] = deque([("", mapping)])
    seen = {id(mapping)}
    while queue:
        start, inner = queue.popleft()
        for name, value in inner.items():
            if not isinstance(name, str):
                continue
            if not isinstance(value, Mapping):
                flat[start + name] = value
            elif id(value) not in seen:
                seen.add(id(value))
                queue.append((f"{start}{name}.", value))
    return flat


def _open_safetensors(label: str, path: str | os.PathLike[str], closing: ExitStack) -> Arrays:
    try:
        from safetensors import safe_open
    except ImportError as error:
        raise PyrnnxError(needs("reading .safetensors files", "safetensors", "safetensors")) from error
    open_regular("from_state_dict", path, expected="a .safetensors file").close()
    try:
        file = closing.enter_context(safe_open(os.fspath(path), framework="np"))
        names = sorted(file.keys())
    except Exception as error:
        raise FormatError(f"{label}: not a .safetensors file ({_one_line(error)})") from error

    def read(name: str) -> Any:
        dtype = file.get_slice(name).get_dtype()
        if dtype == "BF16":
            bfloat16()  # registers NumPy's name of the dtype, which safetensors uses
        try:
            return file.get_tensor(name)
        except Exception as error:  # a type that NumPy lacks
            raise UnsupportedError(
                f"{label}: {shown(name)} has type {shown(dtype)}; expected F64, F32, F16 or BF16"
            ) from error

    return Arrays(label, names, read)


def _load_pickled(label: str, path: str | os.PathLike[str]) -> Arrays:
    """Load tensors and plain containers with torch.load(weights_only=True), which runs no code of the file."""
    try:
        import torch
    except ImportError as error:
        raise PyrnnxError(
            f"{label}: reading .pt files needs PyTorch; install torch, or save the weights as .safetensors"
        ) from error
    with open_regular("from_state_dict", path, expected="a file of torch.save(module.state_dict(), path)") as file:
        size = os.fstat(file.fileno()).st_size
        bounded = _Bounded(file, size)
        _check_bounds(label, bounded, size)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # PyTorch's, about the file's version of pickle or about its own code
                loaded = torch.load(bounded, map_location="cpu", weights_only=True)
        except MemoryError:
            raise FormatError(f"{label}: its contents exceed memory; the file has {size} bytes") from None
        except Exception as error:  # of pickle, zip files and PyTorch, which differ between versions
            raise FormatError(f"{label}: {_why_not_loaded(error)}; {_EXPECTED}") from error
    if not isinstance(loaded, Mapping):
        raise FormatError(f"{label}: it contains {shown(type(loaded).__name__)}; expected a mapping of tensors")
    return _fitting_arrays(label, _flat(loaded), size)


def _fitting_arrays(label: str, values: Mapping[str, Any], size: int) -> Arrays:
    """Return the tensors of a .pt file, which must have sizes that fit the file; each is read once.

    A tensor may repeat a few numbers by its strides, and many tensors may share their numbers: without a limit, a file
    of 2 kB could need any amount of memory.
    """
    total = 0

    def read(name: str) -> Any:
        nonlocal total
        value = values[name]
        if not is_tensor(value):  # nested lists may repeat each other without limit
            raise FormatError(f"{label}: {shown(name)} is {shown(value)}; expected a tensor")
        own = value.numel() * value.element_size()
        total += own
        if own > size or total > SHARED * size:
            raise FormatError(
                f"{label}: {shown(name)} has shape {tuple(value.shape)}; the tensors up to it have {total} bytes, but "
                f"the file only {size}"
            )
        return value

    return Arrays(label, values, read)


def _check_bounds(label: str, file: IO[bytes], size: int) -> None:
    """Reject an archive that unpacks to more than the file, and pickles of too many operations."""
    is_archive = file.read(len(_ARCHIVE)) == _ARCHIVE
    file.seek(0)
    try:
        if is_archive:
            with zipfile.ZipFile(file) as archive:
                members = archive.infolist()
                if any(member.filename.endswith("/constants.pkl") for member in members):
                    raise FormatError(f"{label}: {_SCRIPT}; {_EXPECTED}")
                unpacked = sum(member.file_size for member in members)
                if unpacked > size:
                    raise FormatError(
                        f"{label}: it unpacks to {unpacked} bytes, and has {size}; expected an archive without "
                        "compression, as torch.save writes it"
                    )
                for member in members:
                    if member.filename.endswith("data.pkl"):
                        with archive.open(member) as pickled:
                            _check_operations(label, pickled, 1)
        else:
            _check_operations(label, file, _PICKLES)
    except PyrnnxError:
        raise
    except Exception:  # of zip files and pickle  # PyTorch says what is wrong
        pass
    finally:
        file.seek(0)


def _check_operations(label: str, file: IO[bytes], pickles: int) -> None:
    count = 0
    for _ in range(pickles):
        for _ in pickletools.genops(file):
            count += 1
            if count > OPERATIONS:
                raise FormatError(f"{label}: its pickle has over {OPERATIONS} operations; expected about 40 a tensor")


def _why_not_loaded(error: Exception) -> str:
    """Return the reason in one line, without PyTorch's advice to load the file unsafely."""
    text = str(error)
    if "TorchScript" in text:
        return _SCRIPT
    refused = re.search(r"GLOBAL (\S+)", text)
    if refused is not None:
        return f"it contains {shown(refused[1])}, which is not a tensor"
    if "weights_only" in text:
        return "it contains more than tensors and plain containers"
    return f"it cannot be read ({_one_line(error)})"


def _one_line(error: Exception) -> str:
    first = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
    return printable(shortened(first))
