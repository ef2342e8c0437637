"""Cases of the versions of ONNX's operators: each opset's features, alone and together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from pyrnnx import reference
from pyrnnx.testing.cases.case import Case
from pyrnnx.testing.cases.make import BOTH, activation_attributes, named
from pyrnnx.testing.cases.operators import OPERATORS, OPTIONAL, version_of
from pyrnnx.testing.cases.space import OPSETS


def cases() -> Iterator[Case]:
    for op in OPERATORS:
        for opset in OPSETS:
            yield from _of_opset(op, opset)
        for opset in (1, 3, 7, 14, 22):
            yield _all_attributes(op, opset)


def _of_opset(op: str, opset: int) -> Iterator[Case]:
    version = version_of(op, opset)
    plain = named(
        f"{op}-opset{opset}",
        op,
        "opset 1 to 6" if opset < 7 else "all together",
        f"opset {opset} is refused, or {version} is not computed like the later versions",
        "equations",
        BOTH,
        OPTIONAL[op],
        (4, 2, 1),
        opset=opset,
    )
    yield plain

    def variant(attribute: str, value: int, feature: str, fails: str, **others: Any) -> Case:
        return replace(
            plain,
            name=f"{plain.name}-{attribute}" + (f"={value}" if attribute == "output_sequence" else ""),
            attributes={**others, attribute: value, "hidden_size": plain.H},
            feature=feature,
            tells=f"Fails if {fails}.",
            source=f"{version}, attribute {attribute}",
        )

    if opset < 7:
        yield replace(
            plain,
            name=f"{plain.name}-defaults",
            attributes={},
            tells=f"Fails if the default direction of {version} is not forward, or hidden_size is not read from R.",
            source=f"{version}, attribute direction",
        )
    for value in (0, 1) if opset < 7 else ():
        fails = "output_sequence is refused, or Y is missing although it is requested"
        yield variant("output_sequence", value, "opset 1 to 6", fails, direction="reverse")
    if op == "GRU" and opset >= 3:
        fails = f"linear_before_reset is unknown at opset {opset}, or ignored"
        yield variant("linear_before_reset", 1, "linear_before_reset", fails)
    if op == "LSTM":
        fails = f"input_forget is unknown at opset {opset}, or ignored"
        yield variant("input_forget", 1, "input_forget", fails)


def _all_attributes(op: str, opset: int) -> Case:
    """Return every attribute of an opset, all at once."""
    names = ["HardSigmoid", *reference.DEFAULT_ACTIVATIONS[op][1:]] * 2
    attributes = {**activation_attributes(names), "clip": 1.5, **BOTH}
    attributes |= {"output_sequence": 1} if opset < 7 else {}
    attributes |= {"layout": 1} if opset >= 14 else {}
    attributes |= {"linear_before_reset": 1} if op == "GRU" and opset >= 3 else {}
    attributes |= {"input_forget": 1} if op == "LSTM" else {}
    return named(
        f"{op}-opset{opset}-all-attributes",
        op,
        "all together",
        f"an attribute of opset {opset} is ignored if all are present",
        "attributes",
        attributes,
        OPTIONAL[op],
        (4, 0, 3),
        opset=opset,
    )
