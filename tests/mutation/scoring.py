"""Faults of scoring: proofs, batches, records and resumed runs."""

from __future__ import annotations

from mutation.fault import Fault

_BATCHING = "tests/scoring/test_batching.py tests/scoring/test_models.py"
_FOLDER = "tests/scoring/test_folder.py tests/scoring/test_changes.py"

FAULTS = (
    Fault(
        "any lengths of a layer count as those of the items",
        "pyrnnx/scoring/proof/rules.py",
        "respected = lens.is_lengths and len(time) == 1 and over_time",
        "respected = len(time) == 1 and over_time",
        _BATCHING,
    ),
    Fault(
        "zero times infinity is zero",
        "pyrnnx/scoring/proof/rules.py",
        "return any(value.zero for value in operands) and all(_zero(value) or finite(value) for value in operands)",
        "return any(value.zero for value in operands)",
        _BATCHING,
    ),
    Fault(
        "a mean over time ignores padding",
        "pyrnnx/scoring/proof/rules.py",
        "if over_time and adds and value.zero:",
        "if over_time and value.zero:",
        _BATCHING,
    ),
    Fault(
        "reverse cumulative sums are accepted",
        "pyrnnx/scoring/proof/rules.py",
        ' and not node.attributes.get("reverse"):',
        ":",
        _BATCHING,
    ),
    Fault(
        "a constant may differ by row",
        "pyrnnx/scoring/proof/values.py",
        "if has(common, ROWS) and not (value.array is not None and uniform(value.array, place)):",
        "if has(common, ROWS) and value.array is None:",
        _BATCHING,
    ),
    Fault(
        "a batch has one row too many",
        "pyrnnx/scoring/parts.py",
        "full = len(batch) == rows or (len(batch) + 1) * row_size(longest) > most",
        "full = len(batch) > rows or (len(batch) + 1) * row_size(longest) > most",
        "tests/scoring/test_parts.py",
    ),
    Fault(
        "a batch exceeds its limit of bytes",
        "pyrnnx/scoring/parts.py",
        "(len(batch) + 1) * row_size(longest) > most",
        "len(batch) * row_size(longest) > most",
        "tests/scoring/test_parts.py",
    ),
    Fault(
        "context frames come from the future",
        "pyrnnx/scoring/items.py",
        "padded[self.context : self.context + len(values)] = values",
        "padded[: len(values)] = values",
        "tests/scoring/test_sources.py tests/scoring/test_score.py",
    ),
    Fault(
        "skipped items are never retried",
        "pyrnnx/scoring/task.py",
        'if record["skipped"].keys() <= bad:',
        'if record["skipped"].keys() >= bad:',
        "tests/scoring/test_bad_sources.py tests/scoring/test_folder.py tests/scoring/test_score.py",
    ),
    Fault(
        "a file may change while it is read",
        "pyrnnx/scoring/task.py",
        "if stamp != part.stamps[i]:",
        "if stamp is None:",
        "tests/scoring/test_changes.py",
    ),
    Fault(
        "a bad item fails its whole batch",
        "pyrnnx/scoring/task.py",
        "        if len(items) == 1:\n            return [Bad(str(error))]\n",
        "        return [Bad(str(error))] * len(items)\n",
        "tests/scoring/test_parts.py",
    ),
    Fault(
        "an altered part is reused",
        "pyrnnx/scoring/manifest.py",
        'if sound and record["sha256"] == durable.checksum(self.part(part.number)):',
        "if sound and durable.checksum(self.part(part.number)):",
        _FOLDER,
    ),
    Fault(
        "a record may have fewer items",
        "pyrnnx/scoring/manifest.py",
        "        and items + len(skipped) == len(part.names)\n",
        "",
        _FOLDER,
    ),
    Fault(
        "parts of runs with other options are reused",
        "pyrnnx/scoring/manifest.py",
        'compared = {**{key: header[key] for key in _COMPARED}, "source": source}',
        'compared = {"source": source}',
        _FOLDER,
    ),
)
