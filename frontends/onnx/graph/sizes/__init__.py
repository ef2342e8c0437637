"""How many bytes the results of an operator take, from its inputs, before it runs: one rule for each operator.

A rule may say more than what there will be, and says 0 where the results are views of the inputs. Where an operator of
onnx's ReferenceEvaluator first makes something larger than its results (padded, dilated), that is counted too.

`call` is what a rule sees; `rules` and `spatial` are the rules; `table` says which operator has which.
"""

from .table import RULES, bytes_beyond, expected_bytes, is_foldable

__all__ = ["RULES", "bytes_beyond", "expected_bytes", "is_foldable"]
