"""All named cases.

`CASES` covers ONNX's operators, `OPENVINO_CASES` OpenVINO's. For each attribute, optional input, function, direction,
dtype, layout, version and boundary, at least one case fails if it is ignored.
"""

from __future__ import annotations

from pyrnnx.testing.cases import activations, attributes, openvino, sizes, versions
from pyrnnx.testing.cases.case import Case

CASES: tuple[Case, ...] = (
    *attributes.cases(),
    *activations.cases(),
    *sizes.cases(),
    *versions.cases(),
)
OPENVINO_CASES: tuple[Case, ...] = tuple(openvino.cases())
NAMED = {case.name: case for case in (*CASES, *OPENVINO_CASES)}
assert len(NAMED) == len(CASES) + len(OPENVINO_CASES)
