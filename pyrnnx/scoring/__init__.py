"""Scoring of data that is larger than memory, in several processes or machines: `pyrnnx.score`.

1. A source lists its items (sources/), and a few calls show how the model takes them (subject, probe, outputs).
2. The items are divided into parts and batches (parts, planned).
3. Each part is read, scored and written (task, sinks/, durable), here or in Dask workers (cluster, dask_worker).
4. Records of finished parts are in the sink folder (manifest); `score` returns a report.
"""

from pyrnnx.scoring.report import ScoreReport
from pyrnnx.scoring.run import score

__all__ = ["ScoreReport", "score"]


def __dir__() -> list[str]:
    return __all__
