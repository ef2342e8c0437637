"""How many bytes the results of an operator take, from its inputs, before it runs: one rule for each operator.

A rule may say more than what there will be, and says 0 where the results are views of the inputs. Where an operator of
onnx's ReferenceEvaluator first makes something larger than its results (padded, dilated), that is counted too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from .size_call import DOUBLE, Call, Rule, count, element_bytes, joined, replaced
from .size_spatial import SPATIAL


def _view(call: Call) -> int:
    return 0


def _first(call: Call) -> int:
    return int(call.arrays[0].size * max(call.arrays[0].itemsize, 4))


def _broadcast(call: Call) -> int:
    shapes = [one.shape for one in call.arrays if one is not None]
    return count(joined(*shapes)) * call.itemsize


def _copies(call: Call) -> int:
    """Nothing, or a copy of the first input where its memory cannot be seen in another shape."""
    X = call.arrays[0]
    return 0 if X.flags.c_contiguous else int(X.nbytes)


def _with_indices(call: Call) -> int:
    X = call.arrays[0]
    return int(X.size * (X.itemsize + DOUBLE * 3))


def _top_k(call: Call) -> int:
    """Numbers up to k are made whatever the size of the axis."""
    k = call.integers(1) or [call.attribute("k", 1)]
    return _with_indices(call) + max(k[0], 0) * DOUBLE * 2


def _normalized(call: Call) -> int:
    """The axes from `axis` on are listed, however far before the first it is."""
    return _first(call) + max(int(-call.attribute("axis", -1) - call.arrays[0].ndim), 0) * DOUBLE * 8


def _cast(call: Call) -> int:
    return int(call.arrays[0].size) * element_bytes(call.attribute("to"), DOUBLE)


def _of_second_type(call: Call) -> int:
    return int(call.arrays[0].size * call.arrays[1].itemsize)


def _constant_of_shape(call: Call) -> int:
    value = call.attribute("value")
    return count(call.integers(0) or ()) * element_bytes(value.data_type if value is not None else None)


def _tile(call: Call) -> int:
    X, repeats = call.arrays[0], call.integers(1) or []
    if len(call.arrays) > 2:  # Tile-1: how often, and along which axis
        return int(X.nbytes * max(repeats[0], 0))
    # Along one axis after the other: what is empty in the end can be large in between.
    return int(X.itemsize) * count(max(a * b, 1) for a, b in zip(X.shape, repeats, strict=True))


def _expand(call: Call) -> int:
    X = call.arrays[0]
    shape = call.integers(1) or []
    # An array of ones of that shape is made first, also where the result is empty.
    return max(count(joined(X.shape, shape)), count(shape)) * int(X.itemsize)


def _pad(call: Call) -> int:
    X, axes = call.arrays[0], call.integers(3)
    pads = call.integers(1, "pads") or call.attribute("paddings")  # Pad-1 has another name for it
    axes = list(range(X.ndim)) if axes is None else axes
    sizes = [X.shape[axis] + pads[k] + pads[k + len(axes)] for k, axis in enumerate(axes)]
    return count(replaced(X.shape, sizes, axes)) * int(X.itemsize)


def _range(call: Call) -> int:
    start, limit, delta = (one.item() for one in call.arrays)
    steps: int = math.ceil((limit - start) / delta)
    return max(steps, 0) * DOUBLE


def _one_hot(call: Call) -> int:
    indices, depth, values = call.arrays
    return max(int(indices.size), 1) * max(int(depth.ravel()[0]), 0) * max(int(values.itemsize), DOUBLE)


def _like(call: Call) -> int:
    return int(call.arrays[0].size * DOUBLE)


def _random(call: Call) -> int:
    return count(call.attribute("shape")) * DOUBLE


def _multinomial(call: Call) -> int:
    return int(call.arrays[0].shape[0] * max(call.attribute("sample_size", 1), 0) * DOUBLE)


def _product(A: Any, B: Any, itemsize: int) -> int:
    rows = A.shape[-2:-1] if A.ndim > 1 else ()
    columns = B.shape[-1:] if B.ndim > 1 else ()
    return count((*joined(A.shape[:-2], B.shape[:-2]), *rows, *columns)) * itemsize


def _matmul(call: Call) -> int:
    return _product(call.arrays[0], call.arrays[1], max(call.itemsize, 4))


def _quantized_matmul(call: Call) -> int:
    return _product(call.arrays[0], call.arrays[3], max(call.itemsize, 4))


def _gemm(call: Call) -> int:
    A, B = call.arrays[:2]
    return int(A.shape[1 if call.attribute("transA", 0) else 0] * B.shape[0 if call.attribute("transB", 0) else 1]) * (
        call.itemsize
    )


def _einsum(call: Call) -> int:
    """The sizes of the letters of the result; those that "..." stands for are at most all that no letter names."""
    text = str(call.attribute("equation")).replace(" ", "")
    left, arrow, result = text.partition("->")
    sizes: dict[str, int] = {}
    rest: list[list[int]] = [[]]
    for term, array in zip(left.split(","), call.arrays, strict=True):
        before, dots, after = term.partition("...")
        end = array.ndim - len(after)
        for letter, size in (*zip(before, array.shape, strict=False), *zip(after, array.shape[end:], strict=True)):
            sizes[letter] = max(sizes.get(letter, 1), size)
        rest += [list(array.shape[len(before) : end])] if dots else []
    letters = result.replace("...", "") if arrow else [one for one in sizes if left.count(one) == 1]
    return count((*joined(*rest), *(sizes[letter] for letter in letters))) * call.itemsize


def _concat(call: Call) -> int:
    arrays = call.arrays[0] if isinstance(call.arrays[0], list) else call.arrays
    return int(sum(one.size for one in arrays) * max((one.itemsize for one in arrays), default=0))


def _gather(call: Call) -> int:
    X, indices = call.arrays
    shape = replaced(X.shape, [indices.size], [call.attribute("axis", 0)])
    return count(shape) * int(X.itemsize)


def _gather_elements(call: Call) -> int:
    return int(call.arrays[1].size * call.arrays[0].itemsize)


def _gather_nd(call: Call) -> int:
    X, indices = call.arrays
    kept = X.shape[call.attribute("batch_dims", 0) + indices.shape[-1] :]
    return count((*indices.shape[:-1], *kept)) * int(X.itemsize)


def _strings(call: Call) -> int:
    lengths = [max((len(text) for text in one.ravel()), default=0) for one in call.arrays]
    return count(joined(*(one.shape for one in call.arrays))) * (DOUBLE + 4 * sum(lengths))


def _tfidf(call: Call) -> int:
    X = call.arrays[0]
    columns = max(call.attribute("ngram_indexes"), default=0) + 1
    return int(X.shape[0] if X.ndim > 1 else 1) * columns * 4


_NAMES: Mapping[Rule, str] = {
    _view: """Constant Identity If Loop Optional OptionalGetElement OptionalHasElement Scan SequenceAt SequenceConstruct
        SequenceEmpty SequenceErase SequenceInsert SequenceLength SequenceMap Shape Size Slice Split SplitToSequence
        Squeeze Transpose Unsqueeze""",
    _copies: "Flatten Reshape",
    _broadcast: """Add And BitShift BitwiseAnd BitwiseOr BitwiseXor Div Equal Greater GreaterOrEqual Less LessOrEqual
        Max Mean Min Mod Mul Or PRelu Pow Sub Sum Where Xor""",
    _first: """Abs Acos Acosh Asin Asinh Atan Atanh BatchNormalization BitCast BitwiseNot CausalConvWithState Ceil Celu
        Clip Cos Cosh CumProd CumSum DepthToSpace Det Dropout Elu Erf Exp Floor Gelu GlobalAveragePool GlobalLpPool
        GlobalMaxPool GroupNormalization HardSigmoid HardSwish Hardmax InstanceNormalization IsInf IsNaN LRN
        LeakyRelu LinearAttention Log LogSoftmax LpNormalization MeanVarianceNormalization Mish Neg
        NegativeLogLikelihoodLoss Not QuantizeLinear Reciprocal ReduceL1 ReduceL2 ReduceLogSum
        ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare RegexFullMatch Relu
        ReverseSequence RotaryEmbedding Round Scatter ScatterElements ScatterND Selu Shrink Sigmoid Sign Sin Sinh
        Softmax SoftmaxCrossEntropyLoss Softplus Softsign SpaceToDepth Sqrt StringNormalizer SwiGLU Swish Tan Tanh
        TensorScatter ThresholdedRelu Trilu DynamicQuantizeLinear""",
    _with_indices: "ArgMax ArgMin Compress NonMaxSuppression NonZero StringSplit Unique",
    _like: "Bernoulli EyeLike RandomNormalLike RandomUniformLike",
    _random: "RandomNormal RandomUniform",
    _concat: "Concat ConcatFromSequence",
    _matmul: "MatMul MatMulInteger",
    _of_second_type: "CastLike DequantizeLinear",
    _cast: "Cast",
    _constant_of_shape: "ConstantOfShape",
    _einsum: "Einsum",
    _expand: "Expand",
    _gather: "Gather",
    _gather_elements: "GatherElements",
    _gather_nd: "GatherND",
    _gemm: "Gemm",
    _multinomial: "Multinomial",
    _one_hot: "OneHot",
    _pad: "Pad",
    _quantized_matmul: "QLinearMatMul",
    _range: "Range",
    _strings: "StringConcat",
    _tfidf: "TfIdfVectorizer",
    _tile: "Tile",
    _top_k: "TopK",
    _normalized: "LayerNormalization RMSNormalization",
}
RULES: Mapping[str, Rule] = MappingProxyType(
    {**{name: rule for rule, names in _NAMES.items() for name in names.split()}, **SPATIAL}
)
_LARGEST_ELEMENT = 16  # bytes, of complex128
# Loops of Python, whose time no size tells: never run for a constant.
_SLOW = {
    *SPATIAL,
    *("Det", "Einsum", "LRN", "NonMaxSuppression", "RegexFullMatch", "StringNormalizer", "StringSplit"),
    "TfIdfVectorizer",
}


def expected_bytes(node: Any, arrays: Sequence[Any]) -> int | None:
    """Bytes of the results; None where there is no rule, or the inputs are such that the operator will reject them."""
    rule = RULES.get(node.op_type) if not node.domain else None
    if rule is None:
        return None
    try:
        return max(rule(Call(node, arrays)), 0)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        return None


def asker(node: Any) -> Callable[[Sequence[Any], int], int]:
    """A function of the inputs and of the bytes that are left: `expected_bytes`, or 0 where that is surely less.

    For most operators a few multiplications tell; the exact rule is for the rest.
    """
    rule = RULES.get(node.op_type) if not node.domain else None
    if rule is None or rule is _view:
        return lambda arrays, left: 0

    def exact(arrays: Sequence[Any], left: int) -> int:
        return expected_bytes(node, arrays) or 0

    def quick(arrays: Sequence[Any], left: int) -> int:
        bound = _LARGEST_ELEMENT
        for one in arrays:
            if one is not None:
                bound *= one.size
        return 0 if bound <= left else exact(arrays, left)

    return quick if rule in (_broadcast, _first, _copies) else exact


def is_foldable(node: Any) -> bool:
    """Whether the results are of a known size, and come from NumPy's loops, not from Python's."""
    return not node.domain and node.op_type in RULES and node.op_type not in _SLOW
