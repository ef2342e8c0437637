"""Source of .wav files: PCM of 8, 16, 24 and 32 bits, read by Python's wave module."""

from __future__ import annotations

import math
import wave
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.errors import ArgumentError, FormatError, shown
from pyrnnx.scoring.items import Bad, Items
from pyrnnx.scoring.sources.base import Source, attempted, folder_with, listed, size_of
from pyrnnx.scoring.storage import HEAD, Files


class WavSource(Source):
    """Source of .wav files in a folder: float32 from -1 to 1, [T], or [T, C] for several channels.

    The path in the folder is the name of an item.

    Parameters
    ----------
    path : str
    channels : int or "mean", optional
        Index of the channel to use, or their mean; items are [T] then. Default: all channels.
    rate : int, optional
        Required samples per second. Default: any, but the same for all files.
    """

    kind = "wav"

    def __init__(self, path: str, channels: int | Literal["mean"] | None = None, rate: int | None = None) -> None:
        super().__init__(path)
        self.channels, self.rate = channels, rate

    def items(self) -> Items:
        paths = self.files()
        names = [self.name_of(path) for path in paths]
        headers = [attempted(self._header, path) for path in paths]
        if self.rate is None:
            self._check_rates(names, headers)
        shapes = [header if isinstance(header, Bad) else header.shape for header in headers]
        return listed(names, [(name,) for name in names], shapes)

    def _check_rates(self, names: Sequence[str], headers: Sequence[_Header | Bad]) -> None:
        rates: dict[int, str] = {}
        for name, header in zip(names, headers, strict=True):
            if not isinstance(header, Bad):
                rates.setdefault(header.rate, name)
        if len(rates) > 1:
            (rate_a, name_a), (rate_b, name_b) = list(rates.items())[:2]
            raise ArgumentError(
                f"score: source {shown(self.path)} has {shown(name_a)} of {rate_a} samples per second and "
                f"{shown(name_b)} of {rate_b}; expected one sample rate, or the required one in rate"
            )

    def read(self, places: Sequence[Any]) -> Iterator[AnyArray | Bad]:
        for (name,) in places:
            yield attempted(self._samples, self.path_of(name))

    def file_of(self, place: Any) -> str | None:
        return self.path_of(place[0])

    def advice(self, values: AnyArray) -> str:
        if values.ndim == 1:
            return ""
        return f" (channels='mean' mixes the {values.shape[1]} channels down, channels=0 takes the first)"

    def _header(self, path: str) -> _Header:
        header = _read_header(self.storage, path)
        if self.rate not in (None, header.rate):
            raise FormatError(
                f"it has {header.rate} samples per second; expected rate={self.rate}: pyrnnx does not resample"
            )
        if self.channels is None:
            return header
        self._check_channels(header.shape)
        return header._replace(shape=header.shape[:1])

    def _check_channels(self, shape: tuple[int, ...]) -> None:
        count = shape[1] if len(shape) > 1 else 1
        if isinstance(self.channels, int) and self.channels >= count:
            raise FormatError(
                f"it has {count} channel{'' if count == 1 else 's'}; channels is {self.channels}, and counts from 0"
            )

    def _samples(self, path: str) -> AnyArray:
        samples = read_wav(path, self.storage)
        if self.channels is None:
            return samples
        self._check_channels(samples.shape)
        if samples.ndim == 1:
            return samples
        if self.channels == "mean":
            mean: AnyArray = samples.mean(1, np.float64).astype(np.float32)  # rounded once
            return mean
        return np.ascontiguousarray(samples[:, self.channels])

    def files(self) -> list[str]:
        return folder_with(self.kind, self.path, ".wav")


class _Header(NamedTuple):
    rate: int  # samples per second
    shape: tuple[int, ...]


def _read_header(storage: Files, path: str) -> _Header:
    with storage.open(path, HEAD) as raw:
        size = size_of(raw)
        with wave.open(raw, "rb") as file:
            return _checked(file, size)


def _checked(file: wave.Wave_read, size: int) -> _Header:
    """Return the header of an open file of `size` bytes.

    Raises
    ------
    FormatError
        No PCM of 8 to 32 bits; more samples than the file has bytes, which Python's reader would allocate first.
    """
    width, channels, count = file.getsampwidth(), file.getnchannels(), file.getnframes()
    if width not in _SAMPLES:
        raise FormatError(_BITS.format(8 * width))
    if count * width * channels > size:
        raise FormatError(f"it has {size} bytes; its header declares {count * width * channels} bytes of samples")
    return _Header(file.getframerate(), (count,) if channels == 1 else (count, channels))


def read_wav(path: str, storage: Files | None = None) -> AnyArray:
    """Return the samples of a .wav file.

    Raises
    ------
    OSError, EOFError, wave.Error, FormatError
        A file that cannot be read, is not PCM, or is shorter than its header declares.
    """
    with (storage or Files()).open(path, 0) as raw:
        size = size_of(raw)
        with wave.open(raw, "rb") as file:
            shape, width = _checked(file, size).shape, file.getsampwidth()
            contents = file.readframes(shape[0])
    if len(contents) != math.prod(shape) * width:
        raise FormatError(f"it ends after {len(contents)} of {math.prod(shape) * width} bytes of samples")
    return _SAMPLES[width](contents).reshape(shape)


def _of_24_bits(contents: bytes) -> AnyArray:
    """Return samples of 24 bits, little-endian, converted as the upper bytes of 32 bits."""
    wide = np.zeros((len(contents) // 3, 4), np.uint8)
    wide[:, 1:] = np.frombuffer(contents, np.uint8).reshape(-1, 3)
    return (wide.view("<i4")[:, 0] / 2.0**31).astype(np.float32)


_SAMPLES: dict[int, Callable[[bytes], AnyArray]] = {
    1: lambda contents: ((np.frombuffer(contents, np.uint8) - 128.0) / 128).astype(np.float32),  # 128 is zero
    2: lambda contents: np.frombuffer(contents, "<i2").astype(np.float32) / 2**15,
    3: _of_24_bits,
    4: lambda contents: (np.frombuffer(contents, "<i4") / 2.0**31).astype(np.float32),
}
_BITS = f"its samples have {{}} bits; expected {', '.join(str(8 * width) for width in _SAMPLES)}"
