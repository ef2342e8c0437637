"""Random chains of written operators, compared with ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import numpy as np
from onnx import TensorProto
from onnx_stacks import Graph
from rows import few_rows
from written_models import compare

Step = Callable[[Graph, np.random.Generator, str, list[int], int], tuple[str, list[int]]]


def replaced(sizes: list[int], axis: int, *others: int) -> list[int]:
    return [*sizes[:axis], *others, *sizes[axis + 1 :]]


def _reduce(g: Graph, rng: np.random.Generator, name: str, sizes: list[int], axis: int) -> tuple[str, list[int]]:
    keep = len(sizes) < 3 or bool(rng.integers(2))
    return g.add("ReduceSum", name, g.constant([axis]), keepdims=int(keep)), replaced(sizes, axis, *[1] * keep)


def _gather(g: Graph, rng: np.random.Generator, name: str, sizes: list[int], axis: int) -> tuple[str, list[int]]:
    index = rng.integers(sizes[axis], size=() if len(sizes) > 2 and rng.integers(2) else (2,))
    return g.add("Gather", name, g.constant(index), axis=axis), replaced(sizes, axis, *index.shape)


def _slice(g: Graph, rng: np.random.Generator, name: str, sizes: list[int], axis: int) -> tuple[str, list[int]]:
    result = g.add("Slice", name, *map(g.constant, ([-1], [-999], [axis], [-2])))
    return result, replaced(sizes, axis, (sizes[axis] + 1) // 2)


def _concat(g: Graph, rng: np.random.Generator, name: str, sizes: list[int], axis: int) -> tuple[str, list[int]]:
    """Concatenate two values; two axes of one size are the other way round in one of them."""
    other = g.add("Tanh", name)
    for j, k in combinations(range(len(sizes)), 2):
        if sizes[j] == sizes[k]:
            order = list(range(len(sizes)))
            order[j], order[k] = k, j
            other = g.add("Transpose", name, perm=order)
    return g.add("Concat", name, other, axis=axis), replaced(sizes, axis, 2 * sizes[axis])


def _squeeze(g: Graph, rng: np.random.Generator, name: str, sizes: list[int], axis: int) -> tuple[str, list[int]]:
    if 1 not in sizes or len(sizes) < 3:
        return g.add("Tanh", name), sizes
    axis = sizes.index(1)
    return g.add("Squeeze", name, g.constant([axis - len(sizes)])), replaced(sizes, axis)


def _add(g: Graph, rng: np.random.Generator, name: str, sizes: list[int], axis: int) -> tuple[str, list[int]]:
    """Add a scalar, a bias, or what has all axes behind one."""
    shape = sizes[axis + 1 :]
    return g.add("Add", *rng.permutation([name, g.weights(*shape)]).tolist()), sizes


def _split(g: Graph, rng: np.random.Generator, name: str, sizes: list[int], axis: int) -> tuple[str, list[int]]:
    split = [sizes[axis] - 1, 1]
    _, last = g.add("Split", name, g.constant(split), outputs=2, axis=axis)
    return last, replaced(sizes, axis, 1)


def _times_shape(g: Graph, rng: np.random.Generator, name: str, sizes: list[int], axis: int) -> tuple[str, list[int]]:
    size = g.add("Gather", g.add("Shape", name), g.constant(axis))
    return g.add("Mul", name, g.add("Cast", size, to=TensorProto.FLOAT)), sizes


STEPS: tuple[Step, ...] = (
    *(_reduce, _gather, _slice, _concat, _squeeze, _add, _split, _times_shape),
    lambda g, rng, name, sizes, axis: (g.add("Softmax", name, axis=axis), sizes),
    lambda g, rng, name, sizes, axis: (g.add("MatMul", name, g.weights(sizes[-1], 3)), [*sizes[:-1], 3]),
    lambda g, rng, name, sizes, axis: (g.add("Unsqueeze", name, g.constant([axis])), [*sizes[:axis], 1, *sizes[axis:]]),
    # [0, 0, -1] and the like
    lambda g, rng, name, sizes, axis: (
        g.add("Reshape", name, g.constant([0] * axis + [-1])),
        [*sizes[:axis], int(np.prod(sizes[axis:]))],
    ),
)


@few_rows("seed", range(5), range(5, 1000), mark="nightly")
def test_chains(seed: int, tmp_path: Path) -> None:
    """Operators are drawn one after the other, with a Transpose between most of them."""
    rng = np.random.default_rng(seed)
    g, sizes, name, others = Graph(), [2, 3, 4], "x", []
    for _ in range(rng.integers(3, 9)):
        if rng.random() < 0.7:
            order = rng.permutation(len(sizes)).tolist()
            name, sizes = g.add("Transpose", name, perm=order), [sizes[axis] for axis in order]
        name, sizes = STEPS[rng.integers(len(STEPS))](g, rng, name, sizes, int(rng.integers(len(sizes))))
        others.append(name)
    proto = g.model({"x": (TensorProto.FLOAT, ("A", "B", "C"))}, [name, others[len(others) // 2]])
    X = rng.uniform(-1, 1, (2, 3, 4)).astype(np.float32)
    compare(proto, tmp_path / "model.xml", {"x": X}, there=seed % 4 == 0)
