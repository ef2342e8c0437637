"""The .bin file of an IR: constants that are checked before use and read on demand."""

from __future__ import annotations

import os
import weakref
from typing import Any, BinaryIO

import numpy as np

from pyrnnx import config
from pyrnnx._internal.dtypes import AnyArray
from pyrnnx._internal.files import is_path, open_regular
from pyrnnx.errors import ArgumentError, FormatError, PyrnnxError, shown

from .layer import ConstData, NetLayer

CHUNK = 2**30  # bytes of one read; nearly every constant fits into one


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
        self._data: AnyArray | _File | None = None
        if source is None:
            self.origin = "no weights were given"
        elif isinstance(source, (bytes, bytearray, memoryview)):
            self.origin = "the weights that were given"
            try:
                self._data = np.frombuffer(source, np.uint8)
            except (ValueError, BufferError) as error:  # a memoryview that is not contiguous
                raise ArgumentError(f"read_model: weights cannot be read as bytes ({error})") from None
        elif not is_path(source):
            raise ArgumentError(
                f"read_model: weights is {type(source).__name__}; expected the path of a .bin file, or bytes"
            )
        elif may_be_absent and not os.path.exists(source):
            self.origin = f"{shown(os.fspath(source))}, which does not exist"
        else:
            self.origin = shown(os.fspath(source))
            self._data = _File(open_regular("weights", source, expected="the .bin file of an IR"), self.origin)
        # Constants in use, by `<data>`: one that several layers share is read once.
        self._cache: weakref.WeakValueDictionary[ConstData, AnyArray] = weakref.WeakValueDictionary()

    @property
    def size(self) -> int | None:
        return None if self._data is None else self._data.size

    def __reduce__(self) -> tuple[Any, ...]:
        data = self._data
        if isinstance(data, _File):
            return _restored, (self.origin, data.read("read_model", 0, data.size))
        return _restored, (self.origin, None if data is None else data.tobytes())

    def check(self, layer: NetLayer) -> None:
        """Check the attributes of a Const without reading its bytes.

        Raises
        ------
        FormatError
            An attribute is missing or not a number, the size does not match shape and type, or the bytes exceed the
            weights.
        """
        data = layer.const_data
        if not data.elements:
            return
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

    def constant(self, layer: NetLayer) -> AnyArray:
        """Return the value of a Const, read-only; without a copy if bytes are in memory and aligned.

        u4, u2 and u1 are unpacked to uint8, i4 to int8, f4e2m1 to ml_dtypes' float4_e2m1fn; boolean is bool.

        Raises
        ------
        PyrnnxError
            As in `check`; or the element type is not supported, the file has become too short or cannot be read, or the
            constant exceeds `pyrnnx.get_memory_limit`.
        """
        self.check(layer)
        data = layer.const_data
        array = self._cache.get(data)
        if array is None:
            array = self._cache[data] = self._read(layer.label, data)
            array.flags.writeable = False
        return array

    def _read(self, label: str, data: ConstData) -> AnyArray:
        dtype = data.element_type.numpy_dtype(label)
        if not data.elements or self._data is None:
            return np.zeros(data.shape, dtype)
        size, limit = data.elements * dtype.itemsize, config.get_memory_limit()
        if size > limit:
            raise PyrnnxError(
                f"{label}: its {size} bytes exceed the limit of {limit}; pyrnnx.set_memory_limit(...) allows more"
            )
        if isinstance(self._data, _File):
            raw = np.frombuffer(self._data.read(label, data.offset, data.end), np.uint8)
        else:
            raw = self._data[data.offset : data.end]
        return _values(raw, data, dtype).reshape(data.shape)


class _File:
    """An open file, closed with the last reference to this object."""

    def __init__(self, file: BinaryIO, origin: str) -> None:
        self._file, self._origin = file, origin
        self.size = os.fstat(file.fileno()).st_size
        weakref.finalize(self, file.close)

    def read(self, label: str, first: int, last: int) -> bytes:
        pieces: list[bytes] = []
        while first < last:
            try:
                # pread does not move the file position, which threads and forked processes share.
                pieces.append(os.pread(self._file.fileno(), min(CHUNK, last - first), first))
            except OSError as error:
                raise FormatError(f"{label}: {self._origin} cannot be read ({error})") from error
            if not pieces[-1]:
                raise FormatError(
                    f"{label}: {self._origin} ends at byte {first}, before byte {last}, the end of the constant: it "
                    f"had {self.size} bytes when it was opened; expected a file that does not change"
                )
            first += len(pieces[-1])
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _restored(origin: str, data: bytes | None) -> BinFile:
    restored = BinFile(data)
    restored.origin = origin
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
