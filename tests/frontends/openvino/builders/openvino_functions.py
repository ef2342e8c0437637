"""The six operations as a table of cases, and the oracle by axis orders, gate orders and bias sums written out here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from layers import float32, random_arrays

import pyrnnx.frontends.openvino as frontend
from pyrnnx import ACTIVATIONS, OPENVINO_CELL, OPENVINO_SEQUENCE, Direction, RecurrentOp
from pyrnnx.conventions import OPENVINO_CELL_1, OPENVINO_SEQUENCE_1
from pyrnnx.testing import reference
from pyrnnx.testing.cases import PARAMETERS
from pyrnnx.testing.numbers import Array

T, N, I, H = 5, 4, 3, 6
CELLS = ("RNN", "GRU", "LSTM")
ORDERS = {"RNN": "i", "GRU": "zrh", "LSTM": "fico"}  # of gates
DEFAULTS = {"RNN": ("tanh",), "GRU": ("sigmoid", "tanh"), "LSTM": ("sigmoid", "tanh", "tanh")}


@dataclass(frozen=True)
class Case:
    name: str
    cell: str
    attributes: Mapping[str, Any] = field(default_factory=dict)
    lens: tuple[int, ...] = (T, 0, 2, 1)
    step: bool = False  # RNNCell and so on, instead of RNNSequence and so on
    peepholes: bool = False

    @property
    def function(self) -> Callable[..., Any]:
        function: Callable[..., Any] = getattr(frontend, f"{self.cell.lower()}_{'cell' if self.step else 'sequence'}")
        return function

    @property
    def num_directions(self) -> int:
        return 2 if str(self.attributes.get("direction", "")).lower() == "bidirectional" else 1


def make_arrays(case: Case, dtype: np.dtype[Any] = float32) -> dict[str, Any]:
    """Inputs in port order, by OpenVINO's names."""
    direction = (Direction.FORWARD, Direction.BIDIRECTIONAL)[case.num_directions - 1]
    lbr = bool(case.attributes.get("linear_before_reset"))
    conventions = (OPENVINO_CELL, OPENVINO_CELL_1) if case.step else (OPENVINO_SEQUENCE, OPENVINO_SEQUENCE_1)
    arrays = random_arrays(
        RecurrentOp(case.cell, H, direction, linear_before_reset=lbr),
        (1 if case.step else T, N, I),
        dtype,
        convention=conventions[case.peepholes],
        peepholes=case.peepholes,
        lens=case.lens,
        seed=case.name,
    )
    if not case.step:
        arrays["sequence_lengths"] = arrays["sequence_lengths"].astype(np.int64)
    return arrays


def run(case: Case, arrays: Mapping[str, Any], **changes: Any) -> tuple[Array, ...]:
    outputs = case.function(*arrays.values(), **{**case.attributes, **changes})
    return outputs if isinstance(outputs, tuple) else (outputs,)


# From OpenVINO's arrangement to the oracle's (ONNX, layout 0), and back.


def gate(a: Array, cell: str, letter: str) -> Array:
    """[D, H, ...]: the block of a gate in W, R or a summed B."""
    k = ORDERS[cell].index(letter)
    return a[:, k * H : (k + 1) * H]


def onnx_weights(case: Case, arrays: Mapping[str, Any]) -> dict[str, Any]:
    W, R, B = (arrays[name][np.newaxis] if case.step else arrays[name] for name in "WRB")
    if case.cell == "LSTM":
        W, R, B = (np.concatenate([gate(a, "LSTM", g) for g in "iofc"], axis=1) for a in (W, R, B))
    if case.attributes.get("linear_before_reset"):
        z, r, Wb_h, Rb_h = (B[:, k * H : (k + 1) * H] for k in range(4))
        zero = np.zeros_like(z)
        B = np.concatenate([z, r, Wb_h, zero, zero, Rb_h], axis=1)
    else:
        B = np.concatenate([B, np.zeros_like(B)], axis=1)
    weights = {"W": W, "R": R, "B": B}
    if case.peepholes:
        P = arrays["P"][np.newaxis] if case.step else arrays["P"]
        f, i, o = (P[:, k * H : (k + 1) * H] for k in range(3))
        weights["P"] = np.concatenate([i, o, f], axis=1)
    return weights


def onnx_attributes(case: Case) -> dict[str, Any]:
    """Parameters stand at their function's place; ONNX takes them one after the other, for each direction anew."""
    given = {key: value for key, value in case.attributes.items() if key not in ("hidden_size", "clip", "opset")}
    attributes: dict[str, Any] = {}
    if case.attributes.get("clip") not in (None, 0, np.inf):
        attributes["clip"] = case.attributes["clip"]
    attributes["direction"] = str(given.pop("direction", "forward")).lower()
    attributes["input_forget"] = int(given.pop("input_forget", False))
    attributes["linear_before_reset"] = int(given.pop("linear_before_reset", False))
    canonical = {name.lower(): name for name in ACTIVATIONS}
    names = [canonical[name.lower()] for name in given.pop("activations", None) or DEFAULTS[case.cell]]
    attributes["activations"] = names * case.num_directions
    for key, takers in (("alpha", reference.ALPHA), ("beta", reference.BETA)):
        values = list(given.pop(f"activations_{key}", ()))
        values = [values[k] if k < len(values) else takers[name] for k, name in enumerate(names) if name in takers]
        attributes[f"activation_{key}"] = values * case.num_directions
    assert not given
    return attributes


def expected(case: Case, arrays: Mapping[str, Any]) -> tuple[Array, ...]:
    time_first = {"X": arrays["X"], "initial_h": arrays["H"], "initial_c": arrays.get("C")}
    for name, a in time_first.items():
        if a is not None:
            time_first[name] = (a[np.newaxis] if case.step else a.swapaxes(0, 1)).astype(np.float64)
    outputs = reference.run(
        case.cell,
        **time_first,
        **onnx_weights(case, arrays),
        sequence_lens=None if case.step else arrays["sequence_lengths"],
        **onnx_attributes(case),
        **({"coupled_gate": "i"} if case.cell == "LSTM" else {}),  # as OpenVINO's own reference has it
    )
    Y, *states = outputs
    if case.step:
        return tuple(state[0] for state in states)
    return (Y.transpose(2, 1, 0, 3), *(state.transpose(1, 0, 2) for state in states))


# The table


def table() -> Iterator[Case]:
    lengths = {"mixed": (T, 0, 2, 1), "zero": (0,) * N, "full": (T,) * N, "one": (1,) * N}
    for cell in CELLS:
        flags: list[dict[str, Any]] = [{}, {"linear_before_reset": True}] if cell == "GRU" else [{}]
        for flag in flags:
            tag = "-".join([cell, *flag])
            for direction in ("forward", "reverse", "bidirectional"):
                for clip in (None, 0.375):
                    for name, lens in lengths.items():
                        attributes = {**flag, "direction": direction, "clip": clip}
                        yield Case(f"{tag}-{direction}-clip={clip}-{name}", cell, attributes, lens)
            for clip in (None, 0.375):
                yield Case(f"{tag}-cell-clip={clip}", cell, {**flag, "clip": clip}, step=True)
            for step in (False, True):
                if cell == "LSTM":
                    yield from first_version_cases("-cell" if step else "", step)
                yield from activation_cases(cell, flag, f"{tag}{'-cell' if step else ''}", step)


def first_version_cases(tag: str, step: bool) -> Iterator[Case]:
    """LSTMSequence-1 and LSTMCell-1: P in the order f, i, o, and input_forget."""
    for peepholes in (False, True):
        for forget in (False, True):
            for clip in (None, 0.375):
                attributes: dict[str, Any] = {"opset": 3 if step else 4, "input_forget": forget, "clip": clip}
                name = f"LSTM-1{tag}-peepholes={peepholes}-input_forget={forget}-clip={clip}"
                for direction in () if step else ("reverse", "bidirectional"):
                    more = {**attributes, "direction": direction}
                    yield Case(f"{name}-{direction}", "LSTM", more, step=step, peepholes=peepholes)
                yield Case(name, "LSTM", attributes, step=step, peepholes=peepholes)
    for function in ACTIVATIONS:  # of the gates, and so of the one that is 1 minus the other
        attributes = {"opset": 1, "input_forget": True, "clip": 0.75, "activations": [function, "tanh", "tanh"]}
        for key, value in zip(("alpha", "beta"), PARAMETERS.get(function, ()), strict=False):
            attributes[f"activations_{key}"] = [value]
        yield Case(f"LSTM-1{tag}-input_forget-{function}", "LSTM", attributes, step=step, peepholes=True)


def activation_cases(cell: str, flag: dict[str, Any], tag: str, step: bool) -> Iterator[Case]:
    both = {} if step else {"direction": "bidirectional"}
    for place in range(len(DEFAULTS[cell])):
        for name in ("relu", "sigmoid", "tanh"):  # those of the specification
            names = [*DEFAULTS[cell][:place], name, *DEFAULTS[cell][place + 1 :]]
            yield Case(f"{tag}-{place}={name}", cell, {**flag, **both, "activations": names}, step=step)
        for name in PARAMETERS:  # alpha and beta stand at the function's own place
            names = [*DEFAULTS[cell][:place], name, *DEFAULTS[cell][place + 1 :]]
            attributes: dict[str, Any] = {**flag, **both, "activations": names}
            for key, value in zip(("alpha", "beta"), PARAMETERS[name], strict=False):
                attributes[f"activations_{key}"] = [7.0] * place + [value]  # those of places before it mean nothing
            yield Case(f"{tag}-{place}={name}", cell, attributes, step=step)
    names = ["Elu", "HardSigmoid", "LeakyRelu"][: len(DEFAULTS[cell])]
    yield Case(f"{tag}-default parameters", cell, {**flag, **both, "activations": names}, step=step)
    attributes = {**flag, **both, "activations": names, "activations_alpha": [0.5, 0.25, 0.125][: len(names)]}
    yield Case(f"{tag}-all alphas", cell, attributes, step=step)


CASES = tuple(table())
assert len({case.name for case in CASES}) == len(CASES)
