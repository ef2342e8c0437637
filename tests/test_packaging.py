"""Installed files, and messages about a missing installation, compiler or extra."""

from __future__ import annotations

import ast
import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import smoke

import pyrnnx
from pyrnnx._internal.extras import needs

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


def test_modules_need_no_newer_glibc() -> None:
    """A wheel for manylinux2014, on any Linux with glibc, whatever system built it."""
    for path in Path(pyrnnx.__file__).parent.rglob("*.so"):
        content = path.read_bytes()
        if b".gcda" in content:
            pytest.skip("a build that counts lines also has the symbols of gcc's library")
        newer = [f"2.{version}" for version in map(int, re.findall(rb"\0GLIBC_2\.(\d+)", content)) if version > 17]
        assert newer == [], path.name


def test_a_folder_of_the_same_name_does_not_hide_the_package(tmp_path: Path) -> None:
    """Python in the folder that contains the clone, after `pip install -e`."""
    (tmp_path / "pyrnnx").mkdir()
    result = run("-c", "import pyrnnx; print(pyrnnx.load.__name__)", cwd=tmp_path)
    assert (result.stdout, result.stderr) == ("load\n", "")


@in_checkout
def test_a_source_tree_that_is_not_built_says_so(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "pyrnnx", tmp_path / "pyrnnx", ignore=shutil.ignore_patterns("*.so", "*.pyd", "*.c"))
    result = run("-c", "import pyrnnx", cwd=tmp_path)
    assert result.returncode != 0
    last = result.stderr.splitlines()[-1]
    assert last.startswith(f"ImportError: pyrnnx is being imported from its source tree, {tmp_path}, which is not")
    assert 'python -m pip install -e ".[onnx,cli]"' in last


@pytest.mark.e2e
@in_checkout
@pytest.mark.skipif(sys.platform == "win32", reason="CC chooses the compiler elsewhere")
@pytest.mark.skipif(importlib.util.find_spec("Cython") is None, reason="modules are built with Cython")
def test_a_build_without_a_compiler_says_so_first(tmp_path: Path) -> None:
    options = ("--build-lib", str(tmp_path), "--build-temp", str(tmp_path))
    result = run("setup.py", "build_ext", *options, cwd=ROOT, CC=str(tmp_path / "cc"))
    assert result.returncode != 0
    assert len(result.stdout.splitlines()) < 10
    last = result.stderr.splitlines()[-1]
    assert last.startswith(f"pyrnnx needs a C compiler ({tmp_path / 'cc'}: No such file or directory); install one: ")
    assert list(tmp_path.rglob("*.c")) == []


def words_of_extras() -> Iterator[tuple[str, str, str]]:
    """Yield the file, package and extra of each call of `needs` or `import_package` with literals."""
    places = {"needs": slice(1, None), "import_package": slice(0, None, 2)}
    for path in [*(ROOT / "pyrnnx").rglob("*.py"), *(ROOT / "frontends").rglob("*.py")]:
        text = path.read_text(encoding="utf-8")
        if not any(f"{name}(" in text for name in places):  # parsing takes much longer
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in places:
                words = node.args[places[node.func.id]]
                literals = [str(word.value) for word in words if isinstance(word, ast.Constant)]
                if len(literals) == 2:
                    yield path.name, literals[0].partition(".")[0], literals[1]


def packages_of(extra: str) -> set[str]:
    packages = set[str]()
    for requirement in settings()["project"]["optional-dependencies"][extra]:
        name, inner = re.match(r"([\w.-]+)(?:\[(.*)\])?", requirement).groups()  # type: ignore[union-attr]
        packages |= {name} if inner is None else set().union(*map(packages_of, inner.split(",")))
    return packages


@in_checkout
def test_messages_name_an_extra_that_installs_the_package() -> None:
    calls = list(words_of_extras())
    assert len(calls) > 3
    assert [call for call in calls if call[1] not in packages_of(call[2])] == []


@pytest.mark.e2e
@pytest.mark.skipif(not list(importlib.metadata.distributions(name="pip")), reason="asks pip")
def test_the_command_of_messages_needs_no_pyrnnx_on_an_index(tmp_path: Path) -> None:
    [command] = re.findall("`python (.*)`", needs("a test", "typer", "cli"))
    result = run(*command.replace('"', "").split(), "--no-index", "--dry-run", cwd=tmp_path)
    assert result.returncode == 0, result.stderr


def extras_for_users() -> set[str]:
    return set(settings()["project"]["optional-dependencies"]) - smoke.DEVELOPERS


def test_every_extra_for_users_has_a_smoke_test() -> None:
    assert extras_for_users() <= smoke.EXTRAS.keys()


def test_wheels_are_tested_with_the_extras_that_they_are_tested_beside() -> None:
    wheels = settings()["tool"]["cibuildwheel"]
    for one in (wheels, *wheels["overrides"]):
        command, *extras = re.split(r"\s+(?!\{)", one["test-command"].removeprefix("python "))
        assert (ROOT / command.removeprefix("{project}/")).samefile(smoke.__file__)
        assert extras == one["test-extras"]
        assert set(extras) <= extras_for_users()
