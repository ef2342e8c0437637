"""Whole models: the input that takes the sequences, its axes, and items that share a batch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from layers import random_layer, random_weights
from rows import each_row
from scoring_data import SIZE, assert_equal, expected, lstm, named, of_npz, onnx_model, sequences, write_npy

import pyrnnx
from pyrnnx import Direction, PyrnnxError, RecurrentOp, Stack
from pyrnnx.frontends.openvino import read_model, write_model

pytest.importorskip("onnx")

ITEMS = sequences((7, 3, 9, 7, 1, 9, 3))
NAMED = named(ITEMS)
WEIGHTS = random_weights(RecurrentOp("LSTM", hidden_size=6, direction=Direction.BIDIRECTIONAL), SIZE)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_npy(tmp_path / "in", ITEMS)


def run(model: Any, source: Path, **options: Any) -> Any:
    return pyrnnx.score(model, source, source.parent / "out", **{"workers": 0, "memory": 60_000, **options})


def recurrent(X: str = "T, N", lengths: bool = False, before: str = "") -> Any:
    """An LSTM with the weights of `lstm()`, between other nodes; X -> x -> (Y, Y_h, Y_c) -> Z."""
    lens = f", int32[{X.rpartition(' ')[2]}] lens" if lengths else ""
    arguments = ["x" if before else "X", *WEIGHTS, *(["lens"] if lengths else [])]
    return onnx_model(
        f"(float[{X}, {SIZE}] X{lens}) => (float[?,?,?,?] Y, float[?,?,?] Y_h, float[?,?,?] Y_c, float[?,?,?,?] Z) {{"
        f'{before} Y, Y_h, Y_c = LSTM <hidden_size = 6, direction = "bidirectional"> ({", ".join(arguments)}) '
        "Z = Tanh (Y) }",
        **WEIGHTS,
    )


# Arguments of `recurrent` and options of `score`.
FORMS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "lengths": ({"lengths": True}, {"lengths": "lens", "batch": 5}),
    "one at a time": ({"lengths": True}, {"lengths": "lens"}),
    "no lengths": ({}, {"batch": 5}),
    "fixed rows and steps": ({"lengths": True, "X": "9, 4"}, {"lengths": "lens", "batch": 4}),
    "as many rows as time steps": ({"X": "T, 7"}, {"batch": 7}),
    "one fixed row": ({"X": "T, 1"}, {}),
    "axes of another operator": (
        {"lengths": True, "X": "N, T", "before": "x = Transpose <perm = [1, 0, 2]> (X)"},
        {"lengths": "lens", "batch": 4, "axes": "NTI"},
    ),
}


@each_row("name", FORMS)
def test_results(name: str, tmp_path: Path) -> None:
    arguments, options = FORMS[name]
    report = run(recurrent(**arguments), write_npy(tmp_path / "in", ITEMS), **options)
    assert report.batch == options.get("batch", 1)
    results = of_npz(tmp_path / "out")
    for outputs in results.values():
        # Tanh of ONNX Runtime. Behind it, a fixed number of time steps contains those of the padding.
        Z = outputs.pop("Z")[: len(outputs["Y"])]
        np.testing.assert_allclose(Z, np.tanh(outputs["Y"]), rtol=1e-6, atol=1e-7)
    assert_equal(results, expected(lstm(), NAMED))


def test_an_ir_with_states(source: Path, tmp_path: Path) -> None:
    """Its H and C have no defaults: items begin with zeros."""
    path = write_model(lstm(), str(tmp_path / "model.xml"))
    run(path, source, lengths="sequence_lengths", batch=3)
    results = of_npz(source.parent / "out")
    renamed = {name: {"Y": result["Y"], "Y_h": result["Ho"], "Y_c": result["Co"]} for name, result in results.items()}
    assert_equal(renamed, expected(lstm(), NAMED))


def test_one_row_and_another_axis_of_one_element(source: Path) -> None:
    model = onnx_model(f"(float[T, 1, {SIZE}] X) => (float[?,?,?,?] Y) {{ Z = Tanh (X) Y = Unsqueeze (Z, a) }}", a=[2])
    run(model, source, axes="TNI")
    for name, results in of_npz(source.parent / "out").items():
        np.testing.assert_allclose(results["Y"].reshape(-1, SIZE), np.tanh(NAMED[name]), rtol=1e-6, atol=1e-7)


def test_a_model_that_limits_the_time_steps(source: Path) -> None:
    nodes = "S = Shape (X) T = Gather <axis = 0> (S, zero) t = Range (zero, T, one) p = Gather (P, t) Y = Add (X, p)"
    P = np.random.default_rng(0).normal(size=(12, 1, SIZE)).astype(np.float32)
    model = onnx_model(f"(float[T, N, {SIZE}] X) => (float[?,?,?] Y) {{ {nodes} }}", P=P, zero=0, one=1)
    run(model, source, axes="TNI", batch=2)
    for name, results in of_npz(source.parent / "out").items():
        np.testing.assert_array_equal(results["Y"], NAMED[name] + P[: len(NAMED[name]), 0])


# Nodes of a model of X [T, N, 5], its rows, and the error of batch=2.
ROWS = {
    "no axis": ("Y = ReduceMax <keepdims = 0> (X)", "N", r"output 'Y' has shape \(\), and its axis of rows is unknown"),
    "two axes": (
        'e = Einsum <equation = "tni->n"> (X) Y = Einsum <equation = "a,b->ab"> (e, e)',
        "2",
        r"output 'Y' has shape \(2, 2\), and its axis of rows is unknown",
    ),
    "dependent": (
        "m = ReduceMean <axes = [1], keepdims = 1> (X) Y = Sub (X, m)",
        "2",
        r"output 'Y' of item '00..npy' differs by .*a model whose 2 rows are independent",
    ),
    "too few": ("Y = Tanh (X)", "3", "batch is 2; expected 3 if its rows are independent, because 'X' has 3 rows"),
}


@each_row("name", ROWS)
def test_rows_that_cannot_share_a_batch(name: str, tmp_path: Path) -> None:
    nodes, rows, words = ROWS[name]
    source = write_npy(tmp_path / "in", ITEMS)
    model = onnx_model(f"(float[T, {rows}, {SIZE}] X) => (float Y) {{ {nodes} }}")
    model.graph.output[0].type.tensor_type.ClearField("shape")
    with pytest.raises(PyrnnxError, match=words):
        run(model, source, axes="TNI", batch=2)
    if name == "no axis":
        run(model, source, axes="TNI")
        for item, results in of_npz(tmp_path / "out").items():
            assert results["Y"] == NAMED[item].max()


def test_initial_states_of_an_undeclared_size(source: Path) -> None:
    """R is an input and the node has no hidden_size: the size of initial_h is not known before the call."""
    R = np.random.default_rng(0).normal(size=(1, 6, 6)).astype(np.float32)
    model = onnx_model(
        f"(float[T, 1, {SIZE}] X, float[D, H, H] R, float[D, 1, H] initial_h) => (float[?,?,?,?] Y) "
        "{ Y = RNN (X, W, R, , , initial_h) }",
        W=np.ones((1, 6, SIZE), np.float32),
    )
    with pytest.raises(PyrnnxError, match="Y declares no hidden_size; expected 'initial_h' in inputs"):
        run(model, source, axes="TNI", input="X", inputs={"R": R})
    run(model, source, axes="TNI", input="X", inputs={"R": R, "initial_h": np.zeros((1, 1, 6), np.float32)})


def test_a_model_without_rows(source: Path) -> None:
    W = np.random.default_rng(0).normal(size=(SIZE, 2)).astype(np.float32)
    text = f"(float[T, {SIZE}] X, float[1] gain) => (float[?,?] Y) {{ Z = MatMul (X, W) Y = Mul (Z, gain) }}"
    model, gain = onnx_model(text, W=W), np.array([3], np.float32)
    run(model, source, axes="TI", inputs={"gain": gain})
    for options, words in (
        ({}, "these inputs have no value: 'X', 'gain'"),
        ({"input": "X"}, "inputs lacks 'gain'"),
        ({"inputs": {"gain": gain + 1}}, "the model: sha256"),
    ):
        with pytest.raises(PyrnnxError, match=words):
            run(model, source, axes="TI", **options)
    for name, results in of_npz(source.parent / "out").items():
        np.testing.assert_allclose(results["Y"], 3 * NAMED[name] @ W, rtol=1e-5, atol=1e-5)


@each_row("batch_first", [False, True])
@each_row("hidden_size", [6, 4])
def test_stacks(batch_first: bool, hidden_size: int, tmp_path: Path) -> None:
    source = write_npy(tmp_path / "in", ITEMS)
    second = random_layer(RecurrentOp("GRU" if hidden_size == 4 else "LSTM", hidden_size=hidden_size), 12)
    stack = Stack([lstm(), second], batch_first=batch_first)
    assert run(stack, source).batch == 32
    found = of_npz(tmp_path / "out")
    for name, item in NAMED.items():
        results = stack.run(item[np.newaxis] if batch_first else item[:, np.newaxis])
        wanted = {"Y": results[0][0] if batch_first else results[0][:, 0]}
        for state, value in zip(("Y_h", "Y_c"), results[1:], strict=True):
            if isinstance(value, list):
                wanted |= {f"{state}.{k}": array[:, 0] for k, array in enumerate(value) if array is not None}
            else:
                wanted[state] = value[:, 0]
        assert_equal({name: found[name]}, {name: wanted})
    with pytest.raises(PyrnnxError, match="outputs has 'Z'; expected names out of Y"):
        run(stack, source, outputs=["Z"])


REJECTED: dict[str, tuple[dict[str, Any], str]] = {
    "no T": ({"axes": "NSI"}, "axes is 'NSI'; expected different letters with a T"),
    "too few": ({"axes": "NT"}, "axes is 'NT'; expected 3 letters"),
    "input": ({"input": "x"}, "input is 'x'; expected one of 'X', 'lens'"),
    "lengths": ({"lengths": "x"}, "lengths is 'x'; expected one of"),
    "inputs": ({"inputs": 3}, "inputs is 3; expected a mapping"),
    "unknown input": ({"inputs": {"q": 1}}, "input 'q' is unknown"),
    "no lengths": ({"lengths": None}, "these inputs have no value: 'X', 'lens'; .* or lengths='lens', the lengths of"),
    "no axes": ({"model": recurrent("N, T", True, "x = Transpose <perm = [1, 0, 2]> (X)")}, "of 'X' .* are unknown"),
}


@each_row("name", REJECTED)
def test_rejected(name: str, tmp_path: Path) -> None:
    options, words = REJECTED[name]
    source = write_npy(tmp_path / "in", ITEMS)
    with pytest.raises(PyrnnxError, match=words):
        run(**{"model": recurrent(lengths=True), "source": source, "lengths": "lens", **options})


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
