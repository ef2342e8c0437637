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

from .layer import NetLayer
from .place import Place
from .storage import File, Memory, Range, check_memory, merged


class Weights:
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
        # By place, while it is in use: a constant that several layers take is read once.
        self._kept: WeakValueDictionary[Place, AnyArray] = WeakValueDictionary()

    def _open(self, path: str | os.PathLike[str], may_be_absent: bool) -> None:
        self.origin = shown(os.fspath(path))
        if may_be_absent and not os.path.exists(path):
            self.origin += ", which does not exist"
            return
        self._storage = File(open_regular("weights", path, expected="the .bin file of an IR"), self.origin)

    @property
    def size(self) -> int | None:
        return None if self._storage is None else self._storage.size

    def only(self, layers: Iterable[NetLayer]) -> Weights:
        """Weights in memory, of which only the bytes of these constants can be asked for.

        Raises
        ------
        PyrnnxError
            As of `constant`.
        """
        places = [self._place(layer) for layer in layers]
        if self._storage is None:
            return self
        ranges = merged((one.offset, one.end) for one in places if one.elements)
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
        self._place(layer)

    def constant(self, layer: NetLayer) -> AnyArray:
        """The value of a Const, read-only: the given bytes themselves where their alignment allows it, else a copy.

        u4, i4 and u1 are unpacked to uint8, int8 and uint8 (0 or 1); boolean is bool.

        Raises
        ------
        PyrnnxError
            What `check` rejects; an element type whose values are not read; a file that has become too short or cannot
            be read; a constant of more bytes than `pyrnnx.get_memory_limit` allows.
        """
        place = self._place(layer)
        array = self._kept.get(place)
        if array is None:
            array = self._kept[place] = self._read(layer.label, place)
            array.flags.writeable = False
        return array

    def _read(self, label: str, place: Place) -> AnyArray:
        dtype = place.element_type.numpy_dtype(label)
        if not place.elements or self._storage is None:
            return np.zeros(place.shape, dtype)
        check_memory(label, place.elements * dtype.itemsize)
        raw = self._storage.read(label, place.offset, place.end)
        try:
            return _values(raw, place, dtype).reshape(place.shape)
        except MemoryError as error:
            raise PyrnnxError(f"{label}: its {place.elements} elements of {dtype} exceed memory ({error})") from error

    def _place(self, layer: NetLayer) -> Place:
        place = layer.place
        if not place.elements:
            return place
        if self.size is None:
            given = self.origin if self.origin.startswith("no") else f"the weights are in {self.origin}"
            raise FormatError(
                f"{layer.label}: its {place.size} bytes are needed, and {given}; pass weights=..., a path or bytes"
            )
        if place.end > self.size:
            raise FormatError(
                f"{layer.label}: offset {place.offset} and size {place.size} lead beyond the end of {self.origin}, "
                f"which has {self.size} bytes"
            )
        return place


def _copied(storage: Memory | File, ranges: Sequence[Range]) -> Memory:
    """These bytes of it, in memory."""
    return Memory(storage.size, [(first, storage.read("read_model", first, last)) for first, last in ranges])


def _restored(origin: str, storage: Memory | None) -> Weights:
    weights = Weights(None)
    weights.origin, weights._storage = origin, storage
    return weights


def _values(raw: AnyArray, place: Place, dtype: np.dtype[Any]) -> AnyArray:
    """Bytes to elements, one-dimensional."""
    if place.element_type.packed:
        return _unpacked(raw, place)
    if dtype == np.bool_:
        return np.not_equal(raw, 0)
    if raw.ctypes.data % dtype.alignment:
        raw = raw.copy()
    return raw.view(dtype)


def _unpacked(raw: AnyArray, place: Place) -> AnyArray:
    """u1 begins with the highest bit of a byte; u4 and i4 with its lower half."""
    if place.element_type.bits == 1:
        return np.unpackbits(raw, count=place.elements)
    halves: AnyArray = np.stack([raw & 15, raw >> 4], axis=1).reshape(-1)[: place.elements]
    if place.element_type.dtype == "int8":
        return np.subtract((halves ^ 8).astype(np.int8), np.int8(8))
    return halves
