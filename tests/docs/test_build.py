"""The pages build without a warning, and contain every public name."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (ROOT / "docs").exists(), reason="the tests stand without the documents"),
    pytest.mark.skipif(importlib.util.find_spec("sphinx") is None, reason="needs pyrnnx[docs]"),
]
PUBLIC = ("pyrnnx", *(f"pyrnnx.frontends.{name}" for name in ("keras", "onnx", "openvino", "torch")))
TESTING = (
    "pyrnnx.reference",
    *(f"pyrnnx.testing.{name}" for name in ("cases", "conformance", "models", "runtimes")),
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy, for the build writes what it generates beside its sources."""
    folder = tmp_path_factory.mktemp("docs")
    shutil.copytree(ROOT / "docs", folder / "docs", ignore=shutil.ignore_patterns("generated", "built", "__pycache__"))
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-n", "-q", "-b", "html", "docs", "site"]
    environment = {**os.environ, "PYRNNX_ROOT": str(ROOT)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "site"


def test_every_public_name_is_in_the_reference(site: Path) -> None:
    from sphinx.util.inventory import InventoryFile

    with (site / "objects.inv").open("rb") as file:
        inventory = InventoryFile.loads(file.read(), uri="").data
    known = {name for kind, entries in inventory.items() if kind.startswith("py:") for name in entries}
    wanted = {f"{module}.{name}" for module in PUBLIC for name in importlib.import_module(module).__all__}
    for module in map(importlib.import_module, TESTING):  # their tables have no docstrings
        found = {name: getattr(module, name) for name in module.__all__}
        wanted |= {
            f"{module.__name__}.{name}"
            for name, one in found.items()
            if inspect.isfunction(one) or isinstance(one, type)
        }
    assert wanted - known - {"pyrnnx.__version__", "pyrnnx.frontends"} == set()
