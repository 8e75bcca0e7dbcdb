"""All criteria, from the modules of their families."""

from __future__ import annotations

from netproof.criteria import (
    consistency,
    counters,
    launches,
    paths,
    protocol,
    rate,
    score,
    shape,
    slower,
)
from netproof.criteria.interface import Criterion

FAMILIES = (slower, score, shape, rate, launches, counters, paths, consistency, protocol)

CRITERIA: tuple[Criterion, ...] = tuple(
    sorted((one for family in FAMILIES for one in family.CRITERIA), key=lambda one: one.number)
)
"""Every criterion, in the order of docs/criteria.md."""

BY_FINDING = {name: criterion for criterion in CRITERIA for name in criterion.findings}
"""The criterion of each name of findings."""

RELATIVE = tuple(name for name, criterion in BY_FINDING.items() if criterion.of_baseline)
"""Names of findings that are relative to the baseline."""

CONFIRMED_BY_MEASURING = tuple(
    name for name, criterion in BY_FINDING.items() if criterion.at_sizes is not None
)
"""Names of findings whose sizes are measured again before they count."""
