"""Size rules for operators without windows over space or time.

Each rule takes a `Call`, a node with the values of its inputs, and returns the bytes that the node allocates: its
results, and temporary arrays if onnx's ReferenceEvaluator makes larger ones. `table.py` says which operators have which
rule.
"""

from __future__ import annotations

import math
from typing import Any

from .call import DOUBLE, Call, count, element_bytes, joined, replaced


def view(call: Call) -> int:
    """Return 0: the result is a view, or small."""
    return 0


def first(call: Call) -> int:
    """Return the bytes of a result as large as the first input, with elements of 4 bytes at least."""
    return int(call.arrays[0].size * max(call.arrays[0].itemsize, 4))


def broadcast(call: Call) -> int:
    """Return the bytes of the inputs broadcast against each other."""
    shapes = [array.shape for array in call.arrays if array is not None]
    return count(joined(*shapes)) * call.itemsize


def copies(call: Call) -> int:
    """Return 0, or the bytes of a copy if the first input is not contiguous."""
    X = call.arrays[0]
    return 0 if X.flags.c_contiguous else int(X.nbytes)


def with_indices(call: Call) -> int:
    """Return the bytes of the first input, and of three arrays of indices as large as it."""
    X = call.arrays[0]
    return int(X.size * (X.itemsize + DOUBLE * 3))


def top_k(call: Call) -> int:
    """Return the bytes of TopK, which allocates k numbers whatever the size of the axis."""
    k = call.integers(1) or [call.attribute("k", 1)]
    return with_indices(call) + max(k[0], 0) * DOUBLE * 2


def normalized(call: Call) -> int:
    """Return the bytes of a normalization, which lists axes from `axis` on, however negative it is."""
    return first(call) + max(int(-call.attribute("axis", -1) - call.arrays[0].ndim), 0) * DOUBLE * 8


def cast(call: Call) -> int:
    """Return the bytes of the first input in the dtype `to`."""
    return int(call.arrays[0].size) * element_bytes(call.attribute("to"), DOUBLE)


def of_second_type(call: Call) -> int:
    """Return the bytes of the first input in the dtype of the second."""
    return int(call.arrays[0].size * call.arrays[1].itemsize)


def constant_of_shape(call: Call) -> int:
    """Return the bytes of an array of the shape in the first input."""
    value = call.attribute("value")
    return count(call.integers(0) or ()) * element_bytes(value.data_type if value is not None else None)


def tile(call: Call) -> int:
    """Return the bytes of the first input, repeated; it is repeated axis by axis."""
    X, repeats = call.arrays[0], call.integers(1) or []
    if len(call.arrays) > 2:  # Tile-1: how often, and along which axis
        return int(X.nbytes * max(repeats[0], 0))
    # Axis by axis: an empty result can be large in between.
    return int(X.itemsize) * count(max(a * b, 1) for a, b in zip(X.shape, repeats, strict=True))


def expand(call: Call) -> int:
    """Return the bytes of the first input, broadcast to the shape in the second."""
    X = call.arrays[0]
    shape = call.integers(1) or []
    # An array of ones of that shape comes first, even if the result is empty.
    return max(count(joined(X.shape, shape)), count(shape)) * int(X.itemsize)


def pad(call: Call) -> int:
    """Return the bytes of the first input with its padding, which may be negative."""
    X, axes = call.arrays[0], call.integers(3)
    pads = call.integers(1, "pads") or call.attribute("paddings")  # name in Pad-1
    axes = list(range(X.ndim)) if axes is None else axes
    sizes = [X.shape[axis] + pads[k] + pads[k + len(axes)] for k, axis in enumerate(axes)]
    return count(replaced(X.shape, sizes, axes)) * int(X.itemsize)


def arange(call: Call) -> int:
    """Return the bytes of the numbers from start to limit."""
    start, limit, delta = (array.item() for array in call.arrays)
    steps: int = math.ceil((limit - start) / delta)
    return max(steps, 0) * DOUBLE


def one_hot(call: Call) -> int:
    """Return the bytes of one row of `depth` values for each index."""
    indices, depth, values = call.arrays
    return max(int(indices.size), 1) * max(int(depth.ravel()[0].real), 0) * max(int(values.itemsize), DOUBLE)


def like(call: Call) -> int:
    """Return the bytes of an array of doubles of the shape of the first input."""
    return int(call.arrays[0].size * DOUBLE)


def random(call: Call) -> int:
    """Return the bytes of an array of doubles of the attribute `shape`."""
    return count(call.attribute("shape")) * DOUBLE


def multinomial(call: Call) -> int:
    """Return the bytes of `sample_size` numbers for each row."""
    return int(call.arrays[0].shape[0] * max(call.attribute("sample_size", 1), 0) * DOUBLE)


def _product(A: Any, B: Any, itemsize: int) -> int:
    rows = A.shape[-2:-1] if A.ndim > 1 else ()
    columns = B.shape[-1:] if B.ndim > 1 else ()
    return count((*joined(A.shape[:-2], B.shape[:-2]), *rows, *columns)) * itemsize


def matmul(call: Call) -> int:
    """Return the bytes of the product of the first two inputs."""
    return _product(call.arrays[0], call.arrays[1], max(call.itemsize, 4))


def quantized_matmul(call: Call) -> int:
    """Return the bytes of a product whose factors are the first and fourth input."""
    return _product(call.arrays[0], call.arrays[3], max(call.itemsize, 4))


def gemm(call: Call) -> int:
    """Return the bytes of the product of two matrices, each possibly transposed."""
    A, B = call.arrays[:2]
    return int(A.shape[1 if call.attribute("transA", 0) else 0] * B.shape[0 if call.attribute("transB", 0) else 1]) * (
        call.itemsize
    )


def einsum(call: Call) -> int:
    """Return the bytes of Einsum; "..." covers at most all axes without a letter."""
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
    letters = result.replace("...", "") if arrow else [letter for letter in sizes if left.count(letter) == 1]
    return count((*joined(*rest), *(sizes[letter] for letter in letters))) * call.itemsize


def concat(call: Call) -> int:
    """Return the bytes of all inputs, or of all elements of a sequence, in the widest dtype."""
    arrays = call.arrays[0] if isinstance(call.arrays[0], list) else call.arrays
    return int(sum(array.size for array in arrays) * max((array.itemsize for array in arrays), default=0))


def gather(call: Call) -> int:
    """Return the bytes of one slice of the first input for each index."""
    X, indices = call.arrays
    shape = replaced(X.shape, [indices.size], [call.attribute("axis", 0)])
    return count(shape) * int(X.itemsize)


def gather_elements(call: Call) -> int:
    """Return the bytes of one element for each index."""
    return int(call.arrays[1].size * call.arrays[0].itemsize)


def gather_nd(call: Call) -> int:
    """Return the bytes of one block of the first input for each row of indices."""
    X, indices = call.arrays
    inner = X.shape[call.attribute("batch_dims", 0) + indices.shape[-1] :]
    return count((*indices.shape[:-1], *inner)) * int(X.itemsize)


def strings(call: Call) -> int:
    """Return the bytes of strings that are concatenated element by element."""
    lengths = [max((len(text) for text in array.ravel()), default=0) for array in call.arrays]
    return count(joined(*(array.shape for array in call.arrays))) * (DOUBLE + 4 * sum(lengths))


def tfidf(call: Call) -> int:
    """Return the bytes of one row of counts for each row of the first input."""
    X = call.arrays[0]
    columns = max(call.attribute("ngram_indexes"), default=0) + 1
    return int(X.shape[0] if X.ndim > 1 else 1) * columns * 4
