"""How far a node's CPUs are apart in each half of a launch inside it.

A hypervisor moves virtual CPUs between cores that share a cache and cores that do not. Exchanges
between two ranks of a node then take several times as long, with every library. A site may name a
command that measures how long two CPUs take to hand a cache line over, in ns. Inside a node, paired
launches are compared only where that was alike in both halves of both.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from netproof.errors import ParseError, line_of

_BEGUN = re.compile(r"netproof pace on .*")
_WHOLE = re.compile(r"netproof pace on [^\t]+\t([^\t]+)\tend")
_ABSENT = "absent: "

HALVES = 2
"""Readings per launch: the mean of each half."""


@dataclass(frozen=True, slots=True)
class Pace:
    """Reading of a half of a launch in an environment: ``ns``, or None and ``why``."""

    environment: str
    ns: float | None
    why: str = ""


def paces(errors: Path, text: str, environment: str) -> tuple[Pace, ...]:
    """Read ``text``, a step's standard error at ``errors``, in order; empty without readings.

    Raise ParseError for a damaged line, and for more than ``HALVES``.
    """
    lines = list(_BEGUN.finditer(text))
    if len(lines) > HALVES:
        reason = f"is a pace more than {HALVES} of one launch"
        raise ParseError(str(errors), line_of(lines[-1]), lines[-1][0], reason)
    return tuple(_read(errors, found, environment) for found in lines)


def _read(errors: Path, found: re.Match[str], environment: str) -> Pace:
    whole = _WHOLE.fullmatch(found[0])
    if whole is None:
        reason = "is no pace of a node: it is not whole"
        raise ParseError(str(errors), line_of(found), found[0], reason)
    if whole[1].startswith(_ABSENT):
        return Pace(environment, None, whole[1].removeprefix(_ABSENT))
    try:
        ns = float(whole[1])
    except ValueError:
        ns = math.nan
    if not 0 < ns < math.inf:
        reason = "is no pace of a node: it is no time in ns"
        raise ParseError(str(errors), line_of(found), found[0], reason)
    return Pace(environment, ns)


def unlike(own: Sequence[Pace], others: Sequence[Pace], most: float) -> str:
    """Return why two paired launches cannot be compared; empty where they can.

    They cannot where their paces are more than ``most`` times apart, or one is not known. Where a
    site has none, they are compared.
    """
    if not own or not others:
        return ""
    for each in (*own, *others):
        if each.ns is None:
            return f"the pace of a launch in {each.environment} is not known: {each.why}"
    for launch in (own, others):
        low, high = _ends(launch)
        if high > most * low:
            return (
                f"the node's CPUs were {low:.0f} ns apart in one half of a launch in"
                f" {launch[0].environment} and {high:.0f} ns in the other"
            )
    near, far = sorted((own, others), key=_ends)
    (low, _), (_, high) = _ends(near), _ends(far)
    if high <= most * low:
        return ""
    return (
        f"the node's CPUs were {low:.0f} ns apart for {near[0].environment} and {high:.0f} ns for"
        f" {far[0].environment}"
    )


def _ends(launch: Sequence[Pace]) -> tuple[float, float]:
    """Return the least and the largest of a launch, in ns."""
    known = [one.ns for one in launch if one.ns is not None]
    return min(known), max(known)
