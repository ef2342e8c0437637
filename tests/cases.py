"""One table of named cases of the ONNX operators, and what tests need around it: arrays, tolerances, a comparison.

Every attribute and every optional input occurs with each operator that has it, alone and together, and every activation
function in every place of every cell. Tests iterate over `CASES`.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import reference
from layers import draw
from numpy.typing import NDArray

Array = NDArray[Any]

bfloat16: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
float16, float32, float64 = np.dtype("float16"), np.dtype("float32"), np.dtype("float64")
DTYPES = (float32, float64, float16, bfloat16)

# Allowed difference, relative to max(1, largest expected magnitude).
TOLERANCES: dict[np.dtype[Any], float] = {
    float64: 1e-10,  # the oracle's own arithmetic: only the order of sums differs
    float32: 1e-5,  # 2^-24 a rounding, sums of up to some hundred terms, carried over some steps
    float16: 2e-3,  # computed in float32 and rounded once: 2^-11 = 4.9e-4 of the value
    bfloat16: 2e-2,  # the same with 2^-8 = 3.9e-3
}

OPERATORS = ("RNN", "GRU", "LSTM")
OUTPUTS = {"RNN": ("Y", "Y_h"), "GRU": ("Y", "Y_h"), "LSTM": ("Y", "Y_h", "Y_c")}
INPUTS = {
    "RNN": ("X", "W", "R", "B", "sequence_lens", "initial_h"),
    "GRU": ("X", "W", "R", "B", "sequence_lens", "initial_h"),
    "LSTM": ("X", "W", "R", "B", "sequence_lens", "initial_h", "initial_c", "P"),
}
# optional inputs but sequence_lens
OPTIONAL = {"RNN": ("B", "initial_h"), "GRU": ("B", "initial_h"), "LSTM": ("B", "initial_h", "initial_c", "P")}
RUNTIME_INPUTS = ("X", "sequence_lens", "initial_h", "initial_c")  # the others are weights

# Exact in bfloat16, so that every dtype computes with the same parameters.
PARAMETERS: dict[str, tuple[float, ...]] = {
    "Affine": (0.75, 0.25),
    "LeakyRelu": (0.125,),
    "ThresholdedRelu": (0.25,),
    "ScaledTanh": (1.5, 0.625),
    "HardSigmoid": (0.375, 0.4375),
    "Elu": (0.625,),
}


def opset_dtypes(opset: int) -> tuple[np.dtype[Any], ...]:
    return DTYPES if opset >= 22 else DTYPES[:-1]


@dataclass(frozen=True)
class Case:
    name: str
    operator: str
    attributes: Mapping[str, Any] = field(default_factory=dict)
    inputs: tuple[str, ...] = ()  # the optional inputs that are given, but for sequence_lens
    lens: tuple[int, ...] | None = None  # sequence_lens
    T: int = 4
    N: int = 3
    I: int = 3
    H: int = 5
    opset: int = 22
    dtype: np.dtype[Any] = float32
    scale: float = 1.0  # of X

    @property
    def num_directions(self) -> int:
        return 2 if self.attributes.get("direction") == "bidirectional" else 1

    @property
    def layout(self) -> int:
        return int(self.attributes.get("layout", 0))

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of all inputs and outputs."""
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


def make_arrays(case: Case, dtype: np.dtype[Any] | None = None, seed: int | None = None) -> dict[str, Array]:
    """The inputs of a case by name, in the operator's order. States are non-zero; nothing saturates."""
    dtype = case.dtype if dtype is None else dtype
    rng = np.random.default_rng(zlib.crc32(case.name.encode()) if seed is None else seed)
    shapes = case.shapes()
    arrays: dict[str, Array] = {}
    for name in INPUTS[case.operator]:
        if name == "sequence_lens":
            if case.lens is not None:
                arrays[name] = np.array(case.lens, dtype=np.int32).reshape(shapes[name])
        elif name in ("X", "W", "R", *case.inputs):
            values = draw(rng, name, shapes[name])
            arrays[name] = (values * case.scale if name == "X" else values).astype(dtype)
    return arrays


def expected_outputs(case: Case, arrays: Mapping[str, Any], **changes: Any) -> tuple[Array, ...]:
    return reference.run(case.operator, **arrays, **{**case.attributes, **changes})


def assert_close(actual: Sequence[Array], expected: Sequence[Array], tolerance: float, what: object = "") -> None:
    """Same number, shapes, NaNs and infinities; no difference above tolerance * max(1, largest expected magnitude)."""
    assert len(actual) == len(expected)
    for name, given, wanted in zip(OUTPUTS["LSTM"], actual, expected, strict=False):
        assert isinstance(given, np.ndarray)
        assert given.shape == wanted.shape, f"{what} {name}"
        a, e = given.astype(np.float64), wanted.astype(np.float64)
        finite = np.isfinite(e)
        np.testing.assert_array_equal(a[~finite], e[~finite], err_msg=f"{what} {name}: NaN or infinity")
        scale = max(1.0, np.abs(e[finite]).max(initial=0.0))
        difference = np.abs(a[finite] - e[finite]).max(initial=0.0) / scale
        assert difference <= tolerance, f"{what} {name}: {difference:.3g} apart, allowed {tolerance:.3g}"


def make_node(case: Case, names: Collection[str]) -> onnx.NodeProto:
    """The case as a node whose inputs, of those in `names`, and outputs are called as in the operator text."""
    inputs = [name if name in names else "" for name in INPUTS[case.operator]]
    while not inputs[-1]:
        inputs.pop()
    attributes = {key: value for key, value in case.attributes.items() if value != []}  # a node cannot hold them
    return onnx.helper.make_node(case.operator, inputs, list(OUTPUTS[case.operator]), **attributes)


def activation_attributes(names: Sequence[str]) -> dict[str, Any]:
    """activations and the parameters that they consume, a little different at every place."""
    attributes: dict[str, Any] = {"activations": list(names)}
    for key, index, takers in (("activation_alpha", 0, reference.ALPHA), ("activation_beta", 1, reference.BETA)):
        values = [PARAMETERS[name][index] + 0.125 * place for place, name in enumerate(names) if name in takers]
        if values:
            attributes[key] = values
    return attributes


def _activation_cases() -> Iterator[Case]:
    """Every function in every place of every cell, the others at their defaults; then both directions mixed."""
    for operator in OPERATORS:
        default = reference.DEFAULT_ACTIVATIONS[operator]
        for place, letter in enumerate("fgh"[: len(default)]):
            for name in reference.ACTIVATIONS:
                names = [*default[:place], name, *default[place + 1 :]]
                yield Case(
                    f"{operator}-{letter}={name}", operator, activation_attributes(names), OPTIONAL[operator], (4, 2, 3)
                )
        names = list(reference.ACTIVATIONS)
        for first in range(0, len(names), 2):  # functions that share the parameter lists, a different set per direction
            chosen = [names[(first + 4 * k) % len(names)] for k in range(2 * len(default))]
            attributes = activation_attributes(chosen) | {"direction": "bidirectional"}
            yield Case(f"{operator}-activations-mixed-{first}", operator, attributes, OPTIONAL[operator], (4, 1, 3))
        for name in (n for n in reference.ALPHA if n != "ScaledTanh"):
            attributes = {"activations": [*default[:1], name, *default[2:]] if operator != "RNN" else [name]}
            # far enough out to be on both sides of the default threshold, 1
            yield Case(f"{operator}-default-parameters-{name}", operator, attributes, OPTIONAL[operator], scale=4.0)
        leaky = {"activations": ["LeakyRelu"] * 2 * len(default), "activation_alpha": [0.5]}
        yield Case(f"{operator}-alphas-run-out", operator, leaky | {"direction": "bidirectional"}, ("B",))
        # clipping puts values exactly on the jump of ThresholdedRelu, which belongs to x
        jump = {"activations": ["ThresholdedRelu", *default[1:]], "activation_alpha": [0.25], "clip": 0.25}
        yield Case(f"{operator}-clip-at-threshold", operator, jump, OPTIONAL[operator])
        yield Case(f"{operator}-lower-case", operator, {"activations": [n.lower() for n in default]}, ("B",))


def _attribute_cases() -> Iterator[Case]:
    """Each attribute and each optional input alone, then together."""
    own: dict[str, list[dict[str, Any]]] = {
        "RNN": [{}],
        "GRU": [{"linear_before_reset": 0}, {"linear_before_reset": 1}],
        "LSTM": [{"input_forget": 0}, {"input_forget": 1}],
    }
    for op in OPERATORS:
        yield Case(f"{op}-defaults", op)
        for name in OPTIONAL[op]:
            yield Case(f"{op}-only-{name}", op, {}, (name,))
        yield Case(f"{op}-only-sequence_lens", op, {}, (), (2, 4, 1))
        for flags in own[op]:
            tag = op + "".join(f"-{key}={value}" for key, value in flags.items())
            yield Case(f"{tag}-bias", op, flags, ("B",))
            yield Case(f"{tag}-no-bias", op, flags, OPTIONAL[op][1:])
            yield Case(f"{tag}-clip", op, flags | {"clip": 0.375}, OPTIONAL[op])
            yield Case(f"{tag}-hidden_size", op, flags | {"hidden_size": 5}, OPTIONAL[op])
            for direction in ("forward", "reverse", "bidirectional"):
                for layout in (0, 1):
                    attributes = flags | {"direction": direction, "layout": layout}
                    place = f"{tag}-{direction}-layout{layout}"
                    yield Case(f"{place}", op, attributes, OPTIONAL[op])
                    yield Case(f"{place}-lens", op, attributes, OPTIONAL[op], (0, 4, 2))
                    yield Case(f"{place}-clip-lens", op, attributes | {"clip": 0.25}, OPTIONAL[op], (3, 1, 4))
    everything = {"activations": ["Tanh", "Tanh"]}
    yield Case("RNN-schema-default-activations", "RNN", everything, ("B",))


def _size_cases() -> Iterator[Case]:
    """Sizes around vector widths and tiles, of each direction; and nothing at all in some dimension."""
    both = {"direction": "bidirectional"}
    for op in OPERATORS:
        for H in (1, 5, 8, 16, 17, 33, 64):
            for N in (1, 3, 7):
                I = 1 if H == 17 else 3
                yield Case(f"{op}-H{H}-N{N}", op, both if N == 3 else {}, OPTIONAL[op], None, 2, N, I, H)
        for T in (1, 2, 9):
            yield Case(f"{op}-T{T}", op, both, OPTIONAL[op], None, T, 3, 3, 17)
        yield Case(f"{op}-long", op, both, OPTIONAL[op], (130, 67), 130, 2, 3, 17)
        yield Case(f"{op}-wide", op, {}, OPTIONAL[op], None, 2, 19, 130, 40)
        yield Case(f"{op}-all-lens-full", op, both, OPTIONAL[op], (4, 4, 4))
        yield Case(f"{op}-all-lens-zero", op, both, OPTIONAL[op], (0, 0, 0))
        yield Case(f"{op}-ragged", op, both, OPTIONAL[op], (5, 0, 9, 1, 9, 2, 7), 9, 7, 3, 17)
        yield Case(f"{op}-N=0", op, both, OPTIONAL[op], (), 4, 0)
        yield Case(f"{op}-N=0-layout1", op, both | {"layout": 1}, OPTIONAL[op], None, 4, 0)
        yield Case(f"{op}-T=0", op, both, OPTIONAL[op], None, 0)
        yield Case(f"{op}-T=0-lens", op, {}, OPTIONAL[op], (0, 0, 0), 0)
        yield Case(f"{op}-I=0", op, both, OPTIONAL[op], (4, 0, 1), 4, 3, 0)
        yield Case(f"{op}-I=0-no-bias", op, {}, (), None, 4, 3, 0)
        yield Case(f"{op}-N=0-T=0-I=0", op, {}, OPTIONAL[op], None, 0, 0, 0)


def _opset_cases() -> Iterator[Case]:
    for op in OPERATORS:
        for opset in (1, 2, 3, 6, 7, 13, 14, 21, 22, 23):
            plain = Case(f"{op}-opset{opset}", op, {"direction": "bidirectional"}, OPTIONAL[op], (4, 2, 1), opset=opset)
            yield plain
            for value in (0, 1) if opset < 7 else ():
                attributes = {"direction": "reverse", "output_sequence": value}
                yield replace(plain, name=f"{plain.name}-output_sequence={value}", attributes=attributes)
            if op == "GRU" and opset >= 3:
                yield replace(plain, name=f"{plain.name}-linear_before_reset", attributes={"linear_before_reset": 1})
            if op == "LSTM":
                yield replace(plain, name=f"{plain.name}-input_forget", attributes={"input_forget": 1})


def _all_attributes_cases() -> Iterator[Case]:
    """Every attribute that an opset has, all at once."""
    for op in OPERATORS:
        names = ["HardSigmoid", *reference.DEFAULT_ACTIVATIONS[op][1:]] * 2
        common = activation_attributes(names) | {"clip": 1.5, "direction": "bidirectional", "hidden_size": 5}
        for opset in (1, 3, 7, 14, 22):
            own: dict[str, Any] = {"output_sequence": 1} if opset < 7 else {}
            own |= {"layout": 1} if opset >= 14 else {}
            own |= {"linear_before_reset": 1} if op == "GRU" and opset >= 3 else {}
            own |= {"input_forget": 1} if op == "LSTM" else {}
            yield Case(f"{op}-opset{opset}-all-attributes", op, common | own, OPTIONAL[op], (4, 0, 3), opset=opset)


CASES: tuple[Case, ...] = (
    *_attribute_cases(),
    *_activation_cases(),
    *_size_cases(),
    *_opset_cases(),
    *_all_attributes_cases(),
)
assert len({case.name for case in CASES}) == len(CASES)
