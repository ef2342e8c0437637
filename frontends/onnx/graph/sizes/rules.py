"""Size rules for operators without windows over space or time.

Each rule takes a `Call`, a node with the values of its inputs, and returns the bytes that the node takes at its peak:
its results, and the temporary arrays of onnx's ReferenceEvaluator. The argument `times` of some rules is the number of
arrays at the peak. `table.py` says which operators have which rule.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .call import DOUBLE, LISTED, Call, count, dtype_of, element_bytes, filled, joined, replaced

_TEXT = 80  # bytes of a str object without its characters, and of the reference to it
_OBJECT = 160  # bytes of an array of one element, or of a small object of Python


def view(call: Call) -> int:
    """Return 0: the result is a view, or small."""
    return 0


def _element(X: Any) -> int:
    """Return the bytes of an element of temporary arrays: float16 is often computed in float32."""
    return max(int(X.itemsize), 4)


def first(call: Call, times: int) -> int:
    """Return the bytes of arrays as large as the first input."""
    return times * int(call.arrays[0].size) * _element(call.arrays[0])


def quantized(call: Call, times: int) -> int:
    """Return the bytes of arrays as large as the first input, and of scales and zero points.

    These are repeated `block_size` times, or else they are broadcast with the first input along an axis.
    """
    X, others = call.arrays[0], [array for array in call.arrays[1:] if array is not None]
    block: int = max(call.attribute("block_size", 0), 0)
    shape = list(X.shape)
    sizes = [int(array.size) for array in others if array.ndim == 1 and array.size > 1]
    if sizes and not block:
        axis = call.attribute("axis", 1)
        shape = replaced(shape, [max(shape[axis], *sizes)], [axis])
    return times * count(shape) * _element(X) + block * sum(int(array.nbytes) for array in others)


def across(call: Call, times: int) -> int:
    """Return the bytes of `first` for operators that compute along axes: an empty axis counts as one element."""
    X = call.arrays[0]
    return times * filled(X.shape) * _element(X)


def by_channel(call: Call, times: int) -> int:
    """Return the bytes of arrays as large as the first input with a vector for each other input, and of the vectors.

    The vectors are broadcast along the second axis of the first input.
    """
    X, vectors = call.arrays[0], [max(int(array.size), 1) for array in call.arrays[1:]]
    ones = (1,) * (X.ndim - 2)
    shape = joined(X.shape, *((size, *ones) for size in vectors))
    channels = max(int(X.shape[1]), *vectors, count(joined(X.shape[1:2], *(array.shape for array in call.arrays[1:]))))
    return times * (max(filled(X.shape), count(shape)) + len(vectors) * channels) * max(call.itemsize, 4)


def reduced(call: Call, times: int) -> int:
    """Return the bytes of a reduction with `times` temporary arrays as large as the input."""
    X, axes = call.arrays[0], call.integers(1, "axes")
    if not axes:
        axes = [] if call.attribute("noop_with_empty_axes", 0) else list(range(X.ndim))
    return _reduced(X, axes, times)


def _reduced(X: Any, axes: Sequence[int], times: int) -> int:
    result = count(replaced(X.shape, [1] * len(axes), axes))
    itemsize = _element(X) if times or not X.size else int(X.itemsize)
    return (times * int(X.size) + (3 + min(times, 1)) * result) * itemsize


def global_pool(call: Call, times: int) -> int:
    """Return the bytes of a reduction over space; the evaluator's GlobalMaxPool reduces the last two axes."""
    X = call.arrays[0]
    first_axis = X.ndim - 2 if call.node.op_type == "GlobalMaxPool" else 2
    return _reduced(X, list(range(first_axis, X.ndim)), times)


def arg_reduced(call: Call) -> int:
    """Return the bytes of three arrays of indices without one axis, and of a copy unless that is the last in memory."""
    X, axis = call.arrays[0], call.attribute("axis", 0)
    is_copied = call.attribute("select_last_index", 0) or axis not in (-1, X.ndim - 1)
    return _indices_without(X, axis) + (int(X.nbytes) if is_copied else copies(call))


def hardmax(call: Call) -> int:
    """Return the bytes of the result, of a copy, and of indices without one axis."""
    return first(call, 2) + _indices_without(call.arrays[0], call.attribute("axis", -1))


def _indices_without(X: Any, axis: int) -> int:
    return count(replaced(X.shape, [1], [axis])) * DOUBLE * 3


def det(call: Call) -> int:
    """Return the bytes of two numbers for each matrix, and of a copy in double."""
    X = call.arrays[0]
    return (count(X.shape[:-2]) * 2 + (int(X.size) if X.itemsize < DOUBLE else 0)) * DOUBLE


def broadcast(call: Call, times: int) -> int:
    """Return the bytes of arrays as large as the inputs broadcast against each other."""
    return booleans(call, times * call.itemsize)


def booleans(call: Call, times: int) -> int:
    """Return the bytes of arrays of bytes as large as the inputs broadcast against each other."""
    return times * count(joined(*(array.shape for array in call.arrays if array is not None)))


def divided(call: Call, times: int) -> int:
    """Return the bytes of a division; only that of integers has temporary arrays."""
    return broadcast(call, times if call.arrays[0].dtype.kind in "iu" else 1)


def dropout(call: Call) -> int:
    """Return the bytes of the mask, and in training of arrays as large as the first input."""
    training = call.input(2)
    return first(call, 3) if training is not None and training.any() else int(call.arrays[0].size)


def copy(call: Call) -> int:
    """Return the bytes of a copy of the first input; 0 for a sequence, whose elements are not copied."""
    return int(getattr(call.arrays[0], "nbytes", 0))


def copies(call: Call) -> int:
    """Return 0, or the bytes of a copy if the first input is not contiguous."""
    X = call.arrays[0]
    return 0 if X.flags.c_contiguous else int(X.nbytes)


def non_zero(call: Call) -> int:
    """Return the bytes of two arrays with the indices of all elements."""
    X = call.arrays[0]
    return int(X.size * max(X.ndim, 1)) * DOUBLE * 2


def compress(call: Call) -> int:
    """Return the bytes of the first input, of its copy if it is not contiguous, and of the indices of the condition."""
    X, condition = call.arrays
    return int(X.nbytes + condition.size * DOUBLE) + copies(call)


def unique(call: Call) -> int:
    """Return the bytes of Unique, which makes a field of a structure from each element across the axis.

    It finds the order of the first occurrences with a dictionary.
    """
    X, axis = call.arrays[0], call.attribute("axis")
    fields = 0 if axis is None else filled(replaced(X.shape, [1], [axis])) * _OBJECT * 4
    unsorted = 0 if call.attribute("sorted", 1) else _OBJECT // 2
    return filled(X.shape) * (_element(X) * 4 + DOUBLE * 10 + unsorted) + fields


def top_k(call: Call) -> int:
    """Return the bytes of TopK: an index per axis, the order, and k results whatever the size of the axis."""
    X, k = call.arrays[0], call.integers(1) or [call.attribute("k", 1)]
    axis = replaced(X.shape, [max(k[0], 0)], [call.attribute("axis", -1)])
    return int(X.nbytes + X.size * (X.ndim + 3) * DOUBLE) + filled(axis) * DOUBLE * 2


def normalized(call: Call, times: int) -> int:
    """Return the bytes of a normalization, which lists axes from `axis` on, however negative it is.

    The scale may broadcast the result.
    """
    listed = max(int(-call.attribute("axis", -1) - call.arrays[0].ndim), 0) * DOUBLE * 8
    return across(call, times) + booleans(call, 2 * max(call.itemsize, 4)) + listed


def loss(call: Call, times: int) -> int:
    """Return the bytes of `across`, of temporary arrays as large as the target, and of a copy of other strides."""
    return across(call, times) + int(call.arrays[1].size) * DOUBLE * 4 + copies(call)


def suppressed(call: Call) -> int:
    """Return the bytes of NonMaxSuppression: an object for each score."""
    return filled(call.arrays[1].shape) * _OBJECT


def cast(call: Call) -> int:
    """Return the bytes of the first input in the dtype `to`."""
    return _cast(call.arrays[0], dtype_of(call.attribute("to")))


def cast_like(call: Call) -> int:
    """Return the bytes of the first input in the dtype of the second."""
    return _cast(call.arrays[0], call.arrays[1].dtype)


def _cast(X: Any, dtype: Any) -> int:
    if dtype.kind == "O":
        return int(X.size) * _TEXT * 2
    clipped = DOUBLE if dtype.name.startswith("float8") else 0
    return int(X.size * (dtype.itemsize + clipped))


def constant_of_shape(call: Call) -> int:
    """Return the bytes of an array of the shape in the first input."""
    value = call.attribute("value")
    return count(call.integers(0) or ()) * element_bytes(value.data_type if value is not None else None)


def tile(call: Call) -> int:
    """Return the bytes of the first input, repeated axis by axis, and of at most half of it before the last axis."""
    X, repeats = call.arrays[0], call.integers(1) or []
    if len(call.arrays) > 2:  # Tile-1: how often, and along which axis
        return int(X.nbytes * max(repeats[0], 0))
    # Axis by axis: an empty result can be large in between.
    return int(X.itemsize) * filled(a * b for a, b in zip(X.shape, repeats, strict=True)) * 3 // 2


def expand(call: Call) -> int:
    """Return the bytes of the first input, broadcast to the shape in the second."""
    X = call.arrays[0]
    shape = call.integers(1) or []
    # An array of ones of that shape comes first, even if the result is empty.
    return (count(joined(X.shape, shape)) + count(shape)) * int(X.itemsize)


def pad(call: Call) -> int:
    """Return the bytes of the first input with its padding, which may be negative."""
    X, axes = call.arrays[0], call.integers(3)
    pads = call.integers(1, "pads") or call.attribute("paddings")  # name in Pad-1
    axes = list(range(X.ndim)) if axes is None else axes
    sizes = [X.shape[axis] + pads[k] + pads[k + len(axes)] for k, axis in enumerate(axes)]
    return 2 * count(replaced(X.shape, sizes, axes)) * int(X.itemsize)


def arange(call: Call) -> int:
    """Return the bytes of the numbers from start to limit."""
    start, limit, delta = (array.item() for array in call.arrays)
    steps: int = math.ceil((limit - start) / delta)
    return max(steps, 0) * DOUBLE * 2


def one_hot(call: Call) -> int:
    """Return the bytes of one row of `depth` values for each index."""
    indices, depth, values = call.arrays
    return max(int(indices.size), 1) * max(int(depth.ravel()[0].real), 0) * _element(values) * 3


def like(call: Call) -> int:
    """Return the bytes of two arrays of doubles of the shape of the first input."""
    return int(call.arrays[0].size) * DOUBLE * 2


def eye(call: Call) -> int:
    """Return the bytes of two matrices of the dtype of the attribute or the first input."""
    X, number = call.arrays[0], call.attribute("dtype")
    return int(X.size) * element_bytes(number, X.itemsize) * 2


def random(call: Call) -> int:
    """Return the bytes of two arrays of doubles of the attribute `shape`."""
    return count(call.attribute("shape")) * DOUBLE * 2


def multinomial(call: Call) -> int:
    """Return the bytes of `sample_size` numbers for each row."""
    return int(call.arrays[0].shape[0] * max(call.attribute("sample_size", 1), 0) * DOUBLE)


def _product(A: Any, B: Any) -> list[int]:
    """Return the shape of a product of matrices."""
    rows = A.shape[-2:-1] if A.ndim > 1 else ()
    columns = B.shape[-1:] if B.ndim > 1 else ()
    return [*joined(A.shape[:-2], B.shape[:-2]), *rows, *columns]


def matmul(call: Call) -> int:
    """Return the bytes of the product of the first two inputs, and of copies of those with other strides."""
    A, B = call.arrays[:2]
    return count(_product(A, B)) * max(call.itemsize, 4) + _strided(A) + _strided(B)


def _strided(factor: Any) -> int:
    """Return the bytes of the copy of a factor that BLAS cannot read as it is."""
    return 0 if factor.flags.forc else int(factor.nbytes)


def integer_matmul(call: Call) -> int:
    """Return the bytes of the product of the first two inputs, which become int32."""
    A, B = call.arrays[:2]
    return (int(A.size + B.size) + count(_product(A, B))) * DOUBLE


def quantized_matmul(call: Call) -> int:
    """Return the bytes of a product whose factors are the first and fourth input, times scales."""
    A, B, scales = call.arrays[0], call.arrays[3], (call.arrays[k].shape for k in (1, 4, 6))
    return (int(A.size + B.size) + count(joined(_product(A, B), *scales)) * 4) * DOUBLE


def gemm(call: Call) -> int:
    """Return the bytes of the product of two matrices, each possibly transposed, of C times beta, and of the result."""
    A, B = call.arrays[:2]
    rows, columns = A.shape[1 if call.attribute("transA", 0) else 0], B.shape[0 if call.attribute("transB", 0) else 1]
    times = 2 if call.input(2) is None else 3
    return times * int(rows * columns) * call.itemsize + _strided(A) + _strided(B)


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
    """Return the bytes of one slice of the first input for each index, and of copies.

    Those of indices that are not int64 yet, and of inputs that are not contiguous.
    """
    X, indices = call.arrays
    shape = replaced(X.shape, [indices.size], [call.attribute("axis", 0)])
    widened = int(indices.size) * DOUBLE if indices.itemsize < DOUBLE else 0
    copied = 0 if indices.flags.c_contiguous else int(indices.nbytes)
    return count(shape) * int(X.itemsize) + widened + copied + copies(call)


def gather_elements(call: Call) -> int:
    """Return the bytes of two elements for each index, and of the first input as a list of slices along the axis."""
    X, indices = call.arrays
    slices = int(X.shape[call.attribute("axis", 0)]) * _OBJECT * 2
    return int(indices.size * X.itemsize) * 2 + slices + int(X.nbytes)


def gather_nd(call: Call) -> int:
    """Return the bytes of one block of the first input for each row of indices, and of a list of the blocks."""
    X, indices = call.arrays
    rows, inner = count(indices.shape[:-1]), X.shape[call.attribute("batch_dims", 0) + indices.shape[-1] :]
    return rows * (count(inner) * int(X.itemsize) + (_OBJECT if inner else LISTED))


def scatter(call: Call) -> int:
    """Return the bytes of the first input, and of lists of the places along each axis of the indices."""
    return first(call, 1) + int(sum(call.arrays[1].shape)) * LISTED


def strings(call: Call) -> int:
    """Return the bytes of strings that are made from the inputs, element by element."""
    length = sum(max((len(text) for text in array.ravel()), default=0) for array in call.arrays)
    return booleans(call, _TEXT + 10 * length)


def split_strings(call: Call) -> int:
    """Return the bytes of the pieces of strings."""
    texts, delimiter = call.arrays[0].ravel().tolist(), call.attribute("delimiter") or None
    pieces = max((len(text.split(delimiter)) for text in texts), default=0)
    return len(texts) * (3 * _TEXT + pieces * _TEXT + 8 * max(map(len, texts), default=0))


def tfidf(call: Call) -> int:
    """Return the bytes of one row of counts for each row of the first input."""
    X = call.arrays[0]
    columns = max(call.attribute("ngram_indexes"), default=0) + 1
    return int(X.shape[0] if X.ndim > 1 else 1) * columns * DOUBLE * 2
