"""Base class of the models of all formats: named inputs and outputs, recurrent layers, calls and streams."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from pyrnnx._internal.immutable import Immutable
from pyrnnx.errors import ArgumentError, shortened, shown
from pyrnnx.models.inputs import Inputs, given_names
from pyrnnx.models.layers import AnyLayer, Layers
from pyrnnx.models.roles import Role
from pyrnnx.models.stream import Carrier, ModelStream
from pyrnnx.operator.tensor_info import TensorInfo


class LayerValue(NamedTuple):
    """An input or output of a recurrent layer in its model: axis letters, and all names."""

    axes: str
    names: tuple[str, ...]


class Model(Immutable, ABC):
    """A whole model of any format, ready to be called.

    Attributes
    ----------
    label : str
        Name of the model in error messages.
    inputs, outputs : tuple of TensorInfo
        In the model's order.
    layers : Layers
        Recurrent layers by name or index (``layers[0]``): bound to constant weights, or unbound if the model computes
        the weights.
    """

    label: str
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    _fixed = frozenset({"label", "inputs", "outputs"})

    @property
    @abstractmethod
    def layers(self) -> Layers[AnyLayer]:
        """Recurrent layers by name or index."""

    @property
    @abstractmethod
    def plan(self) -> Any:
        """Plan of which engine runs each part, and why; it prints as a table."""

    @abstractmethod
    def _run(self, inputs: dict[str, Any], outputs: tuple[str, ...]) -> dict[str, Any]:
        """Return the values with these names, computed from checked inputs."""

    def _carrier(self, fed: frozenset[str], layers: bool | frozenset[str]) -> Carrier:
        """Return the model that a stream runs: it feeds back the inputs `fed`, and the states of `layers`.

        Raises
        ------
        UnsupportedError
            The states of a layer cannot be fed back.
        """
        return Carrier(self)

    def _computed_values(self) -> tuple[Mapping[str, Hashable], frozenset[str]]:
        """Return {name: value key} of computed values in order, and the names that other formats do not share.

        Inputs, constants and values in bodies are excluded: two models may share the numbers in their names by chance.
        """
        return {info.name: info.name for info in self.outputs}, frozenset()

    def _layer_values(self) -> Mapping[str, Mapping[str, LayerValue]]:
        """Return {layer: {argument: value}} of X, initial_h, Y, ... if named; layers in bodies are excluded."""
        return {}

    def _input_roles(self) -> Mapping[str, Role]:
        return {}

    def _run_once(self, inputs: dict[str, Any], outputs: tuple[str, ...]) -> dict[str, Any]:
        """Run like `_run`, without caching what is prepared for these outputs."""
        return self._run(inputs, outputs)

    def __call__(self, /, *arrays: Any, outputs: Sequence[str] | None = None, **named: Any) -> dict[str, Any]:
        """Run the whole model.

        Pass inputs as ``model(*arrays)`` in the order of `inputs`, ``model({name: array})`` or ``model(name=array)``.

        Parameters
        ----------
        *arrays : array_like, or one mapping of them
            Inputs of the dtypes and shapes that `inputs` declares.
        outputs : sequence of str, optional
            Names of the values to return, which may be intermediate values. Default: the model's outputs.
        **named : array_like
            Inputs by name; pass an input called "outputs" in a mapping.

        Returns
        -------
        dict
            {name: array}, in the order of `outputs`.

        Raises
        ------
        PyrnnxError
            An input is missing, unknown or does not fit; an output is unknown; or an operation cannot run.
        """
        values = self._inputs.read(arrays, named)
        return self._run(values, self._all_outputs if outputs is None else given_names(self.label, outputs))

    @cached_property
    def _inputs(self) -> Inputs:
        return Inputs(self.label, self.inputs)

    @cached_property
    def _all_outputs(self) -> tuple[str, ...]:
        return tuple(info.name for info in self.outputs)

    def run(self, output_names: Sequence[str] | None, inputs: Mapping[str, Any]) -> list[Any]:
        """Run the whole model with the arguments of ``onnxruntime.InferenceSession.run``.

        Parameters
        ----------
        output_names : sequence of str or None
            Names of the values to return, as `outputs` of a call. None: the model's outputs.
        inputs : mapping
            Arrays by the names of inputs.

        Returns
        -------
        list of ndarray
            Values in the order of `output_names`.

        Raises
        ------
        PyrnnxError
            As a call raises.
        """
        if not isinstance(inputs, Mapping):
            raise ArgumentError(f"{self.label}: run: inputs is {shown(inputs)}; expected a mapping of arrays by names")
        if output_names is None:
            return list(self(inputs).values())
        names = given_names(self.label, output_names, "output_names")
        results = self(inputs, outputs=tuple(dict.fromkeys(names)))
        return [results[name] for name in names]

    def stream(
        self,
        states: Mapping[str, str] | None = None,
        *,
        initial: Mapping[str, Any] | None = None,
        layers: bool | Sequence[str] = True,
    ) -> ModelStream:
        """Return a stream: calls one after another that keep states in between.

        The stream feeds outputs back as inputs of the next call (`states`), and keeps h and c of recurrent layers whose
        initial states are zero or constants (`layers`). If all other operators process each time step separately,
        pushes of any lengths give the result of one call, except for the order of sums and, with float16 and bfloat16,
        states that are rounded once per push. An operator that processes several time steps (convolution, attention,
        normalization) sees only those of one push, and DynamicQuantizeLSTM has one range of X per push.

        A push without time steps does not change h and c. A call returns zeros as the last states of an empty sequence
        (X without steps, or a row whose sequence_lens is 0). In a push, a layer with constant weights returns its
        initial states instead, if `states` or the stream feeds them back. All other outputs that are fed back are the
        model's results of an empty push.

        Parameters
        ----------
        states : mapping, optional
            {output: input of the next call}, as {"stateN": "state"}. Default: unambiguous pairs of the same dtype and
            compatible shapes, by names such as stateN and state, hn and h0, h_out and h_in, new_h and h. {}: none.
        initial : mapping, optional
            Initial states by the names of `ModelStream.state`. Default: the input's own default, else zeros of its
            declared shape. The other inputs of the first push determine the sizes of symbols.
        layers : bool or sequence of str, optional
            Whether all layers keep their states, or the names of those that do. Default: all. A layer whose initial
            states are fed back by `states` is not affected.

        Returns
        -------
        ModelStream
            Stream with ``push(*arrays)``, ``state`` and ``reset()``.

        Raises
        ------
        ArgumentError
            A pair or a value of `initial` does not fit, the names are ambiguous, or there are no states.
        UnsupportedError
            A layer cannot keep its states between pushes: it does not run forward, is in the body of If, Loop or Scan,
            its weights are not constants, or its sequence_lens or initial states are computed from the inputs. Omit it
            from `layers` to reset it at every push.

        Source: OpenVINO's LowLatency2, for layers.
        """
        return ModelStream(self, states, initial, self._check_layers(layers), self._carrier)

    def _check_layers(self, layers: Any) -> bool | frozenset[str]:
        if isinstance(layers, bool):
            return layers
        names = given_names(f"{self.label}: stream", layers, "layers")
        for name in names:
            if name not in self.layers:
                allowed = shortened(", ".join(self.layers)) or "none"
                raise ArgumentError(f"{self.label}: stream: layers contains {shown(name)}; expected names of {allowed}")
        return frozenset(names)

    def __repr__(self) -> str:
        inputs, outputs = (", ".join(info.name for info in infos) for infos in (self.inputs, self.outputs))
        return f"<{type(self).__name__} {self.label}: ({inputs}) -> ({outputs})>"


def layer_values(model: Model) -> Mapping[str, Mapping[str, LayerValue]]:
    """Return X, initial_h, Y, ... of each layer outside bodies, by its name, as far as they have names."""
    return model._layer_values()


def input_roles(model: Model) -> Mapping[str, Role]:
    """Return the roles of integer inputs by name, as far as the model's operators show them."""
    return model._input_roles()


def computed_values(model: Model) -> tuple[Mapping[str, Hashable], frozenset[str]]:
    """Return the values that a call can return, by name in the order of computation, and the names of one format."""
    return model._computed_values()


def run_once(model: Model, inputs: dict[str, Any], outputs: tuple[str, ...]) -> dict[str, Any]:
    """Return values of a call with checked inputs, without caching what is prepared for them."""
    return model._run_once(inputs, outputs)
