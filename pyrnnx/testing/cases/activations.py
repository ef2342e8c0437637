"""Cases of activations: every function in every place of every cell, its parameters and its spelling."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyrnnx import reference
from pyrnnx.testing.cases.case import BOTH, Case, activation_attributes, named, replaced
from pyrnnx.testing.cases.operators import OPERATORS


def cases() -> Iterator[Case]:
    for op in OPERATORS:
        yield from _functions(op)
        yield from _parameters(op)
        yield from _spellings(op)
        yield from _ends(op)


def _functions(op: str) -> Iterator[Case]:
    """Yield every function in every place, the others at their defaults; then both directions mixed."""
    default, names = reference.DEFAULT_ACTIVATIONS[op], list(reference.ACTIVATIONS)
    for place, letter in enumerate("fgh"[: len(default)]):
        for name in names:
            attributes = activation_attributes(replaced(default, place, name))
            fails = f"{letter} is not {name}, or {name} has the wrong parameters"
            yield named(op, f"{letter}={name}", "activations", fails, attributes, lens=(4, 2, 3))
    fails = "the second direction has the functions of the first, or does not take the next parameters"
    for first in range(0, len(names), 2):  # functions that share the parameter lists, a different set per direction
        chosen = [names[(first + 4 * k) % len(names)] for k in range(2 * len(default))]
        attributes = activation_attributes(chosen) | BOTH
        yield named(op, f"activations-mixed-{first}", "activations", fails, attributes, lens=(4, 1, 3))


def _parameters(op: str) -> Iterator[Case]:
    default = reference.DEFAULT_ACTIVATIONS[op]
    both = "activation_alpha/beta"
    leaky: dict[str, Any] = {"activations": ["LeakyRelu"] * 2 * len(default)}
    for name in (n for n in reference.ALPHA if n != "ScaledTanh"):  # it has no defaults
        defaults = f"{reference.ALPHA[name]}" + (f" and {reference.BETA[name]}" if name in reference.BETA else "")
        fails = f"{name} without parameters does not use {defaults}, the defaults of the operator {name}"
        attributes: dict[str, Any] = {"activations": replaced(default, 1, name) if op != "RNN" else [name]}
        feature = "default activation parameters"
        # far enough out to be on both sides of the default threshold, 1
        yield named(op, f"default-parameters-{name}", feature, fails, attributes, scale=4.0)
    fails = "every LeakyRelu takes the only alpha, although the later ones have the default 0.01"
    attributes = leaky | {"activation_alpha": [0.5]} | BOTH
    yield named(op, "alphas-run-out", "default activation parameters", fails, attributes, ("B",))
    # functions that take only alpha, no parameter, or both
    names = (["LeakyRelu", "ScaledTanh"], ["Elu", "HardSigmoid", "Tanh", "Affine"])
    chosen = names[op == "GRU"] if op != "LSTM" else ["HardSigmoid", "LeakyRelu", "ScaledTanh"] * 2
    fails = "alphas and betas share one counter, or are indexed by the position of their function"
    attributes = activation_attributes(chosen) | BOTH
    yield named(op, "alphas-and-betas-counted-apart", both, fails, attributes)
    fails = "alphas are not taken in the order of the functions, one direction after the other"
    attributes = leaky | {"activation_alpha": [0.125 * (k + 1) for k in range(2 * len(default))]} | BOTH
    yield named(op, "alphas-in-order", both, fails, attributes)
    # clipping puts values exactly on the jump of ThresholdedRelu, which belongs to x
    fails = "ThresholdedRelu is 0 at x = alpha, although the text says x for x >= alpha"
    attributes = {"activations": ["ThresholdedRelu", *default[1:]], "activation_alpha": [0.25], "clip": 0.25}
    yield named(op, "clip-at-threshold", "activations", fails, attributes)


def _spellings(op: str) -> Iterator[Case]:
    default = reference.DEFAULT_ACTIVATIONS[op]
    # not the defaults, which an implementation might fall back to
    others = ["Softsign", "Relu", "Softplus"][: len(default)]
    for spelling, names in (
        ("lower-case", [name.lower() for name in default]),
        ("upper-case", [name.upper() for name in others]),
    ):
        fails = f"the names {', '.join(names)} are unknown, or select other functions"
        yield named(op, spelling, "names in any case", fails, {"activations": names}, ("B",))


def _ends(op: str) -> Iterator[Case]:
    """Yield pre-activations beyond the largest argument of exp, also in float64."""
    default = list(reference.DEFAULT_ACTIVATIONS[op])
    for last in ("", "Softplus", "Elu", "Softsign"):
        names = [*default[:-1], last] if last else default
        fails = f"{' or '.join(dict.fromkeys(names))} of a large argument is NaN or infinite because exp overflows"
        name, attributes = (f"large-values-{last}", {"activations": names}) if last else ("large-values", {})
        yield named(op, name, "large values", fails, attributes, scale=2000.0)
