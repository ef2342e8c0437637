from typing import Any

import numpy as np
import numpy.typing as npt

_Array = npt.NDArray[Any]
_Weights = npt.NDArray[np.float32] | npt.NDArray[np.float64]

class PackedLayer:
    one_call: bool

    def __new__(
        cls,
        *,
        isa: str,
        cell: int,
        reverse: tuple[bool, ...],
        activations: tuple[tuple[tuple[int, float, float], ...], ...],
        clip: float,
        linear_before_reset: bool,
        coupled_gate: str | None,
        W: _Weights | npt.NDArray[np.int8],
        R: _Weights | npt.NDArray[np.int8],
        bias: _Weights,
        recurrent_bias: _Weights | None,
        peepholes: _Weights | None,
        weight_dtype: int,
        dtype: np.dtype[Any],
        storage: int,
        X_axes: str,
        Y_axes: str,
        state_axes: str,
        coded: bool = False,
        factors: tuple[npt.NDArray[Any], ...] | None = None,
        dot: int = ...,
    ) -> PackedLayer: ...
    def run(
        self,
        threads: int,
        X: Any,
        lengths: npt.NDArray[np.integer[Any]] | None,
        initial_h: Any,
        initial_c: Any,
        wide_states: bool = False,
        out: tuple[_Array | None, ...] | None = None,
    ) -> tuple[_Array, ...] | None: ...
    def push(
        self,
        X: Any,
        h: _Array,
        c: _Array | None,
        out: Any = None,
        h_next: _Array | None = None,
        c_next: _Array | None = None,
    ) -> _Array | None: ...
