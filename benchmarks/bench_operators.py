"""Compare the time of operators with ONNX Runtime, OpenVINO and PyTorch, as a Markdown table."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from report import progress, table
from versions import versions

from pyrnnx import Layer
from pyrnnx.bench.peers import PEERS, Pyrnnx, checked_peers
from pyrnnx.bench.timing import MIN_TIME, geometric_mean, measure, milliseconds
from pyrnnx.bench.workload import Case, make_arrays
from pyrnnx.operator.quantized import WEIGHT_DTYPES

SHAPES = (
    *((1, 1, H, H) for H in (64, 128, 512)),
    *((100, 1, H, H) for H in (64, 128, 256, 512)),
    (50, 1, 1024, 1024),
    (100, 4, 96, 200),
    (100, 8, 128, 128),
    (100, 16, 256, 256),
    (50, 32, 512, 512),
    (50, 64, 512, 512),
    (25, 128, 1024, 1024),
)
TINY = tuple((1000, 1, 1, H) for H in (16, 32, 64))
STREAMING = tuple((1, 1, H, H) for H in (64, 128, 256, 512))
FEW_SHAPES = ((100, 1, 128, 128), (100, 8, 128, 128), (100, 16, 256, 256))
WEIGHTS = (*((T, 1, H, H) for T in (1, 100) for H in (128, 256, 512)), *((50, N, 256, 256) for N in (4, 8, 16, 64)))
RAGGED = ((100, 32, 128, 128), (100, 32, 256, 256))
OPTIONS = (100, 8, 128, 128)

IN_LOOP = 100  # calls of group push in one repetition
BUSY_TIME = 0.1  # seconds of a timing beside a busy process: many turns of the processor

LINEAR_GRU: dict[str, Any] = {"cell": "GRU", "linear_before_reset": 1}
KINDS: tuple[dict[str, Any], ...] = ({"cell": "LSTM"}, {"cell": "GRU"}, LINEAR_GRU, {"cell": "RNN"})


def cases(
    shapes: Sequence[tuple[int, int, int, int]], kinds: Sequence[dict[str, Any]] = KINDS, **settings: Any
) -> list[Case]:
    return [Case(T=T, N=N, I=I, H=H, **kind, **settings) for kind in kinds for T, N, I, H in shapes]


GROUPS: dict[str, list[Case]] = {
    "shapes": cases(SHAPES, [kind for kind in KINDS if kind is not LINEAR_GRU], states=False),
    "linear_before_reset": cases(SHAPES, [LINEAR_GRU], states=False),
    "tiny": cases(TINY, states=False),
    "streaming": cases(STREAMING),
    "ragged": cases(RAGGED, ragged=True),
    "float64": cases(FEW_SHAPES, dtype="float64"),
    "bidirectional": cases(FEW_SHAPES, directions=2),
}


@dataclass(frozen=True)
class Row:
    """The measurement of one case: medians in seconds, and the ratio of the fastest peer's time to pyrnnx's."""

    group: str
    case: Case
    threads: int
    seconds: dict[str, float]
    reasons: dict[str, str]
    fastest: str | None
    ratio: float | None

    def cells(self) -> list[str]:
        times = [milliseconds(self.seconds[cls.name]) if cls.name in self.seconds else "" for cls in PEERS]
        ratio = "" if self.ratio is None else f"{self.ratio:.2f}"
        return [self.case.kind, self.case.shape, str(self.threads), *times, ratio, self.fastest or ""]


def run_case(group: str, case: Case, threads: int, rounds: int, min_time: float) -> Row:
    peers, reasons = checked_peers(case, threads)
    calls = {name: peer.run for name, peer in peers.items()}
    timings = measure(calls, rounds, threads=threads, min_time=min_time)
    seconds = {name: timings.median(name) for name in peers}
    others = [name for name in peers if name != Pyrnnx.name]
    fastest = min(others, key=seconds.__getitem__, default=None)
    ratio = timings.ratio(fastest, Pyrnnx.name) if fastest else None
    return Row(group, case, threads, seconds, reasons, fastest, ratio)


def run_group(group: str, threads: Sequence[int], rounds: int, min_time: float) -> list[Row]:
    rows = []
    for count in threads:
        for case in GROUPS[group]:
            rows.append(run_case(group, case, count, rounds, min_time))
            progress(" ".join((group, *rows[-1].cells())))
    return rows


@contextmanager
def disturbed(busy: str | None) -> Iterator[float]:
    """Run a busy process, "free" or "pinned" to one processor, beside the block; yield the seconds of one timing."""
    if busy is None:
        yield MIN_TIME
        return
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        if busy == "pinned":
            os.sched_setaffinity(process.pid, {max(os.sched_getaffinity(0))})
        yield BUSY_TIME
    finally:
        process.kill()
        process.wait()


def means(rows: Sequence[Row]) -> Iterator[list[str]]:
    """Yield geometric mean, lowest ratio and its shape for each cell and number of threads, and for all cells."""
    counts = sorted({row.threads for row in rows})
    for count in counts:
        for kind in (*dict.fromkeys(row.case.kind for row in rows), "all"):
            chosen = [row for row in rows if row.threads == count and kind in (row.case.kind, "all")]
            measured = [(row.ratio, f"{row.case.kind} {row.case.shape}") for row in chosen if row.ratio is not None]
            if measured:
                mean = geometric_mean([ratio for ratio, _ in measured])
                lowest, case = min(measured)
                yield [kind, str(count), str(len(measured)), f"{mean:.2f}", f"{lowest:.2f}", case]


def print_group(group: str, rows: Sequence[Row]) -> None:
    print(f"\n### {group}\n")
    header = ["cell", "T,N,I,H", "threads", *(f"{cls.name} ms" for cls in PEERS), "ratio", "fastest peer"]
    print(table(header, [row.cells() for row in rows]))
    print("\nratio: time of the fastest peer over the time of pyrnnx; above 1 pyrnnx is faster.")
    for name, reason, kinds in _reasons(rows):
        print(f"- {name}, no time for {', '.join(kinds)}: {reason}.")
    print()
    print(table(["geometric mean", "threads", "cases", "ratio", "lowest", "of"], means(rows)))


def _reasons(rows: Sequence[Row]) -> Iterator[tuple[str, str, list[str]]]:
    reasons: dict[tuple[str, str], dict[str, None]] = {}
    for row in rows:
        for name, reason in row.reasons.items():
            reasons.setdefault((name, reason), {})[row.case.kind] = None
    for (name, reason), kinds in reasons.items():
        yield name, reason, list(kinds)


def option_cases(plain: Case) -> dict[str, Case]:
    """Return a case for each single option of the plain cell."""
    from pyrnnx import ACTIVATIONS

    options = {"clip": replace(plain, attributes={"clip": 0.5})}
    if plain.cell == "LSTM":
        options["peepholes"] = replace(plain, peepholes=True)
        options["input_forget"] = replace(plain, attributes={"input_forget": 1})
        options["all three"] = replace(plain, peepholes=True, attributes={"clip": 0.5, "input_forget": 1})
    default = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}[plain.cell]
    for k, letter in enumerate("fgh"[: len(default)]):
        for name, row in ACTIVATIONS.items():
            if name != default[k]:
                attributes: dict[str, Any] = {"activations": [*default[:k], name, *default[k + 1 :]]}
                attributes |= {"activation_alpha": [0.5]} if row.alpha is not None else {}
                attributes |= {"activation_beta": [0.25]} if row.beta is not None else {}
                options[f"{letter} = {name}"] = replace(plain, attributes=attributes)
    return options


def run_options(threads: int, rounds: int) -> dict[str, dict[str, float]]:
    """Return ratios of each option's time to the plain cell's: {cell: {option: ratio}}."""
    results: dict[str, dict[str, float]] = {}
    T, N, I, H = OPTIONS
    for kind in KINDS:
        plain = Case(T=T, N=N, I=I, H=H, **kind)
        base = Pyrnnx(plain, make_arrays(plain), threads)
        ratios = results.setdefault(plain.kind, {})
        for option, case in option_cases(plain).items():
            peer = Pyrnnx(case, make_arrays(case), threads)
            ratios[option] = measure({"plain": base.run, "option": peer.run}, rounds, threads=threads).ratio(
                "option", "plain"
            )
        progress(f"options {plain.kind}")
    return results


def print_options(results: dict[str, dict[str, float]], threads: int) -> None:
    T, N, I, H = OPTIONS
    print(f"\n### options: pyrnnx alone, T,N,I,H = {T},{N},{I},{H}, threads = {threads}\n")
    longest = sorted(results.values(), key=len, reverse=True)
    options = dict.fromkeys(option for ratios in longest for option in ratios)
    rows = [[option, *(f"{r[option]:.2f}" if option in r else "" for r in results.values())] for option in options]
    print(table(["option", *results], rows))
    print("\nTime with that option over time of the plain cell; below 1 the option is faster. Slowest:")
    for kind, ratios in results.items():
        option = max(ratios, key=ratios.__getitem__)
        print(f"- {kind}: {option}, {ratios[option]:.2f}")


def run_weights(threads: int, rounds: int) -> dict[str, dict[str, float]]:
    """Return milliseconds of a call with each form of the weights: {case: {form: time}}."""
    results: dict[str, dict[str, float]] = {}
    for case in cases(WEIGHTS, [{"cell": "LSTM"}, {"cell": "GRU"}]):
        arrays = make_arrays(case)
        node = Pyrnnx(case, arrays, threads).layer
        layers = {str(form): Layer(node.op, *node.weights.values(), weight_dtype=form) for form in WEIGHT_DTYPES}
        calls = {form: partial(layer, arrays["X"]) for form, layer in layers.items()}
        timings = measure(calls, rounds, threads=threads)
        results[f"{case.kind} {case.shape}"] = {form: 1e3 * timings.median(form) for form in calls}
    return results


def print_weights(results: dict[str, dict[str, float]], threads: int) -> None:
    print(f"\n### weights: pyrnnx alone, ms, threads = {threads}\n")
    forms = list(next(iter(results.values())))
    names = ["float32" if form == "None" else form for form in forms]
    print(table(["T,N,I,H", *names], [[case, *(f"{r[form]:.4f}" for form in forms)] for case, r in results.items()]))


def run_push(threads: int, rounds: int) -> dict[str, dict[str, float]]:
    """Return microseconds of one step of one row by each kind of call: {case: {kind: time}}."""
    results: dict[str, dict[str, float]] = {}
    for kind in KINDS:
        for H in (16, 64):
            case = Case(T=1, N=1, I=1, H=H, states=False, **kind)
            arrays = make_arrays(case)
            layer = Pyrnnx(case, arrays, threads).layer
            X = arrays["X"]
            Y, out = layer.stream(1).push(X), layer(X)
            kinds = _loops(layer, X, Y, out)
            timings = measure(kinds, rounds, threads=threads)
            results[f"{case.kind} {case.shape}"] = {name: 1e6 / IN_LOOP * timings.median(name) for name in kinds}
    return results


def _loops(layer: Layer, X: Any, Y: Any, out: Any) -> dict[str, Callable[[], None]]:
    """Return loops of `IN_LOOP` calls, as a user writes them: `functools.partial` would take as long as a call."""
    push, push_into = layer.stream(1).push, layer.stream(1).push

    def pushes() -> None:
        for _ in range(IN_LOOP):
            push(X)

    def pushes_into() -> None:
        for _ in range(IN_LOOP):
            push_into(X, out=Y)

    def calls() -> None:
        for _ in range(IN_LOOP):
            layer(X)

    def calls_into() -> None:
        for _ in range(IN_LOOP):
            layer(X, out=out)

    return {"push": pushes, "push, out=": pushes_into, "call": calls, "call, out=": calls_into}


def print_push(results: dict[str, dict[str, float]], threads: int) -> None:
    print(f"\n### push: pyrnnx alone, one step of one row, µs, threads = {threads}\n")
    names = list(next(iter(results.values())))
    print(table(["T,N,I,H", *names], [[case, *(f"{r[name]:.2f}" for name in names)] for case, r in results.items()]))


# Functions that measure and print groups without peers.
ALONE = {
    "options": (run_options, print_options),
    "weights": (run_weights, print_weights),
    "push": (run_push, print_push),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--group", nargs="+", default=["shapes"], choices=[*GROUPS, *ALONE, "all"])
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--busy", choices=["free", "pinned"], help="measure beside a process that is always busy")
    parser.add_argument("--json", type=Path, help="also write the measurements to this file")
    arguments = parser.parse_args()
    groups = [*GROUPS, *ALONE] if "all" in arguments.group else arguments.group
    report: dict[str, Any] = {
        "versions": versions(),
        "rounds": arguments.rounds,
        "rows": [],
        **{group: {} for group in ALONE},
    }
    for group in groups:
        if group in ALONE:
            run, show = ALONE[group]
            for threads in arguments.threads:
                results = run(threads, arguments.rounds)
                show(results, threads)
                report[group][threads] = results
        else:
            with disturbed(arguments.busy) as min_time:
                rows = run_group(group, arguments.threads, arguments.rounds, min_time)
            print_group(group, rows)
            report["rows"] += [asdict(row) for row in rows]
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
