"""`pyrnnx check`: output and exit status."""

from __future__ import annotations

import dataclasses
import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import verdicts
from command import process, pyrnnx
from two_layers import two_layers

from pyrnnx.cli import main
from pyrnnx.cli.output import plain_values
from pyrnnx.testing.models import Judged, LayerCheck, ModelCheck, RuntimeCheck

pytestmark = pytest.mark.skipif(None in map(find_spec, ("onnxruntime", "openvino")), reason="needs both runtimes")


@pytest.fixture(scope="module")
def ragged(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A model of which OpenVINO ignores the lengths."""
    path = tmp_path_factory.mktemp("models") / "ragged.onnx"
    onnx.save(two_layers("LSTM", lengths=True), path)
    return str(path)


def checked(*statuses: str, detail: str = "") -> ModelCheck:
    """Return a result as `check_model` makes it: a layer, and a runtime for each status."""
    judged = [Judged(status, 0.5 if status == "differs" else 1e-7, detail=detail) for status in statuses]
    runtimes = [
        RuntimeCheck(f"Runtime{k}", "1.0", dataclasses.replace(one, differences={"Y": one.largest}), f"it {one.status}")
        for k, one in enumerate(judged)
    ]
    own = {"pyrnnx": Judged("agrees", 2e-8)}
    layers = LayerCheck("a", "RNN 'a'", own | dict(zip([one.name for one in runtimes], judged, strict=True)))
    both = layers, LayerCheck("b", "RNN 'b'", {}, "no steps")
    return ModelCheck("m.onnx", {"X": (7, 2, 4)}, tuple(runtimes), both, ("'X' (7, 2, 4)", "'X' (7, 3, 4)"))


def check(monkeypatch: pytest.MonkeyPatch, result: ModelCheck, *arguments: str) -> dict[str, Any]:
    """Run the command with this result, and return what `check_model` was called with."""
    calls: list[Any] = []

    def check_model(*given: Any, **options: Any) -> ModelCheck:
        calls.append({"given": given, **options})
        return result

    monkeypatch.setattr("pyrnnx.testing.models.check_model", check_model)
    calls.append(pyrnnx("check", *arguments))
    call, done = calls
    return {**call, "done": done}


def test_text(monkeypatch: pytest.MonkeyPatch) -> None:
    done = check(monkeypatch, checked("agrees", "differs", "crashed", "refuses"), "m.onnx")["done"]
    assert (done.returncode, done.stderr) == (1, "")
    assert max(map(len, done.stdout.splitlines())) <= 80
    rows = [line.split() for line in done.stdout.splitlines()]
    assert ["call", "2", "'X'", "(7,", "3,", "4)"] in rows
    assert ["Runtime1", "1.0", "0.5", "it", "differs"] in rows
    assert ["Runtime2", "1.0", "crashed", "it", "crashed"] in rows
    assert ["Y", "0.5"] in rows
    assert ["a", "2e-08", "1e-07", "0.5", "crashed", "refuses"] in rows
    assert ["b", "not", "judged:", "no", "steps"] in rows
    assert check(monkeypatch, checked("agrees", "refuses"), "m.onnx")["done"].returncode == 0
    assert check(monkeypatch, checked("agrees", "not decided"), "m.onnx")["done"].returncode == 1


def test_options(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    np.savez(tmp_path / "arrays.npz", X=np.ones(3))
    inputs = ("--input", str(tmp_path / "arrays.npz"))
    options = ("--against", "a,b", "--seed", "3", "--dim", "T=7", "--timeout", "9", "--json")
    limits = ("--atol", "1", "--rtol", "0.5")
    call = check(monkeypatch, checked("agrees"), "m.onnx", *inputs, *options, *limits)
    model, against, arrays = call.pop("given")
    assert (model, against, list(arrays)) == ("m.onnx", ["a", "b"], ["X"])
    assert json.loads(call["done"].stdout) == plain_values(checked("agrees").to_dict())
    expected = {"seed": 3, "dims": {"T": 7}, "atol": 1.0, "rtol": 0.5, "timeout": 9.0}
    assert {name: call[name] for name in expected} == expected


@pytest.mark.e2e
def test_runtimes_that_agree_and_one_that_differs(ragged: str, tmp_path: Path) -> None:
    done = process("check", ragged, "--dim", "T=7", "--dim", "N=2", "--seed", "1")
    assert (done.returncode, done.stderr) == (1, "")
    assert "differs: the oracle agrees with pyrnnx (layer 'first', Y)" in " ".join(done.stdout.split())
    assert "(7, 2, 4)" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    np.savez(tmp_path / "arrays.npz", X=np.ones((3, 2, 4), "f4"), lens=np.array([3, 3], "i4"))
    done = process("check", ragged, "--json", "--input", str(tmp_path / "arrays.npz"))
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert found["agree"] is True
    assert found["input_shapes"] == {"X": [3, 2, 4], "lens": [2]}
    assert found["runtimes"]["OpenVINO"]["verdict"] == "agrees"
    assert found["layers"]["second"]["oracle"]["pyrnnx"]["status"] == "agrees"


def test_a_constant_output_decides_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    onnx.save(verdicts.dropped(0, 0), tmp_path / "m.onnx")
    assert main(["check", str(tmp_path / "m.onnx"), "--against", "onnxruntime"]) == 1
    assert "not decided: output 'y' is constant in 5 calls" in " ".join(capsys.readouterr().out.split())
