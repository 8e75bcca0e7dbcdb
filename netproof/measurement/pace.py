"""How far a node's CPUs are apart when a launch inside it has run.

A hypervisor moves virtual CPUs between cores that share a cache and cores that do not. What two
ranks of a node exchange then takes several times as long, by every library, for seconds. A site may
name a command that prints how long two CPUs take to hand a cache line over, in ns. Inside a node,
launches are compared next to each other only where that was alike.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from netproof.errors import ParseError
from netproof.intake.numbering import numbered

_BEGUN = re.compile(r"netproof pace on .*")
_WHOLE = re.compile(r"netproof pace on [^\t]+\t([^\t]+)\tend")
_ABSENT = "absent: "


@dataclass(frozen=True)
class Pace:
    """What was read behind a launch in an environment, ``ns``; None is not known, and ``why``."""

    environment: str
    ns: float | None
    why: str = ""

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Pace:
        """Of plain values with its fields' names; KeyError where one is missing."""
        return cls(values["environment"], values["ns"], values["why"])


def pace(errors: Path, text: str, environment: str) -> Pace | None:
    """By ``text``, a step's standard error at ``errors``; None where it does not tell.

    Raises ParseError for a line that is damaged, and where there are two.
    """
    lines = list(numbered(_BEGUN, text))
    if not lines:
        return None
    number, found = lines[-1]
    if len(lines) > 1:
        raise ParseError(str(errors), number, found[0], "is a second pace of one launch")
    whole = _WHOLE.fullmatch(found[0])
    if whole is None:
        raise ParseError(str(errors), number, found[0], "is no pace of a node: it is not whole")
    if whole[1].startswith(_ABSENT):
        return Pace(environment, None, whole[1].removeprefix(_ABSENT))
    try:
        ns = float(whole[1])
    except ValueError:
        ns = math.nan
    if not 0 < ns < math.inf:
        raise ParseError(str(errors), number, found[0], "is no pace of a node: it is no time in ns")
    return Pace(environment, ns)


def unlike(one: Pace | None, other: Pace | None, most: float) -> str:
    """Why two launches next to each other cannot be compared; empty where they can.

    That is where their paces are more than ``most`` times apart, or one is not known. Where a site
    has none, nobody knows, and they are compared.
    """
    if one is None or other is None:
        return ""
    for each in (one, other):
        if each.ns is None:
            return f"the pace of a launch in {each.environment} is not known: {each.why}"
    low, high = sorted((one, other), key=lambda each: each.ns or 0)
    if high.ns <= most * low.ns:
        return ""
    return (
        f"the node's CPUs were {low.ns:.0f} ns apart for {low.environment} and {high.ns:.0f} ns for"
        f" {high.environment}"
    )
