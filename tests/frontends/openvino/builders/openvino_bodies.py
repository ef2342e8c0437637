"""Models with bodies, made by OpenVINO's Python API: loops around cells and other operations, choices, nested ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from layers import random_weights
from openvino_irs import Array, rng_of

from pyrnnx import OPENVINO_CELL, RecurrentOp
from pyrnnx.operator.op import CellName

openvino = pytest.importorskip("openvino")
ops = pytest.importorskip("openvino.opset13")

T, N, I, H = 6, 3, 4, 5
Model = tuple[Any, list[Array]]


def const(values: Any, dtype: Any = np.int64) -> Any:
    return ops.constant(np.asarray(values, dtype))


def parameter(shape: Sequence[int], dtype: Any = np.float32) -> Any:
    return ops.parameter(list(shape), dtype)


def result(node: Any) -> Any:
    return ops.result(node.output(0) if hasattr(node, "output") else node)


def cell(
    kind: CellName, x: Any, states: Sequence[Any], *, size: int = I, seed: str = "", constant: Any = None
) -> list[Any]:
    """The states that a cell of constant weights makes; `constant` turns an array into a node."""
    W, R, B = map(
        constant or (lambda a: const(a, np.float32)),
        random_weights(RecurrentOp(kind, H), size, convention=OPENVINO_CELL, seed=f"{kind}{seed}").values(),
    )
    make = {"RNN": ops.rnn_cell, "GRU": ops.gru_cell, "LSTM": ops.lstm_cell}[kind]
    activations = [["tanh"], [], []] if kind == "RNN" else []  # which it has no defaults for
    return list(make(x, *states, W, R, B, H, *activations).outputs())


def squeezed(x: Any, axis: int, *, reshape: bool = False) -> Any:
    return ops.reshape(x, const([N, I]), False) if reshape else ops.squeeze(x, const([axis]))


def looped(
    kind: CellName, *, reverse: bool = False, axis: int = 1, reshape: bool = False, dynamic: bool = False
) -> Model:
    """A TensorIterator whose body is one cell over a slice."""
    count = 2 if kind == "LSTM" else 1
    rng = rng_of(f"looped {kind}")
    shape = [T, N] if axis == 0 else [N, T]
    X = parameter([-1, -1, I] if dynamic else [*shape, I])
    firsts = [parameter([-1, H] if dynamic else [N, H]) for _ in range(count)]
    part = [1, N, I] if axis == 0 else [N, 1, I]
    if dynamic:
        part = [-1 if size == N else size for size in part]
    x, states = parameter(part), [parameter([-1, H] if dynamic else [N, H]) for _ in range(count)]
    new = cell(kind, squeezed(x, axis, reshape=reshape), states)
    after = [result(one) for one in new]
    if reshape:
        row = result(ops.reshape(new[0], const([1, N, H] if axis == 0 else [N, 1, H]), False))
    else:
        row = result(ops.unsqueeze(new[0], const([axis])))
    loop = ops.tensor_iterator()
    loop.set_body(openvino.Model([*after, row], [x, *states], "body"))
    ends = (-1, -1, 1, 0) if reverse else (0, 1, 1, -1)
    loop.set_sliced_input(x, X.output(0), *ends, axis)
    for one, first, then in zip(states, firsts, after, strict=True):
        loop.set_merged_input(one, first.output(0), then.output(0))
    outputs = [loop.get_concatenated_slices(row.output(0), *ends, axis)]
    outputs += [loop.get_iter_value(one.output(0), -1) for one in after]
    loop.set_friendly_name("loop")
    arrays = [rng.uniform(-1, 1, size).astype(np.float32) for size in ([*shape, I], *[[N, H]] * count)]
    return openvino.Model([ops.result(one) for one in outputs], [X, *firsts], "looped"), arrays


def iterated(kind: CellName = "GRU", *, reverse: bool = False) -> Model:
    """A TensorIterator over two inputs: a sum over their slices goes to a cell, whose output is doubled.

    A second back edge adds up; an invariant scales; the last value of one thing that is not fed back is an output.
    """
    rng = rng_of(f"iterated {kind}")
    X, Z, h0, total, scale = (parameter(size) for size in ([T, N, I], [N, 4, T], [N, H], [1], [1]))
    x, z, h, t, s = (parameter(size) for size in ([1, N, I], [N, 4, 1], [N, H], [1], [1]))
    mixed = ops.add(ops.reduce_sum(x, const([0])), ops.reduce_sum(z, const([2])))
    (new,) = cell(kind, ops.multiply(mixed, s), [h])
    added = ops.add(t, ops.reduce_sum(new, const([0, 1])))
    after, total_after = result(new), result(added)
    rows = result(ops.unsqueeze(new, const([1])))
    last = result(ops.multiply(new, const(2, np.float32)))
    loop = ops.tensor_iterator()
    loop.set_body(openvino.Model([after, total_after, rows, last], [x, z, h, t, s], "body"))
    ends = (-1, -1, 1, 0) if reverse else (0, 1, 1, -1)
    loop.set_sliced_input(x, X.output(0), *ends, 0)
    loop.set_sliced_input(z, Z.output(0), 0, 1, 1, -1, 2)
    loop.set_merged_input(h, h0.output(0), after.output(0))
    loop.set_merged_input(t, total.output(0), total_after.output(0))
    loop.set_invariant_input(s, scale.output(0))
    outputs = [
        loop.get_concatenated_slices(rows.output(0), *ends, 1),
        loop.get_iter_value(after.output(0), -1),
        loop.get_iter_value(total_after.output(0), -1),
        loop.get_iter_value(last.output(0), -1),
    ]
    arrays = [rng.uniform(-1, 1, one.get_shape()).astype(np.float32) for one in (X, Z, h0, total, scale)]
    return openvino.Model([ops.result(one) for one in outputs], [X, Z, h0, total, scale], "iterated"), arrays


def counted(
    *, trips: Any = 4, most: float = np.inf, computed: bool = False, first: bool = True, sliced: int = 0
) -> Model:
    """A Loop around a cell: it takes the row of X that its number tells, and goes on while a sum is below `most`.

    `computed`: the number of iterations is an input; `sliced`: X is sliced instead, 1 forward, -1 backward.
    """
    rng = rng_of("counted")
    X, h0 = parameter([N, T, I]), parameter([N, H])
    inputs, arrays = [X, h0], [rng.uniform(-1, 1, size).astype(np.float32) for size in ([N, T, I], [N, H])]
    limit = const(trips)
    if computed:
        limit = parameter([], np.int64)
        inputs.append(limit)
        arrays.append(np.array(trips))
    step, h, t = parameter([], np.int64), parameter([N, H]), parameter([1])
    x = parameter([N, 1, I] if sliced else [N, T, I])
    row = ops.squeeze(x, const([1])) if sliced else ops.gather(x, step, const(1))
    (new,) = cell("GRU", row, [h])
    total = ops.add(t, ops.convert(ops.unsqueeze(step, const([0])), "f32"))
    condition = result(ops.squeeze(ops.less(total, const([most], np.float32)), const([0])))
    after, total_after, rows = result(new), result(total), result(ops.unsqueeze(new, const([1])))
    loop = ops.loop(limit, const(first, np.bool_))
    loop.set_function(openvino.Model([condition, after, total_after, rows], [step, x, h, t], "body"))
    loop.set_special_body_ports([0, 0])
    if sliced:
        loop.set_sliced_input(x, X.output(0), *((-1, -1, 1, 0) if sliced < 0 else (0, 1, 1, -1)), 1)
    else:
        loop.set_invariant_input(x, X.output(0))
    loop.set_merged_input(h, h0.output(0), after.output(0))
    loop.set_merged_input(t, const([0], np.float32).output(0), total_after.output(0))
    outputs = [
        loop.get_iter_value(after.output(0), -1),
        loop.get_concatenated_slices(rows.output(0), 0, 1, 1, -1, 1),
        loop.get_iter_value(total_after.output(0), -1),
    ]
    return openvino.Model([ops.result(one) for one in outputs], inputs, "counted"), arrays


def chosen(make: Callable[[Any, Any], tuple[Any, Any]], condition: bool) -> Model:
    """A choice by an input; `make` gives what each body makes of its own Parameters [N, I] and [N, H]."""
    rng = rng_of("chosen")
    flag, x, h = ops.parameter([1], np.bool_), parameter([N, I]), parameter([N, H])
    own = [(parameter([N, I]), parameter([N, H])) for _ in range(2)]
    results = [result(make(*pair)[k]) for k, pair in enumerate(own)]
    choice = ops.if_op(flag.output(0))
    choice.set_then_body(openvino.Model([results[0]], list(own[0]), "then"))
    choice.set_else_body(openvino.Model([results[1]], list(own[1]), "else"))
    for k, source in enumerate((x, h)):
        choice.set_input(source.output(0), own[0][k], own[1][k])
    choice.set_friendly_name("choice")
    output = choice.set_output(*results)
    arrays: list[Array] = [np.array([condition])]
    arrays += [rng.uniform(-1, 1, size).astype(np.float32) for size in ([N, I], [N, H])]
    return openvino.Model([ops.result(output)], [flag, x, h], "chosen"), arrays


def one_step_then_loop(x: Any, h: Any) -> tuple[Any, Any]:
    """In one body a cell, in the other a Loop of three iterations around one."""
    return cell("GRU", x, [h], seed="then")[0], loop_of_cell(x, h)


def loop_of_cell(x: Any, h: Any) -> Any:
    row, state = parameter([N, I]), parameter([N, H])
    (new,) = cell("GRU", row, [state], seed="else")
    after, condition = result(new), result(const(True, np.bool_))
    loop = ops.loop(const(3), const(True, np.bool_))
    loop.set_function(openvino.Model([condition, after], [row, state], "body"))
    loop.set_special_body_ports([-1, 0])
    loop.set_invariant_input(row, x.output(0))
    loop.set_merged_input(state, h.output(0), after.output(0))
    return loop.get_iter_value(after.output(0), -1)
