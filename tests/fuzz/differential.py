"""Random graphs as cases: a model returns the results of ONNX Runtime in every call."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import NamedTuple

import onnx
from fuzz.contract import Finding, found
from fuzz.graphs import Drawn, drawn_model
from whole_models import check_each, onnxruntime_witness

from pyrnnx import SlowRuntimeWarning, load
from pyrnnx.testing.numbers import Array

GRAPHS = "graphs"
WRONG = "call: another result than ONNX Runtime's"
# float32 through some ten operators: rounding gives 2e-6, an element of another call 1e-2.
TOLERANCE = 1e-4


class RandomGraphs(NamedTuple):
    """Random graphs by number."""

    seed: int = 0
    kind: str = GRAPHS

    def _drawn(self, number: int) -> Drawn:
        return drawn_model(f"{self.seed} {number}")

    def describe(self, number: int) -> str:
        """Return the text of the graph."""
        return onnx.printer.to_text(self._drawn(number).proto)

    def save(self, number: int, folder: Path) -> Path:
        """Write the model; return its path."""
        path = folder / f"{self.kind}_{self.seed}_{number}.onnx"
        onnx.save(self._drawn(number).proto, path)
        return path

    def run(self, number: int, folder: Path) -> tuple[list[str], Finding | None]:
        """Return the operators of the graph, and the first call that differs from ONNX Runtime's, if any."""
        drawn = self._drawn(number)
        operators = sorted({node.op_type for node in drawn.proto.graph.node})
        path = folder / "graph.onnx"
        path.write_bytes(drawn.proto.SerializeToString())
        try:
            with warnings.catch_warnings():
                # Some bodies are left to onnx's evaluator: slow, and right all the same.
                warnings.simplefilter("ignore", SlowRuntimeWarning)
                _compare(path, drawn)
        except AssertionError as error:
            return operators, Finding(WRONG, str(error))
        except Exception as error:
            return operators, found("call", error)
        return operators, None


def _compare(path: Path, drawn: Drawn) -> None:
    witness, model = onnxruntime_witness(drawn.proto), load(path)

    def checked(inputs: dict[str, Array]) -> dict[str, Array]:
        return dict(model(inputs))

    check_each(checked, witness, map(drawn.arrays, range(len(drawn.calls))), atol=TOLERANCE)
