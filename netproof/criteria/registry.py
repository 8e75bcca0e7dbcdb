"""All criteria, each found by its module; adding a file to this room adds a criterion."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path

from netproof.criteria.interface import Criterion

_NOT_ASKED = ("confirming", "registry", "settings")
"""Modules that use what is found here."""


def _declared() -> tuple[Criterion, ...]:
    """What the modules of this room declare, by number."""
    names = [one.name for one in pkgutil.iter_modules([str(Path(__file__).parent)])]
    modules = [
        importlib.import_module(f"netproof.criteria.{name}")
        for name in names
        if name not in _NOT_ASKED
    ]
    found = [module.CRITERION for module in modules if hasattr(module, "CRITERION")]
    return tuple(sorted(found, key=lambda criterion: criterion.number))


CRITERIA = _declared()
"""Every criterion, in the order of docs/criteria.md."""

BY_FINDING = {name: criterion for criterion in CRITERIA for name in criterion.findings}
"""The criterion that makes the findings of a name."""

CONFIRMED_BY_MEASURING = tuple(
    name for name, criterion in BY_FINDING.items() if criterion.again is not None
)
"""The names of findings whose sizes are measured again before they count."""
