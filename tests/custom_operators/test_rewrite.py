"""Models with replaced recurrent nodes: portable ones run in any session that has the library."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from layers import random_weights
from onnx import helper, numpy_helper
from sessions import FLOAT, model, recurrent, session

from pyrnnx import FormatError, PyrnnxError, RecurrentOp, reference
from pyrnnx.frontends.onnx import from_node, read_model
from pyrnnx.layers import custom_operators
from pyrnnx.onnxruntime import InferenceSession, library, rewrite

rng = np.random.default_rng(0)
X = rng.normal(size=(4, 2, 3)).astype(np.float32)


def initializers() -> dict[str, onnx.TensorProto]:
    weights = random_weights(RecurrentOp("GRU", 5), 3)
    return {name: numpy_helper.from_array(array, name) for name, array in weights.items()}


def gru_model(**keywords: Any) -> onnx.ModelProto:
    node = helper.make_node("GRU", ["X", "W", "R", "B"], ["Y", "Y_h"], hidden_size=5, name="gru")
    return model([node], [("X", FLOAT)], [("Y", FLOAT), ("Y_h", FLOAT)], initializers().values(), **keywords)


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


def test_inputs_of_a_call_that_are_constants() -> None:
    tensors = initializers() | {
        "lens": numpy_helper.from_array(np.array([4, 2], np.int32), "lens"),
        "h": numpy_helper.from_array(rng.normal(size=(1, 2, 5)).astype(np.float32), "h"),
    }
    node = helper.make_node("GRU", ["X", "W", "R", "B", "lens", "h"], ["Y"], hidden_size=5)
    proto = model([node], [("X", FLOAT)], [("Y", FLOAT)], tensors.values())
    layer = from_node(node, {name: numpy_helper.to_array(tensor) for name, tensor in tensors.items()})
    for ran in (session(rewrite(proto)), InferenceSession(proto.SerializeToString())):
        np.testing.assert_array_equal(ran.run(None, {"X": X})[0], layer(X)[0])


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
