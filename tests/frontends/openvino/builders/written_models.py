"""Comparison of a written model with ONNX Runtime."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx_stacks import Array
from peers import run_onnxruntime, run_openvino

from pyrnnx.frontends.openvino import read_model, write_model

# float32 on all sides: functions of some units each, sums of up to 60 terms
TOLERANCE = 1e-5


def compare(proto: onnx.ModelProto, path: Path, inputs: dict[str, Array], *, there: bool = True) -> None:
    """Write a model, and compare its results here and, with `there`, in OpenVINO with those of ONNX Runtime."""
    expected = run_onnxruntime(proto, inputs)
    write_model(proto, path)
    results = {"here": list(read_model(path)(inputs).values())}
    if there:
        results["OpenVINO"] = run_openvino(path, inputs)
    for who, arrays in results.items():
        pairs = list(zip(arrays, expected, strict=True))
        if who == "OpenVINO" and not all(np.allclose(a, b, TOLERANCE, TOLERANCE) for a, b in pairs):
            # Its CPU plugin errs in a chain in some hundred, and does so with the ONNX model itself.
            path.with_suffix(".onnx").write_bytes(proto.SerializeToString())
            pairs = list(zip(arrays, run_openvino(path.with_suffix(".onnx"), inputs), strict=True))
        for a, b in pairs:
            assert (a.shape, a.dtype) == (b.shape, b.dtype), who
            np.testing.assert_allclose(a, b, atol=TOLERANCE, rtol=TOLERANCE, err_msg=who)
