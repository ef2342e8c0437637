"""The .bin file beside an IR: its constants, checked before they are used, and read where they lie."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from pyrnnx.dtypes import AnyArray
from pyrnnx.errors import ArgumentError, FormatError, PyrnnxError, shown
from pyrnnx.files import open_regular

from .const_data import ConstData
from .layer import NetLayer
from .storage import File, Memory, Range, check_memory, merged


class BinFile:
    """The constants of an IR.

    A file is opened, and each constant read when it is asked for: opening takes no time, and a constant no memory when
    it is no longer used. Who writes to the file meanwhile gets what stands there then; where it has become too short, a
    FormatError. Constants that have been read are copies, and stay what they are. The file is closed with the last
    reference.

    It can be pickled and copied, with all of its bytes.

    Parameters
    ----------
    source : path, bytes-like or None
        None serves an IR without constants. Bytes are not copied, and must not be changed.
    may_be_absent : bool
        A file that does not exist is as None.

    Attributes
    ----------
    origin : str
        How errors name the source.
    size : int or None
        In bytes; None where there is no source.

    Raises
    ------
    ArgumentError
        Another type; a file that cannot be read, or is no regular one.
    """

    def __init__(self, source: Any, *, may_be_absent: bool = False) -> None:
        self._storage: Memory | File | None = None
        if source is None:
            self.origin = "no weights were given"
        elif isinstance(source, (bytes, bytearray, memoryview)):
            self.origin = "the weights that were given"
            try:
                data = np.frombuffer(source, np.uint8)
            except (ValueError, BufferError) as error:  # a memoryview with gaps
                raise ArgumentError(f"read_model: weights cannot be taken as bytes ({error})") from None
            self._storage = Memory(data.size, [(0, data)])
        elif isinstance(source, (str, os.PathLike)):
            self._open(source, may_be_absent)
        else:
            raise ArgumentError(
                f"read_model: weights is {type(source).__name__}; expected the path of a .bin file, or bytes"
            )
        # By its `<data>`, while it is in use: a constant that several layers take is read once.
        self._kept: WeakValueDictionary[ConstData, AnyArray] = WeakValueDictionary()

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
        """A .bin in memory, of which only the bytes of these constants can be asked for.

        Raises
        ------
        PyrnnxError
            As of `constant`.
        """
        used = [self._located(layer) for layer in layers]
        if self._storage is None:
            return self
        ranges = merged((one.offset, one.end) for one in used if one.elements)
        return _restored(self.origin, _copied(self._storage, ranges))

    def __reduce__(self) -> tuple[Any, ...]:
        storage = self._storage
        if storage is not None:
            whole = isinstance(storage, File)
            storage = _copied(storage, [(0, storage.size)]) if whole else storage
        return _restored, (self.origin, storage)

    def check(self, layer: NetLayer) -> None:
        """Reject a Const that does not lie in the weights, or that contradicts itself; reads nothing of it.

        Raises
        ------
        FormatError
            Attributes that are missing or no numbers, a size that is not that of shape and type, bytes outside.
        """
        self._located(layer)

    def constant(self, layer: NetLayer) -> AnyArray:
        """The value of a Const, read-only: the given bytes themselves where their alignment allows it, else a copy.

        u4, u2 and u1 are unpacked to uint8, i4 to int8, f4e2m1 to ml_dtypes' float4_e2m1fn; boolean is bool.

        Raises
        ------
        PyrnnxError
            What `check` rejects; an element type whose values are not read; a file that has become too short or cannot
            be read; a constant of more bytes than `pyrnnx.get_memory_limit` allows.
        """
        data = self._located(layer)
        array = self._kept.get(data)
        if array is None:
            array = self._kept[data] = self._read(layer.label, data)
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
            given = self.origin if self.origin.startswith("no") else f"the weights are in {self.origin}"
            raise FormatError(
                f"{layer.label}: its {data.size} bytes are needed, and {given}; expected the .bin file beside it, "
                f"or in Python weights=..., a path or bytes"
            )
        if data.end > self.size:
            raise FormatError(
                f"{layer.label}: offset {data.offset} and size {data.size} lead beyond the end of {self.origin}, "
                f"which has {self.size} bytes"
            )
        return data


def _copied(storage: Memory | File, ranges: Sequence[Range]) -> Memory:
    """These bytes of it, in memory."""
    return Memory(storage.size, [(first, storage.read("read_model", first, last)) for first, last in ranges])


def _restored(origin: str, storage: Memory | None) -> BinFile:
    restored = BinFile(None)
    restored.origin, restored._storage = origin, storage
    return restored


def _values(raw: AnyArray, data: ConstData, dtype: np.dtype[Any]) -> AnyArray:
    """Bytes to elements, one-dimensional."""
    if data.element_type.packed:
        return _unpacked(raw, data).view(dtype)
    if dtype == np.bool_:
        return np.not_equal(raw, 0)
    if raw.ctypes.data % dtype.alignment:
        raw = raw.copy()
    return raw.view(dtype)


def _unpacked(raw: AnyArray, data: ConstData) -> AnyArray:
    """u1 begins with the highest bit of a byte; the others with its lowest."""
    bits = data.element_type.bits or 8
    if bits == 1:
        return np.unpackbits(raw, count=data.elements)
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    parts: AnyArray = (raw[:, np.newaxis] >> shifts & (255 >> 8 - bits)).reshape(-1)[: data.elements]
    if data.element_type.dtype == "int8":
        return np.subtract((parts ^ 8).astype(np.int8), np.int8(8))
    return parts
