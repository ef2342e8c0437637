"""Callable models read from IR, and their recurrent layers."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.errors import ArgumentError, PyrnnxError, UnsupportedError, shortened, shown
from pyrnnx.layers.layer import Layer
from pyrnnx.models import model as base
from pyrnnx.models.layers import Layers
from pyrnnx.models.roles import Role
from pyrnnx.models.stream import Carrier, ModelStream
from pyrnnx.operator.quantized import check_weight_dtype
from pyrnnx.operator.tensor_info import TensorInfo

from .ir.bin_file import BinFile
from .ir.layer import NetLayer, Output
from .ir.names import input_infos, layer_keys, output_infos, state_names, value_names
from .ir.variables import variables
from .layers import BoundLayer, IRLayer
from .net import Net, computed_values, layer_values
from .schemas import WEIGHTS
from .states import Session, WithVariables

if TYPE_CHECKING:
    from onnx import ModelProto

    from .translation import ConstantValues, Names, Program


class Model(base.Model):
    """A model in OpenVINO's intermediate representation (IR).

    An input has the name of its layer if that is also a name of its tensor, or if the tensor has no names; else the
    first name of the tensor. An output has a name of the tensor that it returns: the name of its Result layer (up to
    "/sink_port_0") if the tensor has it, else the first name that no other output has. An output whose tensor has no
    name has the name of the layer that computes it, with an index (".1") if the layer has several outputs. A model
    converted from ONNX thus has its original names. All other names of these tensors are aliases, which calls accept
    too. ``outputs=`` of a call takes names of outputs, tensors and layers.

    Attributes
    ----------
    label : str
        The path of the XML, or the net's name.
    net : Net
    weights : BinFile
    inputs, outputs : tuple of TensorInfo
        In the order of the Parameter and Result layers.
    layers : mapping
        Recurrent layers by name, "name (id 7)" if several have that name, "loop/body/name" in the body of a loop or an
        If. A TensorIterator whose body is one cell over slices is a sequence. A layer whose W, R, B (and P) are
        constant is a `BoundLayer`, whose weights are read on first access; any other is an `IRLayer`. Last come the
        layers that the net spells out, in a loop or in equal steps; their `origin` says where.
    variables : tuple of TensorInfo
        The values that ReadValue and Assign carry from call to call, by variable_id, as in `state`. Calls are
        thread-safe and run one after the other; each `stream` has its own state, and streams run concurrently.

    A model can be pickled and copied with the values of its variables. The copy contains the XML and the .bin, so
    it needs no files; it prepares itself for calls again.
    """

    _fixed = base.Model._fixed | {"net", "weights", "session_options", "variables"}

    def __init__(
        self,
        net: Net,
        weights: BinFile,
        label: str = "",
        *,
        session_options: Any = None,
        weight_dtype: str | None = None,
    ) -> None:
        self.net, self.weights = net, weights
        self.label = label or (f"IR {shown(net.name)}" if net.name else "IR")
        check_weight_dtype(self.label, weight_dtype)
        self.session_options, self._weight_dtype = session_options, weight_dtype
        self.inputs = input_infos(net)
        self.outputs = output_infos(net)
        self._keys = layer_keys(net.recurrent_paths())
        sources = {key: layer for layer, key in self._keys.items()}
        self._layers = Layers(self.label, sources, self._bind)
        self._lock = threading.Lock()
        self._programs: dict[frozenset[str], Program] = {}
        self._variables = {variable.id: variable for variable in variables(net)}
        self._states = state_names(self._variables, [info.name for info in (*self.inputs, *self.outputs)])
        self.variables = tuple(TensorInfo(row.id, row.dtype, row.shape) for row in self._variables.values())
        names = {identifier: before for identifier, (before, _) in self._states.items()}
        self._calls = Session(lambda: ModelStream(self, {}, None, False, self._carrier), names, self.label)

    @property
    def layers(self) -> Layers[Layer | IRLayer]:
        """Recurrent layers by name or index; each is prepared on first access."""
        return self._listed

    @cached_property
    def _listed(self) -> Layers[Layer | IRLayer]:
        """Layers of the net, and after them those that the translated net spells out."""
        likely = self.net.why_no_layers()
        others: Layers[Any] = Layers(self.label, {}, str)
        with suppress(PyrnnxError):  # a net that is not translated has the layers of its operations alone
            others = self._translated().model.layers if likely else others
        sources: dict[str, Layers[Any]] = dict.fromkeys(self._layers, self._layers)
        sources |= {name: others for name in others if name not in sources}
        why = others.why_none if others else "" if self._layers else others.why_none or likely
        places = {name: (layers, name) for name, layers in sources.items()}
        return Layers(self.label, places, lambda place: place[0][place[1]], lambda: why)

    @property
    def plan(self) -> Any:
        """Table of which engine runs each node of the translated net, and why.

        Raises
        ------
        PyrnnxError
            As in `to_onnx`.
        """
        return self._translated().model.plan

    def __reduce__(self) -> tuple[Any, ...]:
        make = partial(Model, weight_dtype=self._weight_dtype)
        return make, (self.net, self.weights, self.label), self._calls.values() or None

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.state = state

    @property
    def state(self) -> Mapping[str, AnyArray]:
        """Copies of the variables' values at the next call, by id; assign a mapping to change them.

        A variable whose first value depends on inputs is absent before the first call and after `reset_state`.
        Variables that an assigned mapping lacks are reset. A value that does not fit raises ArgumentError.
        """
        return MappingProxyType(self._calls.values())

    @state.setter
    def state(self, values: Mapping[str, Any]) -> None:
        self._calls.restore(values)

    def reset_state(self) -> None:
        """Reset all variables to the first values that the model computes, else to zeros."""
        self._calls.reset()

    def _bind(self, layer: NetLayer) -> BoundLayer | IRLayer:
        looped = self.net.looped.get(layer)
        if looped is not None:
            return looped.bound(self.constant, self._weight_dtype)
        ir_layer = self.net.declared(layer)
        assert ir_layer is not None  # `layers` has only recurrent ones
        weights: dict[str, Any] = {}
        for argument, source in zip(ir_layer.arguments, layer.sources, strict=True):
            if argument in WEIGHTS:
                weights[argument] = self.constant(source)
                if weights[argument] is None:
                    return ir_layer
        return ir_layer.bind(**weights, weight_dtype=self._weight_dtype)

    def constant(self, output: Output) -> Any:
        """Return the value of an output that does not depend on the model's inputs; None for any other."""
        if output.layer.type == "Const":
            return self.weights.constant(output.layer)
        return self._constants.value(output)

    @cached_property
    def _constants(self) -> ConstantValues:
        from .translation import ConstantValues

        return ConstantValues(self.net, self.weights)

    def _run(self, inputs: dict[str, Any], outputs: tuple[str, ...], *, once: bool = False) -> dict[str, Any]:
        if self._variables:
            return self._calls.run(inputs, outputs)
        return self._evaluate(inputs, outputs, frozenset(), once=once)

    def _run_once(self, inputs: dict[str, Any], outputs: tuple[str, ...]) -> dict[str, Any]:
        return self._run(inputs, outputs, once=True)

    def _evaluate(
        self, inputs: dict[str, Any], outputs: tuple[str, ...], missing: frozenset[str], *, once: bool = False
    ) -> dict[str, Any]:
        """Return outputs, constants and other values, in one run of one program, which computes `missing` variables."""
        program, constants = self._translated(missing), dict[str, Any]()
        own = {name: self._output_names[name] for name in outputs if name in self._output_names}
        for name in outputs:
            if name not in own:
                value = self._value(name)
                constants[name] = self.constant(value)
                if constants[name] is None:
                    if value not in program.values:
                        raise UnsupportedError(
                            f"{self.label}: {shown(name)} cannot be computed: no output depends on {value.layer.label}"
                        )
                    own[name] = program.values[value]
        run = program.model._run_once if once else program.model._run
        results = run(inputs, tuple(dict.fromkeys(own.values()))) if own else {}
        values: dict[str, Any] = {}
        returned: set[str | None] = {None}
        for name in outputs:  # copy constants, which the model owns, and values with several names
            source = own.get(name)
            value = constants[name] if source is None else results[source]
            values[name] = np.array(value) if source in returned else value
            returned.add(source)
        return values

    def _carrier(self, fed: frozenset[str], layers: bool | frozenset[str]) -> Carrier:
        if not self._variables:
            return self._carrier_of(fed, layers, frozenset())
        runnable = WithVariables(self, fed, layers)
        states = {after: before for before, after in self._states.values()} | dict(runnable.states)
        return Carrier(runnable, states, runnable.starts, frozenset(runnable.computed))

    def _carrier_of(self, fed: frozenset[str], layers: bool | frozenset[str], missing: frozenset[str]) -> Carrier:
        program = self._translated(missing)
        fed |= program.first_values | {before for before, _ in self._states.values()}
        if not isinstance(layers, bool):
            chosen = [self._layers[name] for name in layers if name in self._layers]
            layers = layers.difference(self._layers).union(
                name for name, layer in program.layers.items() if any(layer is row for row in chosen)
            )
        return program.model._carrier(fed, layers)

    @cached_property
    def _output_names(self) -> Mapping[str, str]:
        """Names of outputs by name and alias."""
        names = {alias: info.name for info in self.outputs for alias in info.aliases}
        names |= {info.name: info.name for info in self.outputs}
        return names | {name: name for state in self._states.values() for name in state}

    def _value(self, name: str) -> Output:
        """Return the value with the name of a tensor or layer."""
        output = self._values.get(name)
        if output is None:
            allowed = ", ".join(info.name for info in self.outputs)
            raise ArgumentError(
                f"{self.label}: outputs has {shown(name)}; expected names of outputs ({allowed}), of tensors, or of "
                "layers with one output"
            )
        return output

    @cached_property
    def _values(self) -> Mapping[str, Output]:
        return value_names(self.net)

    def _computed_values(self) -> tuple[Mapping[str, Output], frozenset[str]]:
        return computed_values(self.net, self._values)

    def _layer_values(self) -> Mapping[str, Mapping[str, base.LayerValue]]:
        return layer_values(self.net, self._keys, self._values, self.inputs, self.outputs)

    def _input_roles(self) -> Mapping[str, Role]:
        with suppress(PyrnnxError):  # an untranslated net shows no roles
            return base.input_roles(self._translated().model)
        return {}

    def _translated(self, missing: frozenset[str] = frozenset()) -> Program:
        """Return the cached program, built on first use."""
        with self._lock:
            if missing not in self._programs:
                from .translation import program

                self._programs[missing] = program(
                    self._constants,
                    self._names,
                    self.label,
                    self._prepared,
                    missing=missing,
                    session_options=self.session_options,
                    weight_dtype=self._weight_dtype,
                )
            return self._programs[missing]

    def _prepared(self, layer: NetLayer) -> BoundLayer | IRLayer:
        return self._layers[self._keys[layer]]

    def _export(self) -> ModelProto:
        from .translation import export

        return export(self._constants, self._names, shortened(self.label))

    @property
    def _names(self) -> Names:
        from .translation import Names

        return Names([info.name for info in self.inputs], [info.name for info in self.outputs], self._states)
