"""Compare the time of operators with ONNX Runtime, OpenVINO and PyTorch, as a Markdown table."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from report import progress, table, versions

from pyrnnx import Layer
from pyrnnx.bench.peers import PEERS, Pyrnnx, checked_peers
from pyrnnx.bench.timing import geometric_mean, measure, milliseconds
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
PUSHES = ("push", "push, out=", "call", "call, out=")
IN_LOOP = 100  # calls of group push in one repetition

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


def run_case(case: Case, threads: int, rounds: int) -> Row:
    peers, reasons = checked_peers(case, threads)
    calls = {name: peer.run for name, peer in peers.items()}
    timings = measure(calls, rounds, threads=threads)
    seconds = {name: timings.median(name) for name in peers}
    others = [name for name in peers if name != Pyrnnx.name]
    fastest = min(others, key=seconds.__getitem__, default=None)
    ratio = timings.ratio(fastest, Pyrnnx.name) if fastest else None
    return Row(case, threads, seconds, reasons, fastest, ratio)


def run_group(group: str, threads: Sequence[int], rounds: int) -> list[Row]:
    rows = []
    for count in threads:
        for case in GROUPS[group]:
            rows.append(run_case(case, count, rounds))
            progress(" ".join((group, *rows[-1].cells())))
    return rows


def means(rows: Sequence[Row]) -> Iterator[list[str]]:
    """Yield geometric mean, lowest ratio and its shape for each cell and number of threads, and for all cells."""
    for count in sorted({row.threads for row in rows}):
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
    reasons: dict[tuple[str, str], dict[str, None]] = {}  # the cells of each, in order
    for row in rows:
        for name, reason in row.reasons.items():
            reasons.setdefault((name, reason), {})[row.case.kind] = None
    for (name, reason), kinds in reasons.items():
        print(f"- {name}, no time for {', '.join(kinds)}: {reason}.")
    print()
    print(table(["geometric mean", "threads", "cases", "ratio", "lowest", "of"], means(rows)))


def weights(threads: int, rounds: int) -> list[list[str]]:
    """Return rows of milliseconds of a call with each form of the weights."""
    rows = []
    for case in cases(WEIGHTS, [{"cell": "LSTM"}, {"cell": "GRU"}]):
        arrays = make_arrays(case)
        plain = Pyrnnx(case, arrays, threads).layer
        layers = [Layer(plain.op, *plain.weights.values(), weight_dtype=form) for form in WEIGHT_DTYPES]
        calls = {str(k): partial(layer, arrays["X"]) for k, layer in enumerate(layers)}
        timings = measure(calls, rounds, threads=threads)
        rows.append([f"{case.kind} {case.shape}", *(milliseconds(timings.median(name)) for name in calls)])
    return rows


def push(threads: int, rounds: int) -> list[list[str]]:
    """Return rows of microseconds of one step of one row, by each kind of call."""
    rows = []
    for case in cases([(1, 1, 1, H) for H in (16, 64)], states=False):
        arrays = make_arrays(case)
        calls = loops(Pyrnnx(case, arrays, threads).layer, arrays["X"])
        timings = measure(calls, rounds, threads=threads)
        rows.append([f"{case.kind} {case.shape}", *(f"{1e6 / IN_LOOP * timings.median(name):.2f}" for name in calls)])
    return rows


def loops(layer: Layer, X: Any) -> dict[str, Callable[[], None]]:
    """Return loops of `IN_LOOP` calls, as a user writes them: `functools.partial` would take as long as a call."""
    stream, stream_into = layer.stream(1), layer.stream(1)
    Y, out = layer.stream(1).push(X), layer(X)

    def pushes() -> None:
        for _ in range(IN_LOOP):
            stream.push(X)

    def pushes_into() -> None:
        for _ in range(IN_LOOP):
            stream_into.push(X, out=Y)

    def calls() -> None:
        for _ in range(IN_LOOP):
            layer(X)

    def calls_into() -> None:
        for _ in range(IN_LOOP):
            layer(X, out=out)

    return dict(zip(PUSHES, (pushes, pushes_into, calls, calls_into), strict=True))


# Groups of pyrnnx alone: title, columns, and a function of threads and rounds that returns the rows.
ALONE: dict[str, tuple[str, Sequence[str], Callable[[int, int], list[list[str]]]]] = {
    "weights": ("ms", ["float32", *filter(None, WEIGHT_DTYPES)], weights),
    "push": ("one step of one row, µs", PUSHES, push),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--group", nargs="+", default=["shapes"], choices=[*GROUPS, *ALONE, "all"])
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--rounds", type=int, default=9)
    arguments = parser.parse_args()
    print(versions())
    for group in [*GROUPS, *ALONE] if "all" in arguments.group else arguments.group:
        if group in GROUPS:
            print_group(group, run_group(group, arguments.threads, arguments.rounds))
            continue
        title, columns, run = ALONE[group]
        for threads in arguments.threads:
            print(f"\n### {group}: pyrnnx alone, {title}, threads = {threads}\n")
            print(table(["T,N,I,H", *columns], run(threads, arguments.rounds)))


if __name__ == "__main__":
    main()
