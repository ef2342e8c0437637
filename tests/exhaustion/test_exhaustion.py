"""Memory that runs out at every allocation of pyrnnx's modules."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = str(Path(__file__).with_name("run.py"))
RUNS = {
    "kernels": ("layer", "prepared", "threads", "stream", "stack"),
    "models": ("quantized", "loaded", "new_session", "texts"),
}


@pytest.mark.slow
@pytest.mark.skipif("asan" in os.environ.get("LD_PRELOAD", ""), reason="two allocators cannot be preloaded")
@pytest.mark.parametrize("name", RUNS)
def test_each_allocation_fails_once(name: str, tmp_path: Path) -> None:
    if name == "models":
        pytest.importorskip("onnxruntime")
    done = subprocess.run(
        [sys.executable, SCRIPT, *RUNS[name]], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line for line in done.stdout.splitlines() if " failed allocations" in line]  # ONNX Runtime prints, too
    assert len(lines) == len(RUNS[name])
    assert not [line for line in lines if " 0 failed allocations" in line]  # else nothing was tested
