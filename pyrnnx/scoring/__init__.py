"""Scoring of data that is larger than memory, in several processes or machines: `pyrnnx.score`.

A source lists its items (sources/) -> a few calls tell how the model takes and gives them (subject, probe, outputs) ->
parts and batches (parts) -> each part is read, scored and written (task, sinks/, durable), here or in workers of Dask
(cluster, dask_worker) -> what is finished stands in the folder (manifest), and a report tells the rest.
"""

from pyrnnx.scoring.report import ScoreReport
from pyrnnx.scoring.run import score

__all__ = ["ScoreReport", "score"]
