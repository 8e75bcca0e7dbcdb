"""The body of ``netproof nightly``: one night from its lock to its hook, with an exit status."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import FrameType

from netproof.commands import entry
from netproof.commands.nightly import budget, conditions, junit, lock, measuring, summary
from netproof.commands.nightly.budget import minutes
from netproof.commands.nightly.measuring import Ended
from netproof.commands.nightly.summary import Night
from netproof.errors import NetproofError, shortened
from netproof.history import judging as history
from netproof.intake import trust
from netproof.present.characters import visible
from netproof.session import left, session
from netproof.session.left import Left
from netproof.session.session import Session
from netproof.site import module_path, shipped, site, slurm
from netproof.site.jobs import PlannedJob, jobs
from netproof.site.matrix import Matrix, matrix
from netproof.site.module_path import LOGIN_SHELL
from netproof.store import Store, durations
from netproof.verdict import judging
from netproof.verdict.exit_status import CANNOT_JUDGE, PASSED
from netproof.verdict.judge import reason_of
from netproof.verdict.judging import ingest
from netproof.verdict.options import AlongsideOptions

LATEST = "latest"
"""Link to the newest night's report, beside the reports."""

HOOK_S = 120
"""Seconds that the hook may take."""

HOOK = "the hook"

_NOT_SUBMITTED = ("startup", "setup", "compile", "compile_complete", "run")
"""ReFrame's phases of a test before Slurm has its job."""
_MOST_REASONS = 3

_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@dataclass(frozen=True)
class NightPlan:
    """Plan of a night.

    ``system``: ReFrame's, or ``SYSTEM:PARTITION``; ``store``, ``reports``: folders, of sessions and
    of pages; ``budget_min``: minutes, None for all of the matrix; ``hook``: a shell command, or
    empty; ``labels``: of the session; ``arguments``: further ones of ReFrame; ``full``: all
    functions of IMB; ``least_free_mb``: free space that each file system needs, in 10⁶ bytes;
    ``patience_min``: minutes that slurmctld may be silent while it measures.
    """

    system: str
    store: Path
    reports: Path
    junit: Path | None = None
    hook: str = ""
    budget_min: float | None = None
    labels: Sequence[str] = ()
    full: bool = False
    least_free_mb: int = 200
    patience_min: float = 10
    arguments: Sequence[str] = ()


def run(plan: NightPlan) -> int:
    """Go through a night and return its exit status: 0 passed, 1 failed or worse, 2 not judged.

    Whatever happens, JUnit is written where requested, and the hook is run.
    """
    started = datetime.now().astimezone()
    night = Night(plan.system, started, started)
    try:
        with _ending(), _noting(night):
            _go(plan, night)
    except Ended as error:
        night.faults.append(str(error))
    except Exception as error:
        # People are notified of every night.
        if entry.debugging():
            traceback.print_exc()
        night.faults.append(
            f"an error of netproof's own: {shortened(repr(error))}; {entry.DEBUG} shows where"
        )
    night.ended = datetime.now().astimezone()
    if plan.junit:
        with _noting(night):
            junit.write(night, plan.junit)
    text = summary.text(night)
    _say(text)
    status = night.status
    if plan.hook:
        fault = _tell(plan.hook, text)
        if fault:
            _err(f"the hook {plan.hook!r} {fault}: nobody may have been notified")
            status = CANNOT_JUDGE if status == PASSED else status
    return status


@contextmanager
def _noting(night: Night) -> Iterator[None]:
    """End the block at a fault, and add it to the night's."""
    try:
        yield
    except NetproofError as error:
        night.faults.append(str(error))
    except OSError as error:
        night.faults.append(f"{error.filename or 'the file system'}: {error.strerror or error}")


@contextmanager
def _ending() -> Iterator[None]:
    """Raise ``Ended`` in the block at the first signal to end, and ignore further ones."""

    def end(number: int, frame: FrameType | None) -> None:
        for other in _SIGNALS:
            signal.signal(other, signal.SIG_IGN)
        raise Ended(f"{signal.Signals(number).name} ended it before it was through")

    before = {number: signal.signal(number, end) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _go(plan: NightPlan, night: Night) -> None:
    name, _, partition = plan.system.partition(":")
    folder = judging.site_folder()
    configuration = site.gather(folder)
    try:
        expected = matrix(
            configuration, name, [partition] if partition else [], all_functions=plan.full
        )
    except NetproofError as error:
        raise NetproofError(f"{folder}: {error}: source the activate of its folder") from None
    no_modules = module_path.missing(configuration, name, expected)
    if no_modules:
        raise NetproofError(f"nothing was measured: {no_modules}")
    checks, reports = _checks(), judging.reports_folder()
    prefix = Path(os.environ.get("RFM_PREFIX") or checks.parent)
    for folder, unfit, variable in (
        (reports, measuring.EXPANDED, "RFM_REPORT_FILE"),
        (prefix, measuring.EXPANDED + measuring.SPLIT, "RFM_PREFIX"),
    ):
        if set(str(folder)) & set(unfit):
            raise NetproofError(
                f"{str(folder)!r}: ReFrame expands or runs '$' and '`' in a path, and cannot work"
                f" below white space, quotes or backslashes; name another folder in {variable}"
            )
    # Later nights read from there, and the hook runs when this one has ended.
    for folder in (reports, plan.reports):
        trust.insist(folder, "the folder of reports", data=True)
    trust.insist_on_command(plan.hook, HOOK)
    with lock.held(lock.alongside(plan.store, name), night.started) as held:
        conditions.enough_room((plan.store, reports, plan.reports, prefix), plan.least_free_mb)
        slurm.answers()
        store = Store.create(plan.store)
        leaving = _choose(plan, expected, configuration, store)
        stem = f"run-nightly-{name}-{night.started:%Y%m%dT%H%M%S}"
        report, night.log = reports / f"{stem}.json", reports / f"{stem}.log"
        _measure(plan, expected, leaving, checks, report, night.log, held)
        _insist_on_a_job(session.load(report))
        _judge(plan, night, store, report, partial=bool(leaving or partition))


def _checks() -> Path:
    """Return the folder of the site's checks, or of those that came with netproof."""
    own = judging.site_folder().absolute().parent / "checks"
    return own if own.is_dir() else shipped.folder("checks")


def _insist_on_a_job(measured: Session) -> None:
    """Raise NetproofError where no job came to Slurm: that says nothing of a network."""
    tried = [one for one in measured.results if one.kind == "launches" and one.result != "skip"]
    if tried and all(one.result == "fail" and one.phase in _NOT_SUBMITTED for one in tried):
        reasons = list(dict.fromkeys(map(reason_of, tried)))[:_MOST_REASONS]
        raise NetproofError(
            f"no job of {len(tried)} was submitted: {'; '.join(reasons)}; look whether they are"
            f" in a shell of yours, and start the night in a login shell: {LOGIN_SHELL}"
        )


def _choose(
    plan: NightPlan, expected: Matrix, configuration: Mapping[str, object], store: Store
) -> dict[PlannedJob, Left]:
    """Return the jobs not measured tonight, since nodes or time are short, and print them."""
    leaving = conditions.cannot_run(jobs(expected), expected, configuration)
    known = durations.past(store, expected)
    for sentence in known.unread:
        _err(sentence)
    possible = [job for job in jobs(expected) if job not in leaving]
    if not possible:
        raise NetproofError(
            "nothing can be measured: "
            + "; ".join(dict.fromkeys(reason.why for reason in leaving.values()))
        )
    times = durations.expected_seconds(possible, known)
    if plan.budget_min is not None:
        leaving |= budget.left_for_another_night(times, known, expected, 60 * plan.budget_min)
    tonight = {job: one for job, one in times.items() if job not in leaving}
    seconds = durations.session_seconds(tonight, expected)
    takes = "as long as nobody knows yet" if seconds is None else f"about {minutes(seconds)}"
    _say(
        f"measuring {len(tonight)} of {len(jobs(expected))} jobs, which takes {takes}:"
        f" {'; '.join(map(str, tonight))}\n"
    )
    return leaving


def _measure(
    plan: NightPlan,
    expected: Matrix,
    leaving: Mapping[PlannedJob, Left],
    checks: Path,
    report: Path,
    log: Path,
    held: int,
) -> None:
    with tempfile.TemporaryDirectory(prefix="netproof-night-") as folder:
        settings = {}
        if leaving:
            settings[left.VARIABLE] = str(Path(folder) / "left.json")
            left.write(
                Path(folder) / "left.json",
                {
                    case: leaving[job]
                    for job, cases in jobs(expected).items()
                    if job in leaving
                    for case in cases
                },
            )
        extras = [part for label in plan.labels for part in ("--session-extras", label)]
        measuring.measure(
            [
                *("--nocolor", "--system", plan.system, "-c", str(checks)),
                *(["-R"] if plan.full else []),
                *extras,
                *plan.arguments,
                "-r",
            ],
            folder=checks.parent,
            report=report,
            log=log,
            settings=settings,
            lock=held,
            patience_s=60 * plan.patience_min,
        )


def _judge(plan: NightPlan, night: Night, store: Store, report: Path, *, partial: bool) -> None:
    """Store, judge, compare with history, report; judge a session that the store refuses too.

    ``partial``: whether it is not of all that is expected on the system.
    """
    kept = None
    with _noting(night):
        done = ingest(store, report, system=plan.system, full=plan.full)
        kept = done.stored
        night.stored = kept.name
    night.judged = judging.judge_session(
        session.load(report),
        system=plan.system,
        full=plan.full,
        # Skipped and unrequested cases are shown from earlier nights.
        asked=AlongsideOptions(plan.store) if partial else None,
        store=plan.store,
    )
    if kept is not None:
        with _noting(night):
            past = history.judge(store, kept.system, kept.name)
            worse = [event for event in past.events if event.worse]
            night.worse = tuple(event.sentence() for event in worse)
            night.noted = past.sentences()[len(worse) :]
    night.page = _report(plan, night, report.stem)


def _report(plan: NightPlan, night: Night, name: str) -> Path:
    """Write the pages into a folder of their own; the link moves when they are whole."""
    # Loading Altair takes seconds.
    from netproof.commands import report as command
    from netproof.present.html.material import MAIN

    folder = plan.reports / (night.stored or name)
    folder.parent.mkdir(parents=True, exist_ok=True)
    command.write(command.assemble(night.judged), folder, (command.HTML,))
    partial = plan.reports / f".{LATEST}-{os.getpid()}"
    partial.symlink_to(folder.name)
    os.replace(partial, plan.reports / LATEST)
    return folder / MAIN


def _tell(hook: str, text: str) -> str | None:
    """Run the site's hook with ``text`` on its standard input; return what went wrong, or None."""
    try:
        trust.insist_on_command(hook, HOOK)
    except NetproofError as error:
        return f"was not run: {error}"
    process = subprocess.Popen(
        ["/bin/sh", "-c", hook], stdin=subprocess.PIPE, encoding="utf-8", start_new_session=True
    )
    try:
        process.communicate(text, timeout=HOOK_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return f"did not end within {HOOK_S} s"
    return f"ended with status {process.returncode}" if process.returncode else None


def _say(text: str) -> None:
    """Print it; where that fails, such as on a full disk, report it and let the night go on."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        # Python would try to write the rest again as it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        _err(f"standard output cannot be written: {error.strerror}")


def _err(text: str) -> None:
    # Where standard error cannot be written either, the status is all that is left.
    with suppress(OSError):
        print(visible(f"nightly: {text}"), file=sys.stderr, flush=True)
