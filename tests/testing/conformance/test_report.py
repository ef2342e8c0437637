"""Reports of a small run as text and JSON, and the page of docs that is made from the JSON."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pyrnnx import ArgumentError
from pyrnnx.testing.cases import NAMED, Case, expected_outputs
from pyrnnx.testing.conformance import STATUSES, Report, Suite, Verdict, run_suite, to_text
from pyrnnx.testing.runtimes import FunctionRuntime

DOCS = Path(__file__).parents[3] / "docs"
PLACE = {"pyrnnx": "1.2", "Python": "3.11.1", "NumPy": "2.4.6", "system": "Linux", "processor": "x86_64 avx2"}
CLIP: dict[str, Any] = {
    "attributes": {"clip": 0.125, "hidden_size": 5},
    "feature": "clip",
    "tells": "Fails if clip is ignored, or applied to Y.",
}
LENS: dict[str, Any] = {
    "attributes": {"hidden_size": 5},
    "lens": (2, 4, 1),
    "feature": "sequence_lens",
    "tells": "Fails if sequence_lens is ignored, Y is not zero beyond a row's length, or Y_h is not of its last step.",
}
CASES = (
    Case("LSTM-only-clip", "LSTM", **CLIP),
    Case("GRU-only-clip", "GRU", **CLIP),
    Case("LSTM-only-P", "LSTM", inputs=("P",), feature="P"),
    Case("LSTM-only-lens", "LSTM", **LENS),
    Case("RNN-only-lens", "RNN", **LENS),
)
HOSTILE = "<script>alert('&')</script> | *a* _b_\n\x1b[31m"


def verdicts(*statuses: str, detail: str = "") -> tuple[Verdict, ...]:
    return tuple(
        Verdict(case, status, detail if status != "right" else "", *(("Y", 0.25) if status == "wrong" else ()))
        for case, status in zip(CASES, statuses, strict=True)
    )


def report(runtimes: dict[str, tuple[str, tuple[Verdict, ...]]]) -> Report:
    suite = Suite("named cases", {name: results for name, (_, results) in runtimes.items()})
    versions = {name: version for name, (version, _) in runtimes.items()}
    return Report(versions, (suite,), PLACE)


OURS = ("1.2", verdicts(*["right"] * 5))
THEIRS = ("3.4.5", verdicts("wrong", "wrong", "refused", "crashed", "timed out", detail="Y: largest difference 0.25"))
SPEECHLESS = ("", verdicts(*["not expressible"] * 5))
SMALL = report({"ours": OURS, "theirs": THEIRS, "dumb": SPEECHLESS})

TEXT = """\
pyrnnx 1.2, Python 3.11.1, NumPy 2.4.6, system Linux, processor x86_64 avx2

5 named cases:
  ours 1.2: 5 right
  theirs 3.4.5: 0 right, 2 wrong, 1 refused, 1 crashed, 1 timed out
  not expressible in dumb

               ours  theirs
P              1     1r
sequence_lens  2     1c 1t
clip           2     2w

A number without a letter: right; w: wrong, r: refused, c: crashed, t: timed
out, n: not expressible.

theirs:
  - wrong, LSTM: clip
    case LSTM-only-clip (attributes={'clip': 0.125, 'hidden_size': 5}, T=4, N=3,
      I=3, H=5, opset=22, dtype=float32)
    Fails if clip is ignored, or applied to Y.
    Y: largest difference 0.25
  - wrong, GRU: clip
    case GRU-only-clip (attributes={'clip': 0.125, 'hidden_size': 5}, T=4, N=3,
      I=3, H=5, opset=22, dtype=float32)
    Fails if clip is ignored, or applied to Y.
    Y: largest difference 0.25
  - crashed, LSTM: sequence_lens
    case LSTM-only-lens (attributes={'hidden_size': 5}, lens=(2, 4, 1), T=4,
      N=3, I=3, H=5, opset=22, dtype=float32)
    Fails if sequence_lens is ignored, Y is not zero beyond a row's length, or
      Y_h is not of its last step.
    Y: largest difference 0.25
  - timed out, RNN: sequence_lens
    case RNN-only-lens (attributes={'hidden_size': 5}, lens=(2, 4, 1), T=4, N=3,
      I=3, H=5, opset=22, dtype=float32)
    Fails if sequence_lens is ignored, Y is not zero beyond a row's length, or
      Y_h is not of its last step.
    Y: largest difference 0.25"""


def hostile() -> Report:
    case = replace(CASES[0], name=HOSTILE, tells=HOSTILE)
    suite = Suite(HOSTILE, {HOSTILE: (Verdict(case, "wrong", HOSTILE, "Y"),)})
    return Report({HOSTILE: HOSTILE}, (suite,), {"NumPy": HOSTILE})


def test_text() -> None:
    assert to_text(SMALL) == TEXT
    assert "\x1b" not in to_text(hostile())
    random = tuple(Verdict(replace(CASES[0], name=str(k), feature=""), "wrong") for k in range(31))
    many = Report({"theirs": ""}, (Suite("cases", {"theirs": random}),), PLACE)
    assert to_text(many).endswith("\n  - and 1 more, which --json lists")


def test_json() -> None:
    case = CASES[0]
    wrong = tuple(Verdict(replace(case, name=name), "wrong", "Y: too far", "Y", 0.5) for name in ("first", "second"))
    given = replace(SMALL, suites=(*SMALL.suites, Suite("own", {"theirs": wrong})))
    read: dict[str, Any] = json.loads(json.dumps(given.to_dict(), allow_nan=False))
    assert read["runtimes"] == {"ours": "1.2", "theirs": "3.4.5", "dumb": ""}
    assert read["environment"] == PLACE
    first, second = read["suites"]
    assert first["counts"]["theirs"] == dict(zip(STATUSES, (0, 2, 1, 1, 1, 0), strict=True))
    assert first["features"]["clip"]["theirs"]["wrong"] == 2
    assert [row["name"] for row in first["verdicts"]] == [case.name for case in CASES]
    assert first["verdicts"][0]["verdicts"]["ours"] == {"status": "right"}
    assert second["verdicts"][0]["attributes"] == {"clip": 0.125, "hidden_size": 5}
    assert second["verdicts"][0]["tells"] == case.tells
    assert second["verdicts"][0]["verdicts"]["theirs"]["difference"] == 0.5
    assert second["faults"] == {"theirs": [["first", "second"]]}


@pytest.mark.parametrize("case", [Case("a", "RNN"), CASES[0], NAMED["LSTMSequence-5-clip"]])
def test_json_has_the_whole_case(case: Case) -> None:
    suite = Suite("cases", {"ours": (Verdict(case, "right"),)})
    (read,) = json.loads(json.dumps(suite.to_dict()["verdicts"]))
    del read["verdicts"]
    read |= {name: tuple(read[name]) for name in ("inputs", "lens") if name in read}
    assert Case(**read) == case


@pytest.mark.skipif(not DOCS.exists(), reason="the tests stand without the documents")
def test_page() -> None:
    import tables

    page = tables.conformance_page(SMALL.to_dict())
    assert "NumPy 2.4.6, system Linux, processor x86\\_64 avx2, ours 1.2, theirs 3.4.5" in page
    rows = [line for line in page.splitlines() if line.startswith("| ")]
    assert rows[0] == "| feature | ours | theirs |"
    assert [row.split(": ")[0] for row in rows[1:]] == ["| P", "| sequence\\_lens", "| clip"]
    assert rows[3].endswith("| 2 | 2 **wrong** |")
    assert rows[2].endswith("| 2 | 1 **crashed**, 1 **timed out** |")
    assert "### theirs 3.4.5" in page
    assert "### ours" not in page
    assert f"- wrong, clip: `LSTM-only-clip`, `GRU-only-clip`. {CLIP['tells']}" in page
    for line in tables.conformance_page(hostile().to_dict()).splitlines():
        assert "<script" not in re.sub(r"`[^`]*`", "", line).replace("\\<script", "")
        assert not line.startswith("|") or len(re.findall(r"(?<!\\)\|", line)) == 3


@pytest.mark.parametrize("what", ["runtimes", "cases"])
def test_names_occur_once(what: str) -> None:
    runtime, case = FunctionRuntime(expected_outputs, "mine"), Case("same", "RNN")
    counts = {"runtimes": 1, "cases": 1, what: 2}
    with pytest.raises(ArgumentError, match=f"conformance: {what} has the name '(mine|same)' twice"):
        run_suite([runtime] * counts["runtimes"], [case] * counts["cases"])
