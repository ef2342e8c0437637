"""Measured subjects and peers, and reasons for peers that are not measured. No time is asserted."""

from __future__ import annotations

import json
import math
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from rows import each_row
from two_layers import two_layers

from pyrnnx import ArgumentError, PyrnnxError
from pyrnnx.bench import peers
from pyrnnx.bench.measured import difference, measure_case, measure_model
from pyrnnx.bench.timing import measure, milliseconds
from pyrnnx.bench.workload import Case

pytestmark = pytest.mark.skipif(None in map(find_spec, ("onnxruntime", "openvino")), reason="needs both runtimes")
SMALL = Case("GRU", 5, 2, 3, 4)
BOTH = ["onnxruntime", "openvino"]
NAMES = ["pyrnnx", "ONNX Runtime", "OpenVINO"]


@each_row("dtype", ["float32", "float16"])
def test_an_operator(dtype: str) -> None:
    found = measure_case(Case("GRU", 5, 2, 3, 4, dtype=dtype), BOTH, 1, 5)
    assert list(found.seconds) == NAMES
    assert all(len(one) == 5 and min(one) > 0 for one in found.seconds.values())
    assert list(found.ratios) == NAMES[1:]
    assert found.what == f"GRU 5,2,3,4 {dtype}"
    assert json.loads(json.dumps(found.to_dict()))["median"] == found.medians


def test_no_timing_pays_for_the_call_of_another_library() -> None:
    ran: list[str] = []
    calls = {name: lambda name=name: ran.append(name) for name in "ab"}
    measure(calls, 5, clock=lambda: float(len(ran)))  # a call takes a second, so it is not repeated
    rounds = ran[-20:]
    assert rounds[::2] == rounds[1::2]
    assert sorted(rounds) == ["a"] * 10 + ["b"] * 10


def test_a_peer_that_is_wrong_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    run = peers.OnnxRuntime.run
    monkeypatch.setattr(peers.OnnxRuntime, "run", lambda self: run(self) + np.float32(0.5))
    texts: list[str] = []
    found = measure_case(SMALL, ["onnxruntime"], 1, 5, progress=texts.append)
    assert texts == [f"round {k} of 5" for k in range(1, 6)]
    assert list(found.seconds) == ["pyrnnx"]
    assert found.reasons == {"ONNX Runtime": "its Y is 0.5 apart from the float64 result"}


def test_a_peer_that_raises_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Any) -> None:
        raise RuntimeError("no such operator")

    monkeypatch.setattr(peers.OpenVINO, "prepare", refuse)
    found = measure_case(SMALL, BOTH, 1, 5)
    assert list(found.seconds) == NAMES[:2]
    assert found.reasons == {"OpenVINO": "does not run it (RuntimeError: no such operator)"}


def test_numbers_of_pyrnnx_that_are_wrong_end_it(monkeypatch: pytest.MonkeyPatch) -> None:
    canonical = peers.Pyrnnx.canonical
    monkeypatch.setattr(peers.Pyrnnx, "canonical", lambda self, Y: canonical(self, Y) + 0.25)
    with pytest.raises(PyrnnxError, match="apart from the float64 result"):
        measure_case(SMALL, BOTH, 1, 5)


def test_peers_that_are_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ArgumentError, match="against has 'tract'; expected names out of onnxruntime, openvino, torch"):
        measure_case(SMALL, ["tract"], 1, 5)
    monkeypatch.setattr(peers.OpenVINO, "is_installed", classmethod(lambda cls: False))
    with pytest.raises(ArgumentError, match="openvino is not installed; "):
        measure_case(SMALL, ["openvino"], 1, 5)
    assert "OpenVINO" not in measure_case(SMALL, None, 1, 5).reasons


@pytest.mark.slow
def test_a_model(tmp_path: Path) -> None:
    """OpenVINO ignores lengths where shapes are dynamic."""
    path = tmp_path / "model.onnx"
    onnx.save(two_layers("LSTM", lengths=True), path)
    inputs = {"X": np.random.default_rng(0).normal(size=(6, 3, 4)).astype("f4"), "lens": np.array([6, 2, 4], "i4")}
    texts: list[str] = []
    found = measure_model(path, inputs, BOTH, 1, 5, progress=texts.append)
    assert texts == [f"round {k} of 5" for k in range(1, 6)]
    assert list(found.seconds) == NAMES[:2]
    assert found.what == "model.onnx"
    assert found.differences["ONNX Runtime"] < 1e-5
    assert found.differences["OpenVINO"] > 1e-2
    assert found.reasons["OpenVINO"].endswith("`pyrnnx check` shows which are right")


def floats(values: list[Any]) -> Any:
    return np.array(values, np.float32)


def test_differences() -> None:
    one = [floats([1, 2])]
    assert difference(one, [floats([1, 2.00001])])[1]
    assert difference(one, [floats([1, 3])]) == (1.0, False)
    assert difference(one, []) == (math.inf, False)
    assert difference(one, [floats([1, np.nan])]) == (math.inf, False)
    assert difference([floats([np.nan])], [floats([np.nan])])[1]


@each_row(("seconds", "text"), [(1.234e-5, "0.0123"), (1.234e-4, "0.123"), (1.234e-3, "1.23"), (0.1234, "123")])
def test_milliseconds(seconds: float, text: str) -> None:
    assert milliseconds(seconds) == text
