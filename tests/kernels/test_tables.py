"""The rows of tables.h: their values in Python, and a build error for a row that an engine lacks."""

from __future__ import annotations

import math
import platform
import shutil
import subprocess
from pathlib import Path

import pytest
from rows import each_row

from pyrnnx import ACTIVATIONS, reference
from pyrnnx._kernels import tables
from pyrnnx.operator.op import CELLS, KERNEL_NUMBERS

KERNELS = Path(__file__).parents[2] / "pyrnnx/_kernels"
COMPILER = shutil.which("cc")
needs_sources = pytest.mark.skipif(
    COMPILER is None or not (KERNELS / "tables.h").exists(), reason="needs a C compiler and a checkout"
)


def test_defaults_are_numbers_or_required_or_not_taken() -> None:
    for parameter, oracle in (("alpha", reference.ALPHA), ("beta", reference.BETA)):
        found = {name: getattr(row, parameter) for name, row in ACTIVATIONS.items()}
        taken = {name: value for name, value in found.items() if value is not None}
        assert {name: None if math.isnan(value) else value for name, value in taken.items()} == oracle


def test_a_row_stands_at_its_number() -> None:
    assert [tables.ACTIVATIONS[number][0] for number in KERNEL_NUMBERS.values()] == list(ACTIVATIONS)
    assert [tables.CELLS[row.kernel_number][0] for row in CELLS.values()] == list(CELLS)


ALTERED: dict[str, tuple[str, str, str, str]] = {  # the file that reads the table, what it must name; a row put before
    "activation without a formula in blas": (
        "blas/activations.h",
        "Mish",
        "    ROW(Relu,",
        'ROW(Mish, "x", PYRNNX_ABSENT, PYRNNX_ABSENT)',
    ),
    "cell with an activation that is no row": (
        "simd/neon.c" if platform.machine() in ("aarch64", "arm64") else "simd/avx2.c",
        "PYRNNX_Mish",
        "    ROW(RNN,",
        'ROW(Jordan, "i", PYRNNX_HAS(PLAIN), 0, PYRNNX_Mish)',
    ),
}


def compiled(source: Path) -> subprocess.CompletedProcess[str]:
    assert COMPILER is not None
    command = [COMPILER, "-fsyntax-only", "-x", "c", "-I", str(source.parents[1]), str(source)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.slow
@needs_sources
@each_row("name", ALTERED)
def test_a_row_that_an_engine_does_not_know_does_not_compile(name: str, tmp_path: Path) -> None:
    file, missing, place, row = ALTERED[name]
    copy = shutil.copytree(KERNELS, tmp_path / "kernels", ignore=shutil.ignore_patterns("*.so", "*.py*"))
    assert compiled(copy / file).returncode == 0
    text = (copy / "tables.h").read_text(encoding="utf-8")
    assert text.count(place) == 1
    (copy / "tables.h").write_text(text.replace(place, f"    {row} \\\n{place}"), encoding="utf-8")
    done = compiled(copy / file)
    assert done.returncode != 0
    first = next(line for line in done.stderr.splitlines() if "error:" in line)
    assert missing in first
