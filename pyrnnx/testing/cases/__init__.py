"""Cases of the recurrent operators: random ones, and named ones that each detect one mistake.

`CASES` covers ONNX's operators, `OPENVINO_CASES` OpenVINO's. For each attribute, optional input, function, direction,
dtype, layout, version and boundary, at least one named case fails if it is ignored.
"""

from pyrnnx.testing.cases import activations, attributes, openvino, sizes
from pyrnnx.testing.cases.arrays import draw, expected_outputs, make_arrays
from pyrnnx.testing.cases.case import FEATURES, PARAMETERS, Case
from pyrnnx.testing.cases.operators import (
    INPUTS,
    OPERATIONS,
    OPERATORS,
    OPTIONAL,
    OUTPUTS,
    RUNTIME_INPUTS,
    SEQUENCES,
    STEPS,
    VERSIONS,
    opset_dtypes,
    version_of,
)
from pyrnnx.testing.cases.space import OPSETS, random_cases

CASES: tuple[Case, ...] = (
    *attributes.cases(),
    *activations.cases(),
    *sizes.cases(),
    *attributes.versions(),
)
OPENVINO_CASES: tuple[Case, ...] = tuple(openvino.cases())
NAMED = {case.name: case for case in (*CASES, *OPENVINO_CASES)}

__all__ = [
    # cases, and their arrays
    "Case",
    "expected_outputs",
    "make_arrays",
    # tables
    "CASES",
    "FEATURES",
    "NAMED",
    "OPENVINO_CASES",
    "random_cases",
    # what the operators have
    "INPUTS",
    "OPERATIONS",
    "OPERATORS",
    "OPSETS",
    "OPTIONAL",
    "OUTPUTS",
    "PARAMETERS",
    "RUNTIME_INPUTS",
    "SEQUENCES",
    "STEPS",
    "VERSIONS",
    "draw",
    "opset_dtypes",
    "version_of",
]
