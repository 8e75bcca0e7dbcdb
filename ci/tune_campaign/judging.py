"""What a sweep says, compared with what was planted."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any

from ci.campaigns.telling import short
from ci.tune_campaign.kinds import KINDS, Kind
from ci.tune_campaign.records import Found, Judged, Run

TOLD, CANNOT_TELL = 0, 2
"""Exit statuses of ``netproof tune``."""


def judge(run: Run, status: int, text: str, errors: str) -> Judged:
    """What ``netproof tune --json`` is worth: its exit status, its document, its errors.

    Where they do not fit together, or are not what docs/tune.md describes, it was not judged.
    """
    kind = KINDS[run.kind]
    if status == CANNOT_TELL:
        said = [line for line in errors.splitlines() if line.startswith("netproof: ")]
        return Judged(Found.CANNOT, (short(said[-1]),)) if said else not_judged("says nothing")
    if status != TOLD:
        return not_judged(f"netproof tune ended with {status}")
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
    """Whether an algorithm wins at all sizes that is to win, or nowhere any."""
    winners = {row["winner"] for row in sweep["sizes"]}
    if winners - {None} - set(kind.best):
        found = Found.WRONG
    elif winners == set(kind.best or [None]):
        found = Found.RIGHT
    else:
        found = Found.MISSED
    return Judged(found, (short(sweep["conclusion"]),))


def _steps(kind: Kind, sweep: Mapping[str, Any]) -> Judged:
    """Whether each limit was seen between the sizes where it is, or the next ones."""
    sizes = [size for size, _ in sweep["values"][0]["by_size"]]
    told, seen = [], 0
    steps = {step["value"]: step["sizes"] for step in sweep["eager_steps"]}
    for value in kind.values:
        between = steps[value]
        seen += between is not None and _near(int(value), between[1], sizes)
        told.append(f"{value}: {'none' if between is None else f'{between[0]} to {between[1]}'}")
    found = Found.RIGHT if seen == len(kind.values) else Found.MISSED
    return Judged(found, (short(", ".join(told)),), (seen, len(kind.values)))


def _near(limit: int, above: int, sizes: Sequence[int]) -> bool:
    """Whether the first size that is not sent eagerly is that of a limit, or one next to it."""
    return above in sizes and abs(sizes.index(above) - bisect_right(sizes, limit)) <= 1


def not_judged(reason: str) -> Judged:
    """A run of which nothing can be said, and why."""
    return Judged(Found.NOT_JUDGED, (short(reason),))
