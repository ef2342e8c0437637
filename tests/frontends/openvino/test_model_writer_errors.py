"""Models that cannot be written: each is an error that names the node, and no file is written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx_stacks import Graph, H, I, Stack
from openvino_nodes import make_layer
from quantized_models import CASES as QUANTIZED
from quantized_models import make_case
from rows import each_row
from written_bodies import Bodies

from pyrnnx import PyrnnxError
from pyrnnx.errors import ArgumentError, FormatError, UnsupportedError
from pyrnnx.frontends.openvino import write_model

FLOAT = TensorProto.FLOAT
X: dict[str, tuple[int, Sequence[Any] | None]] = {"x": (FLOAT, ("N", 3, 4))}
OPEN: dict[str, tuple[int, Sequence[Any] | None]] = {"x": (FLOAT, ("A", "B", "C"))}


def one(
    operator: str, *constants: Any, inputs: Any = X, opset: int = 20, count: int = 1, **attributes: Any
) -> onnx.ModelProto:
    g = Graph(opset)
    given = [g.constant(one) if one is not None else "" for one in constants]
    results = g.add(operator, *inputs, *given, outputs=count, **attributes)
    return g.model(inputs, [results] if count == 1 else results)


def recurrent(cell: str = "LSTM", **attributes: Any) -> onnx.ModelProto:
    proto = Stack(cell, 1).model()
    (node,) = (node for node in proto.graph.node if node.op_type == cell)
    node.name = "cell"
    node.attribute.extend(helper.make_attribute(name, value) for name, value in attributes.items())
    return proto


def weights_at_run_time() -> onnx.ModelProto:
    g = Graph()
    Y = g.add("GRU", "x", "w", g.weights(1, 3 * H, H), outputs=2, hidden_size=H)
    return g.model({"x": (FLOAT, ("T", "N", I)), "w": (FLOAT, (1, 3 * H, I))}, Y)


def branches(operator: str, result: str) -> onnx.ModelProto:
    """If of Relu, or of another operator."""
    return Bodies(f"""(float[N,3] x, bool flag) => (float y) {{
        y = If (flag) <then_branch = a () => (float[N,3] u) {{ u = Relu(x) }},
            else_branch = b () => ({result} v) {{ v = {operator}(x) }}> }}""", {}).model()  # fmt: skip


def other_domain() -> onnx.ModelProto:
    proto = one("Relu")
    proto.graph.node[0].domain = "com.microsoft"
    proto.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    return proto


def wrong_size() -> onnx.ModelProto:
    proto = recurrent("GRU")
    proto.graph.input[0].type.tensor_type.shape.dim[2].dim_value = I + 1
    return proto


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "magnitudes of single elements": (lambda: one("ReduceL1", noop_with_empty_axes=1),
        "ReduceL1 'node0': no axes with noop_with_empty_axes 1"),
    "an operator": (lambda: one("Det", inputs={"x": (FLOAT, (3, 3))}), "Det 'node0': the operator"),
    "of another domain": (other_domain, "com.microsoft.Relu 'node0': the operator"),
    "branches of different ranks": (lambda: branches("ReduceSum <keepdims = 0>", "float"),
        "If 'node0': an output that is FP32 of 2 axes and FP32 of 0 axes, by the condition, cannot be written as IR;"),
    "a node of a body": (lambda: branches("Det", "float[N,3]"), "Det (output 'v'): the operator (opset 20) cannot be"),
    "codes": (lambda: one("QuantizeLinear", np.float32(0.5), output_dtype=TensorProto.FLOAT8E4M3FN, opset=21),
        "QuantizeLinear 'node0': "),
    "large sums": (lambda: one("MatMulInteger", np.full((9000, 1), 127, np.int8), inputs={"x": (TensorProto.UINT8, (2,
        9000))}), "MatMulInteger 'node0': sums of integers up to 291465000"),
    "weights of codes": (lambda: one("MatMulInteger", inputs=dict.fromkeys("xy", (TensorProto.UINT8, (3, 3)))),
        "MatMulInteger 'node0': sums of products of integers, with weights computed at run time"),
    "storage_order": (lambda: one("MaxPool", count=2, kernel_shape=[2], storage_order=1),
        "MaxPool 'node0': storage_order 1"),
    "pads rounded up": (lambda: one("AveragePool", kernel_shape=[2], pads=[1, 1], ceil_mode=1, count_include_pad=1),
        "AveragePool 'node0': ceil_mode 1 with count_include_pad 1"),
    "output_shape of open sizes": (lambda: one("ConvTranspose", np.ones((3, 2, 2), np.float32), inputs={"x": (FLOAT, (1,
        3, "T"))}, output_shape=[9]), "ConvTranspose 'node0': output_shape or auto_pad"),
    "pads that wrap": (lambda: one("Pad", np.array([1] * 6), mode="wrap"), "Pad 'node0': mode"),
    "negative reflected pads": (lambda: one("Pad", np.array([-1] * 6), mode="edge"), "Pad 'node0': negative pads"),
    "antialias": (lambda: one("Resize", None, np.array([1, 1, 2], np.float32), mode="linear", antialias=1),
        "Resize 'node0': antialias 1"),
    "a crop": (lambda: one("Resize", None, np.array([1, 1, 2], np.float32),
        coordinate_transformation_mode="tf_crop_and_resize"), "Resize 'node0': coordinate_transformation_mode"),
    "parts of an unknown number": (lambda: one("SplitToSequence", np.int64(2), inputs=OPEN),
        "SplitToSequence 'node0': a SplitToSequence of a dynamic axis into parts of several elements"),
    "8-bit states": (lambda: make_case(QUANTIZED[0])[0], "rounds X and h to 8 bits in each call"),
    "an attribute": (lambda: one("Add", np.float32(1), opset=6, axis=1, broadcast=1), "Add 'node0': attribute '"),
    "weights at run time": (weights_at_run_time, "GRU 'node0': its weights are computed at run time"),
    "X of another size": (wrong_size,
        "GRU 'cell': X in OpenVINO's arrangement has shape (None, None, 4); expected (batch_size, seq_length, input_"),
    "no shape": (lambda: Graph().model({"x": (FLOAT, None)}, ["x"]), "ONNX model: the rank of 'x' is unknown"),
    "text": (lambda: Graph().model({"t": (TensorProto.STRING, (2,))}, ["t"]),
        "ONNX model: 't' has type str, which IR does not have"),
    "training": (lambda: one("Dropout", np.float32(0.5), np.array(True)),
        "Dropout 'node0': training mode cannot be written as IR; expected inference"),
    "the mask of a Dropout": (lambda: one("Dropout", count=2), "Dropout 'node0': 'v0_1' is not written"),
    "Softmax over many axes": (lambda: one("Softmax", opset=11, axis=1), "Softmax 'node0': axis 1"),
    "no axis": (lambda: one("Concat", axis=5), "Concat 'node0': axis 5 of 3 axes cannot be written"),
    "Flatten of open axes": (lambda: one("Flatten", inputs=OPEN, axis=2), "Flatten 'node0': axis 2"),
    "blocks of codes": (lambda: one("QuantizeLinear", np.ones((2, 3, 2), np.float32), opset=21, block_size=2, axis=2),
        "QuantizeLinear 'node0': block_size 2"),
    "Squeeze without axes": (lambda: one("Squeeze"), "Squeeze 'node0': a Squeeze without axes"),
    "Split of an open axis": (lambda: one("Split", count=2, num_outputs=2),
        "Split 'node0': a Split of a dynamic axis into equal parts cannot be written as IR; expected split"),
    "axes at run time": (lambda: one("ReduceSum", inputs={**X, "axes": (TensorProto.INT64, (1,))}),
        "ReduceSum 'node0': axes, computed at run time, cannot be written as IR; expected a constant"),
    "LayerNormalization of float16": (lambda: one("LayerNormalization", np.ones(4, np.float16),
        inputs={"x": (TensorProto.FLOAT16, (2, 4))}),
        "LayerNormalization 'node0': type FP16 cannot be written as IR; expected FP32"),
    "BatchNormalization in training": (lambda: one("BatchNormalization", *np.ones((4, 3), np.float32), count=3,
        training_mode=1), "BatchNormalization 'node0': training_mode 1"),
    "Gelu of another kind": (lambda: one("Gelu", approximate="half"), "Gelu 'node0': approximate"),
    "no model": (lambda: b"no model", "ONNX model: not an ONNX model"),
}  # fmt: skip


OTHER_ERRORS: dict[str, type[PyrnnxError]] = {"X of another size": ArgumentError, "no model": FormatError}


@each_row("name", REFUSED)
def test_refused(name: str, tmp_path: Path) -> None:
    make, message = REFUSED[name]
    with pytest.raises(OTHER_ERRORS.get(name, UnsupportedError)) as caught:
        write_model(make(), tmp_path / "model.xml")
    text = str(caught.value)
    assert message in text
    if "cannot be written as IR" in text:
        assert text.endswith(
            ". OpenVINO's own converter may convert the model: openvino.convert_model, or ovc in a shell"
        )
        assert "\n" not in text
    assert list(tmp_path.iterdir()) == []


def without_inputs(proto: onnx.ModelProto) -> onnx.ModelProto:
    del proto.graph.node[0].input[:]
    return proto


PAIR = onnx.numpy_helper.from_array(np.ones(2, np.float32))
UNSOUND: dict[str, Callable[[], Any]] = {
    "no inputs": lambda: without_inputs(one("Concat", axis=0)),
    "too few inputs": lambda: without_inputs(one("Pow", np.float32(2))),
    "an attribute of another type": lambda: one("Softmax", axis="last"),
    "an attribute that is missing": lambda: one("Cast"),
    "no groups": lambda: one("Conv", np.ones((2, 3, 2), np.float32), group=0),
    "a matrix of no axes": lambda: one("MatMul", np.float32(2)),
    "a value of many": lambda: one("ConstantOfShape", inputs={"x": (TensorProto.INT64, (2,))}, value=PAIR),
    "perm of other axes": lambda: one("Transpose", perm=[0, 1]),
}


@each_row("name", UNSOUND)
def test_nodes_that_are_not_sound(name: str, tmp_path: Path) -> None:
    with pytest.raises(PyrnnxError, match=r"node0"):
        write_model(UNSOUND[name](), tmp_path / "model.xml")
    assert list(tmp_path.iterdir()) == []


@each_row("path", ["model.onnx", "model", "model.XML", ".xml", "", b"model.xml", 3, None])
def test_where_to(path: Any) -> None:
    with pytest.raises(ArgumentError, match=r"^ONNX model: path is .*; expected .*\.xml"):
        write_model(Stack("GRU").model(), path)


@each_row("name", ["absent/layer.xml", "bin.xml", "a\0.xml"])
def test_paths_that_cannot_be_written(name: str, tmp_path: Path) -> None:
    """Neither file is written: in place of one .bin there is a folder."""
    (tmp_path / "bin.bin").mkdir()
    with pytest.raises(PyrnnxError, match=r"^GRU 'a layer': '.*' cannot be written"):
        write_model(make_layer(), tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["bin.bin"]
