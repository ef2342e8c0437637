from typing import Any

import numpy.typing as npt

SIMD: tuple[str, ...]
ASSERTIONS: bool

def supported() -> tuple[str, ...]: ...
def formats(isa: str, itemsize: int) -> int: ...
def activate(
    isa: str, kind: int, alpha: float, beta: float, clip: float, x: npt.NDArray[Any], y: npt.NDArray[Any]
) -> None: ...
