"""The body of ``netproof compare``: finds both sides, compares, prints."""

from __future__ import annotations

import sys
from pathlib import Path

from netproof.comparison.comparison import Comparison, compare, sides
from netproof.errors import NetproofError
from netproof.present import documents, tables
from netproof.present.compared import document, print_comparison
from netproof.present.tables import say
from netproof.session.session import Session
from netproof.verdict import judging
from netproof.verdict.exit_status import CANNOT_JUDGE, PASSED


def run(
    first: Path | None,
    second: Path | None,
    *,
    store: Path | None,
    labels: tuple[str, str] | None,
    partitions: tuple[str, str] | None,
    environments: tuple[str, str] | None,
    as_json: bool,
    folder: Path | None = None,
) -> int:
    """Compare two sides and return the exit status: 0 shown, 2 not possible.

    ``folder``: where a page on them is written too, None for no page.

    ``first`` and ``second`` as ``judging.find`` takes them; ``labels``: in their place, those of
    the store's newest session with each, ``KEY=VALUE``; the rest as ``comparison.sides``.
    """
    try:
        with tables.working("reading the sessions"):
            sessions = _sessions(first, second, store, labels)
        pair = sides(*sessions, partitions, environments, labels)
        compared = compare(*pair, lambda cases: tables.tracked(cases, "comparing"))
        page = None if folder is None else _written(compared, folder)
    except NetproofError as error:
        say(tables.console(stderr=True), f"netproof: cannot compare: {error}", "red")
        return CANNOT_JUDGE
    if as_json:
        documents.write(document(compared), sys.stdout)
    else:
        print_comparison(compared, tables.console())
        if page is not None:
            say(tables.console(), f"page {page}")
    return PASSED


def _written(compared: Comparison, folder: Path) -> Path:
    # Loading Altair takes a third of any command's start.
    from netproof.commands import report as command

    title = f"{compared.second.name} against {compared.first.name}"
    return command.write_sides(title, [compared], folder)


def _sessions(
    first: Path | None, second: Path | None, store: Path | None, labels: tuple[str, str] | None
) -> tuple[Session, Session | None]:
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
    return judging.find(first, store), None if second is None else judging.find(second, store)
