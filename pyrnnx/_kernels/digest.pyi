from typing import Any

import numpy.typing as npt

HAS_AVX512: bool

def digest(arrays: tuple[npt.NDArray[Any], ...], portable: bool = False) -> int: ...
