"""The body of ``netproof compare --by``: every value of one dimension against the first one.

The dimension is the partition, the environment, or a label of stored sessions; everything else is
held fixed, since a case's counterpart has all of it in common.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from netproof.comparison.comparison import Comparison, sides
from netproof.comparison.comparison import compare as compare_sides
from netproof.errors import NetproofError
from netproof.present import compared, documents, tables
from netproof.present.tables import TableColumn, say
from netproof.session.session import Session
from netproof.verdict import judging
from netproof.verdict.exit_status import CANNOT_JUDGE, PASSED

LABEL = "label="
_NOT_COMPARED = "none"

Pair = tuple[str, str]


@dataclass(frozen=True)
class ByDimension:
    """Every value but the first, each compared with it.

    ``values``: all of them, in order; ``failed``: values that have nothing in common with the
    first, each with the reason.
    """

    by: str
    values: tuple[str, ...]
    comparisons: dict[str, Comparison]
    failed: dict[str, str]


def run(
    by: str,
    name: Path | None,
    *,
    store: Path | None,
    partitions: Pair | None,
    environments: Pair | None,
    as_json: bool,
    folder: Path | None = None,
) -> int:
    """Compare along one dimension and return the exit status: 0 shown, 2 not possible.

    ``by``: partition, environment or ``label=KEY``; ``name``: the session, as ``judging.find``
    takes it, None for a label; ``partitions`` and ``environments``: what is held fixed, the same
    value twice; ``folder``: where a page on it is written too, None for no page.
    """
    try:
        with tables.working("comparing"):
            found = _alongside(by, name, store, partitions, environments)
        page = None if folder is None else _written(found, folder)
    except NetproofError as error:
        say(tables.console(stderr=True), f"netproof: cannot compare: {error}", "red")
        return CANNOT_JUDGE
    if as_json:
        documents.write(document(found), sys.stdout)
    else:
        print_alongside(found, tables.console())
        if page is not None:
            say(tables.console(), f"page {page}")
    return PASSED


def _written(found: ByDimension, folder: Path) -> Path:
    # Loading Altair takes a third of any command's start.
    from netproof.commands import report as command

    title = f"By {found.by}: {', '.join(found.values)}"
    return command.write_sides(title, list(found.comparisons.values()), folder, every=True)


def document(found: ByDimension) -> dict[str, Any]:
    """Return plain values for ``json``: the values, and each comparison as ``compared`` has it."""
    return {
        "format": documents.FORMAT,
        "by": found.by,
        "values": list(found.values),
        "comparisons": [compared.document(one) for one in found.comparisons.values()],
        "not_compared": found.failed,
    }


def print_alongside(found: ByDimension, out: Console) -> None:
    """Print origin and differences of each value, the table of ratios, a summary of each."""
    several = list(found.comparisons.values())
    first = several[0].first
    for side in (first, *(one.second for one in several)):
        say(out, f"{side.name}: {compared.whence(side)}")
    for one in several:
        for difference in compared.differences(one):
            say(out, f"configuration of {one.second.name}: {difference}")
        for sentence in compared.node_diffs(one):
            say(out, f"of {one.second.name}, {sentence}")
    for value, reason in found.failed.items():
        say(out, f"{value} is not compared: {reason}", "yellow")
    out.print()
    _print_ratios(several, out)
    for one in several:
        out.print()
        say(out, compared.summary(one), "bold")
        compared.print_uncompared(one, out)


def _print_ratios(several: Sequence[Comparison], out: Console) -> None:
    """Print a row for each case, a column for each value, in as many tables as they take."""
    rows: dict[str, None] = {}
    cells: dict[str, dict[str, Text]] = {}
    for one in several:
        column = cells.setdefault(one.second.name, {})
        for case in one.cases:
            row = compared.named(one, case.first.case)
            rows[row] = None
            value = "-" if case.score.value is None else f"{case.score.value:.2f}"
            mark = compared.MARKS[case.outcome]
            column[row] = Text(f"{value} {mark}", compared.STYLES.get(case.outcome, ""))
    names = TableColumn("", list(rows), right=False)
    columns = [
        TableColumn(name, [column.get(row, Text(_NOT_COMPARED)) for row in rows])
        for name, column in cells.items()
    ]
    tables.print_parts([names], columns, None, out)
    say(
        out,
        f"how many times as fast as {several[0].first.name}; "
        + "; ".join(f"{mark} {outcome.value}" for outcome, mark in compared.MARKS.items())
        + f"; {_NOT_COMPARED}: not in both",
        "dim",
    )


def _alongside(
    by: str,
    name: Path | None,
    store: Path | None,
    partitions: Pair | None,
    environments: Pair | None,
) -> ByDimension:
    for option, pair in (("partition", partitions), ("environment", environments)):
        if pair and (pair[0] != pair[1] or by == option):
            raise NetproofError(
                f"--{option} {' '.join(pair)}: what is compared is by {by}; --{option} can hold"
                " another dimension fixed, the same value twice"
            )
    if by.startswith(LABEL):
        sessions = _labelled(by.removeprefix(LABEL), name, store)
        values = tuple(sessions)
    elif by in ("partition", "environment"):
        if name is None:
            raise NetproofError(f"by {by} one session is looked at: name it")
        stored = judging.find(name, store)
        cases = [result.case for result in stored.results if result.case is not None]
        values = tuple(dict.fromkeys(getattr(case, by) for case in cases))
        sessions = dict.fromkeys(values, stored)
    else:
        raise NetproofError(f"{by!r} is no dimension: partition, environment, or label=KEY")
    if len(values) < 2:
        raise NetproofError(
            f"there is one {by} only, {values[0]}" if values else "there is no case to compare"
        )
    first, found = values[0], {}
    failed: dict[str, str] = {}
    for value in values[1:]:
        asked: dict[str, Pair | None] = {"partition": partitions, "environment": environments}
        names = None
        if by in asked:
            asked[by] = (first, value)
        else:
            names = (first, value)
        try:
            found[value] = compare_sides(
                *sides(
                    sessions[first],
                    sessions[value],
                    asked["partition"],
                    asked["environment"],
                    names,
                )
            )
        except NetproofError as error:
            failed[value] = str(error)
    if not found:
        raise NetproofError("; ".join(failed.values()))
    return ByDimension(by, values, found, failed)


def _labelled(label: str, name: Path | None, store: Path | None) -> dict[str, Session]:
    """Return the newest session of each value of a label, by label and value, oldest first."""
    if name is not None:
        raise NetproofError("by a label the store's sessions are compared; name none")
    if store is None:
        raise NetproofError("labels are looked up in a store: name it with --store")
    from netproof.store import Store, questions

    opened = Store(store)
    return {
        f"{label}={value}": questions.load(opened, stored)
        for value, stored in questions.labelled(opened, label).items()
    }
