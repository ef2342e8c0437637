"""The pages build without a warning, load nothing from other sites, and have no broken links."""

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
from built_pages import Page, broken_links, is_outside, outside_styles

ROOT = Path(__file__).parents[2]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (ROOT / "docs").exists(), reason="the tests stand without the documents"),
    pytest.mark.skipif(importlib.util.find_spec("sphinx") is None, reason="needs pyrnnx[docs]"),
]
PUBLIC = ("pyrnnx", *(f"pyrnnx.frontends.{name}" for name in ("keras", "onnx", "openvino", "torch")))
TESTING = (
    "pyrnnx.reference",
    *(f"pyrnnx.testing.{name}" for name in ("cases", "conformance", "models", "runtimes", "strategies")),
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


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    fetched = [(path.name, one) for path in site.rglob("*.html") for one in Page(path.read_text()).fetched]
    fetched += [(path.name, one) for path in site.rglob("*.css") for one in outside_styles(path.read_text())]
    assert len(fetched) > 100
    assert [one for one in fetched if is_outside(one[1])] == []


def test_links_lead_somewhere(site: Path) -> None:
    assert broken_links(site) == []


def test_pictures_have_words(site: Path) -> None:
    assert [one for path in site.rglob("*.html") for one in Page(path.read_text()).images_without_text] == []


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


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text('<a href="b.html#x">1</a> <a href="b.html#y">2</a> <a href="c.html">3</a>')
    (tmp_path / "b.html").write_text('<p id="x"></p> <a href="#z">4</a> <a href="https://example.org">5</a>')
    assert sorted(broken_links(tmp_path)) == ["a.html: b.html#y", "a.html: c.html", "b.html: #z"]


def test_what_a_browser_would_fetch_is_found() -> None:
    page = Page(
        '<link rel="stylesheet" href="https://a.example/a.css"><link rel="canonical" href="https://b.example/">'
        '<script src="//c.example/c.js"></script>'
        '<p style="background: url(https://d.example/d.png)"></p><img src="e.png">'
    )
    assert [one for one in page.fetched if is_outside(one)] == [
        "https://a.example/a.css",
        "//c.example/c.js",
        "https://d.example/d.png",
    ]
    assert page.images_without_text == ["e.png"]
