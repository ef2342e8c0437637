from typing import Any

import numpy.typing as npt

from pyrnnx._kernels.packed_layer import PackedLayer

_Array = npt.NDArray[Any]

class StreamStates:
    _h: _Array
    _c: _Array | None
    _packed: PackedLayer

    def push(self, X: Any, sequence_lens: Any = None, *, out: Any = None) -> _Array: ...
