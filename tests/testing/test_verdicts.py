"""Verdicts on planted differences: `compare`, `assert_same` and the command never call two the same that differ."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import verdicts
from layers import random_layer
from planted_models import Planted, visible
from rows import each_row, few_rows
from two_layers import two_layers

from pyrnnx import OPENVINO_SEQUENCE, Activation, ArgumentError, Direction, Model, RecurrentOp, compare, load
from pyrnnx.cli import main
from pyrnnx.comparison.views.text import verdict
from pyrnnx.frontends.onnx import read_model
from pyrnnx.frontends.onnx import write_model as write_onnx
from pyrnnx.frontends.openvino import write_model as write_ir
from pyrnnx.operator.op import CELLS
from pyrnnx.testing import assert_same

I, H = 4, 5
OPERATORS: dict[str, RecurrentOp] = {
    "LSTM": RecurrentOp("LSTM", H),
    "bidirectional GRU": RecurrentOp("GRU", H, Direction.BIDIRECTIONAL),
    "reverse RNN": RecurrentOp("RNN", H, Direction.REVERSE),
    "GRU with linear_before_reset": RecurrentOp("GRU", H, linear_before_reset=True),
    "bidirectional LSTM with clip": RecurrentOp("LSTM", H, Direction.BIDIRECTIONAL, clip=0.5),
    "RNN of Relu": RecurrentOp("RNN", H, activations=((Activation("Relu"),),)),
    "reverse LSTM with input_forget": RecurrentOp("LSTM", H, Direction.REVERSE, input_forget=True),
}
ARGUMENTS = ("sequence_lens", "initial_h", "initial_c")


def model_of(op: RecurrentOp, suffix: str, folder: Path) -> Model:
    """Return a model that is one layer, with lengths and initial states as inputs."""
    if suffix == ".xml":
        return load(write_ir(random_layer(op, I, convention=OPENVINO_SEQUENCE), folder / "planted.xml"))
    layer = random_layer(op, I, peepholes=op.has_cell_state)
    model: Model = read_model(write_onnx(layer, inputs=ARGUMENTS[: 2 + op.has_cell_state]))
    return model


def planted(name: str, suffix: str, folder: Path, *, lengths: bool, recognised: bool, stride: int) -> int:
    source = model_of(OPERATORS[name], suffix, folder)
    right = Planted(source, recognised=recognised, lengths=lengths)
    assert compare(right, Planted(source, recognised=recognised, lengths=lengths)).verdict() == "same"
    words = list(visible(right.layer, right.values, stride))
    for mistake in words:
        wrong = Planted(source, mistake, recognised=recognised, lengths=lengths)
        assert compare(right, wrong).verdict() != "same", mistake
        if lengths:
            assert compare(source, Planted(source, mistake, recognised=recognised)).verdict() != "same", mistake
    return len(words)


@each_row("name", list(OPERATORS)[:2])
def test_some_mistakes_in_models(name: str, tmp_path: Path) -> None:
    assert planted(name, ".onnx", tmp_path, lengths=True, recognised=False, stride=128) > 0


SWEEPS = [
    row
    for row in product(OPERATORS, (".onnx", ".xml"), (True, False), (True, False))
    if not (OPERATORS[row[0]].input_forget and row[1] == ".xml")  # LSTMSequence-5 does not couple gates
]


@pytest.mark.parametrize(
    ("sweeps", "stride"),
    [pytest.param(SWEEPS[::9], 32, marks=pytest.mark.slow), pytest.param(SWEEPS, 1, marks=pytest.mark.nightly)],
    ids=["few", "every"],
)
def test_every_mistake_in_models(sweeps: Any, stride: int, tmp_path: Path) -> None:
    for name, suffix, lengths, recognised in sweeps:
        assert planted(name, suffix, tmp_path, lengths=lengths, recognised=recognised, stride=stride) > 0


ONE_LAYER: dict[str, dict[str, Any]] = {
    f"{cell}{' with states' if states else ''}": {"cell": cell, "states": states}
    for cell in CELLS
    for states in (False, True)
}
# Two models that differ, and what their comparison and a comparison of the first with itself say.
PLANTED: dict[str, tuple[onnx.ModelProto, onnx.ModelProto, str, str]] = {
    **{
        f"{name}, another direction": (
            verdicts.one_layer(**options),
            verdicts.one_layer(**options, direction="reverse"),
            "different",
            "same",
        )
        for name, options in ONE_LAYER.items()
    },
    "mask": (verdicts.masked(1), verdicts.masked(2), "different", "same"),
    "Scan of a cell of its own": (verdicts.scanned(0.5), verdicts.scanned(0.75), "different", "same"),
    "first row of a table": (verdicts.embedding(9), verdicts.embedding(9, 0), "different", "same"),
    "last row of a table": (verdicts.embedding(3000), verdicts.embedding(3000, 2999), "different", "same"),
    "a row by ids + 1": (verdicts.looked_up("Add"), verdicts.looked_up("Add", 0), "not decided", "not decided"),
    "a row by ids modulo rows": (verdicts.looked_up("Mod"), verdicts.looked_up("Mod", 40), "different", "same"),
    "a row of a table turned": (
        verdicts.looked_up("Transpose"),
        verdicts.looked_up("Transpose", 40),
        "different",
        "same",
    ),
    "a row by real ids": (verdicts.looked_up("Cast"), verdicts.looked_up("Cast", 25), "not decided", "not decided"),
    "more rows": (verdicts.embedding(9), verdicts.embedding(10), "not decided", "same"),
    "a table too large": (verdicts.embedding(300_000), verdicts.embedding(300_000), "not decided", "not decided"),
    "dropped steps": (verdicts.dropped(1), verdicts.dropped(2), "different", "same"),
    "late steps": (verdicts.late(1), verdicts.late(2), "different", "same"),
    "large integers": (verdicts.counted(2**60), verdicts.counted(2**60 + 1), "different", "same"),
    "a small column": (verdicts.scaled(1e-3), verdicts.scaled(2e-3), "different", "same"),
    "a state with a default": (verdicts.with_state(True), verdicts.with_state(False), "different", "same"),
    "three flags": (verdicts.flagged(2), verdicts.flagged(3), "different", "same"),
    "a mode": (verdicts.in_mode(2), verdicts.in_mode(3), "different", "same"),
    "0 and infinity": (verdicts.saturated(1), verdicts.saturated(2), "not decided", "not decided"),
    "all steps dropped": (verdicts.dropped(1, 9999), verdicts.dropped(2, 9999), "not decided", "not decided"),
    "near 0": (verdicts.near_zero(1), verdicts.near_zero(-1), "not decided", "not decided"),
    "a number of one value": (verdicts.fixed(1), verdicts.fixed(2), "different", "same"),
    "a weight that no output shows": (verdicts.hidden(0), verdicts.hidden(0.05), "different", "same"),
    "constant": (verdicts.dropped(0, 0), verdicts.dropped(0, 0), "not decided", "not decided"),
}
REASONS = {
    "a table too large": "input 'ids' selects from 300000 rows, of which ",
    "all steps dropped": "output 'y' is empty in every call, with sizes of up to 6144",
    "constant": "output 'y' is constant in 5 calls",
    "a number of one value": "'number' [7] (other numbers of 'number' were refused)",
    "near 0": "output 'y' varied by no more than ",
}


# Each has the mechanism of another row, which runs by default.
ALIKE = [f"{name}, another direction" for name in ("RNN", "RNN with states", "GRU", "LSTM")]
ALIKE += ["last row of a table", "a row of a table turned", "late steps"]


@few_rows("name", [name for name in PLANTED if name not in ALIKE], ALIKE)
def test_planted_models(name: str) -> None:
    *protos, expected, with_itself = PLANTED[name]
    a, b = map(read_model, protos)
    result = compare(a, b)
    assert result.verdict() == expected
    assert not result.equal()
    assert verdict(result).startswith(expected)
    assert REASONS.get(name, "") in str(result)
    assert compare(a, a).verdict() == with_itself


@each_row("name", ["mask", "a row by ids + 1"])
def test_assert_same_and_the_command_have_the_verdict_of_compare(name: str, tmp_path: Path) -> None:
    a, b, expected, with_itself = PLANTED[name]
    paths = [str(tmp_path / f"{letter}.onnx") for letter in "ab"]
    for path, proto in zip(paths, (a, b), strict=True):
        onnx.save(proto, path)
    with pytest.raises(AssertionError if expected == "different" else ArgumentError):
        assert_same(*paths)
    assert main(["compare", *paths]) == 1
    assert main(["compare", paths[0], paths[0]]) == (with_itself != "same")


def test_one_tolerance(tmp_path: Path) -> None:
    """Differences between 1e-5 and 1e-4 of the largest magnitude are those of rounding, for every command."""
    protos = verdicts.dropped(1, 0), verdicts.dropped(1 + 6e-5, 0)
    a, b = map(read_model, protos)
    assert compare(a, b).verdict() == "same"
    assert compare(a, b).verdict(1e-5) == "different"
    assert_same(a, b)
    paths = [str(tmp_path / f"{letter}.onnx") for letter in "ab"]
    for path, proto in zip(paths, protos, strict=True):
        onnx.save(proto, path)
    assert main(["compare", *paths]) == 0
    assert main(["compare", *paths, "--rtol", "1e-5"]) == 1


def test_a_layer_that_no_output_shows() -> None:
    a, b = read_model(verdicts.hidden(0)), read_model(verdicts.hidden(0.05))
    assert all(deviation.within() for deviation in compare(a, b).deviations.values())
    with pytest.raises(AssertionError, match=r"GRU 'layer'[\s\S]* W forward: z 0.05"):
        assert_same(a, b)
    assert_same(a, b, outputs=["y"])


def test_a_layer_that_runs_in_another_direction() -> None:
    """Both directions agree with one step."""
    a, b = (read_model(verdicts.one_layer("GRU", direction)) for direction in ("forward", "reverse"))
    inputs = {"X": np.ones((1, 3, I), "f4"), "lens": np.ones(3, "i4")}
    result = compare(a, b, inputs)
    assert result.largest_difference == 0
    words = "GRU 'layer' of a, forward, has the weights of GRU 'layer' of b, which runs in another direction, reverse"
    assert result.not_decided == (words,)
    assert f"not decided: {words}" in str(result)
    with pytest.raises(ArgumentError, match=r"not decided whether .* has the weights of"):
        assert_same(a, b, inputs=inputs)


@each_row("value", [None, (), np.zeros((0, 3)), []], ids=["None", "()", "no elements", "[]"])
def test_functions_that_return_nothing(value: Any) -> None:
    model = read_model(verdicts.dropped(1))
    with pytest.raises((AssertionError, ArgumentError)):
        assert_same(model, lambda X: value)


def test_what_was_compared_is_said() -> None:
    a, b = (read_model(verdicts.one_layer("LSTM", direction)) for direction in ("forward", "reverse"))
    text = verdict(compare(a, a))
    assert text.startswith("the same (default tolerance): 2 outputs on 'X' (3, 3, 4), 'lens' [")
    assert text.endswith("] and 1 other call")
    calls = compare(a, a).calls
    assert sorted(map(int, calls[0].partition("[")[2].strip("]").split(","))) == [0, 1, 3]
    assert compare(a, b).verdict() == "different"
    assert "not decided" not in str(compare(a, b))


def test_functions_that_refuse_rows_of_length_0() -> None:
    layer = random_layer(OPERATORS["LSTM"], I)

    def packed(X: Any, sequence_lens: Any, initial_h: Any, initial_c: Any) -> Any:
        if not sequence_lens.all():
            raise RuntimeError("lengths of 0 are not allowed")
        return layer(X, sequence_lens=sequence_lens, initial_h=initial_h, initial_c=initial_c)

    assert_same(layer, packed)


# The same


def equal_pair(seed: int, folder: Path) -> tuple[Any, Any]:
    """Return two descriptions of one layer or model."""
    rng = np.random.default_rng(seed)
    cell: Any = list(CELLS)[rng.integers(3)]
    direction = list(Direction)[rng.integers(3)]
    op = RecurrentOp(cell, int(rng.integers(1, 9)), direction, clip=[None, 0.7][rng.integers(2)])
    size, dtype = int(rng.integers(1, 6)), [np.float32, np.float64][rng.integers(2)]
    layer = random_layer(op, size, dtype, seed=seed)
    names = [name for name in ARGUMENTS[: 2 + op.has_cell_state] if rng.integers(2)]
    path = folder / f"{seed}.onnx"
    kind = rng.integers(6)
    if kind == 0:
        return layer, random_layer(op, size, dtype, seed=seed, convention=OPENVINO_SEQUENCE)
    if kind == 1:
        onnx.save(two_layers(cell, lengths=bool(rng.integers(2)), static=bool(rng.integers(2))), path)
    elif kind == 2:
        onnx.save(verdicts.embedding(int(rng.integers(2, 400))), path)
    elif kind == 3:
        onnx.save(verdicts.masked(float(rng.normal())), path)
    else:
        write_onnx(layer, path, inputs=names)
    model = load(path)
    return model, load(write_ir(model, folder / f"{seed}.xml"))


def verdicts_of(seeds: range, folder: Path) -> list[str]:
    found = []
    for seed in seeds:
        a, b = equal_pair(seed, folder)
        result = compare(a, b, seed=seed)
        assert result.verdict() != "different", f"{seed}: {result}"
        if result.verdict() == "same":
            assert_same(a, b, seed=seed, atol=1e-4)
        found.append(result.verdict())
    return found


def test_some_equal_pairs(tmp_path: Path) -> None:
    assert set(verdicts_of(range(6), tmp_path)) == {"same"}


@pytest.mark.nightly
def test_500_equal_pairs(tmp_path: Path) -> None:
    assert verdicts_of(range(500), tmp_path).count("same") >= 490
