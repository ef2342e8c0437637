"""Models that compute one recurrent layer by the oracle, with one of the usual mistakes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from pyrnnx import Layer, Layers
from pyrnnx.comparison import oracle
from pyrnnx.models.model import LayerValue, Model, layer_values
from pyrnnx.models.roles import Role
from pyrnnx.operator.conventions import CANONICAL, rearrange
from pyrnnx.testing.numbers import Array
from pyrnnx.testing.same.mistakes import Mistake, mistakes

Arrays = Mapping[str, Array]


def outputs(layer: Layer, arrays: Arrays, words: str) -> Arrays:
    """Return canonical outputs of a layer with the mistake of these words; "" is none."""
    given = oracle.arguments(layer, complete(layer, arrays))
    right = oracle.outputs(layer, given)
    if not words:
        return right
    mistake = next((mistake for mistake in mistakes(layer, given) if mistake.words == words), Mistake("", {}))
    return mistake.outputs(layer, given, right)


def complete(layer: Layer, arrays: Arrays) -> dict[str, Array]:
    """Return the arrays of a call with defaults for those that are missing."""
    T, N, _ = arrays["X"].shape
    state = np.zeros((layer.op.num_directions, N, layer.op.hidden_size), layer.dtype)
    states = {"initial_h": state, "initial_c": state} if layer.op.has_cell_state else {"initial_h": state}
    return {"sequence_lens": np.full(N, T, np.int32), **states, **arrays}


def visible(layer: Layer, takes: Any, stride: int) -> Iterator[str]:
    """Yield, of each so many mistakes, the words of those that show in a model whose layer takes these arguments."""
    rng, T, N = np.random.default_rng(7), 7, 4
    shape = (layer.op.num_directions, N, layer.op.hidden_size)
    every: dict[str, Array] = {
        "X": rng.normal(size=(T, N, layer.input_size)),
        "sequence_lens": np.array([7, 3, 0, 1], np.int32),
        "initial_h": rng.normal(size=shape),
        "initial_c": rng.normal(size=shape),
    }
    arrays = {name: array for name, array in every.items() if name in takes}
    given = oracle.arguments(layer, complete(layer, arrays))
    right = oracle.outputs(layer, given)
    for mistake in list(mistakes(layer, given))[::stride]:
        wrong = mistake.outputs(layer, given, right)
        if any(np.abs(wrong[name] - right[name]).max() > 1e-3 for name in right):
            yield mistake.words


class Planted(Model):
    """A model of one layer, as another one describes it, computed with a mistake; "" is none.

    Without `recognised`, it has no layers, and only names say which of its inputs is which; without `lengths`, all rows
    are whole.
    """

    plan = None

    def __init__(self, source: Model, words: str = "", *, recognised: bool = True, lengths: bool = True) -> None:
        (values,) = layer_values(source).values()
        self.values = {name: value for name, value in values.items() if lengths or name != "sequence_lens"}
        left_out = set(values["sequence_lens"].names) if "sequence_lens" not in self.values else set()
        self.inputs = tuple(info for info in source.inputs if info.name not in left_out)
        self.label, self.outputs = "planted", source.outputs
        self._words, self._recognised = words, recognised
        (layer,) = source.layers.values()
        assert isinstance(layer, Layer)
        self.layer = layer
        (self._name,) = source.layers

    @property
    def layers(self) -> Any:
        layers = {self._name: self.layer} if self._recognised else {}
        return Layers(self.label, layers, lambda layer: layer)

    def _layer_values(self) -> Mapping[str, Mapping[str, LayerValue]]:
        return {self._name: self.values} if self._recognised else {}

    def _input_roles(self) -> Mapping[str, Role]:
        return {}

    def _run(self, inputs: dict[str, Any], outputs_: tuple[str, ...]) -> dict[str, Any]:
        arrays = {
            argument: rearrange(np.asarray(inputs[name]), value.axes, CANONICAL.axes_of(argument))
            for argument, value in self.values.items()
            for name in value.names
            if name in inputs
        }
        results = outputs(self.layer, arrays, self._words)
        named = {
            name: rearrange(results[argument], CANONICAL.axes_of(argument), value.axes).astype(self.layer.dtype)
            for argument, value in self.values.items()
            if argument in results
            for name in value.names
        }
        return {name: named[name] for name in outputs_}
