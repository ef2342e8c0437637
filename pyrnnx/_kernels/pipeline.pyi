from typing import Any

import numpy.typing as npt

from pyrnnx._kernels.packed_layer import PackedLayer

_Array = npt.NDArray[Any]
_Arguments = tuple[_Array, _Array | None, _Array | None, _Array | None, bool, tuple[_Array | None, ...]]

def turn_steps(layers: tuple[PackedLayer, ...], threads: int, seq_length: int, batch_size: int) -> int: ...
def run_pipeline(
    layers: tuple[PackedLayer, ...], threads: int, steps: int, arguments: list[_Arguments]
) -> list[tuple[_Array, ...]] | None: ...
