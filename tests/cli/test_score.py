"""`pyrnnx score`: output, files and exit status."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from command import pyrnnx

from pyrnnx import ArgumentError, load

MODEL = Path(__file__).parents[2] / "examples" / "small_rnn.onnx"
RNG = np.random.default_rng(3)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """in/ with five sequences of four numbers a step; model.onnx, which takes them with any T and N."""
    (tmp_path / "in").mkdir()
    for index, length in enumerate((4, 6, 1, 6, 3)):
        np.save(tmp_path / "in" / f"{index}.npy", RNG.normal(size=(length, 4)).astype(np.float32))
    model = onnx.load(MODEL)
    for value in (*model.graph.input, *model.graph.output):
        for place, one in enumerate(value.type.tensor_type.shape.dim):
            if one.dim_value in (2, 6) and (value.name != "initial_h" or place == 1):
                one.dim_param = f"{value.name}{place}"
    onnx.save(model, tmp_path / "model.onnx")
    return tmp_path


def score(files: Path, *options: str) -> tuple[int, str, str]:
    model, source, out = (str(files / name) for name in ("model.onnx", "in", "out"))
    done = pyrnnx("score", model, source, out, "--workers", "0", "--lengths", "sequence_lens", *options)
    return done.returncode, done.stdout, done.stderr


def test_a_layer_without_weights(files: Path) -> None:
    layer = str(MODEL.with_suffix(".xml"))
    for options in ([], ["--input", "X=1"]):
        done = pyrnnx("score", layer, str(files / "in"), str(files / "out"), "--workers", "0", *options)
        assert done.returncode == 2
        assert done.stderr == (
            "pyrnnx: score: model has type IRLayer; expected a path, a Model, a Stack, or a Layer with weights\n"
        )


def test_results(files: Path) -> None:
    status, text, errors = score(files)
    assert (status, errors) == (0, "")
    assert "5" in text
    assert "this process" in text
    model = load(files / "model.onnx")
    with np.load(files / "out" / "parts" / "00000.npz") as part:
        assert part["name"].tolist() == [f"{index}.npy" for index in range(5)]
        for index, name in enumerate(part["name"]):
            item = np.load(files / "in" / name)
            arrays = item[:, np.newaxis], np.array([len(item)], np.int32), np.zeros((2, 1, 8), np.float32)
            np.testing.assert_array_equal(part["Y_h"][index], model(*arrays)["Y_h"][:, 0])


OPTIONS = {
    "--workers": ("3", "workers", 3),
    "--scheduler": ("tcp://a:1", "scheduler", "tcp://a:1"),
    "--batch": ("0", "batch", 0),
    "--skip-errors": ("", "skip_errors", True),
    "--source-format": ("npy", "source_format", "npy"),
    "--sequences": ("X", "input", "X"),
    "--outputs": ("Y_h", "outputs", ["Y_h"]),
    "--channels": ("0", "channels", "0"),
    "--rate": ("8000", "rate", 8000),
    "--segments": ("0.5", "segments", 0.5),
    "--stream": ("", "stream", True),
}


def test_options_are_arguments_of_score(monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, Any] = {}

    def score(*paths: Any, **options: Any) -> None:
        given.update(options)
        raise ArgumentError("it is enough")

    monkeypatch.setattr("pyrnnx.score", score)
    words = [word for option, (value, *_) in OPTIONS.items() for word in (option, value) if word]
    assert pyrnnx("score", str(MODEL), str(MODEL), "out", *words, "--input", "initial_h=2").returncode == 2
    inputs = given.pop("inputs")
    np.testing.assert_array_equal(inputs["initial_h"], np.full((2, 2, 8), 2, np.float32))
    assert given == {name: value for _, name, value in OPTIONS.values()}


def test_repeated(files: Path) -> None:
    options = ("--outputs", "Y_h", "--batch", "4")
    (files / "in" / ".hidden.npy").touch()
    assert 'hidden   1, names that begin with "."' in score(files, *options)[1]
    status, text, _ = score(files, *options, "--json")
    found = json.loads(text)
    assert "nothing to do" in score(files, *options)[1]
    assert (status, found["items"], found["resumed"], found["computed"], found["skipped"]) == (0, 5, 1, 0, {})
    assert found["batch"] == 4


def test_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    def score(*paths: Any, **options: Any) -> None:
        raise KeyboardInterrupt("3 of 9 parts are finished; the same call scores the others")

    monkeypatch.setattr("pyrnnx.score", score)
    done = pyrnnx("score", str(MODEL), str(MODEL), "out")
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == "pyrnnx: interrupted: 3 of 9 parts are finished; the same call scores the others\n"
