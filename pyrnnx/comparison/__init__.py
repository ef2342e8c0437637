"""`compare`: two layers, or two models, side by side."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, TypeAlias, overload

from pyrnnx import scalars
from pyrnnx.comparison.inputs import INPUTS
from pyrnnx.comparison.layers import AnyLayer, Comparison, UnboundLayer, compare_layers
from pyrnnx.comparison.model_runs import model_label
from pyrnnx.comparison.models import ModelComparison, compare_models
from pyrnnx.errors import ArgumentError, printable, shortened, shown
from pyrnnx.layer import Layer
from pyrnnx.load import is_source, load
from pyrnnx.model import Model

Path: TypeAlias = str | os.PathLike[str]


@overload
def compare(
    a: Model,
    b: Model,
    inputs: Mapping[str, Any] | None = None,
    *,
    seed: int = 0,
    intermediates: bool | None = None,
    dims: Mapping[str, int] | None = None,
) -> ModelComparison: ...
@overload
def compare(
    a: AnyLayer,
    b: AnyLayer | Model | Path,
    inputs: Mapping[str, Any] | None = None,
    *,
    seed: int = 0,
    intermediates: bool | None = None,
    dims: Mapping[str, int] | None = None,
) -> Comparison: ...
@overload
def compare(
    a: Model | Path,
    b: AnyLayer,
    inputs: Mapping[str, Any] | None = None,
    *,
    seed: int = 0,
    intermediates: bool | None = None,
    dims: Mapping[str, int] | None = None,
) -> Comparison: ...
@overload
def compare(
    a: AnyLayer | Model | Path,
    b: AnyLayer | Model | Path,
    inputs: Mapping[str, Any] | None = None,
    *,
    seed: int = 0,
    intermediates: bool | None = None,
    dims: Mapping[str, int] | None = None,
) -> Comparison | ModelComparison: ...
def compare(
    a: AnyLayer | Model | Path,
    b: AnyLayer | Model | Path,
    inputs: Mapping[str, Any] | None = None,
    *,
    seed: int = 0,
    intermediates: bool | None = None,
    dims: Mapping[str, int] | None = None,
) -> Comparison | ModelComparison:
    """Compare two recurrent layers, or two whole models, of either front-end.

    Parameters
    ----------
    a, b : Layer, a layer from `read_layer`, a model, or the path of one
        A path is what `load` takes. A layer without weights takes the other's, rearranged; if neither has any, both
        take random ones. Of a model and a layer, the model's only recurrent layer is compared with the layer.
    inputs : mapping, optional
        X [seq_length, batch_size, input_size], sequence_lens [batch_size], initial_h, initial_c [num_directions,
        batch_size, hidden_size]: canonical names and axes, whatever the layers' conventions; real numbers, which each
        layer gets in its own dtype. Those that are missing are made at random, in sizes that fit the layers. A cell
        takes one step: seq_length 1. Of two models: arrays by the names of a's inputs, given to both as they are; but
        in the axes of b's layer where both models give them to a pair of layers that arrange them differently. If None,
        random numbers, and ones for integers, in sizes with which both models run (`ModelComparison.input_shapes`).
        Inputs and outputs of both models belong together by their names, else by those that ONNX and OpenVINO have for
        one array (initial_h, H), else by dtype and rank, in order.
    seed : int
        Of the random arrays, 0 or above.
    intermediates : bool, optional
        Of two models: whether to compare the values inside as well, those that both have (`ModelComparison.values`).
        Each model is then run some times more, for so many values at a time as fit some 64 MiB. Default: where the
        outputs are apart by more than `equal` allows at first.
    dims : mapping, optional
        Where inputs are made: sizes of symbolic dimensions of models, by their names; of two layers, of "seq_length"
        and "batch_size". Default: the first sizes with which both run.

    Returns
    -------
    Comparison or ModelComparison
        The latter of two models: their layers in pairs, and the numbers of their outputs. Layers are paired by equal
        weights, else by nearly equal ones, else by name, else by operator and sizes, else by their order, and
        `Comparison.paired_by` says which. Models whose layers cannot be paired, or not be compared, are no error. Of
        models that name their arrays by two conventions, and whose layers arrange them differently, only the layers are
        compared, and `ModelComparison.not_compared` says so; unless those arrays are all what paired layers take and
        give, so that it is known how to arrange them. The variables of models (of IRs) stay as they are.

    Raises
    ------
    PyrnnxError
        Two layers whose sizes or directions differ, so that no input fits both; weights that a convention cannot
        express; unknown or unfitting inputs; models whose inputs do not correspond; paths that `load` rejects.
    """
    seed = scalars.integer("compare", "seed", seed, 0)
    if inputs is not None and not isinstance(inputs, Mapping):
        raise ArgumentError(f"{INPUTS} is {_what(inputs)}; expected a mapping of arrays by name")
    if intermediates is not None and not isinstance(intermediates, bool):
        raise ArgumentError(f"compare: intermediates is {_what(intermediates)}; expected a bool, or None")
    sizes = _checked_dims(dims, inputs)
    first, second = _opened("a", a), _opened("b", b)
    if isinstance(first, Model) and isinstance(second, Model):
        return compare_models(first, second, inputs, seed, intermediates, sizes)[0]
    return compare_layers(only_layer(first), only_layer(second), inputs, seed, sizes)


def _checked_dims(dims: Any, inputs: Any) -> dict[str, int]:
    if dims is None:
        return {}
    if not isinstance(dims, Mapping):
        raise ArgumentError(f"compare: dims is {_what(dims)}; expected a mapping of sizes by name")
    if inputs is not None:
        raise ArgumentError("compare: dims and inputs were both given; the sizes are those of inputs")
    return {name: scalars.integer("compare", f"dims: {shown(name)}", size, 0) for name, size in dims.items()}


def _opened(name: str, one: Any) -> AnyLayer | Model:
    if is_source(one):
        one = load(one)
    if not isinstance(one, (Model, Layer, UnboundLayer)):
        raise ArgumentError(f"compare: {name} is {_what(one)}; expected a layer, a model, or the path of one")
    return one


def _what(one: Any) -> str:
    return f"the class {one.__name__}" if isinstance(one, type) else f"{type(one).__name__} {printable(shown(one))}"


def only_layer(one: AnyLayer | Model) -> AnyLayer:
    """A layer as it is, or the only recurrent one of a model.

    Raises
    ------
    ArgumentError
        A model with several, or none.
    """
    if not isinstance(one, Model):
        return one
    if len(one.layers) != 1:
        names = shortened(", ".join(map(repr, one.layers))) or "none"
        raise ArgumentError(
            f"compare: {model_label(one)} has {len(one.layers)} recurrent layers ({names}); expected one"
        )
    (layer,) = one.layers.values()
    return layer  # type: ignore[no-any-return]
