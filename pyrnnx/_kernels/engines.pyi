from typing import Literal

SIMD: tuple[str, ...]
MODEL: str
WEIGHT_DTYPES: dict[str | None, int]
CODES: int
MAX_CODES: int
ACTIVATIONS: tuple[tuple[str, str, float | None, float | None], ...]
CELLS: tuple[tuple[Literal["RNN", "GRU", "LSTM"], str, tuple[str, ...], bool], ...]

def supported() -> tuple[str, ...]: ...
def has_model() -> bool: ...
def multiplies_codes(isa: str) -> bool: ...
def packs(isa: str, itemsize: int, weight_dtype: int) -> bool: ...
