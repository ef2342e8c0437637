"""Segments of a bound plan that NumPy does without a session: the same bits, and fewer calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx_models import LSTM, make_graph, simple_model, weights_of

from pyrnnx.frontends.onnx import Model, read_model
from pyrnnx.frontends.onnx.runtime.bound import Action, Bound, _Branch
from pyrnnx.testing.numbers import Array

pytest.importorskip("onnxruntime")
node = helper.make_node
INT64, FLOAT, BOOL, INT32 = (onnx.TensorProto.INT64, onnx.TensorProto.FLOAT, onnx.TensorProto.BOOL, 6)


def drawn(seed: int) -> dict[str, Array]:
    """x, a float; i, an integer of one element; b, a truth value."""
    rng = np.random.default_rng(seed)
    return {
        "x": rng.uniform(-1, 1, (2, 1, 3)).astype(np.float32),
        "i": np.array(seed % 3),
        "b": np.array(seed % 2 == 1),
    }


def constants(**values: Any) -> dict[str, Array]:
    return {name: np.asarray(value) for name, value in values.items()}


def sessions(actions: Sequence[Action]) -> int:
    """How many sessions are called, those of the branches that are taken among them."""
    found = 0
    for run, _, _ in actions:
        found += getattr(run, "__name__", "") == "run_with_iobinding"
        found += sessions(run._actions) if isinstance(run, _Branch) else 0
    return found


def bound(model: Model) -> Bound:
    assert model.plan._bounds  # else the tests would look at nothing
    return model.plan._bounds[0]


Nodes = list[onnx.NodeProto]
BRANCHES = {
    "then_branch": make_graph([node("Squeeze", ["x", "one"], ["p"])], {}, ["p"]),
    "else_branch": make_graph([node("Transpose", ["x"], ["q"])], {}, ["q"]),
}
# Nodes that give y, and their constants.
VIEWED: dict[str, tuple[Nodes, dict[str, Array]]] = {
    "Identity": ([node("Identity", ["x"], ["y"])], {}),
    "Squeeze": ([node("Squeeze", ["x", "one"], ["y"])], constants(one=[1])),
    "Squeeze of all": ([node("Squeeze", ["x"], ["y"])], {}),
    "Unsqueeze": ([node("Unsqueeze", ["x", "axes"], ["y"])], constants(axes=[0, -1])),
    "Reshape": ([node("Reshape", ["x", "shape"], ["y"])], constants(shape=[0, -1])),
    "Flatten": ([node("Flatten", ["x"], ["y"], axis=-1)], {}),
    "Flatten to one row": ([node("Flatten", ["x"], ["y"], axis=0)], {}),
    "Transpose": ([node("Transpose", ["x"], ["y"], perm=[2, 0, 1])], {}),
    "Transpose, reversed": ([node("Transpose", ["x"], ["y"])], {}),
    "Gather of one place": ([node("Gather", ["x", "k"], ["y"])], constants(k=1)),
    "Gather, an axis stays": ([node("Gather", ["x", "k"], ["y"], axis=-1)], constants(k=[[-2]])),
    "Slice": (
        [node("Slice", ["x", "s", "e", "a", "t"], ["y"])],
        constants(s=[-1, 0], e=[-(2**63), 2**63 - 1], a=[0, -1], t=[-1, 2]),
    ),
    "Slice of the first axes": ([node("Slice", ["x", "s", "e"], ["y"])], constants(s=[1], e=[9])),
    "Split": ([node("Split", ["x", "s"], ["a", "y"], axis=2)], constants(s=[1, 2])),
    "Cast to the same": ([node("Cast", ["x"], ["y"], to=FLOAT)], {}),
    "Shape": ([node("Shape", ["x"], ["y"])], {}),
    "Shape, a part": ([node("Shape", ["x"], ["y"], start=-2, end=-1)], {}),
    "Size": ([node("Size", ["x"], ["y"])], {}),
    "Concat": ([node("Squeeze", ["x", "one"], ["a"]), node("Concat", ["a", "a"], ["y"], axis=-1)], constants(one=[1])),
    "ConstantOfShape": (
        [
            node("Shape", ["x"], ["s"]),
            node("ConstantOfShape", ["s"], ["y"], value=helper.make_tensor("v", FLOAT, [1], [-0.0])),
        ],
        {},
    ),
    "Equal": ([node("Equal", ["i", "two"], ["y"])], constants(two=2)),
    "Less, Not": ([node("Less", ["i", "two"], ["a"]), node("Not", ["a"], ["y"])], constants(two=2)),
    "And, Or": ([node("And", ["b", "c"], ["a"]), node("Or", ["a", "b"], ["y"])], constants(c=[True, False])),
    "Add, Mul, Sub": (
        [node("Add", ["i", "k"], ["a"]), node("Mul", ["a", "k"], ["m"]), node("Sub", ["m", "i"], ["y"])],
        constants(k=[2**62, 3]),
    ),
    "Cast of integers": ([node("Cast", ["i"], ["a"], to=INT32), node("Cast", ["a"], ["y"], to=BOOL)], {}),
    "If by a shape": (
        [
            node("Shape", ["x"], ["s"]),
            node("Gather", ["s", "k"], ["n"]),
            node("Equal", ["n", "k"], ["c"]),
            node("If", ["c"], ["y"], **BRANCHES),
        ],
        constants(k=1, one=[1]),
    ),
}


def check(model: Model, fresh: Model, seeds: Sequence[int]) -> None:
    """The bits of a call without buffers, for which the other model is called with shapes that it has not had."""
    for seed in seeds:
        given = drawn(seed)
        fresh.plan._bounds.clear()
        wanted = fresh(given)
        for name, array in model(given).items():
            assert array.dtype == wanted[name].dtype
            assert array.shape == wanted[name].shape
            assert array.tobytes() == wanted[name].tobytes()


@pytest.mark.parametrize("name", VIEWED)
def test_segments_without_a_session(name: str) -> None:
    nodes, values = VIEWED[name]
    proto = simple_model(nodes, drawn(0), ["y"], values)
    model, slow = read_model(proto), read_model(proto, runtime="reference")
    check(model, slow, range(9))
    assert sessions(bound(model)._actions) == 0


LEFT: dict[str, tuple[Nodes, dict[str, Array]]] = {
    "floating-point numbers": ([node("Add", ["x", "x"], ["y"])], {}),
    "one that is computed": ([node("Identity", ["x"], ["a"]), node("Neg", ["a"], ["y"])], {}),
    "an index that is given": ([node("Gather", ["x", "i"], ["y"], axis=2)], {}),
    "a branch that is given": ([node("If", ["b"], ["y"], **BRANCHES)], constants(one=[1])),
    "floating-point numbers become integers": ([node("Cast", ["x"], ["y"], to=INT64)], {}),
    "a table": ([node("Expand", ["i", "s"], ["a"]), node("Not", ["b"], ["y"])], constants(s=[3])),
    "much": ([node("Add", ["i", "many"], ["y"])], {"many": np.arange(2000)}),
    "many": (
        [node("Add", [f"{k}" if k else "i", "k"], [f"{k + 1}" if k < 5 else "y"]) for k in range(6)],
        constants(k=1),
    ),
}


@pytest.mark.parametrize("name", LEFT)
def test_segments_for_a_session(name: str) -> None:
    nodes, values = LEFT[name]
    proto = simple_model(nodes, drawn(0), ["y"], values)
    model, slow = read_model(proto), read_model(proto, runtime="reference")
    check(model, slow, range(9))
    if model.plan._bounds:  # those of results whose shape changes have none
        assert sessions(bound(model)._actions) == (name != "a table")


def choice(condition: Nodes, **values: Any) -> onnx.ModelProto:
    """If c, an LSTM of tanh(v), else another of -v; v are rows of x, as long as an LSTM takes them."""

    def body(prefix: str, activation: str) -> onnx.GraphProto:
        nodes = [
            node(activation, ["v"], ["a"]),
            node("LSTM", ["a", f"{prefix}W", f"{prefix}R", f"{prefix}B"], ["", "h", "c_n"], hidden_size=LSTM.H),
            node("Squeeze", ["h", "zero"], ["p"]),
        ]
        return make_graph(nodes, {}, ["p", "c_n"], weights_of(LSTM, prefix, len(prefix)))

    nodes = [
        *condition,
        node("Concat", ["x", "x"], ["twice"], axis=2),
        node("Slice", ["twice", "from", "to", "axis"], ["v"]),
        node("If", ["c"], ["p", "q"], then_branch=body("t", "Tanh"), else_branch=body("ee", "Neg"), name="choice"),
        node("Abs", ["p"], ["y"]),
        node("Unsqueeze", ["q", "zero"], ["z"]),
    ]
    sizes = {"from": np.array([0]), "to": np.array([LSTM.I])}
    return simple_model(nodes, drawn(0), ["y", "z"], constants(axis=[2], zero=[0], **values) | sizes)


def test_a_branch_that_a_shape_chooses_runs_in_the_buffers_of_the_graph() -> None:
    condition = [node("Shape", ["x"], ["d"]), node("Gather", ["d", "one"], ["g"]), node("Equal", ["g", "one"], ["c"])]
    proto = choice(condition, one=1)
    model = read_model(proto)
    check(model, read_model(proto), range(9))
    actions = bound(model)._actions
    assert not any(isinstance(run, _Branch) for run, _, _ in actions)
    assert sessions(actions) == 2  # Tanh, Abs


def test_a_branch_that_values_choose() -> None:
    proto = choice([node("Equal", ["i", "one"], ["c"])], one=1)
    model, fresh = read_model(proto), read_model(proto)
    check(model, fresh, [1, 4, 7, 10, 0, 1, 2, 4, 7, 3, 5, 0, 0, 0, 1, 1])
    (branch,) = (run for run, _, _ in bound(model)._actions if isinstance(run, _Branch))
    assert sessions(branch._actions) == 1
