"""Limits on external input, and their messages."""

from __future__ import annotations

from dataclasses import dataclass

_NOT_SHOWN = 80


@dataclass(frozen=True)
class ReadLimits:
    """Limits on a text.

    ``characters``: of the text; ``values``: scalars, lists and mappings, each as often as aliases
    repeat it; ``depth``: of nested lists and mappings; ``seconds``: of a CPU that reading YAML
    takes (JSON is read by C, in less than a second per 10⁷ characters).
    """

    characters: int
    values: int
    depth: int
    seconds: float


def too_deep(limits: ReadLimits) -> str:
    """Return the message that lists and mappings are nested too deep."""
    return f"lists and mappings are nested deeper than {limits.depth}"


def too_much(place: object, most: str) -> str:
    """Return the message that a file exceeds the limit ``most``."""
    return f"{place}: has more than {most}, the most that is read"


def shown(value: object) -> str:
    """Return a value as Python writes it, shortened where it is long."""
    text = repr(value)
    return text if len(text) <= _NOT_SHOWN else f"{text[:_NOT_SHOWN]}…"
