"""Sweeps that were measured before: the newest of each setting."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from netproof.errors import NetproofError
from netproof.tuning import sweep
from netproof.tuning.gains import Tuned
from netproof.tuning.sweep import Sweep


def newest(
    folder: Path, system: str, parameters: Collection[str]
) -> tuple[list[tuple[Sweep, Tuned]], dict[str, str]]:
    """The newest sweep of each of these settings and each case of a system, with what it says.

    With them, by setting, why the newest report of one says nothing. ``folder``: where reports of
    sweeps are; one that is not there has none.
    """
    found: dict[tuple[object, ...], tuple[Sweep, Tuned]] = {}
    faults: dict[str, str] = {}
    for name in parameters:
        # A report is named by its setting and its moment, so the last one by name is the newest.
        for path in sorted(folder.glob(f"run-{name}-*.json")):
            try:
                several = [(one, one.tuned()) for one in sweep.of_report(path)]
            except NetproofError as error:
                faults[name] = str(error)
                continue
            faults.pop(name, None)
            for one, tuned in several:
                if one.case.system == system and one.parameter == name:
                    found[(name, *one.case.key())] = (one, tuned)
    return list(found.values()), faults
