"""ONNX Runtime confirms the oracle and the functions, for cases in which it follows the operators' text."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from kinds import kinds
from layers import bfloat16, float64
from peers import run_onnxruntime
from rows import few_rows

import pyrnnx.frontends.onnx as frontend
from pyrnnx import reference
from pyrnnx.testing.cases import CASES, Case, expected_outputs, make_arrays
from pyrnnx.testing.numbers import assert_close, tolerance_of
from pyrnnx.testing.onnx_models import make_model

pytest.importorskip("onnxruntime")

# Both sides compute in float32; ONNX Runtime's sigmoid and tanh are rational approximations good to some 1e-7.
TOLERANCE = 1e-5


def functions(case: Case) -> list[reference.Activation]:
    keys = {"names": "activations", "alphas": "activation_alpha", "betas": "activation_beta"}
    arguments = {argument: case.attributes.get(key, ()) for argument, key in keys.items()}
    directions = reference.resolve_activations(case.operator, case.num_directions, **arguments)
    return [function for direction in directions for function in direction]


def lacks_alphas(case: Case) -> bool:
    takers = [function.name for function in functions(case) if function.name in reference.ALPHA]
    return bool({"ThresholdedRelu", "Affine"} & {*takers[len(case.attributes.get("activation_alpha", ())) :]})


def clips_to_a_threshold(case: Case) -> bool:
    thresholds = [abs(function.alpha) for function in functions(case) if function.name == "ThresholdedRelu"]
    return case.attributes.get("clip") in thresholds


# Cases that ONNX Runtime computes differently, or not at all.
DIFFERENCES: dict[str, Callable[[Case], bool]] = {
    "an empty input may end the process": lambda case: 0 in (case.T, case.N, case.I),
    "hidden_size must be written": lambda case: "hidden_size" not in case.attributes,
    "layout 1 and opsets below 7 are not implemented": lambda case: case.layout == 1 or case.opset < 7,
    "float64 and bfloat16 are not implemented": lambda case: case.dtype in (float64, bfloat16),
    "default alphas are 0 instead of 1": lacks_alphas,
    "ThresholdedRelu is 0 at x = alpha, where clipping puts values": clips_to_a_threshold,
    "Softplus of a large argument is NaN": lambda case: case.name.endswith("large-values-Softplus"),
    "RNN knows one spelling of activations": lambda case: case.name in ("RNN-lower-case", "RNN-upper-case"),
    "GRU and LSTM with B swallow a NaN": lambda case: (
        case.nan == "row" and case.operator != "RNN" and "B" in case.inputs
    ),
}
COMMON = [case for case in CASES if not any(applies(case) for applies in DIFFERENCES.values())]
assert len(COMMON) > 0.6 * len(CASES)


@few_rows("case", kinds(COMMON), COMMON)
def test_case(case: Case) -> None:
    arrays = make_arrays(case)
    witness = run_onnxruntime(make_model(case, arrays), arrays)
    tolerance = max(TOLERANCE, tolerance_of(case.dtype))  # float16 is rounded
    assert_close(witness, expected_outputs(case, arrays), tolerance, "the oracle")
    function = getattr(frontend, case.operator.lower())
    assert_close(function(**arrays, **case.attributes, opset=case.opset), witness, tolerance, "the library")
