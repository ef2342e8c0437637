"""`pyrnnx run`: the arrays equal those of Python calls."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from command import pyrnnx
from onnx import TensorProto, helper
from onnx_models import make_model
from run_files import EXAMPLES, GIVEN, ONNX, facts, make_files, outputs, same

from pyrnnx import load
from pyrnnx.cli import main
from pyrnnx.cli.commands.run import summary
from pyrnnx.comparison.models.random_inputs import OPEN_SIZES


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_files(tmp_path_factory.mktemp("files"))


def test_the_command(files: Path, tmp_path: Path) -> None:
    done = pyrnnx("run", ONNX, "--input", f"{files}/all.npz", "--output", f"{tmp_path}/out.npz")
    assert (done.returncode, done.stderr) == (0, "")
    assert max(map(len, done.stdout.splitlines())) <= 80
    expected = load(ONNX)(GIVEN)
    with np.load(tmp_path / "out.npz") as found:
        same(dict(found), expected)
    line = next(line for line in done.stdout.splitlines() if line.strip().startswith("Y_h"))
    Y_h = expected["Y_h"]
    assert line.split() == [
        *("Y_h", "float32", "[2,", "2,", "8]"),
        *(f"{value:.4g}" for value in (Y_h.min(), Y_h.mean(dtype=np.float64), Y_h.max())),
        "0",
    ]


def test_random_inputs_are_the_same_in_both_formats(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In the IR, a Transpose is between the input X and the layer; the random lengths fit all the same."""
    ir = EXAMPLES / "small_model.xml"
    of_onnx, of_ir = (outputs(capsys, tmp_path / "o.npz", model, "--seed", 3) for model in (ONNX, ir))
    other = outputs(capsys, tmp_path / "o.npz", ONNX, "--seed", 4)
    assert np.abs(of_onnx["Y"] - other["Y"]).max() > 0.1
    assert facts(capsys, ir, "--seed", "3")["inputs"]["sequence_lens"]["max"] > 1
    same(of_onnx, of_ir)


def test_what_is_not_given_is_random(files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [files / "table.onnx", "--input", "factor=2.5", "--seed", "1", "--dim", "B=7"]
    found = facts(capsys, *arguments)
    assert {name: (one["shape"], one["random"]) for name, one in found["inputs"].items()} == {
        "rows": ([7, 2], True),
        "factor": ([], False),
    }
    assert found["outputs"]["out"]["max"] == pytest.approx(2.5 * found["inputs"]["rows"]["max"])
    found = facts(capsys, *arguments[:-2])
    assert found["inputs"]["rows"]["shape"] == [OPEN_SIZES[0][0], 2]


def test_a_summary() -> None:
    array = np.array([1, np.nan, np.inf, -2], np.float32)
    assert summary(array) == {"dtype": "float32", "shape": [4], "min": -2.0, "mean": np.inf, "max": np.inf, "nan": 1}


def test_what_runs_with_no_sizes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", 3]) for name in ("X", "Y")]
    node = helper.make_node("Reshape", ["X", "s"], ["Y"])
    shape = helper.make_tensor("s", TensorProto.INT64, [2], [7, 3])
    onnx.save(make_model(helper.make_graph([node], "g", value[:1], value[1:], [shape])), tmp_path / "m.onnx")
    assert main(["run", str(tmp_path / "m.onnx"), "--seed", "0"]) == 2
    assert "does not run on random inputs of its declared sizes; set others by --dim" in capsys.readouterr().err
    assert facts(capsys, tmp_path / "m.onnx", "--seed", "0", "--dim", "N=7")["outputs"]["Y"]["shape"] == [7, 3]
