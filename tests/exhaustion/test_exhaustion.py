"""Memory that runs out at every allocation of pyrnnx's modules."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = str(Path(__file__).with_name("run.py"))


@pytest.mark.slow
@pytest.mark.skipif("asan" in os.environ.get("LD_PRELOAD", ""), reason="two allocators cannot be preloaded")
@pytest.mark.parametrize("door", ["layer", "prepared", "stack", "session"])
def test_each_allocation_fails_once(door: str, tmp_path: Path) -> None:
    if door == "session":
        pytest.importorskip("onnxruntime")
    done = subprocess.run([sys.executable, SCRIPT, door], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " failed allocations" in done.stdout
    assert " 0 failed allocations" not in done.stdout  # else nothing was tested
