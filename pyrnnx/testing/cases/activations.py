"""Cases of activations: every function in every place of every cell, its parameters and its spelling."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyrnnx import reference
from pyrnnx.testing.cases.case import Case
from pyrnnx.testing.cases.make import BOTH, activation_attributes, named
from pyrnnx.testing.cases.operators import OPERATORS, OPTIONAL


def cases() -> Iterator[Case]:
    for op in OPERATORS:
        yield from _functions(op)
        yield from _parameters(op)
        yield from _spellings(op)
        yield from _ends(op)


def _functions(op: str) -> Iterator[Case]:
    """Yield every function in every place, the others at their defaults; then both directions mixed."""
    default = reference.DEFAULT_ACTIVATIONS[op]
    for place, letter in enumerate("fgh"[: len(default)]):
        for name in reference.ACTIVATIONS:
            names = [*default[:place], name, *default[place + 1 :]]
            yield named(
                f"{op}-{letter}={name}",
                op,
                "activations",
                f"{letter} is not {name}, or {name} has the wrong parameters",
                "attribute activations",
                activation_attributes(names),
                OPTIONAL[op],
                (4, 2, 3),
            )
    names = list(reference.ACTIVATIONS)
    for first in range(0, len(names), 2):  # functions that share the parameter lists, a different set per direction
        chosen = [names[(first + 4 * k) % len(names)] for k in range(2 * len(default))]
        yield named(
            f"{op}-activations-mixed-{first}",
            op,
            "activations",
            "the second direction has the functions of the first, or does not take the next parameters",
            "attribute activations",
            activation_attributes(chosen) | BOTH,
            OPTIONAL[op],
            (4, 1, 3),
        )


def _parameters(op: str) -> Iterator[Case]:
    default = reference.DEFAULT_ACTIVATIONS[op]
    for name in (n for n in reference.ALPHA if n != "ScaledTanh"):  # it has no defaults
        defaults = f"{reference.ALPHA[name]}" + (f" and {reference.BETA[name]}" if name in reference.BETA else "")
        yield named(
            f"{op}-default-parameters-{name}",
            op,
            "default activation parameters",
            f"{name} without parameters does not use {defaults}, the defaults of the operator {name}",
            "attribute activation_alpha",
            {"activations": [*default[:1], name, *default[2:]] if op != "RNN" else [name]},
            OPTIONAL[op],
            scale=4.0,  # far enough out to be on both sides of the default threshold, 1
        )
    yield named(
        f"{op}-alphas-run-out",
        op,
        "default activation parameters",
        "every LeakyRelu takes the only alpha, although the later ones have the default 0.01",
        "attribute activation_alpha",
        {"activations": ["LeakyRelu"] * 2 * len(default), "activation_alpha": [0.5]} | BOTH,
        ("B",),
    )
    # functions that take only alpha, no parameter, or both
    names = (["LeakyRelu", "ScaledTanh"], ["Elu", "HardSigmoid", "Tanh", "Affine"])
    chosen = names[op == "GRU"] if op != "LSTM" else ["HardSigmoid", "LeakyRelu", "ScaledTanh"] * 2
    yield named(
        f"{op}-alphas-and-betas-counted-apart",
        op,
        "activation_alpha/beta",
        "alphas and betas share one counter, or are indexed by the position of their function",
        "attribute activation_beta",
        activation_attributes(chosen) | BOTH,
        OPTIONAL[op],
    )
    yield named(
        f"{op}-alphas-in-order",
        op,
        "activation_alpha/beta",
        "alphas are not taken in the order of the functions, one direction after the other",
        "attribute activation_alpha",
        {
            "activations": ["LeakyRelu"] * 2 * len(default),
            "activation_alpha": [0.125 * (k + 1) for k in range(2 * len(default))],
        }
        | BOTH,
        OPTIONAL[op],
    )
    # clipping puts values exactly on the jump of ThresholdedRelu, which belongs to x
    yield named(
        f"{op}-clip-at-threshold",
        op,
        "activations",
        "ThresholdedRelu is 0 at x = alpha, although the text says x for x >= alpha",
        "attribute activations",
        {"activations": ["ThresholdedRelu", *default[1:]], "activation_alpha": [0.25], "clip": 0.25},
        OPTIONAL[op],
    )


def _spellings(op: str) -> Iterator[Case]:
    # not the defaults, which an implementation might fall back to
    names = ["Softsign", "Relu", "Softplus"][: len(reference.DEFAULT_ACTIVATIONS[op])]
    for spelling, chosen in (
        ("lower-case", [name.lower() for name in reference.DEFAULT_ACTIVATIONS[op]]),
        ("upper-case", [name.upper() for name in names]),
    ):
        yield named(
            f"{op}-{spelling}",
            op,
            "names in any case",
            f"the names {', '.join(chosen)} are unknown, or select other functions",
            "attribute activations",
            {"activations": chosen},
            ("B",),
        )


def _ends(op: str) -> Iterator[Case]:
    """Yield pre-activations beyond the largest argument of exp, also in float64."""
    default = reference.DEFAULT_ACTIVATIONS[op]
    for names in (default, [*default[:-1], "Softplus"], [*default[:-1], "Elu"], [*default[:-1], "Softsign"]):
        attributes: dict[str, Any] = {"activations": list(names)} if names != default else {}
        yield named(
            f"{op}-large-values{'-' + names[-1] if attributes else ''}",
            op,
            "large values",
            f"{' or '.join(dict.fromkeys(names))} of a large argument is NaN or infinite because exp overflows",
            "equations",
            attributes,
            OPTIONAL[op],
            scale=2000.0,
        )
