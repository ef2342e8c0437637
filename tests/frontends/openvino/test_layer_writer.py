"""Layers written as IR: the XML, the same operator and model when read back, and refusals."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from layers import bfloat16, float16, float32, float64
from openvino_irs import run_exported
from openvino_nodes import drawn_case, make_layer
from rows import each_row

from pyrnnx import Layer, RecurrentOp
from pyrnnx.errors import UnsupportedError
from pyrnnx.frontends.onnx import from_node
from pyrnnx.frontends.openvino import OPERATIONS, BoundLayer, read_layer, read_model, to_onnx, write_layer, write_model
from pyrnnx.operator.op import Activation
from pyrnnx.testing.cases import OPERATORS, Case, make_arrays, random_cases
from pyrnnx.testing.numbers import Array, assert_close, tolerance_of
from pyrnnx.testing.onnx_models import make_node

each_operator = pytest.mark.parametrize("operator", OPERATORS)


def test_every_operator_reads_back_or_is_refused() -> None:
    for case in random_cases(1, 60):
        arrays = make_arrays(case)
        layer = from_node(make_node(case, arrays), arrays, case.opset)
        version = 1 if layer.op.input_forget else 5
        if ("P" in case.inputs and version == 5) or len(set(layer.op.activations)) > 1:
            with pytest.raises(UnsupportedError, match=rf"^{case.operator}: .*{case.operator}Sequence-{version}"):
                write_layer(layer)
            continue
        if layer.op.input_forget and layer.op.activations[0][0].name != "Sigmoid":
            with pytest.raises(UnsupportedError, match=r"^LSTM: input_forget with activation .* translated"):
                write_layer(layer)
            continue
        read = read_layer(write_layer(layer))
        assert (read.op, read.dtype) == (layer.op, case.dtype)
        assert read.operation is OPERATIONS[f"{case.operator}Sequence-{version}"]
        assert read.sizes == {"I": case.I}
        assert write_layer(read) == write_layer(layer)


SPELLING = """<layer id="14" name="g" type="GRUSequence" version="opset5">
	<data direction="forward" linear_before_reset="false" hidden_size="2" activations="hardsigmoid, tanh" \
activations_alpha="0.25" activations_beta="0.5" clip="0.4000000059604645"/>
	<input>
		<port id="0" precision="FP32">
			<dim>-1</dim>
			<dim>-1</dim>
			<dim>3</dim>
		</port>
"""


def test_spelling() -> None:
    """The text is that of openvino.save_model, except the blank before "/>" and needless digits of clip."""
    functions = (Activation("HardSigmoid", 0.25, 0.5), Activation("Tanh"))
    op = RecurrentOp("GRU", 2, activations=(functions,), clip=float(np.float32(0.4)))
    text = write_layer(Layer(op, *(np.ones((1, 6, k), np.float32) for k in (3, 2)), name="g"), id=14)
    assert text.startswith(SPELLING)
    assert text.endswith("\t</output>\n</layer>")


def test_a_layer_of_an_ir_keeps_what_it_declares() -> None:
    """Port ids with gaps, static and dynamic shapes, integer type of lengths, no precision, its id."""
    text = write_layer(make_layer(), id=3)
    text = text.replace('<port id="7"', '<port id="17"').replace("FP32", "FP16").replace("I32", "U8")
    text = text.replace("<dim>-1</dim>", "<dim>4</dim>", 1).replace('id="1" precision="FP16"', 'id="1"')
    layer = read_layer(text)
    assert layer.inputs[0].shape[0] == 4
    assert layer.inputs[1].precision is None
    assert read_layer(write_layer(layer)) == layer
    assert read_layer(write_layer(layer, id=0)) == replace(layer, id="0")


@pytest.mark.parametrize("dtype", [float16, bfloat16, float64], ids=str)
@each_operator
def test_dtypes_stay(operator: str, dtype: Any, tmp_path: Path) -> None:
    """W and R come back bit for bit, gates rearranged; B is the sum, rounded to the dtype."""
    drawn = drawn_case(Case(f"{operator}-{dtype}", operator, {"direction": "reverse"}, ("B", "initial_h"), dtype=dtype))
    layer = drawn.layer()
    (read,) = read_model(write_model(layer, tmp_path / "layer.xml")).layers.values()
    blocks = {"RNN": [0], "GRU": [0, 1, 2], "LSTM": [2, 0, 3, 1]}[operator]  # f, i, c, o of i, o, f, c
    H = drawn.case.H

    def rearranged(array: Array) -> Array:
        return np.concatenate([array[:, k * H : (k + 1) * H] for k in blocks], axis=1)

    assert isinstance(read, BoundLayer)
    both = np.split(drawn.arrays["B"], 2, axis=1)
    for name, expected in {"W": drawn.arrays["W"], "R": drawn.arrays["R"], "B": both[0] + both[1]}.items():
        assert read.weights[name].dtype == dtype
        np.testing.assert_array_equal(read.weights[name], rearranged(expected))


@each_row("peepholes", [False, True])
@each_row("direction", ["forward", "reverse", "bidirectional"])
def test_input_forget_there_and_back(direction: str, peepholes: bool, tmp_path: Path) -> None:
    """f = 1 - i of ONNX as i = 1 - f of LSTMSequence-1, and as ONNX again: the same numbers, the same weights."""
    attributes = {"direction": direction, "input_forget": 1, "clip": 0.75}
    optional = ("B", "initial_h", "initial_c", *(["P"] if peepholes else []))
    drawn = drawn_case(Case(f"coupled-{direction}", "LSTM", attributes, optional, (4, 0, 2)))
    layer, H = drawn.layer(), drawn.case.H
    model = read_model(write_model(layer, tmp_path / "layer.xml"))
    ((_, read),) = model.layers.items()
    assert isinstance(read, BoundLayer)
    assert (read.op, read.operation) == (layer.op, OPERATIONS["LSTMSequence-1"])
    inputs = drawn.ir_inputs()
    in_port_order = [inputs[name] for name in ("X", "H", "C", "sequence_lengths")]
    exported = to_onnx(model)
    for outputs in (model(inputs), read(*in_port_order), run_exported(exported, in_port_order)):
        assert_close(drawn.as_onnx(outputs), drawn.expected(), tolerance_of(float32))
    (node,) = (node for node in exported.graph.node if node.op_type == "LSTM")
    arrays = {one.name: onnx.numpy_helper.to_array(one) for one in exported.graph.initializer}
    for name, place in (("W", 1), ("R", 2), *([("P", 7)] if peepholes else [])):
        expected = drawn.arrays[name].copy()
        expected[:, 2 * H : 3 * H] = 0  # of f, which are not used
        np.testing.assert_array_equal(arrays[node.input[place]], expected, err_msg=name)


def test_constants_fix_the_batch_size(tmp_path: Path) -> None:
    case = Case("bound", "LSTM", {"layout": 1}, ("initial_h", "initial_c"), (4, 0, 2))
    for constants, batch_size in ((("initial_c",), 3), (("sequence_lens",), 3), ((), None)):
        drawn = drawn_case(case, *constants)
        model = read_model(write_model(drawn.layer(), tmp_path / "layer.xml"))
        assert {info.shape[0] for info in model.inputs if info.shape} == {batch_size}
        assert_close(drawn.as_onnx(model(drawn.ir_inputs())), drawn.expected(), tolerance_of(case.dtype))


def test_equal_constants_are_stored_once_and_bytes_are_deterministic(tmp_path: Path) -> None:
    zero = np.zeros((1, 15, 5), np.float32)
    layer = make_layer(W=zero, R=zero, B=np.zeros((1, 30), np.float32), name="X")
    paths = [write_model(layer, tmp_path / name) for name in ("a.xml", "b.xml")]
    model = read_model(paths[0])  # the layer has the name of an input
    assert ([info.name for info in model.inputs], list(model.layers)) == (["X", "H", "sequence_lengths"], ["X"])
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert paths[0].with_suffix(".bin").read_bytes() == zero.tobytes() + bytes(15 * 4)
