"""Find the speech in all recordings of a folder with Silero VAD, and write where it begins and ends to a CSV file.

    pip install -e ".[onnx,score]" && pip install --no-deps --ignore-requires-python silero-vad==6.2.3
    python examples/voice_segments.py recordings/ probabilities/

The recordings are .wav, .flac, .ogg or .mp3 files of any rate. `pyrnnx.score` streams many of them side by side and
writes the probability of speech in each window of 32 ms, and segments.csv, to the second folder. A run that was stopped
continues there. The same as a command: `pyrnnx score silero_vad.onnx recordings/ probabilities/ --stream --batch 32
--frame 512 --context 64 --rate 16000 --channels mean --input sr=16000 --segments 0.5`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from shared import RATE, run, wheel_file

import pyrnnx


def main() -> None:
    parser = argparse.ArgumentParser(description="Find the speech in all recordings of a folder.")
    parser.add_argument("recordings", type=Path, help="folder of .wav, .flac, .ogg or .mp3 files")
    parser.add_argument("probabilities", type=Path, help="folder of the results of pyrnnx.score")
    parser.add_argument("--workers", type=int, help="processes; 0: this one (default: one for each core)")
    arguments = parser.parse_args()
    report = pyrnnx.score(
        wheel_file("silero-vad==6.2.3", "silero_vad/data/silero_vad.onnx"),
        arguments.recordings,
        arguments.probabilities,
        stream=True,
        batch=32,
        frame=512,  # new samples of a frame
        context=64,  # earlier samples that the model reads again
        rate=RATE,
        inputs={"sr": RATE},
        channels="mean",
        segments=0.5,
        workers=arguments.workers,
    )
    print(f"{report.items} recordings, {report.rate:.0f} recordings per second")
    print(f"segments: {arguments.probabilities / 'segments.csv'}")


if __name__ == "__main__":
    run(main)
