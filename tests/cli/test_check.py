"""`pyrnnx check` in a process of its own: what it prints, and its exit status."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from command import in_terminal, pyrnnx
from two_layers import two_layers

EXAMPLES = Path(__file__).parents[2] / "examples"
SMALL = str(EXAMPLES / "small_rnn.onnx")

pytest.importorskip("onnxruntime")
pytest.importorskip("openvino")


@pytest.fixture(scope="module")
def ragged(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A model of which OpenVINO ignores the lengths."""
    path = tmp_path_factory.mktemp("models") / "ragged.onnx"
    onnx.save(two_layers("LSTM", lengths=True), path)
    return str(path)


def test_all_agree() -> None:
    done = pyrnnx("check", SMALL)
    assert (done.returncode, done.stderr) == (0, "")
    lines = [line.split() for line in done.stdout.splitlines()]
    assert [line[-1] for line in lines if line[:1] in (["ONNX"], ["OpenVINO"])] == ["agrees", "agrees"]
    (row,) = (line for line in lines if line[:1] == ["small_rnn"])
    assert len(row) == 4
    assert all(float(one) < 1e-5 for one in row[1:])


def test_one_differs(ragged: str) -> None:
    done = pyrnnx("check", ragged, "--dim", "T=7", "--dim", "N=2", "--seed", "1")
    assert (done.returncode, done.stderr) == (1, "")
    assert "differs: the oracle sides with pyrnnx (layer 'first', Y)" in " ".join(done.stdout.split())
    assert "[7, 2, 4]" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_in_a_terminal(ragged: str) -> None:
    status, text = in_terminal("check", ragged, "--against", "openvino")
    assert status == 1
    assert "\x1b[31m" in text  # red


def test_as_json(ragged: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "arrays.npz", X=np.ones((3, 2, 4), "f4"), lens=np.array([3, 3], "i4"))
    done = pyrnnx("check", ragged, "--json", "--inputs", str(tmp_path / "arrays.npz"))
    assert done.returncode == 0
    found = json.loads(done.stdout)
    assert found["agree"] is True
    assert found["input_shapes"] == {"X": [3, 2, 4], "lens": [2]}
    assert found["runtimes"]["OpenVINO"]["verdict"] == "agrees"
    assert found["layers"]["second"]["oracle"]["pyrnnx"]["status"] == "agrees"


@pytest.mark.slow
def test_tolerances() -> None:
    assert pyrnnx("check", SMALL, "--against", "onnxruntime", "--atol", "0").returncode == 1
    assert pyrnnx("check", SMALL, "--against", "onnxruntime", "--atol", "0", "--rtol", "1").returncode == 0


REJECTED = {
    "no such file": (["missing.onnx"], "missing.onnx"),
    "runtime": ([SMALL, "--against", "torch"], "against has 'torch'; expected names out of onnxruntime, openvino"),
    "seed": ([SMALL, "--seed", "x"], "check: --seed: 'x' is no integer"),
    "negative seed": ([SMALL, "--seed", "-1"], "check: --seed is -1; expected an integer, 0 or above"),
    "dimension": ([SMALL, "--dim", "T=3"], "dims has 'T'; expected symbolic dimensions of the inputs"),
    "size": ([SMALL, "--dim", "T"], "check: --dim: 'T'; expected NAME=SIZE"),
    "tolerance": ([SMALL, "--atol", "-1"], "check: --atol: '-1' is no number of 0 or above"),
    "time": ([SMALL, "--timeout", "0"], "check: --timeout: '0' is no number of seconds above 0"),
    "an input": ([SMALL, "--input", "Z=3"], "check: --input: 'Z' is unknown; expected one of X, sequence_lens"),
    "inputs": ([SMALL, "--inputs", SMALL], "expected NAME=FILE.npy, NAME=NUMBER or FILE.npz"),
    "layer with dimensions": ([SMALL.replace("onnx", "xml"), "--dim", "T=3"], "a single layer"),
}


@pytest.mark.parametrize("name", REJECTED)
def test_rejected(name: str) -> None:
    arguments, words = REJECTED[name]
    done = pyrnnx("check", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
