"""Comparison of two layers or two models: `compare`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, TypeAlias, overload

from pyrnnx._internal import scalars
from pyrnnx.comparison import views  # noqa: F401  # sets how comparisons are shown
from pyrnnx.comparison.aspects import Difference
from pyrnnx.comparison.calls import label
from pyrnnx.comparison.distances import Deviation
from pyrnnx.comparison.inputs import INPUTS
from pyrnnx.comparison.layers import Comparison, compare_layers
from pyrnnx.comparison.models import ModelComparison, compare_models
from pyrnnx.errors import ArgumentError, printable, shortened, shown
from pyrnnx.layers.layer import Layer
from pyrnnx.load import is_source, read_model_or_layer
from pyrnnx.models.layers import AnyLayer, Layers, UnboundLayer
from pyrnnx.models.model import LayerValue, Model
from pyrnnx.operator.tensor_info import TensorInfo
from pyrnnx.stacks.stack import Stack

__all__ = ["Comparison", "Deviation", "Difference", "ModelComparison", "compare"]

Path: TypeAlias = str | os.PathLike[str]
AnyModel: TypeAlias = Model | Stack


@overload
def compare(
    a: AnyModel,
    b: AnyModel,
    inputs: Mapping[str, Any] | None = None,
    *,
    seed: int = 0,
    intermediates: bool | None = None,
    dims: Mapping[str, int] | None = None,
) -> ModelComparison: ...
@overload
def compare(
    a: AnyLayer,
    b: AnyLayer | AnyModel | Path,
    inputs: Mapping[str, Any] | None = None,
    *,
    seed: int = 0,
    intermediates: bool | None = None,
    dims: Mapping[str, int] | None = None,
) -> Comparison: ...
@overload
def compare(
    a: AnyModel | Path,
    b: AnyLayer,
    inputs: Mapping[str, Any] | None = None,
    *,
    seed: int = 0,
    intermediates: bool | None = None,
    dims: Mapping[str, int] | None = None,
) -> Comparison: ...
@overload
def compare(
    a: AnyLayer | AnyModel | Path,
    b: AnyLayer | AnyModel | Path,
    inputs: Mapping[str, Any] | None = None,
    *,
    seed: int = 0,
    intermediates: bool | None = None,
    dims: Mapping[str, int] | None = None,
) -> Comparison | ModelComparison: ...
def compare(
    a: AnyLayer | AnyModel | Path,
    b: AnyLayer | AnyModel | Path,
    inputs: Mapping[str, Any] | None = None,
    *,
    seed: int = 0,
    intermediates: bool | None = None,
    dims: Mapping[str, int] | None = None,
) -> Comparison | ModelComparison:
    """Compare two recurrent layers, stacks or whole models, of either front-end.

    Parameters
    ----------
    a, b : Layer, a layer from `read_layer`, Stack, a model, or the path of a file
        A path is what `load` takes. A layer without weights takes the other's, rearranged; if neither has any, both
        take random ones. A stack is compared as a model; a model is compared with a layer by its only recurrent layer.
    inputs : mapping, optional
        X [seq_length, batch_size, input_size], sequence_lens [batch_size], initial_h, initial_c [num_directions,
        batch_size, hidden_size]: canonical names and axes, whatever the layers' conventions; real numbers, converted to
        each layer's dtype. Missing arrays are random, in sizes that fit the layers. A cell takes one step: seq_length
        1. For two models: arrays by the names of a's inputs; missing ones are random. Both models take them unchanged,
        except that b takes them in the axes of its layer if a pair of layers arranges them differently. If None, both
        run several times, on random numbers in sizes with which both run: three rows or more, lengths with 0, 1 and all
        steps among them, other integers that vary, and steps until no output is empty (`ModelComparison.calls`). Inputs
        and outputs are matched by name, else by the ONNX and OpenVINO names of one array (initial_h, H), else by dtype
        and rank, in order.
    seed : int
        Seed of the random arrays, 0 or above.
    intermediates : bool, optional
        For two models: whether to compare shared intermediate values too (`ModelComparison.values`). This runs each
        model several more times, for 32 values at a time. Default: only if the outputs differ by more than
        the default tolerance of `equal`.
    dims : mapping, optional
        Sizes for random inputs: symbolic dimensions of models by name; "seq_length" and "batch_size" of layers.
        Default: the first sizes with which both run.

    Returns
    -------
    Comparison or ModelComparison
        A ModelComparison for two models: pairs of layers, and the differences of outputs. Layers are paired by equal
        weights, else nearly equal weights, else name, else operator and sizes, else order; `Comparison.paired_by` says
        which. Layers that cannot be paired or compared raise no error. Only layers are compared if two models name
        arrays by two conventions and their layers arrange them differently; `ModelComparison.not_compared` says so.
        Outputs are still compared if all those arrays are inputs and outputs of paired layers, which determine the
        arrangement. The variables of models (of IRs) are unchanged. `verdict` is "not decided" if equal outputs would
        not show that the two are the same; `undecided` says why.

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
    first, second = (_opened(name, value) for name, value in (("a", a), ("b", b)))
    if isinstance(first, Model) and isinstance(second, Model):
        return compare_models(first, second, inputs, seed, intermediates, sizes)
    return compare_layers(only_layer(first), only_layer(second), inputs, seed, sizes)


def _checked_dims(dims: Any, inputs: Any) -> dict[str, int]:
    if dims is None:
        return {}
    if not isinstance(dims, Mapping):
        raise ArgumentError(f"compare: dims is {_what(dims)}; expected a mapping of sizes by name")
    if inputs is not None:
        raise ArgumentError("compare: dims is set and inputs is set; expected one of them: arrays fix the sizes")
    return {name: scalars.integer("compare", f"dims: {shown(name)}", size, 0) for name, size in dims.items()}


def opened(value: Any) -> AnyLayer | Model | None:
    """Return a layer or model, also of a path, and a stack as a model; None for anything else."""
    if is_source(value):
        value = read_model_or_layer(value)
    if isinstance(value, Stack):
        return StackModel(value)
    return value if isinstance(value, (Model, Layer, UnboundLayer)) else None


def _opened(name: str, value: Any) -> AnyLayer | Model:
    result = opened(value)
    if result is None:
        raise ArgumentError(
            f"compare: {name} is {_what(value)}; expected a layer, a stack, a model, or the path of a file"
        )
    return result


def _what(value: Any) -> str:
    return (
        f"the class {value.__name__}"
        if isinstance(value, type)
        else f"{type(value).__name__} {printable(shown(value))}"
    )


def only_layer(source: AnyLayer | Model) -> AnyLayer:
    """Return a layer unchanged, or the only recurrent layer of a model."""
    if not isinstance(source, Model):
        return source
    if len(source.layers) != 1:
        names = shortened(", ".join(map(repr, source.layers))) or "none"
        raise ArgumentError(
            f"compare: {label(source)} has {len(source.layers)} recurrent layers ({names}); expected one"
        )
    (layer,) = source.layers.values()
    return layer


class StackModel(Model):
    """Model that calls a stack; its optional inputs are sequence_lens and, with one hidden_size, initial states."""

    plan = None

    def __init__(self, stack: Stack) -> None:
        self.label, self._stack = stack.label, stack
        dtype, batch_first = stack.dtype.name, stack.batch_first
        sizes = ("batch_size", "seq_length") if batch_first else ("seq_length", "batch_size")
        infos = [
            TensorInfo("X", dtype, (*sizes, stack.input_size)),
            TensorInfo("sequence_lens", "int32", ("batch_size",), optional=True),
        ]
        cells = [layer.op.num_directions for layer in stack.layers if layer.op.has_cell_state]
        if len(set(stack.hidden_sizes)) == 1:
            counts = {"initial_h": sum(stack.num_directions), "initial_c": sum(cells)}
            infos += [
                TensorInfo(name, dtype, (count, "batch_size", stack.hidden_sizes[0]), optional=True)
                for name, count in counts.items()
                if count
            ]
        self.inputs = tuple(infos)
        self.outputs = tuple([TensorInfo(name) for name in ("Y", "Y_h", "Y_c")[: 3 if cells else 2]])

    @property
    def layers(self) -> Layers[Layer]:
        """Layers of the stack by index."""
        layers = {str(place): layer for place, layer in enumerate(self._stack.layers)}
        return Layers(self.label, layers, lambda layer: layer)

    def _layer_values(self) -> Mapping[str, Mapping[str, LayerValue]]:
        """Return the axes of X, which the first layer takes."""
        return {"0": {"X": LayerValue("NTI" if self._stack.batch_first else "TNI", ("X",))}}

    def _run(self, inputs: dict[str, Any], outputs: tuple[str, ...]) -> dict[str, Any]:
        results = dict(zip(("Y", "Y_h", "Y_c"), self._stack.run(**inputs), strict=False))
        return {name: results[name] for name in outputs}
