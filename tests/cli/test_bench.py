"""`pyrnnx bench` in a process of its own: what it prints and writes, and its exit status. No time is asserted."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest
from command import in_terminal, pyrnnx
from two_layers import two_layers

EXAMPLES = Path(__file__).parents[2] / "examples"
SMALL = str(EXAMPLES / "small_rnn.onnx")
OP = ("--op", "GRU", "--shape", "5,2,3,4", "--repeat", "5")

pytest.importorskip("onnxruntime")
pytest.importorskip("openvino")


def test_an_operator() -> None:
    done = pyrnnx("bench", *OP, "--against", "onnxruntime,openvino")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("GRU 5,2,3,4 float32  one thread, 5 rounds\n")
    rows = [line.split() for line in done.stdout.splitlines()]
    assert [row[0] for row in rows[3:6]] == ["pyrnnx", "ONNX", "OpenVINO"]
    assert all(float(row[-1]) > 0 for row in rows[4:6])
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_the_form_of_an_operator_is_spelled_out() -> None:
    forms = ("--bidirectional", "--linear-before-reset", "--against", "onnxruntime")
    done = pyrnnx("bench", *OP, *forms, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["what"] == "GRU 5,2,3,4 float32 bidirectional linear_before_reset=1"


def test_a_model_as_json() -> None:
    done = pyrnnx("bench", SMALL, "--against", "onnxruntime", "--repeat", "5", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert found["what"] == "small_rnn.onnx"
    assert {name: len(one) for name, one in found["seconds"].items()} == {"pyrnnx": 5, "ONNX Runtime": 5}
    assert found["difference"]["ONNX Runtime"] < 1e-5


def test_a_peer_that_dies_is_no_end(tmp_path: Path) -> None:
    """ONNX Runtime aborts on a GRU of no time steps."""
    onnx.save(two_layers("GRU"), tmp_path / "m.onnx")
    arguments = ("--dim", "T=0", "--against", "onnxruntime", "--repeat", "5", "--json")
    done = pyrnnx("bench", str(tmp_path / "m.onnx"), *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert list(found["seconds"]) == ["pyrnnx"]
    assert found["reasons"]["ONNX Runtime"].startswith("crashed (")


def test_what_is_not_timed_is_said_in_a_terminal() -> None:
    status, text = in_terminal("bench", *OP, "--dtype", "float64", "--against", "onnxruntime")
    assert status == 0
    assert "has no float64 kernel" in text


def test_a_picture(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    arguments = (*OP, "--bidirectional", "--linear-before-reset", "--plot", str(tmp_path / "times.svg"))
    done = pyrnnx("bench", *arguments, "--against", "openvino")
    assert (done.returncode, done.stderr) == (0, "")
    assert "<svg" in (tmp_path / "times.svg").read_text(encoding="utf-8")


REJECTED = {
    "nothing": ([], "bench: neither of MODEL and --op was given; expected one"),
    "both": ([SMALL, *OP], "bench: both of MODEL and --op was given; expected one"),
    "operator": (["--op", "lstm"], "bench: --op is 'lstm'; expected one of LSTM, GRU, RNN"),
    "shape": (["--op", "LSTM", "--shape", "1,2,3"], "bench: --shape is '1,2,3'; expected T,N,I,H"),
    "size": (["--op", "LSTM", "--shape", "1,0,3,4"], "bench: --shape is 0; expected an integer, 1 or above"),
    "type": (["--op", "LSTM", "--dtype", "int8"], "bench: --dtype is 'int8'; expected one of float32"),
    "form": (["--op", "LSTM", "--linear-before-reset"], "expected GRU"),
    "of an operator": ([SMALL, "--shape", "1,2,3,4"], "bench: --shape was given with a model; expected none"),
    "of a model": ([*OP, "--dim", "T=3"], "bench: --dim was given with --op; expected none"),
    "threads": ([*OP, "--threads", "0"], "bench: --threads is 0; expected an integer, 1 or above"),
    "runtime": ([SMALL, "--against", "torch"], "against has 'torch'; expected names out of onnxruntime, openvino"),
    "layer": ([SMALL.replace("onnx", "xml")], "is a single layer; expected a whole model, or --op"),
    "picture": ([*OP, "--plot", "/missing/times.png", "--against", "onnxruntime"], "cannot be written"),
}


@pytest.mark.parametrize("name", REJECTED)
def test_rejected(name: str) -> None:
    arguments, words = REJECTED[name]
    done = pyrnnx("bench", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
