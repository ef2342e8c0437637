"""OpenVINO's operations in the oracle, against ONNX's with arrays rearranged by hand, and against OpenVINO itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from openvino_functions import CASES, DEFAULTS, Case, expected, make_arrays

from pyrnnx.testing import reference
from pyrnnx.testing.numbers import Array

VERSIONS = {"RNNCell": 1, "GRUCell": 3, "LSTMCell": 4, "RNNSequence": 5, "GRUSequence": 5, "LSTMSequence": 5}


def run(case: Case, arrays: dict[str, Any], **changes: Any) -> tuple[Array, ...]:
    attributes = dict(case.attributes)
    kind = f"{case.cell}{'Cell' if case.step else 'Sequence'}"
    version = min(VERSIONS[kind], attributes.pop("opset", 16))
    if version != VERSIONS[kind]:
        version = 1
    return reference.run(f"{kind}-{version}", *arrays.values(), **{**attributes, **changes})


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_same_as_onnx_operators(case: Case) -> None:
    arrays = make_arrays(case, np.dtype(np.float64))
    found, wanted = run(case, arrays), expected(case, arrays)
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-14)  # the biases are summed in another order


@pytest.mark.parametrize("step", [False, True], ids=["sequence", "cell"])
@pytest.mark.parametrize("cell", DEFAULTS)
def test_positions_names_and_defaults(cell: str, step: bool) -> None:
    case = Case(f"{cell}-oracle", cell, step=step)
    arrays = make_arrays(case)
    kind = f"{cell}{'Cell' if step else 'Sequence'}"
    by_name = reference.run(f"{kind}-{VERSIONS[kind]}", **arrays, activations=DEFAULTS[cell])
    for one, other in zip(run(case, arrays), by_name, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("cell", DEFAULTS)
def test_a_cell_is_a_sequence_of_one_step(cell: str) -> None:
    arrays = make_arrays(Case(f"{cell}-one step", cell, step=True))
    kind = f"{cell}Cell"
    *states, values = reference.run(f"{kind}-{VERSIONS[kind]}", **arrays, clip=0.375, steps=True)
    sequence = {name: a[:, np.newaxis] if name in "XHC" else a[np.newaxis] for name, a in arrays.items()}
    sequence["sequence_lengths"] = np.ones(len(arrays["X"]), np.int64)
    Y, *last, more = reference.run(f"{cell}Sequence-5", **sequence, clip=0.375, steps=True)
    for one, other in zip(states, last, strict=True):
        np.testing.assert_array_equal(one, other[:, 0])
    np.testing.assert_array_equal(states[0], Y[:, 0, 0])
    assert values.keys() == more.keys()
    for name, array in values.items():
        assert array.shape == (1, 1, *states[0].shape)
        np.testing.assert_array_equal(array, more[name])
