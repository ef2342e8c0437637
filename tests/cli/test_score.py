"""`pyrnnx score`: output, files and exit status."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import onnx
import pytest
from command import pyrnnx
from scoring_data import write_wav

from pyrnnx import load

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


def test_batches(files: Path) -> None:
    status, text, _ = score(files, "--batch", "4", "--json")
    assert (status, json.loads(text)["batch"]) == (0, 4)
    (files / "in" / ".hidden.npy").touch()
    assert 'hidden   1, names that begin with "."' in score(files, "--batch", "4")[1]
    model = onnx.load(files / "model.onnx")
    model.graph.node[0].output[0] = "y"
    model.graph.node.append(onnx.helper.make_node("Cos", ["y"], ["c"]))
    model.graph.node.append(onnx.helper.make_node("ReduceSum", ["c"], ["Y"], keepdims=1))
    onnx.save(model, files / "model.onnx")
    status, _, errors = score(files, "--batch", "4", "--overwrite", "--outputs", "Y")
    assert status == 2
    assert "its axis of rows is unknown" in errors
    assert "leave the output out of outputs" in errors


def test_recordings(files: Path) -> None:
    samples = RNG.integers(-(2**15), 2**15, (40, 2))
    write_wav(files / "a.wav", samples.ravel(), channels=2)
    options = ("--workers", "0", "--frame", "4", "--lengths", "sequence_lens")
    command = "score", str(files / "model.onnx"), str(files / "a.wav"), str(files / "wavs")
    done = pyrnnx(*command, *options)
    assert done.returncode == 2
    assert "(channels='mean' mixes the 2 channels down, channels=0 takes the first)" in done.stderr
    assert pyrnnx(*command, *options, "--channels", "mean").returncode == 0
    slower = pyrnnx(*command[:-1], str(files / "slower"), *options, "--rate", "8000", "--channels", "mean")
    assert slower.returncode == 0
    with np.load(files / "slower" / "parts" / "00000.npz") as part:
        assert part["Y.offsets"].tolist() == [0, 5]
    assert (
        "ends in '.csv'; expected a name that ends in .zarr"
        in pyrnnx(*command[:-1], str(files / "o.csv"), *options).stderr
    )


def test_json_and_what_was_finished(files: Path) -> None:
    assert score(files, "--outputs", "Y_h")[0] == 0
    status, text, _ = score(files, "--outputs", "Y_h", "--json")
    found = json.loads(text)
    assert "nothing to do" in score(files, "--outputs", "Y_h")[1]
    assert (status, found["items"], found["resumed"], found["computed"], found["skipped"]) == (0, 5, 1, 0, {})


def test_bad_items(files: Path) -> None:
    (files / "in" / "2.npy").write_bytes(b"no array")
    status, text, errors = score(files)
    assert (status, text) == (2, "")
    assert "item '2.npy'" in errors
    assert errors.endswith("(skip_errors=True skips it)\n")
    assert errors.count("\n") == 1
    status, text, errors = score(files, "--skip-errors")
    assert (status, errors) == (0, "")
    assert "2.npy" in text


def test_options_are_named(files: Path) -> None:
    assert score(files)[0] == 0
    assert "another sink, or overwrite=True, which" in score(files, "--batch", "3")[2]
    np.save(files / "in" / "2.npy", np.ones((3, 4)))
    assert "expected float32 (cast=True converts) (skip_errors=True skips it)" in score(files, "--overwrite")[2]


@pytest.mark.e2e
@pytest.mark.parametrize("workers", ["0", "2"])
def test_interrupted(workers: str, files: Path) -> None:
    if workers != "0":
        pytest.importorskip("distributed")
    for index in range(400):
        np.save(files / "in" / f"more{index}.npy", RNG.normal(size=(900, 4)).astype(np.float32))
    command = [
        sys.executable,
        "-m",
        "pyrnnx",
        "score",
        str(files / "model.onnx"),
        str(files / "in"),
        str(files / "out"),
    ]
    command += ["--workers", workers, "--memory", "400kB", "--lengths", "sequence_lens"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        done = files / "out" / "done"
        while not (done.is_dir() and len(list(done.iterdir())) > 2):
            assert process.poll() is None
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGINT)
        text, errors = process.communicate(timeout=120)
    assert (process.returncode, text) == (130, ""), errors
    assert re.fullmatch(
        r"pyrnnx: interrupted: \d+ of \d+ parts are finished; the same call scores the others\n", errors
    )
    assert "of an earlier run" in score(files, "--memory", "400kB")[1]
