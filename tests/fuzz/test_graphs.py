"""The first random graphs compared with ONNX Runtime; `python tests/fuzz/run.py graphs` runs more."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("onnxruntime")

from fuzz import differential
from fuzz.differential import RandomGraphs

from pyrnnx import load

COUNT = 12


def test_models_give_what_onnxruntime_gives_in_every_call(tmp_path: Path) -> None:
    seen: Counter[str] = Counter()
    for number in range(COUNT):
        operators, finding = RandomGraphs().run(number, tmp_path)
        assert finding is None, f"graph {number}: {finding}"
        seen.update(operators)
    # Else the graphs would show little.
    assert seen.keys() >= {"RNN", "GRU", "LSTM", "Reshape", "Transpose", "Flatten", "Slice", "QuantizeLinear"}


def test_the_same_number_gives_the_same_graph() -> None:
    assert RandomGraphs(1).describe(5) == RandomGraphs(1).describe(5)
    assert RandomGraphs(1).describe(5) != RandomGraphs(2).describe(5)


def test_findings_name_the_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that keeps the results of its third call is found at the fourth."""

    class Stale:
        def __init__(self, path: Path) -> None:
            self._model, self._calls = load(path), 0
            self._results: object = None

        def __call__(self, inputs: object) -> object:
            self._calls += 1
            if self._calls <= 3:
                self._results = self._model(inputs)
            return self._results

    monkeypatch.setattr(differential, "load", Stale)
    operators, finding = RandomGraphs().run(0, tmp_path)
    assert operators
    assert finding is not None
    assert finding.signature == differential.WRONG
    assert "call 3, output" in finding.details
