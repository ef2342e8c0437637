"""The .bin file of an IR: constants that are checked before use and read on demand."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx._internal.files import is_path, open_regular
from pyrnnx.errors import ArgumentError, FormatError, PyrnnxError, shown

from .layer import ConstData, NetLayer
from .storage import File, Memory, check_memory


class BinFile:
    """The constants of an IR.

    A file is opened at once and each constant is read on first use, so opening is fast and an unused constant takes no
    memory. A constant that has been read is a copy: later writes to the file do not change it. Reading a constant from
    a file that has become too short raises a FormatError. The file is closed with the last reference.

    A BinFile can be pickled and copied, with all of its bytes.

    Parameters
    ----------
    source : path, bytes-like or None
        None is for an IR without constants. Bytes are not copied, and must not be changed.
    may_be_absent : bool
        Treat a file that does not exist like None.

    Attributes
    ----------
    origin : str
        Name of the source in errors.
    size : int or None
        Number of bytes; None without a source.

    Raises
    ------
    ArgumentError
        The source has another type, or is a file that cannot be read or is not a regular one.
    """

    def __init__(self, source: Any, *, may_be_absent: bool = False) -> None:
        self._storage: Memory | File | None = None
        if source is None:
            self.origin = "no weights were given"
        elif isinstance(source, (bytes, bytearray, memoryview)):
            self.origin = "the weights that were given"
            try:
                data = np.frombuffer(source, np.uint8)
            except (ValueError, BufferError) as error:  # a memoryview that is not contiguous
                raise ArgumentError(f"read_model: weights cannot be read as bytes ({error})") from None
            self._storage = Memory(data.size, {0: data})
        elif is_path(source):
            self._open(source, may_be_absent)
        else:
            raise ArgumentError(
                f"read_model: weights is {type(source).__name__}; expected the path of a .bin file, or bytes"
            )
        # Constants in use, by `<data>`: one that several layers share is read once.
        self._cache: WeakValueDictionary[ConstData, AnyArray] = WeakValueDictionary()

    def _open(self, path: str | os.PathLike[str], may_be_absent: bool) -> None:
        self.origin = shown(os.fspath(path))
        if may_be_absent and not os.path.exists(path):
            self.origin += ", which does not exist"
            return
        self._storage = File(open_regular("weights", path, expected="the .bin file of an IR"), self.origin)

    @property
    def size(self) -> int | None:
        return None if self._storage is None else self._storage.size

    def only(self, layers: Iterable[NetLayer]) -> BinFile:
        """Return a copy in memory with only the bytes of these constants.

        Raises
        ------
        PyrnnxError
            As in `constant`.
        """
        used = [self._located(layer) for layer in layers]
        if self._storage is None:
            return self
        ends: dict[int, int] = {}
        for data in used:
            if data.elements:
                ends[data.offset] = max(data.end, ends.get(data.offset, 0))
        pieces = {first: self._storage.read("read_model", first, last) for first, last in ends.items()}
        return _restored(self.origin, Memory(self._storage.size, pieces))

    def __reduce__(self) -> tuple[Any, ...]:
        storage = self._storage
        if isinstance(storage, File):
            storage = Memory(storage.size, {0: storage.read("read_model", 0, storage.size)})
        return _restored, (self.origin, storage)

    def check(self, layer: NetLayer) -> None:
        """Check the attributes of a Const without reading its bytes.

        Raises
        ------
        FormatError
            An attribute is missing or not a number, the size does not match shape and type, or the bytes exceed the
            weights.
        """
        self._located(layer)

    def constant(self, layer: NetLayer) -> AnyArray:
        """Return the value of a Const, read-only; without a copy if bytes are in memory and aligned.

        u4, u2 and u1 are unpacked to uint8, i4 to int8, f4e2m1 to ml_dtypes' float4_e2m1fn; boolean is bool.

        Raises
        ------
        PyrnnxError
            As in `check`; or the element type is not supported, the file has become too short or cannot be read, or the
            constant exceeds `pyrnnx.get_memory_limit`.
        """
        data = self._located(layer)
        array = self._cache.get(data)
        if array is None:
            array = self._cache[data] = self._read(layer.label, data)
            array.flags.writeable = False
        return array

    def _read(self, label: str, data: ConstData) -> AnyArray:
        dtype = data.element_type.numpy_dtype(label)
        if not data.elements or self._storage is None:
            return np.zeros(data.shape, dtype)
        check_memory(label, data.elements * dtype.itemsize)
        raw = self._storage.read(label, data.offset, data.end)
        try:
            return _values(raw, data, dtype).reshape(data.shape)
        except MemoryError as error:
            raise PyrnnxError(f"{label}: its {data.elements} elements of {dtype} exceed memory ({error})") from error

    def _located(self, layer: NetLayer) -> ConstData:
        data = layer.const_data
        if not data.elements:
            return data
        if self.size is None:
            reason = self.origin if self.origin.startswith("no") else f"the weights are in {self.origin}"
            raise FormatError(
                f"{layer.label}: its {data.size} bytes are needed, but {reason}; expected the .bin file next to the "
                ".xml, or in Python weights=..., a path or bytes"
            )
        if data.end > self.size:
            raise FormatError(
                f"{layer.label}: offset {data.offset} and size {data.size} exceed the {self.size} bytes of "
                f"{self.origin}"
            )
        return data


def _restored(origin: str, storage: Memory | None) -> BinFile:
    restored = BinFile(None)
    restored.origin, restored._storage = origin, storage
    return restored


def _values(raw: AnyArray, data: ConstData, dtype: np.dtype[Any]) -> AnyArray:
    """Return the elements in bytes, one-dimensional."""
    if data.element_type.packed:
        return _unpacked(raw, data).view(dtype)
    if dtype == np.bool_:
        return np.not_equal(raw, 0)
    if raw.ctypes.data % dtype.alignment:
        raw = raw.copy()
    return raw.view(dtype)


def _unpacked(raw: AnyArray, data: ConstData) -> AnyArray:
    """Unpack elements of less than a byte: u1 begins with the highest bit, the others with the lowest."""
    bits = data.element_type.bits or 8
    if bits == 1:
        return np.unpackbits(raw, count=data.elements)
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    parts: AnyArray = (raw[:, np.newaxis] >> shifts & (255 >> 8 - bits)).reshape(-1)[: data.elements]
    if data.element_type.dtype == "int8":
        return np.subtract((parts ^ 8).astype(np.int8), np.int8(8))
    return parts
