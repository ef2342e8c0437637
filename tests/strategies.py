"""Hypothesis strategies over everything that the texts of the ONNX operators allow, as `cases.Case`s.

Structure is drawn, and shrinks; numbers come from a seed, so that a failing example prints as one short line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import reference
from cases import OPTIONAL, Array, Case, expected_outputs, float64, opset_dtypes
from hypothesis import strategies as st

OPSETS = (1, 2, 3, 6, 7, 13, 14, 21, 22, 23)
SIXTEENTHS = [k / 16 for k in range(-16, 20)]  # exact in every dtype, so that an attribute means the same everywhere
Draw = Callable[[st.SearchStrategy[Any]], Any]


def draw_activations(draw: Draw, operator: str, num_directions: int) -> dict[str, Any]:
    """Any functions, any parameters; fewer parameters than are taken, where those left out have defaults."""
    per_direction = len(reference.DEFAULT_ACTIVATIONS[operator])
    count = num_directions * per_direction
    names = draw(st.lists(st.sampled_from(list(reference.ACTIVATIONS)), min_size=count, max_size=count))
    attributes: dict[str, Any] = {}
    for key, defaults in (("activation_alpha", reference.ALPHA), ("activation_beta", reference.BETA)):
        takers = [name for name in names if name in defaults]
        required = max((place + 1 for place, name in enumerate(takers) if defaults[name] is None), default=0)
        values = draw(st.lists(st.sampled_from(SIXTEENTHS), min_size=required, max_size=len(takers)))
        if values or draw(st.booleans()):
            attributes[key] = values
    spelling = draw(st.sampled_from([str, str, str.lower, str.upper]))  # names are read case-insensitively
    attributes["activations"] = [spelling(name) for name in names]
    return attributes


def draw_attributes(draw: Draw, operator: str, opset: int, hidden_size: int, layouts: Sequence[int]) -> dict[str, Any]:
    """Each attribute of the operator at that opset is absent, or has any value that the text allows."""
    attributes: dict[str, Any] = {}

    def maybe(name: str, values: Sequence[Any]) -> None:
        if draw(st.booleans()):
            attributes[name] = draw(st.sampled_from(values))

    maybe("direction", ["bidirectional", "reverse", "forward"])
    num_directions = 2 if attributes.get("direction") == "bidirectional" else 1
    maybe("clip", [0.0625, 0.25, 0.75, 100.0])
    maybe("hidden_size", [hidden_size])
    if opset >= 14:
        maybe("layout", layouts)
    if opset < 7:
        maybe("output_sequence", [0, 1])
    if operator == "GRU" and opset >= 3:
        maybe("linear_before_reset", [1, 0])
    if operator == "LSTM":
        maybe("input_forget", [1, 0])
    if draw(st.booleans()):
        attributes |= draw_activations(draw, operator, num_directions)
    elif operator == "RNN" and draw(st.booleans()):
        attributes["activations"] = ["Tanh", "Tanh"]  # the schema's default, in any direction
    return attributes


@st.composite
def cases(
    draw: Draw,
    operator: str,
    *,
    opsets: Sequence[int] = OPSETS,
    dtypes: Sequence[np.dtype[Any]] | None = None,
    smallest: int = 0,
    layouts: Sequence[int] = (1, 0),
) -> Case:
    """Cases of an operator; sizes T, N and I from `smallest`, dtypes as the opset allows unless they are given."""
    opset = draw(st.sampled_from(opsets))
    H = draw(st.integers(1, 20))
    attributes = draw_attributes(draw, operator, opset, H, layouts)
    T, N, I = (draw(st.integers(smallest, largest)) for largest in (6, 5, 9))
    lens = tuple(draw(st.lists(st.integers(0, T), min_size=N, max_size=N))) if draw(st.booleans()) else None
    return Case(
        name=f"drawn-{draw(st.integers(0, 2**16))}",  # names seed the arrays
        operator=operator,
        attributes=attributes,
        inputs=tuple(name for name in OPTIONAL[operator] if draw(st.booleans())),
        lens=lens,
        T=T,
        N=N,
        I=I,
        H=H,
        opset=opset,
        dtype=draw(st.sampled_from(dtypes or opset_dtypes(opset))),
    )


def hangs_on_rounding(case: Case, arrays: Mapping[str, Array]) -> bool:
    """Whether a pre-activation lies so near the jump of a ThresholdedRelu that rounding may put it on either side."""
    if "thresholdedrelu" not in (name.lower() for name in case.attributes.get("activations", ())):
        return False
    near = 1e-9 if case.dtype == float64 else 1e-4  # far above the error of a pre-activation
    below, above = (expected_outputs(case, arrays, threshold_shift=shift) for shift in (-near, near))
    return not all(np.array_equal(b, a) for b, a in zip(below, above, strict=True))
