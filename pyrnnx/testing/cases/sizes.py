"""Cases of sizes (vector widths, tiles, 1 and 0) and of dtypes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyrnnx.testing.cases.case import BOTH, Case, named
from pyrnnx.testing.cases.operators import OPERATORS

WIDE: dict[str, Any] = {"T": 2, "N": 19, "I": 130, "H": 40}
WIDE_FAILS = "some of 19 rows, 130 inputs or 40 units are left out"


def cases() -> Iterator[Case]:
    for op in OPERATORS:
        yield from _blocks(op)
        yield from _lengths(op)
        yield from _nothing(op)
        yield from _dtypes(op)


def _blocks(op: str) -> Iterator[Case]:
    for H in (1, 5, 8, 16, 17, 33, 64):
        for N in (1, 3, 7):
            I = 1 if H == 17 else 3
            feature = "sizes of 1" if 1 in (H, N, I) else "large sizes" if H > 16 else "all together"
            fails = f"{H} units or {N} rows do not fill a block of the kernel, and some are left out"
            yield named(op, f"H{H}-N{N}", feature, fails, BOTH if N == 3 else {}, T=2, N=N, I=I, H=H)
    yield named(op, "wide", "large sizes", WIDE_FAILS, **WIDE)
    for size in ("N", "I", "H"):  # T: below
        changes: dict[str, Any] = {size: 1}
        yield named(op, f"{size}=1", "sizes of 1", one_fails(size), BOTH, **changes)
    yield named(op, "all-1", "sizes of 1", "all axes of length 1 are dropped", T=1, N=1, I=1, H=1)


def one_fails(size: str) -> str:
    """Return what fails in a case of one step, row, input or unit."""
    return f"an axis of length 1, here {size}, is dropped or confused with another"


def _lengths(op: str) -> Iterator[Case]:
    def case(name: str, feature: str, fails: str, lens: tuple[int, ...] | None, **sizes: Any) -> Case:
        return named(op, name, feature, fails, BOTH, lens=lens, **sizes)

    for T in (1, 2, 9):
        feature = "sizes of 1" if T == 1 else "bidirectional"
        yield case(f"T{T}", feature, f"the steps of a sequence of {T} do not run in order", None, T=T, H=17)
    yield case("long", "long sequences", "steps after step 100 are left out", (130, 67), T=130, N=2, H=17)
    yield case("all-lens-full", "sequence_lens with reverse", "a row of length T does not run to its end", (4, 4, 4))
    yield case("all-lens-zero", "length 0", "the results of rows of length 0 are not zeros", (0, 0, 0))
    ragged = "rows are sorted by their length, and their order is not restored"
    yield case("ragged", "sequence_lens with reverse", ragged, (5, 0, 9, 1, 9, 2, 7), T=9, N=7, H=17)


def _nothing(op: str) -> Iterator[Case]:
    fails = "an empty batch is refused, ends the process, or has results of another shape"
    yield named(op, "N=0", "empty batch", fails, BOTH, lens=(), N=0)
    yield named(op, "N=0-layout1", "empty batch", fails, BOTH | {"layout": 1}, N=0)
    steps = "T = 0 is refused, ends the process, or leaves states that are not zeros"
    yield named(op, "T=0", "T = 0", steps, BOTH, T=0)
    yield named(op, "T=0-lens", "T = 0", steps, lens=(0, 0, 0), T=0)
    inputs = "input_size 0 is refused, ends the process, or skips the recurrence"
    yield named(op, "I=0", "input_size 0", inputs, BOTH, lens=(4, 0, 1), I=0)
    yield named(op, "I=0-no-bias", "input_size 0", inputs, {}, (), I=0)
    yield named(op, "N=0-T=0-I=0", "empty batch", fails, T=0, N=0, I=0)


DTYPE_FAILS = {
    "float64": "float64 is refused, or computed in float32",
    "float16": "float16 is refused, or its sums are accumulated in float16",
    "bfloat16": "bfloat16 is refused, or its sums are accumulated in bfloat16",
}
# The errors of sums this long and large exceed the tolerance of a narrow type that accumulates them.
LONG_SUMS: dict[str, Any] = {"T": 2, "I": 1024, "H": 17, "scale": 8.0}


def _dtypes(op: str) -> Iterator[Case]:
    for dtype, fails in DTYPE_FAILS.items():
        yield named(op, dtype, dtype, fails, BOTH, lens=(4, 2, 3), dtype=dtype)
        yield named(op, f"{dtype}-wide", dtype, fails, BOTH, dtype=dtype, **LONG_SUMS)
