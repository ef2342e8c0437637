"""com.microsoft DynamicQuantizeLSTM: an LSTM with weights in 8 bits, whose X and h are rounded to 8 bits as it runs.

The products of what is quantized equal those of what it stands for, so the gates are those of an ordinary layer with
the weights dequantized; only X and h are rounded before they reach it, h at every step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from pyrnnx import check
from pyrnnx.dtypes import AnyArray
from pyrnnx.errors import ArgumentError, UnsupportedError
from pyrnnx.layer import Layer
from pyrnnx.op import Direction
from pyrnnx.stream import Stream

from .layers import NodeLayer, UnboundNode, check_initializers, node_layer
from .nodes import read_node
from .schemas import QUANTIZED_LSTM, WEIGHTS

_OPERATORS = (QUANTIZED_LSTM.operator,)

Floats = npt.NDArray[np.float32]


class QuantizedLayer(NodeLayer):
    """The layer of a DynamicQuantizeLSTM node; its `weights` are dequantized, in the shapes of LSTM.

    X has one range of quantization for the whole call: that of the values of all rows, and zero. What lies beyond a
    row's length has no part in it (in ONNX Runtime, it has). h has one range for each step: that of the states of all
    rows that ran in the step before, and zero. A NaN stays with its row; an infinity becomes the end of the range of
    finite values.
    """

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self._direct = False  # X is rounded first
        self._steps: tuple[Layer, ...] = ()
        if self.op.num_directions > 1:
            single = [
                replace(self.op, direction=Direction.FORWARD, activations=(functions,))
                for functions in self.op.activations
            ]
            self._steps = tuple(
                Layer(op, *(a[d : d + 1] if a is not None else None for a in map(self.weights.get, WEIGHTS)))
                for d, op in enumerate(single)
            )

    def _run_checked(
        self, X: AnyArray, lengths: AnyArray | None, initial_h: AnyArray | None, initial_c: AnyArray | None
    ) -> tuple[AnyArray, ...]:
        T, N, _ = X.shape
        D, H = self.op.num_directions, self.op.hidden_size
        lengths = np.full(N, T) if lengths is None else lengths
        valid = np.arange(T)[:, np.newaxis] < lengths
        quantized = fake_quantized(X, valid)
        Y, Y_h, Y_c = (np.zeros(shape, self.dtype) for shape in ((T, D, N, H), (D, N, H), (D, N, H)))
        for d in range(D):
            h, c = (np.zeros((N, H), self.dtype) if state is None else state[d] for state in (initial_h, initial_c))
            self._direction(d, quantized, lengths, h, c, (Y[:, d], Y_h[d], Y_c[d]))
        return Y, Y_h, Y_c

    def _direction(
        self, d: int, X: Floats, lengths: AnyArray, h: AnyArray, c: AnyArray, out: tuple[AnyArray, ...]
    ) -> None:
        """Step by step; rows that have ended stay out of it."""
        Y, Y_h, Y_c = out
        for step in range(max(lengths, default=0)):
            rows = np.flatnonzero(lengths > step)
            times = lengths[rows] - 1 - step if self.op.direction.reversed[d] else np.full(len(rows), step)
            seen = fake_quantized(h, lengths >= step)[rows]
            arguments = (X[times, rows][np.newaxis], None, seen[np.newaxis], c[rows][np.newaxis])
            # One step is the same forward and in reverse.
            new = self._steps[d]._results(*arguments) if self._steps else self._results(*arguments)
            if step == 0:
                h, c = Y_h, Y_c
            h[rows], c[rows] = new[1][0], new[2][0]
            Y[times, rows] = h[rows]

    def stream(self, batch_size: int) -> Stream:
        """Not offered: the range of X is that of a whole call.

        Raises
        ------
        UnsupportedError
        """
        raise UnsupportedError(f"{self.label}: stream: X has one range for a whole sequence; expected a call")


def fake_quantized(array: AnyArray, valid: AnyArray | None = None) -> Floats:
    """The values that uint8, with a scale and a zero point for the range of the (valid) values, can hold."""
    counted = array if valid is None else array[valid]
    if not np.isfinite(low := np.min(counted, initial=0)) or not np.isfinite(high := np.max(counted, initial=0)):
        finite = counted[np.isfinite(counted)]
        low, high = np.min(finite, initial=0), np.max(finite, initial=0)
    scale = np.float32((high - low) / np.float32(255)) if high > low else np.float32(1)
    zero_point = np.rint(np.clip(-low / scale, 0, 255))
    quantized = np.clip(np.rint(array / scale), -zero_point, 255 - zero_point)
    result: Floats = np.asarray(quantized * scale, np.float32)
    return result


def from_quantized_node(node: Any, initializers: Mapping[str, Any], opset: int = 1) -> NodeLayer:
    """A prepared layer (a `QuantizedLayer`) from a com.microsoft DynamicQuantizeLSTM node; as `from_node`.

    W [num_directions, input_size, 4*hidden_size] and R [num_directions, hidden_size, 4*hidden_size] are int8 or uint8,
    with W_scale, W_zero_point, R_scale and R_zero_point of shape [num_directions] or [num_directions, 4*hidden_size].
    """
    read = read_node("from_quantized_node", node, opset, _OPERATORS)
    check_initializers(read.label, initializers)
    given = read.weights(initializers)
    arrays = {name: check.as_array(read.label, name, value) for name, value in given.items()}
    weights = {name: arrays.get(name) for name in ("B", "P")}
    weights |= {name: _dequantized(read.label, name, arrays) for name in ("W", "R")}
    return node_layer(read, weights, read.constants(initializers), QuantizedLayer)


def _dequantized(label: str, name: str, arrays: Mapping[str, AnyArray]) -> Floats:
    """W or R in float32, [num_directions, 4*hidden_size, ...] as an LSTM has it."""
    weight = arrays[name]
    if weight.dtype.name not in ("int8", "uint8") or weight.ndim != 3:
        raise ArgumentError(
            f"{label}: {name} has dtype {weight.dtype} and shape {weight.shape}; expected int8 or uint8, and "
            f"[num_directions, {'input_size' if name == 'W' else 'hidden_size'}, 4*hidden_size]"
        )
    per_tensor, per_channel = weight.shape[:1], (weight.shape[0], weight.shape[2])
    factors = []
    for kind, dtype in (("scale", np.dtype(np.float32)), ("zero_point", weight.dtype)):
        array = arrays[f"{name}_{kind}"]
        if array.shape not in (per_tensor, per_channel) or array.dtype != dtype:
            raise ArgumentError(
                f"{label}: {name}_{kind} has dtype {array.dtype} and shape {array.shape}; expected {dtype}, and "
                f"{per_tensor} or {per_channel}"
            )
        factors.append(array.reshape(weight.shape[0], 1, -1))
    scale, zero_point = factors
    with np.errstate(invalid="ignore", over="ignore"):  # the scales of a file may be infinite, or NaN
        result: Floats = (weight.astype(np.float32) - zero_point.astype(np.float32)) * scale
    return np.ascontiguousarray(result.transpose(0, 2, 1))


class UnboundQuantizedNode(UnboundNode):
    """A DynamicQuantizeLSTM node whose weights are computed at run time; it runs in its model only."""

    def bind(self, W: Any, R: Any, B: Any = None, P: Any = None, *, weight_dtype: str | None = None) -> NoReturn:
        """Not offered: the scales of W and R belong to them.

        Raises
        ------
        UnsupportedError
        """
        raise UnsupportedError(f"{self.label}: bind: its weights are quantized; call the model")


def unbound_quantized_node(node: Any, initializers: Mapping[str, Any], opset: int = 1) -> UnboundQuantizedNode:
    """A node without its weights; as `unbound_node`."""
    read = read_node("unbound_quantized_node", node, opset, _OPERATORS)
    return UnboundQuantizedNode(read, read.constants(initializers), read.op())
