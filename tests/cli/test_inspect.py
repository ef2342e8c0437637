"""`pyrnnx inspect`: descriptions of models and layers of both formats."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import onnx
import pytest
import quantized_models
from command import pyrnnx
from onnx import TensorProto, helper
from onnx_models import make_model, simple_model
from onnx_streams import stack, stepwise

from pyrnnx.cli import main
from pyrnnx.frontends.onnx import read_model
from pyrnnx.frontends.openvino import write_model
from pyrnnx.testing.cases import Case, make_arrays

EXAMPLES = Path(__file__).parents[2] / "examples"
ONNX, XML = (str(EXAMPLES / f"small_rnn.{suffix}") for suffix in ("onnx", "xml"))
NASTY = "\x1b[31mrot\n\u202e[bold]"


def facts(path: Any, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert main(["inspect", str(path), "--json"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    found: dict[str, Any] = json.loads(captured.out)
    return found


def text(path: Any, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["inspect", str(path)]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    assert max(map(len, captured.out.splitlines()[1:])) <= 80  # the first has the path
    return " ".join(captured.out.split())


def saved(model: onnx.ModelProto, path: Path) -> Path:
    onnx.save(model, path)
    return path


def test_an_onnx_model() -> None:
    done = pyrnnx("inspect", ONNX, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert (found["format"], found["opsets"]) == ("ONNX", {"ai.onnx": 14})
    assert [one["name"] for one in found["inputs"]] == ["X", "sequence_lens", "initial_h"]
    assert found["inputs"][0] == {"name": "X", "dtype": "float32", "shape": [6, 2, 4], "aliases": [], "optional": False}
    assert [one["shape"] for one in found["outputs"]] == [[6, 2, 2, 8], [2, 2, 8]]
    (layer,) = found["layers"]
    assert layer == {
        "name": "small_rnn",
        "operator": "RNN",
        "convention": "ONNX, layout 0",
        "direction": "bidirectional",
        "input_size": 4,
        "hidden_size": 8,
        "activations": [["Tanh"], ["Tanh"]],
        "clip": 3.0,
        "dtype": "float32",
        "weight_dtype": None,
        "parameters": 2 * (8 * 4 + 8 * 8 + 2 * 8),
        "mflop_per_step": 2 * 2 * 8 * (4 + 8) / 1e6,
        "weights": {"W": [2, 8, 4], "R": [2, 8, 8], "B": [2, 16]},
        "constants": {},
        "inputs": ["sequence_lens", "initial_h"],
        "unusual": ["clip=3.0", "lengths of rows"],
    }
    assert found["plan"] == [{"runner": "pyrnnx", "what": "RNN 'small_rnn'", "why": ""}]
    assert found["cannot_run"] == ""


def test_a_layer_of_an_xml_file(capsys: pytest.CaptureFixture[str]) -> None:
    found = facts(XML, capsys)
    assert (found["layer"]["operator"], found["layer"]["parameters"]) == ("RNNSequence-5", None)
    assert found["layer"]["unusual"] == ["clip=3.0"]
    assert [one["name"] for one in found["ports"]["inputs"]] == ["X", "H", "sequence_lengths", "W", "R", "B"]
    assert found["ports"]["outputs"][0] == {"name": "Y", "dtype": "float32", "shape": [2, 2, 6, 8]}
    shown = text(XML, capsys)
    for words in ("RNNSequence 'small_rnn'", "OpenVINO sequence", "bidirectional", "clip=3.0"):
        assert words in shown


def lstm(**attributes: Any) -> onnx.ModelProto:
    """Return a model with everything unusual: layout 1, peepholes, constant states, activations, input_forget."""
    case = Case("inspected", "LSTM", {}, ("B", "P", "initial_h", "initial_c"), I=4, H=5)
    arrays = make_arrays(case)
    constants = {name: array for name, array in arrays.items() if name not in ("X", "sequence_lens")}
    if attributes.get("layout"):
        constants |= {name: constants[name].swapaxes(0, 1) for name in ("initial_h", "initial_c")}
    names = ["X", "W", "R", "B", "", "initial_h", "initial_c", "P"]
    node = helper.make_node("LSTM", names, ["Y"], name="it", hidden_size=5, **attributes)
    return simple_model([node], {"X": arrays["X"]}, ["Y"], constants, 22)


def test_what_is_unusual(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    activations = ["HardSigmoid", "Tanh", "Relu"]
    model = lstm(layout=1, input_forget=1, direction="reverse", activations=activations)
    (layer,) = facts(saved(model, tmp_path / "m.onnx"), capsys)["layers"]
    assert layer["unusual"] == [
        "layout=1",
        "reverse",
        "input_forget",
        "activations",
        "peepholes",
        "constant initial_h",
        "constant initial_c",
    ]
    assert layer["activations"] == [["HardSigmoid(alpha=0.2, beta=0.5)", "Tanh", "Relu"]]
    shown = text(tmp_path / "m.onnx", capsys)
    assert "unusual layout=1, reverse, input_forget" in shown


def test_a_quantized_layer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, _ = quantized_models.make_case(quantized_models.CASES[1])
    (layer,) = facts(saved(model, tmp_path / "q.onnx"), capsys)["layers"]
    assert layer["operator"] == "DynamicQuantizeLSTM"
    assert layer["unusual"] == ["quantized: weights, X and h in 8 bits"]


def test_an_ir_with_open_sizes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_model(read_model(stepwise()), tmp_path / "m.xml")
    found = facts(tmp_path / "m.xml", capsys)
    assert found["format"] == "OpenVINO IR"
    (layer,) = found["layers"]
    assert layer["operator"] == "LSTMSequence-5"
    assert None in next(one["shape"] for one in found["inputs"] if one["name"] == "x")
    words = text(tmp_path / "m.xml", capsys)
    assert "format OpenVINO IR, version 11" in words
    assert "?" in words


def test_variables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    states, irs = pytest.importorskip("openvino_states"), pytest.importorskip("openvino_irs")
    path = irs.save(states.read_and_assign(initial=False)[0], tmp_path)
    assert {info["name"] for info in facts(path, capsys)["variables"]} == {"count", "state/h"}
    assert "Variables Name Type Shape" in text(path, capsys)


def test_what_cannot_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [3]) for name in ("X", "Y")]
    node = helper.make_node("Unheard", ["X"], ["Y"], domain="nowhere")
    model = make_model(
        helper.make_graph([node], "g", value[:1], value[1:]), opset_imports=[helper.make_opsetid("nowhere", 1)]
    )
    path = saved(model, tmp_path / "m.onnx")
    found = facts(path, capsys)
    assert "Unheard" in found["cannot_run"]
    assert found["plan"] == []
    assert "It cannot run why" in text(path, capsys)


def test_names_are_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = onnx.load(ONNX)
    model.graph.node[0].name = NASTY
    model.graph.output[0].name = model.graph.node[0].output[0] = NASTY
    path = saved(model, tmp_path / f"{NASTY}.onnx")
    assert main(["inspect", str(path)]) == 0
    shown = capsys.readouterr().out
    assert r"\x1b[31mrot\n\u202e[bold]" in shown
    assert all(line.isprintable() for line in shown.split("\n"))
    assert facts(path, capsys)["layers"][0]["name"] == NASTY


def test_layers_that_are_alike_are_shown_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = saved(stack(["GRU", "LSTM", "LSTM", "LSTM"]), tmp_path / "m.onnx")
    assert len(facts(path, capsys)["layers"]) == 4
    shown = text(path, capsys)
    assert "layer1 layer2 layer3 operator LSTM," in shown
    assert shown.count("operator") == 2
