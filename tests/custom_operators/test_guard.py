"""The custom operator Guard in sessions: values that it copies, and values that it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from sessions import FLOAT, model, session

from pyrnnx.layers.custom_operators import DOMAIN, ELEMENT_TYPES, GUARD

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def guard_session(ranks: str, element: int = FLOAT, state: bool = False) -> Any:
    names = ["x", "s"] if state else ["x"]
    guard = helper.make_node(GUARD, names, ["y"], domain=DOMAIN, ranks=ranks)
    return session(model([guard], [(name, element) for name in names], [("y", element)]))


@pytest.mark.parametrize("name", ["float32", "float64", "float16", "int8", "uint16", "int32", "int64", "bool"])
def test_values_are_copied(name: str) -> None:
    value = (X - 2).astype(name)
    for ranks in ("C", "c", "?", "!", "+"):
        (y,) = guard_session(ranks, ELEMENT_TYPES[name]).run(None, {"x": value})
        np.testing.assert_array_equal(y, value)


def test_ranks_are_inferred() -> None:
    (output,) = guard_session("C").get_outputs()
    assert len(output.shape) == 2
    assert len(set(output.shape)) == 2


@pytest.mark.parametrize(
    ("ranks", "value", "message"),
    [
        ("B", X, "has another rank than declared"),
        ("+", X[0], "has fewer than two axes"),
        ("+", X[0, 0, ...], "has fewer than two axes"),
        ("c", X[:0], "has no elements"),
        ("!", X[:0], "has no elements"),
    ],
)
def test_values_that_are_refused(ranks: str, value: Any, message: str) -> None:
    with pytest.raises(Exception, match=f"Guard: value 0 {message}"):
        guard_session(ranks).run(None, {"x": value})


def test_states_keep_their_shape() -> None:
    ran = guard_session("C", state=True)
    np.testing.assert_array_equal(ran.run(None, {"x": X, "s": -X})[0], X)
    for state in (X[:1], X.T, X[0]):
        with pytest.raises(Exception, match="a state that a step gives another shape"):
            ran.run(None, {"x": X, "s": state})


def test_strings_are_refused() -> None:
    with pytest.raises(Exception, match="elements that are not copied"):
        guard_session("B", TensorProto.STRING).run(None, {"x": np.array(["a"], object)})
