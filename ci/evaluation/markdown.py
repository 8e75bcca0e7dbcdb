"""Tables in Markdown."""

from __future__ import annotations

from collections.abc import Sequence

AT_MOST = " at most (95%)"
"""End of the head of a rate's upper limit."""


def markdown(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table in Markdown; the first row is its head."""
    return [f"| {' | '.join(row)} |" for row in (rows[0], ["---"] * len(rows[0]), *rows[1:])]
