"""Cases of the recurrent operators: random ones, and named ones that each detect one mistake."""

from pyrnnx.testing.cases.arrays import draw, expected_outputs, make_arrays
from pyrnnx.testing.cases.case import FEATURES, Case, Feature
from pyrnnx.testing.cases.make import PARAMETERS
from pyrnnx.testing.cases.named import CASES, NAMED, OPENVINO_CASES
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
from pyrnnx.testing.cases.space import OPSETS, Choices, choose_activations, choose_case, hangs_on_rounding, random_cases

__all__ = [
    # cases, and their arrays
    "Case",
    "expected_outputs",
    "make_arrays",
    # tables
    "CASES",
    "FEATURES",
    "Feature",
    "NAMED",
    "OPENVINO_CASES",
    # random ones
    "Choices",
    "choose_activations",
    "choose_case",
    "hangs_on_rounding",
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


def __dir__() -> list[str]:
    return __all__
