"""Operators that onnx's ReferenceEvaluator lacks, or that do not follow their text there."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from pyrnnx.errors import FormatError, UnsupportedError

from ..graph.walk import node_label
from ..onnx_package import import_onnx

_GRID_SAMPLE, _SCAN, _SPLIT = 16, 8, 18  # the first opset of GridSample and Scan, and of num_outputs of Split
# Missing below an opset: its first opset, and which operator of which opset does the same.
_OLDER = {"DequantizeLinear": (10, "DequantizeLinear", 19), "Scatter": (9, "ScatterElements", 11)}


@cache
def mended_ops(opset: int) -> tuple[type[Any], ...]:
    """For ReferenceEvaluator's new_ops, beside the recurrent operators."""
    import_onnx()
    import onnx.defs
    from onnx.reference.ops import load_op

    found = [_loop()]
    found += [_grid_sample(opset)] if opset >= _GRID_SAMPLE else []
    found += [_scan(opset)] if opset >= _SCAN else []
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


def _scan(opset: int) -> type[Any]:
    """onnx's own makes lists of num_scan_inputs elements, whatever that is."""
    from onnx.reference.ops import load_op

    base: Any = load_op("", "Scan", opset)

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


def check_count(node: Any, name: str, most: int, what: str) -> None:
    """Reject an attribute that counts something of its node, and says more than there is.

    Raises
    ------
    FormatError
    """
    for one in node.attribute:
        if one.name == name and not one.ref_attr_name and not 1 <= one.i <= most:
            raise FormatError(f"{node_label(node)}: {name} is {one.i}; the node has {most} {what}")


@cache
def _loop() -> type[Any]:
    """onnx's own never runs where the condition is left out, and stacks results along an axis that they have."""
    onnx = import_onnx()
    from onnx.reference.op_run import OpRun

    class Loop(OpRun):
        op_domain = ""
        body: Any

        def need_context(self) -> bool:
            return True

        def _run(self, limit: Any, condition: Any, *carried: Any, context: Any = None, **keywords: Any) -> Any:
            body = self.body
            values, count = list(carried), len(body.input_names) - 2
            stacks: list[list[Any]] = [[] for _ in body.output_names[1 + count :]]
            running, step = condition is None or bool(condition), 0
            while running and (limit is None or step < limit):
                inputs = dict(context or {})
                inputs |= dict(zip(body.input_names, (np.array(step), np.array(True), *values), strict=True))
                proceed, *results = body.run(None, inputs, attributes=keywords.get("attributes"))
                values = results[:count]
                for stack, result in zip(stacks, results[count:], strict=True):
                    stack.append(result)
                running, step = bool(proceed), step + 1
            types = body.output_types[1 + count :]
            stacked = [np.stack(s) if s else _empty(onnx, t) for s, t in zip(stacks, types, strict=True)]
            return (*values, *stacked)

    return Loop


def _empty(onnx: Any, declared: Any) -> Any:
    """No results of a loop: [0, ...] of the declared type."""
    tensor = declared.tensor_type
    dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type) if tensor.elem_type else np.float32
    return np.zeros((0, *(one.dim_value for one in tensor.shape.dim)), dtype)
