"""Pages from templates: all values are text, and escaped, unless they are markup made here."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Sequence
from contextvars import ContextVar
from importlib.metadata import version
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from netproof.present.characters import visible
from netproof.present.document import Part

POLICY = (
    "default-src 'none'; script-src 'self' file: 'unsafe-eval'; "
    "style-src 'self' file: 'unsafe-inline'; img-src 'self' file: data:"
)
"""Only files beside the page may be loaded; Vega compiles its expressions."""


VEGA_LITE = "6.4"
"""Version of Vega-Lite that draws pages and files."""


_LEAST_PART = 60
"""Characters from which a part of a chart's specification is on the page once, for all charts."""

_parts: ContextVar[dict[str, int]] = ContextVar("parts of charts on the page, with their places")


def bundle_name() -> str:
    """Return the name of the file with Vega's scripts."""
    return f"vega-{VEGA_LITE}-{version('vl-convert-python')}.js"


def page_of(
    title: str,
    parts: Sequence[Part],
    *,
    heading: str = "",
    when: str = "",
    back: str = "",
    files: Sequence[str] = (),
) -> str:
    """Return a page; ``back``: the page that it belongs to; ``files``: other forms of charts."""
    _parts.set({})
    values = {"title": title, "parts": parts, "heading": heading or title, "when": when}
    return environment().get_template("page.html").render(**values, back=back, files=files)


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
    made.globals["scripts"] = (bundle_name(), "report.js")
    made.filters["chart_json"] = chart_json
    made.globals["chart_parts"] = lambda: _escaped(f"[{','.join(_parts.get())}]")
    return made


def chart_json(specification: dict[str, Any]) -> Markup:
    """Return a chart's specification for the page; ``chart_parts`` has what charts have in common.

    Its data stay within.
    """
    parts = _parts.get({})

    def shortened(value: Any) -> Any:
        if isinstance(value, dict):
            value = {key: shortened(one) for key, one in value.items()}
        elif isinstance(value, list | tuple):
            value = list(map(shortened, value))
        else:
            return value
        text = _json(value)
        return value if len(text) < _LEAST_PART else {"part": parts.setdefault(text, len(parts))}

    data = {"datasets": specification["datasets"]} if "datasets" in specification else {}
    chart = {key: shortened(one) for key, one in specification.items() if key not in data}
    return _escaped(_json({**chart, **data}))


def _json(value: Any) -> str:
    return json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))


def _escaped(text: str) -> Markup:
    """Return JSON for a script element that is not run, which no text within can end."""
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def file_name(*parts: object) -> str:
    """Return a name for a file or an anchor: lower-case ASCII letters, digits and hyphens."""
    name = re.sub(r"[^a-z0-9]+", "-", " ".join(map(str, parts)).lower()).strip("-")
    return name or "unnamed"
