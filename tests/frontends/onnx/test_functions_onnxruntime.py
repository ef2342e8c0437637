"""ONNX Runtime as a witness for the oracle and the library, and the table of what it cannot be asked.

Each difference is shown to be real, so that the table shrinks when ONNX Runtime changes.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from layers import bfloat16, float64

import pyrnnx.frontends.onnx as frontend
from pyrnnx.testing import reference, strategies
from pyrnnx.testing.cases import CASES, OPERATORS, OPTIONAL, Case, expected_outputs, make_arrays
from pyrnnx.testing.numbers import Array, assert_close, tolerance_of
from pyrnnx.testing.onnx_models import make_model

onnxruntime = pytest.importorskip("onnxruntime")

# Both sides compute in float32; ONNX Runtime's sigmoid and tanh are rational approximations good to some 1e-7.
TOLERANCE = 1e-5


def run_onnxruntime(case: Case, arrays: dict[str, Array]) -> list[Array]:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(
        make_model(case, arrays).SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return list(session.run(None, arrays))


def functions(case: Case) -> list[reference.Activation]:
    keys = {"names": "activations", "alphas": "activation_alpha", "betas": "activation_beta"}
    given_ = {argument: case.attributes.get(key, ()) for argument, key in keys.items()}
    directions = reference.resolve_activations(case.operator, case.num_directions, **given_)
    return [function for direction in directions for function in direction]


def runs_out_of_alphas(case: Case, name: str) -> bool:
    takers = [function.name for function in functions(case) if function.name in reference.ALPHA]
    return name in takers[len(case.attributes.get("activation_alpha", ())) :]


def clips_to_a_threshold(case: Case) -> bool:
    thresholds = [abs(function.alpha) for function in functions(case) if function.name == "ThresholdedRelu"]
    return case.attributes.get("clip") in thresholds


def spells_names_otherwise(case: Case) -> bool:
    return not set(case.attributes.get("activations", ())) <= set(reference.ACTIVATIONS)


@dataclass(frozen=True)
class Difference:
    reason: str
    applies: Callable[[Case], bool]
    examples: list[Case]


def examples(operators: tuple[str, ...] = OPERATORS, attributes: Any = None, **fields: Any) -> list[Case]:
    attributes = {"hidden_size": Case.H, **(attributes or {})}
    return [Case(f"{op}-difference", op, attributes, OPTIONAL[op], **fields) for op in operators]


def all_activations(name: str) -> list[Case]:
    return [
        Case(f"{op}-{name}", op, {"activations": [name] * len(names), "hidden_size": Case.H}, OPTIONAL[op], scale=4.0)
        for op, names in reference.DEFAULT_ACTIVATIONS.items()
    ]


# cases of such arguments; those drawn have none
OVERFLOWING = ("RNN-large-values-Softplus", "GRU-large-values-Softplus")
DIFFERENCES = {
    "hidden_size": Difference(
        "it must be written, where the text has it optional",
        lambda c: "hidden_size" not in c.attributes,
        [case for case in CASES if case.feature == "hidden_size left out"],
    ),
    "layout": Difference("layout 1 is not implemented", lambda c: c.layout == 1, examples(attributes={"layout": 1})),
    "opset": Difference("operators older than 7 are not implemented", lambda c: c.opset < 7, examples(opset=6)),
    "double": Difference("float64 is not implemented", lambda c: c.dtype == float64, examples(dtype=float64)),
    "bfloat16": Difference("bfloat16 is not implemented", lambda c: c.dtype == bfloat16, examples(dtype=bfloat16)),
    "ThresholdedRelu default": Difference(
        "0 instead of the default alpha 1 of the operator ThresholdedRelu",
        lambda c: runs_out_of_alphas(c, "ThresholdedRelu"),
        all_activations("ThresholdedRelu"),
    ),
    "Affine default": Difference(
        "alpha 0 instead of the default 1 of the operator Affine",
        lambda c: runs_out_of_alphas(c, "Affine"),
        all_activations("Affine"),
    ),
    "threshold": Difference(
        "ThresholdedRelu is 0 at x = alpha where the text gives x; clipping puts values there",
        clips_to_a_threshold,
        [case for case in CASES if case.name.endswith("clip-at-threshold")],
    ),
    "Softplus": Difference(
        "NaN for a large argument, whose exp overflows",
        lambda c: c.name in OVERFLOWING,
        [case for case in CASES if case.name in OVERFLOWING],
    ),
    "RNN's spelling": Difference(
        "RNN knows activations by the spelling of the text only, GRU and LSTM know any",
        lambda c: c.operator == "RNN" and spells_names_otherwise(c),
        [case for case in CASES if case.name == "RNN-lower-case"],
    ),
    "NaN": Difference(
        "GRU and LSTM swallow a NaN in X when B is given",
        lambda c: c.nan == "row" and c.operator != "RNN" and "B" in c.inputs,
        [case for case in CASES if case.name in ("GRU-NaN-in-a-row-all-inputs", "LSTM-NaN-in-a-row-all-inputs")],
    ),
}
# An empty sequence, batch or input ends the process (std::terminate); the other operators and sizes are right.
ABORTS = {("GRU", "T"), ("GRU", "N"), ("GRU", "I"), ("LSTM", "N")}


def can_be_asked(case: Case) -> bool:
    return 0 not in (case.T, case.N, case.I) and not any(d.applies(case) for d in DIFFERENCES.values())


COMMON = [case for case in CASES if case.opset in (7, 14, 22) and can_be_asked(case)]


@pytest.mark.parametrize("case", COMMON, ids=lambda case: case.name)
def test_case(case: Case) -> None:
    arrays = make_arrays(case)
    witness = run_onnxruntime(case, arrays)
    tolerance = max(TOLERANCE, tolerance_of(case.dtype))  # float16 is rounded
    assert_close(witness, expected_outputs(case, arrays), tolerance, "the oracle")
    function = getattr(frontend, case.operator.lower())
    assert_close(function(**arrays, **case.attributes, opset=case.opset), witness, tolerance, "the library")


def test_most_cases_can_be_asked() -> None:
    assert len(COMMON) > 0.6 * len(CASES)


@pytest.mark.parametrize("operator", OPERATORS)
@settings(max_examples=150)  # each makes a session; more of them are held against the oracle alone
@given(data=st.data())
def test_drawn_case(operator: str, data: st.DataObject) -> None:
    case = data.draw(strategies.cases(operator, opsets=(7, 14, 22), dtypes=("float32",), smallest=1, layouts=(0,)))
    assume(can_be_asked(case))
    arrays = make_arrays(case)
    assume(not strategies.hangs_on_rounding(case, arrays))
    witness = run_onnxruntime(case, arrays)
    assert_close(witness, expected_outputs(case, arrays), TOLERANCE, "the oracle")
    function = getattr(frontend, operator.lower())
    assert_close(function(**arrays, **case.attributes, opset=case.opset), witness, TOLERANCE, "the library")


@pytest.mark.parametrize(
    ("difference", "case"),
    [(difference, case) for difference in DIFFERENCES.values() for case in difference.examples],
    ids=[f"{name}-{case.operator}" for name, difference in DIFFERENCES.items() for case in difference.examples],
)
def test_difference_is_real(difference: Difference, case: Case) -> None:
    assert difference.applies(case)
    arrays = make_arrays(case)
    expected = expected_outputs(case, arrays)
    try:
        witness = run_onnxruntime(case, arrays)
    except Exception as error:  # its errors have no common base
        assert type(error).__module__.startswith("onnxruntime"), error  # noqa: PT017 (or it ran, and differs)
        return
    with pytest.raises(AssertionError):
        assert_close(witness, expected, TOLERANCE)
    function = getattr(frontend, case.operator.lower())
    assert_close(function(**arrays, **case.attributes, opset=case.opset), expected, TOLERANCE)


@pytest.mark.parametrize("empty", ["T", "N", "I"])
@pytest.mark.parametrize("operator", OPERATORS)
def test_empty_input(tmp_path: Path, operator: str, empty: str) -> None:
    """In a process of its own, which some of them end."""
    attributes = {"direction": "bidirectional", "hidden_size": Case.H}
    full = Case(f"{operator}-{empty}", operator, attributes, OPTIONAL[operator])
    changes: dict[str, Any] = {empty: 0}
    case = replace(full, **changes)
    arrays: dict[str, Any] = {**make_arrays(case)}
    (tmp_path / "model.onnx").write_bytes(make_model(case, arrays).SerializeToString())
    np.savez(tmp_path / "inputs.npz", **arrays)
    program = (
        "import numpy, onnxruntime\n"
        "session = onnxruntime.InferenceSession('model.onnx', providers=['CPUExecutionProvider'])\n"
        "numpy.savez('outputs.npz', *session.run(None, dict(numpy.load('inputs.npz'))))"
    )
    result = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    if (operator, empty) in ABORTS:
        assert result.returncode != 0, "no longer so"
        return
    assert result.returncode == 0, result.stderr
    with np.load(tmp_path / "outputs.npz") as witness:
        assert_close(list(witness.values()), expected_outputs(case, arrays), TOLERANCE)
