"""The verb ``compare``: two sides, or every value of a dimension against the first one.

The dimension is the partition, the environment, or a label of stored sessions; everything else is
held fixed, since a case's counterpart has all of it in common.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from netproof.commands.options import Form, insist_on_reports, printed, verb
from netproof.errors import NetproofError

if TYPE_CHECKING:
    from netproof.session.session import Session
    from netproof.store import Store

Pair = tuple[str, str]

LABEL = "label="


@verb("cannot compare")
def compare(
    first: Path | None = None,
    second: Path | None = None,
    store: Path | None = None,
    label: tuple[str, str] | None = None,
    partition: tuple[str, str] | None = None,
    environment: tuple[str, str] | None = None,
    by: str | None = None,
    page: Path | None = None,
    form: Form = Form.TEXT,
) -> int:
    """Compare sessions, partitions or environments."""
    if by is None:
        insist_on_reports([name for name in (first, second) if name is not None], store)
    elif second is not None or label is not None:
        raise typer.BadParameter("takes one session, and no --label", param_hint="--by")
    from netproof.present import terminal

    failed: dict[str, str] = {}
    with terminal.working("reading the sessions"):
        if by is None:
            sessions = _sessions(first, second, store, label)
        else:
            values = _values(by, first, store, partition, environment)
    from netproof.comparison import comparison
    from netproof.present import compared

    if by is None:
        pair = comparison.sides(*sessions, partition, environment, label)
        only = comparison.compare(*pair, lambda cases: terminal.tracked(cases, "comparing"))
        several, title = [only], f"{only.second.name} against {only.first.name}"
        document = compared.document(only)
    else:
        with terminal.working("comparing"):
            several = []
            earliest, *others = values
            for value in others:
                both = (earliest, value)
                try:
                    sides = comparison.sides(
                        values[earliest],
                        values[value],
                        both if by == "partition" else partition,
                        both if by == "environment" else environment,
                        both if by.startswith(LABEL) else None,
                    )
                    several.append(comparison.compare(*sides))
                except NetproofError as error:
                    failed[value] = str(error)
            if not several:
                raise NetproofError("; ".join(failed.values()))
        title = f"By {by}: {', '.join(values)}"
        document = {
            "by": by,
            "values": list(values),
            "comparisons": [compared.document(one) for one in several],
            "not_compared": failed,
        }
    printed(
        form,
        lambda: document,
        lambda: compared.blocks(several, failed),
        page,
        lambda: compared.page(title, several, failed, every=by is not None),
    )
    return 0


def _sessions(
    first: Path | None, second: Path | None, store: Path | None, labels: Pair | None
) -> tuple[Session, Session | None]:
    if labels:
        if first is not None:
            raise NetproofError("name sessions or labels, not both")
        opened = _labels_in(store)
        from netproof.store import questions

        one, other = (questions.with_label(opened, label) for label in labels)
        return questions.load(opened, one), questions.load(opened, other)
    if first is None:
        raise NetproofError("name a session, or two with --label")
    from netproof.verdict import session_verdict

    found = session_verdict.find(first, store)
    return found, None if second is None else session_verdict.find(second, store)


def _labels_in(store: Path | None) -> Store:
    if store is None:
        raise NetproofError("labels are looked up in a store: name it with --store")
    from netproof.store import Store

    return Store(store)


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
        if name is not None:
            raise NetproofError("by a label the store's sessions are compared; name none")
        opened, label = _labels_in(store), by.removeprefix(LABEL)
        from netproof.store import questions

        newest = questions.labelled(opened, label).items()
        sessions = {f"{label}={value}": questions.load(opened, one) for value, one in newest}
    elif by in ("partition", "environment"):
        if name is None:
            raise NetproofError(f"by {by} one session is looked at: name it")
        from netproof.verdict import session_verdict

        stored = session_verdict.find(name, store)
        cases = [result.case for result in stored.results if result.case is not None]
        sessions = dict.fromkeys((getattr(case, by) for case in cases), stored)
    else:
        raise NetproofError(f"{by!r} is no dimension: partition, environment, or label=KEY")
    if len(sessions) < 2:
        only = f"one {by} only, {next(iter(sessions))}" if sessions else "no case to compare"
        raise NetproofError(f"there is {only}")
    return sessions
