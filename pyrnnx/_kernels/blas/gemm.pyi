from typing import Any

import numpy.typing as npt

def gemm_accumulate(A: npt.NDArray[Any], B: npt.NDArray[Any], C: npt.NDArray[Any]) -> None: ...
