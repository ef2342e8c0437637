"""Compare whole models with ONNX Runtime and OpenVINO: time of a call, largest difference, time to load, memory.

`models.py` has the models; OpenVINO converts them to IRs.
"""

from __future__ import annotations

import argparse
import gc
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from models import Model, all_models
from report import progress, table
from versions import versions

from pyrnnx.bench.measured import LIBRARIES, difference
from pyrnnx.bench.timing import geometric_mean, measure, milliseconds
from pyrnnx.testing.runtimes.models import MODEL_RUNS, Run

MB = 2**20
RUNS: dict[str, Callable[[Path, int], Run]] = {LIBRARIES[key].name: run for key, run in MODEL_RUNS.items()}
PEERS = {".onnx": "ONNX Runtime", ".xml": "OpenVINO"}  # by the suffix of the file


def write_ir(path: Path) -> Path | None:
    """Convert an .onnx file to an IR in the same folder, in float32; return None if OpenVINO fails."""
    import openvino

    try:
        openvino.save_model(openvino.convert_model(path), path.with_suffix(".xml"), compress_to_fp16=False)
    except Exception as error:  # of any type
        progress(f"{path.name}: {type(error).__name__}: {str(error).splitlines()[0][:200]}")
        return None
    return path.with_suffix(".xml")


def timed(model: Model, path: Path, threads: int, rounds: int) -> tuple[list[str], float | None]:
    """Return the cells of a row, milliseconds, ratio and largest difference of outputs, and the ratio itself."""
    names = ("pyrnnx", PEERS[path.suffix])
    try:
        runs = {name: RUNS[name](path, threads) for name in names}
        results = [list(map(np.array, run(model.inputs).values())) for run in runs.values()]
    except Exception as error:  # of any type
        progress(f"{model.name}, {path.suffix}: {type(error).__name__}: {str(error).splitlines()[0][:300]}")
        return [""] * 4, None
    calls = {name: partial(run, model.inputs) for name, run in runs.items()}
    timings = measure(calls, rounds, threads=threads)
    ratio = timings.ratio(names[1], names[0])
    cells = [milliseconds(timings.median(name)) for name in names]
    return [*cells, f"{ratio:.2f}", f"{difference(*results)[0]:.1e}"], ratio


def report(
    suffix: str, models: Sequence[Model], paths: Sequence[Path | None], counts: Sequence[int], rounds: int
) -> None:
    peer = PEERS[suffix]
    for threads in counts:
        header = ["model", "pyrnnx, ms", f"{peer}, ms", "ratio", "difference"]
        rows, ratios = [], []
        for model, path in zip(models, paths, strict=True):
            if path is not None:
                cells, ratio = timed(model, path, threads, rounds)
                rows.append([model.name, *cells])
                ratios += [ratio] if ratio else []
                progress(" | ".join(rows[-1]))
        print(f"\n### {suffix[1:]} files, threads = {threads}\n\n{table(header, rows)}\n")
        print(f"Geometric mean of the ratios: {geometric_mean(ratios):.2f}; lowest {min(ratios):.2f}.", flush=True)


def load(name: str, path: Path, inputs: Path) -> None:
    """Print milliseconds from the file to the first results, and growth of resident memory in MB: peak, and after.

    Imports of the packages do not count; late imports of a library do. The time is that of the processor, which other
    processes hardly change.
    """
    import onnxruntime  # noqa: F401
    from bench_memory import CLEAR_REFS, status

    import pyrnnx.frontends.onnx  # noqa: F401

    arrays = dict(np.load(inputs))
    gc.collect()
    CLEAR_REFS.write_text("5")  # resets the peak to the resident size
    before, start = status("VmRSS"), time.process_time()
    run = RUNS[name](path, 1)
    run(arrays)
    elapsed = time.process_time() - start
    for _ in range(5):
        run(arrays)
    print(1e3 * elapsed, (status("VmHWM") - before) / MB, (status("VmRSS") - before) / MB)


def report_loading(models: Sequence[Model], paths: Sequence[Path], rounds: int) -> None:
    names, rows = ("pyrnnx", "ONNX Runtime"), []
    for model, path in zip(models, paths, strict=True):
        inputs = path.with_suffix(".npz")
        np.savez(inputs, **model.inputs)
        runs: dict[str, list[list[float]]] = {name: [] for name in names}
        for _ in range(rounds):
            for name in names:
                command = [sys.executable, __file__, "--load", name, str(path), str(inputs)]
                done = subprocess.run(command, capture_output=True, text=True, check=True)
                runs[name].append(list(map(float, done.stdout.split())))
        lowest = [np.min(runs[name], axis=0) for name in names]  # other processes only slow down a load
        rows.append([model.name, *(f"{values[k]:.0f}" for k in range(3) for values in lowest)])
        progress(" | ".join(rows[-1]))
    header = ["model", *(f"{name}: {unit}" for unit in ("load, ms", "peak, MB", "after, MB") for name in names)]
    print(f"\n### From the file to the first results\n\n{table(header, rows)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--threads", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--models", default="", help="models whose names contain this text (default: all)")
    parser.add_argument("--only", choices=["onnx", "xml", "loading"], help="print only this table")
    parser.add_argument("--wheels", type=Path, help="folder that caches published models (default: download them)")
    parser.add_argument("--load", nargs=3, metavar=("LIBRARY", "MODEL", "INPUTS"), help="measure in this process")
    options = parser.parse_args()
    if options.load:
        name, path, inputs = options.load
        load(name, Path(path), Path(inputs))
        return
    print(table(["what", "here"], versions().items()))
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        models = [model for model in all_models(root, options.wheels or root) if options.models in model.name]
        paths = [root / f"{number}.onnx" for number in range(len(models))]
        for model, path in zip(models, paths, strict=True):
            path.write_bytes(model.contents)
        if options.only in (None, "onnx"):
            report(".onnx", models, paths, options.threads, options.rounds)
        if options.only in (None, "xml"):
            report(".xml", models, [write_ir(path) for path in paths], options.threads, options.rounds)
        if options.only in (None, "loading"):
            report_loading(models, paths, max(1, options.rounds // 3))


if __name__ == "__main__":
    main()
