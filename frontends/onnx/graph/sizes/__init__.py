"""Upper bounds for the bytes that an operator takes, from its inputs, before it runs: one rule per operator.

The results and the temporary arrays of onnx's ReferenceEvaluator count. The bound of views of inputs is 0. Buffers of
NumPy and objects that do not grow with the inputs (up to about 200 kB) do not count.

`call` is the argument of a rule; `rules` and `spatial` are the rules; `table` maps operators to rules.
"""

from .table import RULES, bytes_beyond, expected_bytes, is_foldable

__all__ = ["RULES", "bytes_beyond", "expected_bytes", "is_foldable"]
