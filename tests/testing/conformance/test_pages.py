"""Reports of a small run as text, Markdown, HTML and JSON."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest

from pyrnnx.testing.cases import NAMED, Case
from pyrnnx.testing.conformance import (
    STATUSES,
    Report,
    Suite,
    Verdict,
    find_faults,
    to_html,
    to_markdown,
    to_text,
)
from pyrnnx.testing.conformance.markdown import INTRODUCTION

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
    Case("LSTM-only-clip", "LSTM", source="LSTM-22, attribute clip", **CLIP),
    Case("GRU-only-clip", "GRU", source="GRU-22, attribute clip", **CLIP),
    Case("LSTM-only-P", "LSTM", inputs=("P",), feature="P"),
    Case("LSTM-only-lens", "LSTM", **LENS),
    Case("RNN-only-lens", "RNN", **LENS),
)
HOSTILE = "<script>alert('&')</script> | `rm` [x](y) *a* _b_"


def verdicts(*statuses: str, detail: str = "") -> tuple[Verdict, ...]:
    return tuple(
        Verdict(case, status, detail if status != "right" else "", *(("Y", 0.25) if status == "wrong" else ()))
        for case, status in zip(CASES, statuses, strict=True)
    )


def report(runtimes: dict[str, tuple[str, tuple[Verdict, ...]]]) -> Report:
    results = {name: found for name, (_, found) in runtimes.items()}
    faults = [fault for name, found in results.items() for fault in find_faults(name, found)]
    suite = Suite("named cases", results, tuple(faults))
    versions = {name: version for name, (version, _) in runtimes.items()}
    return Report(versions, (suite,), PLACE, command="python -m pyrnnx conformance ours theirs")


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
  - wrong, GRU: clip
    case GRU-only-clip (GRU, opset 22, T=4 N=3 I=3 H=5, clip=0.125,
      hidden_size=5)
    Fails if clip is ignored, or applied to Y.
    Y: largest difference 0.25
  - wrong, LSTM: clip
    case LSTM-only-clip (LSTM, opset 22, T=4 N=3 I=3 H=5, clip=0.125,
      hidden_size=5)
    Fails if clip is ignored, or applied to Y.
    Y: largest difference 0.25
  - crashed, LSTM: sequence_lens
    case LSTM-only-lens (LSTM, opset 22, T=4 N=3 I=3 H=5, hidden_size=5,
      sequence_lens=[2, 4, 1])
    Fails if sequence_lens is ignored, Y is not zero beyond a row's length, or
      Y_h is not of its last step.
    Y: largest difference 0.25
  - timed out, RNN: sequence_lens
    case RNN-only-lens (RNN, opset 22, T=4 N=3 I=3 H=5, hidden_size=5,
      sequence_lens=[2, 4, 1])
    Fails if sequence_lens is ignored, Y is not zero beyond a row's length, or
      Y_h is not of its last step.
    Y: largest difference 0.25"""


def test_text() -> None:
    assert to_text(SMALL) == TEXT


def test_markdown() -> None:
    page = to_markdown(SMALL)
    assert page.startswith(f"# Conformance of recurrent operators\n\n{INTRODUCTION}\n\n")
    assert "This command writes the page:\n\n```bash\npython -m pyrnnx conformance ours" in page
    assert (
        "Versions: pyrnnx 1.2, Python 3.11.1, "
        "NumPy 2.4.6, system Linux, processor x86\\_64 avx2, ours 1.2, theirs 3.4.5" in page
    )
    rows = [line for line in page.splitlines() if line.startswith("| ")]
    assert rows[0] == "| feature | ours | theirs |"
    assert [row.split(": ")[0] for row in rows[2:]] == ["| P", "| sequence\\_lens", "| clip"]
    assert rows[4].endswith("| 2 | 2 **wrong** |")
    assert rows[3].endswith("| 2 | 1 **crashed**, 1 **timed out** |")
    assert "### theirs 3.4.5" in page
    assert "### ours" not in page
    assert "- wrong, clip: [GRU](#case-gru-only-clip), [LSTM](#case-lstm-only-clip). Fails if clip is ignored" in page
    links, anchors = re.findall(r"\]\(#([^)]+)\)", page), re.findall(r'<a id="([^"]+)">', page)
    assert sorted(set(links)) == sorted(anchors)
    assert len(anchors) == 4
    assert "Source: GRU-22, attribute clip." in page
    assert to_markdown(SMALL) == page


class Page(HTMLParser):
    """The tags of a page, whether all are closed, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.words = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        assert not any(name.startswith("on") or name in ("src", "href") for name, _ in attributes)
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += data


def hostile() -> Report:
    case = replace(CASES[0], name=HOSTILE, tells=HOSTILE, source=HOSTILE)
    found = (Verdict(case, "wrong", HOSTILE, "Y"),)
    suite = Suite(HOSTILE, {HOSTILE: found}, find_faults(HOSTILE, found))
    return Report({HOSTILE: HOSTILE}, (suite,), {"NumPy": HOSTILE}, command=HOSTILE)


def test_html() -> None:
    page = to_html(SMALL)
    parsed = Page(page)
    assert (parsed.open, parsed.tags.count("tr")) == ([], 4)
    assert page.startswith("<!DOCTYPE html>")
    for words in ('<td class="failed">2 wrong</td>', '<td class="right">2 right</td>', "prefers-color-scheme: dark"):
        assert words in page
    assert "Fails if clip is ignored" in parsed.words
    parsed = Page(to_html(hostile()))  # whatever a runtime says is escaped
    assert "script" not in parsed.tags
    assert parsed.words.count("<script>alert('&')</script>") > 6


def test_markdown_escapes_whatever_a_runtime_says() -> None:
    page = to_markdown(hostile())
    for line in page.replace(f"```bash\n{HOSTILE}\n```", "").splitlines():
        assert "<script" not in line.replace("\\<script", "")
        assert not any(words in line for words in ("`rm`", "[x](y)"))
        assert not line.startswith("|") or len(re.findall(r"(?<!\\)\|", line)) == 3


def test_json() -> None:
    case = replace(CASES[0], attributes={"clip": float("inf"), "hidden_size": 5})
    found = (Verdict(case, "wrong", "Y: too far", "Y", 0.5),)
    given = replace(SMALL, suites=(*SMALL.suites, Suite("own", {"theirs": found}, find_faults("theirs", found))))
    read: dict[str, Any] = json.loads(json.dumps(given.to_dict(), allow_nan=False))
    assert read["runtimes"] == {"ours": "1.2", "theirs": "3.4.5", "dumb": ""}
    assert read["environment"] == PLACE
    first, second = read["suites"]
    assert first["counts"]["theirs"] == dict(zip(STATUSES, (0, 2, 1, 1, 1, 0), strict=True))
    assert first["features"]["clip"]["theirs"]["wrong"] == 2
    assert [one["name"] for one in first["verdicts"]] == [case.name for case in CASES]
    assert first["verdicts"][0]["verdicts"]["ours"] == {"status": "right"}
    assert second["verdicts"][0]["attributes"] == {"clip": "inf", "hidden_size": 5}
    assert second["verdicts"][0]["tells"] == case.tells
    (fault,) = second["faults"]["theirs"]
    assert (fault["status"], fault["difference"], fault["features"]) == ("wrong", 0.5, ["clip"])
    assert fault["case"]["name"] == "LSTM-only-clip"


@pytest.mark.parametrize("case", [Case("a", "RNN"), CASES[0], NAMED["LSTMSequence-5-clip"]])
def test_a_case_can_be_made_again_of_what_json_says(case: Case) -> None:
    from pyrnnx.testing.conformance.plain import case_to_dict

    read: dict[str, Any] = json.loads(json.dumps(case_to_dict(case)))
    read |= {name: tuple(read[name]) for name in ("inputs", "lens") if name in read}
    assert Case(**read) == case
