"""Layers in graphs as exporters write them are found; neighbours, which run other steps, give the same numbers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

pytest.importorskip("onnxruntime")

from exporter_graphs import (
    ENDLESS,
    LARGEST,
    LOOP,
    OPEN,
    H,
    I,
    jax,
    tf2onnx,
    tf2onnx_lstm,
    torch,
    torch_masked,
    torch_one_step,
)
from hidden_layers import TOLERANCE, inputs_of
from hidden_layers import check as compared
from rows import each_row, few_rows
from whole_models import check_calls, onnxruntime_witness

from pyrnnx import PyrnnxError
from pyrnnx.frontends.onnx import read_model
from pyrnnx.frontends.openvino import read_model as read_ir


def check(proto: onnx.ModelProto) -> Any:
    return compared(proto, inputs_of(proto), inputs_of(proto, rows=3), inputs_of(proto, rows=1, steps=9))


EXPORTS = {
    **{f"tf2onnx {kind}": (kind, tf2onnx(kind)) for kind in ("RNN", "GRU")},
    **{f"tf2onnx {kind}, open": (kind, tf2onnx(kind, OPEN)) for kind in ("RNN", "GRU")},
    **{
        f"tf2onnx {kind}, {name}": (kind.split()[0], tf2onnx(kind, parts))
        for kind in ("RNN", "GRU", "GRU before")
        for name, parts in {
            "ended by a condition": LOOP | ENDLESS,
            "ended by a condition, open": OPEN | ENDLESS,
            "of the largest number": LOOP | LARGEST,
            "of the largest number, open": OPEN | LARGEST,
        }.items()
    },
    "tf2onnx LSTM of one row": ("LSTM", tf2onnx_lstm()),
    **{f"jax {kind}": (kind, jax(kind)) for kind in ("RNN", "LSTM")},
    "torch LSTM": ("LSTM", torch()),
    "jax, deeper than the forms of values": ("RNN", jax("RNN", 50)),
}


FEW = [name for name in EXPORTS if "GRU" not in name or name.endswith("condition")]


@few_rows("name", FEW, [name for name in EXPORTS if name not in FEW])
def test_exports_have_layers(name: str) -> None:
    kind, proto = EXPORTS[name]
    model = check(proto)
    assert [layer.op.cell for layer in model.layers.values()] == [kind], model.layers.why_none
    operators = {node.op_type for node in model._with_layers().proto.graph.node}
    assert operators.isdisjoint({"MatMul", "Loop", "Sigmoid", "Tanh"}), operators


@each_row(("kind", "make"), [("LSTM", torch), ("RNN", partial(jax, "RNN"))], str)
def test_irs_with_an_open_batch_have_layers(kind: str, make: Callable[[], onnx.ModelProto], tmp_path: Path) -> None:
    openvino = pytest.importorskip("openvino")
    proto = make()
    onnx.save(proto, tmp_path / "m.onnx")
    openvino.save_model(openvino.convert_model(tmp_path / "m.onnx"), tmp_path / "m.xml", compress_to_fp16=False)
    model = read_ir(tmp_path / "m.xml")
    assert [layer.op.cell for layer in model.layers.values()] == [kind], model.layers.why_none
    others = [inputs_of(proto, rows=3), inputs_of(proto, rows=1)]
    check_calls(model, onnxruntime_witness(proto), inputs_of(proto), *others, atol=TOLERANCE)


# Loops whose condition, counter or limit is nearly that of an export.
FROM_I = {"index": "i"}
EIGHT_BITS = {
    "one": "int8 one = {1}, int8 start = {0}",
    "counter": "int8",
    "index": "k_32",
    "next": "k_next = Add(k, one) k_32 = Cast<to = 6>(k)",
}
MANY = {"T": "130", "steps": "130"}  # more than eight bits count
OF_Z = (
    "two = Constant<value = int64[1] {2}>() z = Shape(Z) z_1 = Slice(z, second, two, first) z_0 = Squeeze(z_1, first)"
)
NEIGHBOURS: dict[str, dict[str, str]] = {
    "limit below": LOOP
    | {"below_k": "k_f = Cast<to = 1>(k_next) l = Constant<value = float {4}>() below = Less(k_f, l)"},
    "limit below, of integers": LOOP | {"below_k": "l = Constant<value = int32 {4}>() below = Less(k_next, l)"},
    "limit between": LOOP
    | {"below_k": "k_f = Cast<to = 1>(k_next) l = Constant<value = float {3.5}>() below = Less(k_f, l)"},
    "limit that is no number": LOOP
    | {"below_k": "k_f = Cast<to = 1>(k_next) o = Sub(one_f, one_f) l = Div(o, o) below = Less(k_f, l)"},
    "limit of another input": OPEN
    | {"below_k": f"{OF_Z} k_f = Cast<to = 1>(k_next) l = Cast<to = 1>(z_0) below = Less(k_f, l)"},
    "two steps at a time": LOOP | FROM_I | {"one": "int32 one = {2}, int32 start = {0}"},
    "starts at one": LOOP | FROM_I | {"one": "int32 one = {1}, int32 start = {1}"},
    "starts below zero": OPEN | FROM_I | {"one": "int32 one = {1}, int32 start = {-1}"},
    "counts down": LOOP | FROM_I | {"one": "int32 one = {-1}, int32 start = {0}"},
    "half more than the iteration": LOOP
    | {"next": "k_next = Add(k, one) more = Constant<value = float {1.5}>()"}
    | {"below_i": "j = Cast<to = 1>(i) i_f = Add(j, more) first_below = Less(i_f, steps_f)"},
    "counter of one bit": OPEN
    | {"below_k": "b_ = Cast<to = 9>(k_next) k_f = Cast<to = 1>(b_) l = Cast<to = 1>(steps_in) below = Less(k_f, l)"},
    "limit of one bit": OPEN
    | {"below_k": "k_f = Cast<to = 1>(k_next) b_ = Cast<to = 9>(steps_in) l = Cast<to = 1>(b_) below = Less(k_f, l)"},
    "number of iterations of one bit": OPEN
    | {
        "before": OPEN["before"].replace(
            "count = Cast<to = 7>(steps)", "b_ = Cast<to = 9>(steps) count = Cast<to = 7>(b_)"
        )
    },
    "state of eight bits": LOOP | MANY | EIGHT_BITS,
    "rounded to half precision, open": OPEN
    | {"below_k": "h_k = Cast<to = 10>(k_next) h_s = Cast<to = 10>(steps_in) below = Less(h_k, h_s)"},
    "either condition": LOOP | {"go": "go = Or(first_below, below)"},
    "not below": LOOP | {"go": "other = Not(below) go = And(first_below, other)"},
    "limit less than counter": LOOP | {"below_k": "k_f = Cast<to = 1>(k_next) below = Less(steps_f, k_f)"},
    "condition of the state": LOOP | {"go": "size = ReduceSum<keepdims = 0>(new) go = Less(size, none)"},
    "false at first": LOOP | {"before": "at_first = Less(steps_f, none)"},
    "false at first, open": OPEN
    | {"before": OPEN["before"].replace("Less(none, steps_open)", "Less(steps_f, steps_open)")},
}
# Neighbours that run each step, so that they may be layers: ONNX Runtime compares half precision in float32.
SAME = ("starts below zero", "rounded to half precision, open")


@each_row("name", NEIGHBOURS)
def test_neighbours_of_loops_run_their_own_steps(name: str) -> None:
    model = check(tf2onnx("RNN", NEIGHBOURS[name]))
    assert name in SAME or not model.layers
    assert model.layers or "the condition of the Loop may end it early" in model.layers.why_none


# Loops that only a condition ends.
CONDITIONS: dict[str, dict[str, str]] = {
    **{name: NEIGHBOURS[name] for name in ("limit below", "limit between", "limit of another input")},
    "limit of no iteration": LOOP
    | {"below_k": "k_f = Cast<to = 1>(k_next) l = Constant<value = float {-1}>() below = Less(k_f, l)"},
    "counter before": LOOP
    | {"below_k": "k_f = Cast<to = 1>(k) l = Constant<value = float {4}>() below = Less(k_f, l)"},
    "condition of the state": LOOP | {"below_k": "size = ReduceSum<keepdims = 0>(new) below = Less(steps_f, size)"},
    "true at first": OPEN | {"before": OPEN["before"].replace("Less(none, steps_open)", "Less(none, one_f)")},
    "counts from one": LOOP | {"one": "int32 one = {1}, int32 start = {1}"},
}


@each_row("name", CONDITIONS)
@pytest.mark.parametrize("endless", [ENDLESS, ENDLESS | LARGEST], ids=["no number", "largest number"])
def test_loops_that_a_condition_ends_run_their_own_steps(name: str, endless: dict[str, str]) -> None:
    model = check(tf2onnx("RNN", CONDITIONS[name] | endless))
    assert len(model.layers) == (name == "limit below")
    assert model.layers or "the Loop" in model.layers.why_none


def test_conditions_and_sizes_on_many_paths() -> None:
    """There are 2**40 paths to the comparisons, and to the size."""
    text = "".join(f" a{k + 1} = And(a{k}, b{k}) b{k + 1} = And(b{k}, a{k + 1})" for k in range(40))
    go = f"a0 = And(first_below, below) b0 = Identity(below) {text} go = Identity(a40)"
    assert len(check(tf2onnx("RNN", OPEN | {"go": go})).layers) == 1
    proto = jax("RNN")
    place = next(k for k, node in enumerate(proto.graph.node) if node.output[0] == "to1")
    proto.graph.node[place].input[1] = "sum40"
    for k in range(40, 0, -1):
        names = [f"sum{k - 1}" if k > 1 else "row1"] * 2
        proto.graph.node.insert(place, onnx.helper.make_node("Add", names, [f"sum{k}"]))
    model = check(proto)
    assert not model.layers or "4 unrolled" not in model.layers[0].origin


@each_row("other", ["Z", "h0", "b"])
def test_steps_that_end_at_the_size_of_another_value(other: str) -> None:
    proto = jax("RNN", other=other)
    model = check(proto)
    assert not model.layers or "4 unrolled" not in model.layers[0].origin or other == "h0"
    if other == "Z":  # a slice that is shorter than X has rows, where names promise more
        inputs = inputs_of(proto, rows=3)
        inputs["Z"] = inputs["Z"][:1]
        check_calls(model, onnxruntime_witness(proto), inputs, atol=TOLERANCE)


@each_row(("make", "why"), [(torch_masked, "a mask keeps the state"), (torch_one_step, "a single time step")])
def test_steps_that_stay_have_a_reason(make: Callable[[], onnx.ModelProto], why: str) -> None:
    model = check(make())
    assert not model.layers
    assert why in model.layers.why_none


def test_state_of_zeros_with_more_rows_than_the_input() -> None:
    """A single row of X meets each row of the zeros."""
    text = jax("RNN", 3)
    for node in text.graph.node:
        if node.output[0] == "shape":
            node.input[0] = "Z"
    model, witness = read_model(text), onnxruntime_witness(text)
    inputs = inputs_of(text, rows=1)
    inputs["Z"] = np.zeros((3, I), np.float32)
    expected = witness(inputs)[0]
    assert expected.shape == (3, H)
    try:
        results = model(inputs)
    except PyrnnxError:
        return
    np.testing.assert_allclose(next(iter(results.values())), expected, rtol=0, atol=TOLERANCE)
