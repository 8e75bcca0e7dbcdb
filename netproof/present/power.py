"""The smallest changes that would have failed in a session, in words and plain values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from netproof.present.document import Block, Cell, DataTable, Links
from netproof.present.documents import some
from netproof.present.tables import CASE, case_cells
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


def blocks(powers: Sequence[CasePower], links: Links | None = None) -> Iterator[Block]:
    """Yield a line for each passed case: what would have failed it, and by which criterion.

    ``links``: to cases' charts, by the cases' keys.
    """
    passed = [one for one in powers if one.smallest]
    if not passed:
        yield "no case passed, so there is nothing to say of what would have failed"
        return
    head = [*CASE, "launches"]
    for change in Degradation:
        head += [change, "by"]
    rows = []
    for one in passed:
        partition, *named = case_cells(one.case)
        row: list[str | Cell] = [Cell(partition, link=(links or {}).get(one.case.key(), ""))]
        row += [*named, str(one.launches)]
        found = {each.change: each for each in one.smallest}
        for each in map(found.get, Degradation):
            row += [said(each), "-" if each is None or not each.by else each.by]
        rows.append(row)
    yield Cell(
        "the smallest change that this session would have called a failure (95 %)", "heading"
    )
    yield DataTable(head, rows, (3, 4, 5, 7, 9))
    single = sum(one.launches == 1 for one in passed)
    if single:
        have = counted(single, "case has", "cases have")
        yield f"about: {have} a single launch, so how sure that is is not known"
    blind = sum(None in (each.factor for each in one.smallest) for one in passed)
    if blind:
        yield Cell(
            f"{NOTHING_FAILS}: {counted(blind, 'case has', 'cases have')} no bound"
            " that such a change would cross, even 100 times; a reference would give it one",
            "warned",
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
