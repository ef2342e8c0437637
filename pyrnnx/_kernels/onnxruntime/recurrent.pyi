from collections.abc import Callable
from typing import Any

import numpy as np

INPUTS: tuple[str, ...]

class Definition:
    text: str
    numbers: dict[str, int]
    constants: dict[str, np.ndarray[Any, Any]]

def set_python(
    *,
    layer_of: Callable[[Definition], Any],
    explanation: Callable[..., None],
    threads: Callable[[], int],
    most_threads: int,
) -> None: ...
