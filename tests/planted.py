"""Functions that compute cases as the oracle does, except for one fault each."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any

from pyrnnx.testing.cases import Case, expected_outputs
from pyrnnx.testing.numbers import Array, numpy_dtype
from pyrnnx.testing.runtimes.models import ModelRuntime

Arrays = Mapping[str, Array]


def right(case: Case, arrays: Arrays, **changes: Any) -> list[Array]:
    return [output.astype(numpy_dtype(case.dtype)) for output in expected_outputs(case, arrays, **changes)]


def without(name: str, arrays: Arrays) -> Arrays:
    return {key: array for key, array in arrays.items() if key != name}


def clip_ignored_from_3_steps_on(case: Case, arrays: Arrays) -> list[Array]:
    return right(case, arrays, **({"clip": None} if case.T > 2 else {}))


def lens_ignored_in_reverse(case: Case, arrays: Arrays) -> list[Array]:
    backward = case.attributes.get("direction", "forward") != "forward"
    return right(case, without("sequence_lens", arrays) if backward else arrays)


def relu_is_sigmoid(case: Case, arrays: Arrays) -> list[Array]:
    names = [{"relu": "Sigmoid"}.get(name.lower(), name) for name in case.attributes.get("activations", ())]
    return right(case, arrays, **({"activations": names} if names else {}))


def float16_without_bias(case: Case, arrays: Arrays) -> list[Array]:
    return right(case, without("B", arrays) if case.dtype == "float16" else arrays)


def second_direction_forwards(case: Case, arrays: Arrays) -> list[Array]:
    outputs = right(case, arrays)
    if case.num_directions == 2:
        flipped = {**arrays, "X": arrays["X"][::-1]}
        outputs[0][:, 1] = right(case, flipped)[0][::-1, 1]
    return outputs


def four_wide(case: Case, arrays: Arrays) -> list[Array]:
    """Units beyond the fourth are zero."""
    outputs = right(case, arrays)
    for output in outputs:
        output[..., 4:] = 0
    return outputs


def dies_without_rows(case: Case, arrays: Arrays) -> list[Array]:
    if case.N == 0:
        os.abort()
    return right(case, arrays)


def hangs_with_layout(case: Case, arrays: Arrays) -> list[Array]:
    if case.layout:
        time.sleep(600)
    return right(case, arrays)


def refuses_peepholes(case: Case, arrays: Arrays) -> list[Array]:
    if "P" in arrays:
        raise NotImplementedError("peepholes <b>&| are not there\nsecond line")
    return right(case, arrays)


def hangs(case: Case, arrays: Arrays) -> list[Array]:
    time.sleep(600)
    return right(case, arrays)


NO_FUNCTION = 1
WHOLE = Case(
    "whole",
    "LSTM",
    {"direction": "bidirectional", "clip": 0.25, "hidden_size": 5, "activations": ["Sigmoid", "Relu", "Tanh"] * 2},
    ("B", "initial_h", "initial_c"),
    (4, 2, 1),
)


class HangingModels(ModelRuntime):
    """A runtime of whole models that gives no answer."""

    name, package = "hangs", "numpy"

    def run(self, case: Any, arrays: Arrays) -> tuple[Array, ...]:
        time.sleep(60)
        return ()
