"""A random graph under construction: values with symbolic shapes, nodes, constants and inputs."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import onnx
from fuzz.sizes import Shape, Size
from onnx import helper

from pyrnnx.testing.numbers import Array

MOST_AXES = 5
UNARY = ("Tanh", "Sigmoid", "Neg", "Abs", "Identity", "Softsign")


@dataclass(frozen=True)
class Value:
    """A value of the graph.

    Attributes
    ----------
    is_exact : bool
        Whether all runtimes compute the same bits; only such values are quantized, for others may round apart.
    """

    name: str
    shape: Shape
    is_exact: bool = False


@dataclass
class Graph:
    """A graph while it is drawn: the main graph, or a body, which shares names, constants and inputs with it."""

    rng: random.Random
    opset: int
    values: list[Value]
    depth: int = 0
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: dict[str, Array] = field(default_factory=dict)
    inputs: dict[str, tuple[str, Shape]] = field(default_factory=dict)  # kind and shape
    counter: list[int] = field(default_factory=lambda: [0])

    def body(self, *values: Value) -> Graph:
        """Return an empty body, which may capture all values so far."""
        return replace(self, values=[*self.values, *values], depth=self.depth + 1, nodes=[])

    def name(self) -> str:
        self.counter[0] += 1
        return f"v{self.counter[0]}"

    def integers(self, *numbers: int) -> str:
        return self.constant(np.array(numbers, np.int64))

    def constant(self, array: Array) -> str:
        name = self.name()
        self.constants[name] = array
        return name

    def weights(self, shape: tuple[int, ...]) -> str:
        """Return float weights: shared with another node, new, or dequantized from new codes."""
        shared = [name for name, one in self.constants.items() if one.shape == shape and one.dtype == np.float32]
        if shared and self.rng.random() < 0.5:
            return self.rng.choice(shared)
        generator = np.random.default_rng(self.rng.randrange(2**32))
        if self.rng.random() < 0.2:
            codes = self.constant(generator.integers(-127, 128, shape).astype(np.int8))
            scale, zero = self.constant(np.array(0.004, np.float32)), self.constant(np.array(3, np.int8))
            return self.add("DequantizeLinear", [codes, scale, zero])
        return self.constant(generator.uniform(-0.6, 0.6, shape).astype(np.float32))

    def input(self, name: str, kind: str, shape: Shape = ()) -> str:
        self.inputs.setdefault(name, (kind, shape))
        return name

    def add(self, operator: str, inputs: list[str], **attributes: Any) -> str:
        """Append a node of one output and return the output's name."""
        name = self.name()
        self.nodes.append(helper.make_node(operator, inputs, [name], **attributes))
        return name

    def pick(self, fits: Callable[[Value], bool] = lambda _: True) -> Value:
        """Return a value that fits; late values are likelier, so that graphs become deep.

        Raises
        ------
        NoValue
        """
        fitting = [value for value in self.values if fits(value)]
        if not fitting:
            raise NoValue
        return self.rng.choice(fitting[-4:] if self.rng.random() < 0.7 else fitting)


class NoValue(Exception):  # noqa: N818  # the draw is repeated
    """No value fits what was drawn, or the result would be too large."""


def number_of(one: Size) -> int:
    """Return a size that depends on neither T nor N.

    Raises
    ------
    NoValue
    """
    number = one.number
    if number is None:
        raise NoValue
    return number
