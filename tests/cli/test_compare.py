"""`pyrnnx compare`: output, files and exit status."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from command import pyrnnx
from onnx import numpy_helper
from onnx_streams import H, I, stepwise

from pyrnnx import compare
from pyrnnx.cli import main
from pyrnnx.comparison.views.text import layer_lines, model_lines

EXAMPLES = Path(__file__).parents[2] / "examples"
PAIR = [str(EXAMPLES / "small_rnn.onnx"), str(EXAMPLES / "small_rnn.xml")]


def command(*arguments: str, **keywords: Any) -> subprocess.CompletedProcess[str]:
    """Run `pyrnnx compare` with these arguments."""
    return pyrnnx("compare", *arguments, **keywords)


def test_result() -> None:
    """A pipe is 80 columns wide: what `print` needs more for is wrapped."""
    done = command(*PAIR, "--seed", "3")
    assert (done.returncode, done.stderr) == (0, "")
    comparison: Any = compare(PAIR[0], PAIR[1], seed=3)
    text = "\n".join(layer_lines(comparison, width=80))
    words = " ".join(done.stdout.removeprefix(text).split())
    inputs = "'X' (6, 2, 4), 'sequence_lens' [6, 0] and 1 other call"
    assert words == f"the same (default tolerance): 2 outputs on {inputs}"
    assert max(map(len, str(comparison).splitlines())) > 80
    assert max(map(len, done.stdout.splitlines())) == 80


@pytest.fixture(scope="module")
def apart(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The model with one weight that is another."""
    model = onnx.load(PAIR[0])
    R = next(one for one in model.graph.initializer if one.name == model.graph.node[0].input[2])
    array = numpy_helper.to_array(R).copy()
    array[1, 2, 3] += 0.25
    R.CopyFrom(numpy_helper.from_array(array, R.name))
    path = tmp_path_factory.mktemp("apart") / "apart.onnx"
    onnx.save(model, path)
    return str(path)


def test_different(apart: str) -> None:
    done = command(PAIR[0], apart)
    assert (done.returncode, done.stderr) == (1, "")
    comparison: Any = compare(PAIR[0], apart)
    text = "\n".join(model_lines(comparison, width=80))
    assert done.stdout == f"{text}\ndifferent (default tolerance): 2 of 2 outputs, 1 of 1 pair of layers\n"
    assert "R reverse: i 0.25" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_the_text_is_by_the_tolerance_of_the_command(apart: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The reported differences and the verdict never contradict each other."""
    assert main(["compare", PAIR[0], apart, "--atol", "1"]) == 0
    text = capsys.readouterr().out
    assert "\nthe same (atol=1, rtol=1e-05): 2 outputs on 'X' (6, 2, 4), " in text
    assert "first " not in text
    assert main(["compare", PAIR[0], apart, "--atol", "1e-6"]) == 1
    text = capsys.readouterr().out
    assert "\nfirst apart (default tolerance): Y " in text
    assert text.endswith("\ndifferent (atol=1e-06, rtol=1e-05): 2 of 2 outputs, 1 of 1 pair of layers\n")


def test_inputs(apart: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No difference in the reverse direction, where there is one step and h is zero."""
    X = np.ones((6, 2, 4), np.float32)
    given: dict[str, Any] = {
        "X": X,
        "sequence_lens": np.array([1, 1], np.int32),
        "initial_h": np.zeros((2, 2, 8), np.float32),
    }
    path = tmp_path / "in.npz"
    np.savez(path, **given)
    assert main(["compare", PAIR[0], apart, "--input", str(path), "--json"]) == 1  # of the layers, which run on others
    found = json.loads(capsys.readouterr().out)
    assert found["outputs"]["Y"]["largest"] == 0
    assert found["layers"]["small_rnn"]["largest_difference"] > 0


def test_sizes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "step.onnx")
    onnx.save(stepwise(), path)
    assert main(["compare", path, path, "--dim", "N=6", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["input_shapes"] == {"x": [3, 6, I], "h": [1, 6, H], "c": [1, 6, H]}
    assert main(["compare", PAIR[1], PAIR[1], "--dim", "batch_size=7", "--dim", "seq_length=2", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["outputs"]["Y"]["by_step"]) == 2


def test_json(apart: str, capsys: pytest.CaptureFixture[str]) -> None:
    for other, status in ((PAIR[0], 0), (apart, 1)):
        assert main(["compare", PAIR[0], other, "--json", "--seed", "2"]) == status
        found = json.loads(capsys.readouterr().out)
        expected = compare(PAIR[0], other, seed=2).to_dict()
        assert found == json.loads(json.dumps({**expected, "atol": None, "rtol": None}, allow_nan=False))
        assert found["equal"] == (status == 0)
