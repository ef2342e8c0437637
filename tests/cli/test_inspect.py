"""`pyrnnx inspect`: what it says of models and layers of both formats."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import onnx
import pytest
import quantized_models
from command import pyrnnx
from onnx import TensorProto, helper, numpy_helper
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
    assert max(map(len, captured.out.splitlines())) <= 80
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
    assert found["inputs"][0] == {
        "name": "X",
        "dtype": "float32",
        "shape": [6, 2, 4],
        "aliases": [],
        "optional": False,
    }
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
    """With all that is unusual: layout 1, peepholes, constant states, activations, input_forget."""
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


def test_layers_that_are_alike_are_shown_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = saved(stack(["GRU", "LSTM", "LSTM", "LSTM"]), tmp_path / "m.onnx")
    assert len(facts(path, capsys)["layers"]) == 4
    shown = text(path, capsys)
    assert "layer1 layer2 layer3 operator LSTM," in shown
    assert shown.count("operator") == 2


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
    assert "?" in text(tmp_path / "m.xml", capsys)


STATEFUL = """<net name="counting" version="11"><layers>
<layer id="0" name="x" type="Parameter" version="opset1"><data shape="2" element_type="f32"/>
<output><port id="0" precision="FP32"><dim>2</dim></port></output></layer>
<layer id="1" name="r" type="ReadValue" version="opset6">
<data variable_id="sum" variable_type="f32" variable_shape="2"/>
<output><port id="0" precision="FP32"><dim>2</dim></port></output></layer>
<layer id="2" name="add" type="Add" version="opset1"><data auto_broadcast="numpy"/>
<input><port id="0"><dim>2</dim></port><port id="1"><dim>2</dim></port></input>
<output><port id="2" precision="FP32"><dim>2</dim></port></output></layer>
<layer id="3" name="a" type="Assign" version="opset6"><data variable_id="sum"/>
<input><port id="0"><dim>2</dim></port></input>
<output><port id="1" precision="FP32"><dim>2</dim></port></output></layer>
<layer id="4" name="y" type="Result" version="opset1"><input><port id="0"><dim>2</dim></port></input></layer>
</layers><edges>
<edge from-layer="0" from-port="0" to-layer="2" to-port="0"/>
<edge from-layer="1" from-port="0" to-layer="2" to-port="1"/>
<edge from-layer="2" from-port="2" to-layer="3" to-port="0"/>
<edge from-layer="2" from-port="2" to-layer="4" to-port="0"/>
</edges></net>"""


def test_variables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "m.xml").write_text(STATEFUL)
    found = facts(tmp_path / "m.xml", capsys)
    assert [(one["name"], one["dtype"], one["shape"]) for one in found["variables"]] == [("sum", "float32", [2])]
    assert found["cannot_run"] == ""
    assert "Variables Name Type Shape" in text(tmp_path / "m.xml", capsys)


def unrolled() -> onnx.ModelProto:
    nodes = [helper.make_node("MatMul", [f"h{k - 1}" if k else "X", "R"], [f"h{k}"]) for k in range(4)]
    value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [3, 3]) for name in ("X", "h3")]
    R = numpy_helper.from_array(make_arrays(Case("R", "RNN", {}, (), I=3, H=3))["R"][0], "R")
    return make_model(helper.make_graph(nodes, "g", value[:1], value[1:], [R]))


def test_why_there_are_no_layers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = saved(unrolled(), tmp_path / "m.onnx")
    assert "4 matrix products share one weight" in facts(path, capsys)["why_no_layers"]
    assert "Recurrent layers 0 none 4 matrix products share one weight" in text(path, capsys)


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


@pytest.mark.skipif(find_spec("onnxruntime") is None, reason="what ONNX Runtime does not run")
def test_slow_parts_stand_in_the_plan_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    value = [helper.make_tensor_value_info(name, TensorProto.BFLOAT16, [3]) for name in ("X", "Y")]
    node = helper.make_node("Elu", ["X"], ["Y"])
    path = saved(
        make_model(helper.make_graph([node], "g", value[:1], value[1:]), 22, ir_version=10), tmp_path / "m.onnx"
    )
    (row,) = facts(path, capsys)["plan"]
    assert row["runner"] == "reference evaluator"
    assert row["why"]
    assert "Runs on What Why" in text(path, capsys)


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


REJECTED = {
    "no such file": ("missing.onnx", "'missing.onnx' cannot be read"),
    "another suffix": ("model.pb", "expected .onnx or .xml"),
    "a folder": (f"{EXAMPLES}", "is a folder; expected a file that ends in"),
}


@pytest.mark.parametrize("name", REJECTED)
def test_rejected(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    path, words = REJECTED[name]
    for more in ([], ["--json"]):
        assert main(["inspect", path, *more]) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert words in captured.err
        assert captured.err.count("\n") == 1


def test_an_ir_says_its_version_and_what_its_layers_take(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_model(str(EXAMPLES / "small_rnn.onnx"), tmp_path / "s.xml")
    assert main(["inspect", str(tmp_path / "s.xml")]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "format OpenVINO IR, version 11" in lines
    assert "inputs beside X sequence_lens, initial_h" in lines
