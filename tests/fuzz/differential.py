"""Random graphs as cases: both doors return the results of ONNX Runtime in every call."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import onnx
from fuzz.contract import Finding, found
from fuzz.graphs import Drawn, drawn_model
from peers import onnxruntime_session
from whole_models import check_each, onnxruntime_witness

from pyrnnx import load
from pyrnnx.onnxruntime import InferenceSession, SessionOptions
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
            onnxruntime_session(drawn.proto)
        except Exception:  # what its optimizations make is wrong
            return operators, None
        try:
            _compare(path, drawn)
        except AssertionError as error:
            return operators, Finding(WRONG, str(error))
        except Exception as error:
            return operators, found("call", error)
        return operators, None


def _compare(path: Path, drawn: Drawn) -> None:
    witness, model, session = onnxruntime_witness(drawn.proto), load(path), _drop_in(path)

    def checked(inputs: dict[str, Array]) -> dict[str, Array]:
        return dict(model(inputs))

    def of_session(inputs: dict[str, Array]) -> list[Array]:
        results: list[Array] = session.run(None, inputs)
        return results

    for run in (checked, of_session):
        check_each(run, witness, map(drawn.arrays, range(len(drawn.calls))), atol=TOLERANCE)


def _drop_in(path: Path) -> InferenceSession:
    options = SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    return InferenceSession(path, options)
