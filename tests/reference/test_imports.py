"""The oracle shares no code with what it judges: it imports NumPy and the standard library only."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np

from pyrnnx import reference

FOLDER = Path(reference.__file__).parent

ALONE = """
import importlib.util, sys
before = {*sys.modules}  # of this Python, or of a tracer that it starts with
sys.modules["pyrnnx"] = None  # whatever imports it fails
path = sys.argv[1]
spec = importlib.util.spec_from_file_location("oracle", path + "/__init__.py", submodule_search_locations=[path])
oracle = sys.modules["oracle"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(oracle)
import numpy as np
X, W, R = np.arange(12.0).reshape(2, 3, 2) / 8, np.arange(16.0).reshape(1, 8, 2) / 16 - 0.5, np.ones((1, 8, 2)) / 4
for results in (oracle.lstm(X, W, R), oracle.run("LSTMCell-4", X[0], X[0], X[1], W[0], R[0], W[0, :, 0])):
    print(*(y.tobytes().hex() for y in results))
print(*sorted({name.partition(".")[0] for name in {*sys.modules} - before} - set(sys.stdlib_module_names)))
"""


def test_it_runs_without_the_rest_of_pyrnnx() -> None:
    done = subprocess.run(
        [sys.executable, "-c", ALONE, str(FOLDER)], capture_output=True, text=True, check=False, cwd=FOLDER
    )
    assert done.returncode == 0, done.stderr
    *printed, modules = done.stdout.splitlines()
    X, W = np.arange(12.0).reshape(2, 3, 2) / 8, np.arange(16.0).reshape(1, 8, 2) / 16 - 0.5
    R = np.ones((1, 8, 2)) / 4
    cell = reference.run("LSTMCell-4", X[0], X[0], X[1], W[0], R[0], W[0, :, 0])
    here = [reference.lstm(X, W, R), cell]
    assert printed == [" ".join(y.tobytes().hex() for y in results) for results in here]
    assert {name for name in modules.split() if not name.startswith("_")} <= {
        "numpy", "oracle", "pyrnnx", "cython_runtime",  # the last of NumPy 1
    }  # fmt: skip
