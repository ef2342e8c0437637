"""Comparison of two models, or of a model and a function."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyrnnx.comparison.agreement import DEFAULT, Tolerance, first_apart
from pyrnnx.comparison.calls import label
from pyrnnx.comparison.distances import LONG_TOLERANCES
from pyrnnx.comparison.models import ModelComparison, compare_models
from pyrnnx.comparison.models.runs import by_own_names, kept_states
from pyrnnx.comparison.views.text import model_lines, undecided
from pyrnnx.errors import ArgumentError, PyrnnxError
from pyrnnx.models.layers import Layers
from pyrnnx.models.model import Model
from pyrnnx.testing.same.functions import chosen_outputs, named_results
from pyrnnx.testing.same.report import WIDTH
from pyrnnx.testing.same.subjects import FunctionSubject, Options


def models_differ(a: Model | FunctionSubject, b: Model | FunctionSubject, options: Options) -> list[str]:
    """Return how the outputs of two models, or of a model and a function, differ, in lines; none if they do not."""
    model = next((subject for subject in (a, b) if isinstance(subject, Model)), None)
    if model is None:
        raise ArgumentError("assert_same: a and b are two functions; expected a layer or a model, and a function")
    given = by_own_names(model, options.inputs or {}, "assert_same: inputs")
    first, second = (
        FunctionModel(subject, model, given) if isinstance(subject, FunctionSubject) else subject for subject in (a, b)
    )
    try:
        comparison = compare_models(
            first,
            second,
            None if options.inputs is None else given,
            options.seed,
            None if isinstance(a, Model) and isinstance(b, Model) else False,
            chosen=lambda known: chosen_outputs(options.outputs, known),
        )
    except _RefusedError as error:
        cause = error.__cause__ or error
        raise (cause.__cause__ or error) from None
    except _FailedError as error:
        raise (error.__cause__ or error) from None
    if comparison.not_compared:
        raise ArgumentError(
            f"assert_same: {label(first)} and {label(second)} cannot run on the same arrays: "
            f"{comparison.not_compared}; compare the layers, or one model with a function that calls the other"
        )
    if options.outputs is not None:  # chosen outputs may not need all layers
        comparison = replace(comparison, layers={})
    tolerance = _tolerance(model, options)
    result = comparison.verdict(*tolerance)
    if result == "not decided":
        raise not_decided([label(first), label(second)], undecided(comparison, tolerance))
    if result == "same":
        return []
    return model_lines(_with_first_pair(comparison, tolerance), tolerance=tolerance, width=WIDTH)


def not_decided(labels: Sequence[str], reasons: Iterable[str]) -> ArgumentError:
    return ArgumentError(
        f"assert_same: not decided whether {labels[0]} and {labels[1]} are the same: {'; '.join(reasons)}; expected "
        "inputs that show a difference"
    )


def _tolerance(model: Model, options: Options) -> Tolerance:
    atol, rtol = options.rule.atol, options.rule.rtol
    if atol is None and not rtol:
        return DEFAULT
    by_dtype = max((LONG_TOLERANCES.get(info.dtype or "", 0.0) for info in model.outputs), default=0.0)
    return Tolerance(by_dtype if atol is None else atol, max(rtol, by_dtype) if atol is None else rtol)


def _with_first_pair(comparison: ModelComparison, tolerance: Tolerance) -> ModelComparison:
    """Return the comparison without the pairs of layers after the first that differs, and without those before."""
    apart = (
        name for name, pair in comparison.layers.items() if first_apart(pair.deviations, tolerance) or pair.not_compared
    )
    return replace(comparison, layers={name: comparison.layers[name] for name in [next(apart, "")] if name})


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
