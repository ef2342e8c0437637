"""What is not translated: an error that names the layer, when the model is called or exported; its layers still run."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import openvino_nets as nets
import pytest
from openvino_irs import save
from openvino_nets import edges, layer, net, parameter, result
from openvino_operations import Maker, const, f32, i64, ops

from pyrnnx import FormatError, PyrnnxError, UnsupportedError
from pyrnnx.frontends.openvino import Model, read_model, to_onnx

openvino = pytest.importorskip("openvino")


def one_layer(kind: str, data: dict[str, Any] | None = None, version: str = "opset1", inputs: int = 1) -> Model:
    """Parameters x0, x1, ... of shape [2, 3] into the layer "odd", and its output."""
    xs = [parameter(k, f"x{k}", "2,3", (2, 3)) for k in range(inputs)]
    odd = layer(7, "odd", kind, data, [("FP32", (2, 3))] * inputs, [("FP32", (2, 3))], version)
    connections = edges(*(f"{k}.0 7.{k}" for k in range(inputs)), f"7.{inputs} 9.0")
    return read_model(net([*xs, odd, result(9, "y", (2, 3))], connections), b"")


@dataclass(frozen=True)
class Case:
    name: str
    kind: str
    words: tuple[str, ...]
    data: dict[str, Any] = field(default_factory=dict)
    version: str = "opset1"
    inputs: int = 1
    error: type[PyrnnxError] = UnsupportedError


NO_BROADCAST = {"auto_broadcast": "pdpd"}
CASES = (
    Case("unknown type", "Frobnicate", ("Frobnicate of opset4 cannot be run", "not translated"), version="opset4"),
    Case("an extension's version", "Abs", ("Abs of extension cannot be run",), version="extension"),
    Case("a later operation's older version", "GroupNormalization", ("of opset2 cannot be run",), version="opset2"),
    Case("attention GRU", "AUGRUSequence", ("AUGRUSequence of opset5", "attention"), version="opset5"),
    Case("loss", "CTCLoss", ("CTCLoss of opset4", "for training", "CTCGreedyDecoder"), version="opset4"),
    Case("loop", "TensorIterator", ("TensorIterator of opset1", "loop")),
    Case("state of a stateful model", "ReadValue", ("ReadValue of opset6",), version="opset6"),
    Case("before its first opset", "Mish", ("Mish of opset3", "expected opset4 or later"), version="opset3"),
    Case("random", "RandomUniform", ("RandomUniform of opset8",), version="opset8"),
    Case(
        "unknown attribute", "Abs", ("'speed' ('fast') is not known of Abs opset1", "expected none"), {"speed": "fast"}
    ),
    Case(
        "unknown attribute beside known ones",
        "SoftMax",
        ("'beam' ('3')", "expected axis"),
        {"axis": 1, "beam": 3},
        "opset8",
    ),
    Case("broadcast as Caffe does", "Add", ("auto_broadcast is 'pdpd'", "numpy or none"), NO_BROADCAST, inputs=2),
    Case("no number", "Elu", ("alpha is 'much'; expected a number",), {"alpha": "much"}, error=FormatError),
    Case("missing attribute", "Elu", ("attribute 'alpha' is missing",), error=FormatError),
    Case(
        "no integer", "SoftMax", ("axis is '1.5'; expected an integer",), {"axis": "1.5"}, "opset8", error=FormatError
    ),
    Case("unknown rounding", "Round", ("mode is 'up'", "half_to_even or half_away"), {"mode": "up"}, "opset5"),
    Case("unknown element type", "Convert", ("'f99'",), {"destination_type": "f99"}, error=FormatError),
    Case("element type that is not read", "Convert", ("'nf4'",), {"destination_type": "nf4"}),
    Case(
        "weights of a mean",
        "EmbeddingBagPacked",
        ("per_sample_weights (input 2) are given; expected none of a mean",),
        {"reduction": "mean"},
        "opset15",
        inputs=3,
        error=FormatError,
    ),
    Case("unknown reduction", "EmbeddingBagPacked", ("reduction is 'max'",), {"reduction": "max"}, "opset15", 2),
    Case("missing input", "Add", ("input 1 is missing; the layer has 1",), error=FormatError),
    Case(
        "computed order",
        "Transpose",
        ("order (input 1) is computed by Parameter 'x1' (id 1) from the model's inputs",),
        inputs=2,
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_error_names_layer_and_cause(case: Case) -> None:
    model = one_layer(case.kind, case.data, case.version, case.inputs)
    for act in (lambda: to_onnx(model), lambda: model(*[np.ones((2, 3), np.float32)] * case.inputs)):
        with pytest.raises(case.error, match=re.escape(f"{case.kind} 'odd' (id 7): ")) as caught:
            act()
        for words in case.words:
            assert words in str(caught.value)


def test_recurrent_layers_of_such_a_model_run() -> None:
    text, weights = nets.lstm_net()
    model = read_model(text.replace('type="ReLU"', 'type="Frobnicate"'), weights)
    arrays = nets.lstm_inputs()
    with pytest.raises(UnsupportedError, match=r"Frobnicate 'relu' \(id 7\): Frobnicate of opset1 cannot be run"):
        model(*arrays.values())
    Y, Ho, Co = model.layers["lstm"](arrays["X"], arrays["H"], arrays["C"], arrays["lengths"])
    assert np.abs(Y).max() > 0.01
    assert Ho.shape == Co.shape


def test_what_no_output_needs_may_be_anything() -> None:
    text, weights = nets.lstm_net()
    odd = layer(20, "odd", "Frobnicate", None, [("FP32", (-1, 1, 6))], [("FP32", (-1, 1, 6))])
    text = text.replace("</layers>", f"{odd}</layers>").replace("</edges>", f"{edges('1.0 20.0')}</edges>")
    read_model(text, weights)(*nets.lstm_inputs().values())


def test_value_that_no_output_needs() -> None:
    """Asked for by name, beside layers that are not translated, have an option that is not, or are behind such."""
    row = [("FP32", (2, 3))]
    layers = [
        parameter(0, "x", "2,3", (2, 3)),
        layer(1, "odd", "Frobnicate", None, row, row),
        layer(2, "behind", "Negative", None, row, row),
        layer(3, "pdpd", "Add", NO_BROADCAST, row * 2, row),
        layer(4, "wanted", "Negative", None, row, row),
        layer(5, "abs", "Abs", None, row, row),
        result(6, "y", (2, 3)),
    ]
    connections = edges("0.0 1.0", "1.1 2.0", "0.0 3.0", "0.0 3.1", "0.0 4.0", "0.0 5.0", "5.1 6.0")
    model = read_model(net(layers, connections), b"")
    x = np.full((2, 3), 2, np.float32)
    assert model(x, outputs=["wanted"])["wanted"].tolist() == [[-2] * 3] * 2
    with pytest.raises(UnsupportedError, match=r"Negative 'behind' \(id 2\)"):
        model(x, outputs=["behind"])


# Options of operations that OpenVINO has and ONNX has not


@dataclass(frozen=True)
class Option:
    name: str
    make: Any
    words: str
    dynamic: bool = False


OPTIONS = (
    Option("Pad", lambda p: ops(12).pad(p(3, 3), const([-1, 0]), const([0, 2]), "reflect"), r"pads is \[-1, 0, 0, 2\]"),
    Option("LRN", lambda p: ops(1).lrn(p(1, 3, 4, 4), const([2, 3]), 1, 0.75, 1, 3), r"axes is \[2, 3\]"),
    Option("DepthToSpace", lambda p: ops(1).depth_to_space(p(1, 4, 6), "depth_first", 2), "rank of the input is 3"),
    Option(
        "Interpolate",
        lambda p: ops(11).interpolate(
            p(1, 1, 4, 4), const([2, 2]), "linear_onnx", "sizes", antialias=True, axes=const([2, 3])
        ),
        "antialias is True",
    ),
    Option(
        "Interpolate nearest_mode",
        lambda p: ops(11).interpolate(
            p(1, 1, 4, 4), const([2, 2]), "nearest", "sizes", nearest_mode="simple", axes=const([2, 3])
        ),
        "nearest_mode is 'simple'",
    ),
    Option(
        "Interpolate transform",
        lambda p: ops(11).interpolate(
            p(1, 1, 4, 4),
            const([2, 2]),
            "nearest",
            "sizes",
            coordinate_transformation_mode="tf_half_pixel_for_nn",
            axes=const([2, 3]),
        ),
        "coordinate_transformation_mode is 'tf_half_pixel_for_nn'",
    ),
    Option(
        "BitwiseLeftShift",
        lambda p: ops(15).bitwise_left_shift(p(2, dtype=i64), p(2, dtype=i64)),
        "element type is 'int64'",
    ),
    Option(
        "AdaptiveAvgPool",
        lambda p: ops(8).adaptive_avg_pool(p(1, 2, 5, 5), const([2, 2])),
        r"output_shape is \[2, 2\]",
        True,
    ),
    Option(
        "ScatterElementsUpdate",
        lambda p: ops(12).scatter_elements_update(p(5), p(2, dtype=i64), p(2), const(0), "mean"),
        "reduction is 'mean'",
    ),
    Option("Squeeze", lambda p: ops(15).squeeze(p(1, 3), const([0, 1]), True), "allow_axis_skip is True", True),
    Option("MaxPool", lambda p: ops(1).max_pool(p(1, 1, 8), [3], [1], [1], [3], "ceil"), "rounding_type is 'ceil'"),
    Option("Selu", lambda p: ops(1).selu(p(2), p(1), const(1, f32)), r"alpha \(input 1\) is computed"),
)


@pytest.mark.parametrize("case", OPTIONS, ids=lambda case: case.name)
def test_option_that_onnx_does_not_have(case: Option, tmp_path: Path) -> None:
    maker = Maker(case.name, dynamic=case.dynamic)
    node = case.make(maker)
    model = openvino.Model([openvino.opset1.result(node.output(0))], maker.parameters, "one")
    with pytest.raises(UnsupportedError, match=rf"{case.name.split()[0]} '.*' \(id \d+\): {case.words}"):
        to_onnx(read_model(save(model, tmp_path)))
