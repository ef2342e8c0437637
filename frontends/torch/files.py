"""Files of weights: .safetensors, read array by array, and .pt, of which nothing but arrays in containers is read."""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from pyrnnx.errors import ArgumentError, FormatError, PyrnnxError, UnsupportedError, printable, shortened, shown
from pyrnnx.files import open_regular

from .tensors import bfloat16, is_tensor

SAFETENSORS, PICKLED = (".safetensors",), (".pt", ".pth", ".bin", ".ckpt")
SHARED = 100  # times the bytes of a file: modules may share tensors, which are in the file once


class SafetensorsArrays(Mapping[str, Any]):
    """The arrays of a .safetensors file by name; each is read when it is asked for."""

    def __init__(self, label: str, file: Any) -> None:
        self._label, self._file = label, file
        self._names = dict.fromkeys(sorted(file.keys()))

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._names  # that of Mapping would read the array

    def __getitem__(self, name: str) -> Any:
        if name not in self._names:
            raise KeyError(name)
        dtype = self._file.get_slice(name).get_dtype()
        if dtype == "BF16":
            bfloat16()  # from then on NumPy knows the name, by which safetensors asks for it
        try:
            return self._file.get_tensor(name)
        except Exception as error:  # a type that NumPy has not
            raise UnsupportedError(
                f"{self._label}: {shown(name)} is of the type {shown(dtype)}; expected F64, F32, F16 or BF16"
            ) from error


class PickledArrays(Mapping[str, Any]):
    """The tensors of a .pt file by name, each of a size that the file can hold.

    A tensor may lie on a few numbers many times over, and so may many tensors on the same: a file of 2 kB can ask for
    any amount of memory.
    """

    def __init__(self, label: str, found: Mapping[str, Any], size: int) -> None:
        self._label, self._found, self._size = label, found, size
        self._read, self._total = set[str](), 0

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def __contains__(self, name: object) -> bool:
        return name in self._found

    def __getitem__(self, name: str) -> Any:
        value = self._found[name]
        if not is_tensor(value):  # a list, in which lists may stand many times over
            raise FormatError(f"{self._label}: {shown(name)} is {shown(value)}; expected a tensor")
        size = value.numel() * value.element_size()
        if name not in self._read:
            self._read.add(name)
            self._total += size
        if size > self._size or self._total > SHARED * self._size:
            raise FormatError(
                f"{self._label}: {shown(name)} has shape {tuple(value.shape)}, and with what is before it "
                f"{self._total} bytes; the file has {self._size}"
            )
        return value


def open_arrays(source: Any, closing: ExitStack) -> tuple[str, Mapping[str, Any]]:
    """How errors name a source, and what it holds by name; containers in each other are joined by ".".

    Parameters
    ----------
    source : mapping, or path
    closing : contextlib.ExitStack
        Closes the file that the arrays are read from.

    Raises
    ------
    PyrnnxError
        Something else; a file that cannot be read, or holds more than arrays; a package that is not installed.
    """
    if isinstance(source, Mapping):
        return "from_state_dict", _flat(source)
    if not isinstance(source, (str, os.PathLike)) or not isinstance(os.fspath(source), str):
        raise ArgumentError(
            f"from_state_dict: source is {shown(source)}; expected a mapping of arrays, or the path of a "
            ".safetensors or .pt file"
        )
    label, suffix = printable(shortened(os.fspath(source))), Path(source).suffix.lower()
    if suffix in SAFETENSORS:
        return label, _open_safetensors(label, source, closing)
    if suffix in PICKLED:
        return label, _load_pickled(label, source)
    allowed = ", ".join((*SAFETENSORS, *PICKLED))
    raise FormatError(f"{label}: the file name ends in {shown(suffix)}; expected one of {allowed}")


def _flat(mapping: Mapping[Any, Any]) -> dict[str, Any]:
    """Mappings in mappings as one, by names joined with "."; what has another name than a string is left out.

    A mapping that stands in several places is found at the first: it may be in itself.
    """
    found: dict[str, Any] = {}
    waiting: deque[tuple[str, Mapping[Any, Any]]] = deque([("", mapping)])
    seen = {id(mapping)}
    while waiting:
        start, one = waiting.popleft()
        for name, value in one.items():
            if not isinstance(name, str):
                continue
            if not isinstance(value, Mapping):
                found[start + name] = value
            elif id(value) not in seen:
                seen.add(id(value))
                waiting.append((f"{start}{name}.", value))
    return found


def _open_safetensors(label: str, path: str | os.PathLike[str], closing: ExitStack) -> SafetensorsArrays:
    try:
        from safetensors import safe_open
    except ImportError as error:
        raise PyrnnxError(
            "reading .safetensors files needs the safetensors package; install pyrnnx[safetensors]"
        ) from error
    open_regular("from_state_dict", path, expected="a .safetensors file").close()
    try:
        return SafetensorsArrays(label, closing.enter_context(safe_open(os.fspath(path), framework="np")))
    except Exception as error:
        raise FormatError(f"{label}: no .safetensors file ({_one_line(error)})") from error


def _load_pickled(label: str, path: str | os.PathLike[str]) -> PickledArrays:
    """What torch.load gives with weights_only: it makes tensors and plain containers, and runs nothing of the file."""
    try:
        import torch
    except ImportError as error:
        raise PyrnnxError(
            f"{label}: reading .pt files needs PyTorch; install torch, or save the weights as .safetensors"
        ) from error
    with open_regular("from_state_dict", path, expected="a file of torch.save(module.state_dict(), path)") as file:
        size = os.fstat(file.fileno()).st_size
        try:
            loaded = torch.load(file, map_location="cpu", weights_only=True)
        except MemoryError:
            raise FormatError(f"{label}: what it holds exceeds memory; the file has {size} bytes") from None
        except Exception as error:  # of pickle, zip files and PyTorch, whose errors differ between its versions
            raise FormatError(
                f"{label}: {_why_not_loaded(error)}; expected tensors alone, as "
                "of torch.save(module.state_dict(), path)"
            ) from error
    if not isinstance(loaded, Mapping):
        raise FormatError(f"{label}: holds {shown(type(loaded).__name__)}; expected a mapping of tensors")
    return PickledArrays(label, _flat(loaded), size)


def _why_not_loaded(error: Exception) -> str:
    """In one line, without PyTorch's advice to read the file unsafely."""
    text = str(error)
    if "TorchScript" in text:
        return "it is a TorchScript archive"
    refused = re.search(r"GLOBAL (\S+)", text)
    if refused is not None:
        return f"it holds {shown(refused[1])}, which is no tensor"
    if "weights_only" in text:
        return "it is no file of tensors and plain containers"
    return f"it cannot be read ({_one_line(error)})"


def _one_line(error: Exception) -> str:
    first = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
    return printable(shortened(first))
