"""The changelog of the version that a tag names, on standard output: `python .ci/release_notes.py v1.2.3`.

Exit status 1 where the tag, pyrnnx/_version.py, CHANGELOG.md and CITATION.cff do not name one version.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def found(name: str, pattern: str) -> re.Match[str] | None:
    return re.search(pattern, (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def problems(tag: str) -> list[str]:
    """What does not fit a release of that tag."""
    version = found("pyrnnx/_version.py", r'^__version__ = "([^"]+)"')
    result = []
    if version is None or tag != f"v{version[1]}":
        result.append(f"the tag is {tag!r}, and the version in pyrnnx/_version.py {version and version[1]!r}")
    number = re.escape(tag.removeprefix("v"))
    if not found("CHANGELOG.md", rf"^## \[{number}\] - \d{{4}}-\d{{2}}-\d{{2}}$"):
        result.append(f'CHANGELOG.md has no "## [{tag.removeprefix("v")}] - YYYY-MM-DD"')
    if not found("CHANGELOG.md", r"^## \[Unreleased\]\s+(?=## \[|\Z)"):
        result.append("CHANGELOG.md has changes under Unreleased")
    if not found("CITATION.cff", rf"^version: {number}$"):
        result.append("CITATION.cff has another version")
    return result


def notes(tag: str) -> str:
    section = found("CHANGELOG.md", rf"^## \[{re.escape(tag.removeprefix('v'))}\][^\n]*\n(.*?)(?=^## \[|^\[|\Z)")
    return section[1].strip() if section else ""


if __name__ == "__main__":
    wrong = problems(sys.argv[1])
    for one in wrong:
        print(one, file=sys.stderr)
    if not wrong:
        print(notes(sys.argv[1]))
    sys.exit(bool(wrong))
