"""Size rules by operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ..walk import Node
from . import rules
from .call import Call, Rule
from .spatial import SPATIAL

if TYPE_CHECKING:
    from onnx import NodeProto

_OPERATORS: Mapping[Rule, str] = {
    rules.view: """Constant Identity If Loop Optional OptionalGetElement OptionalHasElement Scan SequenceAt
        SequenceConstruct SequenceEmpty SequenceErase SequenceInsert SequenceLength SequenceMap Shape Size Slice Split
        SplitToSequence
        Squeeze Transpose Unsqueeze""",
    rules.copies: "Flatten Reshape",
    rules.broadcast: """Add And BitShift BitwiseAnd BitwiseOr BitwiseXor Div Equal Greater GreaterOrEqual Less
        LessOrEqual Max Mean Min Mod Mul Or PRelu Pow Sub Sum Where Xor""",
    rules.first: """Abs Acos Acosh Asin Asinh Atan Atanh BatchNormalization BitCast BitwiseNot CausalConvWithState Ceil
        Celu Clip Cos Cosh CumProd CumSum DepthToSpace Det Dropout Elu Erf Exp Floor Gelu GlobalAveragePool GlobalLpPool
        GlobalMaxPool GroupNormalization HardSigmoid HardSwish Hardmax InstanceNormalization IsInf IsNaN LRN
        LeakyRelu Log LogSoftmax LpNormalization MeanVarianceNormalization Mish Neg
        NegativeLogLikelihoodLoss Not QuantizeLinear Reciprocal ReduceL1 ReduceL2 ReduceLogSum
        ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare RegexFullMatch Relu
        ReverseSequence RotaryEmbedding Round Scatter ScatterElements ScatterND Selu Shrink Sigmoid Sign Sin Sinh
        Softmax SoftmaxCrossEntropyLoss Softplus Softsign SpaceToDepth Sqrt StringNormalizer SwiGLU Swish Tan Tanh
        TensorScatter ThresholdedRelu Trilu DynamicQuantizeLinear""",
    rules.with_indices: "ArgMax ArgMin Compress NonMaxSuppression NonZero StringSplit Unique",
    rules.like: "Bernoulli EyeLike RandomNormalLike RandomUniformLike",
    rules.random: "RandomNormal RandomUniform",
    rules.concat: "Concat ConcatFromSequence",
    rules.matmul: "MatMul MatMulInteger",
    rules.of_second_type: "CastLike DequantizeLinear",
    rules.cast: "Cast",
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
    rules.quantized_matmul: "QLinearMatMul",
    rules.arange: "Range",
    rules.strings: "StringConcat",
    rules.tfidf: "TfIdfVectorizer",
    rules.tile: "Tile",
    rules.top_k: "TopK",
    rules.normalized: "LayerNormalization RMSNormalization",
}
RULES: Mapping[str, Rule] = MappingProxyType(
    {**{name: rule for rule, names in _OPERATORS.items() for name in names.split()}, **SPATIAL}
)
_LARGEST_ELEMENT = 16  # bytes, of complex128
# Python loops, whose time does not follow from sizes: never folded.
_SLOW = {
    *SPATIAL,
    *("Det", "Einsum", "LRN", "NonMaxSuppression", "RegexFullMatch", "StringNormalizer", "StringSplit"),
    "TfIdfVectorizer",
}


def expected_bytes(node: Node | NodeProto, arrays: Sequence[Any]) -> int | None:
    """Return the bytes of the results; None without a rule, or if the operator will reject the inputs."""
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

    def quick(arrays: Sequence[Any], limit: int) -> int:
        most = _LARGEST_ELEMENT
        for array in arrays:
            if array is not None:
                most *= array.size
        return 0 if most <= limit else exact(arrays, limit)

    return quick if rule in (rules.broadcast, rules.first, rules.copies) else exact


def is_foldable(node: Node | NodeProto) -> bool:
    """Return whether the results have a known size, and NumPy computes them without Python loops."""
    return not node.domain and node.op_type in RULES and node.op_type not in _SLOW
