"""Upper bounds for the bytes of an operator's results, from its inputs, before it runs: one rule per operator.

The bound of views of inputs is 0. Larger temporary arrays of onnx's ReferenceEvaluator (padded, dilated) count too.

`call` is the argument of a rule; `rules` and `spatial` are the rules; `table` maps operators to rules.
"""

from .table import RULES, bytes_beyond, expected_bytes, is_foldable

__all__ = ["RULES", "bytes_beyond", "expected_bytes", "is_foldable"]
