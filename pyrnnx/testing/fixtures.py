"""Fixtures for pytest; a test suite imports them in its conftest.py.

from pyrnnx.testing.fixtures import seeded_inputs  # noqa: F401
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pyrnnx._internal import scalars
from pyrnnx.comparison.calls import arranged, prepared_call
from pyrnnx.comparison.inputs import HINT, named_after
from pyrnnx.comparison.models.runs import try_alone
from pyrnnx.errors import ArgumentError, shown
from pyrnnx.frontends.onnx.operators.schemas import DEFAULT_OPSET
from pyrnnx.layers.layer import Layer
from pyrnnx.models.model import Model
from pyrnnx.testing.cases import Case, make_arrays
from pyrnnx.testing.same.subjects import LayerSubject, own_weights, read_subject

SeededInputs = Callable[..., dict[str, Any]]


@pytest.fixture
def seeded_inputs(request: pytest.FixtureRequest) -> SeededInputs:
    """Return a function that makes random inputs, the same ones in every run of a test, on every machine and worker.

    ``seeded_inputs(what, *, seq_length=None, batch_size=None, opset=22)``; the seed is made of the test's node id
    ("tests/test_port.py::test_lstm[forward]") and of how many calls the test made before: two calls give different
    numbers, and so do two tests.

    Parameters
    ----------
    what
        - A recurrent layer of any kind that `pyrnnx.testing.assert_same` takes (but a path): what it is called with, by
          its own names, in its own axes, order and dtype. States are not zero, and lengths not even. For a layer or
          node without weights, those too.
        - A model: its inputs by their names, of the sizes that it declares, as in `pyrnnx.compare`.
        - A `pyrnnx.testing.Case`: its arrays, with weights.
    seq_length, batch_size : int, optional
        Of a layer. Default: what it declares, else 5 and 3.
    opset : int
        Of an onnx.NodeProto.

    Returns
    -------
    function

    Raises
    ------
    PyrnnxError
        Raised by the function: for what has no inputs, or sizes for what has its own.

    Examples
    --------
    >>> def test_port(seeded_inputs):
    ...     inputs = seeded_inputs(layer, seq_length=20)
    ...     assert_same(layer, my_function, inputs=inputs)
    """
    test, calls = zlib.crc32(request.node.nodeid.encode()), 0

    def make(what: Any, *, opset: int = DEFAULT_OPSET, **sizes: int | None) -> dict[str, Any]:
        nonlocal calls
        calls += 1
        with named_after("seeded_inputs"):
            return _inputs(what, int(np.random.default_rng((test, calls)).integers(2**31)), opset, **sizes)

    return make


def _inputs(
    what: Any, seed: int, opset: int, *, seq_length: int | None = None, batch_size: int | None = None
) -> dict[str, Any]:
    given = {"seq_length": seq_length, "batch_size": batch_size}
    sizes = {name: scalars.integer("seeded_inputs", name, size, 0) for name, size in given.items() if size is not None}
    if sizes and isinstance(what, (Case, Model)):
        raise ArgumentError(f"seeded_inputs: {', '.join(sizes)} is set; expected sizes only for layers")
    if isinstance(what, Case):
        return dict(make_arrays(what, seed=seed))
    if isinstance(what, Model):
        return next(iter(try_alone(what, {}, seed, {}, "seeded_inputs", HINT))).inputs
    subject = read_subject("what", what, opset)
    if not isinstance(subject, LayerSubject):
        raise ArgumentError(f"seeded_inputs: what is {shown(what)}; expected a layer, a model or a Case")
    layer, names = subject.layer, subject.names
    (bound, _), arrays = prepared_call(layer, layer, None, seed, sizes)
    call = arranged(bound, arrays)
    result = {names[name][0]: np.ascontiguousarray(call[name]) for name in subject.order if name in call}
    if not isinstance(layer, Layer):
        weights = own_weights(bound)
        has = getattr(layer, "arguments", tuple(weights))
        result |= {names[name][0]: array for name, array in weights.items() if name in has}
    return result
