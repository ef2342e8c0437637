"""RecurrentOp, Activation and Direction: frozen and always valid."""

from __future__ import annotations

import copy
import dataclasses
import math
import pickle
from typing import Any

import numpy as np
import pytest
from rows import each_row

from pyrnnx import ACTIVATIONS, Activation, ArgumentError, Direction, RecurrentOp, reference
from pyrnnx.operator.op import CellName

REQUIRED_PARAMETERS = {"scaledtanh": {"alpha": 1.5, "beta": 0.5}}
DEFAULT_PARAMETERS = {name: (reference.ALPHA.get(name), reference.BETA.get(name)) for name in reference.ACTIVATIONS}
DEFAULT_PARAMETERS["ScaledTanh"] = (1.5, 0.5)
each_function = each_row("name", ACTIVATIONS)


def make(name: str, **parameters: Any) -> Activation:
    return Activation(name, **{**REQUIRED_PARAMETERS.get(name.lower(), {}), **parameters})


# Activation


@each_function
def test_defaults_of_activations(name: str) -> None:
    one = make(name)
    assert (one.name, one.alpha, one.beta) == (name, *DEFAULT_PARAMETERS[name])


@each_function
def test_names_of_activations_in_any_case(name: str) -> None:
    assert make(name.lower()) == make(name.upper()) == make(name)
    assert make(name.lower()).name == name


@each_function
def test_parameters_of_activations(name: str) -> None:
    for parameter, default in zip(("alpha", "beta"), DEFAULT_PARAMETERS[name], strict=True):
        if default is None:
            with pytest.raises(ArgumentError, match=rf"{name} takes no {parameter}.*0\.5"):
                make(name, **{parameter: 0.5})
            continue
        value = getattr(make(name, **{parameter: 3}), parameter)
        assert value == 3.0
        assert type(value) is float
        for bad in (math.nan, math.inf, -math.inf, "0.5", True, [0.5], 1j):
            with pytest.raises(ArgumentError, match=rf"{name}.*{parameter}.*finite number"):
                make(name, **{parameter: bad})


@each_row("missing", ["alpha", "beta"])
def test_parameters_without_default_are_required(missing: str) -> None:
    given = {key: 1.0 for key in ("alpha", "beta") if key != missing}
    with pytest.raises(ArgumentError, match=rf"ScaledTanh needs {missing}"):
        Activation("ScaledTanh", **given)


@each_row("name", ["", "tan", "Tanh ", "tanh\n", "Swish", None, 3, b"Tanh"])
def test_unknown_activations(name: Any) -> None:
    with pytest.raises(ArgumentError, match="unknown; expected one of Relu, Tanh, Sigmoid"):
        Activation(name)


def test_activation_is_a_value() -> None:
    one, same, other = Activation("elu", 0.5), Activation("Elu", alpha=0.5), Activation("Elu")
    assert one == same
    assert hash(one) == hash(same)
    assert one != other
    assert str(one) == "Elu(alpha=0.5)"
    assert str(Activation("Tanh")) == "Tanh"
    assert str(Activation("HardSigmoid")) == "HardSigmoid(alpha=0.2, beta=0.5)"
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.alpha = 1.0  # type: ignore[misc]
    assert pickle.loads(pickle.dumps(one)) == one


# RecurrentOp

DEFAULTS = {"RNN": ("Tanh",), "GRU": ("Sigmoid", "Tanh"), "LSTM": ("Sigmoid", "Tanh", "Tanh")}
LETTERS = {"RNN": "i", "GRU": "zrh", "LSTM": "iofc"}
each_cell = pytest.mark.parametrize("cell", DEFAULTS)


@each_cell
def test_defaults_of_operators(cell: CellName) -> None:
    op = RecurrentOp(cell, 5)
    assert (op.cell, op.hidden_size, op.direction, op.num_directions) == (cell, 5, Direction.FORWARD, 1)
    assert [one.name for one in op.activations[0]] == list(DEFAULTS[cell])
    assert (op.clip, op.linear_before_reset, op.input_forget) == (None, False, False)
    assert op.gates == LETTERS[cell]
    assert op.has_cell_state is (cell == "LSTM")


@each_cell
def test_operator_is_a_value(cell: CellName) -> None:
    functions = [[Activation("Relu")] * len(DEFAULTS[cell])]  # lists are made tuples
    op = RecurrentOp(cell, 5, Direction.REVERSE, functions, 3)
    same = RecurrentOp(cell, 5, "reverse", tuple(map(tuple, functions)), 3.0)
    assert op == same
    assert hash(op) == hash(same)
    assert op.clip == 3.0
    assert type(op.clip) is float
    assert len({op, same, RecurrentOp(cell, 6, "reverse", same.activations, 3.0)}) == 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        op.hidden_size = 6  # type: ignore[misc]
    assert pickle.loads(pickle.dumps(op)) == op
    assert dataclasses.replace(op, hidden_size=6).hidden_size == 6


TANH = Activation("Tanh")
BAD: dict[str, tuple[dict[str, Any], str]] = {
    "unknown cell": ({"cell": "QRNN"}, r"^RecurrentOp: cell is 'QRNN'; expected one of RNN, GRU, LSTM"),
    "hidden_size 0": ({"hidden_size": 0}, r"GRU: hidden_size is 0; expected a positive integer"),
    "hidden_size negative": ({"hidden_size": -5}, r"hidden_size is -5"),
    "hidden_size bool": ({"hidden_size": True}, r"hidden_size is True"),
    "unknown direction": (
        {"direction": "backward"},
        r"GRU: direction is 'backward'; expected one of forward, reverse, bidirectional",
    ),
    "direction in another case": ({"direction": "Forward"}, r"direction is 'Forward'"),
    "direction in an array": ({"direction": np.array(["forward"])}, r"direction is array"),
    "clip 0": ({"clip": 0}, r"GRU: clip is 0; expected a positive finite number"),
    "clip NaN": ({"clip": math.nan}, r"clip is nan"),
    "clip infinite": ({"clip": math.inf}, r"clip is inf"),
    "clip text": ({"clip": "1"}, r"clip is '1'"),
    "linear_before_reset number": ({"linear_before_reset": 1}, r"linear_before_reset is 1; expected True or False"),
    "linear_before_reset of LSTM": (
        {"cell": "LSTM", "linear_before_reset": True},
        r"LSTM: linear_before_reset is True; only GRU has it",
    ),
    "input_forget number": ({"cell": "LSTM", "input_forget": 0}, r"input_forget is 0; expected True or False"),
    "input_forget of GRU": ({"input_forget": True}, r"GRU: input_forget is True; only LSTM has it"),
    "too few functions": (
        {"activations": ((TANH,),)},
        "GRU: activations has 1 functions; expected 2",
    ),
    "too many functions": ({"activations": ((TANH,) * 3,)}, "has 3 functions; expected 2"),
    "too few directions": (
        {"activations": ((TANH, TANH),), "direction": "bidirectional"},
        "activations has 2 functions; expected 4, 2 for each direction",
    ),
    "too many directions": ({"activations": ((TANH, TANH),) * 2}, "activations has 4 functions; expected 2"),
}


@each_row(("changes", "words"), BAD.values(), ids=BAD)
def test_bad_operators(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        RecurrentOp(**{"cell": "GRU", "hidden_size": 5, **changes})
    with pytest.raises(ArgumentError, match=r"^LSTM 'encoder': (?!GRU|LSTM|RNN)"):
        RecurrentOp(**{"cell": "GRU", "hidden_size": 5, **changes}, label="LSTM 'encoder'")


REPRS: dict[str, tuple[RecurrentOp, str]] = {
    "defaults": (RecurrentOp("LSTM", 8), "RecurrentOp('LSTM', hidden_size=8)"),
    "direction": (RecurrentOp("GRU", 3, Direction.REVERSE), "RecurrentOp('GRU', hidden_size=3, direction='reverse')"),
    "flags": (
        RecurrentOp("GRU", 3, clip=0.5, linear_before_reset=True),
        "RecurrentOp('GRU', hidden_size=3, clip=0.5, linear_before_reset=True)",
    ),
    "activations": (
        RecurrentOp("RNN", 2, Direction.BIDIRECTIONAL, ((Activation("Tanh"),), (Activation("Affine", 2, 0.5),))),
        "RecurrentOp('RNN', hidden_size=2, direction='bidirectional', "
        "activations=((Activation('Tanh'),), (Activation('Affine', alpha=2.0, beta=0.5),)))",
    ),
}


@each_row("name", REPRS)
def test_repr_is_short_and_makes_it_again(name: str) -> None:
    op, text = REPRS[name]
    assert repr(op) == text
    assert eval(text) == op


def test_label_is_no_part_of_the_value() -> None:
    op = RecurrentOp("GRU", 5, label="GRU 'decoder'")
    assert op == RecurrentOp("GRU", 5)
    assert "decoder" not in repr(op)
    assert dataclasses.replace(op, hidden_size=6) == RecurrentOp("GRU", 6)


NUMBERS: dict[str, Any] = {
    "np.int64": (np.int64(5), np.float32(0.5)),
    "np.uint8": (np.uint8(5), np.float16(0.5)),
    "arrays without axes": (np.array(5), np.array(0.5)),
    "np.float64": (np.int32(5), np.float64(0.5)),
}


@each_row(("size", "number"), NUMBERS.values(), ids=NUMBERS)
def test_numbers_of_numpy_are_numbers(size: Any, number: Any) -> None:
    op = RecurrentOp("GRU", size, "forward", clip=number, linear_before_reset=np.bool_(True))  # type: ignore[arg-type]
    assert op == RecurrentOp("GRU", 5, clip=0.5, linear_before_reset=True)
    assert hash(op) == hash(RecurrentOp("GRU", 5, clip=0.5, linear_before_reset=True))
    assert [type(value) for value in (op.hidden_size, op.clip, op.linear_before_reset)] == [int, float, bool]
    assert pickle.loads(pickle.dumps(op)) == op
    one = Activation("HardSigmoid", number, number)
    assert one == Activation("HardSigmoid", 0.5, 0.5)
    assert type(one.alpha) is type(one.beta) is float


LONG: dict[str, Any] = {
    "hidden_size": lambda: RecurrentOp("GRU", -(10**5000)),
    "direction": lambda: RecurrentOp("GRU", 5, "x" * 10**7),  # type: ignore[arg-type]
    "activations": lambda: RecurrentOp("GRU", 5, activations=["x" * 10**7] * 10**4),
    "alpha": lambda: Activation("Elu", "x" * 10**7),  # type: ignore[arg-type]
}


@each_row("name", LONG)
def test_values_in_messages_are_cut(name: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        LONG[name]()
    assert len(str(caught.value)) < 500


@each_row(
    "functions",
    [
        (("Tanh",), "Tanh"),
        ((("Tanh",),),),
        ((None,),),
        (TANH, None),
        "Tanh",
        3,
        0,
        "",
        False,
        np.zeros((1, 1)),
        np.zeros(2),
    ],
    ids=repr,
)
def test_activations_must_be_activations(functions: Any) -> None:
    with pytest.raises(ArgumentError, match="activations"):
        RecurrentOp("RNN", 5, activations=functions)


BOTH = (Activation("Sigmoid"), Activation("Tanh"))


@each_row(
    "functions",
    [
        ["Sigmoid", "Tanh"] * 2,
        [*BOTH, *BOTH],
        [["sigmoid", "tanh"], ("Sigmoid", "Tanh")],
        (BOTH, ["Sigmoid", Activation("Tanh")]),
    ],
    ids=repr,
)
def test_activations_by_name_and_in_one_sequence(functions: Any) -> None:
    op = RecurrentOp("GRU", 5, "bidirectional", activations=functions)
    assert op.activations == (BOTH, BOTH)
    assert op == RecurrentOp("GRU", 5, "bidirectional") == copy.deepcopy(op)
    assert hash(op) == hash(copy.deepcopy(op))


def test_unknown_name_of_an_activation_names_the_layer() -> None:
    with pytest.raises(ArgumentError, match=r"^gate: activations: activation 'Tan' is unknown; expected one of"):
        RecurrentOp("RNN", 5, activations=["Tan"], label="gate")
