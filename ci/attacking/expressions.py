"""Random patterns of a site; none may take long."""

from __future__ import annotations

import random
from pathlib import Path

from ci.attacking.inputs import RIGHT, Attack, Input
from netproof.intake import patterns


def _pattern(draw: random.Random) -> Input:
    def part(depth: int) -> str:
        kind = draw.randrange(7 if depth else 3)
        if kind < 3:
            return draw.choice(("a", "[a-z]", ".", "\\w", "gige", "x|y", "[a-zA-Z0-9 ]", "\\d"))
        if kind == 3:
            return f"({part(depth - 1)}|{part(depth - 1)})"
        if kind == 4:
            return part(depth - 1) + part(depth - 1)
        return f"({part(depth - 1)}){draw.choice(('*', '+', '?', '{2,9}', '{40}', '*?', '{1,}'))}"

    return Input(part(draw.randint(1, 6)) + draw.choice(("", "!", "$", "z")), "made")


def _matched(given: Input) -> str:
    for search in (False, True):
        taken = patterns.expression(given.text, search=search)
        for text in ("a" * 60, "gige openmpi-5.0 IMB Alltoallv 64 ranks", "ab" * 30 + "?"):
            taken.search(text) if search else taken.fullmatch(text)
    return RIGHT


def attacks(_folder: Path) -> tuple[Attack, ...]:
    """Return the attacks on the matching of a site's patterns."""
    return (Attack("patterns", _pattern, _matched),)
