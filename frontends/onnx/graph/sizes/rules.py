"""Size rules for operators without windows over space or time."""

from __future__ import annotations

import math
from typing import Any

from .call import DOUBLE, Call, count, element_bytes, joined, replaced


def view(call: Call) -> int:
    return 0


def first(call: Call) -> int:
    return int(call.arrays[0].size * max(call.arrays[0].itemsize, 4))


def broadcast(call: Call) -> int:
    shapes = [array.shape for array in call.arrays if array is not None]
    return count(joined(*shapes)) * call.itemsize


def copies(call: Call) -> int:
    """Return 0, or the bytes of a copy if the first input is not contiguous."""
    X = call.arrays[0]
    return 0 if X.flags.c_contiguous else int(X.nbytes)


def with_indices(call: Call) -> int:
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
    return int(call.arrays[0].size) * element_bytes(call.attribute("to"), DOUBLE)


def of_second_type(call: Call) -> int:
    return int(call.arrays[0].size * call.arrays[1].itemsize)


def constant_of_shape(call: Call) -> int:
    value = call.attribute("value")
    return count(call.integers(0) or ()) * element_bytes(value.data_type if value is not None else None)


def tile(call: Call) -> int:
    X, repeats = call.arrays[0], call.integers(1) or []
    if len(call.arrays) > 2:  # Tile-1: how often, and along which axis
        return int(X.nbytes * max(repeats[0], 0))
    # Axis by axis: an empty result can be large in between.
    return int(X.itemsize) * count(max(a * b, 1) for a, b in zip(X.shape, repeats, strict=True))


def expand(call: Call) -> int:
    X = call.arrays[0]
    shape = call.integers(1) or []
    # An array of ones of that shape comes first, even if the result is empty.
    return max(count(joined(X.shape, shape)), count(shape)) * int(X.itemsize)


def pad(call: Call) -> int:
    X, axes = call.arrays[0], call.integers(3)
    pads = call.integers(1, "pads") or call.attribute("paddings")  # name in Pad-1
    axes = list(range(X.ndim)) if axes is None else axes
    sizes = [X.shape[axis] + pads[k] + pads[k + len(axes)] for k, axis in enumerate(axes)]
    return count(replaced(X.shape, sizes, axes)) * int(X.itemsize)


def arange(call: Call) -> int:
    start, limit, delta = (array.item() for array in call.arrays)
    steps: int = math.ceil((limit - start) / delta)
    return max(steps, 0) * DOUBLE


def one_hot(call: Call) -> int:
    indices, depth, values = call.arrays
    return max(int(indices.size), 1) * max(int(depth.ravel()[0].real), 0) * max(int(values.itemsize), DOUBLE)


def like(call: Call) -> int:
    return int(call.arrays[0].size * DOUBLE)


def random(call: Call) -> int:
    return count(call.attribute("shape")) * DOUBLE


def multinomial(call: Call) -> int:
    return int(call.arrays[0].shape[0] * max(call.attribute("sample_size", 1), 0) * DOUBLE)


def _product(A: Any, B: Any, itemsize: int) -> int:
    rows = A.shape[-2:-1] if A.ndim > 1 else ()
    columns = B.shape[-1:] if B.ndim > 1 else ()
    return count((*joined(A.shape[:-2], B.shape[:-2]), *rows, *columns)) * itemsize


def matmul(call: Call) -> int:
    return _product(call.arrays[0], call.arrays[1], max(call.itemsize, 4))


def quantized_matmul(call: Call) -> int:
    return _product(call.arrays[0], call.arrays[3], max(call.itemsize, 4))


def gemm(call: Call) -> int:
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
    arrays = call.arrays[0] if isinstance(call.arrays[0], list) else call.arrays
    return int(sum(array.size for array in arrays) * max((array.itemsize for array in arrays), default=0))


def gather(call: Call) -> int:
    X, indices = call.arrays
    shape = replaced(X.shape, [indices.size], [call.attribute("axis", 0)])
    return count(shape) * int(X.itemsize)


def gather_elements(call: Call) -> int:
    return int(call.arrays[1].size * call.arrays[0].itemsize)


def gather_nd(call: Call) -> int:
    X, indices = call.arrays
    inner = X.shape[call.attribute("batch_dims", 0) + indices.shape[-1] :]
    return count((*indices.shape[:-1], *inner)) * int(X.itemsize)


def strings(call: Call) -> int:
    lengths = [max((len(text) for text in array.ravel()), default=0) for array in call.arrays]
    return count(joined(*(array.shape for array in call.arrays))) * (DOUBLE + 4 * sum(lengths))


def tfidf(call: Call) -> int:
    X = call.arrays[0]
    columns = max(call.attribute("ngram_indexes"), default=0) + 1
    return int(X.shape[0] if X.ndim > 1 else 1) * columns * 4
