"""The verbs on a session: ``verdict``, ``report`` and ``diagnose``."""

from __future__ import annotations

import os
import shlex
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from netproof.commands.options import (
    Form,
    VerdictForm,
    alongside,
    printed,
    session_and_system,
    verb,
)
from netproof.commands.reframe import Where
from netproof.errors import NetproofError
from netproof.verdict import EARLIER_SESSIONS, MAX_AGE_DAYS, SESSIONS

if TYPE_CHECKING:
    from netproof.history.series import Nights

PAIRS = "pairs.py"


@verb("cannot judge")
def verdict(
    arguments: list[str] | None = None,
    store: Path | None = None,
    full: bool = False,
    everything: bool = False,
    with_stored: bool = False,
    max_age: float = MAX_AGE_DAYS,
    leave_out_marked: bool = False,
    fold: Annotated[
        int,
        typer.Option(
            min=0,
            max=EARLIER_SESSIONS,
            metavar="N",
            help="Warnings that each of the last N sessions had, 3 at least, are one line; 0: none"
            " is.",
        ),
    ] = SESSIONS,
    again: bool = False,
    power: bool = False,
    form: VerdictForm = VerdictForm.TEXT,
) -> int:
    """Print the verdict on a session."""
    asked = alongside(with_stored, store, max_age, leave_out_marked)
    if again and asked is not None:
        raise typer.BadParameter("--again and --with-stored do not go together")
    if power and form is VerdictForm.JUNIT:
        raise typer.BadParameter("--power is not part of JUnit's XML")
    session, system = session_and_system(arguments, store, newest=True)
    from netproof.present import documents, terminal
    from netproof.present.document import show
    from netproof.present.verdict import brief, changes, of_power, power_blocks
    from netproof.verdict import session_verdict

    as_json = form is VerdictForm.JSON
    with terminal.working("judging the session"):
        judged = session_verdict.judge_session(
            session_verdict.find(session, store, lazily=not (as_json or power or everything)),
            system=system,
            full=full,
            asked=asked,
            fold=fold,
            store=store,
            again=again,
        )
    powers = []
    if power:
        with terminal.working("changing each case until it fails"):
            powers = session_verdict.power_of(judged)
    if as_json:
        document = documents.of_judged(judged)
        if power:
            several = [{**documents.plain(one.case), **of_power(one)} for one in powers]
            document = {**document, "power": several}
        documents.write(document, sys.stdout)
        return judged.verdict.status
    if form is VerdictForm.JUNIT:
        from netproof.present.verdict import junit

        info, system = judged.session.info, judged.matrix.cases[0].system
        began = datetime.fromtimestamp(info.get("time_start_unix", 0), UTC).isoformat()
        seconds = info.get("time_elapsed", 0)
        sys.stdout.buffer.write(junit(system, judged.verdict, began, seconds))
        return judged.verdict.status
    out = terminal.console()
    if everything:
        # It loads what only the comparisons and costs take.
        from netproof.present.session import whole

        show(whole(judged), out)
    else:
        show(brief(judged), out)
    show([changes(judged)] if again else [], out)
    show(power_blocks(powers) if power else [], out)
    return judged.verdict.status


@verb("no report")
def report(
    arguments: list[str] | None = None,
    store: Path | None = None,
    full: bool = False,
    with_stored: bool = False,
    max_age: float = MAX_AGE_DAYS,
    leave_out_marked: bool = False,
    folder: Path | None = None,
    formats: str = "html",
    switch: str | None = None,
    power: bool = False,
) -> int:
    """Write pages and charts on a session."""
    asked = alongside(with_stored, store, max_age, leave_out_marked)
    session, system = session_and_system(arguments, store, newest=True)
    from netproof.present import terminal
    from netproof.present.html.folder import beside
    from netproof.present.html.page import write
    from netproof.present.html.report import FORMATS, HTML, MAIN, Report
    from netproof.verdict import session_verdict

    wanted = tuple(dict.fromkeys(name.strip().lower() for name in formats.split(",")))
    unknown = [name for name in wanted if name not in FORMATS]
    if unknown:
        raise NetproofError(
            f"--format {formats}: unknown format {', '.join(map(repr, unknown))}; choose"
            f" {', '.join(FORMATS)}, with commas between them"
        )
    with terminal.working("judging the session"):
        judged = session_verdict.judge_session(
            session_verdict.find(session, store), system=system, full=full, asked=asked, store=store
        )
    target = folder or beside(judged.session.path, "report")
    name = session or judged.session.path
    again = ["netproof", "report", str(name), *([system] if system else [])]
    again += ["--store", str(store)] if store and (asked or not name.is_file()) else []
    again += ["--full"] if full else []
    if asked:
        again += ["--with-stored", "--max-age", f"{max_age:g}"]
        again += ["--leave-out-marked"] if leave_out_marked else []
    again += ["--switch", switch] if switch else []
    again += ["--format", formats] if formats != "html" else []
    again += ["--power"] if power else []
    with terminal.working("gathering what the report shows"):
        nights = _nights(store, judged.matrix.cases[0].system)
        gathered = Report(judged, wanted, shlex.join(again), switch, power, nights)
    write(gathered, target)
    shown = target / (MAIN if HTML in wanted else "charts")
    terminal.say(terminal.console(), f"report {shown}")
    return 0


def _nights(store: Path | None, system: str) -> Nights | None:
    """Return the series of a system's stored sessions; None without any that can be read."""
    if store is None or not store.is_dir():
        return None
    from netproof.history import history_verdict
    from netproof.store import Store

    try:
        return history_verdict.judge(Store(store), system).nights
    except NetproofError:
        # Its own verb says what is wrong with it.
        return None


@verb("cannot diagnose")
def diagnose(
    arguments: list[str] | None = None,
    store: Path | None = None,
    back: int = EARLIER_SESSIONS,
    measure: bool = False,
    form: Form = Form.TEXT,
) -> int:
    """Say what is wrong, where, since when."""
    session, system = session_and_system(arguments, store, newest=not measure)
    name, _, partition = (system or "").partition(":")
    if measure and session is not None:
        raise typer.BadParameter("--measure makes a session of its own: leave SESSION out")
    if measure and not partition:
        raise typer.BadParameter("--measure takes SYSTEM:PARTITION")
    from netproof.diagnosis import diagnosis
    from netproof.present import diagnosis as shown
    from netproof.present import terminal
    from netproof.verdict import session_verdict

    if measure:
        session = Where.of(system or "").measure(PAIRS, {}, "", "pairs", "rounds of pairs")
    # ci/activate names the folder of a store that only the first session makes.
    known = store
    if store is not None and os.environ.get("NETPROOF_STORE") == str(store) and not store.exists():
        known = None
    with terminal.working("judging the session"):
        found = session_verdict.find(session, store)
        measured = {one.case.partition for one in found.results if one.case is not None}
        # What else the session measured is compared with the partition.
        expected = system if measured <= {partition} else name or None
        judged = session_verdict.judge_session(found, system=expected, fold=0)
        earlier = diagnosis.sessions_before(judged, known, back)
        diagnoses = diagnosis.diagnose(judged, partition or None, earlier)
    lines = [line for one in diagnoses for line in shown.lines(one)]
    session_line = f"session {judged.session.path}"
    printed(form, lambda: shown.document(judged, diagnoses), lambda: [*lines, session_line])
    return diagnosis.status(diagnoses)
