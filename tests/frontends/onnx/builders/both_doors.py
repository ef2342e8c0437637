"""Models through both doors: `load` and the drop-in replacement of ONNX Runtime's InferenceSession."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
from peers import onnxruntime_session
from whole_models import assert_allclose

from pyrnnx.frontends.onnx import NodeLayer, read_model
from pyrnnx.onnxruntime import InferenceSession, SessionOptions
from pyrnnx.testing.numbers import Array

TOLERANCE = 1e-5  # float32, some steps


def run_both(
    proto: onnx.ModelProto, inputs: Mapping[str, Array], *others: Mapping[str, Array], layers: list[str] | None = None
) -> dict[str, Array]:
    """Return the results for `inputs`, which both doors and ONNX Runtime agree on, as for `others`.

    Parameters
    ----------
    proto : onnx.ModelProto
    inputs, *others : mapping
    layers : list of str, optional
        Names of its layers with constant weights.
    """
    before = proto.SerializeToString()
    options = SessionOptions()
    options.log_severity_level = 3
    model, session = read_model(proto), InferenceSession(before, options)
    prepared = [name for name, layer in model.layers.items() if isinstance(layer, NodeLayer)]
    assert prepared == list(session.layers)
    assert layers is None or prepared == layers
    assert model.layers.why_none == session.why_none
    witness = onnxruntime_session(proto, optimize=False)
    for feeds in (*others, inputs, inputs):
        results = model(dict(feeds))
        expected = witness.run(None, dict(feeds))
        of_session = session.run(None, dict(feeds))
        for (name, result), other, wanted in zip(results.items(), of_session, expected, strict=True):
            if len(prepared) == len(model.layers):
                np.testing.assert_array_equal(result, other, err_msg=name)
            else:  # the drop-in leaves computed weights to ONNX Runtime
                assert_allclose(result, other, TOLERANCE, TOLERANCE, name)
            assert result.shape == np.shape(wanted)
            assert_allclose(result, wanted, TOLERANCE, TOLERANCE, name)
    assert proto.SerializeToString() == before
    return results


def weights_like(seed: int, **shapes: tuple[int, ...]) -> dict[str, Any]:
    """Return float32 arrays of these shapes between -1 and 1."""
    rng = np.random.default_rng(seed)
    return {name: rng.uniform(-1, 1, shape).astype(np.float32) for name, shape in shapes.items()}
