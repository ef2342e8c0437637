"""Operators that onnx's ReferenceEvaluator lacks or computes wrongly."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from pyrnnx.errors import ArgumentError, UnsupportedError

from ..graph.walk import node_label
from ..onnx_package import import_onnx
from .control import FIRST_SCAN_OF_AXES, run_loop, run_scan, run_scan_8

_GRID_SAMPLE = 16  # the first opset of GridSample
_QUANTIZED_CONV = 10  # the first opset of QLinearConv
# Missing in older opsets: the first opset, and the equal operator with its opset.
_OLDER = {"DequantizeLinear": (10, "DequantizeLinear", 19), "Scatter": (9, "ScatterElements", 11)}


@cache
def mended_ops(opset: int) -> tuple[type[Any], ...]:
    """Return operators for ReferenceEvaluator's `new_ops`, in addition to the recurrent ones."""
    import_onnx()
    import onnx.defs
    from onnx.reference.ops import load_op

    loop, scan, scan_8 = _control()
    operators = [loop, scan if opset >= FIRST_SCAN_OF_AXES else scan_8, _conv_transpose(opset)]
    operators += [_grid_sample(opset)] if opset >= _GRID_SAMPLE else []
    operators += [_quantized_conv(opset)] if opset >= _QUANTIZED_CONV else []
    for operator, (first, equal, version) in _OLDER.items():
        if first <= opset < version:
            members = {"op_domain": "", "op_schema": onnx.defs.get_schema(equal, version)}
            operators.append(type(operator, (load_op("", equal, version),), members))
    return tuple(operators)


def _conv_transpose(opset: int) -> type[Any]:
    """Return ConvTranspose that runs one group after the other; onnx's own mixes up their channels and biases."""
    from onnx.reference.ops import load_op

    base: Any = load_op("", "ConvTranspose", opset)

    def run(self: Any, X: Any, W: Any, B: Any = None, *, group: int | None = None, **attributes: Any) -> Any:
        count = 1 if group is None else group
        if count < 1:
            raise ArgumentError(f"{node_label(self.onnx_node)}: group is {count}; expected 1 or more")
        biases = [None] * count if B is None else np.split(B, count)
        groups = zip(np.split(X, count, 1), np.split(W, count), biases, strict=True)
        results = [base._run(self, x, w, b, group=1, **attributes)[0] for x, w, b in groups]
        return (np.concatenate(results, 1),)

    return type("ConvTranspose", (base,), {"op_domain": "", "_run": run})


def _grid_sample(opset: int) -> type[Any]:
    """Return GridSample that rejects attributes for which onnx's own returns wrong numbers."""
    from onnx.reference.ops import load_op

    base: Any = load_op("", "GridSample", opset)

    def run(self: Any, *arrays: Any, **attributes: Any) -> Any:
        cubic = attributes.get("mode") in ("cubic", "bicubic")
        if cubic and attributes.get("padding_mode") == "border":
            raise UnsupportedError(
                f"{node_label(self.onnx_node)}: mode cubic with padding_mode border is wrong in onnx's "
                "ReferenceEvaluator; expected another mode or padding_mode"
            )
        return base._run(self, *arrays, **attributes)

    return type("GridSample", (base,), {"op_domain": "", "_run": run})


def _quantized_conv(opset: int) -> type[Any]:
    """Return QLinearConv with a scale for each channel; onnx's own takes them only for images."""
    from onnx.reference.ops import load_op

    base: Any = load_op("", "QLinearConv", opset)

    def run(self: Any, x: Any, x_scale: Any, x_zero_point: Any, w: Any, w_scale: Any, *others: Any, **more: Any) -> Any:
        if w_scale.shape == w.shape[:1] and w_scale.size > 1:
            x_scale, w_scale = x_scale * w_scale.reshape(-1, *(1,) * (x.ndim - 2)), np.ones((), w_scale.dtype)
        return base._run(self, x, x_scale, x_zero_point, w, w_scale, *others, **more)

    return type("QLinearConv", (base,), {"op_domain": "", "_run": run})


@cache
def _control() -> tuple[type[Any], type[Any], type[Any]]:
    """Return Loop, Scan from opset 9 on, and Scan of opset 8.

    onnx's own Loop never runs without a condition, and stacks results along an existing axis. Its Scan confuses axes
    and ignores directions; Scan of opset 8 ignores sequence lengths.
    """
    import_onnx()
    from onnx.reference.op_run import OpRun

    class Control(OpRun):
        op_domain = ""
        body: Any
        repeat: Any

        def need_context(self) -> bool:
            return True

        def _run(self, *inputs: Any, context: Any = None, **keywords: Any) -> Any:
            body, attributes = self.body, keywords.get("attributes")
            return self.repeat(
                self.onnx_node,
                body.input_names,
                body.output_types,
                lambda values: body.run(None, dict(values), attributes=attributes),
                inputs,
                context or {},
            )

    return (
        type("Loop", (Control,), {"repeat": staticmethod(run_loop)}),
        type("Scan", (Control,), {"repeat": staticmethod(run_scan)}),
        type("Scan", (Control,), {"repeat": staticmethod(run_scan_8)}),
    )
