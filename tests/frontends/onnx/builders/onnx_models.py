"""Small ONNX models, made for tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from pyrnnx.testing.cases import OUTPUTS, Case, make_arrays
from pyrnnx.testing.numbers import Array
from pyrnnx.testing.onnx_models import make_node


def value_info(name: str, array: Array, shape: Sequence[int | str | None] | None = None) -> onnx.ValueInfoProto:
    element = helper.np_dtype_to_tensor_dtype(array.dtype)
    return helper.make_tensor_value_info(name, element, array.shape if shape is None else shape)


def make_graph(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, Array],
    outputs: Sequence[str],
    constants: Mapping[str, Array] | None = None,
) -> onnx.GraphProto:
    """Inputs are declared with the dtypes of the arrays and open shapes, outputs without a type."""
    return helper.make_graph(
        list(nodes),
        "test",
        [value_info(name, array, [None] * array.ndim) for name, array in inputs.items()],
        [onnx.ValueInfoProto(name=name) for name in outputs],
        [numpy_helper.from_array(array, name) for name, array in (constants or {}).items()],
    )


def make_model(graph: onnx.GraphProto, opset: int = 17, *, ir_version: int = 8, **others: Any) -> onnx.ModelProto:
    """`others`: versions of further domains as domains={...}, functions=[...]."""
    opsets = {"": opset, **others.get("domains", {})}
    return helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid(domain, version) for domain, version in opsets.items()],
        functions=others.get("functions", []),
        ir_version=ir_version,
    )


def simple_model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, Array],
    outputs: Sequence[str],
    constants: Mapping[str, Array] | None = None,
    opset: int = 17,
    **others: Any,
) -> onnx.ModelProto:
    return make_model(make_graph(nodes, inputs, outputs, constants), opset, **others)


SOUND_INPUT = np.ones((2, 3), np.float32)


def sound() -> onnx.ModelProto:
    """Return a model of two nodes and a weight, to be broken at one point."""
    nodes = [
        helper.make_node("Neg", ["x"], ["u"], name="first"),
        helper.make_node("Add", ["u", "a"], ["y"], name="second"),
    ]
    return simple_model(nodes, {"x": SOUND_INPUT}, ["y"], {"a": SOUND_INPUT * 2})


# Models with recurrent nodes
GRU = Case("gru of a model", "GRU", {"direction": "bidirectional"}, ("B", "initial_h"), (4, 2, 0), I=3, H=5)
LSTM = Case("lstm of a model", "LSTM", {}, ("B", "initial_h", "initial_c"), I=5, H=5)


def case_model(case: Case, constant: Sequence[str] = ("W", "R", "B", "P")) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """The case as a model, and its inputs: all but the constants."""
    arrays = make_arrays(case)
    given = {name: array for name, array in arrays.items() if name not in constant}
    constants = {name: array for name, array in arrays.items() if name in constant}
    model = simple_model([make_node(case, arrays)], given, OUTPUTS[case.operator], constants, case.opset)
    return model, given


def weights_of(case: Case, prefix: str = "", seed: int = 0) -> dict[str, Any]:
    return {f"{prefix}{n}": a for n, a in make_arrays(case, seed=seed).items() if n in ("W", "R", "B")}


def lstm_node(prefix: str, outputs: Sequence[str], X: str = "X", name: str = "") -> onnx.NodeProto:
    return helper.make_node(
        "LSTM", [X, f"{prefix}W", f"{prefix}R", f"{prefix}B"], outputs, name=name, hidden_size=LSTM.H
    )


def branches() -> tuple[onnx.ModelProto, dict[str, Array]]:
    """An If whose branches have an LSTM of the same name: weights from outside in one, from inside in the other."""
    inside = make_graph([lstm_node("i", ["h"], name="lstm")], {}, ["h"], weights_of(LSTM, "i", 1))
    outside = make_graph([lstm_node("o", ["h"], name="lstm")], {}, ["h"])
    nodes = [
        helper.make_node("If", ["c"], ["Y"], then_branch=inside, else_branch=outside, name="choice"),
        lstm_node("o", ["Z"], name="own"),
        lstm_node("o", ["V"]),
    ]
    given = {"X": make_arrays(LSTM)["X"], "c": np.array(True)}
    return simple_model(nodes, given, ["Y", "Z"], weights_of(LSTM, "o", 2)), given
