"""Calls of PyTorch modules without gradients, and comparisons of two modules; needs PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

DOUBLE = {"dtype": torch.float64}
TOLERANCE = 1e-12  # float64: sums in another order


def outputs(module: Any, *arguments: Any) -> list[Any]:
    with torch.no_grad():
        Y, last = module(*arguments)
    return [Y, *(last if isinstance(last, tuple) else (last,))]


def assert_same(fast: Any, module: Any, *arguments: Any) -> None:
    for ours, theirs in zip(outputs(fast, *arguments), outputs(module, *arguments), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=TOLERANCE)


def outcome(module: Any, *arguments: Any) -> Any:
    """Return the outputs, or the type and message of the error."""
    try:
        return outputs(module, *arguments)
    except Exception as error:
        return [type(error), str(error)]
