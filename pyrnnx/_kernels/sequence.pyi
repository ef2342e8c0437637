from typing import Any

import numpy as np
import numpy.typing as npt

_Array = npt.NDArray[Any]
_Weights = npt.NDArray[np.float32] | npt.NDArray[np.float64]

class Sequence:
    def __init__(
        self,
        isa: str,
        cell: int,
        reverse: tuple[bool, ...],
        activations: tuple[tuple[tuple[int, float, float], ...], ...],
        clip: float,
        linear_before_reset: bool,
        input_forget: bool,
        W: _Weights,
        R: _Weights,
        bias: _Weights,
        recurrent_bias: _Weights | None,
        peepholes: _Weights | None,
        format: int,
        dtype: np.dtype[Any],
        storage: int,
        X_axes: str,
        Y_axes: str,
        state_axes: str,
        coupled_gate: str = "f",
    ) -> None: ...
    def fits(self, X: Any, initial_h: Any, initial_c: Any) -> bool: ...
    def run(
        self,
        threads: int,
        X: _Array,
        order: npt.NDArray[np.intp] | None,
        lengths: npt.NDArray[np.intp] | None,
        initial_h: _Array | None,
        initial_c: _Array | None,
    ) -> tuple[_Array, ...]: ...
