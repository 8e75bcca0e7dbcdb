"""Launches of two configurations next to each other, by which alone the two are then compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from netproof.measurement.curve import Curve
from netproof.measurement.interval import FEWEST_RANKED
from netproof.verdict.subject import Subject

MOST_REASONS = 2
"""That a sentence gives of why launches do not count."""


@dataclass(frozen=True)
class Pair:
    """A launch of each of two configurations; ``why`` they do not show how the two differ."""

    own: Curve
    other: Curve
    why: tuple[str, ...] = ()


@dataclass(frozen=True)
class Pairs:
    """Those by which two configurations are compared; ``short``: why they show no failure."""

    launches: tuple[tuple[Curve, Curve], ...]
    short: str = ""


def pairs_needed(subject: Subject) -> int:
    """How many it takes to fail.

    Where a machine has two paces, two or three ratios can agree by chance and lie far off. From six
    on an interval holds whatever they scatter like. A site that allows fewer launches has those.
    """
    confirm = subject.settings.confirm
    apart = sum(not launch.peers for launch in subject.measured.launches)
    possible = max(confirm.most_launches - apart, confirm.launches)
    return min(max(confirm.launches, FEWEST_RANKED), possible)


def chosen(pairs: Sequence[Pair], needed: int) -> Pairs:
    """Those that nothing was in the way of, if they are ``needed`` or more; else all of them."""
    good = [pair for pair in pairs if not pair.why]
    if len(good) >= needed:
        return Pairs(tuple((pair.own, pair.other) for pair in good))
    reasons = list(dict.fromkeys(text for pair in pairs for text in pair.why))
    told = "; ".join(reasons[:MOST_REASONS])
    more = f", and {len(reasons) - MOST_REASONS} more reasons" if reasons[MOST_REASONS:] else ""
    short = (
        f"nothing was in the way of {len(good)} of {len(pairs)} pairs, and a failure takes {needed}"
        f"{': ' if told else ''}{told}{more}"
    )
    return Pairs(tuple((pair.own, pair.other) for pair in pairs), short)
