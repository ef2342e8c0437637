"""Translation of a whole IR to an ONNX model, to export it or to run it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pyrnnx._internal.dtypes import AnyArray, named_dtype
from pyrnnx.errors import UnsupportedError, shown

from ...onnx.graph.walk import prune
from ...onnx.model import Model
from ...onnx.onnx_package import import_onnx
from ...onnx.passes import LayerOptions
from ..ir.layer import Output
from ..ir.variables import Variable, variables
from ..layers import BoundLayer, IRLayer
from . import bodies  # noqa: F401  # fills the table of translators
from .constants import ConstantValues
from .graph import (
    LARGEST_MODEL,
    Graph,
    guarded,
    input_info,
    output_info,
    variable_info,
    with_output_dimensions,
)
from .scope import Prepared, Scope

if TYPE_CHECKING:
    from onnx import ModelProto

LARGEST_DEFAULT = 2**20  # elements of a variable's zeros in an exported model
_EXPECTED = "consistent attributes, ports and constants in each layer"


class Names(NamedTuple):
    """Names of inputs and outputs in the order of Parameters and Results; of each variable's input and output."""

    inputs: Sequence[str]
    outputs: Sequence[str]
    states: Mapping[str, tuple[str, str]]


def export(constants: ConstantValues, names: Names, label: str) -> ModelProto:
    """Export a net with its weights, for `pyrnnx.frontends.openvino.to_onnx`; `label` is its name in errors."""
    net = constants.net
    for variable in variables(net):
        if variable.shape is None:
            raise UnsupportedError(
                f"{variable.reads[0].label}: the rank of variable {shown(variable.id)} is dynamic; expected a fixed "
                "one, which inputs of ONNX models need"
            )
    with guarded(f"IR {shown(net.name)}", _EXPECTED):
        result, _ = _translated(constants, names, None)
    with guarded(label, _EXPECTED):
        prune(result.graph)  # what is computed in a wider type instead
        if result.ByteSize() > LARGEST_MODEL:
            raise UnsupportedError(f"{label}: the ONNX model would exceed {LARGEST_MODEL} bytes (2 GB)")
        result = with_output_dimensions(result)
        for variable in variables(net):
            value = _first_value(variable, constants)
            if value is not None:
                name = names.states[variable.id][0]
                result.graph.initializer.append(import_onnx().numpy_helper.from_array(value, name))
        return result


def _first_value(variable: Variable, constants: ConstantValues) -> AnyArray | None:
    """Return the first value of a variable, if it is constant and not large."""
    if variable.initial is not None:
        return constants.value(variable.initial)
    sizes = [size for size in variable.shape or () if isinstance(size, int)]
    if variable.shape is None or len(sizes) != len(variable.shape) or math.prod(sizes) > LARGEST_DEFAULT:
        return None
    return np.zeros(sizes, named_dtype(str(variable.dtype)))


class Program(NamedTuple):
    """A runnable net, in which recurrent layers are nodes of OpenVINO's operations.

    `values` are the names of values in the model, `first_values` those of variables that are not inputs. `layers` run
    the recurrent nodes, by the nodes' names.
    """

    model: Model
    values: Mapping[Output, str]
    first_values: frozenset[str]
    layers: Mapping[str, BoundLayer | IRLayer]


def program(
    constants: ConstantValues,
    names: Names,
    label: str,
    prepared: Prepared,
    *,
    missing: frozenset[str] = frozenset(),
    session_options: Any = None,
    weight_dtype: str | None = None,
) -> Program:
    """Build the program of a net, which computes the first values of the variables in `missing`."""
    with guarded(f"IR {shown(constants.net.name)}", _EXPECTED):
        model, scope = _translated(constants, names, prepared, missing)
    reads = [layer for identifier in missing for layer in scope.variables[identifier].reads]
    first_values = frozenset(scope.names[Output(layer, 0)] for layer in reads if layer in constants.net.order)
    options = LayerOptions(scope.run_by, weight_dtype)
    runnable = Model(model, label, session_options=session_options, options=options)
    return Program(runnable, scope.names, first_values, scope.run_by)


def _translated(
    constants: ConstantValues,
    names: Names,
    prepared: Prepared | None,
    missing: frozenset[str] = frozenset(),
) -> tuple[ModelProto, Scope]:
    """Return the model of a net, and its scope; variables are inputs unless they are `missing`."""
    net = constants.net
    states = (name for pair in names.states.values() for name in pair)
    graph = Graph(net.name or "model", {*names.inputs, *names.outputs, *states})
    outputs: dict[Output, str] = {}  # two outputs of one value have the name of the first
    for result, name in zip(net.results, names.outputs, strict=True):
        outputs.setdefault(result.sources[0], name)
    scope = Scope(constants, graph, outputs, prepared)
    infos = []
    for layer, name in zip(net.parameters, names.inputs, strict=True):
        scope.names[Output(layer, 0)] = name
        infos.append(input_info(layer, name))
    for identifier, variable in scope.variables.items():
        if identifier not in missing:
            name = scope.states[identifier] = names.states[identifier][0]
            infos.append(variable_info(variable, name, is_input=True))
    scope.translate(net.results)
    results = []
    for layer, name in zip(net.results, names.outputs, strict=True):
        source = layer.sources[0]
        _name_output(graph, scope.name(source), name, layer.name or name)
        results.append(output_info(source, name))
    for variable in scope.variables.values():
        name = names.states[variable.id][1]
        known = variable.id in scope.assigned or variable.id in scope.states
        value = scope.current(variable.id) if known else scope.names[Output(variable.reads[0], 0)]
        _name_output(graph, value, name, name)
        results.append(variable_info(variable, name))
    return graph.model(infos, results), scope


def _name_output(graph: Graph, value: str, name: str, node_name: str) -> None:
    if value != name:
        (identity,) = graph.node("Identity", [value], node_name)
        graph.rename(identity, name, len(graph.nodes) - 1)
