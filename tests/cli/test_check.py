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
from rows import each_row
from two_layers import two_layers

from pyrnnx.bench.measured import Measurement
from pyrnnx.cli import main
from pyrnnx.cli.output import plain_values
from pyrnnx.cli.verdict import verdict
from pyrnnx.testing.models import Judged, LayerCheck, ModelCheck, RuntimeCheck

pytestmark = pytest.mark.skipif(None in map(find_spec, ("onnxruntime", "openvino")), reason="needs both runtimes")


@pytest.fixture(scope="module")
def ragged(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A model of which OpenVINO ignores the lengths."""
    path = tmp_path_factory.mktemp("models") / "ragged.onnx"
    onnx.save(two_layers("LSTM", lengths=True), path)
    return str(path)


def checked(*statuses: str, own: str = "agrees", layer: tuple[str, ...] = ()) -> ModelCheck:
    """Return a result as `check_model` makes it: a runtime for each status, and a layer, which may have others."""
    judged = [Judged(status, 0.5 if status == "differs" else 1e-7, "Y") for status in statuses]
    runtimes = [
        RuntimeCheck(f"Runtime{k}", "1.0", dataclasses.replace(one, differences={"Y": one.largest}), f"it {one.status}")
        for k, one in enumerate(judged)
    ]
    of_layer = [Judged(status, 0.5 if status == "differs" else 1e-7, "Y") for status in layer or statuses]
    others = dict(zip([one.name for one in runtimes], of_layer, strict=True))
    layers = LayerCheck("a", "RNN 'a'", {"pyrnnx": Judged(own, 2e-8), **others}, alone=True)
    both = layers, LayerCheck("b", "RNN 'b'", {}, "no steps")
    calls = "'X' (7, 2, 4)", "'X' (7, 3, 4)"
    return ModelCheck("m.onnx", {"X": (7, 2, 4)}, tuple(runtimes), both, calls, "0.0001", {"N": 2, "X axis 1": 3})


def check(monkeypatch: pytest.MonkeyPatch, result: ModelCheck, *arguments: str) -> dict[str, Any]:
    """Run the command with this result, and return what `check_model` was called with."""
    calls: list[Any] = []

    def check_model(*given: Any, **options: Any) -> ModelCheck:
        calls.append({"given": given, **options})
        return result

    monkeypatch.setattr("pyrnnx.testing.models.check_model", check_model)
    calls.append(pyrnnx("check", "m.onnx", "--no-speed", *arguments))
    call, done = calls
    return {**call, "done": done}


def test_text(monkeypatch: pytest.MonkeyPatch) -> None:
    done = check(monkeypatch, checked("agrees", "differs", "crashed", "refuses"))["done"]
    assert (done.returncode, done.stderr) == (1, "")
    *lines, warning, right = done.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    rows = [line.split() for line in lines]
    assert ["Runtime1", "1.0", "0.5", "it", "differs"] in rows
    assert ["Runtime2", "1.0", "crashed", "it", "crashed"] in rows
    assert ["Y", "0.5"] in rows
    assert ["a", "(alone)", "2e-08", "1e-07", "0.5", "crashed", "refuses"] in rows
    assert ["b", "not", "judged:", "no", "steps"] in rows
    words = "warning: sizes were guessed (N=2, X axis 1=3); set them by --dim N=SIZE --input X=FILE.npy"
    assert warning == words
    assert right.startswith("Right: Runtime0 1.0 agrees with the outputs; the float64 oracle agrees with 1 of 2 ")
    assert check(monkeypatch, checked("agrees", "refuses"))["done"].returncode == 0
    assert check(monkeypatch, checked("agrees", "not decided"))["done"].returncode == 1


def test_options(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    np.savez(tmp_path / "arrays.npz", X=np.ones(3))
    inputs = ("--input", str(tmp_path / "arrays.npz"))
    options = ("--against", "a,b", "--seed", "3", "--dim", "T=7", "--timeout", "9", "--json")
    limits = ("--atol", "1", "--rtol", "0.5")
    call = check(monkeypatch, checked("agrees"), *inputs, *options, *limits)
    model, against, arrays = call.pop("given")
    assert (model, against, list(arrays)) == ("m.onnx", ["a", "b"], ["X"])
    found = json.loads(call["done"].stdout)
    assert plain_values(checked("agrees").to_dict()).items() <= found.items()
    assert (found["speed"], list(found["verdict"])) == ([], ["right"])
    expected = {"seed": 3, "dims": {"T": 7}, "atol": 1.0, "rtol": 0.5, "timeout": 9.0}
    assert {name: call[name] for name in expected} == expected


def times(threads: int, ratio: float) -> Measurement:
    theirs = {"Runtime0": [ratio * 1e-3] * 3} if ratio else {}
    return Measurement("m.onnx", threads, {"pyrnnx": [1e-3] * 3, **theirs}, {}, {})


# The result, the ratios of times with one thread and with two, and parts of the first and the last line.
VERDICTS: dict[str, tuple[ModelCheck, list[float], str, str]] = {
    "agrees": (checked("agrees"), [1.5, 2], "Right: Runtime0 1.0 agrees", "yes: door is 1.50 to 2.00 times as fast as"),
    "one thread": (checked("agrees"), [1.5, 0.5], "Right: ", "with 1 thread only: door is 0.50 to 1.50 times"),
    "refuses": (checked("refuses"), [0], "Right: the float64 oracle agrees with 1 of 2", "yes: door runs the model"),
    "blamed": (
        checked("differs"),
        [0.9],
        "Right: the float64 oracle agrees with 1 of 2 recurrent layers; Runtime0 it differs; from the oracle, the "
        "nearest first: pyrnnx 2e-08, Runtime0 0.5 (tolerance 0.0001)",
        "yes: door is right where Runtime0 is not, and 0.90 times as fast",
    ),
    "pyrnnx is wrong": (
        checked("differs", own="differs", layer=("agrees",)),
        [2],
        "Wrong: the float64 oracle does not agree with 'a' in pyrnnx",
        "no: report the layer",
    ),
    "the rest differs": (checked("differs", layer=("agrees",)), [2], "Not decided: Runtime0 it differs", "yes: "),
    "not decided": (checked("not decided", layer=("agrees",)), [1], "Not decided: Runtime0 it not decided", "no: "),
}


@each_row(("result", "ratios", "first", "last"), VERDICTS.values(), ids=VERDICTS)
def test_verdicts(result: ModelCheck, ratios: list[float], first: str, last: str) -> None:
    speeds = [times(k, ratio) for k, ratio in enumerate(ratios, 1)]
    if not any(ratios):
        speeds = [dataclasses.replace(speed, reasons={"Runtime0": "does not run it"}) for speed in speeds]
    lines = verdict(result, speeds, "door", "Runtime0")
    assert lines["right"].startswith(first)
    assert lines["speed"].startswith("Speed: with 1 thread 1.00 ms a call, ")
    assert lines["worth"].startswith(f"Worth it: {last}")


def test_unsteady_times_decide_nothing() -> None:
    speed = Measurement("m.onnx", 1, {"pyrnnx": [1e-3] * 4, "Runtime0": [8e-4, 9e-4, 2e-3, 3e-3]}, {}, {})
    lines = verdict(checked("agrees"), [speed], "door", "Runtime0")
    assert lines["worth"].startswith("Worth it: not decided: door is 0.88 to 2.25 times as fast; close other programs")


@pytest.mark.e2e
def test_runtimes_that_agree_and_one_that_differs(ragged: str, tmp_path: Path) -> None:
    done = process("check", ragged, "--dim", "T=7", "--dim", "N=2", "--seed", "1", "--no-speed")
    assert (done.returncode, done.stderr) == (1, "")
    assert "differs: the oracle agrees with pyrnnx (layer 'first', Y)" in " ".join(done.stdout.split())
    assert "(7, 2, 4)" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("Right: ONNX Runtime ")
    np.savez(tmp_path / "arrays.npz", X=np.ones((3, 2, 4), "f4"), lens=np.array([3, 3], "i4"))
    done = process("check", ragged, "--json", "--against", "onnxruntime", "--input", str(tmp_path / "arrays.npz"))
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert found["agree"] is True
    assert found["runtimes"]["ONNX Runtime"]["verdict"] == "agrees"
    assert found["layers"]["second"]["oracle"]["pyrnnx"]["status"] == "agrees"
    assert found["timed_sizes"] == {}
    assert all(list(speed["seconds"]) == ["pyrnnx", "ONNX Runtime"] for speed in found["speed"])


@pytest.mark.e2e
def test_a_constant_output_decides_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    onnx.save(verdicts.dropped(0, 0), tmp_path / "m.onnx")
    assert main(["check", str(tmp_path / "m.onnx"), "--against", "onnxruntime", "--no-speed"]) == 1
    assert "not decided: output 'y' is constant in 5 calls" in " ".join(capsys.readouterr().out.split())
