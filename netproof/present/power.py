"""The smallest changes that would have failed in a session, in words and plain values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console

from netproof.present.documents import some
from netproof.present.tables import TableColumn, case_columns, print_table
from netproof.present.terminal import say
from netproof.present.wording import counted
from netproof.verdict.power import CasePower, Degradation, Smallest

NOTHING_FAILS = "nothing fails"


def said(one: Smallest | None) -> str:
    """Return a change in a few words; ``-`` where the case has none of its kind."""
    if one is None:
        return "-"
    factor = one.sure or one.factor
    if factor is None:
        return NOTHING_FAILS
    about = "" if one.sure is not None else "about "
    if one.change is Degradation.BANDWIDTH:
        return f"{about}{1 - 1 / factor:.0%} less"
    if one.change is Degradation.LATENCY:
        return f"{about}{factor - 1:.0%} more" if factor < 2 else f"{about}{factor:.3g} times"
    return f"{about}{factor:.3g} times at {one.size} bytes"


def print_power(powers: Sequence[CasePower], out: Console) -> None:
    """Print a line for each passed case: what would have failed it, and by which criterion."""
    passed = [one for one in powers if one.smallest]
    if not passed:
        say(out, "no case passed, so there is nothing to say of what would have failed")
        return
    by_change = [{each.change: each for each in one.smallest} for one in passed]
    columns = [
        *case_columns(one.case for one in passed),
        TableColumn("launches", [str(one.launches) for one in passed]),
    ]
    for change in Degradation:
        found = [several.get(change) for several in by_change]
        columns.append(TableColumn(str(change), list(map(said, found))))
        by = ["-" if one is None or not one.by else one.by for one in found]
        columns.append(TableColumn("by", by, rank=1, right=False))
    say(out, "the smallest change that this session would have called a failure (95 %):", "bold")
    print_table(columns, out)
    single = sum(one.launches == 1 for one in passed)
    if single:
        have = counted(single, "case has", "cases have")
        say(out, f"about: {have} a single launch, so how sure that is is not known")
    blind = sum(None in (each.factor for each in one.smallest) for one in passed)
    if blind:
        say(
            out,
            f"{NOTHING_FAILS}: {counted(blind, 'case has', 'cases have')} no bound"
            " that such a change would cross, even 100 times; a reference would give it one",
            "yellow",
        )


def of_case(one: CasePower) -> dict[str, Any]:
    """Return the power of a case as plain values for ``json``."""
    return {
        "launches": one.launches,
        "changes": [
            {
                **some(each, "change", "factor", "sure", "size"),
                "criterion": each.by or None,
            }
            for each in one.smallest
        ],
    }
