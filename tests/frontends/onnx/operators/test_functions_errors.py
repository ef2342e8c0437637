"""Every bad input is a PyrnnxError that names the operator, the argument, what was given and what is allowed."""

from __future__ import annotations

import itertools
import re
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from rows import each_row

import pyrnnx
import pyrnnx.frontends.onnx as frontend
from pyrnnx.reference import DEFAULT_ACTIVATIONS
from pyrnnx.testing.cases import OPERATORS, OPTIONAL, Case, make_arrays
from pyrnnx.testing.numbers import Array

Bad = tuple[str, dict[str, Any], tuple[str, ...]]  # operator, what to change in a good call, words of the message


def good(operator: str) -> dict[str, Any]:
    """All inputs of T=4, N=3, I=2, H=5, float32."""
    return dict(make_arrays(Case("good", operator, {}, OPTIONAL[operator], (4, 2, 1), I=2)))


def zeros(*shape: int, dtype: Any = np.float32) -> Array:
    return np.zeros(shape, dtype)


SHAPES: list[Bad] = [
    ("RNN", {"X": zeros(4, 3)}, ("X", "(4, 3)", "seq_length", "batch_size", "input_size")),
    ("LSTM", {"X": np.float32(1)}, ("X", "()", "seq_length", "batch_size", "input_size")),
    ("LSTM", {"X": zeros(4, 3, 7)}, ("X", "(4, 3, 7)", "input_size=2")),
    ("RNN", {"W": zeros(5, 2)}, ("W", "(5, 2)", "num_directions", "hidden_size", "input_size")),
    ("GRU", {"W": zeros(1, 14, 2)}, ("W", "(1, 14, 2)", "3*hidden_size=15")),
    ("LSTM", {"W": zeros(2, 20, 2)}, ("W", "(2, 20, 2)", "num_directions=1")),
    ("RNN", {"R": zeros(5, 5)}, ("R", "(5, 5)", "num_directions", "hidden_size")),
    ("LSTM", {"R": zeros(1, 24, 5)}, ("R", "(1, 24, 5)", "4*hidden_size", "hidden_size")),
    ("LSTM", {"R": zeros(2, 20, 5)}, ("R", "(2, 20, 5)", "num_directions=1")),
    ("LSTM", {"R": zeros(1, 0, 0)}, ("R", "(1, 0, 0)", "hidden_size")),
    ("RNN", {"B": zeros(10)}, ("B", "(10,)", "num_directions=1", "2*hidden_size=10")),
    ("LSTM", {"B": zeros(1, 20)}, ("B", "(1, 20)", "8*hidden_size=40")),
    ("LSTM", {"P": zeros(1, 20)}, ("P", "(1, 20)", "3*hidden_size=15")),
    ("RNN", {"initial_h": zeros(3, 5)}, ("initial_h", "(3, 5)", "num_directions=1", "batch_size=3", "hidden_size=5")),
    ("GRU", {"initial_h": zeros(1, 1, 5)}, ("initial_h", "(1, 1, 5)", "batch_size=3")),
    ("LSTM", {"initial_c": zeros(1, 3, 4)}, ("initial_c", "(1, 3, 4)", "hidden_size=5")),
    ("LSTM", {"initial_h": zeros(1, 3, 5), "layout": 1}, ("initial_h", "(1, 3, 5)", "batch_size=4")),
    ("RNN", {"sequence_lens": np.array([4, 2], np.int32)}, ("sequence_lens", "(2,)", "batch_size=3")),
    ("LSTM", {"sequence_lens": np.int32(4)}, ("sequence_lens", "()", "batch_size=3")),
    ("LSTM", {"sequence_lens": []}, ("sequence_lens", "(0,)", "batch_size=3")),
    ("LSTM", {"X": [[[1.0, 2.0]], [[3.0]]]}, ("X",)),  # ragged
    *[("LSTM", {name: None}, (name,)) for name in "XWR"],
]

ARRAYS = {"X": (4, 3, 2), "W": (1, 20, 2), "R": (1, 20, 5), "B": (1, 40), "initial_h": (1, 3, 5), "P": (1, 15)}
OTHER_DTYPES = ("int64", "bool", "complex64", "object", "U3", "float64", "float16", "M8[s]", "longdouble")
DTYPES: list[Bad] = [
    *[
        ("LSTM", {name: array}, (name, str(array.dtype), "float32"))
        for name, shape in ARRAYS.items()
        for array in (np.zeros(shape, dtype) for dtype in OTHER_DTYPES)
    ],
    ("LSTM", {"X": zeros(4, 3, 2, dtype=ml_dtypes.float8_e4m3fn)}, ("X", "float8_e4m3fn", "float32")),
    ("GRU", {"X": np.zeros((4, 3, 2), [("a", "f4")])}, ("X", "float32")),
    ("GRU", {"W": "weights"}, ("W", "float32")),
    ("GRU", {"W": {"a": 1}}, ("W", "float32")),
]

LENS: list[Bad] = [
    *[
        ("LSTM", {"sequence_lens": [4, length, 2]}, ("sequence_lens", str(length), "seq_length=4"))
        for length in (-1, 5, 2**32 + 1)
    ],
    *[
        ("LSTM", {"sequence_lens": np.array([4, 2, 1], dtype)}, ("sequence_lens", dtype, "int32"))
        for dtype in ("float32", "int64", "object")
    ],
    ("RNN", {"sequence_lens": [4.0, 2.0, 1.0]}, ("sequence_lens", "float64", "int32")),
]


def flag(operator: str, name: str) -> list[Bad]:
    """An integer attribute that is 0 or 1."""
    others = (1.0, True, "1", [1], np.bool_(True), np.float32(1), b"1")
    return [
        *[(operator, {name: value}, (name, str(value), "0 or 1")) for value in (2, -1, 2**70)],
        *[(operator, {name: value}, (name, repr(value), "integer")) for value in others],
    ]


def shown(value: Any) -> str:
    return repr(value) if isinstance(value, str) else str(value)


def activations(operator: str, *names: Any, **parameters: Any) -> Any:
    return operator, {"activations": [*names], **parameters}


ATTRIBUTES: list[Bad] = [
    *flag("RNN", "layout"),
    *flag("GRU", "linear_before_reset"),
    *flag("LSTM", "input_forget"),
    *[("LSTM", {"clip": c}, ("clip", str(c), "positive")) for c in (0, 0.0, -1.0, np.nan, np.inf)],
    *[
        ("GRU", {"direction": d}, ("direction", repr(d), "forward", "reverse", "bidirectional"))
        for d in ("Forward", "REVERSE", "backward", "", "foward")
    ],
    ("LSTM", {"direction": 1}, ("direction", "1", "string")),
    ("LSTM", {"direction": "bidirectional"}, ("R", "(1, 20, 5)", "num_directions=2")),
    ("LSTM", {"R": zeros(1, 5, 20)}, ("R", "(1, 5, 20)", "4*hidden_size=80")),  # not W, although H is R's last axis
    ("GRU", {"hidden_size": 6}, ("R", "(1, 15, 5)", "3*hidden_size=18")),
    *[("GRU", {"hidden_size": h}, ("hidden_size", shown(h))) for h in (0, -5, 5.0, True, "5", [5])],
    *[("GRU", {"hidden_size": h}, ("R", f"3*hidden_size={3 * h}")) for h in (2**31, 2**63, 2**70)],
    (*activations("RNN", "Swish"), ("activations", "Swish", "Relu", "Tanh", "Softplus")),
    *[(*activations("GRU", "Sigmoid", name), ("activations", str(name))) for name in ("tanh ", 7, None)],
    (*activations("LSTM", "Sigmoid", "Tanh", ""), ("activations", "Tanh")),
    *[
        (*activations(operator, *["Tanh"] * count), ("activations", str(count), str(wanted)))
        for operator, wanted, counts in (("RNN", 1, (0, 3)), ("GRU", 2, (1, 4)), ("LSTM", 3, (2, 6)))
        for count in counts
    ],
    *[("LSTM", {"activations": value}, ("activations", repr(value))) for value in ("Tanh", 3)],
    (*activations("RNN", "ScaledTanh"), ("ScaledTanh", "alpha")),
    (*activations("RNN", "ScaledTanh", activation_alpha=[1.0]), ("ScaledTanh", "beta")),
    (*activations("RNN", "ScaledTanh", activation_beta=[1.0]), ("ScaledTanh", "alpha")),
    *[
        (*activations("LSTM", *["Elu"] * 3, activation_alpha=value), ("activation_alpha", words))
        for value, words in [
            (1.0, "1.0"),
            ("1", "'1'"),
            (["1"], "'1'"),
            ([[1.0]], "1.0"),
        ]
    ],
    (*activations("RNN", "Elu", activation_alpha=[np.nan]), ("alpha", "nan")),
    (*activations("RNN", "HardSigmoid", activation_beta=[np.inf]), ("beta", "inf")),
]

# Attributes that the operator or the opset does not have.
OPSETS: list[Bad] = [
    *[(op, {"layout": value, "opset": 7}, ("layout", f"{op}-7", "14")) for op in OPERATORS for value in (0, 1)],
    *[(op, {"output_sequence": 1, "opset": o}, ("output_sequence", str(o))) for op in OPERATORS for o in (7, 22)],
    ("RNN", {"output_sequence": 2, "opset": 1}, ("output_sequence", "2", "0", "1")),
    *[("GRU", {"linear_before_reset": v, "opset": 2}, ("linear_before_reset", "GRU-1", "3")) for v in (0, 1)],
    ("GRU", {"input_forget": 1}, ("input_forget",)),
    ("LSTM", {"linear_before_reset": 0}, ("linear_before_reset",)),
    ("GRU", {"P": zeros(1, 15)}, ("P",)),
    ("GRU", {"initial_c": zeros(1, 3, 5)}, ("initial_c",)),
    ("LSTM", {"hiden_size": 5}, ("hiden_size", "hidden_size")),
    *[("RNN", {"opset": opset}, ("opset", shown(opset))) for opset in (0, -1, "14", True, 14.0, None, 99, 2**62)],
    ("RNN", {"opset": [22]}, ("opset", "22")),
]


def label(bad: Bad) -> str:
    operator, changes, _ = bad
    parts = [
        f"{k}={v.dtype}{list(v.shape)}" if isinstance(v, np.ndarray) else f"{k}={v!r:.40}" for k, v in changes.items()
    ]
    return "-".join([operator, *parts])


def assert_rejected(call: Any, words: tuple[str, ...]) -> None:
    with pytest.raises(pyrnnx.PyrnnxError) as caught:
        call()
    assert isinstance(caught.value, ValueError)
    message = str(caught.value)
    missing = [word for word in words if not re.search(rf"(?<!\w){re.escape(word)}(?!\w)", message)]
    assert not missing, f"{missing} not in: {message}"


@each_row("bad", [*SHAPES, *DTYPES, *LENS, *ATTRIBUTES, *OPSETS], ids=label)
def test_rejected(bad: Bad) -> None:
    operator, changes, words = bad
    arguments = good(operator) | changes
    assert_rejected(lambda: getattr(frontend, operator.lower())(**arguments), (operator, *words))


@each_row("operator", OPERATORS)
def test_good_is_good(operator: str) -> None:
    """The calls of the table fail for the reason that they name; a list's error does not blame the weights."""
    arrays, function = good(operator), getattr(frontend, operator.lower())
    outputs = function(**arrays)
    assert outputs[0].shape == (4, 1, 3, 5)
    np.testing.assert_array_equal(function(**arrays | {"sequence_lens": [4, 2, 1]})[0], outputs[0])
    with pytest.raises(pyrnnx.ArgumentError) as caught:
        function(**arrays | {"X": arrays["X"].tolist()})
    assert str(caught.value) == (
        f"{operator}: X has dtype float64; expected float32, the dtype of the weights: np.asarray(X, np.float32)"
    )


@each_row("operator", OPERATORS)
@each_row("opset", [1, 7, 14, 21])
def test_bfloat16_came_with_opset_22(operator: str, opset: int) -> None:
    arrays = make_arrays(Case("bf16", operator, {}, OPTIONAL[operator]), np.dtype(ml_dtypes.bfloat16))
    function = getattr(frontend, operator.lower())
    assert_rejected(lambda: function(**arrays, opset=opset), (operator, "bfloat16", f"{operator}-{min(opset, 14)}"))
    function(**arrays, opset=22)  # no error


@each_row("operator", OPERATORS)
@each_row("key", ["activation_alpha", "activation_beta"])
@each_row("more", [1, 2])
def test_parameters_left_over_are_a_warning(operator: str, key: str, more: int) -> None:
    count = len(DEFAULT_ACTIVATIONS[operator])
    arguments = good(operator) | {"activations": ["HardSigmoid"] * count}
    with pytest.warns(UserWarning, match=key) as caught:
        outputs = getattr(frontend, operator.lower())(**arguments, **{key: [0.25] * (count + more)})
    assert len(caught) == 1
    assert operator in str(caught[0].message)
    exact = getattr(frontend, operator.lower())(**arguments, **{key: [0.25] * count})
    np.testing.assert_array_equal(outputs[0], exact[0])


ALL = ["X", "W", "R", "B", "", "initial_h", "initial_c", "P"]
Node = tuple[list[str], dict[str, Any], tuple[str, ...]]  # inputs, attributes (and op_type, opset), words
NODES: list[Node] = [
    (["X"], {"op_type": "Relu"}, ("Relu", "RNN", "GRU", "LSTM")),
    (ALL, {"domain": "com.microsoft"}, ("com.microsoft.LSTM", "RNN", "GRU", "LSTM")),
    ([*ALL, "Q"], {}, ("LSTM", "9", "8")),
    (["X", "W"], {}, ("LSTM", "R")),
    (["", "W", "R"], {}, ("LSTM", "X")),
    (["X", "", "R"], {}, ("LSTM", "W")),
    (["X", "weights", "R"], {}, ("LSTM", "W", "weights")),
    ([*ALL[:-1], "peepholes"], {}, ("LSTM", "P", "peepholes")),
    (ALL, {"hidden_size": 5.0}, ("LSTM", "hidden_size", "5.0", "integer")),
    (ALL, {"direction": 1}, ("LSTM", "direction", "1", "string")),
    (ALL, {"clip": "1"}, ("LSTM", "clip", "number")),
    (ALL, {"activations": "Tanh"}, ("LSTM", "activations", "list of strings")),
    (ALL, {"activations": [1, 2, 3]}, ("LSTM", "activations", "list of strings")),
    (ALL, {"foo": 1}, ("LSTM", "foo", "hidden_size")),
    (ALL, {"clip": onnx.numpy_helper.from_array(zeros(1))}, ("LSTM", "clip")),
    (ALL, {"layout": 0, "opset": 7}, ("LSTM", "layout", "14")),
    (ALL, {"opset": 0}, ("LSTM", "opset", "0")),
    (ALL, {"name": "my/lstm", "clip": -1.0}, ("LSTM", "my/lstm", "clip", "-1.0")),
]


@each_row(("inputs", "attributes", "words"), NODES, ids=[row[-1] for row in NODES])
def test_node_rejected(inputs: Any, attributes: Any, words: Any) -> None:
    attributes = dict(attributes)
    op_type, opset = attributes.pop("op_type", "LSTM"), attributes.pop("opset", 22)
    node = onnx.helper.make_node(op_type, inputs, ["Y", "Y_h", "Y_c"], **attributes)
    assert_rejected(lambda: frontend.from_node(node, good("LSTM"), opset=opset), words)


def test_endless_empty_sequence_returns() -> None:
    """2^40 steps of no rows are no work."""
    case = Case("endless", "LSTM", {}, OPTIONAL["LSTM"], T=1, N=0)
    arrays: dict[str, Any] = make_arrays(case) | {"X": np.zeros((2**40, 0, 3), np.float32)}
    Y, Y_h, Y_c = frontend.lstm(**arrays)
    assert (Y.shape, Y_h.shape, Y_c.shape) == ((2**40, 1, 0, 5), (1, 0, 5), (1, 0, 5))


@each_row("node", [None, "LSTM", onnx.NodeProto, onnx.ModelProto(), onnx.AttributeProto()])
def test_what_is_no_node(node: Any) -> None:
    message = rf"^from_node: node is {type(node).__name__} .*; expected an onnx\.NodeProto$"
    with pytest.raises(pyrnnx.ArgumentError, match=message):
        frontend.from_node(node, {})


def test_attributes_that_are_broken() -> None:
    node = onnx.helper.make_node("RNN", ["X", "W", "R"], ["Y"], hidden_size=5)
    node.attribute.append(node.attribute[0])
    with pytest.raises(pyrnnx.ArgumentError, match="RNN: attribute 'hidden_size' is defined twice"):
        frontend.from_node(node, good("RNN"))
    del node.attribute[:]
    node.attribute.add(name="hidden_size")
    with pytest.raises(pyrnnx.ArgumentError, match="'hidden_size' is 'a value of type UNDEFINED'; expected an inte"):
        frontend.from_node(node, good("RNN"))


INITIALIZERS: list[tuple[Any, str]] = [
    (None, "initializers is NoneType; expected a mapping of arrays"),
    ([np.ones(1)], "initializers is list; expected a mapping of arrays"),
    ({"W": "abc"}, "W has dtype"),
    ({"W": onnx.TensorProto()}, "W has dtype object"),
    ({"W": [[1.0], [1.0, 2.0]]}, "W cannot be converted to an array"),
]


@each_row(("initializers", "message"), INITIALIZERS)
def test_what_are_no_initializers(initializers: Any, message: str) -> None:
    initializers = good("LSTM") | initializers if isinstance(initializers, dict) else initializers
    with pytest.raises(pyrnnx.ArgumentError, match=f"^LSTM: {message}"):
        frontend.from_node(onnx.helper.make_node("LSTM", ["X", "W", "R"], ["Y"]), initializers)


def test_numpy_scalars_and_arrays_are_attributes() -> None:
    arrays = good("LSTM")
    functions = ["HardSigmoid", "Tanh", "Tanh"]
    attributes: dict[str, Any] = {
        "activations": np.array(functions),
        "activation_alpha": np.array([0.25]),
        "direction": np.str_("reverse"),
        "clip": np.array(2.0, ml_dtypes.bfloat16),
        "hidden_size": np.array(5),
        "input_forget": np.int64(1),
        "opset": np.int64(14),
    }
    plain: dict[str, Any] = {"activation_alpha": [0.25], "direction": "reverse", "clip": 2.0, "hidden_size": 5}
    expected = frontend.lstm(**arrays, activations=functions, input_forget=1, opset=14, **plain)
    for result, other in zip(frontend.lstm(**arrays, **attributes), expected, strict=True):
        np.testing.assert_array_equal(result, other)


@pytest.mark.parametrize("name", ["activations", "activation_alpha", "activation_beta"])
def test_lists_of_any_length_are_not_read_to_their_end(name: str) -> None:
    values: tuple[Any, ...] = (
        itertools.repeat("tanh" if name == "activations" else 0.5),
        np.broadcast_to(np.float32(1), 1 << 40),
    )
    for endless in values:
        with pytest.raises(pyrnnx.ArgumentError, match=rf"LSTM: {name} is .*; expected a list of \w+, at most 1000"):
            frontend.lstm(**good("LSTM"), **{name: endless})
