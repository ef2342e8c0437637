"""Command that plants each fault in a copy of the sources and names a test that detects it.

`python tests/mutation/run.py` runs the fault's own selection of tests and, if that passes, all default tests; with
`--full`, then the slow and e2e tests. The exit status is 1 if a fault survived. The copy is built once, with -O1; then
only changed files are compiled again.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).parents[1])  # the folder of the package `mutation`

from mutation.fault import Fault
from mutation.planted import FAULTS

ROOT = Path(__file__).parents[2]
SECONDS = 900  # limit of a run of tests; a longer run hangs, which detects the fault
SURVIVED = "survived"
NOT_RUN = (pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.NO_TESTS_COLLECTED)
# All planted faults change a text that these tests look for.
OTHERS = ("--ignore=tests/mutation",)
FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)


class Copy:
    """A copy of the sources, built in place."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            capture_output=True,
            check=True,
        )
        for name in filter(None, listed.stdout.decode().split("\0")):
            if (ROOT / name).is_file():
                target = folder / name
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, target)
        if (ROOT / "build/objects").is_dir():
            shutil.copytree(ROOT / "build/objects", folder / "build/objects")
        (folder / "pyrnnx/frontends").symlink_to("../frontends")
        self._replace("setup.py", '"-O3"', '"-O1"')
        self.build()

    def build(self) -> None:
        command = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"]
        environment = {**os.environ, "PYRNNX_BUILD_MODEL": "1"}  # for faults of matrices, on any machine
        run = subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, check=False)
        if run.returncode:
            raise SystemExit(f"the copy does not build:\n{run.stdout[-2000:]}{run.stderr[-4000:]}")

    def _replace(self, path: str, text: str, replacement: str) -> None:
        file = self.folder / path
        source = file.read_text("utf-8")
        if source.count(text) != 1:
            raise SystemExit(f"{path}: {text!r} occurs {source.count(text)} times; expected once")
        file.write_text(source.replace(text, replacement), "utf-8")

    @contextmanager
    def planted(self, fault: Fault) -> Iterator[None]:
        """Plant a fault in the copy, and restore the sources, not the build, at the end of the context."""
        before = (self.folder / fault.path).read_bytes()
        self._replace(fault.path, fault.text, fault.replacement)
        try:
            if fault.is_compiled:
                self.build()
            yield
        finally:
            (self.folder / fault.path).write_bytes(before)

    def test(self, arguments: Sequence[str]) -> str:
        """Run tests until the first failure and return its name, or "" if all pass."""
        command = [sys.executable, "-m", "pytest", "-x", "-q", "--tb=no", "-p", "no:cacheprovider", *OTHERS, *arguments]
        environment = {**os.environ, "PYTHONPATH": str(self.folder)}
        try:
            run = subprocess.run(
                command,
                cwd=self.folder,
                env=environment,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"hangs: no end within {SECONDS} s"
        if run.returncode == 0:
            return ""
        if run.returncode in NOT_RUN:
            raise SystemExit(f"pytest {' '.join(arguments)} runs no tests:\n{run.stdout[-2000:]}{run.stderr[-2000:]}")
        failed = FAILED.search(run.stdout)
        return failed[1] if failed else f"crash, status {run.returncode}"


def detecting_test(copy: Copy, fault: Fault, full: bool) -> str:
    """Return the test that detects a fault, or `SURVIVED`."""
    with copy.planted(fault):
        selections = [fault.tests.split(), ["-n", "auto"]]
        if full:
            selections.append(["-n", "auto", "-m", "slow or e2e"])
        for selection in selections:
            if test := copy.test(selection):
                return test
    return SURVIVED


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return 1 if a fault survived."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="run only faults whose names or paths contain this")
    parser.add_argument("--full", action="store_true", help="run slow and e2e tests on faults that survive")
    options = parser.parse_args(arguments)
    chosen = [fault for fault in FAULTS if options.only in fault.name or options.only in fault.path]
    if not chosen:
        parser.error(f"--only is {options.only!r}; expected a part of a name or path")
    outcomes = []
    with tempfile.TemporaryDirectory() as folder:
        copy = Copy(Path(folder))
        selected = sorted({path for fault in chosen for path in fault.tests.split()})
        if test := copy.test(["-n", "auto", *selected]):
            raise SystemExit(f"{test} fails without a fault")
        must_build = False
        for fault in chosen:
            if must_build and not fault.is_compiled:
                copy.build()
            must_build = fault.is_compiled
            started = time.perf_counter()
            outcomes.append(detecting_test(copy, fault, options.full))
            print(f"{time.perf_counter() - started:4.0f} s  {fault.path}: {fault.name}: {outcomes[-1]}", flush=True)
    survived = outcomes.count(SURVIVED)
    print(f"{len(outcomes)} faults, {survived} survived")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
