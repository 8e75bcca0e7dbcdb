"""All criteria, each found by its module; adding a file to this room adds a criterion."""

from __future__ import annotations

from netproof.criteria.interface import Criterion
from netproof.declared import declared

# Modules that are not asked import this one.
CRITERIA: tuple[Criterion, ...] = declared(
    "netproof.criteria", "CRITERION", not_asked=("confirming", "refining", "registry", "settings")
)
"""Every criterion, in the order of docs/criteria.md."""

BY_FINDING = {name: criterion for criterion in CRITERIA for name in criterion.findings}
"""The criterion of each name of findings."""

CONFIRMED_BY_MEASURING = tuple(
    name for name, criterion in BY_FINDING.items() if criterion.again is not None
)
"""Names of findings whose sizes are measured again before they count."""
