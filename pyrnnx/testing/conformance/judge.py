"""Verdicts on a runtime's results, compared with the oracle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pyrnnx.comparison.agreement import Rule, in_range
from pyrnnx.comparison.distances import element_distances
from pyrnnx.comparison.steps import first_index
from pyrnnx.errors import printable, shortened
from pyrnnx.testing.cases import OUTPUTS, Case, expected_outputs, make_arrays
from pyrnnx.testing.numbers import Array, numpy_dtype
from pyrnnx.testing.runtimes import Execution

STATUSES = ("right", "wrong", "refused", "crashed", "timed out", "not expressible")
FAILURES = ("wrong", "crashed", "timed out")  # a refusal is an answer: the caller knows


@dataclass(frozen=True, eq=False)
class Verdict:
    """One case, run by one runtime and judged.

    Attributes
    ----------
    case : Case
    status : str
        One of `STATUSES`.
    detail : str
        One line: what differs, or what was raised; empty if there is nothing to say.
    output : str
        Name of the first output that is wrong, else "".
    difference : float or None
        The largest of that output; None if shape, dtype, NaN or infinity differ.
    """

    case: Case
    status: str
    detail: str = ""
    output: str = ""
    difference: float | None = None

    @property
    def failed(self) -> bool:
        """True if the result is neither right nor a refusal."""
        return self.status in FAILURES

    def to_dict(self) -> dict[str, Any]:
        """Return values of JSON, without those that are empty."""
        values = {"detail": self.detail, "output": self.output, "difference": self.difference}
        return {"status": self.status} | {key: value for key, value in values.items() if value not in ("", None)}


def expectation(case: Case) -> tuple[Array, ...]:
    """Return the oracle's outputs of a case with its own arrays, in float64."""
    return expected_outputs(case, make_arrays(case))


def judge(execution: Execution, expected: Sequence[Array] | None = None) -> Verdict:
    """Judge whether an execution is right, within the tolerance of its dtype.

    Parameters
    ----------
    execution : Execution
    expected : sequence of ndarray, optional
        Result of `expectation` for its case, if already computed.

    Returns
    -------
    Verdict
        "right" or "wrong" if the case ran, else the status of the execution. Missing outputs (None) are not judged, but
        a run without any output is wrong.
    """
    case, status = execution.case, execution.status
    if status != "ran":
        return Verdict(case, status, printable(shortened(execution.detail.strip())))
    outputs, names = execution.outputs, OUTPUTS[case.operator]
    if len(outputs) != len(names):
        return Verdict(case, "wrong", f"{len(outputs)} outputs, expected {len(names)}: {', '.join(names)}")
    if all(output is None for output in outputs):
        return Verdict(case, "wrong", "no output")
    arrays = {name: np.asarray(array) for name, array in zip(names, outputs, strict=True) if array is not None}
    for name, right in zip(names, expectation(case) if expected is None else expected, strict=True):
        if name in arrays:
            detail, difference = _compared(arrays[name], right, case.dtype)
            if detail:
                return Verdict(case, "wrong", f"{name}: {detail}", name, difference)
    missing = [name for name in names if name not in arrays]
    return Verdict(case, "right", f"missing outputs: {', '.join(missing)}" if missing else "")


def _compared(output: Array, right: Array, dtype: str) -> tuple[str, float | None]:
    """Return what is wrong with an output, "" if nothing is, and the largest difference."""
    if output.shape != right.shape:
        return f"shape {output.shape}, expected {right.shape}", None
    if output.dtype != numpy_dtype(dtype):
        return f"dtype {output.dtype}, expected {dtype}", None
    right = in_range(right, dtype)
    distance = element_distances(output, right).distance
    unlike, largest = np.isinf(distance), float(distance.max(initial=0.0))
    if unlike.any():
        count = int(unlike.sum())
        rest = f", and {count - 1} more" if count > 1 else ""
        return f"{_first(unlike, output, right)}{rest}", None
    allowed = Rule().of_all(right, dtype)
    if largest <= allowed:
        return "", largest
    first = _first(distance == largest, output, right)
    return f"largest difference {largest:.3g}: {first} (allowed {allowed:.3g})", largest


def _first(mask: Array, output: Array, right: Array) -> str:
    index = first_index(mask)
    return f"{float(output[index]):.6g} at [{', '.join(map(str, index))}], expected {right[index]:.6g}"
