"""The cache of objects in setup.py: an object is reused only for the same code, compiler and flags."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

SETUP = Path(__file__).parents[1] / "setup.py"
SOURCE = "#ifndef NUMBER\n#include <number.h>\n#endif\nint number(void) { return NUMBER; }\n"
# A compiler that lists its calls: `-c` compiles, without it the source is only preprocessed.
COMPILER = '#!/bin/sh\n# {comment}\ncase "$*" in *" -c "*) echo "$*" >> {calls};; esac\nexec {compiler} "$@"\n'

pytestmark = [
    pytest.mark.skipif(not SETUP.exists(), reason="the tests stand without the sources"),
    pytest.mark.skipif(importlib.util.find_spec("setuptools") is None, reason="modules are built with setuptools"),
    pytest.mark.skipif(sys.platform == "win32" or shutil.which("cc") is None, reason="needs a Unix compiler"),
]


@pytest.fixture
def setup_module(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    import setuptools

    monkeypatch.setattr(setuptools, "setup", lambda **arguments: None)
    spec = importlib.util.spec_from_file_location("pyrnnx_setup", SETUP)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Build:
    """A build of one source with a header and a compiler of its own, below a folder."""

    def __init__(self, setup_module: ModuleType, folder: Path) -> None:
        from setuptools import Distribution, Extension

        self.source, self.header, self.compiler = folder / "number.c", folder / "include" / "number.h", folder / "cc"
        self.calls = folder / "calls"
        self.header.parent.mkdir()
        self.write_header(1)
        self.source.write_text(SOURCE)
        self.write_compiler("version 1")
        self.extension = Extension("number", [str(self.source)], extra_compile_args=["-O1"])
        self.command = setup_module.Modules(Distribution({"ext_modules": [self.extension]}))
        self.command.ensure_finalized()
        self.command.cache, self.command.headers = folder / "objects", [str(self.header.parent)]

    def write_header(self, number: int) -> None:
        self.header.write_text(f"#define NUMBER {number}\n")

    def write_compiler(self, comment: str) -> None:
        self.compiler.write_text(COMPILER.format(comment=comment, calls=self.calls, compiler=shutil.which("cc")))
        self.compiler.chmod(0o755)

    def new_compiler(self) -> Any:
        from distutils.ccompiler import new_compiler  # of setuptools

        compiler = new_compiler(compiler="unix")
        compiler.set_executables(compiler_so=f"{self.compiler} -fPIC")
        return compiler

    def compile(self) -> Path:
        self.command.compiler = self.new_compiler()
        return Path(self.command.compile(self.extension, str(self.source)))

    def compiled(self) -> int:
        """Return how many times the compiler has compiled."""
        return len(self.calls.read_text().splitlines()) if self.calls.exists() else 0


@pytest.fixture
def build(setup_module: ModuleType, tmp_path: Path) -> Build:
    return Build(setup_module, tmp_path)


CHANGES: dict[str, Callable[[Build], object]] = {
    "source": lambda build: build.source.write_text(SOURCE + "int other;\n"),
    "header": lambda build: build.write_header(2),
    "flag": lambda build: build.extension.extra_compile_args.append("-O2"),
    "macro": lambda build: build.extension.define_macros.append(("NUMBER", "2")),
    "compiler": lambda build: build.write_compiler("version 2 in the same place"),
}


@pytest.mark.parametrize(
    "change", [pytest.param(name, marks=pytest.mark.slow if name in ("flag", "macro") else ()) for name in CHANGES]
)
def test_a_change_compiles_again(change: str, build: Build) -> None:
    first = build.compile()
    assert build.compile() == first
    assert build.compiled() == 1
    CHANGES[change](build)
    second = build.compile()
    assert second != first
    assert build.compile() == second
    assert build.compiled() == 2


def test_what_is_the_same_elsewhere_is_not_compiled_again(build: Build, tmp_path: Path) -> None:
    """Headers of pip's build environment are in another folder in each build, and another Python has other warnings."""
    first = build.compile()
    elsewhere = build.header.parent.rename(tmp_path / "elsewhere")
    build.command.headers = [str(elsewhere)]
    build.source.touch()
    build.extension.extra_compile_args.append("-Wno-unused-result")
    assert build.compile() == first
    assert build.compiled() == 1
