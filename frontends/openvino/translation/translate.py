"""Translation of a whole IR to an ONNX model, to export it or to run it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pyrnnx._internal.dtypes import AnyArray, named_dtype
from pyrnnx.errors import UnsupportedError, shown

from ...onnx.model import Model
from ...onnx.onnx_package import import_onnx
from ..ir.layer import NetLayer, Output
from ..ir.variables import Variable, variables
from ..layers import BoundLayer, IRLayer
from .bodies import BODIES
from .constants import ConstantValues
from .dimensions import input_info, output_info, variable_info, with_output_dimensions
from .graph import LARGEST_MODEL, Graph, drop_unused, guarded
from .scope import Prepared, Scope, Whole
from .states import STATES

if TYPE_CHECKING:
    from onnx import ModelProto, ValueInfoProto

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
        result = _Translation(constants, names, None).run()
    with guarded(label, _EXPECTED):
        needed = drop_unused(result.graph)  # what is computed in a wider type instead
        for k in reversed(range(len(result.graph.initializer))):
            if result.graph.initializer[k].name not in needed:
                del result.graph.initializer[k]
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
    source = next((layer.sources[0] for layer in variable.reads if layer.sources), None)
    if source is not None:
        return constants.value(source)
    sizes = [size for size in variable.shape or () if isinstance(size, int)]
    if variable.shape is None or len(sizes) != len(variable.shape) or math.prod(sizes) > LARGEST_DEFAULT:
        return None
    return np.zeros(sizes, named_dtype(str(variable.dtype)))


class Program(NamedTuple):
    """A runnable net, in which recurrent layers are nodes of OpenVINO's operations.

    Attributes
    ----------
    model : pyrnnx.frontends.onnx.Model
    values : mapping of Output to str
        Names of values in the model.
    first_values : frozenset of str
        Names of the first values of variables that are not inputs.
    layers : mapping
        Layers that run recurrent nodes, by the nodes' names.
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
) -> Program:
    """Build the program of a net; it skips layers that no output depends on if they cannot be translated.

    Parameters
    ----------
    constants : ConstantValues
        The net and its constants.
    names : Names
    label : str
        Name of the model in errors.
    prepared : callable
        Function from a recurrent layer to the layer that runs it.
    missing : frozenset of str
        The ids of variables that are not inputs: the net computes their first values.
    session_options : onnxruntime.SessionOptions, optional
        As for `read_model`.
    """
    with guarded(f"IR {shown(constants.net.name)}", _EXPECTED):
        translation = _Translation(constants, names, prepared)
        model = translation.run(missing, everything=True)
    reads = [layer for identifier in missing for layer in translation.variables[identifier].reads]
    first_values = frozenset(translation.values[Output(layer, 0)] for layer in reads if layer in constants.net.order)
    run_by = translation.run_by
    runnable = Model(model, label, session_options=session_options, others=run_by)
    return Program(runnable, translation.values, first_values, run_by)


class _Translation:
    """The translation of one net; attributes and `prepared` as in `Whole` and `Scope`."""

    def __init__(self, constants: ConstantValues, names: Names, prepared: Prepared | None) -> None:
        self.net, self.names = constants.net, names
        states = (name for pair in names.states.values() for name in pair)
        self.graph = Graph(self.net.name or "model", {*names.inputs, *names.outputs, *states})
        outputs: dict[Output, str] = {}  # two outputs of one value have the name of the first
        for result, name in zip(self.net.results, names.outputs, strict=True):
            outputs.setdefault(result.sources[0], name)
        self.variables = {variable.id: variable for variable in variables(self.net)}
        self._whole = Whole(self.net, constants, {**BODIES, **STATES}, prepared, self.variables)
        self._scope = Scope(self._whole, self.net, self.graph, outputs)
        self.values, self.run_by = self._scope.values.names, self._whole.run_by

    def run(self, missing: frozenset[str] = frozenset(), *, everything: bool = False) -> ModelProto:
        """Return the model; variables are inputs unless they are `missing`."""
        infos = []
        for layer, name in zip(self.net.parameters, self.names.inputs, strict=True):
            self.values[Output(layer, 0)] = name
            infos.append(input_info(self.graph, layer, name))
        for identifier, variable in self.variables.items():
            if identifier not in missing:
                name = self._scope.states[identifier] = self.names.states[identifier][0]
                infos.append(variable_info(self.graph, variable, name, is_input=True))
        self._scope.translate(self.net.results, everything=everything)
        results = [self._result(layer, name) for layer, name in zip(self.net.results, self.names.outputs, strict=True)]
        results += [self._state(variable) for variable in self.variables.values()]
        return self.graph.model(infos, results)

    def _state(self, variable: Variable) -> ValueInfoProto:
        """Add the final value of a variable as an output."""
        scope, name = self._scope, self.names.states[variable.id][1]
        known = variable.id in scope.assigned or variable.id in scope.states
        value = scope.current(variable.id) if known else self.values[Output(variable.reads[0], 0)]
        (identity,) = self.graph.node("Identity", [value], name)
        self.graph.rename(identity, name, len(self.graph.nodes) - 1)
        return variable_info(self.graph, variable, name)

    def _result(self, layer: NetLayer, name: str) -> Any:
        source = layer.sources[0]
        value = self._scope.values.name(source)
        if value != name:
            (identity,) = self.graph.node("Identity", [value], layer.name or name)
            self.graph.rename(identity, name, len(self.graph.nodes) - 1)
        return output_info(self.graph, source, name)
