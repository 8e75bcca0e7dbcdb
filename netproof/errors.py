"""Errors that name a place and a remedy, and the helpers that every room shares."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from typing import TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

NO_REPORT = "is not there; ReFrame leaves no report where no test ran, and prints why"

MOST_SHOWN = 300
"""Characters of something that is quoted in an error; a line of a damaged file may be all of it."""


def shortened(text: str, most: int = MOST_SHOWN) -> str:
    """The text, or its beginning and how much longer it is."""
    if len(text) <= most:
        return text
    return f"{text[:most]}… ({len(text) - most} characters more)"


def without_middle(text: str) -> str:
    """The text; of a very long one, which quotes what a file says, beginning and end."""
    if len(text) <= 4 * MOST_SHOWN:
        return text
    more = len(text) - 2 * MOST_SHOWN
    return f"{text[:MOST_SHOWN]}… ({more} characters more) …{text[-MOST_SHOWN:]}"


def counted(count: int, one: str = "case", several: str | None = None) -> str:
    """Return ``1 case``, ``2 cases``; ``several``: the plural where it is not ``one`` with an s."""
    return f"1 {one}" if count == 1 else f"{count} {several or f'{one}s'}"


def listed(names: Sequence[str]) -> str:
    """Return the first three of many names, and the number of further ones."""
    more = len(names) - 3
    # The last one takes no more room than its count.
    shown = names if more <= 1 else names[:3]
    return f"{', '.join(shown)}{f' and {more} more' if more > 1 else ''}"


def grouped(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """Return the values by their keys, in the order of the first; a missing key has none."""
    found: dict[K, list[V]] = defaultdict(list)
    for key, value in pairs:
        found[key].append(value)
    return found


def line_of(found: re.Match[str]) -> int:
    """Return the number, from 1, of the line in which a match begins."""
    return found.string.count("\n", 0, found.start()) + 1


class NetproofError(Exception):
    """Anything that netproof refuses; its text is meant for the person at the terminal."""


class ParseError(NetproofError):
    """A benchmark's output that is not what its program prints.

    ``path`` is the file, ``line`` its line counted from 1 (0 where the fault is the whole
    file, an empty one for instance), ``text`` the line as found and ``reason`` what was
    expected there.
    """

    def __init__(self, path: str, line: int, text: str, reason: str) -> None:
        self.path, self.line, self.text, self.reason = path, line, text, reason
        place = f"{path}:{line}" if line else path
        stripped = text.strip()
        found = f": found {shortened(repr(stripped[: 2 * MOST_SHOWN]))}" if stripped else ""
        if len(stripped) > 2 * MOST_SHOWN:
            found += f" of a line of {len(stripped)}"
        reason = shortened(reason)
        super().__init__(f"{place}: {reason}{found}")
