"""Test that two layers, models or functions are the same: `assert_same`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyrnnx._internal import scalars
from pyrnnx.comparison import only_layer
from pyrnnx.comparison.agreement import DEFAULT, Rule, Tolerance, first_apart, read_tolerance
from pyrnnx.comparison.calls import label
from pyrnnx.comparison.distances import LONG_TOLERANCES
from pyrnnx.comparison.inputs import named_after
from pyrnnx.comparison.models import ModelComparison, compare_models
from pyrnnx.comparison.models.runs import by_own_names, kept_states
from pyrnnx.comparison.views.text import model_lines, undecided
from pyrnnx.errors import ArgumentError, PyrnnxError, shown
from pyrnnx.models.layers import Layers
from pyrnnx.models.model import Model
from pyrnnx.testing.same.functions import chosen_outputs, named_results
from pyrnnx.testing.same.layers import UnlikeError, compare_sides
from pyrnnx.testing.same.report import WIDTH, layers_differ, wrapped
from pyrnnx.testing.same.subjects import FunctionSubject, LayerSubject, Options, Subject, read_subject

__all__ = ["assert_same"]


def assert_same(
    a: Any,
    b: Any,
    *,
    inputs: Mapping[str, Any] | None = None,
    outputs: Sequence[str] | None = None,
    atol: float | None = None,
    rtol: float | None = None,
    seed: int = 0,
) -> None:
    """Fail if two recurrent layers or models, or one of them and a function, give different numbers, and show where.

    Parameters
    ----------
    a, b
        Any two of these:

        - a recurrent layer of any front-end, `pyrnnx.Layer` and those of `read_layer`, `from_node` and `model.layers`
        - nn.RNN, nn.GRU or nn.LSTM of PyTorch with one layer, or nn.RNNCell, nn.GRUCell, nn.LSTMCell: run by PyTorch
        - a model, a `pyrnnx.Stack`, or the path of a model or layer, as `pyrnnx.load` takes it; compared with a layer
          by its only recurrent layer
        - any other torch.nn.Module, called with tensors, or function, called with NumPy arrays; but not two of them

        A layer without weights takes the other layer's, else random ones. A function is called like the other layer or
        model, see below.
    inputs : mapping, optional
        Arrays by the names of a (of b, if a is a function): those that its own call has, or ONNX's or OpenVINO's; in
        a's own arrangement. Missing arrays are random, as in `pyrnnx.compare`: states are not zero, and lengths differ,
        with 0, 1 and all steps among them. Models run several times.
    outputs : sequence of str, optional
        Names of the outputs to compare. Default: all outputs of a.
    atol, rtol : float, optional
        ``abs(a - b) <= atol + rtol * abs(b)`` for every number; NaN agrees with NaN, and an infinity with the same one.
        Default: rtol 0 if atol is given, else both are `pyrnnx.testing.numbers.TOLERANCES` of the coarser of the two
        dtypes; for models and functions that are compared with them, `LONG_TOLERANCES`. No rtol applies to integers.
        Dtypes may differ: the message shows them if numbers differ.
    seed : int
        Seed of the random arrays, 0 or above.

    Raises
    ------
    AssertionError
        They differ. The message shows, as `pyrnnx.compare` does, how conventions, operators and weights differ, and
        the first number of each output and, of two layers, the first gate that are apart. For a function, it names the
        usual mistakes that give its numbers: a term of an equation left out, doubled or taken from another step,
        another activation, gates in another order, states or lengths left out, ...; or says that none does. It also has
        the oracle's gates in the first step that is apart, and which of the two is away from the oracle.
    PyrnnxError
        Arguments that cannot be compared: of another kind, of other sizes, with unknown names. Outputs that agree but
        do not show that the two are the same: an output is empty, missing in both, or constant under all random inputs;
        an integer input could not be varied; a layer has the weights of one that runs in another direction. Errors of a
        function are not caught, but a function that refuses rows of length 0 is called again without them.

    Notes
    -----
    **How a function is called.** If its parameters have the names of a layer's arguments, by name, and in the
    layer's own arrangement and dtype: X, sequence_lens, initial_h, initial_c as the layer calls them, or as ONNX,
    OpenVINO (H, C, sequence_lengths) or everyday code does (input, lengths, h0, c0); and the layer's weights W, R, B, P
    (or weight_ih, weight_hh, bias, peepholes). Case and underscores do not matter. The first parameter is X, whatever
    its name. A parameter with a default other than None keeps it; ``**arrays`` takes the rest, without the layer's
    weights. Arguments that a function does not take are omitted on both sides: states are then zero, and rows have full
    length. Parameters with other names are an error, except if there are as many as the layer's arguments, or
    ``*arrays``: they take all arguments by position, in the layer's order. A function compared with a model takes all
    inputs of the model in the same way.

    **What it returns.** Arrays or tensors in the layer's arrangement: one, a tuple in the order of the layer's outputs
    (or nested, as PyTorch's ``output, (h_n, c_n)``), or a mapping by the names of the outputs. A missing output is
    a difference, unless `outputs` leaves it out.

    Examples
    --------
    An LSTM in NumPy, and the layer that it must equal:

    >>> import numpy as np
    >>> import pyrnnx
    >>> from pyrnnx.testing import assert_same
    >>> rng = np.random.default_rng(0)
    >>> W, R, B = rng.normal(size=(1, 24, 4)), rng.normal(size=(1, 24, 6)), rng.normal(size=(1, 48))
    >>> layer = pyrnnx.Layer(pyrnnx.RecurrentOp("LSTM", 6), W, R, B)

    >>> def sigmoid(x):
    ...     return 1 / (1 + np.exp(-x))
    >>> def port(X, initial_h, initial_c, gates="iofc"):
    ...     (h,), (c,), Y = initial_h, initial_c, []
    ...     for x in X:
    ...         sums = x @ W[0].T + h @ R[0].T + B[0, :24] + B[0, 24:]
    ...         gate = dict(zip(gates, np.split(sums, 4, axis=1)))
    ...         c = sigmoid(gate["f"]) * c + sigmoid(gate["i"]) * np.tanh(gate["c"])
    ...         h = sigmoid(gate["o"]) * np.tanh(c)
    ...         Y.append(h)
    ...     return np.stack(Y)[:, None], h[None], c[None]
    >>> assert_same(layer, port)

    With its gates in the order of PyTorch, i, f, g, o:

    >>> def wrong(X, initial_h, initial_c):
    ...     return port(X, initial_h, initial_c, gates="ifco")
    >>> assert_same(layer, wrong)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    AssertionError: LSTM (a) and the function wrong (b) are not the same
    <BLANKLINE>
    conventions of a: ONNX, layout 0; gate order: i, o, f, c; B: separate: Wb,
        then Rb
    By its numbers, b computes that layer as if the gates of W, R and B were in
        the order i, f, c, o.
    <BLANKLINE>
    Y: 90 of 90 numbers are apart by more than atol=1e-10, rtol=1e-10
    first apart: Y at step 0, forward, row 0, unit 0: ...
    that step by the oracle: ...
    b is away from the oracle, a is not.

    A function that takes other arguments, or returns only Y, is wrapped:

    >>> assert_same(layer, lambda X: port(X, *np.zeros((2, 1, X.shape[1], 6)))[0], outputs=["Y"])
    """
    with named_after("assert_same"):
        rule = Rule(
            None if atol is None else read_tolerance("assert_same", "atol", atol),
            0.0 if rtol is None else read_tolerance("assert_same", "rtol", rtol),
        )
        seed = scalars.integer("assert_same", "seed", seed, 0)
        if inputs is not None and not isinstance(inputs, Mapping):
            raise ArgumentError(f"assert_same: inputs is {shown(inputs)}; expected a mapping of arrays by name")
        first, second = read_subject("a", a), read_subject("b", b)
        lines = _difference(first, second, Options(inputs, outputs, rule, seed))
    if lines:
        heading = f"{first.label} (a) and {second.label} (b) are not the same"
        raise AssertionError("\n".join([*wrapped(heading), "", *(part for line in lines for part in _fitted(line))]))


def _difference(a: Subject, b: Subject, options: Options) -> list[str]:
    """Return how the two differ, in lines; none if they do not."""
    if not (isinstance(a, LayerSubject) or isinstance(b, LayerSubject)):
        return models_differ(a, b, options)
    try:
        sides, comparison = compare_sides(_layer_of(a), _layer_of(b), options)
    except UnlikeError as error:
        return [str(error)]
    if comparison.first_difference is not None:
        return layers_differ(sides, comparison, options.rule)
    if comparison.not_decided:
        raise not_decided([side.label for side in sides], comparison.not_decided)
    return []


def _layer_of(subject: Subject) -> LayerSubject | FunctionSubject:
    return LayerSubject(only_layer(subject)) if isinstance(subject, Model) else subject


def _fitted(line: str) -> list[str]:
    return [line] if len(line) <= WIDTH else wrapped(line)


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
