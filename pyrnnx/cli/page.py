"""Page that shows a model's facts as `pyrnnx inspect` prints them, below a drawing of its layers."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import TYPE_CHECKING

from pyrnnx._internal import html
from pyrnnx.cli.drawing import STYLE

if TYPE_CHECKING:
    from rich.console import RenderableType

COLUMNS = 110  # of the tables
_COLOURS = """
:root{color-scheme:light dark;
--text:#1b1f24;--dim:#57606a;--line:#6e7781;--layer:#ddf4e4;--port:#def;--page:#fff}
@media (prefers-color-scheme:dark){
:root{--text:#e6edf3;--dim:#9da7b1;--line:#8b949e;--layer:#17402b;--port:#15304d;--page:#0d1117}}
body{margin:0 auto;max-width:1000px;padding:16px;background:var(--page);color:var(--text);
font:15px system-ui,sans-serif}
h1{font-size:20px;overflow-wrap:anywhere}.wide{overflow-x:auto}
svg{display:block;width:100%;min-width:900px}
pre{font:12.5px ui-monospace,monospace;line-height:1.35}
"""


def page(title: str, drawing: str, shown: Iterable[RenderableType]) -> str:
    """Return a page of HTML that loads nothing from elsewhere."""
    from rich.console import Console

    console = Console(file=io.StringIO(), width=COLUMNS, color_system=None, legacy_windows=False)
    console.print(*shown, sep="\n")
    assert isinstance(console.file, io.StringIO)
    text = "\n".join(html.text(line.rstrip()) for line in console.file.getvalue().splitlines())
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.text(title)}</title><style>{_COLOURS}{STYLE}</style></head>\n"
        f'<body><h1>{html.text(title)}</h1>\n<div class="wide">{drawing}</div>\n'
        f'<div class="wide"><pre>{text}</pre></div></body></html>\n'
    )
