"""README: its samples run, and each cell of the support matrix has a case compared with the oracle."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import metadata
from pathlib import Path

import pytest
from rows import each_row

import pyrnnx
from pyrnnx.bench.timing import geometric_mean
from pyrnnx.frontends.onnx import SCHEMAS, schema
from pyrnnx.testing import cases

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


@each_row("operator", SCHEMAS)
def test_each_cell_of_the_matrix_has_a_case(operator: str) -> None:
    mine = [case for case in cases.CASES if case.operator == operator]
    tested = {(schema(operator, case.opset).since_version, name) for case in mine for name in case.attributes}
    tested |= {
        (schema(operator, case.opset).since_version, dtype) for case in mine for dtype in cases.opset_dtypes(case.opset)
    }
    wanted = {(version, name) for version, one in SCHEMAS[operator].items() for name in (*one.attributes, *one.dtypes)}
    assert wanted - tested == set()


@pytest.mark.e2e
def test_samples_run_in_the_root_of_the_repository() -> None:
    if (ROOT / "pyrnnx").exists() and Path(pyrnnx.__file__).parents[1] != ROOT:
        pytest.skip("the sources hide the pyrnnx that is installed; CI runs the samples beside an installed one too")
    blocks = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len(blocks) == 5
    command = [sys.executable, "-W", "error", "-c", "\n".join(blocks)]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert result.stdout == "(10, 1, 2, 4) (1, 2, 4) (1, 2, 4)\n"


def test_links_work_in_a_clone_and_on_a_package_index() -> None:
    links = re.findall(r"\]\(([^)]*)", re.sub(r"```.*?```", "", README, flags=re.DOTALL))
    assert [link for link in links if not (ROOT / link).is_file()] == []
    published = str(metadata("pyrnnx")["Description"])
    assert published.count("](https://github.com/pyrnnx/pyrnnx/") > 15  # an editable install may be older than README
    assert re.findall(r"\]\([\w/]+\.(?:md|svg)\)", published) == []


@pytest.mark.e2e
def test_speed_is_that_of_the_recorded_figures() -> None:
    figures = pytest.importorskip("figures", reason="needs matplotlib")
    tables = figures.read_tables(ROOT / "benchmarks/README.md")
    for count, title in enumerate(("Shapes, one thread", "Shapes, two threads"), 1):
        ratios = [float(row["ratio"]) for row in tables[title][0]]
        assert f"| {count} | {geometric_mean(ratios):.2f} | {min(ratios):.2f} |" in README


@pytest.mark.e2e
def test_plot_shows_the_recorded_figures() -> None:
    figures = pytest.importorskip("figures", reason="needs matplotlib")
    shown = set(re.findall(r">(\d\.\d\d)<", (ROOT / "docs/static/speed.svg").read_text()))
    axes = figures.speed_plot(figures.read_tables(ROOT / "benchmarks/README.md")).axes[0]
    assert shown == {text.get_text() for text in axes.texts}
