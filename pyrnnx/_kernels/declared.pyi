from collections.abc import Sequence
from typing import Any

import numpy as np

class Declared:
    def __init__(
        self,
        names: tuple[str, ...],
        dtypes: Sequence[np.dtype[Any] | None],
        shapes: Sequence[Sequence[tuple[int, int]] | None],
        optional: Sequence[bool],
    ) -> None: ...
    def recognized(self, values: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any] | None: ...
