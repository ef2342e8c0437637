from typing import Any

import numpy.typing as npt

def apply(kind: int, alpha: float, beta: float, clip: float, x: npt.NDArray[Any], y: npt.NDArray[Any]) -> None: ...
