"""Cases of the versions of ONNX's operators: each opset's features, alone and together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pyrnnx import reference
from pyrnnx.testing.cases.case import BOTH, Case, activation_attributes, named
from pyrnnx.testing.cases.operators import OPERATORS, version_of
from pyrnnx.testing.cases.space import OPSETS


def cases() -> Iterator[Case]:
    for op in OPERATORS:
        for opset in OPSETS:
            yield from _of_opset(op, opset)
        for opset in (1, 3, 7, 14, 22):
            yield _all_attributes(op, opset)


def _of_opset(op: str, opset: int) -> Iterator[Case]:
    version, name, lens = version_of(op, opset), f"opset{opset}", (4, 2, 1)
    fails = f"opset {opset} is refused, or {version} is not computed like the later versions"
    feature = "opset 1 to 6" if opset < 7 else "all together"
    plain = named(op, name, feature, fails, "equations", BOTH, lens=lens, opset=opset)
    yield plain
    if opset < 7:
        fails = f"the default direction of {version} is not forward, or hidden_size is not read from R"
        defaults = named(op, f"{name}-defaults", feature, fails, "attribute direction", lens=lens, opset=opset)
        yield replace(defaults, attributes={})
        fails = "output_sequence is refused, or Y is missing although it is requested"
        for value in (0, 1):
            attributes = {"direction": "reverse", "output_sequence": value}
            full_name, place = f"{name}-output_sequence={value}", "attribute output_sequence"
            yield named(op, full_name, feature, fails, place, attributes, lens=lens, opset=opset)
    flag = {"GRU": "linear_before_reset" if opset >= 3 else "", "LSTM": "input_forget"}.get(op)
    if flag:
        fails = f"{flag} is unknown at opset {opset}, or ignored"
        yield named(op, f"{name}-{flag}", flag, fails, f"attribute {flag}", {flag: 1}, lens=lens, opset=opset)


def _all_attributes(op: str, opset: int) -> Case:
    """Return every attribute of an opset, all at once."""
    names = ["HardSigmoid", *reference.DEFAULT_ACTIVATIONS[op][1:]] * 2
    attributes = {**activation_attributes(names), "clip": 1.5, **BOTH}
    attributes |= {"output_sequence": 1} if opset < 7 else {}
    attributes |= {"layout": 1} if opset >= 14 else {}
    attributes |= {"linear_before_reset": 1} if op == "GRU" and opset >= 3 else {}
    attributes |= {"input_forget": 1} if op == "LSTM" else {}
    fails = f"an attribute of opset {opset} is ignored if all are present"
    name = f"opset{opset}-all-attributes"
    return named(op, name, "all together", fails, "attributes", attributes, lens=(4, 0, 3), opset=opset)
