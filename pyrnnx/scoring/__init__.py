"""Scoring of data that is larger than memory, in several processes or machines: `pyrnnx.score`.

1. A source lists its items (sources/), and a few calls show the outputs of the model (subjects/).
2. The items are divided into parts (plan); the first batch is also run item by item.
3. Each part is read, converted, scored and written (task, conversion, sinks), here or in Dask workers (cluster).
4. Records of finished parts are in the sink folder (manifest); `score` (run) returns a report.
"""

from pyrnnx.scoring.report import ScoreReport
from pyrnnx.scoring.run import score

__all__ = ["ScoreReport", "score"]
