"""A whole IR, ready to be called, and its recurrent layers."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from lxml import etree

from pyrnnx import config
from pyrnnx import model as base
from pyrnnx.errors import ArgumentError, UnsupportedError, shortened, shown, warn
from pyrnnx.model_layers import Layers
from pyrnnx.model_stream import Carrier, ModelStream
from pyrnnx.tensor_info import TensorInfo

from .ir.bin_file import BinFile
from .ir.layer import NetLayer, Output
from .ir.names import input_infos, layer_keys, output_infos, state_names, value_names
from .ir.variables import variables
from .ir.xml import named_errors, parse, source_path
from .layer_reader import layer_of
from .layer_values import computed_values, layer_values
from .layers import BoundLayer, IRLayer
from .net import Net, net_of
from .schemas import WEIGHTS
from .states import Session, State, WithVariables, first_value

if TYPE_CHECKING:
    from onnx import ModelProto

    from .translation import ConstantValues, Names, Program


class Model(base.Model):
    """A model in OpenVINO's intermediate representation (IR).

    Names. An input is called as its layer if that is one of its tensor's names, else by the first of these names, and
    only where there is none by its layer in any case. An output is called by the names of the tensor that it returns:
    the one that its Result layer bears (up to "/sink_port_0"), else the first that no other output has; where the
    tensor has no name, by the layer that computes it, with the place of the output (".1") if that has several. So a
    model that was converted from ONNX has its own names. All other names of the same tensors are aliases that a call
    takes as well. ``outputs=`` of a call takes names of outputs, tensors and layers.

    Attributes
    ----------
    label : str
        The path of the XML, or the net's name.
    net : Net
    weights : BinFile
    inputs, outputs : tuple of TensorInfo
        In the order of the Parameter and Result layers.
    layers : mapping
        Recurrent layers by name, "name (id 7)" if others have the same name; those in the bodies of loops and choices
        are among them, then "loop/body/name". A TensorIterator whose body is one cell over a slice is the sequence that
        it is. One whose W, R, B (and P) are constant is a `BoundLayer`, whose weights are read when it is first asked
        for; any other is an `IRLayer`.
    variables : tuple of TensorInfo
        What ReadValue and Assign keep from call to call, by its variable_id, under which `state` has its value. Calls
        from several threads are made one after the other; each `stream` is a session with a state of its own, and
        streams run beside each other.

    It can be pickled and copied, with the values of its variables: as its XML and the bytes of its constants, each of
    them once, so that a copy needs no files; what has been prepared for calls is prepared again there.
    """

    def __init__(self, net: Net, weights: BinFile, label: str = "", *, runtime: str | None = None) -> None:
        self.net, self.weights = net, weights
        self.label = label or (f"IR {shown(net.name)}" if net.name else "IR")
        self.runtime = config.choose_runtime(self.label, runtime)
        self.inputs = input_infos(net)
        self.outputs = output_infos(net)
        self._keys = layer_keys(net.recurrent_paths())
        sources = {key: layer for layer, key in self._keys.items()}
        self._layers = Layers(self.label, sources, self._bind, net.why_no_layers)
        self._lock = threading.Lock()
        self._programs: dict[tuple[bool, frozenset[str]], Program] = {}
        self._variables = {one.id: one for one in variables(net)}
        taken = [info.name for info in (*self.inputs, *self.outputs)]
        self._states = state_names(self._variables, taken)
        self.variables = tuple(TensorInfo(one.id, one.dtype, one.shape) for one in self._variables.values())
        own = {one: before for one, (before, *_) in self._states.items()}
        self._session = Session(lambda: ModelStream(self, {}, None, False, self._carrier), own, self.label)

    @property
    def layers(self) -> Layers:
        """Recurrent layers by name, or by place; each is prepared when it is first asked for."""
        return self._layers

    @property
    def plan(self) -> Any:
        """Who runs what, and why: printed as a table, in the names of the translated net.

        Raises
        ------
        PyrnnxError
            As of `to_onnx`.
        """
        return self._translated().model.plan

    def __reduce__(self) -> tuple[Any, ...]:
        constants = (layer for layer in self.net.everything if layer.type == "Const")
        source = self.net, self.weights.only(constants), self.label
        return partial(Model, runtime=self.runtime), source, dict(self.state) or None

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.state = state

    @property
    def state(self) -> State:
        """What the next call begins with: variables by their ids, to be read and to be written to, one or all.

        Assign a mapping to go on from there: what it lacks begins anew. A value that does not fit the variable is an
        ArgumentError.
        """
        return State(self._session)

    @state.setter
    def state(self, values: Mapping[str, Any]) -> None:
        self._session.change(lambda _: values)

    def reset_state(self) -> None:
        """Let all variables begin anew: with what the model computes for them, else with zeros."""
        self._session.reset()

    def _bind(self, layer: NetLayer) -> BoundLayer | IRLayer:
        looped = self.net.looped.get(layer)
        if looped is not None:
            return looped.bound(self.constant)
        ir_layer = self.net.declared(layer)
        assert ir_layer is not None  # as `layers` has only such as are recurrent
        weights: dict[str, Any] = {}
        for argument, source in zip(ir_layer.arguments, layer.sources, strict=True):
            if argument in WEIGHTS:
                weights[argument] = self.constant(source)
                if weights[argument] is None:
                    return ir_layer
        return ir_layer.bind(**weights)

    def constant(self, output: Output) -> Any:
        """The value of an output that does not depend on the inputs of the model; None of any other."""
        if output.layer.type == "Const":
            return self.weights.constant(output.layer)
        return self._constants.value(output)

    @cached_property
    def _constants(self) -> ConstantValues:
        from .translation import ConstantValues

        return ConstantValues(self.net, self.weights)

    def _again(self, arrays: tuple[Any, ...]) -> dict[str, Any] | None:
        return self._session.again(arrays) if self._variables else self._evaluate_again(arrays, frozenset())

    def _run(self, inputs: dict[str, Any], outputs: tuple[str, ...]) -> dict[str, Any]:
        if self._variables:
            return self._session.run(inputs, outputs)
        return self._evaluate(inputs, outputs, frozenset())

    def _run_once(self, inputs: dict[str, Any], outputs: tuple[str, ...]) -> dict[str, Any]:
        return (
            self._run(inputs, outputs) if self._variables else self._evaluate(inputs, outputs, frozenset(), once=True)
        )

    def _doubtful(self, missing: frozenset[str]) -> dict[str, str]:
        """Outputs that are variables, by those that tell whether they have a value, where that is not certain."""
        doubtful = self._translated(missing=missing).doubtful if missing else ()
        return {known: after for _, after, known in self._states.values() if known in doubtful}

    def _evaluate_again(self, arrays: tuple[Any, ...], missing: frozenset[str]) -> dict[str, Any] | None:
        program = self._programs.get((False, missing))
        return None if program is None else program.model.run_again(arrays)

    def _evaluate(
        self, inputs: dict[str, Any], outputs: tuple[str, ...], missing: frozenset[str], *, once: bool = False
    ) -> dict[str, Any]:
        """Values by name, in one run of one program; `missing` variables begin in it.

        What a name is     Its value
        =================  =================================================
        of an output       the program's output
        of a constant      the constant: no run is needed
        of another value   the program's value; it may be one that no output
                           depends on, which only the larger program has
        """
        constants: dict[str, Any] = {}
        others: dict[str, Output] = {}
        for name in outputs:
            if name not in self._output_names:
                value = self._value(name)
                constants[name] = self.constant(value)
                if constants[name] is None:
                    others[name] = value
        program = self._program(others, missing)
        own = {name: program.values[value] for name, value in others.items()}
        own |= {name: self._output_names[name] for name in outputs if name in self._output_names}
        run = program.model._run_once if once else program.model.run_checked
        results = run(inputs, tuple(dict.fromkeys(own.values()))) if own else {}
        values: dict[str, Any] = {}
        given: set[str | None] = {None}
        for name in outputs:  # constants are the model's, and one value may have several names
            source = own.get(name)
            value = constants[name] if source is None else results[source]
            values[name] = np.array(value) if source in given else value
            given.add(source)
        return values

    def _carrier(self, fed: frozenset[str], layers: bool | frozenset[str]) -> Carrier:
        if not self._variables:
            return self._carrier_of(fed, layers, frozenset())
        computed = frozenset(one.id for one in self._variables.values() if one.has_initial_value)
        infos = {
            one.id: TensorInfo(self._states[one.id][0], one.dtype, one.shape, optional=True)
            for one in self._variables.values()
        }
        runnable = WithVariables(self, infos, computed, fed, layers)
        starts = {info.name: first_value(info) for one, info in infos.items() if one not in computed}
        states = {after: before for before, after, _ in self._states.values()} | dict(runnable.states)
        known = {name: value for name, value in starts.items() if value is not None}
        return Carrier(runnable, states, known, frozenset(infos[one].name for one in computed))

    def _carrier_of(self, fed: frozenset[str], layers: bool | frozenset[str], missing: frozenset[str]) -> Carrier:
        program = self._translated(missing=missing)
        fed |= program.begun | {before for before, *_ in self._states.values()}
        if not isinstance(layers, bool):
            chosen = [self._layers[name] for name in layers]
            layers = frozenset(name for name, layer in program.layers.items() if any(layer is one for one in chosen))
        return program.model._carrier(fed, layers)

    @cached_property
    def _output_names(self) -> Mapping[str, str]:
        """The name of each output, by that and by its aliases."""
        names = {alias: info.name for info in self.outputs for alias in info.aliases}
        names |= {info.name: info.name for info in self.outputs}
        return names | {name: name for own in self._states.values() for name in own}

    def _value(self, name: str) -> Output:
        """The value with the name of a tensor or layer."""
        output = self._values.get(name)
        if output is None:
            allowed = ", ".join(info.name for info in self.outputs)
            raise ArgumentError(
                f"{self.label}: outputs has {shown(name)}; expected names of outputs ({allowed}), of tensors, or of "
                "layers, each of one value only"
            )
        return output

    @cached_property
    def _values(self) -> Mapping[str, Output]:
        return value_names(self.net)

    def _computed_values(self) -> tuple[Mapping[str, Output], frozenset[str]]:
        return computed_values(self.net, self._values)

    def _layer_values(self) -> Mapping[str, Mapping[str, base.LayerValue]]:
        return layer_values(self.net, self._keys, self._values, self.inputs, self.outputs)

    def _program(self, values: Mapping[str, Output], missing: frozenset[str]) -> Program:
        """What runs the net: the layers that its outputs depend on, or all layers, where these values need others.

        Raises
        ------
        PyrnnxError
            As of `to_onnx`; a value behind a layer that is not translated.
        """
        program = self._translated(missing=missing)
        if program.values.keys() >= set(values.values()):
            return program
        program = self._translated(everything=True, missing=missing)
        for name, value in values.items():
            if value not in program.values:
                raise UnsupportedError(
                    f"{self.label}: {shown(name)} cannot be computed: {value.layer.label} is not translated"
                )
        return program

    def _translated(self, *, everything: bool = False, missing: frozenset[str] = frozenset()) -> Program:
        """The program, made when a call first needs it; one with everything leaves out what is not translated."""
        with self._lock:
            if (everything, missing) not in self._programs:
                from .translation import program

                self._programs[everything, missing] = program(
                    self._constants,
                    self._names,
                    self.label,
                    self._prepared,
                    everything=everything,
                    missing=missing,
                    runtime=self.runtime,
                )
            return self._programs[everything, missing]

    def _prepared(self, layer: NetLayer) -> BoundLayer | IRLayer:
        prepared: BoundLayer | IRLayer = self._layers[self._keys[layer]]
        return prepared

    def _export(self) -> ModelProto:
        from .translation import export

        return export(self._constants, self._names, shortened(self.label))

    @property
    def _names(self) -> Names:
        from .translation import Names, StateNames

        states = {one: StateNames(*pair) for one, pair in self._states.items()}
        return Names([info.name for info in self.inputs], [info.name for info in self.outputs], states)


def read_model(xml: Any, weights: Any = None, *, runtime: str | None = None) -> Model:
    """A whole IR.

    Parameters
    ----------
    xml : str, bytes, os.PathLike or lxml element
        A text that begins with "<", its bytes, the path of a file of at most 256 MiB that holds it, or the element.
    weights : path or bytes-like, optional
        The .bin file, or its contents. Default: the file beside the .xml, with the suffix .bin; it may be absent if no
        constant needs it. Nothing is read of it before a constant is asked for, so it must not be changed while the
        model is in use: see `BinFile`.
    runtime : str, optional
        What runs the operations around recurrent layers: see `pyrnnx.load`.

    Returns
    -------
    Model

    Raises
    ------
    PyrnnxError
        What `read_net` rejects; files that are no regular ones; constants that do not lie within the weights, or whose
        size is not that of their shape and type. An operation that is not known is no error here, but when the model is
        called or exported.

    Warns
    -----
    PyrnnxWarning
        An attribute that a recurrent operation does not have; a version above 11.

    Source: OpenVINO IR versions 10 and 11.
    """
    path = source_path(xml)
    with named_errors(path):
        model = _model(parse(xml, "read_model", "net"), weights, path, runtime)
    for message in model.net.warnings:
        warn(message)
    return model


def read_file(source: Path | bytes, *, runtime: str | None = None) -> Model | IRLayer:
    """An .xml file, or its contents: what `read_model` gives of a net, and `read_layer` of a single layer.

    Raises
    ------
    PyrnnxError
        What they reject.

    Warns
    -----
    PyrnnxWarning
        As they do.
    """
    found: Model | IRLayer
    messages: Sequence[str]
    path = source if isinstance(source, Path) else None
    with named_errors(path):
        element = parse(source, "load", "net", "layer")
        if element.tag == "layer":
            found, messages = layer_of(element)
        else:
            found = _model(element, None, path, runtime)
            messages = found.net.warnings
    for message in messages:
        warn(message)
    return found


def _model(root: etree._Element, weights: Any, path: Path | None, runtime: str | None) -> Model:
    net = net_of(root, "read_model")
    if weights is None and path is not None:
        opened = BinFile(path.with_suffix(".bin"), may_be_absent=True)
    else:
        opened = BinFile(weights)
    for layer in net.everything:
        if layer.type == "Const":
            opened.check(layer)
    return Model(net, opened, os.fspath(path) if path is not None else "", runtime=runtime)
