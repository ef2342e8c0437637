"""If, Loop and Scan around recurrent operators: the bodies are plans of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pyrnnx.errors import ArgumentError, FormatError

from ..graph.walk import node_label
from ..onnx_package import import_onnx

# A body: {name: value} of its inputs and of what it captures -> the values of its outputs, in order.
Body = Callable[[Mapping[str, Any]], Sequence[Any]]


def branch(node: Any, condition: Any) -> str:
    """The body that the condition of an If tells."""
    if np.size(condition) != 1:
        shape = np.shape(condition)
        raise ArgumentError(f"{node_label(node)}: its condition has shape {shape}; expected one element")
    return "then_branch" if np.asarray(condition).item() else "else_branch"


def run_loop(
    node: Any,
    names: Sequence[str],
    types: Sequence[Any],
    run: Body,
    inputs: Sequence[Any],
    outer: Mapping[str, Any],
    grown: Callable[[Any], None] = lambda _: None,
) -> Sequence[Any]:
    """Carried values after the last iteration, then what each iteration gives, stacked.

    Parameters
    ----------
    node : onnx.NodeProto
    names : sequence of str
        Of the body's inputs.
    types : sequence of onnx.TypeProto
        Of the body's outputs.
    run : callable
    inputs : sequence
        Most iterations or None, the first condition or None, the first carried values.
    outer : mapping
        What the body captures.
    grown : callable
        Told of every result that is kept.
    """
    limit, condition, *carried = inputs
    most = None if limit is None else int(np.asarray(limit).reshape(()))
    count = len(names) - 2
    if count != len(carried) or len(types) < 1 + count:
        raise FormatError(
            f"{node_label(node)}: {len(carried)} values are carried; its body has {len(names)} inputs and "
            f"{len(types)} outputs"
        )
    stacks: list[list[Any]] = [[] for _ in types[1 + count :]]
    running, step = condition is None or bool(np.asarray(condition).reshape(())), 0
    while running and (most is None or step < most):
        given = dict(zip(names, (np.array(step, np.int64), np.array(True), *carried), strict=True))
        proceed, *results = run({**outer, **given})
        carried = results[:count]
        for stack, result in zip(stacks, results[count:], strict=True):
            stack.append(result)
            grown(result)
        running, step = bool(np.asarray(proceed).reshape(())), step + 1
    return (*carried, *(np.stack(s) if s else _empty(t) for s, t in zip(stacks, types[1 + count :], strict=True)))


def run_scan(
    node: Any,
    names: Sequence[str],
    types: Sequence[Any],
    run: Body,
    inputs: Sequence[Any],
    outer: Mapping[str, Any],
    grown: Callable[[Any], None] = lambda _: None,
) -> Sequence[Any]:
    """Final states, then what each step gives, along the axes and in the directions that the node says.

    As `run_loop`; `inputs` are the initial states and the scanned values.
    """
    attributes = {one.name: one for one in node.attribute}
    count = attributes["num_scan_inputs"].i if "num_scan_inputs" in attributes else 0
    check_count(node, "num_scan_inputs", len(inputs), "inputs")

    def listed(name: str, length: int) -> list[int]:
        values = list(attributes[name].ints) if name in attributes else [0] * length
        if len(values) != length:
            raise FormatError(f"{node_label(node)}: {name} has {len(values)} values; expected {length}")
        return values

    states, scanned = list(inputs[: len(inputs) - count]), list(inputs[len(inputs) - count :])
    made = len(types) - len(states)
    if len(names) != len(inputs) or made < 0:
        raise FormatError(f"{node_label(node)}: its body has {len(names)} inputs; expected {len(inputs)}")
    axes, directions = listed("scan_input_axes", count), listed("scan_input_directions", count)
    moved = [np.moveaxis(value, axis, 0) for value, axis in zip(scanned, axes, strict=True)]
    steps = {len(value) for value in moved}
    if len(steps) != 1:
        raise ArgumentError(f"{node_label(node)}: its scanned inputs have {sorted(steps)} steps; expected the same")
    moved = [value[::-1] if reverse else value for value, reverse in zip(moved, directions, strict=True)]
    stacks: list[list[Any]] = [[] for _ in range(made)]
    for step in range(steps.pop()):
        given = dict(zip(names, (*states, *(value[step, ...] for value in moved)), strict=True))
        results = run({**outer, **given})
        states = list(results[: len(states)])
        for stack, result in zip(stacks, results[len(states) :], strict=True):
            stack.append(result)
            grown(result)
    axes, directions = listed("scan_output_axes", made), listed("scan_output_directions", made)
    stacked = [
        np.moveaxis(np.stack(stack[::-1] if reverse else stack) if stack else _empty(declared), 0, axis)
        for stack, reverse, axis, declared in zip(stacks, directions, axes, types[len(states) :], strict=True)
    ]
    return (*states, *stacked)


def check_count(node: Any, name: str, most: int, what: str) -> None:
    """Reject an attribute that counts something of its node, and says more than there is.

    Raises
    ------
    FormatError
    """
    for one in node.attribute:
        if one.name == name and not one.ref_attr_name and not 1 <= one.i <= most:
            raise FormatError(f"{node_label(node)}: {name} is {one.i}; the node has {most} {what}")


def _empty(declared: Any) -> Any:
    """No results of a loop: [0, ...] of the declared type."""
    tensor = declared.tensor_type
    dtype = import_onnx().helper.tensor_dtype_to_np_dtype(tensor.elem_type) if tensor.elem_type else np.float32
    return np.zeros((0, *(one.dim_value for one in tensor.shape.dim)), dtype)
