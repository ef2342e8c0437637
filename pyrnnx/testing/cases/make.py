"""Helpers for the tables of named cases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyrnnx import reference
from pyrnnx.testing.cases.case import Case
from pyrnnx.testing.cases.operators import OPTIONAL, version_of

# Exact in bfloat16, so that every dtype computes with the same parameters.
PARAMETERS: dict[str, tuple[float, ...]] = {
    "Affine": (0.75, 0.25),
    "LeakyRelu": (0.125,),
    "ThresholdedRelu": (0.25,),
    "ScaledTanh": (1.5, 0.625),
    "HardSigmoid": (0.375, 0.4375),
    "Elu": (0.625,),
}
BOTH = {"direction": "bidirectional"}


def named(
    operator: str,
    name: str,
    feature: str,
    fails_if: str,
    place: str,
    attributes: Mapping[str, Any] | None = None,
    inputs: tuple[str, ...] | None = None,
    lens: tuple[int, ...] | None = None,
    **fields: Any,
) -> Case:
    """Build the case OPERATOR-NAME of one feature; `place` is the part of the operator's text: "attribute clip".

    It has all optional inputs by default, and hidden_size except in the case that omits it.
    """
    written = {} if feature == "hidden_size left out" else {"hidden_size": fields.get("H", Case.H)}
    return Case(
        f"{operator}-{name}",
        operator,
        {**(attributes or {}), **written},
        OPTIONAL[operator] if inputs is None else inputs,
        lens,
        feature=feature,
        tells=f"Fails if {fails_if}.",
        source=f"{version_of(operator, fields.get('opset', Case.opset))}, {place}",
        **fields,
    )


def activation_attributes(names: Sequence[str]) -> dict[str, Any]:
    """Return `activations` and the parameters they consume, slightly different at every place."""
    attributes: dict[str, Any] = {"activations": list(names)}
    for key, index, takers in (("activation_alpha", 0, reference.ALPHA), ("activation_beta", 1, reference.BETA)):
        values = [PARAMETERS[name][index] + 0.125 * place for place, name in enumerate(names) if name in takers]
        if values:
            attributes[key] = values
    return attributes


def replaced(names: Sequence[str], place: int, name: str) -> list[str]:
    """Return names with another one at a place."""
    return [*names[:place], name, *names[place + 1 :]]
