"""Messages of a failed `assert_same`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pyrnnx import Layer
from pyrnnx.testing import assert_same

WIDTH = 76  # of 80 columns, what pytest leaves


def message(a: Any, b: Any, **options: Any) -> str:
    """In one line; that it has the width of a terminal is checked here."""
    with pytest.raises(AssertionError) as caught:
        assert_same(a, b, **options)
    assert all(len(line) <= WIDTH for line in str(caught.value).splitlines())
    return " ".join(str(caught.value).split())


def named(layer: Layer, function: Callable[..., Any], **inputs: Any) -> list[str]:
    """Return what the message says about a wrong implementation of a layer: what follows "as if"."""
    X = np.random.default_rng(0).normal(size=(6, 3, layer.weights["W"].shape[-1]))
    text = message(layer, function, inputs={"X": X, **inputs})
    start = "By its numbers, b computes that layer as if "
    if start not in text:
        assert " usual mistakes gives the numbers of b. Y" in text
        return []
    return text.partition(start)[2].partition(". Y")[0].split(", or as if ")
