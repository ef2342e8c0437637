"""Source of recordings: .wav, .flac, .ogg and .mp3 files, read by soundfile (libsndfile) and resampled by soxr."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, BinaryIO, Literal, NamedTuple

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx._internal.extras import import_package
from pyrnnx._internal.files import open_checked
from pyrnnx.errors import ArgumentError, FormatError, shown
from pyrnnx.scoring.sources.base import Bad, FileSource
from pyrnnx.scoring.sources.storage import HEAD

_CUT_OFF = re.compile(r"^data : \d+ \(should be", re.MULTILINE)  # libsndfile only logs this, and reads what is there


def import_soundfile() -> Any:
    return import_package("soundfile", "reading recordings", "audio")


def import_soxr() -> Any:
    return import_package("soxr", "resampling recordings", "audio")


class _Header(NamedTuple):
    rate: int  # samples per second
    frames: int
    channels: int


class AudioSource(FileSource):
    """Source of recordings in a folder: float32, [T], or [T, C] for several channels; integers become -1 to 1.

    Parameters
    ----------
    path : str
    channels : int or "mean", optional
        Index of the channel to use, or their mean; items are [T] then. Default: all channels.
    rate : int, optional
        Samples per second of the items; recordings of another rate are resampled. Default: that of the files, which
        must be the same for all.
    """

    kind = "audio"
    suffixes = (".wav", ".flac", ".ogg", ".mp3")

    def __init__(self, path: str, channels: int | Literal["mean"] | None = None, rate: int | None = None) -> None:
        super().__init__(path)
        import_soundfile()
        self.channels, self.rate = channels, rate
        self.options = {"channels": channels, "rate": rate}

    def shapes(self, names: Sequence[str], headers: Sequence[_Header | Bad]) -> Sequence[tuple[int, ...] | Bad]:
        rates: dict[int, str] = {}
        for name, header in zip(names, headers, strict=True):
            if not isinstance(header, Bad):
                rates.setdefault(header.rate, name)
        if self.rate is not None and rates.keys() - {self.rate}:
            import_soxr()
        elif self.rate is None and len(rates) > 1:
            (rate_a, name_a), (rate_b, name_b) = list(rates.items())[:2]
            raise ArgumentError(
                f"score: source {shown(self.path)} has {shown(name_a)} of {rate_a} samples per second and "
                f"{shown(name_b)} of {rate_b}; expected one sample rate, or rate, to which all are resampled"
            )
        self.sample_rate = self.rate or next(iter(rates), None)
        return [header if isinstance(header, Bad) else self._shape(header) for header in headers]

    def header(self, path: str) -> _Header:
        with self.storage.open(path, HEAD) as raw, _opened(raw) as file:
            header = _Header(file.samplerate, file.frames, file.channels)
        self._check_channels(header.channels)
        return header

    def _check_channels(self, count: int) -> None:
        if isinstance(self.channels, int) and self.channels >= count:
            raise FormatError(
                f"it has {count} channel{'' if count == 1 else 's'}; channels is {self.channels}, and counts from 0"
            )

    def _shape(self, header: _Header) -> tuple[int, ...]:
        """Return the shape of the item of a recording."""
        count = header.frames
        if self.rate is not None:
            count = (2 * count * self.rate + header.rate) // (2 * header.rate)  # rounded, without floats
        return (count,) if header.channels == 1 or self.channels is not None else (count, header.channels)

    def advice(self, values: AnyArray) -> str:
        if values.ndim == 1:
            return ""
        return f" (channels='mean' mixes the {values.shape[1]} channels down, channels=0 takes the first)"

    def values(self, path: str) -> AnyArray:
        with self.storage.open(path, 0) as raw:
            samples, rate = _decoded(raw)
        header = _Header(rate, len(samples), samples.shape[1] if samples.ndim > 1 else 1)
        self._check_channels(header.channels)
        if samples.ndim > 1 and isinstance(self.channels, int):
            samples = np.ascontiguousarray(samples[:, self.channels])
        elif samples.ndim > 1 and self.channels is not None:
            samples = samples.mean(1, np.float64).astype(np.float32)  # rounded once
        if self.rate in (None, rate):
            return samples
        resampled = np.zeros(self._shape(header), np.float32)
        values = import_soxr().resample(samples, rate, self.rate)[: len(resampled)]
        resampled[: len(values)] = values
        return resampled


def _opened(raw: BinaryIO) -> Any:
    """Return a `soundfile.SoundFile` of an open file."""
    soundfile = import_soundfile()
    try:
        file = soundfile.SoundFile(raw)
    except soundfile.LibsndfileError as error:
        raise FormatError(f"it is no recording that libsndfile reads ({error.error_string})") from error
    if _CUT_OFF.search(file.extra_info):
        file.close()
        raise FormatError("it has another number of samples than its header declares; expected a whole recording")
    return file


def _decoded(raw: BinaryIO) -> tuple[AnyArray, int]:
    with _opened(raw) as file:
        samples: AnyArray = file.read(dtype="float32")
        if len(samples) != file.frames:
            raise FormatError(f"it ends after {len(samples)} of {file.frames} samples")
        return samples, file.samplerate


def read_audio(path: str) -> AnyArray:
    """Return the samples of a recording, float32, [T] or [T, C]."""
    with open_checked(path) as raw:
        return _decoded(raw)[0]
