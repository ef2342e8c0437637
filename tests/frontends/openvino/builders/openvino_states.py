"""Stateful models as OpenVINO makes them, and their results over successive inferences of one request."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import openvino_bodies as bodies
import pytest
from openvino_bodies import H, I, N, T, const, ops, parameter
from openvino_irs import Array

openvino = pytest.importorskip("openvino")
transformations = pytest.importorskip("openvino._offline_transformations")


def infer(one: Any, arrays: Sequence[Array]) -> list[Array]:
    results = one.infer(list(arrays))
    return [np.array(results[k]) for k in range(len(results))]


def low_latency(make: Callable[[], bodies.Model], steps: int) -> tuple[Any, list[list[Array]]]:
    """A loop put through LowLatency2, its input cut to pieces of `steps`; its state is the transformation's."""
    model, (X, *rest) = make()
    model.reshape({model.inputs[0]: [N, steps, I]} | {one: [N, H] for one in model.inputs[1:]})
    transformations.apply_low_latency_transformation(model)
    return model, [[X[:, begin : begin + steps], *rest] for begin in range(0, T, steps)]


def made_stateful() -> tuple[Any, list[list[Array]]]:
    """A sequence whose states are an input and an output, by MakeStateful."""
    model, (X, *_) = bodies.looped("LSTM")
    for k, one in enumerate(model.inputs):
        one.get_tensor().set_names({f"in{k}"})
    for k, one in enumerate(model.outputs):
        one.get_tensor().set_names({f"out{k}"})
    transformations.apply_make_stateful_transformation(model, {"in1": "out1", "in2": "out2"})
    return model, [[X * scale] for scale in (1, 0.5, -1)]


def read_and_assign(*, initial: bool, dynamic: bool = False) -> tuple[Any, list[list[Array]]]:
    """A GRU cell with its state in one variable, and a count of inferences in another, of integers."""
    x = parameter([-1 if dynamic else N, I])
    size = openvino.PartialShape([-1 if dynamic else N, H])
    rows = ops.gather(ops.shape_of(x), const([0]), const(0))
    first = [ops.broadcast(const([0.25], np.float32), ops.concat([rows, const([H])], 0))] if initial else []
    h = ops.read_value(*first, "state/h", openvino.Type.f32, size)
    count = ops.read_value("count", openvino.Type.i32, openvino.PartialShape([1]))
    (new,) = bodies.cell("GRU", x, [h])
    after = ops.add(count, const([1], np.int32))
    assigns = [ops.assign(new.get_node(), "state/h"), ops.assign(after, "count")]
    y = ops.multiply(new, ops.convert(after, "f32"))
    model = openvino.Model([ops.result(y), ops.result(count)], assigns, [x], "stateful")
    rng = np.random.default_rng(3)
    return model, [[rng.uniform(-1, 1, (N, I)).astype(np.float32)] for _ in range(3)]


def in_a_body(kind: str, *, initial: float | None) -> Any:
    """A sum that a body keeps: of each step of X [T, N] in a TensorIterator or Loop, or of X[0] in an If."""
    X, x = parameter([T, N]), parameter([N] if kind == "If" else [1, N])
    first = [] if initial is None else [const(np.full(N, initial), np.float32)]
    row = x if kind == "If" else ops.squeeze(x, const([0]))
    total = ops.add(row, ops.read_value(*first, "sum", openvino.Type.f32, openvino.PartialShape([N])))
    sinks, after = [ops.assign(total, "sum")], bodies.result(ops.unsqueeze(total, const([0])))
    if kind == "If":
        on, other = ops.parameter([], np.bool_), parameter([N])
        same = bodies.result(ops.unsqueeze(other, const([0])))
        loop = ops.if_op(on.output(0))
        loop.set_then_body(openvino.Model([after], sinks, [x], "then"))
        loop.set_else_body(openvino.Model([same], [other], "else"))
        loop.set_input(ops.gather(X, const(0), const(0)).output(0), x, other)
        return openvino.Model([ops.result(loop.set_output(after, same))], [X, on], "model")
    if kind == "Loop":
        count = ops.parameter([], np.int32)
        loop = ops.loop(count, const(True, np.bool_))
        condition = bodies.result(const(True, np.bool_))
        loop.set_function(openvino.Model([condition, after], sinks, [x], "body"))
        loop.set_special_body_ports([-1, 0])
    else:
        loop = ops.tensor_iterator()
        loop.set_body(openvino.Model([after], sinks, [x], "body"))
    loop.set_sliced_input(x, X.output(0), 0, 1, 1, -1, 0)
    rows = loop.get_concatenated_slices(after.output(0), 0, 1, 1, -1, 0)
    return openvino.Model([ops.result(rows)], [X, count] if kind == "Loop" else [X], "model")
