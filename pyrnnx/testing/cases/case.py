"""Case of one recurrent operator, and the features that named cases test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyrnnx import reference
from pyrnnx.operator.op import CellName
from pyrnnx.testing.cases.operators import INPUTS, OPERATORS, OPTIONAL, STEPS


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
        Subject of a named case, a key of `FEATURES`; empty for random ones.
    tells : str
        A sentence on the mistake that this case detects.
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


# The subjects of named cases (for an argument the name in ONNX's text, also for OpenVINO's operations), and how a
# runtime behaves that has them.
FEATURES = {
    "defaults": "no attribute and no optional input",
    "B": "biases of W and R",
    "initial_h": "state before the first step",
    "initial_c": "cell state before the first step",
    "P": "peepholes of an LSTM",
    "sequence_lens": "rows of different lengths; Y is zero beyond them",
    "sequence_lens with reverse": "each row runs backwards over its valid steps",
    "length 0": "rows without steps have zeros as results",
    "reverse": "from the last step to the first",
    "bidirectional": "both directions, each with its weights",
    "layout=1": "batch first",
    "hidden_size left out": "read from the shape of R",
    "clip": "bounds of the inputs of f and g",
    "activations": "any function for any gate",
    "activation_alpha/beta": "parameters of the activations",
    "default activation parameters": "those of the ONNX operators with these names",
    "names in any case": "activations, and OpenVINO's directions, in upper or lower case",
    "linear_before_reset": "a GRU applies its reset gate after the product",
    "input_forget": "coupled gates of an LSTM",
    "opset 1 to 6": "the oldest versions",
    "float64": "computed in float64",
    "float16": "widened, summed in float32 and rounded once",
    "bfloat16": "widened, summed in float32 and rounded once",
    "sizes of 1": "one step, row, input or unit",
    "large sizes": "more than 16 rows, inputs or units",
    "long sequences": "more than a hundred steps",
    "empty batch": "N = 0; results have that shape",
    "T = 0": "no steps; states are zeros",
    "input_size 0": "only the recurrence",
    "large values": "functions of large arguments",
    "NaN in padding": "values beyond a row's length are not read",
    "NaN in a row": "reaches the results of its own row and no others",
    "all together": "many attributes and inputs at once",
}


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
    attributes: Mapping[str, Any] | None = None,
    inputs: tuple[str, ...] | None = None,
    lens: tuple[int, ...] | None = None,
    **fields: Any,
) -> Case:
    """Build the case OPERATOR-NAME of one feature.

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
