"""IRs with one recurrent layer, saved by OpenVINO, run here and exported: every operation and form of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from layers import random_arrays
from openvino_irs import Array, assert_same, check, run_exported, run_there, save
from openvino_layers import DEFAULTS

from pyrnnx import OPENVINO_SEQUENCE, Direction, RecurrentOp
from pyrnnx.frontends.openvino import BoundLayer, read_model, to_onnx
from pyrnnx.op import CELLS
from pyrnnx.testing import reference

openvino = pytest.importorskip("openvino")
operations = pytest.importorskip("openvino.opset13")

T, N, I, H = 5, 3, 4, 6
DIRECTIONS = ("forward", "reverse", "bidirectional")
# of X, the states and the lengths
SHAPES: dict[str, tuple[Any, Any]] = {
    "static": (N, T),
    "dynamic batch": (-1, T),
    "dynamic length": (N, -1),
    "ranges": ((1, 8), (2, 9)),
}
FORMATS = ("f32", "f16-compressed", "f64")
LENGTHS = {"const": (T, 1, 3), "parameter": (T, 2, 3), "zero": (T, 0, 3), "full": (T, T, T)}
# float32: sums of up to 11 terms in another order, vectorised exp and tanh of some units, 5 steps
TOLERANCE = 5e-6
# float64 against an oracle that sums in another order
EXACT = 1e-13


@dataclass(frozen=True)
class Case:
    cell: str
    linear_before_reset: bool
    direction: str
    shapes: str
    format: str
    lengths: str

    def __str__(self) -> str:
        flag = "-lbr" if self.linear_before_reset else ""
        return f"{self.cell}{flag}-{self.direction}-{self.shapes}-{self.format}-{self.lengths}"

    @property
    def dtype(self) -> Any:
        return np.float64 if self.format == "f64" else np.float32

    @property
    def openvino_is_wrong(self) -> str:
        """Why the oracle is the witness; see test_openvino.py for both."""
        if self.format == "f64":
            return "float64 is computed in float32"
        if self.shapes != "static" and self.lengths != "full":
            return "lengths are ignored if a dimension of X is dynamic and W, R, B are constant"
        return ""


FLAVOURS = (("RNN", False), ("GRU", False), ("GRU", True), ("LSTM", False))
ALL = tuple(Case(*flavour, *rest) for flavour, *rest in product(FLAVOURS, DIRECTIONS, SHAPES, FORMATS, LENGTHS))


def pairwise(cases: tuple[Case, ...]) -> Iterator[Case]:
    """So many of them that every two values of two properties occur together."""

    def pairs(case: Case) -> set[tuple[Any, ...]]:
        values = [(case.cell, case.linear_before_reset), case.direction, case.shapes, case.format, case.lengths]
        return {(i, values[i], j, values[j]) for i in range(len(values)) for j in range(i)}

    left = set().union(*map(pairs, cases))
    while left:
        best = max(cases, key=lambda case: len(pairs(case) & left))
        left -= pairs(best)
        yield best


SOME = tuple(pairwise(ALL))


def make_arrays(case: Case) -> dict[str, Array]:
    op = RecurrentOp(case.cell, H, Direction(case.direction), linear_before_reset=case.linear_before_reset)
    arrays = random_arrays(op, (T, N, I), case.dtype, convention=OPENVINO_SEQUENCE, seed=str(case))
    del arrays["sequence_lengths"]  # those of the case
    if case.format == "f16-compressed":  # so that saving rounds nothing
        arrays |= {name: arrays[name].astype(np.float16).astype(np.float32) for name in "WRB"}
    return arrays


def parameter(name: str, shape: Any, dtype: Any) -> Any:
    node = operations.parameter(
        openvino.PartialShape([openvino.Dimension(*d) if isinstance(d, tuple) else d for d in shape]), dtype
    )
    node.output(0).set_names({name})
    node.set_friendly_name(name)
    return node


def build(case: Case, arrays: dict[str, Array], **attributes: Any) -> tuple[Any, list[Array]]:
    """The model, its W, R and B constant, and arrays for its inputs."""
    batch, length = SHAPES[case.shapes]
    D = arrays["W"].shape[0]
    X = parameter("X", (batch, length, I), case.dtype)
    states = [parameter(name, (batch, D, H), case.dtype) for name in "HC" if name in arrays]
    given = [X, *states]
    inputs = [arrays["X"], *(arrays[name] for name in "HC" if name in arrays)]
    lens = np.array(LENGTHS[case.lengths], np.int64)
    if case.lengths == "parameter":
        lengths = parameter("lens", (batch,), np.int64)
        given.append(lengths)
        inputs.append(lens)
    else:
        lengths = operations.constant(lens)
    constants = [operations.constant(arrays[name]) for name in "WRB"]
    if case.cell == "GRU":
        attributes["linear_before_reset"] = case.linear_before_reset
    node = getattr(operations, f"{case.cell.lower()}_sequence")(
        X,
        *states,
        lengths,
        *constants,
        hidden_size=H,
        direction=case.direction,
        **{"activations": DEFAULTS[case.cell], **attributes},
    )
    node.set_friendly_name("the layer")
    return openvino.Model([operations.result(one) for one in node.outputs()], given, "one"), inputs


def oracle(case: Case, arrays: dict[str, Array], **attributes: Any) -> list[Array]:
    """Of the case's dtype."""
    attributes |= {"linear_before_reset": True} if case.linear_before_reset else {}
    given = {**arrays, "sequence_lengths": LENGTHS[case.lengths], "direction": case.direction}
    outputs = reference.run(f"{case.cell}Sequence-5", **given, **attributes)
    return [one.astype(case.dtype) for one in outputs]


def run(case: Case, folder: Path) -> None:
    arrays = make_arrays(case)
    model, inputs = build(case, arrays)
    path = save(model, folder, f16=case.format == "f16-compressed")
    expected = oracle(case, arrays)
    there = run_there(path, inputs)
    if not case.openvino_is_wrong:
        assert_same(there, expected, TOLERANCE, "OpenVINO and the oracle")
    # ONNX Runtime has no float64 for these
    read = check(
        path,
        inputs,
        tolerance=EXACT if case.format == "f64" else TOLERANCE,
        expected=expected,
        exported=case.format != "f64",
    )
    assert isinstance(read.layers["the layer"], BoundLayer)
    node = next(one for one in to_onnx(read).graph.node if one.op_type == case.cell)
    full = case.lengths == "full" and case.shapes == "static"
    assert bool(node.input[4]) is not full  # lengths that say what X says are left out


@pytest.mark.parametrize("case", SOME, ids=str)
def test_sequence(case: Case, tmp_path: Path) -> None:
    run(case, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("case", [case for case in ALL if case not in SOME], ids=str)
def test_every_sequence(case: Case, tmp_path: Path) -> None:
    run(case, tmp_path)


@pytest.mark.parametrize("cell", CELLS)
def test_clip_and_activations(cell: str, tmp_path: Path) -> None:
    """All that OpenVINO's CPU plugin has: no function with alpha or beta."""
    case = Case(cell, False, "bidirectional", "static", "f32", "const")
    arrays = make_arrays(case)
    names = {"RNN": ["relu"], "GRU": ["tanh", "relu"], "LSTM": ["relu", "tanh", "sigmoid"]}[cell]
    model, inputs = build(case, arrays, activations=names, clip=0.3)
    path = save(model, tmp_path)
    check(path, inputs, tolerance=TOLERANCE)
    node = next(one for one in to_onnx(read_model(path)).graph.node if one.op_type == cell)
    attributes = {one.name: onnx.helper.get_attribute_value(one) for one in node.attribute}
    assert attributes["clip"] == pytest.approx(0.3)
    assert [name.decode().lower() for name in attributes["activations"]] == names * 2


def test_activation_parameters(tmp_path: Path) -> None:
    """OpenVINO writes functions that its plugins do not run; the oracle knows them. Places in the lists, not turns."""
    case = Case("LSTM", False, "bidirectional", "static", "f32", "const")
    arrays = make_arrays(case)
    names, alphas, betas = ["hardsigmoid", "tanh", "elu"], [0.3, 9.0, 0.7], [0.4, 9.0]
    model, inputs = build(case, arrays, activations=names, activations_alpha=alphas, activations_beta=betas)
    path = save(model, tmp_path)
    expected = oracle(case, arrays, activations=names, activations_alpha=alphas, activations_beta=betas)
    check(path, inputs, tolerance=TOLERANCE, expected=expected)


STEPS = [(cell, lbr, fmt) for cell, lbr in FLAVOURS for fmt in ("f32", "f16-compressed")]


@pytest.mark.parametrize(("cell", "lbr", "fmt"), STEPS)
@pytest.mark.parametrize("batch", [N, -1], ids=["static", "dynamic"])
def test_cell(cell: str, lbr: bool, fmt: str, batch: int, tmp_path: Path) -> None:
    case = Case(cell, lbr, "forward", "static", fmt, "full")
    arrays = {name: a[:, 0] if name in "XHC" else a[0] for name, a in make_arrays(case).items()}
    names = [name for name in "XHC" if name in arrays]
    parameters = [parameter(name, (batch, arrays[name].shape[1]), np.float32) for name in names]
    weights = [operations.constant(arrays[name]) for name in "WRB"]
    attributes: dict[str, Any] = {"linear_before_reset": lbr} if cell == "GRU" else {}
    attributes |= {"activations": DEFAULTS[cell], "activations_alpha": [], "activations_beta": [], "clip": 0.5}
    function = getattr(operations, f"{cell.lower()}_cell")
    node = function(*parameters, *weights, hidden_size=H, **attributes)
    model = openvino.Model([operations.result(one) for one in node.outputs()], parameters, "cell")
    check(save(model, tmp_path, f16=fmt != "f32"), [arrays[name] for name in names], tolerance=TOLERANCE)


@pytest.mark.parametrize(("cell", "lbr"), FLAVOURS)
@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
def test_weights_that_are_inputs(cell: str, lbr: bool, direction: str, tmp_path: Path) -> None:
    """Gates are rearranged by nodes."""
    case = Case(cell, lbr, direction, "static", "f32", "const")
    arrays = make_arrays(case)
    arrays = {name: arrays[name] for name in ("X", "H", "C", "W", "R", "B") if name in arrays}
    given = {name: parameter(name, a.shape, np.float32) for name, a in arrays.items()}
    lengths = operations.constant(np.array(LENGTHS["const"], np.int32))
    attributes: dict[str, Any] = {"linear_before_reset": lbr} if cell == "GRU" else {}
    states = [given[name] for name in "HC" if name in given]
    node = getattr(operations, f"{cell.lower()}_sequence")(
        given["X"],
        *states,
        lengths,
        *(given[name] for name in "WRB"),
        hidden_size=H,
        direction=direction,
        activations=DEFAULTS[cell],
        **attributes,
    )
    model = openvino.Model([operations.result(one) for one in node.outputs()], list(given.values()), "one")
    read = check(save(model, tmp_path), list(arrays.values()), tolerance=TOLERANCE)
    (layer,) = read.layers.values()
    assert not isinstance(layer, BoundLayer)


def test_layers_share_their_initializers(tmp_path: Path) -> None:
    """Equal weights of two layers are one initializer, and names of inputs and outputs are kept."""
    case = Case("GRU", False, "forward", "dynamic batch", "f32", "full")
    arrays = make_arrays(case)
    X, h = (parameter(name, (-1, *arrays[name].shape[1:]), np.float32) for name in ("X", "H"))
    weights = [operations.constant(arrays[name]) for name in "WRB"]
    lengths = operations.constant(np.array([T] * N, np.int32))
    outputs = []
    for _ in range(2):
        node = operations.gru_sequence(
            X, h, lengths, *weights, hidden_size=H, direction="forward", activations=DEFAULTS["GRU"]
        )
        outputs.append(operations.result(node.output(0)))
    path = save(openvino.Model(outputs, [X, h], "two"), tmp_path)
    model = read_model(path)
    proto = to_onnx(model)
    assert len({tuple(node.input[1:4]) for node in proto.graph.node if node.op_type == "GRU"}) == 1
    dims = [dim.dim_param or dim.dim_value for dim in proto.graph.input[0].type.tensor_type.shape.dim]
    assert dims == ["X_dim_0", T, I]
    inputs = [arrays["X"], arrays["H"]]
    assert_same(run_exported(proto, inputs), list(model(*inputs).values()), TOLERANCE, "exported")
