"""The features of the recurrent operators that cases are for, a row each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyrnnx.testing import reference

if TYPE_CHECKING:
    from pyrnnx.testing.cases.case import Case


@dataclass(frozen=True)
class Feature:
    """What a named case is for.

    Attributes
    ----------
    label : str
        An argument of ONNX's text where it is one, for OpenVINO's operations, too.
    meaning : str
        What a runtime does that has it.
    used : callable
        Whether a case uses it.
    """

    label: str
    meaning: str
    used: Callable[[Case], bool]


def _never(case: Case) -> bool:
    return False


def _given(name: str, own: str = "") -> Callable[[Case], bool]:
    """Whether the input is given; `own` is its name in OpenVINO."""

    def used(case: Case) -> bool:
        return (name if case.family == "ONNX" else own or name) in case.given

    return used


def _attribute(name: str) -> Callable[[Case], bool]:
    return lambda case: bool(case.attributes.get(name))


def _backward(case: Case) -> bool:
    return str(case.attributes.get("direction")).lower() in ("reverse", "bidirectional")


def _functions(case: Case) -> list[str]:
    canonical = {name.lower(): name for name in reference.ACTIVATIONS}
    return [canonical[name.lower()] for name in case.attributes.get("activations", ())]


def _alphas_and_betas(case: Case) -> tuple[int, int]:
    """How many of each are given."""
    plural = "activation" if case.family == "ONNX" else "activations"
    alphas, betas = (len(case.attributes.get(f"{plural}_{key}", ())) for key in ("alpha", "beta"))
    return alphas, betas


def _default_parameters(case: Case) -> bool:
    taken = [sum(name in takers for name in _functions(case)) for takers in (reference.ALPHA, reference.BETA)]
    return any(count > given for count, given in zip(taken, _alphas_and_betas(case), strict=True))


def _spelt_otherwise(case: Case) -> bool:
    names = case.attributes.get("activations", ())
    if case.family == "OpenVINO":
        direction = case.attributes.get("direction", "")
        return any(name != name.lower() for name in (*names, direction))
    return any(name not in reference.ACTIVATIONS for name in names)


_ROWS = (
    Feature("defaults", "no attribute and no optional input: the equations alone", _never),
    Feature("B", "the biases of W and R", _given("B")),
    Feature("initial_h", "the state before the first step", _given("initial_h", "H")),
    Feature("initial_c", "the cell state before the first step", _given("initial_c", "C")),
    Feature("P", "peepholes of an LSTM", _given("P")),
    Feature("sequence_lens", "rows of different lengths, zero beyond them", lambda case: case.lens is not None),
    Feature(
        "sequence_lens with reverse",
        "the valid steps of each row, backwards",
        lambda case: case.lens is not None and _backward(case),
    ),
    Feature("length 0", "a row without steps: zeros", lambda case: 0 in (case.lens or ()) and case.T > 0),
    Feature("reverse", "from the last step to the first", lambda case: _backward(case) and case.num_directions == 1),
    Feature("bidirectional", "both directions, each with its weights", lambda case: case.num_directions == 2),
    Feature("layout=1", "batch first", lambda case: case.layout == 1),
    Feature("hidden_size left out", "as R tells it", lambda case: "hidden_size" not in case.attributes),
    Feature("clip", "bounds of what goes into f and g", _attribute("clip")),
    Feature("activations", "any function in any place", _attribute("activations")),
    Feature("activation_alpha/beta", "parameters of functions", lambda case: any(_alphas_and_betas(case))),
    Feature("default activation parameters", "those of the operators of these names", _default_parameters),
    Feature("names in any case", "activations, and OpenVINO's directions, in any letters", _spelt_otherwise),
    Feature("linear_before_reset", "the reset gate of a GRU after the product", _attribute("linear_before_reset")),
    Feature("input_forget", "coupled gates of an LSTM", _attribute("input_forget")),
    Feature("opset 1 to 6", "the oldest versions", lambda case: case.family == "ONNX" and case.opset < 7),
    Feature("float64", "computed as such", lambda case: case.dtype == "float64"),
    Feature("float16", "widened, summed in float32 and rounded once", lambda case: case.dtype == "float16"),
    Feature("bfloat16", "widened, summed in float32 and rounded once", lambda case: case.dtype == "bfloat16"),
    Feature("sizes of 1", "one step, row, input or unit", lambda case: 1 in (case.T, case.N, case.I, case.H)),
    Feature("large sizes", "more than 16 rows, inputs or units", lambda case: max(case.N, case.I, case.H) > 16),
    Feature("long sequences", "more than a hundred steps", lambda case: case.T > 100),
    Feature("empty batch", "N = 0: results of that shape", lambda case: case.N == 0),
    Feature("T = 0", "no steps: zeros", lambda case: case.T == 0),
    Feature("input_size 0", "the recurrence alone", lambda case: case.I == 0),
    Feature("large values", "functions at their ends", lambda case: case.scale > 50),
    Feature("NaN in padding", "what lies beyond a row's length is not read", lambda case: case.nan == "padding"),
    Feature("NaN in a row", "it reaches the results of its row and no others", lambda case: case.nan == "row"),
    Feature("all together", "many attributes and inputs at once", _never),
)
FEATURES = {row.label: row for row in _ROWS}


def features_used(case: Case) -> tuple[str, ...]:
    """The labels of the features that a case uses, in the order of the table."""
    return tuple(row.label for row in _ROWS if row.used(case)) or ("defaults",)
