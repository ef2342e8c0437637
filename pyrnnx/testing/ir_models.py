"""OpenVINO cases as IRs of one layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from xml.sax.saxutils import quoteattr

from pyrnnx.testing.cases import INPUTS, OUTPUTS, Case
from pyrnnx.testing.numbers import Array

ELEMENT_TYPES = {
    "float32": "f32",
    "float64": "f64",
    "float16": "f16",
    "bfloat16": "bf16",
    "int32": "i32",
    "int64": "i64",
}
PRECISIONS = {"f32": "FP32", "f64": "FP64", "f16": "FP16", "bf16": "BF16", "i32": "I32", "i64": "I64"}
_ACTIVATIONS = {"RNN": ["tanh"], "GRU": ["sigmoid", "tanh"], "LSTM": ["sigmoid", "tanh", "tanh"]}


def make_ir(case: Case, arrays: Mapping[str, Array]) -> str:
    """Return the text of an IR without .bin, whose inputs are all arrays of the case.

    hidden_size and activations are always written, because OpenVINO cannot compile a sequence without them.
    """
    operation, version = case.operator.split("-")
    names, results = [name for name in INPUTS[case.operator] if name in arrays], OUTPUTS[case.operator]
    types = {name: ELEMENT_TYPES[array.dtype.name] for name, array in arrays.items()}
    types |= dict.fromkeys(results, ELEMENT_TYPES[case.dtype])
    shapes: dict[str, Sequence[int]] = {**case.shapes(), **{name: array.shape for name, array in arrays.items()}}

    def ports(tag: str, named: Sequence[str], first: int = 0) -> str:
        text = []
        for number, name in enumerate(named, first):
            called = f' names="{name}"' if tag == "output" else ""
            dims = "".join(f"<dim>{size}</dim>" for size in shapes[name])
            text.append(f'<port id="{number}" precision="{PRECISIONS[types[name]]}"{called}>{dims}</port>')
        return f"<{tag}>{''.join(text)}</{tag}>"

    layers, edges, layer = [], [], len(names)
    for number, name in enumerate(names):
        shape = ",".join(map(str, shapes[name]))
        data = f'<data shape="{shape}" element_type="{types[name]}"/>'
        head = f'<layer id="{number}" name="{name}" type="Parameter" version="opset1">'
        layers.append(f"{head}{data}{ports('output', [name])}</layer>")
        edges.append((number, 0, layer, number))
    attributes = {"hidden_size": case.H, "activations": _ACTIVATIONS[case.cell], **case.attributes}
    data = " ".join(f"{key}={quoteattr(_written(value))}" for key, value in attributes.items())
    layers.append(
        f'<layer id="{layer}" name={quoteattr(case.name)} type="{operation}" version="opset{version}"><data {data}/>'
        f"{ports('input', names)}{ports('output', results, layer)}</layer>"
    )
    for number, name in enumerate(results, layer + 1):
        head = f'<layer id="{number}" name="{name}/result" type="Result" version="opset1">'
        layers.append(f"{head}{ports('input', [name])}</layer>")
        edges.append((layer, number - 1, number, 0))
    wires = (f'<edge from-layer="{a}" from-port="{b}" to-layer="{c}" to-port="{d}"/>' for a, b, c, d in edges)
    sections = ("<layers>", *layers, "</layers>", "<edges>", *wires, "</edges>")
    return "\n".join((f'<net name={quoteattr(case.name)} version="11">', *sections, "</net>", ""))


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
