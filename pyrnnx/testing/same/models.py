"""Comparison of models and functions: their outputs, and the layers in which models differ."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.comparison.agreement import DEFAULT, Rule, Tolerance, first_apart
from pyrnnx.comparison.distances import LONG_TOLERANCES, deviation
from pyrnnx.comparison.inputs import HINT
from pyrnnx.comparison.layers import Comparison, label
from pyrnnx.comparison.model_runs import Call, by_own_names, try_alone
from pyrnnx.comparison.models import ModelComparison, compare_models
from pyrnnx.comparison.random_inputs import VARIED, WITHOUT_ZERO
from pyrnnx.comparison.steps import first_index
from pyrnnx.comparison.tries import Outputs as Seen
from pyrnnx.comparison.tries import Tries, unvaried
from pyrnnx.comparison.views.text import apart_in_words, undecided
from pyrnnx.errors import ArgumentError, shown
from pyrnnx.frontends.torch.tensors import as_numpy
from pyrnnx.models.model import Model
from pyrnnx.testing.same.arrays import check_outputs, flat, named_results
from pyrnnx.testing.same.report import AXIS_WORDS, in_words_of, number, settings, wrapped
from pyrnnx.testing.same.subjects import FunctionSubject


@dataclass(frozen=True)
class Outputs:
    """Outputs of both by a's name, else b's, in the arrangement of a; None for a missing output."""

    labels: tuple[str, str]
    values: Mapping[str, tuple[Any, Any]]
    comparison: ModelComparison | None = None  # of two models
    axes: Mapping[str, tuple[str, str]] = field(default_factory=dict)  # in a and in b, of outputs of paired layers


def difference_of(
    a: Model | FunctionSubject,
    b: Model | FunctionSubject,
    inputs: Mapping[str, Any] | None,
    names: Sequence[str] | None,
    rule: Rule,
    seed: int,
) -> str:
    """Return how the outputs of two models or functions differ; empty if they do not.

    Raises
    ------
    PyrnnxError
        Inputs that do not fit, or are missing; models that cannot be given the same; functions that cannot be called;
        outputs that do not show whether the two are the same.
    """
    if isinstance(a, Model) and isinstance(b, Model):
        return _models_differ(a, b, inputs, names, rule, seed)
    try:
        message, labels, reasons = _functions_differ(a, b, inputs, names, rule, seed, VARIED)
    except Exception:  # a function may refuse rows of length 0, as PyTorch does
        message, labels, reasons = _functions_differ(a, b, inputs, names, rule, seed, WITHOUT_ZERO)
    return message or _decided(labels, reasons)


def _decided(labels: tuple[str, str], reasons: Sequence[str]) -> str:
    """Return the empty message of two that are the same.

    Raises
    ------
    ArgumentError
        There are reasons why that is not known.
    """
    if reasons:
        raise ArgumentError(
            f"assert_same: not decided whether {labels[0]} and {labels[1]} are the same: {'; '.join(reasons)}; "
            "expected inputs that show a difference"
        )
    return ""


def _functions_differ(
    a: Model | FunctionSubject,
    b: Model | FunctionSubject,
    inputs: Mapping[str, Any] | None,
    names: Sequence[str] | None,
    rule: Rule,
    seed: int,
    kind: int,
) -> tuple[str, tuple[str, str], list[str]]:
    """Return how the outputs of two differ, their labels, and why equal outputs would not show that they are the same.

    One or both are functions; `kind` is that of the first integers.
    """
    model = next((subject for subject in (a, b) if isinstance(subject, Model)), None)
    tries: Iterable[Call]
    if model is None:
        tries = [Call(_function_inputs(inputs), {})]
    else:
        given = by_own_names(model, inputs or {}, "assert_same: inputs")
        arrays = {name: np.asarray(array) for name, array in given.items()}
        tries = try_alone(model, arrays, seed, {}, "assert_same", HINT, kind=kind, optional=False)
    seen, labels = Seen(), ("", "")
    for call in tries:
        outputs = _called(a, b, model, call.inputs, call.outputs)
        message, labels = _message(outputs, names, rule), outputs.labels
        if message:
            return message, labels, []
        seen.add({name: outputs.values[name] for name in _chosen(outputs, names)})
    left = tries.left() if isinstance(tries, Tries) else []
    still = [] if inputs else unvaried(seen.spreads, *_fixed(rule))
    return "", labels, [*seen.reasons(is_open=False, constant=not inputs), *still, *left]


def _models_differ(
    a: Model, b: Model, inputs: Mapping[str, Any] | None, names: Sequence[str] | None, rule: Rule, seed: int
) -> str:
    labels = label(a), label(b)

    def differs(values: Mapping[str, tuple[Any, Any]]) -> bool:
        outputs = Outputs(labels, values)
        return any(_differing(name, outputs, rule) for name in values)

    def chosen(known: Collection[str]) -> Collection[str]:
        if names is not None:
            check_outputs(names, known)
        return known if names is None else names

    comparison, matched, ran = compare_models(a, b, inputs, seed, differs=differs, chosen=chosen)
    if ran is None:
        raise ArgumentError(
            f"assert_same: {label(a)} and {label(b)} cannot run on the same arrays: "
            f"{comparison.not_compared}; compare the layers, or one model with a function that calls the other"
        )
    axes = {name: matched.axes[both] for name, both in matched.names.items() if both in matched.axes}
    outputs = Outputs(labels, matched.values(ran), comparison, axes)
    if names is not None:  # layers may serve other outputs
        comparison = replace(comparison, layers={})
    message, tolerance = _message(outputs, names, rule), _fixed(rule)
    if not message and any(pair.verdict(*tolerance) == "different" for pair in comparison.layers.values()):
        return _with_title(outputs, [*_layers(comparison, rule), *wrapped("The outputs agree on these inputs.")])
    is_open = comparison.verdict(*tolerance) == "not decided"
    return message or _decided(labels, undecided(comparison, tolerance) if is_open else [])


def _called(
    a: Model | FunctionSubject,
    b: Model | FunctionSubject,
    model: Model | None,
    given: Mapping[str, Any],
    outputs: Mapping[str, Any],
) -> Outputs:
    """Return the outputs of the model, if there is one, and of functions that are called with its inputs."""
    names = {**{name: (name,) for name in given}, **_names(model)}
    results: list[Any] = []
    for subject in (a, b):
        if isinstance(subject, Model):
            results.append(outputs)
        else:
            call = subject.read_call(tuple(given), names)
            _reject_left_out(subject, call.takes, given)
            copies = {name: np.array(value) for name, value in given.items()}  # a function may write to them
            results.append(subject(call, copies))
    return _of_results(a, b, model, results)


def _of_results(
    a: Model | FunctionSubject, b: Model | FunctionSubject, model: Model | None, results: list[Any]
) -> Outputs:
    """Return the results by output: by the model's names, else by those of the first mapping, else by place."""
    if model is not None:
        expected = [info.name for info in model.outputs]
    else:
        named = next((result for result in results if isinstance(result, Mapping)), None)
        most = max(len(list(flat(result))) for result in results)
        expected = [f"output {place}" for place in range(most)] if named is None else [str(name) for name in named]
    aliases = {} if model is None else {info.name: info.aliases for info in model.outputs}
    spellings = {name: (name, *aliases.get(name, ())) for name in expected}
    labels = [label(subject) if isinstance(subject, Model) else subject.label for subject in (a, b)]
    first, second = (
        result if isinstance(subject, Model) else named_results(label, result, expected, spellings)
        for subject, label, result in zip((a, b), labels, results, strict=True)
    )
    return Outputs((labels[0], labels[1]), {name: (first.get(name), second.get(name)) for name in expected})


def _function_inputs(inputs: Mapping[str, Any] | None) -> dict[str, AnyArray]:
    if not inputs:
        raise ArgumentError("assert_same: a and b are two functions; expected inputs, a mapping of arrays by name")
    return {str(name): as_numpy("assert_same: inputs", str(name), value) for name, value in inputs.items()}


def _names(model: Model | None) -> dict[str, tuple[str, ...]]:
    return {} if model is None else {info.name: (info.name, *info.aliases) for info in model.inputs}


def _reject_left_out(function: FunctionSubject, takes: Sequence[str], given: Mapping[str, Any]) -> None:
    left = [name for name in given if name not in takes]
    if left:
        raise ArgumentError(
            f"assert_same: {function.label} takes no {', '.join(left)}; expected a parameter for each input: "
            f"{', '.join(given)}"
        )


def _message(outputs: Outputs, names: Sequence[str] | None, rule: Rule) -> str:
    """Return the message about the first output that differs; empty if there is none."""
    for name in _chosen(outputs, names):
        lines = _differing(name, outputs, rule)
        if lines:
            layers = [] if outputs.comparison is None else _layers(outputs.comparison, rule)
            return _with_title(outputs, [*layers, *lines])
    return ""


def _with_title(outputs: Outputs, lines: Iterable[str]) -> str:
    a, b = outputs.labels
    return "\n".join([*wrapped(f"{a} (a) and {b} (b) are not the same"), "", *lines])


def _chosen(outputs: Outputs, names: Sequence[str] | None) -> Sequence[str]:
    if names is None:
        return list(outputs.values)
    check_outputs(names, outputs.values)
    return names


def _differing(name: str, outputs: Outputs, rule: Rule) -> list[str]:
    a, b = outputs.values[name]
    missing = [letter for letter, value in (("a", a), ("b", b)) if value is None]
    if len(missing) == 2:
        return []
    if missing:
        return wrapped(f"output {shown(name)} is missing in {missing[0]}")
    if not (_are_numbers(a) and _are_numbers(b)):
        difference = deviation(a, b)
        return [] if difference is not None and difference.within(*_fixed(rule)) else wrapped(_two(name, a, b))
    if a.shape != b.shape:
        return wrapped(f"output {shown(name)} has shape {a.shape} in a, and {b.shape} in b")
    beyond = rule.beyond(a, b)
    if not beyond.any():
        return []
    lines = wrapped(
        f"output {shown(name)}: {int(beyond.sum())} of {a.size} numbers are apart by more than "
        f"{in_words_of(rule.between(a, b))}; the first is at"
    )
    return [*lines, *_place(list(first_index(beyond)), a, b, outputs.axes.get(name))]


def _place(index: list[int], a: AnyArray, b: AnyArray, axes: tuple[str, str] | None) -> list[str]:
    """Return the names of the axes if they are known, and both numbers with the index in each array."""
    lines, indices = [], [index, index]
    if axes is not None:
        places = dict(zip(axes[0], index, strict=True))
        lines = ["  " + ", ".join(f"{AXIS_WORDS[axis]} {places[axis]}" for axis in axes[0])]
        indices[1] = [places.get(axis, 0) for axis in axes[1]]
    for letter, array, own in zip("ab", (a, b), indices, strict=True):
        value, dtype = array[tuple(index)], f" {array.dtype}" if a.dtype != b.dtype else ""
        text = str(value).ljust(14) if array.dtype.kind in "biuc" else number(float(value))
        lines.append(f"  {letter:7}{text}{dtype} {own}")
    return lines


def _are_numbers(value: Any) -> bool:
    return isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "biufcV"


def _fixed(rule: Rule) -> Tolerance:
    """Return the tolerance of values that are no arrays of numbers: sequences of them, strings, layers."""
    if rule.atol is None and not rule.rtol:
        return DEFAULT
    return Tolerance(LONG_TOLERANCES["float32"] if rule.atol is None else rule.atol, rule.rtol)


def _two(name: str, a: Any, b: Any) -> str:
    return f"output {shown(name)} is {shown(a)} in a, and {shown(b)} in b"


def _layers(comparison: ModelComparison, rule: Rule) -> list[str]:
    """Return the first recurrent layers that part, if any do."""
    lines = [line for name in comparison.unpaired for line in wrapped(f"layer without a counterpart: {name}")]
    first = first_apart(comparison.values, _fixed(rule))
    if first is not None:
        apart = apart_in_words(comparison.values[first])
        lines += wrapped(f"The first value inside that differs: {shown(first)}, {apart}")
    for name, pair in comparison.layers.items():
        if pair.not_compared:
            lines += wrapped(f"layers {name}: not compared: {pair.not_compared}")
        elif not all(value.within(*_fixed(rule)) for value in pair.deviations.values()):
            return [*lines, *_pair(name, pair), ""]
    if comparison.layers:
        lines += wrapped(f"No recurrent layers part: {len(comparison.layers)} pairs give the same numbers.")
    return [*lines, ""] if lines else []


def _pair(name: str, pair: Comparison) -> list[str]:
    lines = wrapped(f"The first recurrent layers that differ: {name} (paired by {pair.paired_by})")
    lines += wrapped(f"a: {pair.a}", "  ") + wrapped(f"b: {pair.b}", "  ")
    lines += settings(pair, "  ")
    for what, place in (("numbers", pair.first_difference), ("gates", pair.first_gate)):
        lines += wrapped(f"{what} part first in {place}", "  ") if place is not None else []
    return lines
