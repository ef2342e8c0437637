"""Fixtures for pytest; a test suite imports them in its conftest.py.

from pyrnnx.testing.fixtures import seeded_inputs  # noqa: F401
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import pytest

from pyrnnx.testing.same.seeded import make_inputs

SeededInputs = Callable[..., Any]


@pytest.fixture
def seeded_inputs(request: pytest.FixtureRequest) -> SeededInputs:
    """Return a function that makes random inputs, the same ones in every run of a test, on every machine and worker.

    ``seeded_inputs(what, *, seq_length=None, batch_size=None, dtype=None, opset=22)``; the seed is made of the test's
    node id ("tests/test_port.py::test_lstm[forward]") and of how many calls the test made before: two calls give
    different numbers, and so do two tests.

    Parameters
    ----------
    what
        - A recurrent layer of any kind that `pyrnnx.testing.assert_same` takes (but a path): what it is called with, by
          its own names, in its own axes, order and dtype. States are not zero, and lengths not even. For a layer or
          node without weights, those too.
        - A model: its inputs by their names, of the sizes that it declares, as in `pyrnnx.compare`.
        - A `pyrnnx.testing.Case`: its arrays, with weights.
        - A shape, (5, 3, 4): one array. A mapping of names to shapes: arrays by these names.
    seq_length, batch_size : int, optional
        Of a layer. Default: what it declares, else 5 and 3.
    dtype : str or dtype, optional
        Of a case or of shapes. Default: the case's, else float32.
    opset : int
        Of an onnx.NodeProto.

    Returns
    -------
    function

    Raises
    ------
    PyrnnxError
        Raised by the function: for what has no inputs, or sizes and dtypes for what has its own.

    Examples
    --------
    >>> def test_port(seeded_inputs):
    ...     inputs = seeded_inputs(layer, seq_length=20)
    ...     assert_same(layer, my_function, inputs=inputs)
    """
    test, calls = zlib.crc32(request.node.nodeid.encode()), 0

    def make(what: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        return make_inputs(what, (test, calls), **options)

    return make
