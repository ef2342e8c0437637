from typing import Any

import numpy.typing as npt

SIMD: tuple[str, ...]
MODEL: str
WEIGHT_DTYPES: dict[str | None, int]
CODES: int
MAX_CODES: int
ASSERTIONS: bool

def supported() -> tuple[str, ...]: ...
def has_model() -> bool: ...
def multiplies_codes(isa: str) -> bool: ...
def packs(isa: str, itemsize: int, weight_dtype: int) -> bool: ...
def activate(
    isa: str, number: int, alpha: float, beta: float, clip: float, x: npt.NDArray[Any], y: npt.NDArray[Any]
) -> None: ...
