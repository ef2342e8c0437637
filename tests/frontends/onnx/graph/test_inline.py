"""Functions of a model: few calls are inlined, too many are refused."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx_models import simple_model
from whole_models import check_calls

from pyrnnx import FormatError, UnsupportedError
from pyrnnx.frontends.onnx import read_model

pytestmark = pytest.mark.usefixtures("small_limit")
node = helper.make_node
X = np.ones((2, 3), np.float32)


def calling(functions: int, calls: int) -> onnx.ModelProto:
    """Functions that each call the next, so many times one after another."""
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("test", 1)]
    made = []
    for k in range(functions):
        names = ["p", *(f"v{i}" for i in range(1, calls)), "q"]
        pairs = pairwise(names)
        nodes = [node(f"F{k + 1}", [a], [b], domain="test") for a, b in pairs]
        last = k == functions - 1
        made.append(
            helper.make_function("test", f"F{k}", ["p"], ["q"], [node("Neg", ["p"], ["q"])] if last else nodes, imports)
        )
    call = node("F0", ["x"], ["y"], domain="test")
    return simple_model([call], {"x": X}, ["y"], domains={"test": 1}, functions=made)


FUNCTIONS = {
    "doubling": (31, 2, r"the function test.F16, inlined, has 16384 nodes; expected at most 10000"),
    "a thousand": (1000, 2, r"the function test.F\d+, inlined, has \d+ nodes; expected at most"),
    "deep": (5000, 1, r"the function test.F\d+ has calls \d+ deep; expected at most 200"),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_that_would_become_too_many(name: str) -> None:
    functions, calls, message = FUNCTIONS[name]
    contents = calling(functions, calls).SerializeToString()
    message = message.replace("F16", r"F\d+").replace("16384", r"\d+").replace("10000", r"\d+")
    with pytest.raises(UnsupportedError, match=f"^ONNX model: {message}"):
        read_model(contents)


def test_constants_in_functions_that_would_become_too_large() -> None:
    model = calling(12, 2)
    constant = numpy_helper.from_array(np.ones(2**18, np.float32))
    body = [node("Constant", [], ["c"], value=constant), node("Add", ["p", "c"], ["q"])]
    del model.functions[-1].node[:]
    model.functions[-1].node.extend(body)
    with pytest.raises(UnsupportedError, match=r"inlined, has \d+ bytes"):
        read_model(model)


def test_functions_that_are_few_are_inlined() -> None:
    model = read_model(calling(6, 3))  # 3^5 = 243 times
    check_calls(model, lambda feeds: {"y": -feeds["x"]}, {"x": X}, {"x": np.ones((5, 3), np.float32)}, atol=0)


def test_function_that_stands_twice() -> None:
    model = calling(2, 1)
    model.functions.append(model.functions[0])
    with pytest.raises(FormatError, match=r"the function test\.F0 is defined twice"):
        read_model(model)
