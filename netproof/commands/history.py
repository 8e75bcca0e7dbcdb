"""The verbs ``history``, which is ``history show`` without its name, and ``history accept``."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from netproof.commands.options import Form, printed, session_and_system, verb
from netproof.errors import NetproofError
from netproof.history.selection import NEWEST_SESSIONS, STRIDE, Quantity, Selection

if TYPE_CHECKING:
    from netproof.history.accepted import Acceptance
    from netproof.history.history_verdict import HistoryVerdict
    from netproof.present.document import Block


class HistoryVerbs(TyperGroup):
    """Run ``show`` for ``netproof history`` without the name of a command."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the name of the command there that is meant."""
        named = args[:1]
        if not named or named[0] not in {*self.commands, *ctx.help_option_names}:
            args = ["show", *args]
        return super().parse_args(ctx, args)


def _selection(
    case: list[str] | None, system: str | None, environment: str | None, quantity: Quantity | None
) -> tuple[str | None, Selection]:
    """Return system and series of a command; a bad expression is a fault of its arguments."""
    name, _, partition = (system or "").partition(":")
    try:
        return name or None, Selection(tuple(case or ()), partition or None, environment, quantity)
    except NetproofError as error:
        raise typer.BadParameter(str(error), param_hint="--case") from error


@verb("cannot follow")
def show(
    store: Path,
    arguments: list[str] | None = None,
    case: list[str] | None = None,
    environment: str | None = None,
    quantity: Quantity | None = None,
    last: Annotated[
        int | None,
        typer.Option(
            min=1,
            help=f"How many sessions are looked back on; {NEWEST_SESSIONS} or up to"
            f" {STRIDE - 1} more if left out.",
            show_default=False,
        ),
    ] = None,
    since: datetime | None = None,
    label: list[str] | None = None,
    plot: Path | None = None,
    form: Form = Form.TEXT,
) -> int:
    """Show what changed, or the series of cases."""
    session, system = session_and_system(arguments, store)
    system, selection = _selection(case, system, environment, quantity)
    from netproof.store import Store

    opened = Store(store)
    from netproof.history import history_verdict
    from netproof.present import terminal
    from netproof.present.history import document, overview, series, write
    from netproof.session.session import label_of

    with terminal.working("following the series"):
        verdict = history_verdict.judge(
            opened,
            system,
            None if session is None else str(session),
            last=last,
            since=since.date() if since else None,
            labels=dict(map(label_of, label or ())),
        )
    shown = verdict if selection.everything else verdict.of(selection)
    if plot is not None:
        write(shown, plot)
    for sentence in shown.nights.unread:
        terminal.say(terminal.console(stderr=True), sentence, "yellow")
    if verdict.not_kept:
        sentence = f"the next history takes as long as this one: {verdict.not_kept}"
        terminal.say(terminal.console(stderr=True), sentence, "yellow")
    answer = overview if selection.everything else series
    plotted = [] if plot is None else [f"plot {plot}"]
    printed(
        form,
        lambda: document(shown, series=not selection.everything),
        lambda: [*answer(shown), *plotted],
    )
    return shown.status


@verb("not accepted")
def accept(
    store: Path,
    arguments: list[str],
    reason: str,
    name: str,
    case: list[str] | None = None,
    environment: str | None = None,
    quantity: Quantity | None = None,
) -> int:
    """Record in the store that a change is intended."""
    session, system = session_and_system(arguments, store)
    if session is None:
        raise typer.BadParameter("name the first SESSION at the new level, or newest")
    system, selection = _selection(case, system, environment, quantity)
    from netproof.store import Store

    opened = Store(store)
    from netproof.history import accepted, history_verdict, series
    from netproof.present import terminal
    from netproof.present.document import show

    with terminal.working("following the series"):
        first = series.named(opened, str(session), system)
        verdict = history_verdict.judge(opened, first.system)
        covered = verdict.of(selection)
    when = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S}"
    acceptance = accepted.Acceptance(first.system, first.name, reason, name, when, selection)
    path = accepted.put(opened, acceptance)
    after = history_verdict.judge_with(verdict, opened, acceptance)
    lines = (
        f"accepted: {acceptance}",
        f"{len(covered.nights.series)} series of {covered.system} start again with session"
        f" {first.name}; each takes {history_verdict.least_nights()} nights until a change in it"
        " can be found again",
        f"to take it back, remove {path}",
    )
    show([*lines, *_left(acceptance, covered, after)], terminal.console())
    return 0


def _left(
    acceptance: Acceptance, covered: HistoryVerdict, after: HistoryVerdict
) -> Iterator[Block]:
    """Yield the open changes covered: those that end, those still open ``after``, those lost."""
    from netproof.present.document import Cell
    from netproof.present.history import since_when

    open_after = {shift.of for event in after.events for shift in event.shifts}
    for event in covered.events:
        later = event.session > acceptance.first
        what = f"{since_when(event)}, {len(event.shifts)} changes"
        if any(shift.of in open_after for shift in event.shifts):
            yield Cell(f"stays open{', since it began later' * later}: {what}", "warned")
        elif later:
            why = f"from {acceptance.session} to it there are too few nights to compare it with"
            remedy = "If it is not meant, take this back"
            yield Cell(f"ENDS THOUGH IT BEGAN LATER: {what}: {why}. {remedy}", "failed")
        else:
            yield Cell(f"ends: {what}", "passed")
    if not covered.events:
        none = "no change of these is open now: what is found later from there on is new"
        yield Cell(none, "warned")
