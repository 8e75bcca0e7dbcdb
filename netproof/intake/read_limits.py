"""How much is read of what comes from outside, and how that is said."""

from __future__ import annotations

from dataclasses import dataclass

_NOT_SHOWN = 80


@dataclass(frozen=True)
class ReadLimits:
    """How much a text may hold.

    ``characters``: of the text; ``values``: scalars, lists and mappings, each as often as aliases
    repeat it; ``depth``: lists and mappings within each other; ``seconds``: of a CPU that
    reading YAML takes (JSON is read by C, in less than a second for each 10⁷ characters).
    """

    characters: int
    values: int
    depth: int
    seconds: float


def too_deep(limits: ReadLimits) -> str:
    """That lists and mappings are nested too deep."""
    return f"lists and mappings are nested deeper than {limits.depth}"


def too_much(place: object, most: str) -> str:
    """That a file has more than is read; ``most``: how much that is."""
    return f"{place}: has more than {most}, the most that is read"


def shown(value: object) -> str:
    """A value as Python writes it, cut where it is long."""
    text = repr(value)
    return text if len(text) <= _NOT_SHOWN else f"{text[:_NOT_SHOWN]}…"
