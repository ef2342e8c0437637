"""Command that prints the changelog of a tagged version: `python .ci/release_notes.py v1.2.3`.

Its exit status is 1 if the versions of the tag, pyrnnx/_version.py, CHANGELOG.md and CITATION.cff differ.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def search(name: str, pattern: str) -> re.Match[str] | None:
    return re.search(pattern, (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def problems(tag: str) -> list[str]:
    """Return the reasons against a release of the tag."""
    version = search("pyrnnx/_version.py", r'^__version__ = "([^"]+)"')
    result = []
    if version is None or tag != f"v{version[1]}":
        result.append(f"the tag is {tag!r}, but the version in pyrnnx/_version.py is {version and version[1]!r}")
    number = re.escape(tag.removeprefix("v"))
    if not search("CHANGELOG.md", rf"^## \[{number}\] - \d{{4}}-\d{{2}}-\d{{2}}$"):
        result.append(f'CHANGELOG.md has no "## [{tag.removeprefix("v")}] - YYYY-MM-DD"')
    if not search("CHANGELOG.md", r"^## \[Unreleased\]\s+(?=## \[|\Z)"):
        result.append("CHANGELOG.md has changes under Unreleased")
    if not search("CITATION.cff", rf"^version: {number}$"):
        result.append(f"CITATION.cff does not have version {tag.removeprefix('v')}")
    return result


def notes(tag: str) -> str:
    section = search("CHANGELOG.md", rf"^## \[{re.escape(tag.removeprefix('v'))}\][^\n]*\n(.*?)(?=^## \[|^\[|\Z)")
    return section[1].strip() if section else ""


if __name__ == "__main__":
    reasons = problems(sys.argv[1])
    for reason in reasons:
        print(reason, file=sys.stderr)
    if not reasons:
        print(notes(sys.argv[1]))
    sys.exit(bool(reasons))
