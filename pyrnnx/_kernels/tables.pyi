from typing import Literal

ACTIVATIONS: tuple[tuple[str, str, float | None, float | None], ...]
CELLS: tuple[tuple[Literal["RNN", "GRU", "LSTM"], str, tuple[str, ...], bool], ...]
