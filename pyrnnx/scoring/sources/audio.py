"""Source of recordings: .wav, .flac, .ogg and .mp3 files, read by soundfile (libsndfile) and resampled by soxr."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO, Literal, NamedTuple

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx._internal.extras import import_package
from pyrnnx._internal.files import open_checked
from pyrnnx.errors import ArgumentError, FormatError, shown
from pyrnnx.scoring.sources.base import Source
from pyrnnx.scoring.sources.items import Bad, Items, attempted, listed
from pyrnnx.scoring.sources.storage import HEAD

_CUT_OFF = re.compile(r"^data : \d+ \(should be", re.MULTILINE)  # libsndfile only logs this, and reads what is there


def import_soundfile() -> Any:
    return import_package("soundfile", "reading recordings", "audio")


def import_soxr() -> Any:
    return import_package("soxr", "resampling recordings", "audio")


class _Header(NamedTuple):
    rate: int  # samples per second
    shape: tuple[int, ...]


class AudioSource(Source):
    """Source of recordings in a folder: float32, [T], or [T, C] for several channels; integers become -1 to 1.

    The path in the folder is the name of an item.

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

    def items(self) -> Items:
        paths = self.files()
        names = [self.name_of(path) for path in paths]
        headers = [attempted(self._header, path) for path in paths]
        if self.rate is None:
            self._check_rates(names, headers)
        elif any(not isinstance(header, Bad) and header.rate != self.rate for header in headers):
            import_soxr()
        shapes = [header if isinstance(header, Bad) else self._resampled_shape(header) for header in headers]
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
                f"{shown(name_b)} of {rate_b}; expected one sample rate, or rate, to which all are resampled"
            )

    def _resampled_shape(self, header: _Header) -> tuple[int, ...]:
        count = header.shape[0]
        if self.rate is not None:
            count = (2 * count * self.rate + header.rate) // (2 * header.rate)  # rounded, without floats
        return count, *header.shape[1:]

    def read(self, places: Sequence[Any]) -> Iterator[AnyArray | Bad]:
        for (name,) in places:
            yield attempted(self._samples, self.path_of(name))

    def advice(self, values: AnyArray) -> str:
        if values.ndim == 1:
            return ""
        return f" (channels='mean' mixes the {values.shape[1]} channels down, channels=0 takes the first)"

    def _header(self, path: str) -> _Header:
        with self.storage.open(path, HEAD) as raw, _opened(raw) as file:
            shape = (file.frames,) if file.channels == 1 else (file.frames, file.channels)
            header = _Header(file.samplerate, shape)
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
        with self.storage.open(path, 0) as raw:
            samples, rate = _decoded(raw)
        if self.channels is not None:
            self._check_channels(samples.shape)
            if samples.ndim > 1 and isinstance(self.channels, int):
                samples = np.ascontiguousarray(samples[:, self.channels])
            elif samples.ndim > 1:
                samples = samples.mean(1, np.float64).astype(np.float32)  # rounded once
        if self.rate in (None, rate):
            return samples
        shape = self._resampled_shape(_Header(rate, samples.shape))
        resampled = np.zeros(shape, np.float32)
        values = import_soxr().resample(samples, rate, self.rate)[: shape[0]]
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
