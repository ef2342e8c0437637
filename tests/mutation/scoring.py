"""Faults of scoring: batches, records and resumed runs."""

from __future__ import annotations

from mutation.fault import faults

FAULTS = faults(r"""
the first batch is not checked [pyrnnx/scoring/plan.py]
    if self.job.scorer.rows == 1 or subject.is_trusted:
    if True:
    tests/scoring/test_batches.py
a batch of equal lengths checks padding [pyrnnx/scoring/plan.py]
    if subject.mixes_lengths and len(unequal) > 1:  # padding shows only in a batch of different lengths
    if False:
    tests/scoring/test_batches.py
any difference in a batch is rounding [pyrnnx/scoring/subjects/outputs.py]
    if np.allclose(a, b, rtol, atol * min(1, size), equal_nan=True):
    if True:
    tests/scoring/test_batches.py
the lengths are never to blame [pyrnnx/scoring/subjects/outputs.py]
    if subject.lengths is not None and len(set(map(len, items))) > 1:
    if False:
    tests/scoring/test_batches.py
a batch has one row too many [pyrnnx/scoring/task.py]
    full = len(batch) == scorer.rows or (len(batch) + 1) * scorer.size(longest, step) > most
    full = len(batch) > scorer.rows or (len(batch) + 1) * scorer.size(longest, step) > most
    tests/scoring/test_parts.py
a batch exceeds its limit of bytes [pyrnnx/scoring/task.py]
    (len(batch) + 1) * scorer.size(longest, step) > most
    len(batch) * scorer.size(longest, step) > most
    tests/scoring/test_parts.py
context frames come from the future [pyrnnx/scoring/conversion.py]
    padded[self.context : self.context + len(values)] = values
    padded[: len(values)] = values
    tests/scoring/test_sources.py tests/scoring/test_score.py
skipped items are never retried [pyrnnx/scoring/task.py]
    record["skipped"].keys() <= bad:
    record["skipped"].keys() >= bad:
    tests/scoring/test_bad_sources.py tests/scoring/test_folder.py tests/scoring/test_score.py
a file may change during the run [pyrnnx/scoring/plan.py]
    if self.versions.get(file, version) != version:
    if False:
    tests/scoring/test_folder.py
a bad item fails its whole batch [pyrnnx/scoring/task.py]
            if len(items) == 1:\n            return [Bad(str(error))]\n
            return [Bad(str(error))] * len(items)\n
    tests/scoring/test_batches.py
an altered part is reused [pyrnnx/scoring/manifest.py]
    if is_same and record["sha256"] == _checksum(self.part(part.number)) else None
    if is_same and _checksum(self.part(part.number)) else None
    tests/scoring/test_folder.py
a record of another part is used [pyrnnx/scoring/manifest.py]
    is_same = record["identity"] == part_identity(identity, part)
    is_same = True
    tests/scoring/test_folder.py
parts of runs with other options are reused [pyrnnx/scoring/manifest.py]
    compared = {**{key: header[key] for key in _COMPARED}, "source": source}
    compared = {"source": source}
    tests/scoring/test_folder.py
""")
