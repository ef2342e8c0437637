"""Memory that the kernels read: weights of other shapes are an error, and time steps may be far apart."""

from __future__ import annotations

import mmap
import sys
from typing import Any

import numpy as np
import pytest
from layers import random_layer
from packed import packed_arguments
from rows import each_row

from pyrnnx import RecurrentOp, config
from pyrnnx._kernels import engines
from pyrnnx._kernels.packed_layer import PackedLayer

D, I, H = 2, 5, 6
F32 = np.float32


W = np.zeros((D, 4 * H, I), F32)
OTHER_ARRAYS: dict[str, dict[str, Any]] = {  # whose memory the kernels would read beyond its end
    "W of other rows": {"W": W[:, 1:].copy()},
    "W of one direction": {"W": W[:1].copy()},
    "W not contiguous": {"W": np.asfortranarray(W)},
    "W float64": {"W": W.astype(np.float64)},
    "R of other units": {"R": np.zeros((D, 4 * H, H + 1), F32)},
    "bias short": {"bias": np.zeros((D, H), F32)},
    "peepholes short": {"peepholes": np.zeros((D, H), F32)},
}


@each_row("name", OTHER_ARRAYS)
def test_other_arrays_are_rejected(name: str) -> None:
    with pytest.raises(ValueError, match="is not a"):
        PackedLayer(**packed_arguments("LSTM", I, H, D=D, **OTHER_ARRAYS[name]))


@pytest.mark.skipif(sys.platform != "linux", reason="needs a map that takes no memory until it is touched")
@each_row("step", [2**33, 2**34 + 12], ids=["low half zero", "low half fits"])
@each_row("isa", [*engines.supported(), "blas"])
def test_time_steps_farther_apart_than_a_c_int(monkeypatch: pytest.MonkeyPatch, isa: str, step: int) -> None:
    """BLAS takes distances as C ints: such an X is read row by row."""
    monkeypatch.setattr(config, "ISA", isa)
    no_reserve = 0x4000  # MAP_NORESERVE: the map may be larger than the memory
    space = mmap.mmap(-1, step + 12, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | no_reserve)
    X = np.lib.stride_tricks.as_strided(np.frombuffer(space, F32, 3), (2, 1, 3), (step, 12, 4), writeable=True)
    X[:] = np.arange(1, 7, dtype=F32).reshape(2, 1, 3)
    layer = random_layer(RecurrentOp("RNN", 4), 3)
    for far, near in zip(layer(X), layer(X.copy()), strict=True):
        # only the order of sums of 3 terms may differ, in BLAS; a wrong step is off by more than 1e-2
        np.testing.assert_allclose(far, near, rtol=0, atol=1e-6)
