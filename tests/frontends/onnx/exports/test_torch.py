"""Models that torch.onnx exports from nn.RNN, nn.GRU and nn.LSTM, read and written as IR; for `pytest -m torch`."""

from __future__ import annotations

import io
import itertools
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
import pytest
from peers import run_openvino
from whole_models import check_calls, onnxruntime_witness

from pyrnnx import load
from pyrnnx.frontends.onnx import NodeLayer, read_model
from pyrnnx.frontends.openvino import write_model as write_ir
from pyrnnx.testing.numbers import Array

pytest.importorskip("torch")

import hidden_exports

pytestmark = pytest.mark.torch
torch: Any = pytest.importorskip("torch")
T, N, I, H = 6, 3, 5, 7
# float32 on both sides: some 2^-24 of sums of some ten terms, through 3 layers and 6 steps.
TOLERANCE = 5e-6
KINDS = ("RNN", "RNN relu", "GRU", "LSTM")


class Case(NamedTuple):
    kind: str
    exporter: str
    num_layers: int
    bidirectional: bool
    batch_first: bool
    states: bool


# All four combinations of any two flags; the dynamo exporter takes some seconds for each model.
PAIRWISE = [flags for flags in itertools.product((False, True), repeat=3) if sum(flags) % 2 == 0]
CASES = [Case(kind, "legacy", layers, *flags) for kind in KINDS for layers in (1, 3) for flags in PAIRWISE]
CASES += [Case(kind, "dynamo", 1 + k % 2, *PAIRWISE[k]) for kind in KINDS[1:] for k in range(len(PAIRWISE))]


def module_of(case: Case) -> Any:
    torch.manual_seed(sum(map(ord, str(case))))
    make = getattr(torch.nn, case.kind.split()[0])
    options = {"nonlinearity": "relu"} if case.kind == "RNN relu" else {}
    return make(I, H, case.num_layers, bidirectional=case.bidirectional, batch_first=case.batch_first, **options).eval()


def inputs_of(case: Case) -> list[Array]:
    """X and, where the case has them, the states; none of them zero."""
    rng = np.random.default_rng(sum(map(ord, str(case))))
    arrays = [rng.normal(size=(N, T, I) if case.batch_first else (T, N, I))]
    if case.states:
        shape = (case.num_layers * (1 + case.bidirectional), N, H)
        arrays += [rng.uniform(0.25, 1, shape) * rng.choice((-1, 1), shape) for _ in range(1 + (case.kind == "LSTM"))]
    return [array.astype(np.float32) for array in arrays]


def flat(results: Any) -> list[Array]:
    """Y, h, c out of what a module returns."""
    if isinstance(results, (tuple, list)):
        return [array for result in results for array in flat(result)]
    return [results.detach().numpy()]


def call_of(case: Case, arrays: list[Array]) -> tuple[Any, ...]:
    X, *states = (torch.from_numpy(array) for array in arrays)
    if not states:
        return (X,)
    return (X, tuple(states) if case.kind == "LSTM" else states[0])


def exported(case: Case, module: Any, arguments: tuple[Any, ...]) -> bytes:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of exporters, about themselves
        if case.exporter == "dynamo":
            pytest.importorskip("onnxscript")
            program = torch.onnx.export(module, arguments, dynamo=True, verbose=False)
            contents: bytes = program.model_proto.SerializeToString()
            return contents
        file = io.BytesIO()
        torch.onnx.export(module, arguments, file, dynamo=False, opset_version=17)
        return file.getvalue()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_equals_torch(case: Case, tmp_path: Path) -> None:
    module, arrays = module_of(case), inputs_of(case)
    arguments = call_of(case, arrays)
    contents = exported(case, module, arguments)
    model, path = read_model(contents), write_ir(contents, tmp_path / "model.xml")
    # The dynamo exporter writes the steps of nn.RNN, which are recognised as one layer for each direction.
    unrolled = case.exporter == "dynamo" and case.kind.startswith("RNN")
    assert len(model.layers) == case.num_layers * (2 if unrolled and case.bidirectional else 1)
    assert all(isinstance(layer, NodeLayer) for layer in model.layers.values())
    names = [info.name for info in model.inputs]

    def witness(given: Mapping[str, Array]) -> list[Array]:
        return flat(module(*call_of(case, [np.array(given[name]) for name in names])))

    given = dict(zip(names, arrays, strict=True))
    check_calls(model, witness, given, atol=TOLERANCE)
    for results in (load(path)(given).values(), run_openvino(path, given)):
        for result, expected in zip(results, witness(given), strict=True):
            np.testing.assert_allclose(result, expected, rtol=0, atol=4 * TOLERANCE)


def test_hidden_layers(tmp_path: Path, recwarn: Any) -> None:
    """Exports without recurrent nodes."""
    hidden_exports.write(tmp_path)
    paths = sorted(tmp_path.glob("*.onnx"))
    assert len(paths) == 31
    for path in paths:
        proto, model = onnx.load(path), load(path)
        assert len(model.layers) == (2 if path.stem.endswith(("two", "both")) else 1), path.stem
        X = np.random.default_rng(0).uniform(-1, 1, (hidden_exports.T, 1, hidden_exports.I)).astype(np.float32)
        check_calls(model, onnxruntime_witness(proto), {proto.graph.input[0].name: X}, atol=TOLERANCE)
