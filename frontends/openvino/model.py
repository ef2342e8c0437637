"""A whole IR, ready to be called, and its recurrent layers."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lxml import etree

from pyrnnx import config
from pyrnnx import model as base
from pyrnnx.errors import ArgumentError, UnsupportedError, shortened, shown, warn
from pyrnnx.layer import Layer
from pyrnnx.model_stream import Carrier

from .ir.bin_file import BinFile
from .ir.layer import NetLayer, Output
from .ir.names import input_infos, layer_keys, output_infos, value_names
from .ir.xml import named_errors, parse, source_path
from .layer_reader import layer_of
from .layers import BoundLayer, IRLayer
from .net import Net, net_of
from .schemas import WEIGHTS

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
        Recurrent layers by name, "name (id 7)" if others have the same name. One whose W, R, B (and P) are constant is
        a `BoundLayer`, whose weights are read when it is first asked for; any other is an `IRLayer`.

    It can be pickled and copied: as its XML and the bytes of its constants, each of them once, so that a copy needs no
    files; what has been prepared for calls is prepared again there.
    """

    def __init__(self, net: Net, weights: BinFile, label: str = "", *, runtime: str | None = None) -> None:
        self.net, self.weights = net, weights
        self.label = label or (f"IR {shown(net.name)}" if net.name else "IR")
        self.runtime = config.choose_runtime(self.label, runtime)
        self.inputs = input_infos(net)
        self.outputs = output_infos(net)
        self._keys = layer_keys(net.recurrent)
        self._layers = _Layers({key: layer for layer, key in self._keys.items()}, self._bind)
        self._lock = threading.Lock()
        self._programs: dict[bool, Program] = {}

    @property
    def layers(self) -> Mapping[str, BoundLayer | IRLayer]:
        """Recurrent layers by name."""
        return self._layers

    @property
    def plan(self) -> Any:
        """Who runs what, and why: printed as a table, in the names of the translated net.

        Raises
        ------
        PyrnnxError
            As of `to_onnx`.
        """
        return self._translated(everything=False).model.plan

    def __reduce__(self) -> tuple[Any, ...]:
        constants = (layer for layer in self.net.layers if layer.type == "Const")
        return partial(Model, runtime=self.runtime), (self.net, self.weights.only(constants), self.label)

    def _bind(self, layer: NetLayer) -> BoundLayer | IRLayer:
        ir_layer = self.net.recurrent[layer]
        weights = {}
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
        program = self._programs.get(False)
        return None if program is None else program.model.run_again(arrays)

    def _run(self, inputs: dict[str, Any], outputs: tuple[str, ...]) -> dict[str, Any]:
        """Values by name, in one run of one program.

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
        program = self._program(others)
        own = {name: program.values[value] for name, value in others.items()}
        own |= {name: self._output_names[name] for name in outputs if name in self._output_names}
        results = program.model.run_checked(inputs, tuple(dict.fromkeys(own.values()))) if own else {}
        return {name: results[own[name]] if name in own else constants[name] for name in outputs}

    def _carrier(self, fed: frozenset[str], layers: bool | frozenset[str]) -> Carrier:
        program = self._translated(everything=False)
        if not isinstance(layers, bool):
            chosen = [self._layers[name] for name in layers]
            layers = frozenset(name for name, layer in program.layers.items() if any(layer is one for one in chosen))
        return program.model._carrier(fed, layers)

    @cached_property
    def _output_names(self) -> Mapping[str, str]:
        """The name of each output, by that and by its aliases."""
        names = {alias: info.name for info in self.outputs for alias in info.aliases}
        return names | {info.name: info.name for info in self.outputs}

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

    def _program(self, values: Mapping[str, Output]) -> Program:
        """What runs the net: the layers that its outputs depend on, or all layers, where these values need others.

        Raises
        ------
        PyrnnxError
            As of `to_onnx`; a value behind a layer that is not translated.
        """
        program = self._translated(everything=False)
        if program.values.keys() >= set(values.values()):
            return program
        program = self._translated(everything=True)
        for name, value in values.items():
            if value not in program.values:
                raise UnsupportedError(
                    f"{self.label}: {shown(name)} cannot be computed: {value.layer.label} is not translated"
                )
        return program

    def _translated(self, *, everything: bool) -> Program:
        """The program, made when a call first needs it; one with everything leaves out what is not translated."""
        with self._lock:
            if everything not in self._programs:
                from .translation import program

                self._programs[everything] = program(
                    self._constants,
                    self._names,
                    self.label,
                    self._prepared,
                    everything=everything,
                    runtime=self.runtime,
                )
            return self._programs[everything]

    def _prepared(self, layer: NetLayer) -> BoundLayer | IRLayer:
        return self._layers[self._keys[layer]]

    def _export(self) -> ModelProto:
        from .translation import export

        return export(self._constants, self._names, shortened(self.label))

    @property
    def _names(self) -> Names:
        from .translation import Names

        return Names([info.name for info in self.inputs], [info.name for info in self.outputs])


class _Layers(Mapping[str, "BoundLayer | IRLayer"]):
    """Layers, each prepared when it is first asked for."""

    def __init__(self, layers: Mapping[str, NetLayer], bind: Callable[[NetLayer], BoundLayer | IRLayer]) -> None:
        self._layers, self._bind = layers, bind
        self._bound: dict[str, BoundLayer | IRLayer] = {}

    def __getitem__(self, key: str) -> BoundLayer | IRLayer:
        if key not in self._bound:
            self._bound.setdefault(key, self._bind(self._layers[key]))
        return self._bound[key]

    def __contains__(self, key: object) -> bool:
        return key in self._layers

    def __iter__(self) -> Iterator[str]:
        return iter(self._layers)

    def __len__(self) -> int:
        return len(self._layers)

    def __repr__(self) -> str:
        return f"<layers {', '.join(map(repr, self._layers))}>"


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
        An attribute that a recurrent operation does not have.

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
    for layer in net.layers:
        if layer.type == "Const":
            opened.check(layer)
    return Model(net, opened, os.fspath(path) if path is not None else "", runtime=runtime)


def to_onnx(model: Any) -> ModelProto:
    """The ONNX model (opset 22) of the same computation.

    Parameters
    ----------
    model : pyrnnx.frontends.openvino.Model, path or Layer
        What `read_model` gives or takes as a path, or a layer with its weights: of that the model that `write_model`
        writes.

    Returns
    -------
    onnx.ModelProto
        Inputs and outputs with the model's names, values and nodes with those of tensors and layers. Dynamic dimensions
        have names: of the k-th axis of input X "X_dim_k". Constants that are equal are one initializer; compressed
        weights stay as they are, with the nodes that expand them, but those of recurrent layers are expanded.

    Raises
    ------
    PyrnnxError
        Something else, or a layer without weights; what `read_model` rejects in a file; an operation, or an option of
        one, that is not translated: named with the layer; constants of more than 2 GB; the onnx package is missing.
    """
    if isinstance(model, IRLayer):
        raise ArgumentError(
            f"to_onnx: {model.label} has no weights; expected a Model, a path, or a layer with weights, as layer.bind "
            "gives"
        )
    if isinstance(model, Layer):
        from .layer_writer import model_bytes

        model = read_model(*model_bytes(model))
    elif source_path(model) is not None:
        model = read_model(model)
    if isinstance(model, base.Model) and not isinstance(model, Model):
        raise ArgumentError(f"to_onnx: {shortened(model.label)} is an ONNX model already; its ModelProto is `proto`")
    if not isinstance(model, Model):
        raise ArgumentError(
            f"to_onnx: {type(model).__name__} was given; expected a Model, as read_model gives, the path of an .xml, "
            "or a layer with its weights"
        )
    return model._export()
