"""Loop and Scan for onnx's ReferenceEvaluator, as functions of a body."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pyrnnx.errors import ArgumentError, FormatError

from ..graph.walk import node_label
from ..onnx_package import import_onnx

if TYPE_CHECKING:
    from onnx import NodeProto, TypeProto

FIRST_SCAN_OF_AXES = 9  # the opset; Scan-8 has a batch axis and sequence lengths instead

# A body: {name: value} of its inputs and captured values -> the values of its outputs, in order.
Body = Callable[[Mapping[str, Any]], Sequence[Any]]


def scan_inputs(node: NodeProto) -> int:
    """Return how many inputs a Scan scans, its last ones; 0 if the attribute is missing."""
    return next((int(attribute.i) for attribute in node.attribute if attribute.name == "num_scan_inputs"), 0)


def run_loop(
    node: NodeProto,
    names: Sequence[str],
    types: Sequence[TypeProto],
    run: Body,
    inputs: Sequence[Any],
    outer: Mapping[str, Any],
) -> Sequence[Any]:
    """Return the carried values after the last iteration, then the stacked results of all iterations.

    Parameters
    ----------
    node : onnx.NodeProto
    names : sequence of str
        Names of the body's inputs.
    types : sequence of onnx.TypeProto
        Types of the body's outputs.
    run : callable
    inputs : sequence
        Maximum number of iterations or None, first condition or None, first carried values.
    outer : mapping
        Values that the body captures, by name.
    """
    limit, condition, *carried = inputs
    most = None if limit is None else int(np.asarray(limit).reshape(()))
    count = len(names) - 2
    if count != len(carried) or len(types) < 1 + count:
        raise FormatError(
            f"{node_label(node)}: it carries {len(carried)} values; its body has {len(names)} inputs and "
            f"{len(types)} outputs"
        )
    stacks: list[list[Any]] = [[] for _ in types[1 + count :]]
    running, step = condition is None or bool(np.asarray(condition).reshape(())), 0
    while running and (most is None or step < most):
        arguments = dict(zip(names, (np.array(step, np.int64), np.array(True), *carried), strict=True))
        proceed, *results = run({**outer, **arguments})
        carried = results[:count]
        for stack, result in zip(stacks, results[count:], strict=True):
            stack.append(result)
        running, step = bool(np.asarray(proceed).reshape(())), step + 1
    return (*carried, *(np.stack(s) if s else _empty(t) for s, t in zip(stacks, types[1 + count :], strict=True)))


def run_scan(
    node: NodeProto,
    names: Sequence[str],
    types: Sequence[TypeProto],
    run: Body,
    inputs: Sequence[Any],
    outer: Mapping[str, Any],
) -> Sequence[Any]:
    """Return the final states, then the results of all steps, along the node's axes and in its directions.

    The parameters are those of `run_loop`; `inputs` are the initial states and the scanned values.
    """
    attributes = {attribute.name: attribute for attribute in node.attribute}
    count = scan_inputs(node)
    check_count(node, "num_scan_inputs", len(inputs), "inputs")

    def listed(name: str, length: int) -> list[int]:
        values = list(attributes[name].ints) if name in attributes else [0] * length
        if len(values) != length:
            raise FormatError(f"{node_label(node)}: {name} has {len(values)} values; expected {length}")
        return values

    states, scanned = list(inputs[: len(inputs) - count]), list(inputs[len(inputs) - count :])
    num_results = len(types) - len(states)
    if len(names) != len(inputs) or num_results < 0:
        raise FormatError(f"{node_label(node)}: its body has {len(names)} inputs; expected {len(inputs)}")
    axes, directions = listed("scan_input_axes", count), listed("scan_input_directions", count)
    moved = [np.moveaxis(value, axis, 0) for value, axis in zip(scanned, axes, strict=True)]
    steps = {len(value) for value in moved}
    if len(steps) != 1:
        raise ArgumentError(
            f"{node_label(node)}: its scanned inputs have {sorted(steps)} steps; expected the same number in each"
        )
    moved = [value[::-1] if reverse else value for value, reverse in zip(moved, directions, strict=True)]
    stacks: list[list[Any]] = [[] for _ in range(num_results)]
    for step in range(steps.pop()):
        arguments = dict(zip(names, (*states, *(value[step, ...] for value in moved)), strict=True))
        results = run({**outer, **arguments})
        states = list(results[: len(states)])
        for stack, result in zip(stacks, results[len(states) :], strict=True):
            stack.append(result)
    axes, directions = listed("scan_output_axes", num_results), listed("scan_output_directions", num_results)
    stacked = [
        np.moveaxis(np.stack(stack[::-1] if reverse else stack) if stack else _empty(declared), 0, axis)
        for stack, reverse, axis, declared in zip(stacks, directions, axes, types[len(states) :], strict=True)
    ]
    return (*states, *stacked)


def run_scan_8(
    node: NodeProto,
    names: Sequence[str],
    types: Sequence[TypeProto],
    run: Body,
    inputs: Sequence[Any],
    outer: Mapping[str, Any],
) -> Sequence[Any]:
    """Run a Scan of opset 8 row by row, each over its own length, padded with zeros.

    The parameters are those of `run_scan`; `inputs` are the sequence lengths or None, the initial states
    [N, ...] and the scanned values [N, T, ...].
    """
    attributes = {attribute.name: attribute for attribute in node.attribute}
    count = scan_inputs(node)
    lengths, *values = inputs
    check_count(node, "num_scan_inputs", len(values), "inputs")
    directions = list(attributes["directions"].ints) if "directions" in attributes else [0] * count
    if len(directions) != count:
        raise FormatError(f"{node_label(node)}: directions has {len(directions)} values; expected {count}")
    states, scanned = values[: len(values) - count], values[len(values) - count :]
    if any(np.ndim(value) < 1 for value in states) or any(np.ndim(value) < 2 for value in scanned):
        raise ArgumentError(
            f"{node_label(node)}: a state lacks the batch axis, or a scanned input the batch or time axis"
        )
    sizes = {(len(value), value.shape[1]) for value in scanned} | {
        (len(value), scanned[0].shape[1]) for value in states
    }
    if len(sizes) != 1:
        raise ArgumentError(
            f"{node_label(node)}: its inputs have the batch sizes and steps {sorted(sizes)}; expected the same in each"
        )
    rows, steps = sizes.pop()
    own = np.full(rows, steps) if lengths is None else np.asarray(lengths)
    if own.shape != (rows,) or any(not 0 <= length <= steps for length in own.tolist()):
        raise ArgumentError(f"{node_label(node)}: sequence_lens is {own.tolist()}; expected {rows} from 0 to {steps}")
    results = []
    for row, length in enumerate(own.tolist()):
        parts = [value[row, :length] for value in scanned]
        turned = [part[::-1] if reverse else part for part, reverse in zip(parts, directions, strict=True)]
        results.append(run_scan(node, names, types, run, [*(state[row] for state in states), *turned], outer))
    final = [np.stack([result[k] for result in results]) if rows else state for k, state in enumerate(states)]
    padded = [
        _padded([result[k] for result in results], steps, declared)
        for k, declared in enumerate(types[len(states) :], len(states))
    ]
    return (*final, *padded)


def _padded(rows: Sequence[Any], steps: int, declared: TypeProto) -> Any:
    """Return [N, T, ...]: each row's steps, padded with zeros."""
    like = next((row for row in rows if len(row)), _empty(declared))
    result = np.zeros((len(rows), steps, *like.shape[1:]), like.dtype)
    for target, row in zip(result, rows, strict=True):
        if len(row):
            target[: len(row)] = row
    return result


def check_count(node: NodeProto, name: str, most: int, what: str) -> None:
    """Reject a count attribute that is below 1 or above `most`.

    Raises
    ------
    FormatError
    """
    for attribute in node.attribute:
        if attribute.name == name and not attribute.ref_attr_name and not 1 <= attribute.i <= most:
            raise FormatError(f"{node_label(node)}: {name} is {attribute.i}; the node has {most} {what}")


def _empty(declared: TypeProto) -> Any:
    """Return [0, ...] of the declared type: the results of a loop without iterations."""
    tensor = declared.tensor_type
    dtype = import_onnx().helper.tensor_dtype_to_np_dtype(tensor.elem_type) if tensor.elem_type else np.float32
    return np.zeros((0, *(dim.dim_value for dim in tensor.shape.dim)), dtype)
