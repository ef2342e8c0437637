"""The oracle has the attributes and defaults of every version of every operator, and refuses others."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from rows import each_row

from pyrnnx import reference
from pyrnnx.frontends.openvino import OPERATIONS
from pyrnnx.reference.arguments import REQUIRED

OWN = {"coupled_gate", "threshold_shift", "steps"}  # of the oracle, no attributes
ONNX = ("RNN", "GRU", "LSTM")
VERSIONS = [one for one in onnx.defs.get_all_schemas_with_history() if one.name in ONNX and one.domain == ""]


@each_row("schema", VERSIONS, ids=lambda one: f"{one.name}-{one.since_version}")
def test_onnx(schema: onnx.defs.OpSchema) -> None:
    arguments = reference.OPERATORS[schema.name]
    for one in schema.inputs:
        optional = one.option == onnx.defs.OpSchema.FormalParameterOption.Optional
        assert arguments[one.name] is (None if optional else REQUIRED)
    for name, attribute in schema.attributes.items():
        default = onnx.helper.get_attribute_value(attribute.default_value) if attribute.default_value.name else None
        if name == "activations":  # RNN's schema has those of two directions
            default = None
        default = default.decode() if isinstance(default, bytes) else default
        default = "forward" if default == "foward" else default  # as GRU-1 spells it
        assert arguments[name] == (() if name in ("activation_alpha", "activation_beta") else default)


@pytest.mark.parametrize("operator", ONNX)
def test_onnx_has_nothing_else(operator: str) -> None:
    known = {"X", "step"} | OWN
    for schema in VERSIONS:
        if schema.name == operator:
            known |= {*schema.attributes, *(one.name for one in schema.inputs)}
    assert set(reference.OPERATORS[operator]) <= known


@each_row("name", OPERATIONS)
def test_openvino(name: str) -> None:
    operation, arguments = OPERATIONS[name], reference.OPERATORS[name]
    count = len(operation.input_names)
    assert tuple(arguments)[:count] == operation.input_names
    defaults = [arguments[one] for one in operation.input_names]
    assert [default is REQUIRED for default in defaults] == [k < count - operation.optional for k in range(count)]
    attributes = set(operation.attributes) - {"weights_format"}  # of version 1: only its default would be right
    assert set(arguments) == {*operation.input_names, *attributes} | (OWN - {"coupled_gate"})


# Refused arguments

T, N, I, H = 3, 2, 4, 5


def onnx_arrays(operator: str, D: int = 1) -> dict[str, Any]:
    G = reference.GATES[operator]
    return {"X": np.ones((T, N, I)), "W": np.ones((D, G * H, I)), "R": np.ones((D, G * H, H))}


BAD_ONNX: list[tuple[str, dict[str, Any], str]] = [
    ("LSTM", {"input_forgets": 1}, r"LSTM: argument input_forgets is unknown; expected X, W, R"),
    ("RNN", {"sequence_lengths": [3, 3]}, "RNN: argument sequence_lengths is unknown"),
    ("RNN", {"X": np.ones((T, I))}, r"RNN: X has shape \(3, 4\); expected \[seq_length, batch_size, input_size\]"),
    ("RNN", {"W": np.ones((1, I, H))}, r"RNN: W has shape \(1, 4, 5\); expected \(1, 5, 4\)"),
    ("GRU", {"R": np.ones((1, 4 * H, H))}, r"GRU: R has shape \(1, 20, 5\); expected \(1, 15, 5\)"),
    ("RNN", {"B": np.ones((1, H))}, r"RNN: B has shape \(1, 5\); expected \(1, 10\)"),
    ("LSTM", {"P": np.ones((1, 4 * H))}, "LSTM: P has shape"),
    ("LSTM", {"initial_c": np.ones((1, N, I))}, "LSTM: initial_c has shape"),
    ("RNN", {"X": np.ones((T, N, I), complex)}, "RNN: X has dtype complex128; expected real numbers"),
    ("RNN", {"sequence_lens": [1, 4]}, r"RNN: sequence_lens is \[1, 4\]; expected 0 to 3"),
    ("RNN", {"sequence_lens": [1.5, 2.0]}, "RNN: sequence_lens has dtype float64; expected integers"),
    ("RNN", {"sequence_lens": [1]}, r"RNN: sequence_lens has shape \(1,\); expected \(2,\)"),
    ("RNN", {"direction": "Forward"}, "RNN: direction is 'Forward'; expected 'forward' or 'reverse'"),
    ("RNN", {"direction": "bidirectional"}, "RNN: R has num_directions 1; expected 2"),
    ("RNN", {"layout": 2}, "RNN: layout is 2; expected 0 or 1"),
    ("RNN", {"clip": 0.0}, "RNN: clip is 0.0; expected a positive number"),
    ("RNN", {"hidden_size": 4}, "RNN: hidden_size is 4; expected 5"),
    ("LSTM", {"input_forget": -1}, "LSTM: input_forget is -1; expected 0 or 1"),
    ("LSTM", {"coupled_gate": "o"}, "LSTM: coupled_gate is 'o'; expected 'f' or 'i'"),
    ("RNN", {"activations": ["Tan"]}, "RNN: activations contains 'Tan'; expected Relu, Tanh"),
    ("RNN", {"activations": "Tanh"}, "RNN: activations is 'Tanh'; expected a list"),
    ("LSTM", {"activations": ["Tanh"] * 2}, "LSTM: activations has 2 names; expected 3"),
    ("RNN", {"activations": ["ScaledTanh"]}, "RNN: ScaledTanh needs alpha, which has no default"),
    (
        "LSTM",  # as a list by place would be
        {"activations": ["Sigmoid", "LeakyRelu", "Tanh"], "activation_alpha": [0.0, 0.5, 0.0]},
        r"LSTM: activation_alpha has \[0.5, 0.0\] left over; Sigmoid, LeakyRelu, Tanh have no more",
    ),
    ("rnn", {}, "operator is 'rnn'; expected RNN, GRU, LSTM, RNNSequence-5"),
]


@each_row(("operator", "changes", "message"), BAD_ONNX, ids=[row[-1] for row in BAD_ONNX])
def test_bad_onnx(operator: str, changes: dict[str, Any], message: str) -> None:
    arrays = onnx_arrays(operator.upper())
    with pytest.raises(reference.OracleError, match=message):
        reference.run(operator, **{**arrays, **changes})


def openvino_arrays(operator: str) -> dict[str, Any]:
    D, G = 2, {"R": 1, "G": 3, "L": 4}[operator[0]]
    arrays: dict[str, Any] = {"X": np.ones((N, T, I)), "H": np.ones((N, D, H)), "sequence_lengths": [3, 2]}
    arrays |= {"C": np.ones((N, D, H))} if G == 4 else {}
    arrays |= {"W": np.ones((D, G * H, I)), "R": np.ones((D, G * H, H)), "B": np.ones((D, G * H))}
    if "Cell" in operator:
        del arrays["sequence_lengths"]
        arrays = {name: array[:, 0] if name in "XHC" else array[0] for name, array in arrays.items()}
        return arrays
    return arrays | {"direction": "bidirectional"}


BAD_OPENVINO: list[tuple[str, dict[str, Any], str]] = [
    ("RNNSequence-5", {"X": np.ones((T, N, I))}, r"RNNSequence-5: sequence_lengths has shape \(2,\); expected \(3,\)"),
    ("LSTMSequence-5", {"B": np.ones((2, 8 * H))}, r"LSTMSequence-5: B has shape \(2, 40\); expected \(2, 20\)"),
    ("GRUSequence-5", {"linear_before_reset": True}, r"GRUSequence-5: B has shape \(2, 15\); expected \(2, 20\)"),
    ("LSTMCell-4", {"B": None}, "LSTMCell-4: B is missing"),
    ("LSTMSequence-5", {"P": np.ones((2, 3 * H))}, "LSTMSequence-5: argument P is unknown"),
    ("RNNSequence-5", {"sequence_lengths": [4, 0]}, "RNNSequence-5: sequence_lengths is"),
    ("RNNSequence-5", {"direction": "both"}, "RNNSequence-5: direction is 'both'"),
    ("RNNCell-1", {"direction": "reverse"}, "RNNCell-1: argument direction is unknown"),
    ("RNNCell-1", {"clip": -1.0}, "RNNCell-1: clip is -1.0; expected a positive number, or 0 or infinity"),
    ("GRUCell-3", {"hidden_size": 15}, "GRUCell-3: hidden_size is 15; expected 5"),
    (
        "RNNSequence-5",
        {"activations": ["tanh", "relu"]},
        "RNNSequence-5: activations differ by direction; expected 1, for both directions",
    ),
    ("RNNCell-1", {"activations": ["tanh", "tanh"]}, "RNNCell-1: activations has 2 names"),
    ("RNNCell-1", {"activations_alpha": [1.0, 2.0]}, r"RNNCell-1: activations_alpha has 2 values; expected at most 1"),
    ("LSTMCell-4", {"activation_alpha": [1.0]}, "LSTMCell-4: argument activation_alpha is unknown"),
    ("GRUCell-3", {"H": np.ones((N, 1, H))}, r"GRUCell-3: H has shape \(2, 1, 5\); expected \(2, 5\)"),
]


@each_row(("operator", "changes", "message"), BAD_OPENVINO, ids=[row[-1] for row in BAD_OPENVINO])
def test_bad_openvino(operator: str, changes: dict[str, Any], message: str) -> None:
    arrays = openvino_arrays(operator)
    reference.run(operator, **arrays)
    with pytest.raises(reference.OracleError, match=message):
        reference.run(operator, **{**arrays, **changes})


def test_a_list_written_twice_is_one_list() -> None:
    arrays = openvino_arrays("RNNSequence-5")
    once = reference.run("RNNSequence-5", **arrays, activations=["Elu"], activations_alpha=[0.5])
    twice = reference.run("RNNSequence-5", **arrays, activations=["elu", "Elu"], activations_alpha=[0.5, 0.5])
    for a, b in zip(once, twice, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("direction", ["Bidirectional", "BIDIRECTIONAL"])
def test_directions_of_openvino_in_any_case(direction: str) -> None:
    arrays = openvino_arrays("GRUSequence-5")
    small = reference.run("GRUSequence-5", **arrays)
    for a, b in zip(reference.run("GRUSequence-5", **{**arrays, "direction": direction}), small, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("clip", [None, 0.0, np.inf])
def test_no_clip_of_openvino(clip: float | None) -> None:
    arrays = openvino_arrays("LSTMSequence-5")
    for a, b in zip(
        reference.run("LSTMSequence-5", **arrays, clip=clip), reference.run("LSTMSequence-5", **arrays), strict=True
    ):
        np.testing.assert_array_equal(a, b)
