"""What a runtime gave for a case, beside what the oracle gives."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pyrnnx.errors import printable, shortened
from pyrnnx.testing.cases import OUTPUTS, Case, expected_outputs, make_arrays
from pyrnnx.testing.numbers import Array, numpy_dtype, tolerance_of
from pyrnnx.testing.runtimes import Execution, Runtime, execute

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
        The largest of that output; None where shape, dtype, NaN or infinity tell it apart.
    outputs : mapping of str to ndarray
        What was given, where it is wrong; no part of `to_dict`.
    """

    case: Case
    status: str
    detail: str = ""
    output: str = ""
    difference: float | None = None
    outputs: Mapping[str, Array] = field(default_factory=dict)

    @property
    def failed(self) -> bool:
        """Whether something else than a right answer or a refusal came of it."""
        return self.status in FAILURES

    def to_dict(self) -> dict[str, Any]:
        """What JSON holds, without what is empty."""
        given = {"detail": self.detail, "output": self.output, "difference": self.difference}
        return {"status": self.status} | {key: value for key, value in given.items() if value not in ("", None)}


def expectation(case: Case) -> tuple[Array, ...]:
    """The oracle's outputs of a case with its own arrays, in float64."""
    return expected_outputs(case, make_arrays(case))


def rounded(outputs: Array, dtype: str) -> Array:
    """The oracle's numbers in a dtype; infinite beyond its range."""
    with np.errstate(over="ignore"):
        return outputs.astype(numpy_dtype(dtype))


@contextmanager
def executing(runtime: Runtime, cases: Iterable[Case], timeout: float) -> Iterator[Iterator[Execution]]:
    """`execute` as a block, with which its process ends, whatever ends it."""
    executions = execute(runtime, cases, timeout=timeout)
    try:
        yield executions
    finally:
        if isinstance(executions, Generator):
            executions.close()


def judge(execution: Execution, expected: Sequence[Array] | None = None) -> Verdict:
    """Whether an execution is right, within the tolerance of its dtype.

    Parameters
    ----------
    execution : Execution
    expected : sequence of ndarray, optional
        What `expectation` gives of its case, if that is at hand.

    Returns
    -------
    Verdict
        "right" or "wrong" of a case that ran, else the status of the execution. An output that the runtime left out
        (None) is not judged; one that leaves out all of them is wrong.
    """
    case, status = execution.case, execution.status
    if status != "ran":
        return Verdict(case, status, printable(shortened(execution.detail.strip())))
    outputs, names = execution.outputs, OUTPUTS[case.operator]
    if len(outputs) != len(names):
        return Verdict(case, "wrong", f"{len(outputs)} outputs, expected {len(names)}: {', '.join(names)}")
    if all(output is None for output in outputs):
        return Verdict(case, "wrong", "no output at all")
    for name, given, wanted in zip(names, outputs, expectation(case) if expected is None else expected, strict=True):
        if given is not None:
            detail, difference = _compared(np.asarray(given), wanted, case.dtype)
            if detail:
                there = {name: np.asarray(one) for name, one in zip(names, outputs, strict=True) if one is not None}
                return Verdict(case, "wrong", f"{name}: {detail}", name, difference, there)
    left_out = [name for name, output in zip(names, outputs, strict=True) if output is None]
    return Verdict(case, "right", f"left out: {', '.join(left_out)}" if left_out else "")


def _compared(given: Array, wanted: Array, dtype: str) -> tuple[str, float | None]:
    """What is wrong with an output, "" if nothing is, and the largest difference."""
    if given.shape != wanted.shape:
        return f"shape {given.shape}, expected {wanted.shape}", None
    if given.dtype != numpy_dtype(dtype):
        return f"dtype {given.dtype}, expected {dtype}", None
    in_range, values = rounded(wanted, dtype).astype(np.float64), given.astype(np.float64)
    wanted = np.where(np.isinf(in_range), in_range, wanted)
    finite = np.isfinite(wanted)
    strange = np.where(finite, ~np.isfinite(values), (values != wanted) & ~(np.isnan(values) & np.isnan(wanted)))
    if strange.any():
        index, count = _first(strange), int(strange.sum())
        more = f", and {count - 1} more" if count > 1 else ""
        return f"{values[index]:.6g} at {_place(index)}, expected {wanted[index]:.6g}{more}", None
    differences = np.abs(np.where(finite, values - np.where(finite, wanted, 0.0), 0.0))
    largest = float(differences.max(initial=0.0))
    allowed = tolerance_of(dtype) * max(1.0, float(np.abs(wanted[finite]).max(initial=0.0)))
    if largest <= allowed:
        return "", largest
    index = _first(differences == largest)
    where = f"{values[index]:.6g} at {_place(index)}, expected {wanted[index]:.6g}"
    return f"largest difference {_number(largest)}: {where} (allowed {_number(allowed)})", largest


def _first(mask: Array) -> tuple[int, ...]:
    return tuple(int(place) for place in np.argwhere(mask)[0])


def _place(index: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, index))}]"


def _number(value: float) -> str:
    return f"{value:.3g}" if math.isfinite(value) else str(value)
