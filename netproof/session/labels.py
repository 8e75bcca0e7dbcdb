"""Labels of sessions, as people state them on a command line."""

from __future__ import annotations

from netproof.errors import NetproofError


def label_of(stated: str) -> tuple[str, str]:
    """Key and value of ``KEY=VALUE``; NetproofError for another form."""
    key, equals, value = stated.partition("=")
    if not (key and equals):
        raise NetproofError(f"{stated!r} is no label: KEY=VALUE, kernel=6.1 for instance")
    return key, value
