"""Search for recurrent layers in graphs without recurrent nodes.

forms             values as sums of products, and the operations that only move them
scope             facts about values: node, constant, shape
moves, values     forms of values, from the nodes that compute them
cells             forms that are the equations of an RNN, a GRU or an LSTM
unrolled          cells in chains with shared weights
loops, bodies     Loop and Scan, and the cells in their bodies    masks     states that stay in some steps
builder           the recurrent node in their place
recognise         the search
"""

from .loops import remove_invariants
from .recognise import recognise
from .unrolled import PRODUCTS
from .values import ACTIVATIONS, LIMITS, filler

__all__ = ["ACTIVATIONS", "LIMITS", "PRODUCTS", "filler", "recognise", "remove_invariants"]
