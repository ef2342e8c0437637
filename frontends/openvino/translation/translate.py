"""A whole IR as an ONNX model: one that is exported, or one that is run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pyrnnx.dtypes import AnyArray, named_dtype
from pyrnnx.errors import UnsupportedError, shown

from ..ir.layer import NetLayer, Output
from ..ir.variables import Variable, variables
from ..layers import BoundLayer, IRLayer
from .bodies import BODIES
from .constants import ConstantValues
from .dimensions import input_info, output_info, variable_info, with_output_dimensions
from .graph import LARGEST_MODEL, SMALL, Graph, guarded, merge_equal_initializers
from .onnx_frontend import Model, fold_constants, import_onnx, runnable
from .scope import Prepared, Scope, Whole
from .states import STATES

if TYPE_CHECKING:
    from onnx import ModelProto, ValueInfoProto

LARGEST_DEFAULT = 2**20  # elements of zeros that a variable is exported with
_EXPECTED = "layers whose attributes, ports and constants agree with each other"


class Names(NamedTuple):
    """Names of the inputs and outputs of a model, in the order of the Parameter and Result layers; of its variables."""

    inputs: Sequence[str]
    outputs: Sequence[str]
    states: Mapping[str, StateNames]


class StateNames(NamedTuple):
    """What a variable is called as an input and as an output, and the output that tells whether it has a value."""

    before: str
    after: str
    known: str


def export(constants: ConstantValues, names: Names, label: str) -> ModelProto:
    """What `pyrnnx.frontends.openvino.to_onnx` returns of a net with its weights; `label`: how errors name it."""
    net = constants.net
    for one in variables(net):
        if one.shape is None:
            raise UnsupportedError(
                f"{one.reads[0].label}: the rank of variable {shown(one.id)} is open; expected a fixed one, as "
                "inputs of ONNX models have"
            )
    with guarded(f"IR {shown(net.name)}", _EXPECTED):
        translated = _Translation(constants, names, None).run()
    with guarded(label, _EXPECTED):
        result = fold_constants(translated, largest=SMALL)  # a larger constant only where that takes no more bytes
        if result.ByteSize() > LARGEST_MODEL:
            raise UnsupportedError(f"{label}: the ONNX model would exceed {LARGEST_MODEL} bytes (2 GB)")
        result = with_output_dimensions(merge_equal_initializers(result))
        for one in variables(net):
            value = _first_value(one, constants)
            if value is not None:
                result.graph.initializer.append(
                    import_onnx().numpy_helper.from_array(value, names.states[one.id].before)
                )
        return result


def _first_value(variable: Variable, constants: ConstantValues) -> AnyArray | None:
    """What a variable begins with, if that is known before a call and not large."""
    source = next((layer.sources[0] for layer in variable.reads if layer.sources), None)
    if source is not None:
        return constants.value(source)
    sizes = [size for size in variable.shape or () if isinstance(size, int)]
    if variable.shape is None or len(sizes) != len(variable.shape) or math.prod(sizes) > LARGEST_DEFAULT:
        return None
    return np.zeros(sizes, named_dtype(str(variable.dtype)))


class Program(NamedTuple):
    """A net as it is run: translated, but for its recurrent layers, which run as they are.

    Attributes
    ----------
    model : pyrnnx.frontends.onnx.Model
    values : mapping of Output to str
        What the values of layers are called here.
    begun : frozenset of str
        What the variables that are not given begin with.
    doubtful : frozenset of str
        Those that may have no value after the run: the names of outputs that tell.
    layers : mapping
        What runs recurrent layers, by the names of their nodes.
    """

    model: Model
    values: Mapping[Output, str]
    begun: frozenset[str]
    doubtful: frozenset[str]
    layers: Mapping[str, BoundLayer | IRLayer]


def program(
    constants: ConstantValues,
    names: Names,
    label: str,
    prepared: Prepared,
    *,
    everything: bool = False,
    missing: frozenset[str] = frozenset(),
    runtime: str | None = None,
) -> Program:
    """A net, ready to be run.

    Parameters
    ----------
    constants : ConstantValues
        Of the net.
    names : Names
    label : str
        How errors name the model.
    prepared : callable
        From a recurrent layer to what runs it.
    everything : bool
        Also the layers that no output depends on, as far as they can be translated.
    missing : frozenset of str
        The ids of variables that are no inputs, but begin with what the net computes.
    runtime : str, optional
        As of `read_model`.

    Raises
    ------
    PyrnnxError
        As of `to_onnx`.
    """
    with guarded(f"IR {shown(constants.net.name)}", _EXPECTED):
        translation = _Translation(constants, names, prepared)
        model = translation.run(everything, missing)
    reads = [layer for one in missing for layer in translation.variables[one].reads]
    begun = frozenset(translation.values[Output(layer, 0)] for layer in reads if layer in constants.net.order)
    run_by = translation.run_by
    doubtful = frozenset(translation.doubtful)
    return Program(runnable(model, label, run_by, runtime), translation.values, begun, doubtful, run_by)


class _Translation:
    """Of one net; `prepared`: what runs each recurrent layer, None where they become operators of ONNX.

    Attributes
    ----------
    values : mapping of Output to str
        The names of the outputs of layers, as far as they have been translated.
    run_by : dict
        By the name of its node, what runs a recurrent layer.
    """

    def __init__(self, constants: ConstantValues, names: Names, prepared: Prepared | None) -> None:
        self.net, self.names = constants.net, names
        states = (name for pair in names.states.values() for name in pair)
        self.graph = Graph(self.net.name or "model", {*names.inputs, *names.outputs, *states})
        outputs: dict[Output, str] = {}  # of two outputs of one value the name of the first
        for result, name in zip(self.net.results, names.outputs, strict=True):
            outputs.setdefault(result.sources[0], name)
        self.variables = {one.id: one for one in variables(self.net)}
        self._whole = Whole(self.net, constants, {**BODIES, **STATES}, prepared, self.variables)
        self._scope = Scope(self._whole, self.net, self.graph, outputs)
        self.doubtful: list[str] = []
        self.values, self.run_by = self._scope.values.names, self._whole.run_by

    def run(self, everything: bool = False, missing: frozenset[str] = frozenset()) -> ModelProto:
        """The model, nothing of it folded; variables that are not missing are inputs."""
        infos = []
        for layer, name in zip(self.net.parameters, self.names.inputs, strict=True):
            self.values[Output(layer, 0)] = name
            infos.append(input_info(self.graph, layer, name))
        for identifier, variable in self.variables.items():
            if identifier not in missing:
                name = self._scope.states[identifier] = self.names.states[identifier].before
                infos.append(variable_info(self.graph, variable, name, is_input=True))
        self._scope.translate(self.net.results, everything=everything)
        results = [self._result(layer, name) for layer, name in zip(self.net.results, self.names.outputs, strict=True)]
        results += [info for one in self.variables.values() for info in self._state(one)]
        return self.graph.model(infos, results)

    def _state(self, variable: Variable) -> list[ValueInfoProto]:
        """Of what a variable has afterwards."""
        scope, (_, name, flag_name) = self._scope, self.names.states[variable.id]
        known = variable.id in scope.assigned or variable.id in scope.states
        value = scope.current(variable.id) if known else self.values[Output(variable.reads[0], 0)]
        (identity,) = self.graph.node("Identity", [value], name)
        self.graph.rename(identity, name, len(self.graph.nodes) - 1)
        infos = [variable_info(self.graph, variable, name)]
        flag = scope.current_flag(variable.id)
        if flag is not None:
            self.doubtful.append(flag_name)
            (identity,) = self.graph.node("Identity", [flag], flag_name)
            self.graph.rename(identity, flag_name, len(self.graph.nodes) - 1)
            infos.append(self.graph.onnx.helper.make_tensor_value_info(flag_name, self.graph.element_type("bool"), []))
        return infos

    def _result(self, layer: NetLayer, name: str) -> Any:
        source = layer.sources[0]
        value = self._scope.values.name(source)
        if value != name:
            (identity,) = self.graph.node("Identity", [value], layer.name or name)
            self.graph.rename(identity, name, len(self.graph.nodes) - 1)
        return output_info(self.graph, source, name)
