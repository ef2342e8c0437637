"""Models with replaced recurrent nodes: portable ones run in any session that has the library."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from layers import random_weights
from onnx import TensorProto, helper, numpy_helper
from sessions import FLOAT, model, recurrent, session

from pyrnnx import FormatError, PyrnnxError, RecurrentOp, reference
from pyrnnx.frontends.onnx import from_node, read_model
from pyrnnx.frontends.onnx.passes.inline import has_recurrent
from pyrnnx.layers import custom_operators
from pyrnnx.onnxruntime import InferenceSession, library, rewrite
from pyrnnx.operator.op import CellName

rng = np.random.default_rng(0)
X = rng.normal(size=(4, 2, 3)).astype(np.float32)


def initializers(
    cell: CellName = "GRU", direction: Any = "forward", dtype: Any = np.float32, *, peepholes: bool = False
) -> Any:
    weights = random_weights(RecurrentOp(cell, 5, direction), 3, dtype, peepholes=peepholes)
    return {name: numpy_helper.from_array(array, name) for name, array in weights.items()}


def gru_model(**keywords: Any) -> onnx.ModelProto:
    node = helper.make_node("GRU", ["X", "W", "R", "B"], ["Y", "Y_h"], hidden_size=5, name="gru")
    return model([node], [("X", FLOAT)], [("Y", FLOAT), ("Y_h", FLOAT)], initializers().values(), **keywords)


def expected_of(node: onnx.NodeProto, tensors: Any, *arguments: Any, opset: Any = 21) -> Any:
    arrays = {name: numpy_helper.to_array(tensor) for name, tensor in tensors.items()}
    return from_node(node, arrays, opset)(*arguments)


def assert_runs_as(proto: onnx.ModelProto, feeds: Any, expected: Any) -> onnx.ModelProto:
    """Both ways of a model give these very bits; its portable form is returned."""
    portable = rewrite(proto)
    for ran in (session(portable), InferenceSession(proto.SerializeToString())):
        for _ in range(2):
            results = ran.run(None, feeds)
            assert all(np.array_equal(a, b) for a, b in zip(results, expected, strict=True))
    assert not has_recurrent(portable.graph.node)
    return portable


def test_nodes_that_share_weights() -> None:
    """Their weights are stored once in a file."""
    op = RecurrentOp("GRU", 70)
    weights = random_weights(op, 70, np.float32)
    tensors = {name: numpy_helper.from_array(array, name) for name, array in weights.items()}
    nodes, names = [], ["X", "Y_h"]
    for number in range(6):
        names.append(f"h{number}")
        outputs = ["", names[-1]]
        nodes.append(helper.make_node("GRU", ["X", "W", "R", "B", "", names[-2]], outputs, hidden_size=70))
    proto = model(nodes, [("X", FLOAT), ("Y_h", FLOAT)], [(names[-1], FLOAT)], tensors.values())
    portable = rewrite(proto)
    assert len(portable.graph.initializer) == len(weights)
    feeds = {name: rng.normal(size=(3 if name == "X" else 1, 2, 70)).astype(np.float32) for name in names[:2]}
    h = feeds["Y_h"]
    for _ in nodes:
        h = reference.run("GRU", feeds["X"], **weights, initial_h=h, hidden_size=70)[1]
    for ran in (session(portable), InferenceSession(proto.SerializeToString())):
        np.testing.assert_allclose(ran.run(None, feeds)[0], h, atol=2e-6)


@pytest.mark.parametrize("layout", [0, 1])
@pytest.mark.parametrize(
    ("cell", "attributes"),
    [
        ("RNN", {"activations": ["Affine", "ThresholdedRelu"], "activation_alpha": [0.7, 0.1], "clip": 0.9}),
        ("GRU", {"linear_before_reset": 1, "activations": ["HardSigmoid", "Elu"] * 2, "activation_alpha": [0.3]}),
        ("LSTM", {"input_forget": 1, "clip": 0.5}),
    ],
)
@pytest.mark.filterwarnings("ignore::pyrnnx.errors.PyrnnxWarning")
def test_attributes(cell: Any, attributes: Any, layout: Any) -> None:
    inputs = ["X", "W", "R", "B", "", "", "", "P"] if cell == "LSTM" else ["X", "W", "R", "B"]
    node = helper.make_node(
        cell, inputs, ["Y", "Y_h"], hidden_size=5, direction="bidirectional", layout=layout, **attributes
    )
    tensors = initializers(cell, "bidirectional", peepholes=cell == "LSTM")
    proto = model([node], [("X", FLOAT)], [("Y", FLOAT), ("Y_h", FLOAT)], tensors.values())
    assert_runs_as(proto, {"X": X}, expected_of(node, tensors, X)[:2])


@pytest.mark.parametrize(("dtype", "kind"), [(np.float64, TensorProto.DOUBLE), (np.float16, TensorProto.FLOAT16)])
def test_dtypes_that_onnx_runtime_has_not(dtype: Any, kind: Any) -> None:
    node = helper.make_node("LSTM", ["X", "W", "R"], ["Y"], hidden_size=5)
    tensors = initializers("LSTM", dtype=dtype)
    proto = model([node], [("X", kind)], [("Y", kind)], [tensors["W"], tensors["R"]])
    assert_runs_as(proto, {"X": X.astype(dtype)}, expected_of(node, tensors, X.astype(dtype))[:1])


def test_quantized() -> None:
    W, R = (rng.integers(0, 255, (1, k, 20)).astype(np.uint8) for k in (3, 5))
    scales = {f"{name}_scale": np.array([0.01], np.float32) for name in "WR"}
    scales |= {f"{name}_zero_point": np.array([120], np.uint8) for name in "WR"}
    arrays: dict[str, Any] = {"W": W, "R": R, **scales}
    tensors = {name: numpy_helper.from_array(array, name) for name, array in arrays.items()}
    names = ["X", "W", "R", "", "", "", "", "", "W_scale", "W_zero_point", "R_scale", "R_zero_point"]
    node = helper.make_node("DynamicQuantizeLSTM", names, ["Y"], domain="com.microsoft", hidden_size=5)
    proto = model([node], [("X", FLOAT)], [("Y", FLOAT)], tensors.values())
    expected = InferenceSession(proto.SerializeToString()).layers["Y"](X)
    assert_runs_as(proto, {"X": X}, expected[:1])


def test_inputs_of_a_call_that_are_constants() -> None:
    tensors = initializers() | {
        "lens": numpy_helper.from_array(np.array([4, 2], np.int32), "lens"),
        "h": numpy_helper.from_array(rng.normal(size=(1, 2, 5)).astype(np.float32), "h"),
    }
    node = helper.make_node("GRU", ["X", "W", "R", "B", "lens", "h"], ["Y"], hidden_size=5)
    proto = model([node], [("X", FLOAT)], [("Y", FLOAT)], tensors.values())
    assert_runs_as(proto, {"X": X}, expected_of(node, tensors, X)[:1])


def test_weights_that_are_no_constants_stay_with_onnx_runtime() -> None:
    proto = gru_model()
    proto.graph.input.append(helper.make_tensor_value_info("W", FLOAT, [1, 15, 3]))  # with a default
    portable = rewrite(proto)
    assert [node.op_type for node in portable.graph.node] == ["GRU"]
    ran = InferenceSession(proto.SerializeToString())
    assert not ran.layers
    results = ran.run(None, {"X": X})
    again = ran.run(None, {"X": X, "W": 2 * numpy_helper.to_array(initializers()["W"])})
    assert not np.array_equal(results[0], again[0])


def test_a_source_is_not_changed(tmp_path: Any) -> None:
    proto = gru_model()
    before = proto.SerializeToString()
    rewrite(proto)
    assert proto.SerializeToString() == before
    path = tmp_path / "model.onnx"
    onnx.save_model(proto, path)
    assert rewrite(path) == rewrite(str(path)) == rewrite(before)
    twice = rewrite(rewrite(proto))
    assert twice == rewrite(proto)
    assert library() == custom_operators.library_path()


def test_models_that_are_rejected() -> None:
    wrong = gru_model()
    wrong.graph.node[0].attribute[0].i = 7
    with pytest.raises(PyrnnxError, match="gru"):
        rewrite(wrong)
    with pytest.raises(PyrnnxError, match="gru"):
        InferenceSession(wrong.SerializeToString())
    layer = InferenceSession(gru_model().SerializeToString()).layers["gru"]
    handle = custom_operators.Handle(layer)
    of_a_process = model([recurrent(handle, ["X"], ["Y"])], [("X", FLOAT)], [("Y", FLOAT)])
    with pytest.raises(FormatError, match="has a handle"):
        read_model(of_a_process)
    with pytest.raises(FormatError, match="has a handle"):
        rewrite(of_a_process)
    with pytest.raises(PyrnnxError, match="not an ONNX model"):
        InferenceSession(b"nothing")


def _set(node: onnx.NodeProto, old: bytes, new: bytes) -> None:
    assert old in node.attribute[0].s
    node.attribute[0].s = node.attribute[0].s.replace(old, new)


def test_a_third_output_of_a_gru() -> None:
    proto = rewrite(gru_model())
    proto.graph.node[0].output.append("Y_c")
    proto.graph.output.add(name="Y_c")
    with pytest.raises(Exception, match="its cell has Y and Y_h alone"):
        session(proto).run(None, {"X": X})


def test_the_drop_in_runs_what_was_rewritten() -> None:
    plain, portable = (InferenceSession(proto.SerializeToString()) for proto in (gru_model(), rewrite(gru_model())))
    for expected, result in zip(plain.run(None, {"X": X}), portable.run(None, {"X": X}), strict=True):
        assert np.array_equal(result, expected)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda node: node.attribute.remove(node.attribute[0]), "operator"),
        (lambda node: setattr(node.attribute[0], "s", b"{"), "attribute operator is"),
        (lambda node: _set(node, b'"layout": 0', b'"layout": false'), "attribute operator is"),
        (lambda node: _set(node, b'"layout": 0', b'"layout": -1'), "attribute operator is"),
        (lambda node: setattr(node.attribute[0], "s", b'{"cell": "GRU"}'), "attribute operator is"),
        (lambda node: node.input.__delitem__(slice(1, None)), "W or R is not constant"),
        (lambda node: setattr(node.attribute[1], "name", "size"), "hidden_size"),
        (lambda node: setattr(node.attribute[1], "i", 6), "expected attributes written by pyrnnx.onnxruntime.rewrite"),
    ],
)
def test_portable_nodes_that_are_broken(change: Any, message: Any) -> None:
    proto = rewrite(gru_model())
    (node,) = proto.graph.node
    assert node.attribute[0].name == "operator"
    change(node)
    with pytest.raises(Exception, match=message):
        session(proto)
