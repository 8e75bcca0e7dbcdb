"""Pages from templates: all values are text, and escaped, unless they are markup made here."""

from __future__ import annotations

import functools
import json
import re
from importlib.metadata import version
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


VEGA_LITE = "6.4"
"""Version of Vega-Lite that draws pages and files."""


def bundle_name() -> str:
    """Return the name of the file with Vega's scripts."""
    return f"vega-{VEGA_LITE}-{version('vl-convert-python')}.js"


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
    made.globals["scripts"] = (bundle_name(), "report.js")
    made.filters["cases"] = counted
    made.filters["script_json"] = script_json
    return made


def script_json(value: Any) -> Markup:
    """Return plain values for a script element that is not run, which no text within can end."""
    text = json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def file_name(*parts: object) -> str:
    """Return a name for a file or an anchor: lower-case ASCII letters, digits and hyphens."""
    name = re.sub(r"[^a-z0-9]+", "-", " ".join(map(str, parts)).lower()).strip("-")
    return name or "unnamed"
