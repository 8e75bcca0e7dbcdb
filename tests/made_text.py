"""The text of a terminal, and the elements of a page."""

from __future__ import annotations

import io
from html.parser import HTMLParser
from typing import Any

from rich.console import Console

from netproof.present.terminal import show


def printed(blocks: Any, width: int = 200) -> str:
    """Return the text of blocks on a terminal of this width, without colours."""
    out = io.StringIO()
    show(blocks, Console(file=out, width=width, color_system=None))
    return out.getvalue()


class Outline(HTMLParser):
    """Elements of a page with their attributes, its headings, and its text without scripts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.headings: list[str] = []
        self._texts: list[str] = []
        self._open: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if "script" not in self._open:
            self._texts.append(data)
        if self._open and self._open[-1] == "h2":
            self.headings.append(data.strip())

    def values(self, *names: str) -> list[str]:
        """Return the values of these attributes."""
        return [str(given[name]) for _, given in self.elements for name in names if name in given]

    @property
    def tags(self) -> list[str]:
        """Names of all elements."""
        return [tag for tag, _ in self.elements]

    @property
    def text(self) -> str:
        """Its words, with a blank between two."""
        return " ".join(" ".join(self._texts).split())
