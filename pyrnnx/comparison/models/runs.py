"""Runs of two models, and the matching of their inputs and outputs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import product
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.comparison.calls import label
from pyrnnx.comparison.inputs import HINT
from pyrnnx.comparison.models.random_inputs import Maker, Wanted, check_dims, symbols_of
from pyrnnx.comparison.models.tries import Tries
from pyrnnx.errors import ArgumentError, PyrnnxError, shown
from pyrnnx.layers.layer import Layer
from pyrnnx.models.model import LayerValue, Model, input_roles, layer_values
from pyrnnx.models.roles import Role, merged, named_role
from pyrnnx.operator.conventions import CALL_ARGUMENTS, CANONICAL, OPENVINO_SEQUENCE, OUTPUTS, rearrange
from pyrnnx.operator.tensor_info import TensorInfo

_CANONICAL_NAMES = {
    convention.name_of(argument): argument
    for convention in (CANONICAL, OPENVINO_SEQUENCE)
    for argument in (*CALL_ARGUMENTS, *OUTPUTS)
}
Axes = Mapping[tuple[str, str], tuple[str, str]]  # of an array of two models, by its names in them
LayerValues = Mapping[str, Mapping[str, LayerValue]]


class Matched(NamedTuple):
    """Inputs or outputs of two models: by the name in the results the names in a and in b, "" where there is none.

    `axes`: of those that both give to, or take from, a pair of layers as they are.
    """

    names: Mapping[str, tuple[str, str]]
    axes: Axes

    def in_b(self, name: str, array: Any) -> Any:
        """Return an array of a in the arrangement of b."""
        return _turned(array, *self.axes.get(self.names.get(name, ("", "")), ("", "")))

    def values(self, run: Run) -> dict[str, tuple[Any, Any]]:
        """Return outputs of both models as a has them, by the names in the results; None is no output."""
        return {
            name: (
                run.outputs_a.get(both[0]),
                _turned(run.outputs_b.get(both[1]), *self.axes.get(both, ("", ""))[::-1]),
            )
            for name, both in self.names.items()
        }


def _turned(array: Any, before: str, after: str) -> Any:
    """Return an array in other axes; unchanged if it does not have those before."""
    if before == after or np.ndim(array) != len(before):
        return array
    return rearrange(np.asarray(array), before, after)


def matched_inputs(a: Model, b: Model, axes: Axes) -> Matched:
    """Match the inputs that a model requires, and those with defaults that are to be varied."""
    required = [[info for info in model.inputs if not info.optional] for model in (a, b)]
    matched = matched_names(*required, alike=True)
    for name, (first, second) in matched.items():
        if not (first and second):
            raise ArgumentError(
                f"compare: {label(a if first else b)} has the input {shown(name)} and "
                f"{label(b if first else a)} has no input that matches it; expected models with the same inputs"
            )
    optional = [{info.name for info in model.inputs if info.optional} for model in (a, b)]
    varied = optional[0] & optional[1] & (_varied(a) | _varied(b))
    return Matched({**matched, **{name: (name, name) for name in sorted(varied)}}, axes)


def _varied(model: Model) -> set[str]:
    """Return the names of inputs whose defaults are not weights: states, lengths, masks, or with open dimensions."""
    roles = input_roles(model)
    varied = {name for values in layer_values(model).values() for value in values.values() for name in value.names}
    for info in model.inputs:
        role = _role(info, roles)
        if role.is_length or role.is_mask or not all(isinstance(size, int) for size in info.shape or ()):
            varied.add(info.name)
    return varied


def axes_of_layers(a: LayerValues, b: LayerValues, pairs: Sequence[tuple[str, str]]) -> Axes:
    """Return how the arrays of paired layers are arranged in their models, if all of the layers agree on that."""
    arrangements: dict[tuple[str, str], set[tuple[str, str]]] = {}
    for first, second in pairs:
        mine, theirs = a.get(first, {}), b.get(second, {})
        for argument in (*CALL_ARGUMENTS, *OUTPUTS):
            if argument in mine and argument in theirs:
                axes = mine[argument].axes, theirs[argument].axes
                for names in product(mine[argument].names, theirs[argument].names):
                    arrangements.setdefault(names, set()).add(axes)
    return {names: next(iter(axes)) for names, axes in arrangements.items() if len(axes) == 1}


def two_conventions(*matched: Matched) -> str:
    """Return, in words, which names show that the models follow two conventions; "" if the inputs can be shared.

    They can if no names show that, or if paired layers determine how all arrays with such names are arranged.
    """
    words, arranged = "", True
    for matches in matched:
        for first, second in matches.names.values():
            canonical = _CANONICAL_NAMES.get(first)
            if canonical is None or canonical != _CANONICAL_NAMES.get(second):
                continue
            arranged = arranged and (first, second) in matches.axes
            if first != second and not words:
                words = (
                    f"they name their arrays by two conventions ({first}, {second}), and so arrange them differently"
                )
    return "" if arranged else words


def matched_names(
    a: Sequence[TensorInfo], b: Sequence[TensorInfo], *, alike: bool = False
) -> dict[str, tuple[str, str]]:
    """Match by common names, then by the names of two conventions for one array, then in order.

    An empty name means no match. `alike` restricts the last step to equal dtype and rank.
    """
    free = {info.name: info for info in b}
    by_name = {alias: info.name for info in b for alias in info.aliases} | {name: name for name in free}
    by_convention = {_CANONICAL_NAMES[name]: name for name in free if name in _CANONICAL_NAMES}
    pairs: dict[str, str] = {}
    for names in (by_name.get, lambda name: by_convention.get(_CANONICAL_NAMES.get(name, ""))):
        for info in a:
            if info.name not in pairs and (second := names(info.name)) in free:
                pairs[info.name] = free.pop(second).name
    for info in a:
        if info.name not in pairs:
            partner = next((name for name, other in free.items() if not alike or _alike(info, other)), "")
            free.pop(partner, None)
            pairs[info.name] = partner
    return {info.name: (info.name, pairs[info.name]) for info in a} | {name: ("", name) for name in free}


def _alike(a: TensorInfo, b: TensorInfo) -> bool:
    """Return whether dtype and rank are the same, as far as they are declared."""
    dtypes, shapes = {a.dtype, b.dtype} - {None}, [info.shape for info in (a, b) if info.shape is not None]
    return len(dtypes) < 2 and len({len(shape) for shape in shapes}) < 2


class Run(NamedTuple):
    """Inputs and outputs of a run of two models, by their own names."""

    inputs_a: dict[str, Any]
    inputs_b: dict[str, Any]
    outputs_a: dict[str, Any]
    outputs_b: dict[str, Any]


def by_own_names(model: Model, inputs: Mapping[str, Any], what: str) -> dict[str, Any]:
    """Return inputs that may be called by aliases by the names of the model."""
    names = {alias: info.name for info in model.inputs for alias in (*info.aliases, info.name)}
    for name in inputs:
        if name not in names:
            expected = ", ".join(info.name for info in model.inputs)
            raise ArgumentError(f"{what} has {shown(name)}; expected names out of {expected}")
    return {names[name]: array for name, array in inputs.items()}


def try_both(
    a: Model,
    b: Model,
    inputs: Matched,
    outputs: Matched,
    seed: int,
    dims: Mapping[str, int],
    given: Mapping[str, Any] = MappingProxyType({}),
) -> Tries[Run]:
    """Return the calls of both models on the given arrays of a, and random ones; `dims` sets symbolic dimensions.

    Iterating raises a PyrnnxError for inputs that cannot be made, and for models that reject all of them.
    """
    maker = _maker(a, b, inputs, given, seed, dims, "compare", HINT)

    def words(error: PyrnnxError) -> str:
        if not maker.wanted:
            return f"compare: {error} (pass the arrays for both models as inputs=...)"
        return (
            f"compare: {label(a)} and {label(b)} do not both run on random inputs of the sizes that they declare; pass "
            f"others as inputs=... ({error})"
        )

    return Tries(lambda arrays: _run(a, b, inputs, {**given, **arrays}), outputs.values, maker, words, given=given)


class Call(NamedTuple):
    """Inputs and outputs of a call of a model, by name."""

    inputs: dict[str, Any]
    outputs: dict[str, Any]


def try_alone(
    model: Model,
    given: Mapping[str, AnyArray],
    seed: int,
    dims: Mapping[str, int],
    what: str,
    hint: str,
    words: Callable[[PyrnnxError], str] = str,
) -> Tries[Call]:
    """Return the calls of a model on the given inputs by name, and random numbers for the others.

    Some calls have values for optional inputs. The shapes of given inputs set symbolic dimensions. Other arguments are
    those of `Maker`, and of `Tries`.
    """
    required = _required(model, given)

    def run(arrays: dict[str, Any]) -> Call:
        every = {**arrays, **given}
        inputs = {name: every[name] for name in required.names if name in every}
        with kept_states(model):
            return Call(inputs, model(inputs))

    maker = _maker(model, model, required, given, seed, dims, what, hint)
    return Tries(run, lambda call: {name: (value,) for name, value in call.outputs.items()}, maker, words, given=given)


def _required(model: Model, given: Collection[str]) -> Matched:
    """Return the inputs that a call of one model has, or may have because they are varied."""
    layers, varied = layer_values(model), {*given, *_varied(model)}
    names = [info.name for info in model.inputs if not info.optional or info.name in varied]
    return Matched(
        {name: (name, name) for name in names}, axes_of_layers(layers, layers, [(key, key) for key in layers])
    )


def _maker(
    a: Model,
    b: Model,
    inputs: Matched,
    given: Mapping[str, Any],
    seed: int,
    dims: Mapping[str, int],
    what: str,
    hint: str,
) -> Maker:
    """Return a maker of the inputs that are not given; the shapes of given ones set symbolic dimensions."""
    infos_a, infos_b = completed(a), completed(b)
    roles_a, roles_b = input_roles(a), input_roles(b)
    wanted = []
    for both in inputs.names.values():
        first, second = infos_a[both[0]], infos_b[both[1]]
        roles = _role(first, roles_a), _role(second, roles_b)
        rows = max((role.rows for role in roles if role.rows is not None), default=None)
        role = merged(roles)._replace(rows=rows)  # numbers of which one model has no row show a difference
        wanted.append(Wanted(first, second, inputs.axes.get(both), role))
    check_dims(dims, symbols_of([*infos_a.values(), *infos_b.values()]), what)
    known = {
        dimension: size
        for entry in wanted
        if entry.name in given
        for dimension, size in zip(entry.info.shape or (), np.shape(given[entry.name]), strict=False)
        if isinstance(dimension, str)
    }
    missing = [entry for entry in wanted if entry.name not in given]
    symbols = symbols_of(info for entry in missing for info in (entry.info, entry.other))
    sizes = {name: size for name, size in {**known, **dims}.items() if name in symbols}
    return Maker(missing, seed, sizes, what, hint, lambda arrays: _inner_steps(a, {**given, **arrays}))


def _role(info: TensorInfo, roles: Mapping[str, Role]) -> Role:
    return merged([named_role(info.name), roles.get(info.name, Role())])


def _inner_steps(model: Model, inputs: dict[str, Any]) -> list[int]:
    """Return the time steps of the layers in a call, for models that compute the layers' X; none if the call fails."""
    values = [arguments["X"] for arguments in layer_values(model).values() if "X" in arguments]
    axes = {value.names[0]: value.axes.index("T") for value in values if value.names and "T" in value.axes}
    try:
        with kept_states(model):
            results = {**inputs, **model(inputs, outputs=[name for name in axes if name not in inputs])}
    except PyrnnxError:
        return []
    return [np.shape(results[name])[axis] for name, axis in axes.items()]


def _run(a: Model, b: Model, inputs: Matched, inputs_a: dict[str, Any]) -> Run:
    with kept_states(a, b):
        outputs = a(inputs_a)  # first, because a may reject them
        inputs_b = {
            inputs.names.get(name, (name, name))[1]: inputs.in_b(name, value) for name, value in inputs_a.items()
        }
        return Run(inputs_a, inputs_b, outputs, b(inputs_b))


@contextmanager
def kept_states(*models: Model) -> Iterator[None]:
    """Restore the variables of models at the end."""
    states: list[tuple[Any, dict[str, Any]]] = []
    for model in models:
        if getattr(model, "variables", ()):
            stateful: Any = model
            states.append((stateful, dict(stateful.state)))
    try:
        yield
    finally:
        for stateful, state in states:
            stateful.state = state


def completed(model: Model) -> dict[str, TensorInfo]:
    """Return the inputs by name, with the sizes of the layers that take them as they are."""
    infos = {info.name: info for info in model.inputs}
    for name, arguments in layer_values(model).items():
        layer = model.layers[name]
        if not isinstance(layer, Layer):
            continue
        sizes = {"I": layer.input_size, "H": layer.op.hidden_size, "D": layer.op.num_directions}
        for axes, names in arguments.values():
            for info in [infos[alias] for alias in names if alias in infos]:
                declared = info.shape or (None,) * len(axes)
                if len(declared) == len(axes):
                    shape = [
                        sizes.get(axis, size) if not isinstance(size, int) else size
                        for axis, size in zip(axes, declared, strict=True)
                    ]
                    infos[info.name] = replace(info, shape=tuple(shape))
    return infos
