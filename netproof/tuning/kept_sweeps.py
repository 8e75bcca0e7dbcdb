"""Sweeps that were measured before: the newest of each setting."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from netproof.tuning import sweep
from netproof.tuning.sweep import Sweep


def newest(folder: Path, system: str, parameters: Collection[str]) -> tuple[Sweep, ...]:
    """The newest sweep of each of these settings and each case of a system, by its report's name.

    ``folder``: where reports of sweeps are; one that is not there has none. Raises NetproofError,
    which names the report, where one of theirs cannot be read or has no sweep that is whole.
    """
    found: dict[tuple[object, ...], Sweep] = {}
    for name in parameters:
        # A report is named by its setting and its moment, so the last one by name is the newest.
        for path in sorted(folder.glob(f"run-{name}-*.json")):
            for one in sweep.of_report(path):
                if one.case.system == system and one.parameter == name:
                    found[(name, *one.case.key())] = one
    return tuple(found.values())
