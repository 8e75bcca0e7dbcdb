"""Grade a sweep by the planted setting."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any

from ci.campaigns.telling import short
from ci.tune_campaign.kinds import KINDS, Kind
from ci.tune_campaign.records import Found, Judged, Run

DONE, CANNOT_TELL = 0, 2
"""Exit statuses of ``netproof measure tune``."""


def judge(run: Run, status: int, text: str, errors: str) -> Judged:
    """Grade ``netproof measure`` by its exit status, its document and its errors.

    The sweep is not judged where they contradict each other or docs/validation/tuning.md.
    """
    kind = KINDS[run.kind]
    if status == CANNOT_TELL:
        said = [line for line in errors.splitlines() if line.startswith("netproof: ")]
        return Judged(Found.CANNOT, (short(said[-1]),)) if said else not_judged("says nothing")
    if status != DONE:
        return not_judged(f"netproof measure tune ended with {status}")
    try:
        (sweep,) = json.loads(text)["sweeps"]
        if sweep["parameter"] != kind.parameter:
            return not_judged(f"it is a sweep of {sweep['parameter']}")
        if kind.function:
            return _winners(kind, sweep)
        return _steps(kind, sweep) if kind.steps else _recommendation(kind, sweep["recommended"])
    except (ValueError, KeyError, TypeError) as error:
        return not_judged(f"its document cannot be read: {error!r}")


def _recommendation(kind: Kind, best: Mapping[str, Any] | None) -> Judged:
    if best is None:
        return Judged(Found.MISSED if kind.best else Found.RIGHT, ("nothing recommended",))
    right = best["value"] in kind.best
    return Judged(Found.RIGHT if right else Found.WRONG, (short(best["sentence"]),))


def _winners(kind: Kind, sweep: Mapping[str, Any]) -> Judged:
    """Check that the planted algorithm wins at all sizes, or none anywhere without one."""
    winners = {row["winner"] for row in sweep["sizes"]}
    if winners - {None} - set(kind.best):
        found = Found.WRONG
    elif winners == set(kind.best or [None]):
        found = Found.RIGHT
    else:
        found = Found.MISSED
    return Judged(found, (short(sweep["conclusion"]),))


def _steps(kind: Kind, sweep: Mapping[str, Any]) -> Judged:
    """Check that each limit shows between the right sizes, or their neighbours."""
    sizes = [size for size, _ in sweep["values"][0]["by_size"]]
    seen_at, seen = [], 0
    steps = {step["value"]: step["sizes"] for step in sweep["eager_steps"]}
    for value in kind.values:
        between = steps[value]
        seen += between is not None and _near(int(value), between[1], sizes)
        seen_at.append(f"{value}: {'none' if between is None else f'{between[0]} to {between[1]}'}")
    found = Found.RIGHT if seen == len(kind.values) else Found.MISSED
    return Judged(found, (short(", ".join(seen_at)),), (seen, len(kind.values)))


def _near(limit: int, above: int, sizes: Sequence[int]) -> bool:
    """Check that the first size not sent eagerly fits a limit, give or take one size."""
    return above in sizes and abs(sizes.index(above) - bisect_right(sizes, limit)) <= 1


def not_judged(reason: str) -> Judged:
    """Return the result of a run without an answer, with the reason."""
    return Judged(Found.NOT_JUDGED, (short(reason),))
