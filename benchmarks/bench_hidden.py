"""Compare exports without recurrent nodes with ONNX Runtime: layers found, largest difference, times.

python benchmarks/hidden_exports.py torch FOLDER ; KERAS_BACKEND=torch python benchmarks/hidden_exports.py keras FOLDER
python benchmarks/bench_hidden.py FOLDER
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from report import progress, table

from pyrnnx import config, load
from pyrnnx.bench.timing import geometric_mean, measure
from pyrnnx.testing.numbers import Array

CALLS = 5
STEPS = 50
RECURRENT = {"RNN", "GRU", "LSTM"}


def inputs_of(model: onnx.ModelProto, seed: int) -> dict[str, Array]:
    """Return random inputs; in open dimensions one row, and STEPS for the time."""
    rng, arrays = np.random.default_rng(seed), {}
    for value in model.graph.input:
        dims = value.type.tensor_type.shape.dim
        order = [1, STEPS] if value.name != "x" else [STEPS, 1]
        shape = [dim.dim_value or order[k] for k, dim in enumerate(dims)]
        arrays[value.name] = rng.standard_normal(shape).astype(np.float32)
    return arrays


def nodes_of(graph: onnx.GraphProto) -> int:
    """Return the number of recurrent nodes in a graph and its bodies."""
    bodies = (attribute.g for node in graph.node for attribute in node.attribute if attribute.type == attribute.GRAPH)
    return sum(node.op_type in RECURRENT for node in graph.node) + sum(map(nodes_of, bodies))


def row_of(path: Path, rounds: int, clock: Callable[[], float]) -> dict[str, Any]:
    """Return the row of a model: recurrent nodes in the file, layers, error, and times of ONNX Runtime over ours."""
    import onnxruntime

    proto, options = onnx.load(path), onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    start = time.perf_counter()
    session = onnxruntime.InferenceSession(path, options)
    middle = time.perf_counter()
    model = load(path)
    layers = len(model.layers)
    model(inputs_of(proto, 0))
    end = time.perf_counter()
    error = 0.0
    for seed in range(CALLS):
        inputs = inputs_of(proto, seed)
        pairs = zip(session.run(None, inputs), model(inputs).values(), strict=True)
        error = max([error, *(float(np.abs(a - b).max(initial=0)) for a, b in pairs)])
    inputs = inputs_of(proto, 0)
    timings = measure({"peer": lambda: session.run(None, inputs), "ours": lambda: model(inputs)}, rounds, clock=clock)
    return {
        "model": path.stem,
        "nodes": nodes_of(proto.graph),
        "layers": layers,
        "found": sorted("unknown" if layer.op is None else layer.op.cell for layer in model.layers.values()),
        "error": error,
        "ours": timings.median("ours"),
        "ratio": timings.ratio("peer", "ours"),
        "load": (end - middle) / (middle - start),
        "why": model.layers.why_none,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--processor-time", action="store_true", help="for a busy machine")
    arguments = parser.parse_args()
    clock = time.process_time if arguments.processor_time else time.perf_counter
    config.set_num_threads(1)
    rows = []
    for path in sorted(arguments.folder.glob("*.onnx")):
        progress(path.stem)
        try:
            rows.append(row_of(path, arguments.rounds, clock))
        except Exception as error:  # of several types: exports that ONNX Runtime itself cannot run
            progress(f"    {str(error).splitlines()[0][:200]}")
    header = ["export", "nodes in the file", "layers found", "largest difference", "µs", "ONNX Runtime / pyrnnx"]
    cells = [
        [
            row["model"],
            str(row["nodes"]),
            " ".join(row["found"]) or "none",
            f"{row['error']:.0e}",
            f"{row['ours'] * 1e6:.0f}",
            f"{row['ratio']:.2f}",
        ]
        for row in rows
    ]
    print(table(header, cells))
    hidden = [row for row in rows if not row["nodes"]]
    found = [row for row in hidden if row["layers"]]
    print(f"\n{len(rows)} exports, {len(hidden)} without recurrent nodes; layers found in {len(found)} of these.")
    ratios = [row["ratio"] for row in found]
    print(f"ONNX Runtime's time over pyrnnx's there: mean {geometric_mean(ratios):.2f}, lowest {min(ratios):.2f}.")
    print(f"Largest difference: {max(row['error'] for row in rows):.0e}.")
    for row in hidden:
        if not row["layers"]:
            print(f"{row['model']}: {row['why']}")


if __name__ == "__main__":
    main()
