"""Folders of .wav files: PCM of 8, 16, 24 and 32 bits, as Python's wave module reads them."""

from __future__ import annotations

import os
import wave
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from pyrnnx.dtypes import AnyArray
from pyrnnx.errors import ArgumentError, shown
from pyrnnx.scoring.items import Bad, Items
from pyrnnx.scoring.sources.base import Source, attempted, folder_with, listed, regular


class WavSource(Source):
    """A folder of .wav files, called by their paths in it: float32 from -1 to 1, [T], of several channels [T, C]."""

    kind = "wav"

    def items(self) -> Items:
        paths = self.files()
        names = [os.path.relpath(path, self.path) for path in paths]
        heads = [attempted(_head, one) for one in paths]
        self._check_rates(names, heads)
        shapes = [one if isinstance(one, Bad) else one.shape for one in heads]
        return listed(names, [(name,) for name in names], shapes)

    def _check_rates(self, names: Sequence[str], heads: Sequence[_Head | Bad]) -> None:
        rates: dict[int, str] = {}
        for name, head in zip(names, heads, strict=True):
            if not isinstance(head, Bad):
                rates.setdefault(head.rate, name)
        if len(rates) > 1:
            (one, first), (other, second) = list(rates.items())[:2]
            raise ArgumentError(
                f"score: source {shown(self.path)} has {shown(first)} of {one} samples a second and {shown(second)} of "
                f"{other}; expected one sample rate"
            )

    def read(self, places: Sequence[Any]) -> Iterator[AnyArray | Bad]:
        for (name,) in places:
            yield attempted(read_wav, os.path.join(self.path, name))

    def files(self) -> list[str]:
        return folder_with(self.kind, self.path, ".wav")


class _Head(NamedTuple):
    rate: int  # samples a second
    shape: tuple[int, ...]


def _head(path: str) -> _Head:
    with wave.open(regular(path), "rb") as file:
        width, channels, count = file.getsampwidth(), file.getnchannels(), file.getnframes()
        rate = file.getframerate()
    if width not in _SAMPLES:
        raise ValueError(_BITS.format(8 * width))
    size = os.path.getsize(path)
    if count * width * channels > size:
        raise ValueError(f"it has {size} bytes; its head says {count * width * channels} of samples")
    return _Head(rate, (count,) if channels == 1 else (count, channels))


def read_wav(path: str) -> AnyArray:
    """The samples of a .wav file.

    Raises
    ------
    OSError, EOFError, wave.Error, ValueError
        A file that cannot be read, is no PCM, or shorter than its head says.
    """
    with wave.open(regular(path), "rb") as file:
        width, channels, count = file.getsampwidth(), file.getnchannels(), file.getnframes()
        if width not in _SAMPLES:
            raise ValueError(_BITS.format(8 * width))
        contents = file.readframes(count)
    if len(contents) != count * width * channels:
        raise ValueError(f"it ends after {len(contents)} of {count * width * channels} bytes of samples")
    samples = _SAMPLES[width](contents)
    return samples if channels == 1 else samples.reshape(count, channels)


def _of_24_bits(contents: bytes) -> AnyArray:
    """Three bytes each, low byte first, as the upper ones of four."""
    wide = np.zeros((len(contents) // 3, 4), np.uint8)
    wide[:, 1:] = np.frombuffer(contents, np.uint8).reshape(-1, 3)
    return (wide.view("<i4")[:, 0] / 2.0**31).astype(np.float32)


_SAMPLES: dict[int, Callable[[bytes], AnyArray]] = {
    1: lambda contents: ((np.frombuffer(contents, np.uint8) - 128.0) / 128).astype(np.float32),  # 128 is zero
    2: lambda contents: np.frombuffer(contents, "<i2").astype(np.float32) / 2**15,
    3: _of_24_bits,
    4: lambda contents: (np.frombuffer(contents, "<i4") / 2.0**31).astype(np.float32),
}
_BITS = f"{{}} bits; expected {', '.join(str(8 * one) for one in _SAMPLES)}"
