from typing import Any

import numpy.typing as npt

from pyrnnx._kernels.packed_layer import PackedLayer

_Array = npt.NDArray[Any]

class LayerEntry:
    _packed: PackedLayer
    _is_plain: bool

    def run(
        self,
        X: Any = None,
        sequence_lens: Any = None,
        initial_h: Any = None,
        initial_c: Any = None,
        *more: Any,
        out: Any = None,
        **named: Any,
    ) -> tuple[_Array, ...]: ...

class StreamStates:
    _h: _Array
    _c: _Array | None
    _packed: PackedLayer

    def push(self, X: Any, sequence_lens: Any = None, *, out: Any = None) -> _Array: ...
