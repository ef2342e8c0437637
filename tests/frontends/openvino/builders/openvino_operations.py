"""Table of the operations in the tests' IRs, each as a model of one operation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from openvino_irs import TOLERANCE, Array, random_array, rng_of

openvino = pytest.importorskip("openvino")

f32 = np.float32
i8, u8, u16, i32, u32, i64 = np.int8, np.uint8, np.uint16, np.int32, np.uint32, np.int64
boolean = np.bool_


class Maker:
    """Inputs of the model, each with an array to run it with."""

    def __init__(self, name: str, *, dynamic: bool) -> None:
        self._rng, self._dynamic = rng_of(name), dynamic
        self.parameters: list[Any] = []
        self.arrays: list[Array] = []

    def __call__(self, *shape: int, dtype: Any = f32, of: Any = None, low: float = -1, high: float = 1) -> Any:
        """An input of that shape, or with those values."""
        if of is not None:
            array = np.asarray(of, dtype)
        elif np.issubdtype(dtype, np.floating):
            array = self._rng.uniform(low, high, shape).astype(dtype)
        else:
            array = random_array(self._rng, shape, dtype)
        axes = [-1] * array.ndim if self._dynamic else list(array.shape)
        self.parameters.append(openvino.opset1.parameter(axes, array.dtype.type))
        self.arrays.append(array)
        return self.parameters[-1]

    def constant(self, *shape: int, dtype: Any = f32) -> Any:
        return const(random_array(self._rng, shape, dtype), dtype)


def const(values: Any, dtype: Any = i64) -> Any:
    return openvino.opset1.constant(np.asarray(values, dtype))


def empty() -> Any:
    return openvino.op.Constant(openvino.Type.i64, openvino.Shape([0]), [])


def make_node(opset: int, kind: str, inputs: list[Any], **attributes: Any) -> Any:
    """A node that the Python API has no function for."""
    factory = import_module("openvino.utils.node_factory").NodeFactory(f"opset{opset}")
    return factory.create(kind, [one.output(0) for one in inputs], attributes)


def ops(number: int) -> Any:
    return import_module(f"openvino.opset{number}")


@dataclass(frozen=True)
class Case:
    """`type`: as OpenVINO writes it. `dynamic`: runs also with every dimension of the inputs open."""

    name: str
    make: Callable[[Maker], Any]
    dynamic: bool = True
    tolerance: float = TOLERANCE

    @property
    def type(self) -> str:
        return self.name.split()[0]


def build(*cases: Case, dynamic: bool = False) -> tuple[Any, list[Array]]:
    """Return a model of the operations side by side, and arrays for its inputs."""
    results, parameters, arrays = [], [], []
    for case in cases:
        maker = Maker(case.name, dynamic=dynamic and case.dynamic)
        made = case.make(maker)
        outputs = [output for node in (made if isinstance(made, list) else [made]) for output in _outputs(node)]
        results += [openvino.opset1.result(output) for output in outputs]
        parameters += maker.parameters
        arrays += maker.arrays
    return openvino.Model(results, parameters, "operations"), arrays


def _outputs(node: Any) -> Sequence[Any]:
    return node.outputs() if hasattr(node, "outputs") else [node]
