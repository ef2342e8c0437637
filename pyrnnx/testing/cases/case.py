"""A case: one recurrent operator with attributes, optional inputs and sizes; its arrays, and what it should give."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from pyrnnx.scalars import integer
from pyrnnx.testing import reference
from pyrnnx.testing.cases.features import features_used
from pyrnnx.testing.numbers import DTYPES, Array, numpy_dtype

OPERATORS = ("RNN", "GRU", "LSTM")  # of ONNX
# The operations of OpenVINO, by the specification's names of their versions.
SEQUENCES = ("RNNSequence-5", "GRUSequence-5", "LSTMSequence-5", "LSTMSequence-1")
STEPS = ("RNNCell-1", "GRUCell-3", "LSTMCell-4", "LSTMCell-1")  # one step of a cell, without the axes T and D
OPERATIONS = (*SEQUENCES, *STEPS)

# Inputs in the order of the operator's text.
INPUTS = {
    "RNN": ("X", "W", "R", "B", "sequence_lens", "initial_h"),
    "GRU": ("X", "W", "R", "B", "sequence_lens", "initial_h"),
    "LSTM": ("X", "W", "R", "B", "sequence_lens", "initial_h", "initial_c", "P"),
    "RNNSequence-5": ("X", "H", "sequence_lengths", "W", "R", "B"),
    "GRUSequence-5": ("X", "H", "sequence_lengths", "W", "R", "B"),
    "LSTMSequence-5": ("X", "H", "C", "sequence_lengths", "W", "R", "B"),
    "LSTMSequence-1": ("X", "H", "C", "sequence_lengths", "W", "R", "B", "P"),
    "RNNCell-1": ("X", "H", "W", "R", "B"),
    "GRUCell-3": ("X", "H", "W", "R", "B"),
    "LSTMCell-4": ("X", "H", "C", "W", "R", "B"),
    "LSTMCell-1": ("X", "H", "C", "W", "R", "B", "P"),
}
OUTPUTS = {
    "RNN": ("Y", "Y_h"),
    "GRU": ("Y", "Y_h"),
    "LSTM": ("Y", "Y_h", "Y_c"),
    "RNNSequence-5": ("Y", "Ho"),
    "GRUSequence-5": ("Y", "Ho"),
    "LSTMSequence-5": ("Y", "Ho", "Co"),
    "LSTMSequence-1": ("Y", "Ho", "Co"),
    "RNNCell-1": ("Ho",),
    "GRUCell-3": ("Ho",),
    "LSTMCell-4": ("Ho", "Co"),
    "LSTMCell-1": ("Ho", "Co"),
}
# optional inputs but sequence_lens
OPTIONAL: dict[str, tuple[str, ...]] = {
    "RNN": ("B", "initial_h"),
    "GRU": ("B", "initial_h"),
    "LSTM": ("B", "initial_h", "initial_c", "P"),
    **dict.fromkeys(OPERATIONS, ()),
    "LSTMSequence-1": ("P",),
    "LSTMCell-1": ("B", "P"),
}
RUNTIME_INPUTS = ("X", "sequence_lens", "initial_h", "initial_c")  # of ONNX; the others are weights
LENGTHS, STATES = ("sequence_lens", "sequence_lengths"), ("initial_h", "initial_c", "H", "C")


def draw(rng: np.random.Generator, name: str, shape: Sequence[int]) -> Array:
    """An array in float64 for the argument of that name."""
    values: Array = rng.uniform(-1, 1, shape)
    if name in STATES:
        values = np.copysign(0.25 + 0.75 * np.abs(values), values)
    scales = {"W": max(shape[-1], 1) ** -0.5, "R": max(shape[-1], 1) ** -0.5, "B": 0.5, "P": 0.5}
    values *= scales.get(name, 1.0)
    return values


# The opsets that introduced a version of ONNX's operators.
VERSIONS = {"RNN": (1, 7, 14, 22), "GRU": (1, 3, 7, 14, 22), "LSTM": (1, 7, 14, 22)}


def version_of(operator: str, opset: int) -> str:
    """The operator as an opset has it: "LSTM-14"; an operation of OpenVINO is named with its version anyway."""
    if operator in OPERATIONS:
        return operator
    return f"{operator}-{max(first for first in VERSIONS[operator] if first <= opset)}"


def opset_dtypes(opset: int) -> tuple[str, ...]:
    """What an opset of ONNX computes in."""
    return DTYPES if opset >= 22 else DTYPES[:-1]


@dataclass(frozen=True)
class Case:
    """One call of a recurrent operator, but for its arrays, which `make_arrays` makes of it.

    Attributes
    ----------
    name : str
        Seeds the arrays.
    operator : str
        "RNN", "GRU" or "LSTM" of ONNX, or an operation of OpenVINO with its version: "LSTMSequence-5".
    attributes : mapping
        As the operator's text names them. What is not here is not written.
    inputs : tuple of str
        The optional inputs that are given, but for sequence_lens.
    lens : tuple of int or None
        sequence_lens, or None: absent. A sequence of OpenVINO must have it, and None is the length T of every row.
    T, N, I, H : int
        seq_length, batch_size, input_size, hidden_size; T is 1 for a cell of OpenVINO.
    opset : int
        Of ONNX; of an operation of OpenVINO the opset that introduced it.
    dtype : str
        "float32", "float64", "float16" or "bfloat16".
    scale : float
        Of X, whose values lie between -1 and 1 times this.
    nan : str
        Where X is NaN: "padding" (every step beyond a row's length), "row" (one step of one row) or "".
    feature : str
        What it is for: a key of `FEATURES`, of a named case.
    tells : str
        In a sentence: what a wrong implementation does, that this case tells from a right one.
    source : str
        Where the operator's text asks for it: "LSTM-14, attribute clip".
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
        """ "ONNX" or "OpenVINO"."""
        return "ONNX" if self.operator in OPERATORS else "OpenVINO"

    @property
    def cell(self) -> str:
        """ "RNN", "GRU" or "LSTM"."""
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
        """Of a named case its feature; of any other every feature of the table that it uses."""
        return (self.feature,) if self.feature else features_used(self)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of all inputs and outputs."""
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
    blocks = (
        4 if case.attributes.get("linear_before_reset") else G
    )  # of a summed B: there Wb and Rb of gate h lie apart
    weights = {"W": (G * H, I), "R": (G * H, H), "B": (blocks * H,), "P": (3 * H,)}
    if case.operator in STEPS:
        return {"X": (N, I), **dict.fromkeys(("H", "C", "Ho", "Co"), (N, H)), **weights}
    states = dict.fromkeys(("H", "C", "Ho", "Co"), (N, D, H))
    whole = {"X": (N, T, I), "sequence_lengths": (N,), "Y": (N, D, T, H)}
    return {**whole, **states, **{name: (D, *shape) for name, shape in weights.items()}}


def make_arrays(case: Case, dtype: DTypeLike | None = None, seed: int | None = None) -> dict[str, Array]:
    """The inputs of a case by name, in the operator's order. States are non-zero; nothing saturates.

    They are a function of the case, of `dtype` (default: the case's) and of `seed` (default: of the case's name).

    Raises
    ------
    ArgumentError
        A seed that is no integer of 0 or above.
    """
    seed = zlib.crc32(case.name.encode()) if seed is None else integer("make_arrays", "seed", seed, 0)
    dtype = numpy_dtype(case.dtype if dtype is None else dtype)
    rng = np.random.default_rng(seed)
    shapes = case.shapes()
    arrays: dict[str, Array] = {}
    for name in case.given:
        if name in LENGTHS:
            lens = [case.T] * case.N if case.lens is None else case.lens
            arrays[name] = np.array(lens, np.int32 if case.family == "ONNX" else np.int64).reshape(shapes[name])
        else:
            values = draw(rng, name, shapes[name])
            arrays[name] = (values * case.scale if name == "X" else values).astype(dtype)
    if case.nan:
        _put_nan(case, arrays["X"])
    return arrays


def _put_nan(case: Case, X: Array) -> None:
    steps_first = X[np.newaxis] if X.ndim == 2 else X.swapaxes(0, 1) if case.layout or case.family == "OpenVINO" else X
    if case.nan == "row":
        steps_first[case.T // 2, case.N // 2, 0] = np.nan
    else:
        for row, length in enumerate(case.lens or ()):
            steps_first[length:, row] = np.nan


def expected_outputs(case: Case, arrays: Mapping[str, Any], **changes: Any) -> tuple[Array, ...]:
    """What the oracle gives, in float64; `changes` are arguments of its own, or attributes in place of the case's."""
    return reference.run(case.operator, **arrays, **{**case.attributes, **changes})
