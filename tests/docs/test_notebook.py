"""The notebooks have no outputs in the repository, and every cell runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rows import each_row

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
pytestmark = pytest.mark.skipif(not (ROOT / "docs").exists(), reason="the tests stand without the documents")


@each_row("path", NOTEBOOKS, ids=lambda path: path.name)
def test_no_outputs_are_committed(path: Path) -> None:
    cells = [cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
    assert len(cells) > 3
    assert [cell for cell in cells if cell["outputs"] or cell["execution_count"]] == []


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Kernel is running over TCP")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_notebook_runs(path: Path, tmp_path: Path) -> None:
    nbformat = pytest.importorskip("nbformat")
    client = pytest.importorskip("nbclient").NotebookClient
    pytest.importorskip("ipykernel")
    notebook = nbformat.read(path, as_version=4)
    client(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    cells = [cell for cell in notebook.cells if cell["cell_type"] == "code"]
    assert all(cell["execution_count"] for cell in cells)
    assert any("image/png" in output.get("data", {}) for cell in cells for output in cell["outputs"])
