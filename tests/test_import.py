"""Imports load no package that is needed later or never."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.e2e
RUN = """
import sys, warnings
import numpy as np
numpys = set(sys.modules)
import pyrnnx
layer = pyrnnx.Layer(pyrnnx.RecurrentOp("LSTM", 4), np.ones((1, 16, 3), "f4"), np.ones((1, 16, 4), "f4"))
layer.run(np.ones((2, 2, 3), "f4"), [1, 2])
layer.stream(2).push(np.ones((1, 2, 3), "f4"))
print(*(name for name in {modules} if name in sys.modules.keys() - numpys))
"""
LATE = ("scipy", "scipy.linalg", "onnx", "lxml", "ml_dtypes", "pyrnnx.frontends", "pyrnnx._kernels.blas", "numpy.ma")

# Modules that `import pyrnnx` may load: packages, with all of their modules, and single modules.
PACKAGES = ("pyrnnx._internal", "pyrnnx._kernels", "pyrnnx.layers", "pyrnnx.models", "pyrnnx.operator", "pyrnnx.stacks")
MODULES = ("pyrnnx", "pyrnnx._version", "pyrnnx.config", "pyrnnx.errors", "pyrnnx.load")


def imported(module: str) -> set[str]:
    """Return the modules that an import loads, as Python itself lists them."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", f"import {module}"],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=True,
    )
    lines = [line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time:")]
    return {line for line in lines if not line.startswith("__editable__")} - {"imported package"}


def test_an_import_loads_only_the_core() -> None:
    loaded = imported("pyrnnx") - imported("numpy")
    own = {name for name in loaded if name.partition(".")[0] == "pyrnnx"}
    assert {name for name in own if not name.startswith(PACKAGES)} == set(MODULES)
    others = {name.partition(".")[0] for name in loaded} - {"pyrnnx", "numpy"}
    assert others <= sys.stdlib_module_names


LATE_NAMES = """
import sys
import pyrnnx
listed = dir(pyrnnx)
assert sorted(listed) == sorted(pyrnnx.__all__)
assert "pyrnnx.comparison" not in sys.modules and "pyrnnx.scoring" not in sys.modules
from pyrnnx import *
for name in pyrnnx.__all__:
    assert vars(pyrnnx)[name] is globals()[name], name
assert pyrnnx.compare.__module__ == "pyrnnx.comparison" and pyrnnx.Comparison.__name__ == "Comparison"
"""


def test_every_public_name_is_there_when_it_is_accessed() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LATE_NAMES], cwd=Path(__file__).parent, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_the_command_loads_no_command_before_it_runs(option: str) -> None:
    pytest.importorskip("typer")
    code = f"""
import sys
from pyrnnx.cli import main
assert main([{option!r}]) == 0
late = ("pyrnnx.comparison", "pyrnnx.testing", "pyrnnx.bench", "pyrnnx.scoring", "pyrnnx.frontends", "scipy", "onnx")
print(*(name for name in sys.modules if name.startswith(("pyrnnx.cli.commands.", *late))), file=sys.stderr)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=Path(__file__).parent, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr.strip()) == (0, "")


def run(engine: str, isa: str = "") -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", RUN.format(modules=LATE)],
        cwd=Path(__file__).parent,
        env={**os.environ, "PYRNNX_ENGINE": engine, "PYRNNX_ISA": isa},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_a_run_on_the_simd_engine_loads_no_more_than_numpy() -> None:
    engines = pytest.importorskip("pyrnnx._kernels.engines")
    if not engines.supported():
        pytest.skip("this build has only the BLAS engine")
    assert run("simd") == []


def test_the_blas_engine_loads_scipy_when_it_is_asked_for() -> None:
    loaded = run("blas")
    assert "scipy.linalg" in loaded
    assert "onnx" not in loaded


def test_front_ends_are_there_after_importing_pyrnnx_alone() -> None:
    code = """
import sys
import pyrnnx
assert "frontends" in dir(pyrnnx) and "pyrnnx.frontends" not in sys.modules
print(pyrnnx.frontends.onnx.lstm.__name__, pyrnnx.frontends.openvino.lstm_sequence.__name__)
print(sorted({"keras", "onnx", "openvino", "torch"} & set(dir(pyrnnx.frontends))))
for module in (pyrnnx, pyrnnx.frontends):
    assert not hasattr(module, "frontend")
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=Path(__file__).parent, capture_output=True, text=True, check=False
    )
    assert done.stdout == "lstm lstm_sequence\n['keras', 'onnx', 'openvino', 'torch']\n", done.stderr
