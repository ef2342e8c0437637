"""Optimizations of ONNX Runtime 1.31 that sessions disable: faulty or slow ones, and those that cannot apply.

Fuzzing (tests/fuzz) or onnx's node tests revealed the faults.
"""

from __future__ import annotations

from collections.abc import Callable

from ..onnx_package import import_onnx
from .types import Contents


def _quantizes(contents: Contents) -> bool:
    return not contents.operators.isdisjoint(_QUANTIZERS)


def _lacks_codes(contents: Contents) -> bool:
    return contents.operators.isdisjoint((*_QUANTIZERS, "MatMulNBits"))


def _has_float16(contents: Contents) -> bool:
    return import_onnx().TensorProto.FLOAT16 in contents.elements


_QUANTIZERS = ("QuantizeLinear", "DequantizeLinear")
_ROUNDS = "rounds an output value that a Transpose and a QuantizeLinear follow"
# By optimization: the condition that disables it, and why.
OPTIMIZERS: dict[str, tuple[Callable[[Contents], bool], str]] = {
    "ConstantFolding": (lambda _: True, "constants are already folded, within a budget that ONNX Runtime lacks"),
    "WeightBiasQuantization": (lambda _: True, "floating-point weights of a file must stay floating-point"),
    "MatMulAddFusion": (
        _lacks_codes,
        "Gemm and its two Reshapes are as fast as MatMul and Add, and take 4 of 16 ms to load 12 of them in 415 nodes",
    ),
    "MatmulTransposeFusion": (_has_float16, "crashes the process at Transpose -> MatMul of float16 with a constant"),
    "TransposeOptimizer": (_quantizes, _ROUNDS),
    "TransposeOptimizer_CPUExecutionProvider": (_quantizes, _ROUNDS),
    "QDQPropagationTransformer": (
        _quantizes,
        f"{_ROUNDS}; crashes the process at DequantizeLinear -> Transpose if a body captures the result",
    ),
}


_NORMALIZATIONS = "LayerNormalization RMSNormalization SimplifiedLayerNormalization SkipLayerNormalization"
_NORMALIZES = "BiasSkipLayerNormFusion EmbedLayerNormFusion SimplifiedLayerNormFusion SkipLayerNormFusion"
# Operators, and the optimizations that cannot apply to a graph without them; disabling these saves time.
APPLICABLE: dict[str, str] = {
    "": "FreeDimensionOverrideTransformer",  # no session here has sizes to override
    " ".join(_QUANTIZERS): """DoubleQDQPairsRemover EnsureUniqueDQForNodeUnit QDQFinalCleanupTransformer
        QDQPropagationTransformer QDQS8ToU8Transformer QDQSelectorActionTransformer WhereDummyDq""",
    "MatMulInteger": "DynamicQuantizeMatMulFusion MatMulIntegerToFloatFusion",
    "MatMul MatMulNBits": "MatMulActivationFusion MatMulNBitsFusion MatMulScaleFusion",
    "MatMul": "MatmulTransposeFusion",
    "Gemm MatMul": "GemmActivationFusion",
    "Conv": "ConvActivationFusion ConvAddActivationFusion",
    "Erf": "GeluFusionL1 GeluFusionL2",
    "Erf FastGelu Gelu": "BiasGeluFusion",
    "ReduceMean": "LayerNormFusionL1 LayerNormFusionL2",
    "Div": "LayerNormFusionL1 LayerNormFusionL2",
    # A fusion makes these of ReduceMean and Div.
    f"{_NORMALIZATIONS} ReduceMean": _NORMALIZES,
    f"{_NORMALIZATIONS} Div": _NORMALIZES,
    "Softmax": "AttentionFusion BiasSoftmaxFusion",
    "Dropout": "BiasDropoutFusion",
    "GroupQueryAttention": "GroupQueryAttentionFusion GroupQueryAttentionPreNormFusion",
    "Sigmoid Swish": "QuickGeluFusion SwiGluFusion",
    "Tanh": "FastGeluFusion",
    "Reshape": "ReshapeFusion",
    "Gather": "GatherToSliceFusion",
    "Range": "GatherToSliceFusion",
    "Mul": "QuickGeluFusion SwiGluFusion",
    "Gather Slice": "GatherSliceToSplitFusion",
    "Slice": "SliceConcatToSpaceToDepthFusion",
}


def disabled_optimizers(contents: Contents) -> list[str]:
    """Return the names of the optimizations that a model's session disables."""
    wrong = [name for name, (applies, _) in OPTIMIZERS.items() if applies(contents)]
    rows = (row for row in APPLICABLE.items() if contents.operators.isdisjoint(row[0].split()))
    return list(dict.fromkeys([*wrong, *(name for _, names in rows for name in names.split())]))
