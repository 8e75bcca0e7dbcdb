"""How far a node's CPUs are apart in each half of a launch inside it.

A hypervisor moves virtual CPUs between cores that share a cache and cores that do not. What two
ranks of a node exchange then takes several times as long, by every library. A site may name a
command that watches how long two CPUs take to hand a cache line over, in ns. Inside a node,
launches are compared next to each other only where that was alike in both halves of both.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from netproof.errors import ParseError
from netproof.intake.numbering import numbered

_BEGUN = re.compile(r"netproof pace on .*")
_WHOLE = re.compile(r"netproof pace on [^\t]+\t([^\t]+)\tend")
_ABSENT = "absent: "

HALVES = 2
"""How often it is told of a launch: the mean of each half."""


@dataclass(frozen=True)
class Pace:
    """What was read in a half of a launch in an environment: ``ns``, or None and ``why``."""

    environment: str
    ns: float | None
    why: str = ""

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Pace:
        """Of plain values with its fields' names; KeyError where one is missing."""
        return cls(values["environment"], values["ns"], values["why"])


def paces(errors: Path, text: str, environment: str) -> tuple[Pace, ...]:
    """By ``text``, a step's standard error at ``errors``, in order; empty where it tells none.

    Raises ParseError for a line that is damaged, and where there are more than ``HALVES``.
    """
    lines = list(numbered(_BEGUN, text))
    if len(lines) > HALVES:
        number, found = lines[-1]
        told = f"is a pace more than {HALVES} of one launch"
        raise ParseError(str(errors), number, found[0], told)
    return tuple(_read(errors, number, found[0], environment) for number, found in lines)


def _read(errors: Path, number: int, line: str, environment: str) -> Pace:
    whole = _WHOLE.fullmatch(line)
    if whole is None:
        raise ParseError(str(errors), number, line, "is no pace of a node: it is not whole")
    if whole[1].startswith(_ABSENT):
        return Pace(environment, None, whole[1].removeprefix(_ABSENT))
    try:
        ns = float(whole[1])
    except ValueError:
        ns = math.nan
    if not 0 < ns < math.inf:
        raise ParseError(str(errors), number, line, "is no pace of a node: it is no time in ns")
    return Pace(environment, ns)


def unlike(own: Sequence[Pace], others: Sequence[Pace], most: float) -> str:
    """Why two launches next to each other cannot be compared; empty where they can.

    That is where their paces are more than ``most`` times apart, or one is not known. Where a site
    has none, nobody knows, and they are compared.
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
    """The least and the largest of a launch, in ns."""
    known = [one.ns for one in launch if one.ns is not None]
    return min(known), max(known)
