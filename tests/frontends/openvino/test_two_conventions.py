"""One layer in both conventions: the same numbers after the axes are swapped, and other ones if a step is forgotten."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from layers import gate_count, random_inputs, random_weights
from numpy.typing import NDArray

from pyrnnx import Direction, PyrnnxError, RecurrentOp
from pyrnnx.frontends import onnx, openvino
from pyrnnx.testing import reference
from pyrnnx.testing.reference import DEFAULT_ACTIVATIONS

Array = NDArray[Any]
CELLS = ("RNN", "GRU", "LSTM")
DIRECTIONS = ("forward", "reverse", "bidirectional")
# Both sides run the same kernels on the same sums: Wb + Rb is exact, as biases are sixteenths.
EXACT = 0.0


@dataclass(frozen=True)
class Case:
    name: str
    cell: str
    direction: str = "bidirectional"
    lens: tuple[int, ...] = (5, 0, 2)
    activations: tuple[str, ...] = ()  # of one direction
    clip: float | None = None
    linear_before_reset: bool = False
    dtype: Any = np.float32
    sizes: tuple[int, int, int, int] = field(default=(5, 3, 4, 7))  # T, N, I, H: all different


def table() -> Iterator[Case]:
    for cell in CELLS:
        for lbr in (False, True) if cell == "GRU" else (False,):
            one = Case(cell + "-linear_before_reset" * lbr, cell, linear_before_reset=lbr)
            for direction in DIRECTIONS:
                for clip in (None, 0.375):
                    for lens in ((5, 5, 5), (5, 0, 2), (0, 0, 0)):
                        name = f"{one.name}-{direction}-clip={clip}-{lens}"
                        yield replace(one, name=name, direction=direction, clip=clip, lens=lens)
            for function in ("Relu", "Sigmoid", "Tanh"):
                for place in range(len(DEFAULT_ACTIVATIONS[cell])):
                    names = [*DEFAULT_ACTIVATIONS[cell]]
                    names[place] = function
                    yield replace(one, name=f"{one.name}-{place}={function}", activations=tuple(names))
            yield replace(one, name=f"{one.name}-float64", dtype=np.float64, clip=0.5)
            yield replace(one, name=f"{one.name}-square", sizes=(3, 3, 4, 4), lens=(3, 1, 2))


CASES = tuple(table())
each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
each_cell = pytest.mark.parametrize("cell", CELLS)


# One set of arrays, as ONNX has them; and what turns them into OpenVINO's.


def onnx_arrays(case: Case) -> dict[str, Any]:
    T, N, I, H = case.sizes
    op = RecurrentOp(case.cell, H, Direction(case.direction))
    inputs = random_inputs(op, (T, N, I), case.dtype, lens=case.lens, seed=case.name)
    return inputs | random_weights(op, I, case.dtype, exact_bias=True, seed=case.name)


def swapped(a: Array) -> Array:
    return np.ascontiguousarray(a.swapaxes(0, 1))


def reordered(a: Array, H: int) -> Array:
    """i, o, f, c -> f, i, c, o"""
    i, o, f, c = (a[:, k * H : (k + 1) * H] for k in range(4))
    return np.concatenate([f, i, c, o], axis=1)


def summed(B: Array, H: int, lbr: bool) -> Array:
    half = B.shape[1] // 2
    Wb, Rb = B[:, :half], B[:, half:]
    if lbr:
        return np.concatenate([(Wb + Rb)[:, : 2 * H], Wb[:, 2 * H :], Rb[:, 2 * H :]], axis=1)
    return Wb + Rb


def openvino_arrays(case: Case, arrays: dict[str, Any]) -> dict[str, Any]:
    """In port order."""
    H = case.sizes[3]
    weights = {"W": arrays["W"], "R": arrays["R"], "B": summed(arrays["B"], H, case.linear_before_reset)}
    if case.cell == "LSTM":
        weights = {name: reordered(a, H) for name, a in weights.items()}
    result = {"X": swapped(arrays["X"]), "H": swapped(arrays["initial_h"])}
    if case.cell == "LSTM":
        result["C"] = swapped(arrays["initial_c"])
    return {**result, "sequence_lengths": arrays["sequence_lens"].astype(np.int64), **weights}


def attributes(case: Case) -> tuple[dict[str, Any], dict[str, Any]]:
    """ONNX's, with one list of functions for each direction; OpenVINO's, with one for both."""
    D = 2 if case.direction == "bidirectional" else 1
    names = list(case.activations or DEFAULT_ACTIVATIONS[case.cell])
    first: dict[str, Any] = {"direction": case.direction, "activations": names * D}
    second: dict[str, Any] = {"direction": case.direction, "activations": [name.lower() for name in names]}
    if case.clip is not None:
        first["clip"] = second["clip"] = case.clip
    if case.linear_before_reset:
        first["linear_before_reset"], second["linear_before_reset"] = 1, True
    return first, second


def run_onnx(case: Case, arrays: dict[str, Any]) -> tuple[Array, ...]:
    outputs: tuple[Array, ...] = getattr(onnx, case.cell.lower())(**arrays, **attributes(case)[0])
    return outputs


def run_openvino(case: Case, arrays: dict[str, Any]) -> tuple[Array, ...]:
    outputs: tuple[Array, ...] = getattr(openvino, f"{case.cell.lower()}_sequence")(**arrays, **attributes(case)[1])
    return outputs


def as_onnx(outputs: tuple[Array, ...]) -> tuple[Array, ...]:
    Y, *states = outputs
    return (Y.transpose(2, 1, 0, 3), *(state.transpose(1, 0, 2) for state in states))


def difference(a: tuple[Array, ...], b: tuple[Array, ...]) -> float:
    assert [x.shape for x in a] == [x.shape for x in b]
    return max(float(np.abs(x.astype(np.float64) - y).max()) for x, y in zip(a, b, strict=True))


@each_case
def test_same_results(case: Case) -> None:
    arrays = onnx_arrays(case)
    outputs = run_onnx(case, arrays)
    assert difference(as_onnx(run_openvino(case, openvino_arrays(case, arrays))), outputs) == EXACT
    if any(case.lens):
        assert all(np.abs(y).max() > 0.01 for y in outputs)


@each_case
def test_both_agree_with_the_oracle(case: Case) -> None:
    arrays = onnx_arrays(case)
    wanted = reference.run(case.cell, **arrays, **attributes(case)[0])
    tolerance = 1e-12 if case.dtype is np.float64 else 1e-5  # roundings of some hundred terms over 5 steps
    assert difference(run_onnx(case, arrays), wanted) <= tolerance
    assert difference(as_onnx(run_openvino(case, openvino_arrays(case, arrays))), wanted) <= tolerance


@each_cell
def test_single_steps(cell: str) -> None:
    """A cell of OpenVINO is one step of ONNX's operator."""
    for lbr in (False, True) if cell == "GRU" else (False,):
        case = Case("step", cell, "forward", (1, 1, 1), clip=0.75, linear_before_reset=lbr, sizes=(1, 3, 4, 7))
        arrays = onnx_arrays(case)
        given = openvino_arrays(case, arrays)
        del given["sequence_lengths"]
        given = {name: a[:, 0] if name in "XHC" else a[0] for name, a in given.items()}
        keywords = attributes(case)[1]
        del keywords["direction"]
        states = getattr(openvino, f"{cell.lower()}_cell")(**given, **keywords)
        states = states if isinstance(states, tuple) else (states,)
        assert difference(states, tuple(state[0] for state in run_onnx(case, arrays)[1:])) == EXACT


# One convention fed with the other's arrays


@each_cell
def test_axes_of_x_not_swapped_is_rejected(cell: str) -> None:
    case = Case("axes", cell)
    arrays = onnx_arrays(case)
    with pytest.raises(
        PyrnnxError, match=r"H has shape \(3, 2, 7\); expected \(batch_size=5, num_directions=2, hidden"
    ):
        run_openvino(case, {**openvino_arrays(case, arrays), "X": arrays["X"]})
    with pytest.raises(PyrnnxError, match=r"batch_size=5"):
        run_onnx(case, {**arrays, "X": swapped(arrays["X"])})


@each_cell
def test_axes_of_x_not_swapped_where_shapes_cannot_tell(cell: str) -> None:
    """batch_size = seq_length: other numbers, those of the oracle for an X whose axes are swapped."""
    case = Case("square", cell, lens=(3, 1, 2), sizes=(3, 3, 4, 4))
    arrays = onnx_arrays(case)
    outputs = as_onnx(run_openvino(case, {**openvino_arrays(case, arrays), "X": arrays["X"]}))
    assert difference(outputs, run_onnx(case, arrays)) > 0.01
    wanted = reference.run(cell, **{**arrays, "X": swapped(arrays["X"])}, **attributes(case)[0])
    assert difference(outputs, wanted) <= 1e-5  # float32, as above


@each_cell
def test_axes_of_the_states_not_swapped(cell: str) -> None:
    case = Case("states", cell)
    arrays = onnx_arrays(case)
    names = {"H": "initial_h", "C": "initial_c"} if cell == "LSTM" else {"H": "initial_h"}
    for name, theirs in names.items():
        with pytest.raises(PyrnnxError, match=rf"{name} has shape \(2, 3, 7\); expected \(batch_size=3, num_dir"):
            run_openvino(case, {**openvino_arrays(case, arrays), name: arrays[theirs]})
        with pytest.raises(PyrnnxError, match=rf"{theirs} has shape \(3, 2, 7\); expected \(num_directions=2, bat"):
            run_onnx(case, {**arrays, theirs: swapped(arrays[theirs])})


@pytest.mark.parametrize(("cell", "lbr"), [("RNN", False), ("GRU", False), ("GRU", True), ("LSTM", False)])
def test_bias_in_the_other_form_is_rejected(cell: str, lbr: bool) -> None:
    case = Case("bias", cell, linear_before_reset=lbr)
    arrays = onnx_arrays(case)
    G, H = gate_count(cell), case.sizes[3]
    blocks = 4 if lbr else G
    with pytest.raises(PyrnnxError, match=rf"B has shape \(2, {2 * G * H}\); expected .*hidden_size={blocks * H}\)"):
        run_openvino(case, {**openvino_arrays(case, arrays), "B": arrays["B"]})
    with pytest.raises(PyrnnxError, match=rf"B has shape \(2, {blocks * H}\); expected .*hidden_size={2 * G * H}\)"):
        run_onnx(case, {**arrays, "B": openvino_arrays(case, arrays)["B"]})


def test_bias_of_gru_fully_summed_is_rejected_with_linear_before_reset() -> None:
    case = Case("bias of GRU", "GRU", linear_before_reset=True)
    arrays = onnx_arrays(case)
    H = case.sizes[3]
    with pytest.raises(PyrnnxError, match=r"B has shape \(2, 21\); expected .*4\*hidden_size=28"):
        run_openvino(case, {**openvino_arrays(case, arrays), "B": summed(arrays["B"], H, False)})
    plain = replace(case, linear_before_reset=False)
    with pytest.raises(PyrnnxError, match=r"B has shape \(2, 28\); expected .*3\*hidden_size=21"):
        run_openvino(plain, {**openvino_arrays(plain, arrays), "B": summed(arrays["B"], H, True)})


def test_bias_of_gru_with_rb_folded_into_wb_is_another_layer() -> None:
    """With linear_before_reset r multiplies Rb_h, so Wb_h + Rb_h and 0 do not do in its place."""
    case = Case("folded", "GRU", linear_before_reset=True)
    arrays = onnx_arrays(case)
    given = openvino_arrays(case, arrays)
    H = case.sizes[3]
    z, r, Wb_h, Rb_h = (given["B"][:, k * H : (k + 1) * H] for k in range(4))
    given["B"] = np.concatenate([z, r, Wb_h + Rb_h, np.zeros_like(Rb_h)], axis=1)
    outputs = as_onnx(run_openvino(case, given))
    assert difference(outputs, run_onnx(case, arrays)) > 0.01
    zero = np.zeros_like(z)
    folded = {**arrays, "B": np.concatenate([z, r, Wb_h + Rb_h, zero, zero, zero], axis=1)}
    assert difference(outputs, reference.run("GRU", **folded, **attributes(case)[0])) <= 1e-5  # float32, as above


@pytest.mark.parametrize("names", ["W", "R", "B", "WRB"])
def test_gates_of_lstm_in_the_other_order(names: str) -> None:
    """No shape tells: other numbers, those of the oracle for gates that are permuted in the same way."""
    case = Case("gates", "LSTM")
    arrays = onnx_arrays(case)
    H = case.sizes[3]
    right = openvino_arrays(case, arrays)
    wrong = {**right, **{name: arrays[name] for name in names}}  # i, o, f, c where f, i, c, o is read
    if "B" in names:
        wrong["B"] = summed(arrays["B"], H, False)
    outputs = as_onnx(run_openvino(case, wrong))
    assert difference(outputs, run_onnx(case, arrays)) > 0.01

    def misread(a: Array) -> Array:
        """What is taken for f, i, c, o, as ONNX orders it."""
        f, i, c, o = (a[:, k * H : (k + 1) * H] for k in range(4))
        return np.concatenate([i, o, f, c], axis=1)

    permuted = {**arrays, **{name: misread(arrays[name]) for name in names if name != "B"}}
    if "B" in names:
        permuted["B"] = np.concatenate([misread(wrong["B"]), np.zeros_like(wrong["B"])], axis=1)
    assert difference(outputs, reference.run("LSTM", **permuted, **attributes(case)[0])) <= 1e-5  # float32, as above
    back = {**arrays, **{name: right[name] for name in "WR" if name in names}}
    if set(names) & set("WR"):  # and the other way round
        assert difference(run_onnx(case, back), run_onnx(case, arrays)) > 0.01
        assert difference(run_onnx(case, back), reference.run("LSTM", **back, **attributes(case)[0])) <= 1e-5


def test_gates_of_gru_are_in_the_same_order() -> None:
    """There W and R pass as they are."""
    case = Case("gates of GRU", "GRU")
    arrays = onnx_arrays(case)
    given = openvino_arrays(case, arrays)
    for name in "WR":
        np.testing.assert_array_equal(given[name], arrays[name])
