"""Graph of a stack: its layers in sequence, with as few operators between them as ONNX allows."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from pyrnnx.layers.layer import Layer
from pyrnnx.stacks.stack import Stack
from pyrnnx.stacks.states import StateForm

from .graph import Dimension, GraphWriter
from .layers import BATCH_SIZE, SEQ_LENGTH, node_name, write_node

ROWS_FIRST = (1, 0, 2)  # swaps seq_length and batch_size


def write_stack(graph: GraphWriter, stack: Stack, optional_inputs: Collection[str]) -> None:
    names = [node_name(graph, layer, k) for k, layer in enumerate(stack.layers)]
    value = graph.input("X", _sequence(stack, stack.input_size))
    if stack.batch_first:
        value = graph.transpose(value, ROWS_FIRST, "X_steps")
    sources: dict[str, str] = {}
    if "sequence_lens" in optional_inputs:
        sources["sequence_lens"] = graph.input("sequence_lens", [BATCH_SIZE], np.dtype(np.int32))
    states = {
        form.argument: _initial(graph, form, names) for form in stack.state_forms if form.argument in optional_inputs
    }
    forms = dict(zip(("Y_h", "Y_c"), stack.state_forms, strict=True))
    for k, (name, layer) in enumerate(zip(names, stack.layers, strict=True)):
        own = {key: values[k] for key, values in states.items() if values[k]}
        outputs = {key: _state_name(forms[key], key, k, name) for key in layer.output_names[1:]}
        write_node(graph, layer, name, sources | own | {"X": value}, outputs | {"Y": f"{name}.Y"})
        if name != names[-1]:
            value = _side_by_side(graph, layer, f"{name}.Y", f"{name}.steps")
    _last(graph, stack, stack.layers[-1], f"{names[-1]}.Y")
    graph.output("Y", _sequence(stack, stack.output_size))
    for key in stack.output_names[1:]:
        _final(graph, forms[key], key, names)


def _sequence(stack: Stack, size: int) -> list[Dimension]:
    return [BATCH_SIZE, SEQ_LENGTH, size] if stack.batch_first else [SEQ_LENGTH, BATCH_SIZE, size]


def _last(graph: GraphWriter, stack: Stack, layer: Layer, Y: str) -> None:
    D, H = layer.op.num_directions, layer.op.hidden_size
    if not stack.batch_first:
        _side_by_side(graph, layer, Y, "Y")
    elif D == 1:
        graph.transpose(graph.squeeze(Y, 1, "Y_steps"), ROWS_FIRST, "Y")
    else:
        graph.reshape(graph.transpose(Y, (2, 0, 1, 3), f"{Y}.rows"), [0, 0, D * H], "Y")


def _side_by_side(graph: GraphWriter, layer: Layer, Y: str, output: str) -> str:
    """Write Y [T, D, N, H] as [T, N, D*H]."""
    D, H = layer.op.num_directions, layer.op.hidden_size
    if D == 1:
        return graph.squeeze(Y, 1, output)
    return graph.reshape(graph.transpose(Y, (0, 2, 1, 3), f"{Y}.rows"), [0, 0, D * H], output)


def _parts(form: StateForm) -> int:
    """Return how many layers have these states."""
    return sum(D > 0 for D in form.counts)


def _state_name(form: StateForm, key: str, k: int, name: str) -> str:
    """Return the name of the last state of layer k: the output's name if no Concat follows."""
    if not form.is_joined:
        return f"{key}_{k}"
    return key if _parts(form) == 1 else f"{name}.{key}"


def _initial(graph: GraphWriter, form: StateForm, names: Sequence[str]) -> list[str]:
    """Return the name of each layer's initial state, "" if it has none."""
    key = form.argument
    sizes = [(D, BATCH_SIZE, op.hidden_size) for D, op in zip(form.counts, form.ops, strict=True)]
    if not form.is_joined:
        return [graph.input(f"{key}_{k}", shape) if shape[0] else "" for k, shape in enumerate(sizes)]
    joined = graph.input(key, [sum(form.counts), BATCH_SIZE, form.ops[0].hidden_size])
    if _parts(form) == 1:
        return [joined if D else "" for D in form.counts]
    values = [f"{name}.{key}" if D else "" for name, D in zip(names, form.counts, strict=True)]
    graph.split(joined, [D for D in form.counts if D], [value for value in values if value])
    return values


def _final(graph: GraphWriter, form: StateForm, key: str, names: Sequence[str]) -> None:
    if not form.is_joined:
        for k, (D, op) in enumerate(zip(form.counts, form.ops, strict=True)):
            if D:
                graph.output(f"{key}_{k}", [D, BATCH_SIZE, op.hidden_size])
        return
    if _parts(form) > 1:
        graph.concat([f"{name}.{key}" for name, D in zip(names, form.counts, strict=True) if D], key)
    graph.output(key, [sum(form.counts), BATCH_SIZE, form.ops[0].hidden_size])
