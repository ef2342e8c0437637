"""IRs of scripted PyTorch modules, whose Python loops and choices become Loop and If; torch itself is the witness."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from openvino_irs import TOLERANCE, check, openvino, save, types_in

from pyrnnx.frontends.openvino import read_model

pytestmark = pytest.mark.torch
N, I, H = 2, 3, 4


def module(torch: Any) -> Any:
    Module: Any = torch.nn.Module

    class Steps(Module):  # type: ignore[misc]
        """A cell written out, over as many steps as there are; Y is reversed where the sum of x is below 0."""

        def __init__(self) -> None:
            super().__init__()
            self.input, self.state = torch.nn.Linear(I, H), torch.nn.Linear(H, H)

        def forward(self, x, h):  # type: ignore[no-untyped-def]
            rows = []
            for t in range(x.size(0)):
                h = torch.tanh(self.input(x[t]) + self.state(h))
                rows.append(h)
            Y = torch.stack(rows)
            if bool(x.sum() < 0):
                Y = Y.flip(0)
            return Y, h

    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of script, which nothing else keeps loops as
        return torch.jit.script(Steps().eval())


def test_python_loops_and_choices(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    scripted = module(torch)
    rng = np.random.default_rng(1)
    given = [rng.uniform(-1, 1, (5, N, I)).astype(np.float32), rng.uniform(-1, 1, (N, H)).astype(np.float32)]
    path = save(openvino.convert_model(scripted, example_input=tuple(map(torch.from_numpy, given))), tmp_path)
    assert {kind for kind, _ in types_in(path)} >= {"Loop", "If"}
    signs = set()
    for steps in (1, 4, 9):
        for sign in (-1, 1):
            x = np.resize(given[0], (steps, N, I)) + np.float32(3 * sign)
            with torch.no_grad():
                expected = [one.numpy() for one in scripted(torch.from_numpy(x), torch.from_numpy(given[1]))]
            signs.add(bool(x.sum() < 0))
            check(path, [x, given[1]], expected=expected)
            np.testing.assert_allclose(next(iter(read_model(path)(x, given[1]).values())), expected[0], atol=TOLERANCE)
    assert signs == {True, False}
