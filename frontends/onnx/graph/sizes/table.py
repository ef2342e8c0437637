"""Size rules by operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from ..walk import Node
from . import rules
from .call import Call, Rule
from .spatial import SPATIAL

if TYPE_CHECKING:
    from onnx import NodeProto

# Rules with a number of arrays at the peak, `times`, by that number.
_ARRAYS: Mapping[Callable[..., int], Mapping[int, str]] = {
    rules.first: {
        1: """Abs Acos Acosh Asin Asinh Atan Atanh BitwiseNot Ceil Cos Cosh CumProd CumSum Floor Neg
            ReverseSequence Sign Sin Sinh Softsign Tan Tanh TensorScatter""",
        2: """DepthToSpace Exp HardSigmoid HardSwish Log Reciprocal RegexFullMatch Relu Round Softplus SpaceToDepth Sqrt
            Swish ThresholdedRelu Trilu""",
        3: "Celu Elu LeakyRelu LogSoftmax Mish RotaryEmbedding Selu Softmax",
        4: "DynamicQuantizeLinear Shrink Sigmoid SwiGLU",
        18: "Erf Gelu",  # through objects of Python
    },
    rules.quantized: {5: "DequantizeLinear QuantizeLinear"},
    rules.across: {
        3: "LRN LpNormalization",
        8: "GroupNormalization MeanVarianceNormalization",
    },
    rules.loss: {0: "NegativeLogLikelihoodLoss", 5: "SoftmaxCrossEntropyLoss"},
    rules.by_channel: {3: "BatchNormalization", 5: "InstanceNormalization"},
    rules.normalized: {8: "RMSNormalization", 12: "LayerNormalization"},
    rules.reduced: {
        0: "ReduceLogSum ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum",
        1: "ReduceL1 ReduceL2 ReduceSumSquare",
        3: "ReduceLogSumExp",
    },
    rules.global_pool: {0: "GlobalAveragePool GlobalMaxPool", 1: "GlobalLpPool"},
    rules.broadcast: {
        1: "Add BitwiseAnd BitwiseOr BitwiseXor Clip Mod Mul Sub",
        2: "Max Min Pow Sum Where",
        3: "Mean PRelu",
        5: "BitShift",
    },
    rules.booleans: {2: "And Equal Greater GreaterOrEqual IsInf IsNaN Less LessOrEqual Not Or Xor"},
    rules.divided: {6: "Div"},
}
_OPERATORS: Mapping[Rule, str] = {
    rules.view: """Constant If Loop Optional OptionalGetElement OptionalHasElement Scan SequenceAt SequenceConstruct
        SequenceEmpty SequenceErase SequenceInsert SequenceLength SequenceMap Shape Size Slice Split SplitToSequence
        Squeeze Transpose Unsqueeze""",
    rules.copy: "Identity",
    rules.dropout: "Dropout",
    rules.copies: "BitCast Flatten Reshape",
    rules.arg_reduced: "ArgMax ArgMin",
    rules.hardmax: "Hardmax",
    rules.det: "Det",
    rules.non_zero: "NonZero",
    rules.compress: "Compress",
    rules.unique: "Unique",
    rules.suppressed: "NonMaxSuppression",
    rules.scatter: "Scatter ScatterElements ScatterND",
    rules.like: "Bernoulli RandomNormalLike RandomUniformLike",
    rules.eye: "EyeLike",
    rules.random: "RandomNormal RandomUniform",
    rules.concat: "Concat ConcatFromSequence",
    rules.matmul: "MatMul",
    rules.integer_matmul: "MatMulInteger",
    rules.quantized_matmul: "QLinearMatMul",
    rules.cast: "Cast",
    rules.cast_like: "CastLike",
    rules.constant_of_shape: "ConstantOfShape",
    rules.einsum: "Einsum",
    rules.expand: "Expand",
    rules.gather: "Gather",
    rules.gather_elements: "GatherElements",
    rules.gather_nd: "GatherND",
    rules.gemm: "Gemm",
    rules.multinomial: "Multinomial",
    rules.one_hot: "OneHot",
    rules.pad: "Pad",
    rules.arange: "Range",
    rules.strings: "StringConcat StringNormalizer",
    rules.split_strings: "StringSplit",
    rules.tfidf: "TfIdfVectorizer",
    rules.tile: "Tile",
    rules.top_k: "TopK",
}
# Operators whose peak is at most this number of arrays as large as all inputs broadcast against each other.
_QUICK: Mapping[str, int] = {
    name: times
    for rule in (rules.first, rules.broadcast, rules.booleans, rules.divided)
    for times, names in _ARRAYS[rule].items()
    for name in names.split()
} | dict.fromkeys(_OPERATORS[rules.copies].split(), 1)
RULES: Mapping[str, Rule] = MappingProxyType(
    {
        **{name: rule for rule, names in _OPERATORS.items() for name in names.split()},
        **{
            name: partial(rule, times=times)
            for rule, rows in _ARRAYS.items()
            for times, names in rows.items()
            for name in names.split()
        },
        **SPATIAL,
    }
)
_LARGEST_ELEMENT = 16  # bytes, of complex128
# Python loops, whose time does not follow from sizes: never folded.
_SLOW = {
    *SPATIAL,
    *("Det", "Einsum", "LRN", "NonMaxSuppression", "RegexFullMatch", "StringNormalizer", "StringSplit"),
    "TfIdfVectorizer",
}


def expected_bytes(node: Node | NodeProto, arrays: Sequence[Any]) -> int | None:
    """Return the bytes of results and temporary arrays; None without a rule, or if the operator rejects the inputs."""
    rule = RULES.get(node.op_type) if not node.domain else None
    if rule is None:
        return None
    try:
        return max(rule(Call(node, arrays)), 0)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        return None


def bytes_beyond(node: NodeProto) -> Callable[[Sequence[Any], int], int] | None:
    """Return a function (inputs, limit) -> `expected_bytes`, or 0 if surely within the limit.

    For most operators a few multiplications suffice. None for a node without a rule, or whose results are views.
    """
    rule = RULES.get(node.op_type) if not node.domain else None
    if rule is None or rule is rules.view:
        return None

    def exact(arrays: Sequence[Any], limit: int) -> int:
        return expected_bytes(node, arrays) or 0

    largest = _LARGEST_ELEMENT * _QUICK.get(node.op_type, 0)

    def quick(arrays: Sequence[Any], limit: int) -> int:
        most = largest
        for array in arrays:
            if array is None:
                continue
            if not isinstance(array, np.ndarray) or array.itemsize > _LARGEST_ELEMENT:  # a sequence; strings
                return exact(arrays, limit)
            most *= array.size or 1
        return 0 if most <= limit else exact(arrays, limit)

    return quick if largest else exact


def is_foldable(node: Node | NodeProto) -> bool:
    """Return whether the results have a known size, and NumPy computes them without Python loops."""
    return not node.domain and node.op_type in RULES and node.op_type not in _SLOW
