"""HTML that is escaped by the way it is made: text is text unless an element made it."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Sequence
from typing import Any

from netproof.present.tables import visible

POLICY = (
    "default-src 'none'; script-src 'self' file: 'unsafe-eval'; "
    "style-src 'self' file: 'unsafe-inline'; img-src 'self' file: data:"
)
"""Nothing may be fetched but what lies beside the page; Vega compiles its expressions."""

VOID = ("br", "col", "link", "meta", "img")
_SAFE_NAME = re.compile(r"[^a-z0-9]+")


class Markup(str):
    """Text that is HTML already, since ``element`` or ``script_json`` made it."""

    __slots__ = ()


def escaped(text: object) -> Markup:
    """Any value as text of a page, controls as what they are; what is ``Markup`` already stays."""
    return text if isinstance(text, Markup) else Markup(html.escape(visible(str(text))))


def joined(*children: object) -> Markup:
    """Children one after the other; None is left out, sequences are taken apart."""
    parts = []
    for child in children:
        if isinstance(child, list | tuple):
            parts.append(joined(*child))
        elif child is not None:
            parts.append(escaped(child))
    return Markup("".join(parts))


def element(name: str, /, *children: object, **attributes: object) -> Markup:
    """An element with children as ``joined`` takes them.

    Of an attribute's name a ``_`` at the end is dropped and others become ``-``; None leaves the
    attribute out, True gives it without a value.
    """
    written = "".join(
        f" {key.rstrip('_').replace('_', '-')}"
        + ("" if value is True else f'="{html.escape(str(value))}"')
        for key, value in attributes.items()
        if value is not None
    )
    if name in VOID:
        return Markup(f"<{name}{written}>")
    return Markup(f"<{name}{written}>{joined(*children)}</{name}>")


def script_json(value: Any, **attributes: object) -> Markup:
    """Plain values in a script element that is not run, which no text within can end."""
    text = json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return element("script", Markup(text), type="application/json", **attributes)


def table(head: list[Markup], rows: list[Markup], caption: object = None, **attributes: object):
    """A table of rows that ``row`` made, within a box that scrolls where it is too wide."""
    made = element(
        "table",
        element("caption", caption) if caption else None,
        element("thead", head),
        element("tbody", rows),
        **attributes,
    )
    return element("div", made, class_="scroll", tabindex="0", role="region", aria_label="table")


def row(*cells: object, head: bool = False, numbers_from: int | None = None) -> Markup:
    """A row of cells; ``Markup`` that is a cell already stays one.

    The first cell heads the row, as all do in a ``head``. From ``numbers_from`` on cells are
    numbers.
    """
    made = []
    for place, cell in enumerate(cells):
        if isinstance(cell, Markup) and cell.startswith(("<td", "<th")):
            made.append(cell)
            continue
        number = "n" if numbers_from is not None and place >= numbers_from else None
        if head or place == 0:
            scope = "col" if head else "row"
            made.append(element("th", cell, scope=scope, class_=number))
        else:
            made.append(element("td", cell, class_=number))
    return element("tr", made)


def file_name(*parts: object) -> str:
    """A name for a file or an anchor: lower-case ASCII letters, digits and hyphens alone."""
    name = _SAFE_NAME.sub("-", " ".join(map(str, parts)).lower()).strip("-")
    return name or "unnamed"


def document(title: str, body: Markup, scripts: Sequence[str]) -> str:
    """A whole page; ``scripts``: the files of ``assets`` that it loads."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="referrer", content="no-referrer"),
        element("title", title),
        element("link", rel="icon", href="data:,"),
        element("link", rel="stylesheet", href="assets/report.css"),
    )
    loaded = [element("script", src=f"assets/{name}") for name in scripts]
    page = element("html", head, element("body", body, loaded), lang="en")
    return f"<!DOCTYPE html>\n{page}\n"
