"""Whole models: the input that takes the sequences, its axes, and items that share a batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from layers import random_layer, random_weights
from scoring_data import SIZE, assert_equal, expected, lstm, of_npz, sequences, write_npy

import pyrnnx
from pyrnnx import Direction, PyrnnxError, RecurrentOp, Stack
from pyrnnx.frontends.openvino import read_model, write_model
from pyrnnx.testing.numbers import Array

onnx = pytest.importorskip("onnx")
node = onnx.helper.make_node

ITEMS = sequences((7, 3, 9, 7, 1, 9, 3))
NAMED = {f"{index:03}.npy": item for index, item in enumerate(ITEMS)}
OP = RecurrentOp("LSTM", hidden_size=6, direction=Direction.BIDIRECTIONAL)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_npy(tmp_path / "in", ITEMS)


def run(model: Any, source: Path, **options: Any) -> Any:
    return pyrnnx.score(model, source, source.parent / "out", **{"workers": 0, "memory": 60_000, **options})


def model_of(
    nodes: Sequence[Any],
    inputs: Mapping[str, Sequence[Any]],
    outputs: Mapping[str, int],
    weights: dict[str, Array] | None = None,
    integers: Sequence[str] = (),
) -> Any:
    """A ModelProto; outputs by their ranks."""
    helper, kinds = onnx.helper, onnx.TensorProto
    return helper.make_model(
        helper.make_graph(
            nodes,
            "model",
            [
                helper.make_tensor_value_info(name, kinds.INT32 if name in integers else kinds.FLOAT, shape)
                for name, shape in inputs.items()
            ],
            [helper.make_tensor_value_info(name, kinds.FLOAT, [None] * rank) for name, rank in outputs.items()],
            [onnx.numpy_helper.from_array(array, name) for name, array in (weights or {}).items()],
        ),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=8,
    )


def recurrent(
    *, lengths: bool, before: Sequence[Any] = (), after: Sequence[Any] = (), rows: Any = "N", time: Any = "T"
) -> Any:
    """An LSTM with the weights of `lstm()`, between other nodes; X -> x -> (Y, Y_h, Y_c)."""
    weights = random_weights(OP, SIZE)
    node = onnx.helper.make_node(
        "LSTM",
        ["X" if not before else "x", *weights, *(["lens"] if lengths else [])],
        ["Y", "Y_h", "Y_c"],
        hidden_size=6,
        direction="bidirectional",
    )
    inputs = {"X": [time, rows, SIZE] if not before else [rows, time, SIZE]} | ({"lens": [rows]} if lengths else {})
    return model_of([*before, node, *after], inputs, {"Y": 4, "Y_h": 3, "Y_c": 3}, weights, ["lens"])


def transposed() -> Any:
    return onnx.helper.make_node("Transpose", ["X"], ["x"], perm=[1, 0, 2])


FORMS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {  # what `recurrent` makes, and options
    "lengths": ({"lengths": True}, {"lengths": "lens", "batch": 5}),
    "one at a time": ({"lengths": True}, {"lengths": "lens"}),
    "no lengths": ({"lengths": False}, {"batch": 5}),
    "fixed rows and steps": ({"lengths": True, "rows": 4, "time": 9}, {"lengths": "lens", "batch": 4}),
    "one fixed row": ({"lengths": False, "rows": 1}, {}),
}


@pytest.mark.parametrize("name", FORMS)
def test_results(name: str, source: Path) -> None:
    model, options = FORMS[name]
    assert run(recurrent(**model), source, **options).batch == options.get("batch", 1)
    assert_equal(of_npz(source.parent / "out"), expected(lstm(), NAMED))


def test_an_input_of_other_operators(source: Path) -> None:
    model = recurrent(lengths=True, before=[transposed()])
    with pytest.raises(PyrnnxError, match=r"of 'X' \(float32 \[N, T, 5\]\) are unknown; expected axes"):
        run(model, source, lengths="lens")
    run(model, source, axes="NTI", lengths="lens", batch=4, outputs=["Y", "Y_c"])
    wanted = {name: {key: one[key] for key in ("Y", "Y_c")} for name, one in expected(lstm(), NAMED).items()}
    assert_equal(of_npz(source.parent / "out"), wanted)


def test_an_ir_with_states(source: Path, tmp_path: Path) -> None:
    """Its H and C have no defaults: items begin with zeros."""
    path = write_model(lstm(), str(tmp_path / "model.xml"))
    run(path, source, lengths="sequence_lengths", batch=3)
    found = of_npz(source.parent / "out")
    for name, wanted in expected(lstm(), NAMED).items():
        np.testing.assert_array_equal(found[name]["Y"], wanted["Y"])
        np.testing.assert_array_equal(found[name]["Ho"], wanted["Y_h"])
        np.testing.assert_array_equal(found[name]["Co"], wanted["Y_c"])


def test_one_row_and_another_axis_of_one_element(tmp_path: Path) -> None:
    nodes = [node("Einsum", ["X"], ["e"], equation="tni->tni"), node("Unsqueeze", ["e", "two"], ["Y"])]
    model = model_of(nodes, {"X": ["T", 1, SIZE]}, {"Y": 4}, {"two": np.array([2])})
    run(model, write_npy(tmp_path / "in", ITEMS), axes="TNI")
    for name, results in of_npz(tmp_path / "out").items():
        np.testing.assert_array_equal(results["Y"].reshape(-1, SIZE), NAMED[name])


def test_an_axis_of_rows_that_cannot_be_found(tmp_path: Path) -> None:
    nodes = [node("Einsum", ["X"], ["e"], equation="tni->n"), node("Einsum", ["e", "e"], ["Y"], equation="a,b->ab")]
    model = model_of(nodes, {"X": ["T", 2, SIZE]}, {"Y": 2})
    with pytest.raises(PyrnnxError, match=r"output 'Y' has shape \(2, 2\), and its axis of rows is unknown"):
        run(model, write_npy(tmp_path / "in", ITEMS), axes="TNI", batch=2)


def test_fixed_rows_that_depend_on_each_other(source: Path) -> None:
    mean = onnx.helper.make_node("ReduceMean", ["X"], ["mean"], axes=[1], keepdims=1)
    nodes = [mean, onnx.helper.make_node("Sub", ["X", "mean"], ["Z"])]
    with pytest.raises(
        PyrnnxError, match=r"output 'Z' of item '00..npy' differs by .*a model whose 3 rows are independent"
    ):
        run(model_of(nodes, {"X": ["T", 3, SIZE]}, {"Z": 3}), source, axes="TNI", batch=3)


def test_an_output_without_rows(source: Path) -> None:
    nodes = [onnx.helper.make_node("ReduceMax", ["X"], ["most"], keepdims=0)]
    model = model_of(nodes, {"X": ["T", "N", SIZE]}, {"most": 0})
    with pytest.raises(PyrnnxError, match=r"output 'most' has shape \(\), and its axis of rows is unknown"):
        run(model, source, axes="TNI", batch=2)
    run(model, source, axes="TNI")
    assert {name: one["most"] for name, one in of_npz(source.parent / "out").items()} == {
        name: item.max() for name, item in NAMED.items()
    }


def test_initial_states_of_an_undeclared_size(source: Path) -> None:
    """R is an input and the node has no hidden_size: the size of initial_h is not known before the call."""
    R = np.random.default_rng(0).normal(size=(1, 6, 6)).astype(np.float32)
    node = onnx.helper.make_node("RNN", ["X", "W", "R", "", "", "initial_h"], ["Y", "Y_h"], name="rnn")
    weights = {"W": np.ones((1, 6, SIZE), np.float32)}
    shapes: dict[str, list[Any]] = {"X": ["T", 1, SIZE], "R": ["D", "H", "H"], "initial_h": ["D", 1, "H"]}
    model = model_of([node], shapes, {"Y": 4, "Y_h": 3}, weights)
    with pytest.raises(PyrnnxError, match="rnn declares no hidden_size; expected 'initial_h' in inputs"):
        run(model, source, axes="TNI", input="X", inputs={"R": R})
    run(model, source, axes="TNI", input="X", inputs={"R": R, "initial_h": np.zeros((1, 1, 6), np.float32)})


def test_a_model_without_rows(source: Path) -> None:
    weights = {"W": np.random.default_rng(0).normal(size=(SIZE, 2)).astype(np.float32)}
    nodes = [onnx.helper.make_node("MatMul", ["X", "W"], ["Z"]), onnx.helper.make_node("Mul", ["Z", "gain"], ["Y"])]
    model = model_of(nodes, {"X": ["T", SIZE], "gain": [1]}, {"Y": 2}, weights)
    with pytest.raises(PyrnnxError, match="these inputs have no value: 'X', 'gain'"):
        run(model, source, axes="TI")
    with pytest.raises(PyrnnxError, match="inputs lacks 'gain'"):
        run(model, source, axes="TI", input="X")
    gain = np.array([3], np.float32)
    run(model, source, axes="TI", inputs={"gain": gain})
    with pytest.raises(PyrnnxError, match="batch is 2; expected 1, because axes has no N for rows"):
        run(model, source, axes="TI", inputs={"gain": gain}, batch=2)
    found = of_npz(source.parent / "out")
    for name, item in NAMED.items():
        np.testing.assert_allclose(found[name]["Y"], 3 * item @ weights["W"], rtol=1e-5, atol=1e-5)
    with pytest.raises(PyrnnxError, match="the model: sha256"):
        run(model, source, axes="TI", inputs={"gain": gain + 1})


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("hidden_size", [6, 4])
def test_stacks(batch_first: bool, hidden_size: int, source: Path) -> None:
    second = random_layer(RecurrentOp("GRU" if hidden_size == 4 else "LSTM", hidden_size=hidden_size), 12)
    stack = Stack([lstm(), second], batch_first=batch_first)
    assert run(stack, source).batch == 32
    found = of_npz(source.parent / "out")
    for name, item in NAMED.items():
        results = stack.run(item[np.newaxis] if batch_first else item[:, np.newaxis])
        wanted = {"Y": results[0][0] if batch_first else results[0][:, 0]}
        for state, value in zip(("Y_h", "Y_c"), results[1:], strict=True):
            if isinstance(value, list):
                wanted |= {f"{state}.{k}": one[:, 0] for k, one in enumerate(value) if one is not None}
            else:
                wanted[state] = value[:, 0]
        assert_equal({name: found[name]}, {name: wanted})
    with pytest.raises(PyrnnxError, match="outputs has 'Z'; expected names out of Y"):
        run(stack, source, outputs=["Z"])


REJECTED: dict[str, tuple[dict[str, Any], str]] = {
    "no T": ({"axes": "NSI"}, "axes is 'NSI'; expected different letters with a T"),
    "twice": ({"axes": "TTN"}, "axes is 'TTN'"),
    "too few": ({"axes": "NT"}, "axes is 'NT'; expected 3 letters"),
    "input": ({"input": "x"}, "input is 'x'; expected one of 'X', 'lens'"),
    "lengths": ({"lengths": "x"}, "lengths is 'x'; expected one of"),
    "inputs": ({"inputs": 3}, "inputs is 3; expected a mapping"),
    "unknown input": ({"inputs": {"q": 1}}, "input 'q' is unknown"),
    "outputs": ({"outputs": ["q"]}, "outputs has 'q'"),
    "no lengths": ({"lengths": None}, "these inputs have no value: 'X', 'lens'; .* or lengths='lens', the lengths of"),
}


@pytest.mark.parametrize("name", REJECTED)
def test_rejected(name: str, source: Path) -> None:
    options, words = REJECTED[name]
    with pytest.raises(PyrnnxError, match=words):
        run(recurrent(lengths=True), source, **{"lengths": "lens", **options})


def test_rows_as_many_as_time_steps(tmp_path: Path) -> None:
    """Four rows, and items of four steps: the axis that follows the items' lengths is not that of the rows."""
    items = sequences((4, 4, 4))
    source = write_npy(tmp_path / "in", items)
    tanh = [onnx.helper.make_node("Tanh", ["Y"], ["Z"])]
    model = recurrent(lengths=False, rows=4, after=tanh)
    model.graph.output.append(onnx.helper.make_tensor_value_info("Z", onnx.TensorProto.FLOAT, [None] * 4))
    with pytest.raises(
        PyrnnxError, match=r"batch is 1; expected 4 if its rows are independent, because 'X' has 4 rows"
    ):
        run(model, source)
    run(model, source, batch=4)
    found = of_npz(tmp_path / "out")
    wanted = expected(lstm(), {f"{i:03}.npy": one for i, one in enumerate(items)})
    for name, outputs in wanted.items():
        np.testing.assert_allclose(found[name]["Z"], np.tanh(outputs["Y"]), rtol=1e-6, atol=1e-7)


def test_an_ir_that_keeps_a_state(source: Path, tmp_path: Path) -> None:
    """Each item begins anew, whatever was called before; the caller's model keeps its own state."""
    ov = pytest.importorskip("openvino")
    from openvino import opset13 as op

    x = op.parameter([-1, -1, SIZE], np.float32, name="x")
    kept = op.read_value(op.constant(np.zeros((1, SIZE), np.float32)), "kept", np.float32, [1, SIZE])
    total = op.add(op.reduce_sum(x, op.constant([0, 1]), keep_dims=False), kept)
    result = op.result(op.add(x, op.unsqueeze(total, op.constant(0))))
    ov.save_model(ov.Model([result], [op.assign(total, "kept")], [x], "m"), tmp_path / "m.xml", compress_to_fp16=False)
    model = read_model(tmp_path / "m.xml")
    model(ITEMS[0][:, np.newaxis])
    state = np.array(model.state["kept"])
    run(model, source, axes="TNI")
    np.testing.assert_array_equal(model.state["kept"], state)
    for name, outputs in of_npz(source.parent / "out").items():
        (values,) = outputs.values()
        # Sums of another order.
        np.testing.assert_allclose(values, NAMED[name] + NAMED[name].sum(0), rtol=1e-4, atol=1e-5)
