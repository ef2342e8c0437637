"""What is installed, what a source tree says that is not, and what a build says that has no compiler."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import pyrnnx

ROOT = Path(__file__).parents[1]
in_checkout = pytest.mark.skipif(not (ROOT / "pyrnnx").exists(), reason="the tests stand without the sources")


def run(*arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def settings() -> dict[str, Any]:
    tomllib = pytest.importorskip("tomllib", reason="Python 3.10 reads no TOML")
    return dict(tomllib.loads((ROOT / "pyproject.toml").read_text()))


@in_checkout
def test_every_package_is_installed() -> None:
    folders = [*(ROOT / "pyrnnx").rglob("__init__.py"), *(ROOT / "frontends").rglob("__init__.py")]
    names = {".".join(path.parent.relative_to(ROOT).parts) for path in folders}
    packages = settings()["tool"]["setuptools"]["packages"]
    assert {re.sub("^frontends", "pyrnnx.frontends", name) for name in names} == set(packages)


@in_checkout
def test_a_source_tree_that_is_not_built_says_so(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "pyrnnx", tmp_path / "pyrnnx", ignore=shutil.ignore_patterns("*.so", "*.pyd", "*.c"))
    result = run("-c", "import pyrnnx", cwd=tmp_path)
    assert result.returncode != 0
    last = result.stderr.splitlines()[-1]
    assert last.startswith(f"ImportError: pyrnnx is being imported from its source tree, {tmp_path}, which is not")
    assert 'python -m pip install -e ".[onnx,cli]"' in last


@in_checkout
@pytest.mark.skipif(sys.platform == "win32", reason="CC chooses the compiler elsewhere")
@pytest.mark.skipif(importlib.util.find_spec("Cython") is None, reason="modules are built with Cython")
def test_a_build_without_a_compiler_says_so_first(tmp_path: Path) -> None:
    options = ("--build-lib", str(tmp_path), "--build-temp", str(tmp_path))
    result = run("setup.py", "build_ext", *options, cwd=ROOT, CC=str(tmp_path / "cc"))
    assert result.returncode != 0
    assert len(result.stdout.splitlines()) < 10
    last = result.stderr.splitlines()[-1]
    assert last.startswith("pyrnnx is built with a C compiler and Python's headers, which do not work here")
    assert "Install them: " in last
    assert list(tmp_path.rglob("*.c")) == []


def test_metadata_names_the_home_of_the_project() -> None:
    urls = settings()["project"]["urls"]
    assert {"Homepage", "Source", "Issues", "Changelog"} <= urls.keys()
    assert all(url.startswith("https://github.com/pyrnnx/pyrnnx") for url in urls.values())


def test_changelog_and_citation_are_of_this_version() -> None:
    version = re.escape(pyrnnx.__version__)
    assert re.search(rf"^## \[{version}\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert re.search(rf"^version: {version}$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
