"""Earlier sweeps: the newest of each setting."""

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
    """Return the newest sweep of each setting and case of a system, with its result.

    The second value is, by setting, why its newest report has no result. ``folder``: of reports of
    sweeps; may be missing.
    """
    found: dict[tuple[object, ...], tuple[Sweep, Tuned]] = {}
    faults: dict[str, str] = {}
    for name in parameters:
        # Reports are named by setting and time, so the newest sorts last.
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
