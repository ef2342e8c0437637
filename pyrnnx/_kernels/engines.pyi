from typing import Any

import numpy.typing as npt

SIMD: tuple[str, ...]
ASSERTIONS: bool

def supported() -> tuple[str, ...]: ...
def weight_dtypes(isa: str, itemsize: int) -> int: ...
def activate(
    isa: str, number: int, alpha: float, beta: float, clip: float, x: npt.NDArray[Any], y: npt.NDArray[Any]
) -> None: ...
