"""Comparison of models and functions: their outputs, and the layers in which models differ."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pyrnnx.comparison.agreement import DEFAULT, Rule, Tolerance
from pyrnnx.comparison.calls import label
from pyrnnx.comparison.distances import LONG_TOLERANCES, deviation
from pyrnnx.comparison.models import ModelComparison, compare_models
from pyrnnx.comparison.models.runs import by_own_names, kept_states
from pyrnnx.comparison.models.tries import Outputs
from pyrnnx.comparison.steps import first_index
from pyrnnx.comparison.views.text import layer_lines, undecided, value_notes
from pyrnnx.errors import ArgumentError, PyrnnxError, shown
from pyrnnx.frontends.torch.tensors import as_numpy
from pyrnnx.models.layers import Layers
from pyrnnx.models.model import Model
from pyrnnx.testing.same.functions import chosen_outputs, flat, named_results
from pyrnnx.testing.same.report import WIDTH, in_words_of, number, wrapped
from pyrnnx.testing.same.subjects import FunctionSubject, Options

AXIS_WORDS = {"T": "time step", "D": "direction", "N": "row", "H": "unit"}


def difference_of(a: Model | FunctionSubject, b: Model | FunctionSubject, options: Options) -> str:
    """Return how the outputs of two models or functions differ; empty if they do not."""
    labels = [label(subject) if isinstance(subject, Model) else subject.label for subject in (a, b)]
    models = [subject for subject in (a, b) if isinstance(subject, Model)]
    if models:
        given = by_own_names(models[0], options.inputs or {}, "assert_same: inputs")
        first, second = (
            FunctionModel(subject, models[0], given) if isinstance(subject, FunctionSubject) else subject
            for subject in (a, b)
        )
        inputs = None if options.inputs is None else given
        lines, reasons = _models_differ(first, second, options._replace(inputs=inputs))
    else:
        assert isinstance(a, FunctionSubject)
        assert isinstance(b, FunctionSubject)
        lines, reasons = _functions_differ(a, b, options)
    if lines:
        return "\n".join([*wrapped(f"{labels[0]} (a) and {labels[1]} (b) are not the same"), "", *lines])
    if reasons:
        raise not_decided(labels, reasons)
    return ""


def not_decided(labels: Sequence[str], reasons: Iterable[str]) -> ArgumentError:
    return ArgumentError(
        f"assert_same: not decided whether {labels[0]} and {labels[1]} are the same: {'; '.join(reasons)}; expected "
        "inputs that show a difference"
    )


class _RefusedError(PyrnnxError):
    """Raised for the first inputs that a function refuses: it may accept others, such as no rows of length 0."""


class _FailedError(Exception):
    """Raised for later inputs; no `PyrnnxError`, for which `compare_models` would try others."""


class FunctionModel(Model):
    """A function as a model, with the required inputs of another one, those that are given, and its outputs."""

    plan = None

    def __init__(self, subject: FunctionSubject, model: Model, given: Mapping[str, Any]) -> None:
        self.label, self.outputs = subject.label, model.outputs
        self.inputs = tuple([info for info in model.inputs if not info.optional or info.name in given])
        names = [info.name for info in self.inputs]
        self._subject, self._model, self._has_run = subject, model, False
        self._call = subject.read_call(names, {info.name: (info.name, *info.aliases) for info in self.inputs})
        left_out = [name for name in names if name not in self._call.takes]
        if left_out:
            raise ArgumentError(
                f"assert_same: {self.label} takes no {', '.join(left_out)}; expected a parameter for each input"
            )

    @property
    def layers(self) -> Layers[Any]:
        """Layers of a function are not known."""
        return Layers(self.label, {}, lambda layer: layer)

    def _run(self, inputs: dict[str, Any], outputs: tuple[str, ...]) -> dict[str, Any]:
        names = {info.name: (info.name, *info.aliases) for info in self.outputs}
        try:
            results = named_results(self.label, self._subject.run(self._call, inputs), names)
        except Exception as error:
            with kept_states(self._model):
                self._model(inputs)  # raises if it refuses these inputs, too
            raise (_FailedError if self._has_run else _RefusedError) from error
        self._has_run = True
        return dict(results)


def _models_differ(a: Model, b: Model, options: Options) -> tuple[list[str], list[str]]:
    """Return how two models differ, in lines, and why equal outputs would not show that they are the same."""
    names, rule = options.outputs, options.rule
    has_function = isinstance(a, FunctionModel) or isinstance(b, FunctionModel)
    try:
        comparison, matched, ran = compare_models(
            a,
            b,
            options.inputs,
            options.seed,
            False if has_function else None,
            differs=lambda *both: bool(_differing("", both, rule)),
            chosen=lambda known: chosen_outputs(names, known),
        )
    except _RefusedError as error:
        first = error.__cause__ or error
        raise (first.__cause__ or error) from None
    except _FailedError as error:
        raise (error.__cause__ or error) from None
    if ran is None:
        raise ArgumentError(
            f"assert_same: {label(a)} and {label(b)} cannot run on the same arrays: "
            f"{comparison.not_compared}; compare the layers, or one model with a function that calls the other"
        )
    if names is not None:  # chosen outputs may not need all layers
        comparison = replace(comparison, layers={})
    tolerance = _tolerance(rule)
    differing = (
        _differing(name, both, rule, matched.axes.get(matched.names[name]))
        for name, both in matched.values(ran).items()
    )
    lines = next(filter(None, differing), [])
    apart = any(pair.verdict(*tolerance) == "different" for pair in comparison.layers.values())
    if not has_function and (lines or apart):
        lines = [*_layers(comparison, tolerance), *(lines or ["The outputs agree on these inputs."])]
    return lines, undecided(comparison, tolerance) if comparison.verdict(*tolerance) == "not decided" else []


def _functions_differ(a: FunctionSubject, b: FunctionSubject, options: Options) -> tuple[list[str], list[str]]:
    """Return as `_models_differ` does; outputs have the names of the first mapping, else those of their places."""
    if not options.inputs:
        raise ArgumentError("assert_same: a and b are two functions; expected inputs, a mapping of arrays by name")
    given = {str(name): as_numpy("assert_same: inputs", str(name), value) for name, value in options.inputs.items()}
    results = [
        subject.run(subject.read_call(tuple(given), {name: (name,) for name in given}), given) for subject in (a, b)
    ]
    named = next((result for result in results if isinstance(result, Mapping)), None)
    most = max(len(list(flat(result))) for result in results)
    own = [f"output {place}" for place in range(most)] if named is None else [str(name) for name in named]
    first, second = (
        named_results(subject.label, result, {name: (name,) for name in own})
        for subject, result in zip((a, b), results, strict=True)
    )
    values = {name: (first.get(name), second.get(name)) for name in chosen_outputs(options.outputs, own)}
    lines = next(filter(None, (_differing(name, both, options.rule) for name, both in values.items())), [])
    seen = Outputs()
    seen.add(values)
    return lines, seen.reasons(is_open=False, constant=False)


def _differing(name: str, both: tuple[Any, Any], rule: Rule, axes: tuple[str, str] | None = None) -> list[str]:
    """Return how an output differs, and its first number that is apart, with the names of its axes in a and in b."""
    a, b = both
    missing = [letter for letter, value in (("a", a), ("b", b)) if value is None]
    if missing:
        return wrapped(f"output {shown(name)} is missing in {missing[0]}") if len(missing) == 1 else []
    if not all(isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "biufcV" for value in both):
        difference = deviation(a, b)
        if difference is not None and difference.within(*_tolerance(rule)):
            return []
        return wrapped(f"output {shown(name)} is {shown(a)} in a, and {shown(b)} in b")
    if a.shape != b.shape:
        return wrapped(f"output {shown(name)} has shape {a.shape} in a, and {b.shape} in b")
    beyond = rule.beyond(a, b)
    if not beyond.any():
        return []
    lines = wrapped(
        f"output {shown(name)}: {int(beyond.sum())} of {a.size} numbers are apart by more than "
        f"{in_words_of(rule.between(a, b))}; the first is at"
    )
    index = list(first_index(beyond))
    indices = [index, index]
    if axes is not None:
        places = dict(zip(axes[0], index, strict=True))
        lines.append("  " + ", ".join(f"{AXIS_WORDS[axis]} {places[axis]}" for axis in axes[0]))
        indices[1] = [places.get(axis, 0) for axis in axes[1]]
    for letter, array, own in zip("ab", both, indices, strict=True):
        value, dtype = array[tuple(index)], f" {array.dtype}" if a.dtype != b.dtype else ""
        text = str(value).ljust(14) if array.dtype.kind in "biuc" else number(float(value))
        lines.append(f"  {letter:7}{text}{dtype} {own}")
    return lines


def _tolerance(rule: Rule) -> Tolerance:
    """Return the tolerance of values that are no arrays of numbers: sequences of them, strings, layers."""
    if rule.atol is None and not rule.rtol:
        return DEFAULT
    return Tolerance(LONG_TOLERANCES["float32"] if rule.atol is None else rule.atol, rule.rtol)


def _layers(comparison: ModelComparison, tolerance: Tolerance) -> list[str]:
    """Return the first value inside that differs, and the first recurrent layers that do."""
    lines = [f"layer without a counterpart: {name}" for name in comparison.unpaired]
    lines += value_notes(comparison, tolerance)
    for name, pair in comparison.layers.items():
        if pair.not_compared:
            lines.append(f"layers {name}: not compared: {pair.not_compared}")
        elif not all(value.within(*tolerance) for value in pair.deviations.values()):
            lines.append(f"The first recurrent layers that differ: {name}")
            return [*(part for line in lines for part in wrapped(line)), *layer_lines(pair, width=WIDTH), ""]
    if comparison.layers:
        lines.append(f"No recurrent layers part: {len(comparison.layers)} pairs give the same numbers.")
    return [*(part for line in lines for part in wrapped(line)), *([""] if lines else [])]
