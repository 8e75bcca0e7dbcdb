"""Pages from templates: all values are text, and escaped, unless they are markup made here."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from netproof.present.characters import visible
from netproof.present.wording import counted

POLICY = (
    "default-src 'none'; script-src 'self' file: 'unsafe-eval'; "
    "style-src 'self' file: 'unsafe-inline'; img-src 'self' file: data:"
)
"""Only files beside the page may be loaded; Vega compiles its expressions."""

_SAFE_NAME = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True)
class DataTable:
    """A table of text: the first cell heads its row.

    ``head``: titles of the columns; ``rows``: as many cells each; ``numbers``: for each column,
    whether it holds numbers; ``caption``: below it, or empty.
    """

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: tuple[bool, ...]
    caption: str = ""


@dataclass(frozen=True)
class Part:
    """A part of a page: its anchor and title, its template, and the template's view."""

    name: str
    title: str
    template: str
    view: Any


def render(template: str, **values: object) -> str:
    """Return a page or a piece of one from a file of ``templates``; values as it names them."""
    return environment().get_template(template).render(**values)


@functools.cache
def environment() -> Environment:
    """Return the environment of all templates: all is escaped that is not markup already."""
    made = Environment(
        loader=PackageLoader("netproof.present.html"),
        autoescape=True,
        # A misspelt name stops the page, instead of leaving a gap in it.
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals["policy"] = POLICY
    made.filters["cases"] = counted
    return made


def _shown(value: object) -> object:
    """Return any value as text with control characters shown by their code; markup stays."""
    return value if isinstance(value, Markup) else visible(str(value))


def script_json(value: Any) -> Markup:
    """Return plain values for a script element that is not run, which no text within can end."""
    text = json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def text_table(head: Iterable[str], rows: Iterable[Iterable[str]], caption: str = "") -> DataTable:
    """Return a table without a column of numbers."""
    titles = tuple(head)
    return DataTable(titles, tuple(map(tuple, rows)), (False,) * len(titles), caption)


def number_table(
    head: Iterable[str], rows: Iterable[Iterable[str]], caption: str = ""
) -> DataTable:
    """Return a table of nothing but numbers."""
    titles = tuple(head)
    return DataTable(titles, tuple(map(tuple, rows)), (True,) * len(titles), caption)


def file_name(*parts: object) -> str:
    """Return a name for a file or an anchor: lower-case ASCII letters, digits and hyphens."""
    name = _SAFE_NAME.sub("-", " ".join(map(str, parts)).lower()).strip("-")
    return name or "unnamed"
