"""OpenVINO's CPU plugin as a witness: each of the six operations, compiled from its Python API, gives the numbers of
the oracle and of the library."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from layers import gate_count, random_arrays
from numpy.typing import NDArray
from openvino_layers import DEFAULTS

import pyrnnx.frontends.openvino as frontend
from pyrnnx import OPENVINO_CELL, OPENVINO_SEQUENCE, PyrnnxError, RecurrentOp
from pyrnnx.dtypes import INTEGERS
from pyrnnx.testing import reference

openvino = pytest.importorskip("openvino")
operations = pytest.importorskip("openvino.opset13")

Array = NDArray[Any]
T, N, I, H = 5, 3, 4, 7
CELLS = ("RNN", "GRU", "LSTM")
# float32 on both sides: sums of up to 12 terms in another order, vectorised exp and tanh of some units, 5 steps
TOLERANCE = 5e-6
LENGTHS = {"full": (T,) * N, "mixed": (T, 0, 3), "zero": (0,) * N}


@dataclass(frozen=True)
class Case:
    name: str
    cell: str
    attributes: Mapping[str, Any] = field(default_factory=dict)
    lens: tuple[int, ...] = LENGTHS["mixed"]
    step: bool = False

    @property
    def function(self) -> str:
        """The name of the operation, there and here."""
        return f"{self.cell.lower()}_{'cell' if self.step else 'sequence'}"


def make_arrays(case: Case, dtype: Any = np.float32, length_dtype: Any = np.int32) -> list[Array]:
    """Inputs in port order."""
    flags = {key: case.attributes[key] for key in ("direction", "linear_before_reset") if key in case.attributes}
    convention, steps = (OPENVINO_CELL, 1) if case.step else (OPENVINO_SEQUENCE, T)
    op = RecurrentOp(case.cell, H, **flags)
    arrays = random_arrays(op, (steps, N, I), dtype, convention=convention, lens=case.lens, seed=case.name)
    if not case.step:
        arrays["sequence_lengths"] = arrays["sequence_lengths"].astype(length_dtype)
    return [*arrays.values()]


def run_there(
    case: Case,
    arrays: list[Array],
    *,
    shapes: Mapping[int, list[int]] | None = None,
    constants: bool = False,
    **changes: Any,
) -> tuple[Array, ...]:
    """Through OpenVINO: every array an input of its own shape, or of one in `shapes`; W, R and B constants if asked."""
    first_weight = len(arrays) - 3
    parameters, inputs = [], []
    for k, a in enumerate(arrays):
        if constants and k >= first_weight:
            inputs.append(operations.constant(a))
            continue
        parameters.append(operations.parameter((shapes or {}).get(k, list(a.shape)), a.dtype.type))
        inputs.append(parameters[-1])
    attributes = {"hidden_size": H, "activations": DEFAULTS[case.cell], **case.attributes, **changes}
    if case.step:
        attributes = {"activations_alpha": [], "activations_beta": [], **attributes}
    else:
        attributes.setdefault("direction", "forward")
    node = getattr(operations, case.function)(*inputs, **attributes)
    model = openvino.Model([operations.result(output) for output in node.outputs()], parameters, "one")
    # every result is asked for, so that none of them is optimised away; float32 also where the CPU has bfloat16
    compiled = openvino.Core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    results = compiled(arrays[: len(parameters)])
    return tuple(np.array(results[k]) for k in range(len(node.outputs())))


def run_here(case: Case, arrays: list[Array], **changes: Any) -> tuple[Array, ...]:
    function: Callable[..., Any] = getattr(frontend, case.function)
    outputs = function(*arrays, **{**case.attributes, **changes})
    return outputs if isinstance(outputs, tuple) else (outputs,)


def run_oracle(case: Case, arrays: list[Array]) -> tuple[Array, ...]:
    kind = case.function.replace("_", "")
    newest = max((row.first_opset, name) for name, row in frontend.OPERATIONS.items() if row.type.lower() == kind)
    return reference.run(newest[1], *arrays, **case.attributes)


def difference(a: tuple[Array, ...], b: tuple[Array, ...]) -> float:
    assert [x.shape for x in a] == [x.shape for x in b]
    return max(float(np.abs(x.astype(np.float64) - y).max()) for x, y in zip(a, b, strict=True))


def table() -> Iterator[Case]:
    for cell in CELLS:
        flags: list[dict[str, Any]] = [{}, {"linear_before_reset": True}] if cell == "GRU" else [{}]
        for flag in flags:
            tag = "-".join([cell, *flag])
            for direction in ("forward", "reverse", "bidirectional"):
                for name, lens in LENGTHS.items():
                    yield Case(f"{tag}-{direction}-{name}", cell, {**flag, "direction": direction}, lens)
                yield Case(f"{tag}-{direction}-clip", cell, {**flag, "direction": direction, "clip": 0.25})
            yield Case(f"{tag}-cell", cell, flag, step=True)
            yield Case(f"{tag}-cell-clip", cell, {**flag, "clip": 0.25}, step=True)
    others = {
        "RNN": ["relu", "sigmoid"],
        "GRU": ["tanh relu", "relu sigmoid"],
        "LSTM": ["tanh relu sigmoid", "relu tanh relu"],
    }
    for cell, lists in others.items():
        for names in lists:
            attributes = {"activations": names.split()}
            yield Case(f"{cell}-{names}", cell, {**attributes, "direction": "bidirectional"})
            yield Case(f"{cell}-cell-{names}", cell, attributes, step=True)


CASES = tuple(table())
each_cell = pytest.mark.parametrize("cell", CELLS)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_same_numbers(case: Case) -> None:
    arrays = make_arrays(case)
    here, there = run_here(case, arrays), run_there(case, arrays)
    assert difference(there, here) <= TOLERANCE
    assert difference(there, run_oracle(case, arrays)) <= TOLERANCE
    if case.lens != LENGTHS["zero"]:
        assert all(np.abs(y).max() > 0.01 for y in here)  # and they are numbers
    if "clip" in case.attributes:
        assert difference(run_here(case, arrays, clip=None), here) > 1000 * TOLERANCE  # the clip is felt


@each_cell
def test_constant_weights(cell: str) -> None:
    """The plugin has another way for these than for weights that are inputs."""
    case = Case(f"{cell}-constant", cell, {"direction": "bidirectional"})
    arrays = make_arrays(case)
    assert difference(run_there(case, arrays, constants=True), run_here(case, arrays)) <= TOLERANCE


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_types_of_lengths(dtype: str) -> None:
    case = Case(f"LSTM-{dtype}", "LSTM")
    arrays = make_arrays(case, length_dtype=dtype)
    assert difference(run_there(case, arrays), run_here(case, arrays)) <= TOLERANCE


@each_cell
def test_float16_is_float32_rounded(cell: str) -> None:
    case = Case(f"{cell}-float16", cell)
    arrays = make_arrays(case, np.float16)
    # both compute in float32; values next to the middle of two float16 may go either way: 2^-10 below 1
    assert difference(run_there(case, arrays), run_here(case, arrays)) <= 2**-10


@each_cell
def test_nan_stays_in_its_row(cell: str) -> None:
    case = Case(f"{cell}-nan", cell)
    arrays = make_arrays(case)
    arrays[0][0, 1, 1] = np.nan
    for there, here in zip(run_there(case, arrays), run_here(case, arrays), strict=True):
        np.testing.assert_array_equal(np.isnan(there), np.isnan(here))
        assert np.isnan(here).any()
        np.testing.assert_allclose(there, here, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("clip", [0.0, float("inf")])
def test_no_clip(clip: float) -> None:
    case = Case(f"LSTM-clip={clip}", "LSTM", {"clip": clip})
    arrays = make_arrays(case)
    assert difference(run_there(case, arrays), run_here(case, arrays, clip=None)) <= TOLERANCE
    assert difference(run_here(case, arrays), run_here(case, arrays, clip=None)) == 0


# Where OpenVINO does something else than the text says, each with what it does (measured on 2026.4.1)


@each_cell
@pytest.mark.parametrize("open_axes", [[-1, -1, I], [N, -1, I], [-1, T, I]], ids=["batch and time", "time", "batch"])
def test_there_lengths_are_ignored_if_a_dimension_of_x_is_dynamic(cell: str, open_axes: list[int]) -> None:
    """Text: sequence_lengths "specifies real sequence lengths for each batch element". So here; there not, if weights
    are constant as they are in models."""
    case = Case(f"{cell}-dynamic", cell)
    arrays = make_arrays(case)
    there = run_there(case, arrays, shapes={0: open_axes}, constants=True)
    all_steps = list(arrays)
    all_steps[-4] = np.full(N, T, np.int32)
    assert difference(there, run_here(case, all_steps)) <= TOLERANCE
    assert difference(there, run_here(case, arrays)) > 0.01


@each_cell
def test_there_float64_is_computed_in_float32(cell: str) -> None:
    case = Case(f"{cell}-float64", cell)
    arrays = make_arrays(case, np.float64)
    there, here = run_there(case, arrays), run_here(case, arrays)
    assert 1e-10 < difference(there, here) <= TOLERANCE
    single = run_here(case, [a.astype(np.float32) if a.dtype == np.float64 else a for a in arrays])
    assert difference(single, here) > 1e-10  # the error of float32, which here float64 does not have


@each_cell
def test_there_hidden_size_is_not_used(cell: str) -> None:
    """Text: "hidden_size specifies hidden state size". One that contradicts R is an error here."""
    case = Case(f"{cell}-hidden_size", cell)
    arrays = make_arrays(case)
    assert difference(run_there(case, arrays, hidden_size=H + 2), run_here(case, arrays)) <= TOLERANCE
    with pytest.raises(PyrnnxError, match=f"hidden_size={gate_count(cell) * (H + 2)}"):
        run_here(case, arrays, hidden_size=H + 2)


@pytest.mark.parametrize("name", ["hardsigmoid", "elu", "leakyrelu", "affine"])
def test_there_activations_beyond_the_text_are_an_error(name: str) -> None:
    """Text: "any combination of relu, sigmoid, tanh", though with alpha and beta. Here ONNX's others run too."""
    case = Case(f"RNN-{name}", "RNN", {"activations": [name], "activations_alpha": [0.25], "activations_beta": [0.5]})
    arrays = make_arrays(case)
    with pytest.raises(RuntimeError, match=r"activation function|Unsupported"):
        run_there(case, arrays)
    assert np.isfinite(run_here(case, arrays)[0]).all()


def test_there_negative_clip_is_taken() -> None:
    """Text: "a positive floating-point number". An error here."""
    case = Case("LSTM-negative-clip", "LSTM")
    arrays = make_arrays(case)
    run_there(case, arrays, clip=-1.0)
    with pytest.raises(PyrnnxError, match="clip is -1"):
        run_here(case, arrays, clip=-1.0)
