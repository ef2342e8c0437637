"""The custom operator Unfold inside sessions: its windows, and what it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from sessions import FLOAT, model, session

from pyrnnx.layers.custom_operators import DOMAIN, UNFOLD

X = np.arange(1, 43, dtype=np.float32).reshape(2, 7, 3)
NAMES = ("kernel", "stride", "dilation", "pad_begin", "pad_end")
WINDOWS = {
    "elements": (1, 1, 1, 0, 0),
    "without padding": (3, 1, 1, 0, 0),
    "all of X": (7, 1, 1, 0, 0),
    "stride that leaves elements": (2, 4, 1, 0, 0),
    "stride beyond the kernel": (2, 3, 1, 1, 0),
    "padding": (3, 2, 1, 1, 2),
    "padding beyond the kernel": (2, 1, 1, 5, 4),
    "kernel beyond X": (11, 1, 1, 4, 3),
    "dilation": (3, 1, 2, 0, 0),
    "dilation, stride and padding": (3, 2, 3, 4, 3),
}


def unfold_session(window: tuple[int, ...], element: int = FLOAT) -> Any:
    attributes: dict[str, Any] = dict(zip(NAMES, window, strict=True))
    node = helper.make_node(UNFOLD, ["x"], ["y"], domain=DOMAIN, **attributes)
    return session(model([node], [("x", element)], [("y", element)]))


def expected(window: tuple[int, ...]) -> Any:
    kernel, stride, dilation, begin, end = window
    padded = np.pad(X, ((0, 0), (begin, end), (0, 0)))
    starts = range(0, padded.shape[1] - (kernel - 1) * dilation, stride)
    return np.stack([padded[:, start::dilation][:, :kernel].reshape(len(X), -1) for start in starts], axis=1)


@pytest.mark.parametrize("name", WINDOWS)
def test_windows(name: str) -> None:
    ran = unfold_session(WINDOWS[name])
    for sign in (1, -1):
        np.testing.assert_array_equal(ran.run(None, {"x": sign * X})[0], sign * expected(WINDOWS[name]))


def test_ranks_are_inferred() -> None:
    (output,) = unfold_session((3, 1, 1, 0, 0)).get_outputs()
    assert len(output.shape) == len(set(output.shape)) == 3


def test_no_rows_and_no_channels() -> None:
    ran = unfold_session((3, 1, 1, 1, 1))
    assert ran.run(None, {"x": X[:0]})[0].shape == (0, 7, 9)
    assert ran.run(None, {"x": X[..., :0]})[0].shape == (2, 7, 0)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (X[:, :2], "X with its padding is shorter than the kernel"),
        (X[0], "X is no float32 tensor with 3 axes"),
        (X.astype(np.float64), "X is no float32 tensor with 3 axes"),
    ],
    ids=["short", "rank", "dtype"],
)
def test_values_that_are_refused(value: Any, message: str) -> None:
    element = TensorProto.DOUBLE if value.dtype == np.float64 else FLOAT
    with pytest.raises(Exception, match=f"Unfold: {message}"):
        unfold_session((3, 1, 1, 0, 0), element).run(None, {"x": value})


@pytest.mark.parametrize("place", range(len(NAMES)))
def test_attributes_out_of_range(place: int) -> None:
    for wrong in (-1, 2**25):
        window = [1, 1, 1, 0, 0]
        window[place] = wrong
        with pytest.raises(Exception, match="Unfold: an attribute is out of range"):
            unfold_session(tuple(window))
