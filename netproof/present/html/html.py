"""Pages from templates: all values are text, and escaped, unless they are markup made here."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterable, Sequence
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
        finalize=lambda value: value if isinstance(value, Markup) else visible(str(value)),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals["policy"] = POLICY
    made.filters["cases"] = counted
    return made


def script_json(value: Any) -> Markup:
    """Return plain values for a script element that is not run, which no text within can end."""
    text = json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def chart(title: str, specification: dict[str, Any] | None, *sentences: str) -> dict[str, Any]:
    """Return what the templates show of a chart; ``specification``: None without a curve.

    ``name``: of its data's element; ``missing``: curves not drawn, by the reason; ``files``: other
    forms of it, by their names; ``notes`` and ``data``, its table: on request.
    """
    return {
        "name": "",
        "title": title,
        "specification": None if specification is None else script_json(specification),
        "sentences": sentences,
        "notes": (),
        "missing": {},
        "files": {},
        "data": None,
    }


def file_name(*parts: object) -> str:
    """Return a name for a file or an anchor: lower-case ASCII letters, digits and hyphens."""
    name = re.sub(r"[^a-z0-9]+", "-", " ".join(map(str, parts)).lower()).strip("-")
    return name or "unnamed"


def answers_page(
    kind: str, titles: Iterable[str], answers: list[dict[str, Any]], scripts: Sequence[str]
) -> str:
    """Return a page on experiments of a kind: each an answer, with name, title and figures."""
    title = f"{kind}: {', '.join(dict.fromkeys(titles))}"
    return render("answers.html", title=title, scripts=scripts, answers=answers)
