"""Case of one recurrent operator, and the features that it may use."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyrnnx import reference
from pyrnnx.operator.op import CellName
from pyrnnx.testing.cases.operators import INPUTS, OPERATORS, OPTIONAL, STEPS, version_of


@dataclass(frozen=True)
class Case:
    """One call of a recurrent operator, without its arrays, which `make_arrays` generates.

    Attributes
    ----------
    name : str
        Seeds the arrays.
    operator : str
        "RNN", "GRU" or "LSTM" of ONNX, or an operation of OpenVINO with its version: "LSTMSequence-5".
    attributes : mapping
        Attributes by the names in the operator's text. Missing ones are not written.
    inputs : tuple of str
        The optional inputs in use, except sequence_lens.
    lens : tuple of int or None
        sequence_lens, or None if absent. OpenVINO's sequences require it: None means length T for every row.
    T, N, I, H : int
        seq_length, batch_size, input_size, hidden_size; T is 1 for a cell of OpenVINO.
    opset : int
        Opset of ONNX; for an operation of OpenVINO, the opset that introduced it.
    dtype : str
        "float32", "float64", "float16" or "bfloat16".
    scale : float
        Scale of X, whose values are between -1 and 1 times this.
    nan : str
        Position of NaN in X: "padding" (every step beyond a row's length), "row" (one step of one row) or "".
    feature : str
        Subject of a named case: a key of `FEATURES`.
    tells : str
        A sentence on the mistake that this case detects.
    source : str
        Reference to the operator's text: "LSTM-14, attribute clip".
    """

    name: str
    operator: str
    attributes: Mapping[str, Any] = field(default_factory=dict)
    inputs: tuple[str, ...] = ()
    lens: tuple[int, ...] | None = None
    T: int = 4
    N: int = 3
    I: int = 3
    H: int = 5
    opset: int = 22
    dtype: str = "float32"
    scale: float = 1.0
    nan: str = ""
    feature: str = ""
    tells: str = ""
    source: str = ""

    def __hash__(self) -> int:  # attributes are a mapping, which has none
        return hash((self.name, self.operator, self.inputs, self.lens, self.T, self.N, self.I, self.H, self.dtype))

    @property
    def family(self) -> str:
        """Operator family: "ONNX" or "OpenVINO"."""
        return "ONNX" if self.operator in OPERATORS else "OpenVINO"

    @property
    def cell(self) -> CellName:
        """Recurrent cell: "RNN", "GRU" or "LSTM"."""
        return next(cell for cell in OPERATORS if self.operator.startswith(cell))

    @property
    def num_directions(self) -> int:
        return 2 if str(self.attributes.get("direction")).lower() == "bidirectional" else 1

    @property
    def layout(self) -> int:
        return int(self.attributes.get("layout", 0))

    @property
    def given(self) -> tuple[str, ...]:
        """The inputs that it has, in the operator's order."""
        left_out = {*OPTIONAL[self.operator]} - {*self.inputs}
        if self.family == "ONNX" and self.lens is None:
            left_out.add("sequence_lens")
        return tuple(name for name in INPUTS[self.operator] if name not in left_out)

    @property
    def features(self) -> tuple[str, ...]:
        """The feature of a named case; of any other case every feature of the table that it uses."""
        if self.feature:
            return (self.feature,)
        return tuple(row.label for row in FEATURES.values() if row.used(self)) or ("defaults",)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shapes of all inputs and outputs."""
        if self.family == "OpenVINO":
            return _openvino_shapes(self)
        D, G, T, N, I, H = self.num_directions, reference.GATES[self.operator], self.T, self.N, self.I, self.H
        state = (N, D, H) if self.layout else (D, N, H)
        return {
            "X": (N, T, I) if self.layout else (T, N, I),
            "W": (D, G * H, I),
            "R": (D, G * H, H),
            "B": (D, 2 * G * H),
            "sequence_lens": (N,),
            "initial_h": state,
            "initial_c": state,
            "P": (D, 3 * H),
            "Y": (N, T, D, H) if self.layout else (T, D, N, H),
            "Y_h": state,
            "Y_c": state,
        }


def _openvino_shapes(case: Case) -> dict[str, tuple[int, ...]]:
    D, G, T, N, I, H = case.num_directions, reference.GATES[case.cell], case.T, case.N, case.I, case.H
    blocks = 4 if case.attributes.get("linear_before_reset") else G  # a summed B, but Wb and Rb of gate h are separate
    weights = {"W": (G * H, I), "R": (G * H, H), "B": (blocks * H,), "P": (3 * H,)}
    if case.operator in STEPS:
        return {"X": (N, I), **dict.fromkeys(("H", "C", "Ho", "Co"), (N, H)), **weights}
    states = dict.fromkeys(("H", "C", "Ho", "Co"), (N, D, H))
    whole = {"X": (N, T, I), "sequence_lengths": (N,), "Y": (N, D, T, H)}
    return {**whole, **states, **{name: (D, *shape) for name, shape in weights.items()}}


@dataclass(frozen=True)
class Feature:
    """Subject of a named case.

    Attributes
    ----------
    label : str
        Name; for an argument the name in ONNX's text, also for OpenVINO's operations.
    meaning : str
        Behaviour of a runtime that has the feature.
    used : callable
        Whether a case uses it.
    """

    label: str
    meaning: str
    used: Callable[[Case], bool]


def _never(case: Case) -> bool:
    return False


def _given(name: str, own: str = "") -> Callable[[Case], bool]:
    """Return a test of whether a case has an input; `own` is its name in OpenVINO."""

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
    """Return the number of alphas and of betas."""
    plural = "activation" if case.family == "ONNX" else "activations"
    alphas, betas = (len(case.attributes.get(f"{plural}_{key}", ())) for key in ("alpha", "beta"))
    return alphas, betas


def _default_parameters(case: Case) -> bool:
    taken = [sum(name in takers for name in _functions(case)) for takers in (reference.ALPHA, reference.BETA)]
    return any(count > available for count, available in zip(taken, _alphas_and_betas(case), strict=True))


def _in_other_letters(case: Case) -> bool:
    names = case.attributes.get("activations", ())
    if case.family == "OpenVINO":
        direction = case.attributes.get("direction", "")
        return any(name != name.lower() for name in (*names, direction))
    return any(name not in reference.ACTIVATIONS for name in names)


_ROWS = (
    Feature("defaults", "no attribute and no optional input", _never),
    Feature("B", "biases of W and R", _given("B")),
    Feature("initial_h", "state before the first step", _given("initial_h", "H")),
    Feature("initial_c", "cell state before the first step", _given("initial_c", "C")),
    Feature("P", "peepholes of an LSTM", _given("P")),
    Feature("sequence_lens", "rows of different lengths; Y is zero beyond them", lambda case: case.lens is not None),
    Feature(
        "sequence_lens with reverse",
        "each row runs backwards over its valid steps",
        lambda case: case.lens is not None and _backward(case),
    ),
    Feature("length 0", "rows without steps have zeros as results", lambda case: 0 in (case.lens or ()) and case.T > 0),
    Feature("reverse", "from the last step to the first", lambda case: _backward(case) and case.num_directions == 1),
    Feature("bidirectional", "both directions, each with its weights", lambda case: case.num_directions == 2),
    Feature("layout=1", "batch first", lambda case: case.layout == 1),
    Feature("hidden_size left out", "read from the shape of R", lambda case: "hidden_size" not in case.attributes),
    Feature("clip", "bounds of the inputs of f and g", _attribute("clip")),
    Feature("activations", "any function for any gate", _attribute("activations")),
    Feature("activation_alpha/beta", "parameters of the activations", lambda case: any(_alphas_and_betas(case))),
    Feature("default activation parameters", "those of the ONNX operators with these names", _default_parameters),
    Feature("names in any case", "activations, and OpenVINO's directions, in upper or lower case", _in_other_letters),
    Feature("linear_before_reset", "a GRU applies its reset gate after the product", _attribute("linear_before_reset")),
    Feature("input_forget", "coupled gates of an LSTM", _attribute("input_forget")),
    Feature("opset 1 to 6", "the oldest versions", lambda case: case.family == "ONNX" and case.opset < 7),
    Feature("float64", "computed in float64", lambda case: case.dtype == "float64"),
    Feature("float16", "widened, summed in float32 and rounded once", lambda case: case.dtype == "float16"),
    Feature("bfloat16", "widened, summed in float32 and rounded once", lambda case: case.dtype == "bfloat16"),
    Feature("sizes of 1", "one step, row, input or unit", lambda case: 1 in (case.T, case.N, case.I, case.H)),
    Feature("large sizes", "more than 16 rows, inputs or units", lambda case: max(case.N, case.I, case.H) > 16),
    Feature("long sequences", "more than a hundred steps", lambda case: case.T > 100),
    Feature("empty batch", "N = 0; results have that shape", lambda case: case.N == 0),
    Feature("T = 0", "no steps; states are zeros", lambda case: case.T == 0),
    Feature("input_size 0", "only the recurrence", lambda case: case.I == 0),
    Feature("large values", "functions of large arguments", lambda case: case.scale > 50),
    Feature("NaN in padding", "values beyond a row's length are not read", lambda case: case.nan == "padding"),
    Feature("NaN in a row", "reaches the results of its own row and no others", lambda case: case.nan == "row"),
    Feature("all together", "many attributes and inputs at once", _never),
)
FEATURES = {row.label: row for row in _ROWS}


# Named cases

# Exact in bfloat16, so that every dtype computes with the same parameters.
PARAMETERS: dict[str, tuple[float, ...]] = {
    "Affine": (0.75, 0.25),
    "LeakyRelu": (0.125,),
    "ThresholdedRelu": (0.25,),
    "ScaledTanh": (1.5, 0.625),
    "HardSigmoid": (0.375, 0.4375),
    "Elu": (0.625,),
}
BOTH = {"direction": "bidirectional"}


def named(
    operator: str,
    name: str,
    feature: str,
    fails_if: str,
    place: str,
    attributes: Mapping[str, Any] | None = None,
    inputs: tuple[str, ...] | None = None,
    lens: tuple[int, ...] | None = None,
    **fields: Any,
) -> Case:
    """Build the case OPERATOR-NAME of one feature; `place` is the part of the operator's text: "attribute clip".

    It has all optional inputs by default, and hidden_size except in the case that omits it.
    """
    written = {} if feature == "hidden_size left out" else {"hidden_size": fields.get("H", Case.H)}
    return Case(
        f"{operator}-{name}",
        operator,
        {**(attributes or {}), **written},
        OPTIONAL[operator] if inputs is None else inputs,
        lens,
        feature=feature,
        tells=f"Fails if {fails_if}.",
        source=f"{version_of(operator, fields.get('opset', Case.opset))}, {place}",
        **fields,
    )


def activation_attributes(names: Sequence[str]) -> dict[str, Any]:
    """Return `activations` and the parameters they consume, slightly different at every place."""
    attributes: dict[str, Any] = {"activations": list(names)}
    for key, index, takers in (("activation_alpha", 0, reference.ALPHA), ("activation_beta", 1, reference.BETA)):
        values = [PARAMETERS[name][index] + 0.125 * place for place, name in enumerate(names) if name in takers]
        if values:
            attributes[key] = values
    return attributes


def replaced(names: Sequence[str], place: int, name: str) -> list[str]:
    """Return names with another one at a place."""
    return [*names[:place], name, *names[place + 1 :]]
