"""Models in a forked process, which has no threads of earlier sessions."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytest.importorskip("onnxruntime")

# Code of the child. A child that hangs is ended by a signal, so that it differs from one that ended by itself.
CHILDREN = {
    "calls": "check()",
    "calls with other threads": "pyrnnx.set_num_threads(1); check()",
    "calls within another limit": "pyrnnx.set_memory_limit(2**24); check()",
    "drops the model": "del model, stream; gc.collect()",
    "pushes": "np.testing.assert_array_equal(stream.push(x)['y'], model(x)['y'])",
}
SCRIPT = """
import gc, os, signal, sys
import numpy as np
from onnx import TensorProto, helper, numpy_helper
import pyrnnx
from pyrnnx.frontends.onnx import read_model

rng = np.random.default_rng(0)
weights = {name: rng.normal(size=(1, 8, 8)).astype(np.float32) for name in "WR"} | {"A": np.eye(8, dtype=np.float32)}
nodes = [
    helper.make_node("MatMul", ["x", "A"], ["a"]),
    helper.make_node("RNN", ["a", "W", "R"], ["b"], hidden_size=8),
    helper.make_node("Softmax", ["b"], ["y"]),
]
info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in "xy"]
graph = helper.make_graph(nodes, "g", [info[0]], [info[1]], [numpy_helper.from_array(a, n) for n, a in weights.items()])
model = read_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8))
pyrnnx.set_num_threads(2)
x = rng.normal(size=(9, 3, 8)).astype(np.float32)
stream = model.stream()
expected = [model(x)["y"] for _ in range(4)][0]

def check():
    for _ in range(4):
        np.testing.assert_array_equal(model(x)["y"], expected)

child = os.fork()
if not child:
    signal.alarm(10)
    try:
        exec(sys.argv[1])
    except BaseException:
        os._exit(1)
    os._exit(0)  # as those of multiprocessing end: ONNX Runtime itself hangs in a sys.exit
_, status = os.waitpid(child, 0)
check()
sys.exit(os.waitstatus_to_exitcode(status) and 3)
"""


pytestmark = [pytest.mark.e2e, pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")]


@pytest.mark.parametrize("name", CHILDREN)
def test_a_forked_process(name: str) -> None:
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", SCRIPT, CHILDREN[name]], timeout=60, check=False)
    assert done.returncode == 0
