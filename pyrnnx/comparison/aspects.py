"""Differences of the conventions and operators of two layers, in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from pyrnnx._internal.dtypes import INTEGERS
from pyrnnx.comparison.weights import canonical_constants
from pyrnnx.layers.layer import Layer
from pyrnnx.operator.conventions import (
    CALL_ARGUMENTS,
    Convention,
    bias_blocks,
    coupling,
    weight_axes,
)
from pyrnnx.operator.op import RecurrentOp

_PEEPHOLES = "P (peepholes)"


@dataclass(frozen=True)
class Difference:
    """One aspect in which two layers are not the same."""

    aspect: str
    a: str
    b: str


def differing_conventions(
    a: Layer, b: Layer, convention_a: Convention, convention_b: Convention
) -> tuple[Difference, ...]:
    """Return differences of arrangement and dtype; a and b are in their original conventions."""
    described = []
    for layer, convention in ((a, convention_a), (b, convention_b)):
        aspects = _describe(layer.op, convention)
        if not any("P" in layer.weights for layer in (a, b)):  # the axes of P do not matter
            del aspects[_PEEPHOLES]
        described.append(aspects | {name: str(getattr(layer, name)) for name in ("dtype", "weight_dtype")})
    return _differences(*described) + _differing_constants(a, b)


def differing_operators(a: RecurrentOp, b: RecurrentOp) -> tuple[Difference, ...]:
    """Return differences of what two operators compute."""
    described = [
        {
            "activations": "; ".join(", ".join(map(str, functions)) for functions in op.activations),
            **{name: str(getattr(op, name)) for name in ("clip", "linear_before_reset", "input_forget")},
        }
        for op in (a, b)
    ]
    return _differences(*described)


def _differing_constants(a: Layer, b: Layer) -> tuple[Difference, ...]:
    """Compare what the layers take if a call leaves it out: the call that is compared leaves nothing out."""
    first, second = canonical_constants(a), canonical_constants(b)
    names = [name for name in CALL_ARGUMENTS if not np.array_equal(first.get(name, ()), second.get(name, ()))]
    if not names:
        return ()
    texts = [", ".join(name for name in names if name in held) or "none" for held in (first, second)]
    return (Difference("constants", texts[0], f"{texts[1]}, other values" if texts[0] == texts[1] else texts[1]),)


def _differences(a: Mapping[str, str], b: Mapping[str, str]) -> tuple[Difference, ...]:
    return tuple(Difference(aspect, a[aspect], b[aspect]) for aspect in a if a[aspect] != b.get(aspect, a[aspect]))


def _describe(op: RecurrentOp, convention: Convention) -> dict[str, str]:
    """Return every aspect in which conventions can differ, in words."""
    arguments = ["sequence_lens", "initial_h", "Y_h"] + (["initial_c", "Y_c"] if op.has_cell_state else [])
    states = [name for name in arguments if name != "sequence_lens"]
    axes = weight_axes(op, convention)
    required = sorted(convention.name_of(name) for name in convention.required if name in (*arguments, "B"))
    lengths = convention.length_dtypes if convention.axes_of("sequence_lens") else ()
    coupled = {"coupled gates (input_forget)": coupling(convention)} if op.input_forget else {}
    return {
        "axes of X": _axes(convention.axes_of("X")),
        "axes of Y": _axes(convention.axes_of("Y")),
        f"axes of {', '.join(states)}": _axes(convention.axes_of("initial_h")),
        "shape of W": f"[{', '.join(axes['W'])}]",
        "gate order": ", ".join(convention.gate_order(op.cell)),
        "B": f"{', '.join(bias_blocks(op, convention))}: [{', '.join(axes['B'])}]",
        _PEEPHOLES: ", ".join(convention.peepholes) if "P" in axes else "none",
        **coupled,
        "names": ", ".join(convention.name_of(name) for name in arguments),
        "required beside X, W, R": ", ".join(required) or "nothing",
        "dtype of lengths": "any integer type" if lengths == INTEGERS else " or ".join(lengths) or "no lengths",
    }


def _axes(axes: str) -> str:
    return f"[{', '.join(axes)}]"
