"""The custom operator Recurrent in sessions of ONNX Runtime: bit for bit the results of its layer."""

from __future__ import annotations

import _thread
import gc
import itertools
import os
import signal
import threading
import weakref
from typing import Any

import numpy as np
import pytest
from layers import bfloat16, float16, float32, float64, random_inputs, random_layer
from onnx import TensorProto, helper, numpy_helper
from sessions import FLOAT, layer_session, model, recurrent, session

import pyrnnx
from pyrnnx import ArgumentError, Layer, RecurrentOp, set_batch_invariant
from pyrnnx.layers import custom_operators
from pyrnnx.operator.conventions import ONNX_LAYOUTS
from pyrnnx.operator.op import CELLS

CALL_INPUTS = ("X", "sequence_lens", "initial_h", "initial_c")
ELEMENT_TYPES = {
    float32: FLOAT,
    float64: TensorProto.DOUBLE,
    float16: TensorProto.FLOAT16,
    bfloat16: TensorProto.BFLOAT16,
}


def same(results: Any, expected: Any) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(results, expected, strict=True))


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("dtype", [float32, float64, float16], ids=str)
def test_layers_compute_the_same_bits(cell: Any, dtype: Any) -> None:
    """Every direction, layout and choice of inputs of an LSTM, in calls of changing shapes."""
    directions: tuple[Any, ...] = ("forward", "reverse", "bidirectional")
    rows = list(itertools.product(directions, ONNX_LAYOUTS, range(4)))
    for direction, convention, choice in rows if (cell, dtype) == ("LSTM", float32) else rows[::5]:
        layer = random_layer(RecurrentOp(cell, 5, direction), 3, dtype, convention=convention)
        names = [name for k, name in enumerate(CALL_INPUTS) if k == 0 or (choice >> (k > 1)) & 1]
        if not layer.op.has_cell_state:
            names = [name for name in names if name != "initial_c"]
        ran = layer_session(layer, ELEMENT_TYPES[dtype], names, threads=2)
        for call, (T, N) in enumerate(((4, 3), (4, 3), (7, 1), (0, 2), (3, 0), (1, 70), (4, 3))):
            seed = 0 if call in (0, 6) else call
            arrays = random_inputs(layer.op, (T, N, 3), dtype, convention=convention, seed=seed)
            arrays = {name: arrays[name] for name in names}
            row = (direction, convention.name, names, T, N)
            assert same(ran.run(None, arrays), layer(**arrays)), row


def test_outputs_that_nobody_wants() -> None:
    for hidden_size in (5, 1025):  # whose row, of two directions in float64, lies on the stack, or not
        layer = Layer(
            RecurrentOp("LSTM", hidden_size, "bidirectional"),
            *(np.full((2, 4 * hidden_size, size), 1e-3, np.float64) for size in (3, hidden_size)),
        )
        X = random_inputs(layer.op, (2, 1, 3), float64)["X"]
        handle = custom_operators.Handle(layer)
        double = TensorProto.DOUBLE
        ran = session(model([recurrent(handle, ["X"], ["", "", "Y_c"])], [("X", double)], [("Y_c", double)]))
        assert np.array_equal(ran.run(None, {"X": X})[0], layer(X)[2])


def test_constants_of_a_layer() -> None:
    """A call takes them where the node does not give them."""
    op = RecurrentOp("LSTM", 5)
    arrays = random_inputs(op, (4, 3, 3))
    constants = {name: arrays[name] for name in CALL_INPUTS[1:]}
    layer = random_layer(op, 3, constants=constants)
    assert same(layer_session(layer).run(None, {"X": arrays["X"]}), layer(arrays["X"]))
    others = random_inputs(op, (4, 3, 3), seed=1)
    for names in (("X", "sequence_lens"), ("X", "initial_h"), ("X", "initial_c")):
        given = {name: others[name] for name in names}
        assert same(layer_session(layer, names=names).run(None, given), layer(**given)), names
    fixed_lengths = random_layer(op, 3, constants={"sequence_lens": arrays["sequence_lens"]})
    for one in (layer, fixed_lengths):
        for X in (arrays["X"][:, :2], np.concatenate([arrays["X"]] * 2, axis=1)):  # of other rows
            with pytest.raises(Exception, match="expected") as caught:
                layer_session(one).run(None, {"X": X})
            assert isinstance(custom_operators.original_error(caught.value), ArgumentError)


def test_inputs_that_do_not_fit() -> None:
    """Each is an error of ours, in the words of the layer; the session goes on."""
    layer = random_layer(RecurrentOp("LSTM", 5), 3, name="a")
    ran = layer_session(layer, names=CALL_INPUTS)
    good = random_inputs(layer.op, (4, 2, 3))
    for name, bad, message in (
        ("X", good["X"][:, :, :2], r"X has shape \(4, 2, 2\)"),
        ("X", good["X"][0], r"X has shape \(2, 3\)"),
        ("initial_h", good["initial_h"][:, :1], "initial_h has shape"),
        ("initial_c", good["initial_c"][..., :4], "initial_c has shape"),
        ("sequence_lens", np.array([4, 5], np.int32), "sequence_lens"),
        ("sequence_lens", np.array([4, -1], np.int32), "sequence_lens"),
        ("sequence_lens", np.array([4], np.int32), "sequence_lens"),
    ):
        with pytest.raises(Exception, match="LSTM 'a'") as caught:
            ran.run(None, {**good, name: bad})
        original = custom_operators.original_error(caught.value)
        assert isinstance(original, ArgumentError), name
        with pytest.raises(ArgumentError, match=message):
            raise original
        assert custom_operators.original_error(caught.value) is None
        assert same(ran.run(None, good), layer(**good))


def test_states_without_units_are_absent_only_where_the_node_allows() -> None:
    layer = random_layer(RecurrentOp("LSTM", 5), 3)
    names = ("X", "initial_h", "initial_c")
    optional, required = (layer_session(layer, names=names, optional_states=value) for value in (1, 0))
    none = np.zeros((0, 0, 0), np.float32)
    for rows in (2, 1, 3):
        arrays = {name: value for name, value in random_inputs(layer.op, (4, rows, 3)).items() if name in names}
        for absent in ((), ("initial_h",), ("initial_c",), names[1:]):
            given = {**arrays, **dict.fromkeys(absent, none)}
            here = {name: value for name, value in arrays.items() if name not in absent}
            assert same(optional.run(None, given), layer(**here)), absent
            if absent:
                with pytest.raises(Exception, match=f"{absent[0]} has shape"):
                    required.run(None, given)
        with pytest.raises(Exception, match="initial_h has shape"):  # rows, but none of this batch
            optional.run(None, {**arrays, "initial_h": arrays["initial_h"][:, :0]})


def test_handles_live_as_long_as_their_owner_or_a_session() -> None:
    layer = random_layer(RecurrentOp("GRU", 5), 3)
    X, handle, alive = random_inputs(layer.op, (4, 2, 3))["X"], custom_operators.Handle(layer), None
    proto = model([recurrent(handle, ["X"], ["Y"])], [("X", FLOAT)], [("Y", FLOAT)])
    expected, alive = layer(X)[0], weakref.ref(layer)
    ran = session(proto)
    del layer, handle
    gc.collect()
    assert np.array_equal(ran.run(None, {"X": X})[0], expected)
    with pytest.raises(Exception, match="names no layer of this process"):
        session(proto)
    assert alive() is not None
    del ran
    gc.collect()
    assert alive() is None


def test_settings_hold_inside_sessions() -> None:
    """Rows that matrices take are the same bits as in a call of the layer, whatever is set."""
    layer = random_layer(RecurrentOp("LSTM", 64), 32)
    ran, X = layer_session(layer, threads=2), random_inputs(layer.op, (5, 40, 32))["X"]
    for invariant in (False, True):
        set_batch_invariant(invariant)
        assert same(ran.run(None, {"X": X}), layer(X))


def test_an_interrupt_before_the_layer_is_not_lost() -> None:
    """A signal comes while another node of the session runs: the layer that follows hears it."""
    weights = {name: np.full((1, 64, size), 0.01, np.float32) for name, size in (("W", 1), ("R", 64))}
    nodes = [
        helper.make_node("Expand", ["X", "shape"], ["wide"]),
        helper.make_node("Erf", ["wide"], ["errors"]),
        helper.make_node("ReduceMax", ["errors", "axis"], ["largest"], keepdims=1),
        helper.make_node("RNN", ["largest", "W", "R"], ["", "Y_h"], hidden_size=64),
    ]
    tensors = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    tensors.append(numpy_helper.from_array(np.array([1, 60_000, 1]), "shape"))
    tensors.append(numpy_helper.from_array(np.array([1]), "axis"))
    proto = model(nodes, [("X", FLOAT, ["T", 1, 1])], [("Y_h", FLOAT)], tensors)
    ran, timer = pyrnnx.load(proto), threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT))
    ran(np.ones((2, 1, 1), np.float32))

    def interrupted() -> None:
        timer.start()
        while True:
            ran(np.ones((300, 1, 1), np.float32))

    with pytest.raises(KeyboardInterrupt):
        interrupted()


def test_an_interrupt_ends_a_long_call() -> None:
    """The exception of the signal's handler is what the session's error stands for; the session goes on."""
    H = 2048  # a step reads 16 MB of weights
    layer = Layer(RecurrentOp("RNN", H), np.ones((1, H, 1), np.float32), np.zeros((1, H, H), np.float32))
    ran, few = layer_session(layer), np.ones((2, 1, 1), np.float32)
    expected, timer = layer(few), threading.Timer(0.2, _thread.interrupt_main)
    X = np.ones((5000, 1, 1), np.float32)

    def interrupted() -> None:
        timer.start()  # the call that follows takes seconds
        ran.run(None, {"X": X})

    with pytest.raises(Exception, match="KeyboardInterrupt") as caught:  # not the exception itself
        interrupted()
    timer.join()
    assert isinstance(custom_operators.original_error(caught.value), KeyboardInterrupt)
    assert same(ran.run(None, {"X": few}), expected)
