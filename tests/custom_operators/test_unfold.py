"""The custom operator Unfold inside sessions: shapes, and what it refuses; convolutions compare its windows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from sessions import FLOAT, model, session

from pyrnnx.layers.custom_operators import DOMAIN, UNFOLD

X = np.arange(1, 43, dtype=np.float32).reshape(2, 7, 3)
NAMES = ("kernel", "stride", "dilation", "pad_begin", "pad_end")


def unfold_session(window: tuple[int, ...], element: int = FLOAT) -> Any:
    attributes: dict[str, Any] = dict(zip(NAMES, window, strict=True))
    node = helper.make_node(UNFOLD, ["x"], ["y"], domain=DOMAIN, **attributes)
    return session(model([node], [("x", element)], [("y", element)]))


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
