"""`pyrnnx bench`: output, files and exit status. No time is asserted."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import onnx
import pytest
from command import in_terminal, process, pyrnnx
from two_layers import two_layers

EXAMPLES = Path(__file__).parents[2] / "examples"
SMALL = str(EXAMPLES / "small_rnn.onnx")
OP = ("--op", "GRU", "--shape", "5,2,3,4", "--repeat", "5")

pytestmark = pytest.mark.skipif(None in map(find_spec, ("onnxruntime", "openvino")), reason="needs both runtimes")


@pytest.mark.e2e
def test_a_peer_that_dies_is_no_end(tmp_path: Path) -> None:
    """ONNX Runtime aborts on a GRU of no time steps."""
    onnx.save(two_layers("GRU"), tmp_path / "m.onnx")
    arguments = ("--dim", "T=0", "--against", "onnxruntime", "--repeat", "5", "--json")
    done = process("bench", str(tmp_path / "m.onnx"), *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert list(found["seconds"]) == ["pyrnnx"]
    assert found["reasons"]["ONNX Runtime"].startswith("crashed (")


def test_an_operator() -> None:
    options = ("--bidirectional", "--linear-before-reset", "--against", "onnxruntime,openvino")
    done = pyrnnx("bench", *OP, *options)
    assert (done.returncode, done.stderr) == (0, "")
    assert " ".join(done.stdout.split()).startswith(
        "GRU 5,2,3,4 float32 bidirectional linear_before_reset=1 one thread"
    )
    rows = [line.split() for line in done.stdout.splitlines()]
    peers = [row for row in rows if row and row[0] in ("pyrnnx", "ONNX", "OpenVINO")]
    assert [row[0] for row in peers][:3] == ["pyrnnx", "ONNX", "OpenVINO"]
    assert all(float(row[-1]) > 0 for row in peers[1:3])
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_what_is_not_timed_is_said_in_a_terminal() -> None:
    status, text = in_terminal("bench", *OP, "--dtype", "float64", "--against", "onnxruntime,openvino")
    assert status == 0
    words = " ".join(text.split())
    assert "has no float64 kernel" in words
    assert "computes float64 models in float32" in words
