"""Scans that ONNX Runtime runs between Guards, compared with onnx's evaluator; some would crash without Guards."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator
from onnx_models import make_graph, simple_model

from pyrnnx import PyrnnxError
from pyrnnx.frontends.onnx import Model, read_model
from pyrnnx.frontends.onnx.runtime.guards import FIRST_INPUTS

pytest.importorskip("onnxruntime")
node = helper.make_node
FLOAT = onnx.TensorProto.FLOAT
X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
CONSTANTS = {"flat": np.array([-1]), "zero": np.array([0]), "two": np.array([2]), "none": np.ones((0, 4), np.float32)}
# Nodes of a step: from the state `s` and a part `a` of x to the next state `t` and the result `p`.
STATES = {
    "same": node("Identity", ["s"], ["t"]),
    "sum": node("Add", ["s", "a"], ["t"]),
    "flat": node("Reshape", ["s", "flat"], ["t"]),
    "fewer rows": node("Slice", ["s", "zero", "two"], ["t"]),
    "more rows": node("Concat", ["s", "a"], ["t"], axis=0),
    "no rows": node("Identity", ["none"], ["t"]),
}
RESULTS = {
    "negative": node("Neg", ["a"], ["p"]),
    "state": node("Identity", ["s"], ["p"]),
    "no rows": node("Slice", ["a", "zero", "zero"], ["p"]),
    "flat": node("Reshape", ["a", "flat"], ["p"]),
}


def scan_model(state: str, result: str, ranks: tuple[int, int], axes: tuple[int, int], inputs: Any, count: int) -> Any:
    takes = [helper.make_tensor_value_info(name, FLOAT, None) for name in "sa"]
    gives = [
        helper.make_tensor_value_info(name, FLOAT, [f"{name}{k}" for k in range(rank)])
        for name, rank in zip("tp", ranks, strict=True)
    ]
    body = helper.make_graph([STATES[state], RESULTS[result]], "body", takes, gives)
    attributes: dict[str, Any] = {"num_scan_inputs": 1, "scan_input_axes": [axes[0]], "scan_output_axes": [axes[1]]}
    scan = node("Scan", ["h", "some"], ["last", "y"], body=body, **attributes)
    # A call passes arrays with elements; Slice makes empty ones of them within the session.
    rows = node("Slice", ["x", "zero", "rows"], ["some"])
    return simple_model([rows, scan], inputs, ["last", "y"], {**CONSTANTS, "rows": np.array([count])})


def results_of(model: Model, inputs: dict[str, Any]) -> Any:
    try:
        return list(model(inputs).values())
    except PyrnnxError as error:
        return error


RANKS = [(2, 2), (1, 2), (3, 2), (2, 1), (1, 1), (0, 0)]
AXES = [(0, 0), (1, 0), (0, 1), (-1, -1)]
ALL = list(itertools.product(STATES, [0, 1, 2], RESULTS, RANKS, AXES))
# ONNX Runtime ends the process for these unless ranks of states are checked, and that values have elements.
FATAL = [
    ("flat", 2, "negative", (1, 2), (0, 0)),
    ("same", 0, "flat", (2, 1), (-1, -1)),
    ("same", 2, "no rows", (2, 2), (0, 1)),
]


def check_beside_the_evaluator(rows: list[Any]) -> None:
    """Compare values, or that both are errors, whatever ranks a body declares."""
    for case in rows:
        state, count, result, ranks, axes = case
        inputs = {"h": np.ones((3, 4), np.float32), "x": np.moveaxis(X, 0, axes[0])}
        proto = scan_model(state, result, ranks, axes, inputs, count)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = results_of(read_model(proto, runtime="reference"), inputs)
            results = results_of(read_model(proto), inputs)
        assert isinstance(results, PyrnnxError) == isinstance(expected, PyrnnxError), (case, results, expected)
        for one, wanted in zip(results, expected, strict=True) if isinstance(expected, list) else ():
            np.testing.assert_array_equal(one, wanted, err_msg=str(case))


def test_scans_beside_the_evaluator() -> None:
    check_beside_the_evaluator(FATAL + ALL[::41])


@pytest.mark.slow
def test_all_scans_beside_the_evaluator() -> None:
    check_beside_the_evaluator(ALL)


def certain_model(rows: int | str, *, axis: int = 0) -> Any:
    """Return a Scan of a state [rows, 4] and parts [rows, 4] of x, whose shapes follow from its inputs'."""
    body = helper.make_graph(
        [
            node("MatMul", ["a", "w"], ["b"]),
            node("Add", ["s", "b"], ["sum"]),
            node("Tanh", ["sum"], ["t"]),
            node("Concat", ["t", "s"], ["p"], axis=-1),
        ],
        "body",
        [helper.make_tensor_value_info(name, FLOAT, None) for name in "sa"],
        [helper.make_tensor_value_info(name, FLOAT, [None, None]) for name in "tp"],
    )
    scan = node("Scan", ["start", "x"], ["last", "all"], body=body, num_scan_inputs=1, scan_output_axes=[axis])
    inputs = {"start": np.zeros((1, 4), np.float32), "x": np.zeros((1, 1, 4), np.float32)}
    w = np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 4)
    model = simple_model([scan], inputs, ["last", "all"], {"w": w})
    for value, place in zip(model.graph.input, (0, 1), strict=True):
        size = value.type.tensor_type.shape.dim[place]
        if isinstance(rows, int):
            size.dim_value = rows
        else:
            size.dim_param = rows
        value.type.tensor_type.shape.dim[-1].dim_value = 4
    return model


def steps(inputs: Any, w: Any) -> list[Any]:
    s, rows = np.asarray(inputs["start"], np.float64), []
    for a in inputs["x"]:
        t = np.tanh(s + a @ w)
        rows.append(np.concatenate([t, s], axis=-1))
        s = t
    return [s, np.stack(rows)]


@pytest.mark.parametrize(("rows", "axis", "is_certain"), [(3, 0, True), ("N", 0, True), ("", 0, False), (3, 1, False)])
def test_steps_with_certain_shapes(rows: int | str, axis: int, is_certain: bool) -> None:
    """Their bodies have no Guard, and calls with other shapes do not end the process."""
    proto = certain_model(rows, axis=axis)
    model, rng = read_model(proto), np.random.default_rng(0)
    assert ("Guard" not in str(model.plan).split("Scan (")[1].split(")")[0]) == is_certain
    w = onnx.numpy_helper.to_array(proto.graph.initializer[0]).astype(np.float64)
    for length in (5, 1, 7, 3, 2):
        inputs = {
            name: rng.standard_normal(shape).astype(np.float32)
            for name, shape in (("start", (3, 4)), ("x", (length, 3, 4)))
        }
        last, every = model(inputs).values()
        expected = steps(inputs, w)
        np.testing.assert_allclose(last, expected[0], atol=1e-5)
        np.testing.assert_allclose(np.moveaxis(every, axis, 0), expected[1], atol=1e-5)
    broadcast = {"start": inputs["start"][:1], "x": inputs["x"]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            last, every = model(broadcast).values()
        except PyrnnxError:
            return
    np.testing.assert_allclose(last, steps(broadcast, w)[0], atol=1e-5)


WAVE = np.sin(np.arange(24.0)).astype(np.float32)
# Attributes and constant inputs of operators that crash the process on some ranks of their first input.
GUARDED: dict[str, tuple[dict[str, Any], list[Any]]] = {
    "STFT": ({}, [np.array(4), np.hanning(8).astype(np.float32)]),
    "ReverseSequence": ({"time_axis": 0, "batch_axis": 1}, [np.array([2, 1, 2, 1])]),
    "Multinomial": ({"sample_size": 3}, []),
}


def axes_model(operator: str) -> Any:
    attributes, arrays = GUARDED[operator]
    constants = {f"c{k}": array for k, array in enumerate(arrays)}
    call = helper.make_node(operator, ["x", *constants], ["r"], **attributes)
    then = make_graph([call, helper.make_node("Cast", ["r"], ["y"], to=1)], {}, ["y"])
    other = make_graph([helper.make_node("Identity", ["x"], ["y"])], {}, ["y"])
    choice = helper.make_node("If", ["c"], ["z"], then_branch=then, else_branch=other)
    inputs = {"x": WAVE, "c": np.array(True)}
    proto = simple_model([choice], inputs, ["z"], constants, 17)
    proto.graph.input[0].type.tensor_type.ClearField("shape")
    return proto


@pytest.mark.filterwarnings("ignore::pyrnnx.SlowRuntimeWarning")
@pytest.mark.parametrize("operator", GUARDED)
def test_first_inputs_of_other_ranks(operator: str) -> None:
    assert GUARDED.keys() == FIRST_INPUTS.keys()
    proto = axes_model(operator)
    model, go = read_model(proto), np.array(True)
    assert {row[0] for row in model.plan.rows()} == {"ONNX Runtime"}
    waves = WAVE.reshape(1, 24, 1) if operator == "STFT" else WAVE.reshape(6, 4)[:2]
    for x in (waves, waves[:, ::-1]):
        z = model(x, go)["z"]
        if operator == "Multinomial":  # random
            assert z.shape == (2, 3)
            continue
        results: Any = ReferenceEvaluator(proto).run(None, {"x": x, "c": go})
        np.testing.assert_allclose(z, results[0], atol=1e-5)
    bad = [WAVE, WAVE[:1]]
    if operator == "Multinomial":  # ONNX Runtime would read a third axis as values of the second
        bad.append(WAVE.reshape(2, 3, 4))
    for x in bad:
        with pytest.raises(PyrnnxError, match=operator):
            model(x, go)
    assert model(waves, go)["z"].size
