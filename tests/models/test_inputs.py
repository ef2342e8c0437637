"""Compiled recognition of inputs: it returns what `read_inputs` returns, or leaves the inputs to it."""

from __future__ import annotations

import copy
import pickle
from collections import OrderedDict
from typing import Any

import numpy as np
import pytest
from rows import each_row

from pyrnnx import Interval, PyrnnxError, TensorInfo
from pyrnnx.models.inputs import Inputs, read_inputs

INFOS = (
    TensorInfo("X", "float32", ("T", None, 4)),
    TensorInfo("lengths", "int64", (Interval(1, 3),), aliases=("L",)),
    TensorInfo("scale", "float64", None, optional=True),
    TensorInfo("more", None, (Interval(2, None),), optional=True),
    TensorInfo("words", "str", (None,), optional=True),
)
X = np.arange(24, dtype=np.float32).reshape(3, 2, 4)
LENGTHS, ONES, MORE = np.array([3, 1]), np.ones((2, 1)), np.ones(2, bool)
WORDS = np.array(["a", "b"], object)
Given = tuple[tuple[Any, ...], dict[str, Any]]


class Array(np.ndarray[Any, Any]):
    """A class derived from NumPy's."""


# Calls that compiled code recognizes.
USUAL: dict[str, Given] = {
    "by place": ((X, LENGTHS), {}),
    "all by place": ((X, LENGTHS, ONES, MORE, WORDS), {}),
    "by name": (({"lengths": LENGTHS, "X": X},), {}),
    "some optional by name": (({"words": WORDS, "lengths": LENGTHS, "X": X},), {}),
    "by keyword": ((), {"X": X, "lengths": LENGTHS}),
    "all by keyword": ((), {"X": X, "lengths": LENGTHS, "scale": ONES, "more": MORE, "words": WORDS}),
    "not contiguous": ((X.transpose(2, 1, 0).copy().transpose(2, 1, 0), LENGTHS), {}),
    "a view": ((np.stack([X, X], 2)[:, :, 0], LENGTHS), {}),
    "read-only": ((np.broadcast_to(X[:1], (3, 2, 4)), LENGTHS), {}),
    "no steps": ((X[:0], LENGTHS), {}),
    "lowest size": ((X, LENGTHS[:1]), {}),
    "highest size": ((X, np.array([1, 2, 3])), {}),
    "a dtype that is not NumPy's own object": ((pickle.loads(pickle.dumps(X)), LENGTHS), {}),
}
OTHERS: dict[str, Given] = {
    "nothing": ((), {}),
    "missing": ((X,), {}),
    "missing by name": (({"X": X},), {}),
    "too many": ((X, LENGTHS, ONES, MORE, WORDS, X), {}),
    "a list": ((X.tolist(), LENGTHS), {}),
    "a list of integers": ((X, [3, 1]), {}),
    "a derived class": ((X.view(Array), LENGTHS), {}),
    "a masked array": ((np.ma.masked_array(X), LENGTHS), {}),
    "None": ((X, None), {}),
    "other byte order": ((X.astype(X.dtype.newbyteorder()), LENGTHS), {}),
    "other byte order, any dtype": ((X, LENGTHS, ONES, np.ones(2, ">i4" if np.little_endian else "<i4")), {}),
    "a number of other precision": ((X.astype(float), LENGTHS), {}),
    "unsigned": ((X, LENGTHS.astype(np.uint64)), {}),
    "integers of the same size": ((X, LENGTHS.astype(np.longlong)), {}),
    "fewer axes": ((X[0], LENGTHS), {}),
    "more axes": ((X[None], LENGTHS), {}),
    "size": ((X[..., :3], LENGTHS), {}),
    "below the interval": ((X, LENGTHS[:0]), {}),
    "above the interval": ((X, np.ones(4, np.int64)), {}),
    "below the open interval": ((X, LENGTHS, ONES, MORE[:1]), {}),
    "strings of fixed length": ((X, LENGTHS, ONES, MORE, WORDS.astype(str)), {}),
    "a value that is no array": ((X, LENGTHS, ONES, [X, X]), {}),
    "by place and by name": ((X,), {"lengths": LENGTHS}),
    "in a mapping and by name": (({"X": X},), {"lengths": LENGTHS}),
    "twice": ((X, LENGTHS), {"X": X}),
    "another mapping": ((OrderedDict(X=X, lengths=LENGTHS),), {}),
    "an alias": (({"X": X, "L": LENGTHS},), {}),
    "an alias twice": (({"X": X, "L": LENGTHS, "lengths": LENGTHS},), {}),
    "unknown": (({"X": X, "lengths": LENGTHS, "x": X},), {}),
    "unknown by keyword": ((), {"X": X, "lengths": LENGTHS, "x": X}),
    "unknown instead of optional": (({"X": X, "lengths": LENGTHS, 3: X},), {}),
    "two mappings": (({"X": X}, {"lengths": LENGTHS}), {}),
}


def result(read: Any, given: Given) -> Any:
    try:
        return read(*given)
    except PyrnnxError as error:
        return type(error), str(error)


def longer(arrays: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
    return read_inputs("model", INFOS, arrays, named)


@each_row("name", {**USUAL, **OTHERS})
def test_the_same_inputs_or_the_same_error(name: str) -> None:
    given = {**USUAL, **OTHERS}[name]
    inputs = Inputs("model", INFOS)
    for reader in (inputs, copy.copy(inputs), pickle.loads(pickle.dumps(inputs))):
        for _ in range(2):
            actual, expected = result(reader.read, given), result(longer, given)
            if not isinstance(expected, dict):
                assert actual == expected
                continue
            assert list(actual) == list(expected)  # in the declared order
            for key, value in actual.items():
                assert type(value) is type(expected[key])
                np.testing.assert_array_equal(value, expected[key])


def test_no_inputs_and_symbols_of_one_name() -> None:
    assert Inputs("model", ()).read((), {}) == {}
    pair = (TensorInfo("a", "float32", ("N",)), TensorInfo("b", "float32", ("N",)))
    for sizes in ((2, 2), (2, 3), (3, 2)):  # the graph checks whether they agree
        arrays = tuple(np.zeros(size, np.float32) for size in sizes)
        assert [value.shape for value in Inputs("model", pair).read(arrays, {}).values()] == [(k,) for k in sizes]


def test_sizes_beyond_those_of_arrays() -> None:
    declared = (TensorInfo("a", "float32", (Interval(0, 2**70),)), TensorInfo("b", "float32", (2**70,), optional=True))
    inputs = Inputs("model", declared)
    assert inputs.read((X[0, 0],), {})["a"].tolist() == X[0, 0].tolist()
    with pytest.raises(PyrnnxError, match="input 'b' has shape"):
        inputs.read((X[0, 0], X[0, 0]), {})
