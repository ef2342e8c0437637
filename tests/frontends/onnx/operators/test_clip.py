"""A clip of 0: no clip if it is read from a file, as exporters mean it; an error everywhere else."""

from __future__ import annotations

import onnx
import pytest
from onnx_models import case_model
from rows import each_row
from whole_models import check_calls

from pyrnnx import PyrnnxWarning, reference
from pyrnnx.frontends.onnx import read_model
from pyrnnx.testing.cases import Case, make_arrays

CASE = Case("gru", "GRU", {}, ("B", "initial_h"))
ARRAYS = make_arrays(CASE)


@each_row("clip", [0.0, -0.0])
@each_row("constant", [("W", "R", "B"), ()])
def test_models_run_without_a_clip(clip: float, constant: tuple[str, ...]) -> None:
    weights = {name: ARRAYS[name] for name in constant}
    inputs = {name: array for name, array in ARRAYS.items() if name not in constant}
    proto, _ = case_model(CASE, constant)
    proto.graph.node[0].attribute.append(onnx.helper.make_attribute("clip", clip))
    with pytest.warns(PyrnnxWarning, match=r"GRU.*: clip is 0, .*; it is read as no clip"):
        check_calls(read_model(proto), lambda arrays: reference.run("GRU", **weights, **arrays), inputs)
