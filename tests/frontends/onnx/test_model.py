"""Whole ONNX models: their layers, wherever they are, and their results."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import reference
from cases import (
    CASES,
    OUTPUTS,
    RUNTIME_INPUTS,
    TOLERANCES,
    Array,
    Case,
    assert_close,
    expected_outputs,
    make_arrays,
    make_node,
)
from onnx import helper, numpy_helper
from onnx_models import make_graph, make_model, simple_model, value_info

from pyrnnx import ArgumentError, Layer, UnsupportedError
from pyrnnx.frontends.onnx import Model, NodeLayer, UnboundNode, read_model

node = helper.make_node
GRU = Case("gru of a model", "GRU", {"direction": "bidirectional"}, ("B", "initial_h"), (4, 2, 0), I=3, H=5)
LSTM = Case("lstm of a model", "LSTM", {}, ("B", "initial_h", "initial_c"), I=5, H=5)
TOLERANCE = TOLERANCES[LSTM.dtype]


def case_model(case: Case, constant: Sequence[str] = ("W", "R", "B", "P")) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """The case as a model, and its inputs: all but the constants."""
    arrays = make_arrays(case)
    given = {name: array for name, array in arrays.items() if name not in constant}
    constants = {name: array for name, array in arrays.items() if name in constant}
    model = simple_model([make_node(case, arrays)], given, OUTPUTS[case.operator], constants, case.opset)
    return model, given


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_cases(case: Case) -> None:
    model, given = case_model(case)
    expected = expected_outputs(case, make_arrays(case))
    results = read_model(model)(given)
    assert tuple(results) == OUTPUTS[case.operator]
    assert_close(list(results.values()), expected, TOLERANCES[case.dtype])


def test_layer_of_constants() -> None:
    model, given = case_model(GRU)
    (found,) = read_model(model).layers.values()
    assert isinstance(found, NodeLayer)
    assert_close(
        found(given["X"], *(given[n] for n in RUNTIME_INPUTS[1:] if n in given)),
        expected_outputs(GRU, make_arrays(GRU)),
        TOLERANCE,
    )


def test_layer_with_computed_weights() -> None:
    model, given = case_model(LSTM, ("B", "initial_h"))
    model.graph.node[0].name = "it"
    read = read_model(model)
    (found,) = read.layers.values()
    assert isinstance(found, UnboundNode)
    assert (found.label, found.dtype, found.sizes, found.op) == ("LSTM 'it'", None, {}, None)
    assert_close(list(read(given).values()), expected_outputs(LSTM, make_arrays(LSTM)), TOLERANCE)
    arrays = make_arrays(LSTM)
    layer = found.bind(arrays["W"], arrays["R"], arrays["B"])
    assert_close(layer(given["X"], initial_c=given["initial_c"]), expected_outputs(LSTM, make_arrays(LSTM)), TOLERANCE)


def test_unbound_layer_with_hidden_size() -> None:
    model, _ = case_model(GRU, ())
    model.graph.node[0].attribute.append(helper.make_attribute("hidden_size", 5))
    (found,) = read_model(model).layers.values()
    assert isinstance(found, UnboundNode)
    assert (found.op is not None and found.op.hidden_size, found.convention.name) == (5, "ONNX, layout 0")


def test_weights_by_chains() -> None:
    """W and B as exporters write them: float16, an int8 with its scale, one direction at a time, transposed."""
    arrays = make_arrays(LSTM)
    W16 = arrays["W"].astype(np.float16)
    codes, scale = np.rint(arrays["R"] * 100).astype(np.int8), np.array(0.01, np.float32)
    nodes = [
        node("Cast", ["w16"], ["w"], to=onnx.TensorProto.FLOAT),
        node("Unsqueeze", ["w", "axis"], ["W"]),
        node("Transpose", ["r8"], ["turned"], perm=[1, 0]),
        node("DequantizeLinear", ["turned", "scale"], ["r"]),
        node("Unsqueeze", ["r", "axis"], ["R"]),
        node("Concat", ["wb", "rb"], ["B"], axis=1),
        node("LSTM", ["X", "W", "R", "B"], ["Y"], hidden_size=LSTM.H),
    ]
    B = arrays["B"]
    constants = {"w16": W16[0], "axis": np.array([0]), "r8": codes[0].T, "scale": scale}
    constants |= {"wb": B[:, :20], "rb": B[:, 20:]}
    model = read_model(simple_model(nodes, {"X": arrays["X"]}, ["Y"], constants))
    (layer,) = model.layers.values()
    assert isinstance(layer, NodeLayer)
    W, R = W16.astype(np.float32), codes.astype(np.float32) * scale
    expected = reference.lstm(arrays["X"], W, R, B=B)
    assert_close([model(arrays["X"])["Y"]], expected[:1], TOLERANCE)
    assert_close(layer(arrays["X"]), expected, TOLERANCE)


def weights_of(case: Case, prefix: str = "", seed: int = 0) -> dict[str, Any]:
    return {f"{prefix}{n}": a for n, a in make_arrays(case, seed=seed).items() if n in ("W", "R", "B")}


def lstm_node(prefix: str, outputs: Sequence[str], X: str = "X", name: str = "") -> onnx.NodeProto:
    return node("LSTM", [X, f"{prefix}W", f"{prefix}R", f"{prefix}B"], outputs, name=name, hidden_size=LSTM.H)


def branches() -> tuple[onnx.ModelProto, dict[str, Array]]:
    """An If whose branches have an LSTM of the same name: weights from outside in one, from inside in the other."""
    inside = make_graph([lstm_node("i", ["h"], name="lstm")], {}, ["h"], weights_of(LSTM, "i", 1))
    outside = make_graph([lstm_node("o", ["h"], name="lstm")], {}, ["h"])
    nodes = [
        node("If", ["c"], ["Y"], then_branch=inside, else_branch=outside, name="choice"),
        lstm_node("o", ["Z"], name="own"),
        lstm_node("o", ["V"]),
    ]
    given = {"X": make_arrays(LSTM)["X"], "c": np.array(True)}
    return simple_model(nodes, given, ["Y", "Z"], weights_of(LSTM, "o", 2)), given


def test_layers_in_branches() -> None:
    proto, given = branches()
    model = read_model(proto)
    assert set(model.layers) == {"Y/else_branch/h", "Y/then_branch/h", "own", "V"}
    for condition, seed, branch in ((True, 1, "then_branch"), (False, 2, "else_branch")):
        weights = weights_of(LSTM, seed=seed)
        expected = reference.lstm(given["X"], **weights)
        assert_close([model({**given, "c": np.array(condition)})["Y"]], expected[:1], TOLERANCE)
        layer = model.layers[f"Y/{branch}/h"]
        assert isinstance(layer, Layer)
        assert_close(layer.run(given["X"]), expected, TOLERANCE)
    assert_close([model(given)["Z"]], expected[:1], TOLERANCE)


def test_layers_in_functions() -> None:
    """Each call of a function has a layer of its own; its linked attributes have the values of the call."""
    inner = node("GRU", ["x", "w", "r"], ["y", ""], name="gru")
    for name in ("direction", "hidden_size"):
        kind = onnx.AttributeProto.STRING if name == "direction" else onnx.AttributeProto.INT
        inner.attribute.append(onnx.AttributeProto(name=name, ref_attr_name=name, type=kind))
    body = helper.make_function(
        "test", "Run", ["x", "w", "r"], ["y"], [inner], [helper.make_opsetid("", 17)], ["direction", "hidden_size"]
    )
    arrays: dict[str, Any] = make_arrays(Case("function", "GRU", {}, (), I=3, H=5))
    nodes = [
        node("Run", ["X", "W", "R"], ["F"], domain="test", direction="forward", hidden_size=5),
        node("Run", ["X", "W", "R"], ["B"], domain="test", direction="reverse", hidden_size=5),
    ]
    constants = {name: arrays[name] for name in ("W", "R")}
    proto = simple_model(nodes, {"X": arrays["X"]}, ["F", "B"], constants, domains={"test": 1}, functions=[body])
    model = read_model(proto)
    assert [layer.op.direction.value for layer in model.layers.values() if layer.op] == ["forward", "reverse"]
    for result, direction in zip(model(arrays["X"]).values(), ("forward", "reverse"), strict=True):
        assert_close([result], reference.gru(**arrays, direction=direction)[:1], TOLERANCE)


def test_layer_in_a_loop() -> None:
    """X runs through the same LSTM three times; the body takes its weights from outside."""
    body = make_graph(
        [lstm_node("o", ["y4"], "x"), node("Squeeze", ["y4", "one"], ["y"]), node("Identity", ["go"], ["on"])],
        {"k": np.array(0), "go": np.array(True), "x": np.zeros((1, 1, 1), np.float32)},
        ["on", "y"],
    )
    X = make_arrays(LSTM)["X"]
    constants = {**weights_of(LSTM, "o"), "one": np.array([1]), "three": np.array(3)}
    model = read_model(simple_model([node("Loop", ["three", "", "X"], ["Y"], body=body)], {"X": X}, ["Y"], constants))
    assert list(model.layers) == ["Y/body/y4"]
    expected = X
    for _ in range(3):
        expected = reference.lstm(expected, **weights_of(LSTM))[0][:, 0]
    np.testing.assert_allclose(model(X)["Y"], expected, atol=TOLERANCE)


def test_layer_in_a_scan() -> None:
    """One sequence after another, each beginning with the state that the one before ended with."""
    inner = node("LSTM", ["x", "oW", "oR", "oB", "", "h"], ["y", "h_next"], hidden_size=LSTM.H)
    last = node("Identity", ["y"], ["all"])
    h = make_arrays(LSTM)["initial_h"]
    X = np.stack([make_arrays(LSTM, seed=seed)["X"] for seed in (1, 2, 3)])
    body = make_graph([inner, last], {"h": h, "x": X[0]}, ["h_next", "all"])
    scan = node("Scan", ["h0", "X"], ["h_last", "Y"], body=body, num_scan_inputs=1)
    weights = weights_of(LSTM, "o")
    model = read_model(simple_model([scan], {"h0": h, "X": X}, ["h_last", "Y"], weights))
    assert list(model.layers) == ["h_last/body/y"]
    results, state = model(h, X), h
    for x, y in zip(X, results["Y"], strict=True):
        expected = reference.lstm(x, **weights_of(LSTM), initial_h=state)
        np.testing.assert_allclose(y, expected[0], atol=TOLERANCE)
        state = expected[1]
    np.testing.assert_allclose(results["h_last"], state, atol=TOLERANCE)


@pytest.mark.parametrize("count", [0, 3])
def test_results_of_a_loop(count: int) -> None:
    """Stacked along a new axis, of any rank; onnx's own evaluator takes an existing one."""
    nodes = [
        node("Add", ["v", "a"], ["w"]),
        node("ReduceSum", ["w"], ["sum"], keepdims=0),
        node("Identity", ["go"], ["on"]),
        node("Identity", ["w"], ["seen"]),
    ]
    a = np.array([[1.0, 2.0, 3.0], [5.0, 7.0, 11.0]], np.float32)
    body = make_graph(nodes, {"k": np.array(0), "go": np.array(True), "v": a}, ["on", "w", "seen", "sum"])
    body.output[2].CopyFrom(value_info("seen", a))
    loop = node("Loop", ["n", "", "a"], ["last", "all", "sums"], body=body)
    model = read_model(simple_model([loop], {"n": np.array(0)}, ["last", "all", "sums"], {"a": a}))
    last, stacked, sums = model(np.array(count)).values()
    expected = np.array([a * (k + 2) for k in range(count)], np.float32).reshape(count, 2, 3)
    np.testing.assert_array_equal(last, a * (count + 1))
    np.testing.assert_array_equal(stacked, expected)
    np.testing.assert_array_equal(sums, expected.sum((1, 2)))


def test_prepared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The operators of the evaluator use the very layers of `layers`, whichever comes first."""
    made: list[str] = []
    original = NodeLayer.__init__

    def counted(self: Any, *arguments: Any, **keywords: Any) -> None:
        made.append(keywords["name"])
        original(self, *arguments, **keywords)

    monkeypatch.setattr(NodeLayer, "__init__", counted)
    proto, given = branches()
    model = read_model(proto)
    for _ in range(3):
        model(given)
    assert len(model.layers) == len(made) == len(set(made)) == 4


def test_names_of_layers() -> None:
    """Empty and repeated names give way to outputs, and those to the names of other nodes."""
    nodes = [
        lstm_node("o", ["a"], name="same"),
        lstm_node("o", ["b"], name="same"),
        lstm_node("o", ["", "c"]),
        lstm_node("o", ["d"]),
        node("Identity", ["X"], ["e"], name="d"),
        lstm_node("o", ["f"], name="mine"),
    ]
    X = make_arrays(LSTM)["X"]
    model = read_model(simple_model(nodes, {"X": X}, ["a"], weights_of(LSTM, "o")))
    assert list(model.layers) == ["a", "b", "c", "d#2", "mine"]
    assert model.layers["mine"].label == "LSTM 'mine'"
    assert repr(model) == "<Model ONNX model: (X) -> (a)>"


def test_inputs_and_outputs() -> None:
    graph = make_graph([node("Identity", ["x"], ["y"])], {"x": np.ones((2, 3), np.float32)}, ["y"])
    del graph.input[:]
    declared: list[tuple[str, int, list[str | int | None] | None]] = [
        ("x", onnx.TensorProto.FLOAT, ["batch", 3]),
        ("half", onnx.TensorProto.BFLOAT16, []),
        ("text", onnx.TensorProto.STRING, [None]),
        ("any", onnx.TensorProto.INT64, None),
        ("minus", onnx.TensorProto.INT64, [-1]),
    ]
    for name, element, shape in declared:
        graph.input.append(helper.make_tensor_value_info(name, element, shape))
    sequence = helper.make_tensor_sequence_value_info("sequence", onnx.TensorProto.FLOAT, None)
    graph.input.extend([sequence, onnx.ValueInfoProto(name="untyped")])
    model = read_model(make_model(graph))
    assert [(info.name, info.dtype, info.shape) for info in model.inputs] == [
        ("x", "float32", ("batch", 3)),
        ("half", "bfloat16", ()),
        ("text", "str", (None,)),
        ("any", "int64", None),
        ("minus", "int64", (None,)),
        ("sequence", None, None),
        ("untyped", None, None),
    ]
    assert [(info.name, info.dtype, info.optional) for info in model.outputs] == [("y", None, False)]


def test_default_inputs() -> None:
    """Initializers that are inputs too, as all are below IR version 4: a call may replace them."""
    arrays: dict[str, Any] = make_arrays(LSTM)
    names = ("W", "R", "B")
    X, constants = arrays["X"], {name: arrays[name] for name in names}
    proto = simple_model([lstm_node("", ["Y"])], {"X": X, **constants}, ["Y"], constants, 9, ir_version=3)
    model = read_model(proto)
    assert [info.optional for info in model.inputs] == [False, True, True, True]
    (layer,) = model.layers.values()
    assert isinstance(layer, NodeLayer)
    expected = reference.lstm(X, **constants)
    other = {"R": constants["R"] * 0.5, "B": constants["B"] - 0.25}
    for _ in range(2):
        assert_close([model(X)["Y"]], expected[:1], TOLERANCE)
        assert_close([model({"X": X, **other})["Y"]], reference.lstm(X, **constants | other)[:1], TOLERANCE)


def test_intermediate_outputs() -> None:
    """Values that nothing needs any more, folded or dead ones, too."""
    nodes = [
        node("Add", ["a", "a"], ["twice"]),
        node("Mul", ["x", "twice"], ["scaled"]),
        node("Neg", ["x"], ["dead"]),
        node("Add", ["scaled", "a"], ["y"]),
    ]
    x, a = np.array([1.0, -2.0], np.float32), np.array([0.5, 3.0], np.float32)
    model = read_model(simple_model(nodes, {"x": x}, ["y"], {"a": a}))
    found = model(x, outputs=["dead", "twice", "y", "scaled", "a", "x"])
    wanted = {"dead": -x, "twice": 2 * a, "y": 2 * a * x + a, "scaled": 2 * a * x, "a": a, "x": x}
    assert list(found) == list(wanted)
    for name, value in wanted.items():
        np.testing.assert_array_equal(found[name], value)
    with pytest.raises(ArgumentError, match="outputs has 'nowhere'"):
        model(x, outputs=["nowhere"])


def test_unknown_operator_is_an_error_of_the_call() -> None:
    proto, given = case_model(LSTM)
    proto.graph.node.append(node("Nonsense", ["Y"], ["z"], name="it", domain="test"))
    proto.graph.output.append(onnx.ValueInfoProto(name="z"))
    proto.opset_import.append(helper.make_opsetid("test", 1))
    model = read_model(proto)
    assert len(model.layers) == 1
    with pytest.raises(UnsupportedError, match=r"test\.Nonsense 'it' cannot be run") as caught:
        model(given)
    assert isinstance(caught.value.__cause__, NotImplementedError)


def test_failing_operator_is_named() -> None:
    inner = make_graph([node("MatMul", ["x", "x"], ["m"], name="inner")], {}, ["m"])
    outer = node("If", ["c"], ["y"], name="outer", then_branch=inner, else_branch=inner)
    given = {"x": np.ones((2, 3), np.float32), "c": np.array(True)}
    with pytest.raises(ArgumentError, match=r"MatMul 'inner' failed: .* 'x' float32 \(2, 3\)") as caught:
        read_model(simple_model([outer], given, ["y"]))(given)
    assert caught.value.__cause__ is not None
    assert "not aligned" in str(caught.value)


def test_layer_that_does_not_fit_is_named() -> None:
    proto, given = case_model(LSTM)
    proto.graph.node[0].name = "wrong"
    proto.graph.node[0].attribute.append(helper.make_attribute("hidden_size", 6))
    with pytest.raises(ArgumentError, match="LSTM 'wrong': W has shape"):
        read_model(proto)(given)


def test_callers_model_is_not_changed(tmp_path: Path) -> None:
    proto, given = branches()
    before = proto.SerializeToString()
    model = read_model(proto)
    expected = model(given)
    assert proto.SerializeToString() == before
    del proto.graph.initializer[:]
    path = tmp_path / "m.onnx"
    path.write_bytes(before)
    for source in (path, str(path), before):
        for name, value in read_model(source)(given).items():
            np.testing.assert_array_equal(value, expected[name])
    np.testing.assert_array_equal(model(given)["Y"], expected["Y"])
    assert read_model(path).label == str(path)


def test_threads() -> None:
    proto, given = branches()
    expected = read_model(proto)(given)["Y"]
    model = read_model(proto)
    with ThreadPoolExecutor(8) as pool:
        for result in pool.map(lambda _: model(given)["Y"], range(32)):
            np.testing.assert_array_equal(result, expected)


def test_other_spelling_of_the_default_domain() -> None:
    proto, given = case_model(LSTM)
    proto.opset_import[0].domain = "ai.onnx"
    proto.graph.node[0].domain = "ai.onnx"
    model = read_model(proto)
    assert len(model.layers) == 1
    assert_close(list(model(given).values()), expected_outputs(LSTM, make_arrays(LSTM)), TOLERANCE)


def test_float_data_and_infinities() -> None:
    """Initializers that are no raw bytes; and results that are no numbers, without a warning."""
    proto, given = case_model(LSTM)
    for one in proto.graph.initializer:
        values = numpy_helper.to_array(one)
        one.CopyFrom(helper.make_tensor(one.name, one.data_type, values.shape, values.ravel()))
    nodes = [node("Div", ["Y", "Y_zero"], ["inf"]), node("Sub", ["Y", "Y"], ["Y_zero"])]
    proto.graph.node.extend(nodes)
    results = Model(proto)(given, outputs=["Y", "inf"])
    assert_close([results["Y"]], expected_outputs(LSTM, make_arrays(LSTM))[:1], TOLERANCE)
    assert np.isinf(results["inf"]).all()
