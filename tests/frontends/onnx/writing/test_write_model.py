"""Layers and stacks written as ONNX models, run by ONNX Runtime, onnx's evaluator and pyrnnx."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from layers import DTYPES, bfloat16, float32, float64, random_inputs, random_layer
from onnx.reference import ReferenceEvaluator
from peers import run_onnxruntime
from rows import each_row, few_rows
from stacks import STACKS, I, random_layers, random_stack, random_states
from stacks import random_inputs as inputs_of
from whole_models import check_calls, onnxruntime_witness

from pyrnnx import (
    CANONICAL,
    ONNX_LAYOUTS,
    OPENVINO_SEQUENCE,
    Activation,
    Convention,
    Direction,
    Layer,
    PyrnnxError,
    RecurrentOp,
    Stack,
    load,
)
from pyrnnx.frontends.onnx import reference_ops, write_model
from pyrnnx.operator.conventions import OPENVINO_SEQUENCE_1, rearrange
from pyrnnx.operator.op import CELLS, CellName
from pyrnnx.testing.numbers import Array, assert_close, tolerance_of

T, N, H = 6, 4, 5
LENGTHS = np.array([6, 2, 0, 3], np.int32)
ALL = ("sequence_lens", "initial_h", "initial_c")


def by_evaluator(model: onnx.ModelProto, feed: dict[str, Array]) -> list[Array]:
    """Run with the operators of pyrnnx: onnx's own support neither lengths nor the reverse direction."""
    results: Any = ReferenceEvaluator(model, new_ops=reference_ops()).run(None, feed)
    return list(results)


def by_us(model: onnx.ModelProto, feed: dict[str, Array]) -> list[Array]:
    return list(load(model)(feed).values())


def flat(results: tuple[Any, ...]) -> list[Array]:
    return [a for one in results for a in (one if isinstance(one, list) else [one]) if a is not None]


def call(stack: Stack, asked: Collection[str]) -> tuple[dict[str, Array], list[Array]]:
    """Return inputs of a written stack, and the results of the stack itself."""
    X, states = inputs_of(stack, T, N), random_states(stack, N)
    feed: dict[str, Array] = {"X": X}
    arguments: dict[str, Any] = {}
    if "sequence_lens" in asked:
        feed["sequence_lens"] = arguments["sequence_lens"] = LENGTHS
    for form, state in zip(stack.state_forms, states, strict=True):
        if form.argument in asked:
            arguments[form.argument] = state
            whole = form.join(state)
            if form.is_joined:
                feed[form.argument] = whole
            else:
                feed |= {f"{form.argument}_{k}": one for k, one in enumerate(whole) if one is not None}
    return feed, flat(stack(X, **arguments))


def asked_of(stack: Stack) -> tuple[str, ...]:
    return ALL if stack.output_names[-1] == "Y_c" else ALL[:2]


@few_rows("opset", [22], [7, 12, 13])
@each_row("batch_first", [False, True])
@each_row("name", STACKS)
def test_stacks(name: str, batch_first: bool, opset: int) -> None:
    stack = Stack(random_layers(STACKS[name], names=True), batch_first=batch_first, name="whole")
    for asked in ((), asked_of(stack), ("initial_h",)):
        model = write_model(stack, inputs=asked, opset=opset)
        onnx.checker.check_model(model, full_check=True)
        assert [one.version for one in model.opset_import] == [opset]
        feed, wanted = call(stack, asked)
        assert [one.name for one in model.graph.input] == list(feed)
        again = load(model)
        assert_close([*again(feed).values()], wanted, tolerance_of(float32), "by us")
        for run in (run_onnxruntime, *([by_evaluator] if opset == 22 and asked else [])):
            assert_close(run(model, feed), wanted, tolerance_of(float32), run.__name__)
        if asked == asked_of(stack):
            tolerance = tolerance_of(float32)
            check_calls(again, onnxruntime_witness(model), feed, atol=tolerance, rtol=tolerance, label=name)
        assert model.graph.name == "whole"
        assert list(again.layers) == [layer.name for layer in stack.layers]
        for layer in stack.layers:
            found = again.layers[layer.name or ""]
            assert isinstance(found, Layer)
            assert found.op == layer.op
            for key, array in layer.weights.items():
                np.testing.assert_array_equal(found.weights[key], array, strict=True)


@each_row("convention", [*ONNX_LAYOUTS, OPENVINO_SEQUENCE], ids=str)
@each_row("direction", ["forward", "reverse", "bidirectional"])
@each_row("cell", CELLS)
def test_layers_of_any_convention(cell: CellName, direction: str, convention: Convention) -> None:
    op = RecurrentOp(cell, H, Direction(direction))
    layer = random_layer(op, I, convention=convention, peepholes=cell == "LSTM" and bool(convention.peepholes))
    asked = ALL if op.has_cell_state else ALL[:2]
    model = write_model(layer, inputs=asked)
    onnx.checker.check_model(model, full_check=True)
    assert [node.op_type for node in model.graph.node] == [cell]
    feed = random_inputs(op, (T, N, I), lens=LENGTHS.tolist())
    own = {key: rearrange(array, CANONICAL.axes_of(key), convention.axes_of(key)) for key, array in feed.items()}
    wanted = [
        rearrange(array, convention.axes_of(key), CANONICAL.axes_of(key))
        for key, array in zip(layer.output_names, layer.run(**own), strict=True)
    ]
    for run in (run_onnxruntime, by_us):
        assert_close(run(model, feed), wanted, tolerance_of(float32), run.__name__)
    required = [one.name for one in write_model(layer).graph.input]
    assert required == (["X", *asked] if convention is OPENVINO_SEQUENCE else ["X"])


@each_row("dtype", DTYPES, ids=str)
@each_row("what", ["layer", "stack"])
def test_dtypes(what: str, dtype: Any, tmp_path: Path) -> None:
    stack = random_stack("all cells", dtype)
    source = stack if what == "stack" else stack.layers[0]
    path = tmp_path / "model.onnx"
    onnx.checker.check_model(write_model(source, path), full_check=True)
    X = inputs_of(stack, T, N)
    results = list(load(path)(X).values())
    assert all(one.dtype == dtype for one in results)
    for a, b in zip(results, flat(source.run(X)), strict=True):
        np.testing.assert_array_equal(a, b)


BOTH_FUNCTIONS = ((Activation("LeakyRelu", 0.25),), (Activation("Affine", 0.5, 0.125),))
HARD = ((Activation("HardSigmoid"), Activation("Softsign")),)
OPS: list[tuple[RecurrentOp, dict[str, Any]]] = [
    (RecurrentOp("LSTM", H), {}),
    (RecurrentOp("RNN", H, Direction.REVERSE), {"direction": b"reverse"}),
    (RecurrentOp("GRU", H, clip=0.1), {"clip": np.float32(0.1)}),
    (RecurrentOp("GRU", H, linear_before_reset=True), {"linear_before_reset": 1}),
    (RecurrentOp("LSTM", H, input_forget=True), {"input_forget": 1}),
    (
        RecurrentOp("RNN", H, Direction.BIDIRECTIONAL, BOTH_FUNCTIONS),
        {"direction": b"bidirectional", "activations": [b"LeakyRelu", b"Affine"]}
        | {"activation_alpha": [0.25, 0.5], "activation_beta": [0.125]},
    ),
    (
        RecurrentOp("GRU", H, activations=HARD),
        {"activations": [b"HardSigmoid", b"Softsign"], "activation_alpha": [np.float32(0.2)], "activation_beta": [0.5]},
    ),
]


@each_row(("op", "attributes"), OPS)
def test_attributes_that_are_not_the_default(op: RecurrentOp, attributes: dict[str, Any]) -> None:
    layer, inputs = random_layer(op, I, name="own"), random_inputs(op, (T, N, I))
    for opset in (7, 14, 22, onnx.defs.onnx_opset_version()):
        model = write_model(layer, opset=opset)
        (node,) = model.graph.node
        written = {row.name: onnx.helper.get_attribute_value(row) for row in node.attribute}
        assert (node.name, written) == ("own", {"hidden_size": H, **attributes})
        again = load(model).layers["own"]
        assert isinstance(again, Layer)
        for a, b in zip(again.run(**inputs), layer.run(**inputs), strict=True):
            np.testing.assert_array_equal(a, b)


@each_row(("opset", "direction"), [(1, "reverse"), (3, "bidirectional"), (6, "bidirectional")])
@each_row("cell", CELLS)
def test_first_opsets(cell: CellName, opset: int, direction: str) -> None:
    op = RecurrentOp(cell, H, Direction(direction))
    stack = Stack([random_layer(op, I), random_layer(op, op.num_directions * H, seed=1)], batch_first=True)
    for asked in ((), ALL[:2]):
        model = write_model(stack, inputs=asked, opset=opset)
        onnx.checker.check_model(model)
        unknown = ("Reshape",) if opset == 3 else ("Split",) if opset == 1 else ()  # of those opsets nothing runs them
        if not any(node.op_type in unknown for node in model.graph.node):
            feed, wanted = call(stack, asked)
            assert_close(by_us(model, feed), wanted, tolerance_of(float32))


def test_coupled_gates_of_openvino() -> None:
    """i = 1 - f there, f = 1 - i in ONNX."""
    op = RecurrentOp("LSTM", H, input_forget=True)
    layer = random_layer(op, I, convention=OPENVINO_SEQUENCE_1, peepholes=True)
    own = random_inputs(op, (T, N, I), convention=OPENVINO_SEQUENCE_1)
    feed = random_inputs(op, (T, N, I))
    wanted = [
        rearrange(array, OPENVINO_SEQUENCE_1.axes_of(key), CANONICAL.axes_of(key))
        for key, array in zip(layer.output_names, layer.run(**own), strict=True)
    ]
    assert_close(by_us(write_model(layer), feed), wanted, tolerance_of(float32))


def test_constants_of_a_layer() -> None:
    op = RecurrentOp("LSTM", H)
    inputs = random_inputs(op, (T, N, I), lens=LENGTHS.tolist())
    X = inputs.pop("X")
    plain = random_layer(op, I)
    held = random_layer(op, I, constants=inputs)
    model = write_model(held)
    assert [one.name for one in model.graph.input] == ["X"]
    assert_close(run_onnxruntime(model, {"X": X}), plain.run(X, **inputs), tolerance_of(float32))
    # Asked for, they are the defaults of inputs.
    model = write_model(held, inputs=ALL)
    onnx.checker.check_model(model, full_check=True)
    other = inputs | {"initial_h": -inputs["initial_h"]}
    for feed in ({}, {"initial_h": other["initial_h"]}):
        for run in (run_onnxruntime, by_us):
            assert_close(run(model, {"X": X, **feed}), plain.run(X, **(inputs | feed)), tolerance_of(float32))


def test_names() -> None:
    layers = random_layers((("GRU", "forward", H),) * 6)
    names = ["a", None, "a", "a_1", "X", "Y"]
    named = [Layer(one.op, **one.weights, name=name) for one, name in zip(layers, names, strict=True)]  # type: ignore[arg-type]
    stack = Stack(named, batch_first=True)
    model = write_model(stack, inputs=ALL[:2])
    onnx.checker.check_model(model, full_check=True)
    assert [n.name for n in model.graph.node if n.op_type == "GRU"] == ["a", "gru_1", "a_1", "a_1_1", "X", "Y"]
    feed, wanted = call(stack, ALL[:2])
    assert_close(by_us(model, feed), wanted, tolerance_of(float32))
    assert model.graph.name == "Stack"
    assert write_model(layers[0]).graph.name == "Layer"
    assert model.producer_name == "pyrnnx"


def test_sizes_are_free() -> None:
    model = write_model(random_stack("bidirectional", batch_first=True), inputs=ALL)
    for shape in ((1, 1, I), (3, 7, I), (3, 0, I), (0, 2, I)):
        feed = {"X": np.ones(shape, np.float32), "sequence_lens": np.full(shape[0], shape[1], np.int32)}
        feed |= {key: np.zeros((6, shape[0], 5), np.float32) for key in ALL[1:]}
        assert by_us(model, feed)[0].shape == (*shape[:2], 10)


# Errors


def gru(dtype: Any = float32, *, name: str | None = None, constants: Any = None, **attributes: Any) -> Any:
    return random_layer(RecurrentOp("GRU", H, **attributes), I, dtype, name=name, constants=constants)


class Other(Layer):
    def run(self, *arguments: Any, **named: Any) -> Any:
        return ()


ELU = RecurrentOp("RNN", H, activations=((Activation("Elu", -1e60),),))
TANH = RecurrentOp("LSTM", H, activations=((Activation("Tanh"),) * 3,), input_forget=True)
UNEQUAL = {"initial_h": np.ones((1, 3, H), np.float32), "sequence_lens": np.array([1, 2], np.int32)}
SOME = "expected a list of some of sequence_lens, initial_h"
FLOAT32 = "ONNX holds it in float32, expected 1.2e-38 to 3.4e38"
# The source, options of write_model, and how the message begins.
ERRORS: list[tuple[Callable[[], Any], dict[str, Any], str]] = [
    (lambda: "a.onnx", {}, "write_model: str was given; expected a recurrent layer"),
    (gru, {"inputs": "initial_h"}, f"GRU: inputs is 'initial_h'; {SOME}"),
    (gru, {"inputs": [3]}, rf"GRU: inputs is \[3\]; {SOME}"),
    (gru, {"inputs": ["X"]}, rf"GRU: inputs is \['X'\]; {SOME}"),
    (gru, {"inputs": ["initial_h"] * 2}, rf"GRU: inputs is \['initial_h', 'initial_h'\]; {SOME}.*, each once"),
    (lambda: random_stack("no cell state"), {"inputs": ["initial_c"]}, "Stack: inputs has 'initial_c'; GRU, RNN has"),
    (gru, {"opset": 0}, "GRU: opset is 0; expected a positive integer"),
    (gru, {"opset": "22"}, "GRU: opset is '22'; expected a positive integer"),
    (gru, {"opset": 99}, "LSTM: opset is 99; expected at most "),
    (lambda: gru(bfloat16), {"opset": 21}, r"GRU: the weights have dtype bfloat16; GRU-14 \(opset 21\) has float32"),
    (lambda: gru(linear_before_reset=True), {"opset": 2}, r"GRU: linear_before_reset is True; GRU-1 \(opset 2\) has"),
    (lambda: gru(float64, clip=1e-60), {}, f"GRU: clip is 1e-60; {FLOAT32}"),
    (lambda: gru(float64, clip=1e60), {}, rf"GRU: clip is 1e\+60; {FLOAT32}"),
    (lambda: random_layer(ELU, I, float64), {}, rf"RNN: activation_alpha is -1e\+60; {FLOAT32}"),
    (lambda: random_layer(TANH, I, convention=OPENVINO_SEQUENCE_1), {}, "LSTM: input_forget with activation Tanh of"),
    (lambda: Other(gru().op, **gru().weights), {}, "GRU: Other computes something else than an operator of ONNX's own"),
    (lambda: gru(constants=UNEQUAL), {}, r"GRU: .* has shape .*; expected \(.*batch_size=\d"),
    (lambda: gru(name="\ud800"), {}, "GRU .*: the model cannot be written .*surrogates not allowed"),
    (lambda: Stack([gru()], name="\ud800"), {}, "Stack .*: the model cannot be written .*surrogates not allowed"),
    (gru, {"path": 3}, "GRU: path is 3; expected the path of an .onnx"),
    (gru, {"path": "a.xml"}, "GRU: path is 'a.xml'; expected a name that ends in .onnx"),
    (gru, {"path": "/nowhere/a.onnx"}, "GRU: '.*a.onnx' cannot be written"),
]


@each_row(("make", "options", "message"), ERRORS, ids=[row[-1] for row in ERRORS])
def test_what_cannot_be_written(make: Callable[[], Any], options: dict[str, Any], message: str) -> None:
    with pytest.raises(PyrnnxError, match=f"^{message}"):
        write_model(make(), **options)


def test_large_models_have_external_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Lower the limit of a protobuf message below the bytes of the weights."""
    rng, path = np.random.default_rng(0), tmp_path / "a.onnx"
    weights = [rng.uniform(-1, 1, (1, 60, size)).astype(np.float32) for size in (5, 20)]
    layer, X = Layer(RecurrentOp("GRU", 20), *weights), rng.uniform(-1, 1, (4, 3, 5)).astype(np.float32)
    whole = write_model(layer)
    monkeypatch.setattr("pyrnnx.frontends.onnx.file.LARGEST", 2**20 + 4000)
    assert write_model(layer, path) == whole
    assert path.stat().st_size < 1000
    assert (tmp_path / "a.onnx.data").stat().st_size == 4 * 60 * 25
    for arrays in (load(path)(X).values(), run_onnxruntime(path, {"X": X})):
        for array, expected in zip(arrays, layer(X), strict=True):
            np.testing.assert_allclose(array, expected, atol=1e-6)  # float32, sums of 25 terms
    assert {file.name for file in tmp_path.iterdir()} == {"a.onnx", "a.onnx.data"}
