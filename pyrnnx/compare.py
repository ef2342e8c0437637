"""`compare`: two layers, or two models, side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, overload

from pyrnnx.compare_layers import AnyLayer, Comparison, compare_layers
from pyrnnx.compare_models import ModelComparison, compare_models
from pyrnnx.errors import ArgumentError
from pyrnnx.model import Model


@overload
def compare(a: Model, b: Model, inputs: Mapping[str, Any] | None = None, *, seed: int = 0) -> ModelComparison: ...
@overload
def compare(
    a: AnyLayer, b: AnyLayer | Model, inputs: Mapping[str, Any] | None = None, *, seed: int = 0
) -> Comparison: ...
@overload
def compare(a: Model, b: AnyLayer, inputs: Mapping[str, Any] | None = None, *, seed: int = 0) -> Comparison: ...
@overload
def compare(
    a: AnyLayer | Model, b: AnyLayer | Model, inputs: Mapping[str, Any] | None = None, *, seed: int = 0
) -> Comparison | ModelComparison: ...
def compare(
    a: AnyLayer | Model,
    b: AnyLayer | Model,
    inputs: Mapping[str, Any] | None = None,
    *,
    seed: int = 0,
) -> Comparison | ModelComparison:
    """Compare two recurrent layers, or two whole models, of either front-end.

    Parameters
    ----------
    a, b : Layer, a layer from `read_layer`, or a model
        A layer without weights takes the other's, rearranged; if neither has any, both take random ones. Of a model and
        a layer, the model's only recurrent layer is compared with the layer.
    inputs : mapping, optional
        X [seq_length, batch_size, input_size], sequence_lens [batch_size], initial_h, initial_c [num_directions,
        batch_size, hidden_size]: canonical names and axes, whatever the layers' conventions. Those that are missing are
        made at random, in sizes that fit the layers. Of two models: arrays by the names of a's inputs, given to both
        as they are; if None, random numbers, and ones for integers.
    seed : int
        Of the random arrays.

    Returns
    -------
    Comparison or ModelComparison
        The latter of two models: their layers in pairs, and the numbers of their outputs.

    Raises
    ------
    PyrnnxError
        Layers whose sizes or directions differ, so that no input fits both; weights that a convention cannot express;
        unknown or unfitting inputs; models whose inputs do not correspond.
    """
    if isinstance(a, Model) and isinstance(b, Model):
        return compare_models(a, b, inputs, seed)
    return compare_layers(_only_layer(a), _only_layer(b), inputs, seed)


def _only_layer(one: AnyLayer | Model) -> AnyLayer:
    if not isinstance(one, Model):
        return one
    if len(one.layers) != 1:
        names = ", ".join(map(repr, one.layers)) or "none"
        raise ArgumentError(f"compare: {one.label} has {len(one.layers)} recurrent layers ({names}); expected one")
    (layer,) = one.layers.values()
    return layer  # type: ignore[no-any-return]
