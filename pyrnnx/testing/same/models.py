"""Comparison of models and functions: their outputs, and the layers in which models differ."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pyrnnx.comparison.agreement import DEFAULT, Rule, Tolerance, first_apart
from pyrnnx.comparison.calls import label
from pyrnnx.comparison.distances import LONG_TOLERANCES, deviation
from pyrnnx.comparison.models import ModelComparison, compare_models
from pyrnnx.comparison.models.runs import by_own_names, kept_states
from pyrnnx.comparison.steps import first_index
from pyrnnx.comparison.views.text import layer_lines, undecided, value_notes
from pyrnnx.errors import ArgumentError, PyrnnxError, shown
from pyrnnx.models.layers import Layers
from pyrnnx.models.model import Model
from pyrnnx.testing.same.functions import chosen_outputs, named_results
from pyrnnx.testing.same.report import WIDTH, in_words_of
from pyrnnx.testing.same.subjects import FunctionSubject, Options

AXIS_WORDS = {"T": "time step", "D": "direction", "N": "row", "H": "unit"}


def models_differ(a: Model | FunctionSubject, b: Model | FunctionSubject, options: Options) -> list[str]:
    """Return how the outputs of two models, or of a model and a function, differ, in lines; none if they do not."""
    model = next((subject for subject in (a, b) if isinstance(subject, Model)), None)
    if model is None:
        raise ArgumentError("assert_same: a and b are two functions; expected a layer or a model, and a function")
    given = by_own_names(model, options.inputs or {}, "assert_same: inputs")
    first, second = (
        FunctionModel(subject, model, given) if isinstance(subject, FunctionSubject) else subject for subject in (a, b)
    )
    lines, reasons = _compared(first, second, options._replace(inputs=None if options.inputs is None else given))
    if reasons and not lines:
        raise not_decided([label(first), label(second)], reasons)
    return lines


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


def _compared(a: Model, b: Model, options: Options) -> tuple[list[str], list[str]]:
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


def _differing(name: str, both: tuple[Any, Any], rule: Rule, axes: tuple[str, str] | None = None) -> list[str]:
    """Return how an output differs, and its first number that is apart, with the names of its axes in a."""
    a, b = both
    missing = [letter for letter, value in (("a", a), ("b", b)) if value is None]
    if missing:
        return [f"output {shown(name)} is missing in {missing[0]}"] if len(missing) == 1 else []
    if not all(isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "biufcV" for value in both):
        difference = deviation(a, b)
        if difference is not None and difference.within(*_tolerance(rule)):
            return []
        return [f"output {shown(name)} is {shown(a)} in a, and {shown(b)} in b"]
    if a.shape != b.shape:
        return [f"output {shown(name)} has shape {a.shape} in a, and {b.shape} in b"]
    beyond = rule.beyond(a, b)
    if not beyond.any():
        return []
    index = first_index(beyond)
    names = [f"{AXIS_WORDS[axis]} " for axis in axes[0]] if axes is not None else [""] * len(index)
    where = ", ".join(f"{word}{place}" for word, place in zip(names, index, strict=True))
    numbers = [
        f"{array[index] if array.dtype.kind in 'biuc' else format(float(array[index]), '.9g')} in {letter}"
        for letter, array in zip("ab", both, strict=True)
    ]
    return [
        f"output {shown(name)}: {int(beyond.sum())} of {a.size} numbers are apart by more than "
        f"{in_words_of(rule.between(a, b))}",
        *([f"dtypes: {a.dtype} in a, {b.dtype} in b"] if a.dtype != b.dtype else []),
        f"first apart: [{where}] of a: {', '.join(numbers)}",
    ]


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
        elif first_apart(pair.deviations, tolerance) is not None:
            return [*lines, f"The first recurrent layers that differ: {name}", *layer_lines(pair, width=WIDTH), ""]
    if comparison.layers:
        lines.append(f"No recurrent layers part: {len(comparison.layers)} pairs give the same numbers.")
    return lines
