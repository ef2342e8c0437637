"""Detect speech in a recording with Silero VAD, streamed window by window, and draw the result.

    pip install -e ".[onnx,plot]" && pip install --no-deps --ignore-requires-python silero-vad==6.2.3
    python examples/voice_activity.py [recording.wav]

Without a recording, espeak-ng says two sentences with a loud fan between them, which the model must not take for
speech.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from shared import (
    RATE,
    Array,
    new_figure,
    noise,
    read_wav,
    run,
    save,
    silence,
    speak,
    timed,
    wheel_file,
)

import pyrnnx
from pyrnnx.scoring.segments import speech_segments

WINDOW, CONTEXT = 512, 64  # new samples of a push (32 ms), and earlier samples that the model reads again
THRESHOLD = 0.5


def probabilities(model: Any, signal: Array) -> tuple[Array, float]:
    """Return the probability of speech for each window of 32 ms, and the seconds for one window."""
    # The stream feeds output stateN, h and c of the LSTM, back as input state, whose shape is dynamic in the file.
    stream = model.stream(initial={"state": np.zeros((2, 1, 128), np.float32)})
    padded = np.concatenate([np.zeros(CONTEXT, np.float32), signal])
    padded = np.pad(padded, (0, -len(signal) % WINDOW))  # as Silero's own client does
    starts = range(0, len(signal), WINDOW)
    frames = (padded[np.newaxis, start : start + CONTEXT + WINDOW] for start in starts)
    results, seconds = timed(lambda frame: stream.push(frame, RATE)["output"].item(), frames)
    return np.array(results), seconds


def draw(signal: Array, speech: Array, output: str) -> None:
    figure = new_figure(11, 5)
    above, below = figure.subplots(2, sharex=True)
    above.plot(np.arange(len(signal)) / RATE, signal, color="tab:gray", linewidth=0.5)
    above.set(title="Voice activity: Silero VAD, streamed by pyrnnx", ylabel="amplitude", ylim=(-1.05, 1.05))
    below.plot((np.arange(len(speech)) + 1) * WINDOW / RATE, speech, color="tab:blue")
    below.axhline(THRESHOLD, color="black", linestyle="--", linewidth=1, label=f"threshold {THRESHOLD}")
    below.set(xlabel="time, s", ylabel="probability of speech", ylim=(-0.03, 1.03), xlim=(0, len(signal) / RATE))
    for number, (begin, end) in enumerate(speech_segments(speech, len(signal))):
        for axis in (above, below):
            label = "detected speech" if number == 0 and axis is below else None
            axis.axvspan(begin / RATE, end / RATE, color="tab:orange", alpha=0.25, label=label)
    figure.legend(loc="outside lower right", ncols=2)
    save(figure, output)


def main() -> None:
    parser = argparse.ArgumentParser(description="Detect speech in a recording.")
    parser.add_argument("wav", nargs="?", help="recording (default: speech of espeak-ng)")
    parser.add_argument("--output", default="voice_activity.png", help="picture to write")
    arguments = parser.parse_args()
    if arguments.wav:
        signal = read_wav(arguments.wav)
    else:
        first, second = speak("Good morning, can you hear me?"), speak("The fan was loud, but it never said a word.")
        signal = np.concatenate([silence(0.7), first, silence(0.7), 0.7 * noise(1.5), silence(0.7), second])
    pyrnnx.set_num_threads(1)  # a window is too little work for two threads
    model = pyrnnx.load(wheel_file("silero-vad==6.2.3", "silero_vad/data/silero_vad.onnx"))
    speech, seconds = probabilities(model, signal)
    print("   from      to   mean probability")
    for begin, end in speech_segments(speech, len(signal)):
        mean = speech[begin // WINDOW : -(-end // WINDOW)].mean()
        print(f"{begin / RATE:5.2f} s {end / RATE:5.2f} s   {mean:.2f}")
    print(f"{len(speech)} windows of {1000 * WINDOW // RATE} ms, {1e3 * seconds:.2f} ms to compute each")
    draw(signal, speech, arguments.output)


if __name__ == "__main__":
    run(main)
