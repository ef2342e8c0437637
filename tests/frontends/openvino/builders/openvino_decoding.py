"""Operations around recurrent layers, as cases: spectra, blocks, decoders."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from openvino_operations import Case, Maker, const, f16, f32, i32, i64, ops

Make = Callable[[Maker], Any]
N, T, C = 4, 9, 3  # of few classes, so that some repeat and some are blank


def masked(*, merged: bool, dtype: Any = f32) -> Make:
    """Rows of all lengths; a mask that is 1 again behind its first 0 does not count there."""

    def make(p: Maker) -> Any:
        mask = (np.arange(T)[:, None] < [T, 0, 5, 1]).astype(dtype)
        mask[7, 2] = 1
        return ops(1).ctc_greedy_decoder(p(T, N, C, dtype=dtype), p(of=mask, dtype=dtype), merged)

    return make


def by_length(*, merged: bool, blank: int | None = None, kinds: tuple[str, str] = ("i32", "i32")) -> Make:
    def make(p: Maker) -> Any:
        lengths = p(of=[T, 0, 5, 1], dtype=i32 if blank is None else i64)
        index = None if blank is None else const(blank, lengths.get_element_type().to_dtype())
        return ops(6).ctc_greedy_decoder_seq_len(p(N, T, C), lengths, index, merged, *kinds)

    return make


def short_time(*shape: int, window: int = 8, transposed: bool = False) -> Make:
    return lambda p: ops(15).stft(p(*shape), p(window), const(8), const(3), transposed)


def blocks(
    name: str, shape: tuple[int, ...], block: list[int], begin: list[int], end: list[int], dtype: Any = f32
) -> Make:
    return lambda p: getattr(ops(2), name)(p(*shape, dtype=dtype), const(block), const(begin), const(end))


DECODING = (
    Case("CTCGreedyDecoder", masked(merged=True)),
    Case("CTCGreedyDecoder all", masked(merged=False)),
    Case("CTCGreedyDecoder f16", masked(merged=True, dtype=f16)),
    Case("CTCGreedyDecoderSeqLen", by_length(merged=True)),
    Case("CTCGreedyDecoderSeqLen all", by_length(merged=False)),
    Case("CTCGreedyDecoderSeqLen blank first", by_length(merged=True, blank=0)),
    Case("CTCGreedyDecoderSeqLen i64", by_length(merged=False, blank=1, kinds=("i64", "i64"))),
)
BLOCKS = (
    Case("BatchToSpace", blocks("batch_to_space", (12, 2, 3), [1, 2, 3], [0, 0, 0], [0, 0, 0])),
    Case("BatchToSpace cropped", blocks("batch_to_space", (12, 2, 4), [1, 2, 3], [0, 1, 2], [0, 0, 1])),
    Case("BatchToSpace i32", blocks("batch_to_space", (8, 2, 4, 2), [1, 1, 2, 2], [0, 0, 1, 0], [0, 0, 1, 2], i32)),
    Case("SpaceToBatch", blocks("space_to_batch", (2, 4, 9), [1, 2, 3], [0, 0, 0], [0, 0, 0])),
    Case("SpaceToBatch padded", blocks("space_to_batch", (2, 3, 5), [1, 2, 3], [0, 1, 2], [0, 0, 2])),
    Case("SpaceToBatch i32", blocks("space_to_batch", (3, 2, 3, 2), [1, 1, 2, 2], [0, 0, 1, 0], [0, 0, 2, 2], i32)),
)
SHORT_TIME = (
    Case("STFT", short_time(2, 20)),
    Case("STFT of one", short_time(20, transposed=True)),
    Case("STFT transposed", short_time(2, 20, transposed=True)),
    Case("STFT narrow window", short_time(2, 20, window=5)),
)
AROUND = DECODING + BLOCKS + SHORT_TIME
