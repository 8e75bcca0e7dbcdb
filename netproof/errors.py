"""Errors that name a place and a remedy."""

from __future__ import annotations


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
        found = f": found {text.strip()!r}" if text.strip() else ""
        super().__init__(f"{place}: {reason}{found}")
