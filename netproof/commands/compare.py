"""The verb ``compare``: two sides, or every value of a dimension against the first one.

The dimension is the partition, the environment, or a label of stored sessions; everything else is
held fixed, since a case's counterpart has all of it in common.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from netproof.commands.options import (
    Form,
    FormatOption,
    PageOption,
    SessionStoreOption,
    insist_on_reports,
    verb,
)
from netproof.errors import NetproofError

if TYPE_CHECKING:
    from rich.console import Console

    from netproof.comparison.comparison import Comparison
    from netproof.session.session import Session

Pair = tuple[str, str]

LABEL = "label="
_NOT_COMPARED = "none"


@verb(
    "cannot compare",
    "compare reports/run-1.json reports/run-2.json",
    "compare newest --by partition --store store",
    "compare --label kernel=6.1 kernel=6.6 --store store --to page",
)
def compare(
    first: Annotated[
        Path | None,
        typer.Argument(help="Session report, or a session's name in the store.", readable=False),
    ] = None,
    second: Annotated[
        Path | None, typer.Argument(help="Another one; the same if left out.", readable=False)
    ] = None,
    store: SessionStoreOption = None,
    label: Annotated[
        tuple[str, str] | None,
        typer.Option(
            "--label",
            metavar="A B",
            help="KEY=VALUE of each side: the store's newest session with that label.",
        ),
    ] = None,
    partition: Annotated[
        tuple[str, str] | None,
        typer.Option("--partition", metavar="A B", help="Partition of each side."),
    ] = None,
    environment: Annotated[
        tuple[str, str] | None,
        typer.Option("--environment", metavar="A B", help="Environment of each side."),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            "--by",
            help="All values of one dimension compared with the first: partition, environment, or"
            " label=KEY over the store.",
        ),
    ] = None,
    folder: PageOption = None,
    form: FormatOption = Form.TEXT,
) -> int:
    """Compare sessions, partitions or environments."""
    if by is not None:
        if second is not None or label is not None:
            raise typer.BadParameter("takes one session, and no --label", param_hint="--by")
        return _by_dimension(by, first, store, partition, environment, folder, form)
    insist_on_reports([name for name in (first, second) if name is not None], store)
    from netproof.comparison import comparison
    from netproof.present import documents, terminal
    from netproof.present.compared import document, print_comparison

    with terminal.working("reading the sessions"):
        sessions = _sessions(first, second, store, label)
    pair = comparison.sides(*sessions, partition, environment, label)
    compared = comparison.compare(*pair, lambda cases: terminal.tracked(cases, "comparing"))
    title = f"{compared.second.name} against {compared.first.name}"
    page = _page(title, [compared], folder)
    if form is Form.JSON:
        documents.write(document(compared), sys.stdout)
    else:
        print_comparison(compared, terminal.console())
        if page is not None:
            terminal.say(terminal.console(), f"page {page}")
    return 0


def _page(
    title: str, comparisons: Sequence[Comparison], folder: Path | None, *, every: bool = False
) -> Path | None:
    """Write a page on the comparisons where a folder was named, and return its path."""
    if folder is None:
        return None
    from netproof.present.html import sides
    from netproof.present.html.folder import write_page

    return write_page(folder, lambda: sides.page(title, comparisons, every=every))


def _sessions(
    first: Path | None, second: Path | None, store: Path | None, labels: Pair | None
) -> tuple[Session, Session | None]:
    from netproof.verdict import session_verdict

    if labels:
        if first is not None:
            raise NetproofError("name sessions or labels, not both")
        if store is None:
            raise NetproofError("labels are looked up in a store: name it with --store")
        from netproof.store import Store, questions

        opened = Store(store)
        return tuple(
            questions.load(opened, questions.with_label(opened, label)) for label in labels
        )
    if first is None:
        raise NetproofError("name a session, or two with --label")
    return session_verdict.find(first, store), None if second is None else session_verdict.find(
        second, store
    )


def _by_dimension(
    by: str,
    name: Path | None,
    store: Path | None,
    partitions: Pair | None,
    environments: Pair | None,
    folder: Path | None,
    form: Form,
) -> int:
    """Compare along one dimension; ``partitions``, ``environments``: fixed, the same value twice.

    A value that has nothing in common with the first is shown with the reason.
    """
    from netproof.present import compared, documents, terminal

    with terminal.working("comparing"):
        sessions = _values(by, name, store, partitions, environments)
        comparisons, failed = _against_first(by, sessions, partitions, environments)
    page = _page(f"By {by}: {', '.join(sessions)}", comparisons, folder, every=True)
    if form is Form.JSON:
        document = {
            "format": documents.FORMAT,
            "by": by,
            "values": list(sessions),
            "comparisons": [compared.document(one) for one in comparisons],
            "not_compared": failed,
        }
        documents.write(document, sys.stdout)
    else:
        _print_dimension(comparisons, failed, terminal.console())
        if page is not None:
            terminal.say(terminal.console(), f"page {page}")
    return 0


def _values(
    by: str,
    name: Path | None,
    store: Path | None,
    partitions: Pair | None,
    environments: Pair | None,
) -> dict[str, Session]:
    """Return the session of each value of a dimension, in order; at least two."""
    for option, pair in (("partition", partitions), ("environment", environments)):
        if pair and (pair[0] != pair[1] or by == option):
            raise NetproofError(
                f"--{option} {' '.join(pair)}: what is compared is by {by}; --{option} can hold"
                " another dimension fixed, the same value twice"
            )
    if by.startswith(LABEL):
        sessions = _labelled(by.removeprefix(LABEL), name, store)
    elif by in ("partition", "environment"):
        if name is None:
            raise NetproofError(f"by {by} one session is looked at: name it")
        from netproof.verdict import session_verdict

        stored = session_verdict.find(name, store)
        cases = [result.case for result in stored.results if result.case is not None]
        sessions = dict.fromkeys((getattr(case, by) for case in cases), stored)
    else:
        raise NetproofError(f"{by!r} is no dimension: partition, environment, or label=KEY")
    if not sessions:
        raise NetproofError("there is no case to compare")
    if len(sessions) < 2:
        raise NetproofError(f"there is one {by} only, {next(iter(sessions))}")
    return sessions


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


def _against_first(
    by: str,
    sessions: Mapping[str, Session],
    partitions: Pair | None,
    environments: Pair | None,
) -> tuple[list[Comparison], dict[str, str]]:
    """Return each value's comparison with the first, and why others have none."""
    from netproof.comparison import comparison

    first, *others = sessions
    found: list[Comparison] = []
    failed: dict[str, str] = {}
    for value in others:
        sides_by: dict[str, Pair | None] = {"partition": partitions, "environment": environments}
        names = None
        if by in sides_by:
            sides_by[by] = (first, value)
        else:
            names = (first, value)
        both = sessions[first], sessions[value]
        try:
            found.append(comparison.compare(*comparison.sides(*both, *sides_by.values(), names)))
        except NetproofError as error:
            failed[value] = str(error)
    if not found:
        raise NetproofError("; ".join(failed.values()))
    return found, failed


def _print_dimension(
    several: Sequence[Comparison], failed: Mapping[str, str], out: Console
) -> None:
    """Print origin and differences of each value, the table of ratios, a summary of each."""
    from netproof.present import compared
    from netproof.present.terminal import say

    first = several[0].first
    for side in (first, *(one.second for one in several)):
        say(out, f"{side.name}: {compared.whence(side)}")
    for one in several:
        for difference in compared.differences(one):
            say(out, f"configuration of {one.second.name}: {difference}")
        for sentence in compared.node_diffs(one):
            say(out, f"of {one.second.name}, {sentence}")
    for value, reason in failed.items():
        say(out, f"{value} is not compared: {reason}", "yellow")
    out.print()
    _print_ratios(several, out)
    for one in several:
        out.print()
        say(out, compared.summary(one), "bold")
        compared.print_uncompared(one, out)


def _print_ratios(several: Sequence[Comparison], out: Console) -> None:
    """Print a row for each case, a column for each value, in as many tables as they take."""
    from rich.text import Text

    from netproof.present import compared, tables, terminal
    from netproof.present.tables import TableColumn

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
    terminal.say(
        out,
        f"how many times as fast as {several[0].first.name}; "
        + "; ".join(f"{mark} {outcome.value}" for outcome, mark in compared.MARKS.items())
        + f"; {_NOT_COMPARED}: not in both",
        "dim",
    )
