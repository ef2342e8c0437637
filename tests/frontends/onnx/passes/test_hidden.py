"""The pass of hidden layers: what it leaves alone, and what it returns."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

pytest.importorskip("onnxruntime")

from exporter_graphs import jax, tf2onnx
from hidden_layers import loop, scan, unrolled
from rows import each_row

from pyrnnx.frontends.onnx.graph.constants import set_constants
from pyrnnx.frontends.onnx.graph.walk import Graph
from pyrnnx.frontends.onnx.passes import hidden
from pyrnnx.frontends.onnx.passes.hidden import hidden_layers


def parsed(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 18, "other": 1]> m {text}')


WEIGHTS = "<float[3, 3] W = {1, 2, 3, 4, 5, 6, 7, 8, 9}>"
WITHOUT_STEPS = {
    "two layers": f"""(float[N, 3] X) => (float[N, 3] Y) {WEIGHTS}
        {{ V = Constant<value = float[3, 3] {{9, 8, 7, 6, 5, 4, 3, 2, 1}}>()
            a = MatMul(X, W) b = Tanh(a) Y = MatMul(b, V) }}""",
    "factors of nodes without names": f"""(float[N, 3] X, float[2, N] Z) => (float[2, 3] Y) {WEIGHTS}
        {{ ,a = TopK("", X) b = MatMul(Z, a) Y = Tanh(b) }}""",
    "loop without products": f"""(float[N, 3] X, int64 M) => (float[N, 3] Y) {WEIGHTS}
        {{ yes = Constant<value = bool {{1}}>() a = MatMul(X, W) b = Tanh(a) Y = Loop(M, yes, b) <body = step
            (int64 i, bool c, float[N, 3] h) => (bool go, float[N, 3] n) {{ go = Identity(c) n = Tanh(h) }}> }}""",
}


@each_row("name", WITHOUT_STEPS)
def test_models_that_cannot_have_steps_cost_no_session(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hidden, "open_session", None)
    model = parsed(WITHOUT_STEPS[name])
    result = hidden_layers(model, "model")
    assert result.model is model
    assert not result.origins


def test_operators_that_onnxruntime_lacks_leave_the_model_alone() -> None:
    model = scan("LSTM")
    model.graph.node.append(onnx.helper.make_node("Unknown", [model.graph.input[0].name], ["y"], domain="other"))
    model.graph.output.add(name="y").type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    model.opset_import.add(domain="other", version=1)
    result = hidden_layers(model, "model")
    assert result.model is model
    assert "ONNX Runtime cannot simplify" in result.reasons[0]


def test_models_that_are_too_large_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hidden, "_MOST_BYTES", 100)
    model = scan("LSTM")
    assert hidden_layers(model, "model").model is model


MODELS = {
    **{f"{make.__name__} {kind}": make(kind) for make in (unrolled, scan, loop) for kind in ("RNN", "GRU", "LSTM")},
    **{"tf2onnx": tf2onnx("GRU"), "jax": jax("LSTM")},
}


@each_row("name", MODELS)
def test_the_result_is_valid_and_the_given_model_unchanged(name: str) -> None:
    model = MODELS[name]
    before = model.SerializeToString(deterministic=True)
    result = hidden_layers(model, "model")
    assert model.SerializeToString(deterministic=True) == before
    new = result.model
    onnx.checker.check_model(onnx.shape_inference.infer_shapes(new, strict_mode=True))
    assert [value.name for value in new.graph.output] == [value.name for value in model.graph.output]
    assert {entry.domain for entry in new.opset_import} == {entry.domain for entry in model.opset_import}
    assert {node.name for node in new.graph.node if node.op_type in ("RNN", "GRU", "LSTM")} == {*result.origins}
    used = {source for node in new.graph.node for source in node.input}
    assert used >= {tensor.name for tensor in new.graph.initializer}


def test_values_that_the_model_lacks() -> None:
    model = scan("GRU")
    whole = hidden_layers(model, "model").model
    arrays = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    for tensor in model.graph.initializer:
        tensor.ClearField("raw_data")
    graph = Graph(model.graph)
    graph.arrays = arrays
    result = hidden_layers(model, "model", set_constants(graph, "model"))
    assert len(result.origins) == 1
    for a, b in zip(result.model.graph.initializer, whole.graph.initializer, strict=True):
        assert np.array_equal(onnx.numpy_helper.to_array(a), onnx.numpy_helper.to_array(b))
