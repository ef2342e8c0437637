"""Configuration of Sphinx: `python -m sphinx -W -n -b html docs docs/built`. Each build regenerates docs/generated."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

import pyrnnx

HERE = Path(__file__).parent
ROOT = Path(os.environ.get("PYRNNX_ROOT", HERE.parent))  # where README, benchmarks and examples are
sys.path.insert(0, str(HERE))  # for the modules that generate drawings, plots and tables

REPOSITORY = "https://github.com/pyrnnx/pyrnnx"
PUBLISHED = f"{REPOSITORY}/blob/main/"

project = "pyrnnx"
author = "the pyrnnx developers"
copyright = author  # the name that Sphinx reads
version = release = pyrnnx.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.githubpages",
    "sphinx_copybutton",
]
exclude_patterns = ["generated", "built"]
nitpicky = True
default_role = "py:obj"
today_fmt = "%Y-%m-%d"

autodoc_typehints = "none"  # docstrings name types and shapes
autodoc_member_order = "bysource"
numpydoc_show_class_members = False  # the template of classes lists them
numpydoc_validation_checks: set[str] = set()

myst_enable_extensions = ["colon_fence", "deflist", "attrs_inline", "substitution"]
myst_heading_anchors = 4

html_theme = "furo"
html_title = f"pyrnnx {release}"
html_static_path = ["static"]
html_css_files = ["pyrnnx.css"]
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "source_repository": REPOSITORY,  # a link to its source on every page
    "source_branch": "main",
    "source_directory": "docs/",
}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True


def make_generated(app: Sphinx) -> None:
    """Write drawings and plots from the code and the recorded figures."""
    import drawings
    import figures

    folder = Path(app.srcdir) / "generated"
    folder.mkdir(exist_ok=True)
    drawings.write(folder)
    figures.write(folder, ROOT / "benchmarks" / "README.md")


def resolve_missing(app: Sphinx, env: Any, node: nodes.Element, contnode: nodes.Node) -> nodes.Node | None:
    """Render `X` as code if no object has this name; any other role must find its target."""
    if node.get("refdomain") == "py" and node.get("reftype") == "obj":
        return contnode
    return None


def read_source(app: Sphinx, docname: str, source: list[str]) -> None:
    """Turn HTML anchors into targets of checked links, and link other files to the published repository."""
    text = re.sub(r'^<a id="([^"]+)"></a>', r"(\1)=\n", source[0], flags=re.MULTILINE)
    source[0] = re.sub(r"\]\(\.\./(?=(?:tests|benchmarks|frontends|pyrnnx|examples)/)", f"]({PUBLISHED}", text)


def lift_sentences(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Move paragraphs below a list of parameters, results or errors to before the lists.

    numpydoc would read such a paragraph ("Source: ...") as another entry of the list.
    """
    lists = ("Parameters", "Returns", "Raises", "Attributes")
    first = next((k for k, line in enumerate(lines) if line in lists), len(lines))
    lifted, others, in_list = list[str](), list[str](), True
    for block in re.split(r"\n{2,}", "\n".join(lines[first:])):
        paragraph = block.splitlines()
        if len(paragraph) > 1 and re.fullmatch("-{3,}", paragraph[1]):
            in_list = paragraph[0] in lists
        is_text = block.rstrip().endswith(".") and not any(line[0] in " -" for line in paragraph)
        (lifted if is_text and in_list else others).extend([*paragraph, ""])
    lines[first:] = lifted + others


class Drawing(SphinxDirective):
    """Drawing of docs/generated; its content describes it to readers of the Markdown file."""

    has_content = True
    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        self.assert_has_content()
        path = HERE / "generated" / f"{self.arguments[0]}.html"
        return [nodes.raw("", path.read_text(encoding="utf-8"), format="html")]


def colour_results(app: Sphinx, doctree: nodes.document) -> None:
    """Give each cell of the tables of conformance the class of its worst result, and each result a line."""
    if Path(doctree["source"]).stem != "conformance":
        return
    for entry in doctree.findall(nodes.entry):
        results = entry.astext().split(", ")
        if isinstance(entry.parent.parent, nodes.thead) or not re.fullmatch(r"-|\d+( [a-z .]+)?", results[0]):
            continue
        words = {result.lstrip("0123456789 ") for result in results}
        failed = words & {"wrong", "crashed", "timed out"}
        kind = "failed" if failed else "refused" if "refused" in words else "right" if "" in words else "none"
        entry["classes"] += ["result", kind]
        entry.children = []
        entry.append(nodes.line_block("", *(nodes.line("", result) for result in results)))


def setup(app: Sphinx) -> None:
    app.add_directive("drawing", Drawing)
    app.connect("builder-inited", make_generated, priority=100)  # before autosummary
    app.connect("missing-reference", resolve_missing)
    app.connect("source-read", read_source)
    app.connect("doctree-read", colour_results)
    app.connect("autodoc-process-docstring", lift_sentences, priority=100)  # before numpydoc
