"""Source of recordings: .wav, .flac, .ogg and .mp3 files, read by soundfile (libsndfile) and resampled by soxr."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

import numpy as np

from pyrnnx._internal import scalars
from pyrnnx._internal.dtypes import AnyArray
from pyrnnx._internal.extras import import_package
from pyrnnx.errors import ArgumentError, FormatError, shown
from pyrnnx.scoring.sources.base import Bad, FileSource, Items, Row, Shape
from pyrnnx.scoring.sources.storage import HEAD

_CUT_OFF = re.compile(r"^data : \d+ \(should be", re.MULTILINE)  # libsndfile only logs this, and reads what is there


def import_soundfile() -> Any:
    return import_package("soundfile", "score: recordings", "score")


def import_soxr() -> Any:
    return import_package("soxr", "score: rate", "score")


class AudioSource(FileSource):
    """Source of recordings: float32, [T], or [T, C] for several channels; integers become -1 to 1."""

    kind = "audio"
    suffixes = (".wav", ".flac", ".ogg", ".mp3")

    def __init__(self, path: str, channels: Any = None, rate: Any = None) -> None:
        super().__init__(path)
        import_soundfile()
        self.channels = _channel(channels)
        self.rate = None if rate is None else scalars.integer("score", "rate", rate, 1)
        self.options = {"channels": self.channels, "rate": self.rate}
        self._rates: dict[int, str] = {}  # a recording for each rate

    def items(self) -> Items:
        self._rates = {}
        items = super().items()
        if self.rate is not None and self._rates.keys() - {self.rate}:
            import_soxr()
        elif self.rate is None and len(self._rates) > 1:
            (rate_a, name_a), (rate_b, name_b) = list(self._rates.items())[:2]
            raise ArgumentError(
                f"score: source {shown(self.path)} has {shown(name_a)} of {rate_a} samples per second and "
                f"{shown(name_b)} of {rate_b}; expected one sample rate, or rate, to which all are resampled"
            )
        self.sample_rate = self.rate or next(iter(self._rates), None)
        return items

    def listing(self, path: str, file: str) -> Iterator[Row]:
        with self.storage.open(path, HEAD) as raw, _opened(raw) as recording:
            shape = self._shape(recording.samplerate, recording.frames, recording.channels)
            self._rates.setdefault(recording.samplerate, file)
        yield file, shape, None

    def _shape(self, rate: int, count: int, channels: int) -> Shape:
        """Return the shape of the item of a recording of `count` samples in each channel."""
        if isinstance(self.channels, int) and self.channels >= channels:
            raise FormatError(
                f"it has {channels} channel{'' if channels == 1 else 's'}; channels is {self.channels}, and counts "
                "from 0"
            )
        if self.rate is not None:
            count = (2 * count * self.rate + rate) // (2 * rate)  # rounded, without floats
        return (count,) if channels == 1 or self.channels is not None else (count, channels)

    def advice(self, values: AnyArray) -> str:
        if values.ndim == 1:
            return ""
        return f" (channels='mean', --channels mean, mixes the {values.shape[1]} channels down; 0 takes the first)"

    def values(self, path: str, places: Sequence[Any]) -> Iterator[AnyArray | Bad]:
        with self.storage.open(path, 0) as raw:
            samples, rate = _decoded(raw)
        shape = self._shape(rate, len(samples), samples.shape[1] if samples.ndim > 1 else 1)
        if samples.ndim > 1 and isinstance(self.channels, int):
            samples = np.ascontiguousarray(samples[:, self.channels])
        elif samples.ndim > 1 and self.channels is not None:
            samples = samples.mean(1, np.float64).astype(np.float32)  # rounded once
        if self.rate not in (None, rate):
            resampled = import_soxr().resample(samples, rate, self.rate)[: shape[0]]
            samples = np.zeros(shape, np.float32)
            samples[: len(resampled)] = resampled
        yield samples


def _channel(channels: Any) -> Any:
    if channels is None or channels == "mean":
        return channels
    index = int(channels) if isinstance(channels, str) and channels.isdecimal() else channels
    return scalars.integer("score", "channels", index, 0, expected='"mean", or the index of a channel from 0')


def _opened(raw: BinaryIO) -> Any:
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
