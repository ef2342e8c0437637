"""Find the speech in all recordings of a folder with Silero VAD, and write where it begins and ends to a CSV file.

    pip install -e ".[onnx,score]" && pip install --no-deps --ignore-requires-python silero-vad==6.2.3
    python examples/voice_segments.py recordings/ probabilities/

The recordings are .wav, .flac, .ogg or .mp3 files of any rate. `pyrnnx.score` streams many of them side by side and
writes the probability of speech in each window of 32 ms to the second folder. A run that was stopped continues there.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import soundfile
from shared import RATE, run, speech_segments, wheel_file, writing

import pyrnnx

WINDOW, CONTEXT = 512, 64  # new samples of a frame, and earlier samples that the model reads again


def probabilities(sink: Path) -> Iterator[tuple[str, list[float]]]:
    """Yield the name of each recording and the probability of speech in each of its windows."""
    for path in sorted((sink / "parts").glob("*.npz")):
        with np.load(path) as part:
            windows = np.split(part["output"].ravel(), part["output.offsets"][1:-1])
            yield from zip(part["name"].tolist(), (array.tolist() for array in windows), strict=True)


def length(path: Path) -> int:
    """Return the number of samples after resampling."""
    header = soundfile.info(path)
    return int(header.frames * RATE / header.samplerate + 0.5)


def main() -> None:
    parser = argparse.ArgumentParser(description="Find the speech in all recordings of a folder.")
    parser.add_argument("recordings", type=Path, help="folder of .wav, .flac, .ogg or .mp3 files")
    parser.add_argument("probabilities", type=Path, help="folder of the results of pyrnnx.score")
    parser.add_argument("--output", default="segments.csv", help="CSV file to write")
    parser.add_argument("--workers", type=int, help="processes; 0: this one (default: one for each core)")
    arguments = parser.parse_args()
    report = pyrnnx.score(
        wheel_file("silero-vad==6.2.3", "silero_vad/data/silero_vad.onnx"),
        arguments.recordings,
        arguments.probabilities,
        stream=True,
        batch=32,
        frame=WINDOW,
        context=CONTEXT,
        rate=RATE,
        inputs={"sr": RATE},
        channels="mean",
        workers=arguments.workers,
    )
    count = 0
    with writing(arguments.output), open(arguments.output, "w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["recording", "begin, s", "end, s"])
        for name, speech in probabilities(arguments.probabilities):
            for begin, end in speech_segments(speech, length(arguments.recordings / name)):
                rows.writerow([name, f"{begin / RATE:.3f}", f"{end / RATE:.3f}"])
                count += 1
    print(f"{count} segments in {report.items} recordings, {report.rate:.0f} recordings per second")
    print(f"segments: {arguments.output}")


if __name__ == "__main__":
    run(main)
