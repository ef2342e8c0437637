"""References of built pages to files and other sites."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# Elements and attributes by which a browser fetches something on its own; a link is followed by its reader alone.
_FETCHED = {
    "script": ("src",),
    "img": ("src", "srcset"),
    "iframe": ("src",),
    "source": ("src", "srcset"),
    "video": ("src", "poster"),
    "audio": ("src",),
    "embed": ("src",),
    "object": ("data",),
    "use": ("href", "xlink:href"),
    "image": ("href", "xlink:href"),
}
_FETCHED_LINKS = {
    "stylesheet",
    "preload",
    "prefetch",
    "preconnect",
    "dns-prefetch",
    "icon",
    "modulepreload",
    "manifest",
}
_OF_STYLES = re.compile(r"url\(\s*['\"]?([^'\")]+)|@import\s+['\"]([^'\"]+)")


class Page(HTMLParser):
    """The anchors of a page, its links, and what a browser fetches for it.

    Attributes
    ----------
    anchors : set of str
    links, fetched : list of str
    images_without_text : list of str
        Pictures that have no alternative text.
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.images_without_text: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if tag == "link" and {*values.get("rel", "").split()} & _FETCHED_LINKS:
            self.fetched.append(values.get("href", ""))
        self.fetched += [values[name] for name in _FETCHED.get(tag, ()) if name in values]
        self.fetched += outside_styles(values.get("style", ""))
        if tag == "img" and not values.get("alt", "").strip():
            self.images_without_text.append(values.get("src", ""))


def outside_styles(text: str) -> list[str]:
    """Return the references of a style sheet, except data that it contains."""
    return [one or other for one, other in _OF_STYLES.findall(text) if not (one or other).startswith("data:")]


def is_outside(target: str) -> bool:
    parts = urlsplit(target)
    return bool(parts.netloc) or (bool(parts.scheme) and parts.scheme != "data")


def broken_links(folder: Path) -> list[str]:
    """Links between pages, and to places in them, that lead nowhere."""
    pages = {path.resolve(): Page(path.read_text(encoding="utf-8")) for path in folder.rglob("*.html")}
    broken = []
    for path, page in pages.items():
        for link in page.links + page.fetched:
            if is_outside(link) or link.startswith("data:") or link in ("", "#"):
                continue
            parts = urlsplit(link)
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            if not target.is_file() or (
                parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors
            ):
                broken.append(f"{path.relative_to(folder.resolve())}: {link}")
    return broken
