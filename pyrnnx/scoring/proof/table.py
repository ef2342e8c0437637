"""Table of ONNX operators: the effect of each along the axes of its inputs.

An operator without a row here counts as one that combines rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType


class Kind(Enum):
    """Effect of an operator; each has a function in `rules`."""

    ELEMENTWISE = "each element by itself, with broadcasting; zero may become anything"
    KEEPS_ZERO = "each element by itself; zero stays zero"
    SUM = "elements added or subtracted: zero if all operands are zero"
    PRODUCT = "elements multiplied: zero if one operand is zero and the others are zero or finite constants"
    QUOTIENT = "the first by the second: zero if the first is zero and the second a constant without zeros"
    CHOICE = "elements of the second or third operand: zero if both are zero"
    REDUCE_SUM = "a sum over axes, to which zeros add nothing"
    REDUCE = "a reduction over axes that depends on the number of zeros"
    REDUCE_NONZERO = "a reduction over axes whose result for zeros is not zero"
    ALONG_AXIS = "along one axis, which stays"
    FROM_AXIS = "along an axis and all later axes, which stay"
    ALONG_SPACE = "along axes 2 and above, which stay"
    WINDOW = "windows along axes 2 and above, with sums over axis 1"
    WINDOW_OF_CHANNEL = "windows along axes 2 and above"
    WHOLE_SPACE = "axes 2 and above reduced to 1"
    CHANNEL = "each element by itself, with constants along axis 1"
    CUMULATIVE = "cumulative sums along one axis"
    CODES = "each element by itself, with a constant scale"
    DROPOUT = "nothing, except in training"
    GATHER_ELEMENTS = "elements along one axis, by indices with the other axes of the data"
    CAST = "another element type"
    IDENTITY = "nothing"
    RECURRENT = "RNN, GRU, LSTM"
    MATMUL = "matrix products"
    GEMM = "a matrix product with a constant"
    TRANSPOSE = "axes in another order"
    RESHAPE = "the same elements in another shape"
    FLATTEN = "axes joined to two"
    SQUEEZE = "axes of size 1 removed"
    UNSQUEEZE = "axes of size 1 added"
    EXPAND = "axes of size 1 repeated to a shape"
    TILE = "axes repeated"
    CONCAT = "arrays concatenated along an axis"
    SPLIT = "pieces of an axis"
    SLICE = "a part of axes"
    GATHER = "chosen indices of an axis"
    PAD = "axes extended"
    SHAPE = "the sizes of axes"
    SIZE = "the number of elements"
    CONSTANT_OF_SHAPE = "a constant of a shape"
    RANGE = "ascending numbers"


_ROWS: Mapping[Kind, str] = {
    Kind.ELEMENTWISE: """Acos Acosh And BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Celu Clip Cos Cosh Equal Exp
        Greater GreaterOrEqual HardSigmoid IsInf IsNaN Less LessOrEqual Log Mod Not Or Pow Reciprocal Shrink Sigmoid
        Softplus Xor""",
    Kind.KEEPS_ZERO: """Abs Asin Asinh Atan Atanh Ceil Elu Erf Floor Gelu HardSwish LeakyRelu Mish Neg Relu Round Selu
        Sign Sin Sinh Softsign Sqrt Tan Tanh ThresholdedRelu""",
    Kind.SUM: "Add Max Mean Min Sub Sum",
    Kind.PRODUCT: "Mul PRelu",
    Kind.QUOTIENT: "Div",
    Kind.CHOICE: "Where",
    Kind.REDUCE_SUM: "ReduceL1 ReduceL2 ReduceSum ReduceSumSquare",
    Kind.REDUCE: "ReduceMax ReduceMean ReduceMin ReduceProd",
    Kind.REDUCE_NONZERO: "ArgMax ArgMin ReduceLogSum ReduceLogSumExp",
    Kind.ALONG_AXIS: "Hardmax LogSoftmax LpNormalization Softmax",
    Kind.FROM_AXIS: "LayerNormalization RMSNormalization",
    Kind.ALONG_SPACE: "InstanceNormalization",
    Kind.WINDOW: "Conv ConvTranspose",
    Kind.WINDOW_OF_CHANNEL: "AveragePool LpPool MaxPool",
    Kind.WHOLE_SPACE: "GlobalAveragePool GlobalLpPool GlobalMaxPool",
    Kind.CHANNEL: "BatchNormalization",
    Kind.CUMULATIVE: "CumSum",
    Kind.CODES: "DequantizeLinear QuantizeLinear",
    Kind.DROPOUT: "Dropout",
    Kind.GATHER_ELEMENTS: "GatherElements",
    Kind.CAST: "Cast CastLike",
    Kind.IDENTITY: "Identity",
    Kind.RECURRENT: "GRU LSTM RNN",
    Kind.MATMUL: "MatMul",
    Kind.GEMM: "Gemm",
    Kind.TRANSPOSE: "Transpose",
    Kind.RESHAPE: "Reshape",
    Kind.FLATTEN: "Flatten",
    Kind.SQUEEZE: "Squeeze",
    Kind.UNSQUEEZE: "Unsqueeze",
    Kind.EXPAND: "Expand",
    Kind.TILE: "Tile",
    Kind.CONCAT: "Concat",
    Kind.SPLIT: "Split",
    Kind.SLICE: "Slice",
    Kind.GATHER: "Gather",
    Kind.PAD: "Pad",
    Kind.SHAPE: "Shape",
    Kind.SIZE: "Size",
    Kind.CONSTANT_OF_SHAPE: "ConstantOfShape",
    Kind.RANGE: "Range",
}

OPERATORS: Mapping[str, Kind] = MappingProxyType(
    {name: kind for kind, names in _ROWS.items() for name in names.split()}
)
