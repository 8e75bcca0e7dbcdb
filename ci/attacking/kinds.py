"""Attacks by mutated inputs, in the order of the table."""

from __future__ import annotations

from pathlib import Path

from ci.attacking import expressions, outputs, references, reports, sites, topologies
from ci.attacking.inputs import Attack

MUTATED = (
    *("NetPIPE file", "NetPIPE print", "IMB output", "session report", "references", "site file"),
    *("topology", "patterns"),
)
"""Their names."""
_MODULES = (outputs, reports, references, sites, topologies, expressions)


def attacks(folder: Path) -> dict[str, Attack]:
    """Return all attacks by name; ``folder`` is for inputs read from a file."""
    return {attack.name: attack for module in _MODULES for attack in module.attacks(folder)}
