"""Calls of a model of any front-end: inputs by order or by name, checked against its declaration."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from rows import each_row

from pyrnnx import ArgumentError, Interval, Layers, Model, TensorInfo


class Echo(Model):
    """Gives back what it was called with."""

    label = "echo"
    inputs: tuple[TensorInfo, ...] = (
        TensorInfo("X", "float32", ("T", None, 4)),
        TensorInfo("lengths", "int64", (Interval(1, 3),), aliases=("sequence_lens", "L")),
        TensorInfo("words", "str", (None,), optional=True),
        TensorInfo("list", optional=True),
        TensorInfo("any_rank", "float64", None, optional=True),
    )
    outputs: tuple[TensorInfo, ...] = (TensorInfo("lengths"), TensorInfo("X"))

    plan = None

    @property
    def layers(self) -> Layers[Any]:
        return Layers(self.label, {}, str)

    def _run(self, inputs: dict[str, Any], outputs: tuple[str, ...]) -> dict[str, Any]:
        return {name: inputs[name] for name in outputs}


X = np.arange(24, dtype=np.float32).reshape(3, 2, 4)
LENGTHS = np.array([3, 1])
model = Echo()


def test_by_order_and_by_name() -> None:
    for result in (model(X, LENGTHS), model({"lengths": LENGTHS, "X": X}), model({"X": X, "L": LENGTHS})):
        assert list(result) == ["lengths", "X"]  # the model's order
        assert result["X"] is X
        assert result["lengths"] is LENGTHS


def test_integers_of_python_are_of_the_declared_type() -> None:
    class Integers(Echo):
        inputs = (TensorInfo("small", "int8", (None,)), TensorInfo("scalar", "uint32", ()))
        outputs = inputs

    integers = Integers()
    result = integers([3, -1], 7)
    assert [str(array.dtype) for array in result.values()] == ["int8", "uint32"]
    assert [array.tolist() for array in result.values()] == [[3, -1], 7]
    assert integers((), 0)["small"].shape == (0,)
    errors = {
        "input 'small' contains 128; expected int8, -128 to 127": ([5, 128], 7),
        "input 'scalar' contains -1; expected uint32, 0 to 4294967295": ([5], -1),
        "input 'small' has dtype int64; expected int8: array.astype(np.int8)": (np.array([5]), 7),
        "input 'small' has dtype float64; expected int8": ([5.0], 7),
        "input 'small' has dtype bool; expected int8: np.asarray(array, np.int8)": ([True], 7),
        "input 'scalar' has dtype bool; expected uint32": ([5], False),
    }
    for message, given in errors.items():
        with pytest.raises(ArgumentError) as caught:
            integers(*given)
        assert str(caught.value).startswith(f"echo: {message}")


def test_by_keyword() -> None:
    for result in (model(X=X, lengths=LENGTHS), model(X, L=LENGTHS), model({"X": X}, sequence_lens=LENGTHS)):
        assert result["X"] is X
        assert result["lengths"] is LENGTHS
    assert list(model(X=X, lengths=LENGTHS, outputs=["X"])) == ["X"]


def test_chosen_outputs() -> None:
    words = np.array(["a", "b"])
    assert list(model(X, LENGTHS, words, outputs=["words", "X"])) == ["words", "X"]
    assert model(X, LENGTHS, outputs=[]) == {}


def test_run() -> None:
    inputs = {"X": X, "L": LENGTHS}
    assert [value is wanted for value, wanted in zip(model.run(None, inputs), (LENGTHS, X), strict=True)] == [True] * 2
    for names in (["X"], ["X", "lengths"], ["lengths", "X"], ["X", "X"], []):
        values = model.run(names, inputs)
        assert [value is (X if name == "X" else LENGTHS) for name, value in zip(names, values, strict=True)] == [
            True for _ in names
        ]


def test_values_that_are_no_tensors_and_any_rank() -> None:
    assert model({"X": X, "lengths": LENGTHS, "list": [X, X]}, outputs=["list"])["list"] == [X, X]
    for shape in ((), (2,), (1, 2, 3, 4)):
        array = np.ones(shape)
        assert model({"X": X, "lengths": LENGTHS, "any_rank": array}, outputs=["any_rank"])["any_rank"] is array


def test_open_interval() -> None:
    assert 7 in Interval(2, None)
    assert 1 not in Interval(2, None)
    assert [str(one) for one in (Interval(2, None), Interval(0, 8))] == ["2..", "0..8"]


def test_repr() -> None:
    assert repr(model) == "<Echo echo: (X, lengths, words, list, any_rank) -> (lengths, X)>"


BOTH = {"X": X, "lengths": LENGTHS}
LONG: dict[str, Any] = {"x" * 10**6: X}
# Each wrong call of a model, and how the message begins.
ERRORS: dict[str, tuple[Callable[[], Any], str]] = {
    "missing": (lambda: model(X), "input 'lengths' is missing; expected X, lengths, words, list, any_rank"),
    "missing in a mapping": (lambda: model({"lengths": LENGTHS}), "input 'X' is missing"),
    "missing by keyword": (lambda: model(X=X), "input 'lengths' is missing"),
    "None": (lambda: model(None, LENGTHS), "input 'X' is missing; expected an array of float32"),
    "too many": (lambda: model(*(X,) * 6), "6 arrays were given; expected at most 5: X, lengths, words, list, any"),
    "unknown": (lambda: model({**BOTH, "x": X}), "input 'x' is unknown; expected X, lengths, words, list, any_rank"),
    "unknown by keyword": (lambda: model(X, LENGTHS, self=X), "input 'self' is unknown"),
    "long": (lambda: model(X, LENGTHS, **LONG), "input 'xxx"),
    "two names": (lambda: model({**BOTH, "L": LENGTHS}), "input 'lengths' was given twice, under two of its names"),
    "by place too": (lambda: model(X, LENGTHS, X=X), "input 'X' was given twice, by place and by name"),
    "in a mapping too": (lambda: model({"X": X}, X=X, L=LENGTHS), "input 'X' was given twice, by place and by name"),
    "dtype": (lambda: model(X.astype(float), LENGTHS), "input 'X' has dtype float64; expected float32: array.astype("),
    "rank": (lambda: model(X[0], LENGTHS), "input 'X' has shape (2, 4); expected [T, ?, 4]"),
    "size": (lambda: model(X[..., :3], LENGTHS), "input 'X' has shape (3, 2, 3); expected [T, ?, 4]"),
    "interval": (lambda: model(X, np.ones(4, np.int64)), "input 'lengths' has shape (4,); expected [1..3]"),
    "no array": (lambda: model(X, [[1], [1, 2]]), "input 'lengths' cannot be converted to an array"),
    "no words": (lambda: model(X, LENGTHS, LENGTHS), "input 'words' has dtype int64; expected str"),
    "outputs": (lambda: model(X, LENGTHS, outputs="X"), "outputs is 'X'; expected a sequence of names"),
    "an output": (lambda: model(X, LENGTHS, outputs=[b"X"]), "outputs contains b'X'; expected names"),  # type: ignore[list-item]
    "run: no mapping": (lambda: model.run(None, [1]), "run: inputs is [1]; expected a mapping of arrays by names"),  # type: ignore[arg-type]
    "run: one name": (lambda: model.run("X", BOTH), "output_names is 'X'; expected a sequence of names"),
}


@each_row("name", ERRORS)
def test_errors(name: str) -> None:
    call, message = ERRORS[name]
    with pytest.raises(ArgumentError) as caught:
        call()
    assert str(caught.value).startswith(f"echo: {message}")
    assert len(str(caught.value)) < 500
