"""What the models of every front-end have in common: named inputs and outputs, recurrent layers, one way of calling."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

from pyrnnx import notebook
from pyrnnx.errors import ArgumentError, shortened, shown
from pyrnnx.model_inputs import given_names, read_inputs
from pyrnnx.model_layers import Layers
from pyrnnx.model_stream import Carrier, ModelStream
from pyrnnx.tensor_info import TensorInfo


class LayerValue(NamedTuple):
    """An array that a recurrent layer takes or gives, in its model: its axes by their letters, and all its names."""

    axes: str
    names: tuple[str, ...]


class Model(ABC):
    """A whole model of one of the formats, ready to be called.

    Attributes
    ----------
    label : str
        How errors name the model.
    inputs, outputs : tuple of TensorInfo
        In the model's order.
    layers : Layers
        Recurrent layers by their names, or their places (``layers[0]``): bound to their constant weights, or, where
        weights are computed at run time, as they are declared.
    """

    label: str
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]

    @property
    @abstractmethod
    def layers(self) -> Layers:
        """Recurrent layers by their names, or their places."""

    @property
    @abstractmethod
    def plan(self) -> Any:
        """Who runs what, and why: printed as a table."""

    @abstractmethod
    def _run(self, inputs: dict[str, Any], outputs: tuple[str, ...]) -> dict[str, Any]:
        """Checked inputs to the values with these names."""

    def _again(self, arrays: tuple[Any, ...]) -> dict[str, Any] | None:
        """The outputs, where a call with arrays of the same dtypes and shapes has been checked before; else None."""
        return None

    def _carrier(self, fed: frozenset[str], layers: bool | frozenset[str]) -> Carrier:
        """What a stream runs: `fed` are the inputs that it feeds back, `layers` those that it carries the states of.

        Raises
        ------
        UnsupportedError
            A layer whose states cannot be carried.
        """
        return Carrier(self)

    def _computed_values(self) -> tuple[Mapping[str, Hashable], frozenset[str]]:
        """Names that `outputs` of a call takes, in the order in which the values are computed, and which value each is.

        And those of them that models of other formats do not share: names of what computes a value, not of the value.
        Those in bodies, inputs, and what is computed from no input (constants) are not among them: two models have
        such names in common by chance, as exporters number them.
        """
        return {info.name: info.name for info in self.outputs}, frozenset()

    def _layer_values(self) -> Mapping[str, Mapping[str, LayerValue]]:
        """For layers, not those in bodies, by their names: X, initial_h, Y, ... as far as they have names."""
        return {}

    def _run_once(self, inputs: dict[str, Any], outputs: tuple[str, ...]) -> dict[str, Any]:
        """As `_run`, but nothing that is prepared for these outputs is kept."""
        return self._run(inputs, outputs)

    def __call__(self, /, *arrays: Any, outputs: Sequence[str] | None = None, **named: Any) -> dict[str, Any]:
        """Run the whole model: ``model(*arrays)`` in the order of `inputs`, or by their names.

        Those are given as ``model({name: array})`` or ``model(name=array)``.

        Parameters
        ----------
        *arrays : array_like, or one mapping of them
            Of the dtypes and shapes that `inputs` declares.
        outputs : sequence of str, optional
            Names of the values to return, intermediate ones too. Default: the model's outputs.
        **named : array_like
            Inputs by their names; one that is called "outputs" has to stand in a mapping.

        Returns
        -------
        dict
            {name: array}, in the model's or the given order.

        Raises
        ------
        PyrnnxError
            Inputs that are missing, unknown or do not fit; an unknown output; an operation that cannot be run.
        """
        if outputs is None and not (arrays and named):
            results = self._again((named,) if named else arrays)
            if results is not None:
                return results
        given = read_inputs(self.label, self.inputs, arrays, named)
        if outputs is None:
            return self._run(given, tuple([info.name for info in self.outputs]))
        return self._run(given, given_names(self.label, outputs))

    def stream(
        self,
        states: Mapping[str, str] | None = None,
        *,
        initial: Mapping[str, Any] | None = None,
        layers: bool | Sequence[str] = True,
    ) -> ModelStream:
        """Calls one after the other, with states that are kept between them.

        What is kept is outputs that are inputs of the next call (`states`), and h and c of the recurrent layers that
        begin inside the model, from zero or from constants (`layers`). A model whose other operators look at each time
        step alone then gives in pushes of any lengths what one call gives for the whole, but for the order of sums and,
        with float16 and bfloat16, for states that are rounded once a push. Whatever else looks at several time steps
        (convolution, attention, normalization) sees those of one push, and DynamicQuantizeLSTM has a range of X for
        each push.

        No time steps leave h and c as they are: where a call gives zeros as the last states of an empty sequence (X
        without steps, or a row whose sequence_lens is 0), a layer of constant weights gives in a push what it begins
        with, if `states` feed that back or the stream carries it. All other outputs that are fed back are what the
        model makes of an empty push.

        Parameters
        ----------
        states : mapping, optional
            Names of outputs to those of the inputs that they are in the next call: {"stateN": "state"}. Default: pairs
            of the same dtype, with shapes that agree, by names such as stateN and state, hn and h0, h_out and h_in,
            new_h and h; these must allow one way only. {}: none.
        initial : mapping, optional
            What states begin with, by the names of `ModelStream.state`. Default: the input's own default, else zeros of
            its declared shape, in which a symbol has the size that it has in the other inputs of the first push.
        layers : bool or sequence of str, optional
            Whether all layers, or which by their names in `layers`, keep their states. Default: all. A layer that
            begins with what `states` feed back needs nothing more, and is left alone.

        Returns
        -------
        ModelStream
            With ``push(*arrays)``, ``state`` and ``reset()``.

        Raises
        ------
        ArgumentError
            Pairs that do not fit, or are not found; no states at all; values of `initial` that do not fit.
        UnsupportedError
            A layer, named, that begins inside the model and cannot go on from push to push: one that runs in reverse or
            in both directions, is in the body of If, Loop or Scan, has sequence_lens or initial states that are
            computed from the inputs, or weights that are no constants. Leave it out of `layers` if it is to begin anew
            in every push.

        Source: OpenVINO's LowLatency2 does the same for layers.
        """
        return ModelStream(self, states, initial, self._chosen(layers), self._carrier)

    def _chosen(self, layers: Any) -> bool | frozenset[str]:
        if isinstance(layers, bool):
            return layers
        names = given_names(f"{self.label}: stream", layers, "layers")
        for name in names:
            if name not in self.layers:
                allowed = shortened(", ".join(self.layers)) or "none"
                raise ArgumentError(f"{self.label}: stream: layers has {shown(name)}; expected of {allowed}")
        return frozenset(names)

    def _repr_html_(self) -> str:
        parts = [
            notebook.table((title, ""), [(info.name, info.in_words()) for info in infos])
            for title, infos in ((f"inputs of {self.label}", self.inputs), ("outputs", self.outputs))
        ]
        return notebook.whole(*parts, self.layers._repr_html_())

    def __repr__(self) -> str:
        inputs, outputs = (", ".join(info.name for info in infos) for infos in (self.inputs, self.outputs))
        return f"<{type(self).__name__} {self.label}: ({inputs}) -> ({outputs})>"
