"""Operators that onnx's ReferenceEvaluator lacks, or that do not follow their text there."""

from __future__ import annotations

from functools import cache
from typing import Any

from pyrnnx.errors import UnsupportedError

from ..graph.walk import node_label
from ..onnx_package import import_onnx
from .control import check_count, run_loop, run_scan

_GRID_SAMPLE, _SCAN, _SPLIT = 16, 8, 18  # the first opset of GridSample and Scan, and of num_outputs of Split
# Missing below an opset: its first opset, and which operator of which opset does the same.
_OLDER = {"DequantizeLinear": (10, "DequantizeLinear", 19), "Scatter": (9, "ScatterElements", 11)}


@cache
def mended_ops(opset: int) -> tuple[type[Any], ...]:
    """For ReferenceEvaluator's new_ops, beside the recurrent operators."""
    import_onnx()
    import onnx.defs
    from onnx.reference.ops import load_op

    loop, scan = _control()
    found = [loop]
    found += [scan] if opset > _SCAN else [_scan_8()] if opset == _SCAN else []
    found += [_grid_sample(opset)] if opset >= _GRID_SAMPLE else []
    found += [_split(opset)] if opset >= _SPLIT else []
    for operator, (first, equal, version) in _OLDER.items():
        if first <= opset < version:
            members = {"op_domain": "", "op_schema": onnx.defs.get_schema(equal, version)}
            found.append(type(operator, (load_op("", equal, version),), members))
    return tuple(found)


def _grid_sample(opset: int) -> type[Any]:
    """onnx's own gives wrong numbers for one combination of attributes; an error is better."""
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


def _scan_8() -> type[Any]:
    """onnx's own makes lists of num_scan_inputs elements, whatever that is."""
    from onnx.reference.ops import load_op

    base: Any = load_op("", "Scan", _SCAN)

    def init(self: Any, node: Any, run_params: Any) -> None:
        most = len([name for name in node.input if name])
        check_count(node, "num_scan_inputs", most, "inputs")
        base.__init__(self, node, run_params)

    return type("Scan", (base,), {"op_domain": "", "__init__": init})


def _split(opset: int) -> type[Any]:
    """onnx's own makes a list of num_outputs elements, whatever that is."""
    from onnx.reference.ops import load_op

    base: Any = load_op("", "Split", opset)

    def init(self: Any, node: Any, run_params: Any) -> None:
        check_count(node, "num_outputs", len(node.output), "outputs")
        base.__init__(self, node, run_params)

    return type("Split", (base,), {"op_domain": "", "__init__": init})


@cache
def _control() -> tuple[type[Any], type[Any]]:
    """Loop, and Scan from opset 9 on.

    onnx's own Loop never runs where the condition is left out, and stacks results along an axis that they have. Its
    Scan takes some axes for others, and has no directions.
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
                lambda given: body.run(None, dict(given), attributes=attributes),
                inputs,
                context or {},
            )

    return (
        type("Loop", (Control,), {"repeat": staticmethod(run_loop)}),
        type("Scan", (Control,), {"repeat": staticmethod(run_scan)}),
    )
