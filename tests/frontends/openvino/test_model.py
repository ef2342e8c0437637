"""Whole IRs: names of inputs and outputs, recurrent layers with their constants, calls, intermediate values."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import openvino_nets as nets
import pytest
from openvino_nets import Array, edges, layer, net, parameter, result

from pyrnnx import Interval, PyrnnxError, TensorInfo
from pyrnnx.frontends.openvino import BoundLayer, IRLayer, lstm_sequence, read_model

XML, BIN = nets.lstm_net()


def expected(arrays: dict[str, Array]) -> tuple[Array, ...]:
    X, *others = arrays.values()
    return lstm_sequence(np.maximum(X, 0), *others, *nets.weights().values())


def test_inputs_and_outputs() -> None:
    model = read_model(XML, BIN)
    assert model.label == "IR 'small'"
    assert model.inputs == (
        TensorInfo("X", "float32", (Interval(1, 8), None, 4)),
        TensorInfo("H", "float32", (None, 1, 6)),
        TensorInfo("C", "float32", (None, 1, 6)),
        TensorInfo("lengths", "int32", (None,)),
    )
    assert [(info.name, info.dtype, info.shape) for info in model.outputs] == [
        ("Y", "float32", (None, 1, None, 6)),
        ("Ho", "float32", (None, 1, 6)),
        ("Co", "float32", (None, 1, 6)),
    ]
    assert repr(model) == "<Model IR 'small': (X, H, C, lengths) -> (Y, Ho, Co)>"


def test_layers_are_bound_to_their_constants() -> None:
    model = read_model(XML, BIN)
    assert list(model.layers) == ["lstm"]
    bound = model.layers["lstm"]
    assert isinstance(bound, BoundLayer)
    assert (bound.name, bound.label) == ("lstm", "LSTMSequence 'lstm' (id 8)")
    assert model.layers["lstm"] is bound
    assert repr(model.layers) == "<layers 'lstm'>"
    for name, array in nets.weights().items():
        np.testing.assert_array_equal(bound.weights[name], array)
    again = pickle.loads(pickle.dumps(bound))
    arrays = nets.lstm_inputs()
    np.testing.assert_array_equal(again(*arrays.values())[0], bound(*arrays.values())[0])


def test_layers_with_the_same_name_and_without_one() -> None:
    data, cell = {"hidden_size": 1}, [("FP32", (2, 1))] * 2 + [("FP32", (1, 1))] * 2 + [("FP32", (1,))]
    shapes = [(2, 1), (2, 1), (1, 1), (1, 1), (1,)]
    parameters = [parameter(k, f"p{k}", ",".join(map(str, dims)), dims) for k, dims in enumerate(shapes)]
    names = ["a", "", "a", "b", ""]
    cells = [layer(10 + k, name, "RNNCell", data, cell, [("FP32", (2, 1))]) for k, name in enumerate(names)]
    text = net(parameters + cells, edges(*(f"{p}.0 {10 + k}.{p}" for k in range(5) for p in range(5))))
    model = read_model(text)
    assert list(model.layers) == ["a (id 10)", "RNNCell (id 11)", "a (id 12)", "b", "RNNCell (id 14)"]
    assert [layer.id for layer in model.layers.values() if isinstance(layer, IRLayer)] == ["10", "11", "12", "13", "14"]


def test_call() -> None:
    pytest.importorskip("onnx")
    model = read_model(XML, BIN)
    arrays = nets.lstm_inputs()
    wanted = expected(arrays)
    for outputs in (model(*arrays.values()), model(arrays), model(dict(reversed(arrays.items())))):
        assert list(outputs) == ["Y", "Ho", "Co"]
        for a, w in zip(outputs.values(), wanted, strict=True):
            np.testing.assert_array_equal(a, w, strict=True)


def test_values_by_name() -> None:
    pytest.importorskip("onnx")
    model = read_model(XML, BIN)
    arrays = nets.lstm_inputs()
    Y, Ho, _ = expected(arrays)
    wanted = {
        "Ho": Ho,  # an output
        "x": np.maximum(arrays["X"], 0),  # a tensor
        "relu": np.maximum(arrays["X"], 0),  # a layer
        "lstm.0": Y,  # an output of a layer with several
        "Y/sink_port_0": Y,  # a Result
        "W": nets.weights()["W"],  # a constant
        "H": arrays["H"],  # an input
    }
    wanted = {name: array.copy() for name, array in wanted.items()}
    for _ in range(2):
        outputs = model(arrays, outputs=list(wanted))
        assert list(outputs) == list(wanted)
        for name, array in wanted.items():
            np.testing.assert_array_equal(outputs[name], array, strict=True, err_msg=name)
        for one, other in combinations([*outputs.values(), *arrays.values()], 2):
            assert not np.shares_memory(one, other)  # also of one value under two of its names
        for array in outputs.values():
            array[...] = 99
    assert list(model(arrays, outputs=["W"])) == ["W"]


def test_values_that_no_output_depends_on() -> None:
    pytest.importorskip("onnx")
    shape = ("FP32", (-1, -1, 4))
    unknown = layer(21, "what", "Whatever", None, [shape], [("NEW", (-1,))], "extension")
    text = XML.replace("</layers>", unknown + "</layers>").replace("</edges>", edges("7.1 21.0") + "</edges>")
    arrays = nets.lstm_inputs()
    with pytest.raises(PyrnnxError, match=r"'what' cannot be computed: no output depends on Whatever 'what' \(id 21\)"):
        read_model(text, BIN)(arrays, outputs=["what"])
    text = text.replace("</layers>", result(22, "unused", (-1,), "NEW") + "</layers>")
    model = read_model(text.replace("</edges>", edges("21.1 22.0") + "</edges>"), BIN)
    assert (model.outputs[3].name, model.outputs[3].dtype) == ("what", None)
    with pytest.raises(PyrnnxError, match=r"Whatever 'what' \(id 21\): Whatever of extension cannot be run"):
        model(arrays)


def names_of(parameters: Sequence[tuple[str, str]], results: Sequence[tuple[str, str, str]]) -> tuple[Any, Any]:
    """Return the names of parameters (layer, tensors), each with a ReLU (layer, tensors) and a Result."""
    layers, ends = [], []
    for k, ((name, tensors), (relu, tensors_of_relu, sink)) in enumerate(zip(parameters, results, strict=True)):
        layers.append(parameter(f"1{k}", name, "2", (2,), names=tensors))
        layers.append(layer(f"2{k}", relu, "ReLU", None, [("FP32", (2,))], [("FP32", (2,), tensors_of_relu)]))
        layers.append(result(f"3{k}", sink, (2,)))
        ends += [f"1{k}.0 2{k}.0", f"2{k}.1 3{k}.0"]
    model = read_model(net(layers, edges(*ends)))
    return [(info.name, info.aliases) for info in model.inputs], [(info.name, info.aliases) for info in model.outputs]


NAMES: dict[str, Any] = {  # parameters, (layer, tensors, Result), names and aliases of inputs, of outputs
    "of tensors": ([("p", "x")], [("r", "y", "s")], [("x", ("p",))], [("y", ("r", "s"))]),
    "of layers where tensors have none": ([("p", "")], [("r", "", "s")], [("p", ())], [("r", ("s",))]),
    "of a Result as converters write it": ([("p", "")], [("r", "", "out/sink_port_0")], [("p", ())],
        [("out", ("r", "out/sink_port_0"))]),
    "of the layer among several of the tensor": ([("x", "hx,x")], [("r", "a,b,c", "b/sink_port_0")], [("x", ("hx",))],
        [("b", ("a", "c", "r", "b/sink_port_0"))]),
    "the first of several": ([("p", "b,a")], [("r", "d,c", "s")], [("b", ("a", "p"))], [("d", ("c", "r", "s"))]),
    "the same twice": ([("p", "x"), ("q", "x")], [("r", "y", "s"), ("r", "y", "t")], [("x", ("p",)), ("q", ())],
        [("y", ("s",)), ("t", ())]),
    "one that another makes up": ([("x", ""), ("x", ""), ("x.11", "")],
        [("r", "a", "s"), ("q", "b", "t"), ("p", "c", "u")], [("x", ()), ("x.11_", ()), ("x.11", ())],
        [("a", ("r", "s")), ("b", ("q", "t")), ("c", ("p", "u"))]),
    "none at all": ([("", "")], [("", "", "")], [("10", ())], [("30", ())]),
    "with a comma": ([("p", r"a\,b")], [("r", "y", "s")], [("a,b", ("p",))], [("y", ("r", "s"))]),
}  # fmt: skip


@pytest.mark.parametrize(("parameters", "results", "inputs", "outputs"), NAMES.values(), ids=NAMES)
def test_names(parameters: Any, results: Any, inputs: Any, outputs: Any) -> None:
    assert names_of(parameters, results) == (inputs, outputs)


def test_plan() -> None:
    rows = read_model(XML, BIN).plan.rows()
    assert {runner for runner, _, _ in rows} == {"ONNX Runtime", "pyrnnx"}
    assert ["LSTMSequence 'lstm'" in what for runner, what, _ in rows if runner == "pyrnnx"] == [True]
