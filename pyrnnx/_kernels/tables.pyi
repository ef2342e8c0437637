ACTIVATIONS: tuple[tuple[str, str, float | None, float | None], ...]
CELLS: tuple[tuple[str, str, tuple[str, ...], bool], ...]
