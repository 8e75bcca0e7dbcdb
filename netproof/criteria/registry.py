"""All criteria, from the modules of their families."""

from __future__ import annotations

from netproof.criteria import consistency, counters, launches, protocol, rate, score, shape, slower
from netproof.criteria.interface import Criterion, Shows

FAMILIES = (slower, score, shape, rate, launches, counters, consistency, protocol)

CRITERIA: tuple[Criterion, ...] = tuple(
    criterion for family in FAMILIES for criterion in family.CRITERIA
)
"""Every criterion, in the order in which its findings are listed."""

BY_FINDING = {criterion.name: criterion for criterion in CRITERIA}
"""The criterion of each name of findings."""

SHOWING = {what: tuple(one.name for one in CRITERIA if one.shows is what) for what in Shows}
"""Names of findings that show something of the network by themselves."""

RELATIVE = tuple(name for name, criterion in BY_FINDING.items() if criterion.of_baseline)
"""Names of findings that are relative to the baseline."""

CONFIRMED_BY_MEASURING = tuple(
    name for name, criterion in BY_FINDING.items() if criterion.at_sizes is not None
)
"""Names of findings whose sizes are measured again before they count."""
