"""Arrays that another thread changes during a call: an error or a result, never a read out of bounds.

Without the GIL only values may change: NumPy sets shapes and sizes without a lock.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from rows import few_rows

# Two statements that the other thread repeats, and the call. After the second statement, the arguments are valid.
CHANGES = {
    "values of lengths": ("lens[:] = 10**6", "lens[:] = 1", "layer.run(X, lens)"),
    "shape of lengths": ("lens.shape = (2, N // 2)", "lens.shape = (N,)", "layer.run(X, lens)"),
    "shape of X": ("X.shape = (N, 1, 2)", "X.shape = (1, N, 2)", "layer.run(X, None, h)"),
    "shape of a state": ("h.shape = (1, 2, N)", "h.shape = (1, N, 2)", "layer.run(X, None, h)"),
    "shape of a state, with lengths": ("h.shape = (1, 2, N)", "h.shape = (1, N, 2)", "layer.run(X, lens, h)"),
    "size of X": ("X.resize((1, 1, 2))", "X.resize((1, N, 2))", "layer.run(X)"),
    "pushes": ("X.shape = (N, 1, 2)", "X.shape = (1, N, 2)", "stream.push(X)"),
    "lengths of pushes": ("lens[:] = 10**6", "lens[:] = 1", "stream.push(X, lens)"),
    "shape of weights": ("R.shape = (1, 1, 4)", "R.shape = (1, 2, 2)", "Layer(op, R, R)"),
}
SCRIPT = """
import sys, threading, time
import numpy as np
from pyrnnx import Layer, PyrnnxError, RecurrentOp

rng = np.random.default_rng(0)
N, op = 4000, RecurrentOp("RNN", 2)
R = rng.normal(size=(1, 2, 2)).astype(np.float32)
layer = Layer(op, R, R)
X, h, lens = np.ones((1, N, 2), np.float32), np.ones((1, N, 2), np.float32), np.ones(N, np.int32)
stream = layer.stream(N)
sys.setswitchinterval(1e-6)

def change():
    while running:
        try:
            {first}
            time.sleep(0)
            {second}
            time.sleep(0)
        except ValueError:  # NumPy does not resize an array that others refer to
            pass

running = True
thread = threading.Thread(target=change, daemon=True)
thread.start()
end, calls = time.monotonic() + 0.3, 0
while time.monotonic() < end or calls < 20:
    calls += 1
    try:
        {call}
    except PyrnnxError:
        pass
running = False
thread.join()
"""


@few_rows("name", [*CHANGES][:1], [*CHANGES][1:])
def test_another_thread_changes(name: str) -> None:
    first, second, call = CHANGES[name]
    if not getattr(sys, "_is_gil_enabled", lambda: True)() and "values" not in name and "lengths of" not in name:
        pytest.skip("without the GIL, NumPy does not allow a shape to change while others read it")
    script = SCRIPT.format(first=first, second=second, call=call)
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=Path(__file__).parent, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
