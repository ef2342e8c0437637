"""Branches of Ifs that a call of a model runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pyrnnx.errors import PyrnnxError
from pyrnnx.models.inputs import read_inputs
from pyrnnx.models.model import run_once

from .graph.walk import DEFAULT_DOMAINS, all_nodes, node_label, subgraphs
from .model import Model

if TYPE_CHECKING:
    from onnx import NodeProto


def branches_not_run(model: Model, inputs: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Return the branches of Ifs that a call does not run, and the Ifs of which that is unknown.

    The conditions of Ifs inside bodies are unknown, because a call returns only values of the model's top level.
    """
    proto, _ = model.folded()
    choices = [node for node in proto.graph.node if _is_if(node)]
    names = tuple(dict.fromkeys(node.input[0] for node in choices))
    try:
        values = run_once(model, read_inputs(model.label, model.inputs, (inputs,)), names) if names else {}
    except PyrnnxError:  # for example, too large together with the other results
        return [], [node_label(node) for node in all_nodes(proto.graph.node) if _is_if(node)]
    not_run, unknown = [], []
    for node in proto.graph.node:
        for name, body in subgraphs(node):
            if _is_if(node) and (name == "then_branch") != bool(np.all(values[node.input[0]])):
                not_run.append(f"{name} of {node_label(node)}")
            else:
                unknown += [node_label(inner) for inner in all_nodes(body.node) if _is_if(inner)]
    return not_run, unknown


def _is_if(node: NodeProto) -> bool:
    return node.op_type == "If" and node.domain in DEFAULT_DOMAINS
