"""One night: the checks run, and their session is stored, judged, reported and sent to people.

A lock keeps nights of one store and system apart, nothing of ReFrame outlives the night, and what
happened in it is in its summary, in JUnit's XML and in its exit status. cron calls
``netproof nightly``.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from netproof.commands import options
from netproof.commands.reframe import measure
from netproof.errors import NetproofError, shortened
from netproof.intake import disk, trust
from netproof.present.document import Sentences
from netproof.present.wording import duration, first, visible
from netproof.session import plan
from netproof.site import folders, module_path, slurm
from netproof.site.matrix import Matrix, PlannedJob, domain_of, jobs, nodes_of, of_site
from netproof.site.module_path import LOGIN_SHELL
from netproof.store import Store, durations
from netproof.store.durations import Expected, Past
from netproof.verdict import CANNOT, FAILED, INCONCLUSIVE, PASSED

if TYPE_CHECKING:
    from netproof.session.session import Session
    from netproof.verdict.session_verdict import JudgedSession

LATEST = "latest"
"""Link to the newest night's report, beside the reports."""

HOOK_S = 120
"""Seconds that the hook may take."""

HOOK = "the hook"

_NOT_SUBMITTED = ("startup", "setup", "compile", "compile_complete", "run")
"""ReFrame's phases of a test before Slurm has its job."""
_MOST_REASONS = 3

_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
EXPANDED, SPLIT = "$`", " \t\n'\"\\"
"""Characters that ReFrame expands or runs in a path, and those that split a job script's path."""
ANSWER_S = 60.0
"""Seconds that a night waits for nodes that do not answer slurmctld, where jobs need them."""
_LOOK_AGAIN_S = 1.0

_ACCEPT = ("what of this is intended ends by 'netproof history accept'",)

SENTENCES = 20
"""Sentences of a kind that are listed; the report has all."""

WORDS = {PASSED: "PASSED", FAILED: "FAILED", CANNOT: "NOT JUDGED", INCONCLUSIVE: "NOT JUDGED"}


def _now() -> datetime:
    return datetime.now().astimezone()


@dataclass
class Night:
    """A night: its plan, and its result as far as it came.

    ``system``: ReFrame's, or ``SYSTEM:PARTITION``; ``store``, ``reports``: folders, of sessions and
    of pages; ``junit``: file for JUnit's XML; ``budget_min``: minutes, None for all of the matrix;
    ``hook``: a shell command, or empty; ``labels``: of the session; ``arguments``: further ones of
    ReFrame; ``full``: all functions of IMB; ``least_free_mb``: free space that each file system
    needs, in 10⁶ bytes; ``patience_min``: minutes that slurmctld may be silent while it measures.

    ``faults``: why it could not be judged, or not whole, a sentence each; ``judged``: None without
    a verdict; ``worse``, ``noted``: changes in its history for the worse, and others; ``stored``:
    the session's name in the store; ``page``: of the report; ``log``: ReFrame's output.
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
    started: datetime = field(default_factory=_now)
    ended: datetime = field(default_factory=_now)
    faults: list[str] = field(default_factory=list)
    judged: JudgedSession | None = None
    worse: tuple[str, ...] = ()
    noted: tuple[str, ...] = ()
    stored: str = ""
    page: Path | None = None
    log: Path | None = None

    @property
    def status(self) -> int:
        """Exit status: a failure first, then what kept it from being judged."""
        if self.judged is not None and (self.judged.verdict.status == FAILED or self.worse):
            return FAILED
        if self.judged is None or self.faults:
            return CANNOT
        return self.judged.verdict.status


def run(night: Night) -> int:
    """Go through a night and return its exit status: 0 passed, 1 failed or worse, 2 not judged, 3
    inconclusive or not whole.

    Whatever happens, JUnit is written where requested, and the hook is run.
    """
    try:
        with _ending(), _noting(night):
            _go(night)
    except Ended as error:
        night.faults.append(str(error))
    except Exception as error:
        # People are notified of every night.
        if options.debugging():
            traceback.print_exc()
        night.faults.append(
            f"an error of netproof's own: {shortened(repr(error))}; {options.DEBUG} shows where"
        )
    night.ended = _now()
    if night.junit:
        with _noting(night):
            night.junit.parent.mkdir(parents=True, exist_ok=True)
            disk.replace(night.junit, _junit(night))
    text = summary(night)
    _say(text)
    status = night.status
    if night.hook:
        fault = _tell(night.hook, text)
        if fault:
            options.say(f"nightly: the hook {night.hook!r} {fault}: nobody may have been notified")
            status = CANNOT if status == PASSED else status
    return status


def summary(night: Night) -> str:
    """Return the summary; its first line could be the subject of a mail."""
    lines = [headline(night), ""]
    lines += [f"NOT JUDGED: {fault}" for fault in night.faults]
    if night.judged is not None:
        from netproof.present.verdict import sentences

        for block in (
            Sentences(night.worse, mark="WORSE "),
            Sentences(_ACCEPT if night.worse else ()),
            *sentences(night.judged),
            Sentences(night.noted, mark="note: "),
        ):
            lines += first([*block.lines()], SENTENCES, f"{block.mark}and {{}} more, in the report")
    places = {"session": night.stored, "report": night.page, "output of ReFrame": night.log}
    lines += ["", *(f"{what} {place}" for what, place in places.items() if place)]
    lines.append(f"exit status {night.status}")
    # Further lines are indented: a job's text cannot look like the night's own.
    whole = "".join(f"{visible(line)}\n".replace("\n", "\n    ").rstrip(" ") for line in lines)
    # Output of a job may be no valid text.
    return whole.encode(errors="replace").decode()


def headline(night: Night) -> str:
    """Return the night in a line: system, outcome, how many cases, when."""
    took = duration((night.ended - night.started).total_seconds())
    word = WORDS[night.status]
    if night.judged is not None:
        from netproof.present.verdict import outcome

        if night.status == INCONCLUSIVE and night.judged.verdict.inconclusive:
            word = "INCONCLUSIVE"
        word += f", {outcome(night.judged.verdict, len(night.worse))}"
    return f"netproof {night.system}: {word} ({night.started:%Y-%m-%d %H:%M}, {took})"


def _junit(night: Night) -> bytes:
    from netproof.present.verdict import junit

    verdict = None if night.judged is None else night.judged.verdict
    seconds = (night.ended - night.started).total_seconds()
    began, more = night.started.isoformat(), {"worse": night.worse, "faults": night.faults}
    return junit(night.system, verdict, began, seconds, **more)


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

    def end(number: int, _: FrameType | None) -> None:
        for other in _SIGNALS:
            signal.signal(other, signal.SIG_IGN)
        raise Ended(f"{signal.Signals(number).name} ended it before it was through")

    before = {number: signal.signal(number, end) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _go(night: Night) -> None:
    name, partition, configuration, expected = of_site(night.system, full=night.full)
    no_modules = module_path.missing(configuration, name, expected)
    if no_modules:
        raise NetproofError(f"nothing was measured: {no_modules}")
    checks, reports = folders.of_checks(), folders.of_reports()
    prefix = Path(os.environ.get("RFM_PREFIX") or checks.parent)
    for folder, unfit, variable in (
        (reports, EXPANDED, "RFM_REPORT_FILE"),
        (prefix, EXPANDED + SPLIT, "RFM_PREFIX"),
    ):
        if set(str(folder)) & set(unfit):
            raise NetproofError(
                f"{str(folder)!r}: ReFrame expands or runs '$' and '`' in a path, and cannot work"
                f" below white space, quotes or backslashes; name another folder in {variable}"
            )
    # Later nights read from there, and the hook runs when this one has ended.
    for folder in (reports, night.reports):
        trust.insist(folder, "the folder of reports", data=True)
    trust.insist_on_command(night.hook, HOOK)
    with held(lock_of(night.store, name), night.started) as lock:
        enough_room((night.store, reports, night.reports, prefix), night.least_free_mb)
        slurm.answers()
        store = Store.create(night.store)
        leaving = _choose(night, expected, store)
        stem = f"run-nightly-{name}-{night.started:%Y%m%dT%H%M%S}"
        report, night.log = reports / f"{stem}.json", reports / f"{stem}.log"
        arguments = ["--nocolor", "--system", night.system, "-c", str(checks)]
        arguments += ["-R"] if night.full else []
        arguments += [part for label in night.labels for part in ("--session-extras", label)]
        with tempfile.TemporaryDirectory(prefix="netproof-night-") as folder_of_left:
            settings = {}
            if cases := {case: leaving[job] for job in leaving for case in jobs(expected)[job]}:
                path = Path(folder_of_left) / "left.json"
                settings[plan.LEFT] = str(path)
                plan.write_left(path, cases)
            measure(
                [*arguments, *night.arguments],
                report,
                night.log,
                folder=checks.parent,
                settings=settings,
                lock=[lock],
                patience_s=60 * night.patience_min,
            )
        from netproof.session import session

        measured = session.load(report)
        _insist_on_a_job(measured)
        _judge(night, store, measured, partial=bool(leaving or partition))


def _insist_on_a_job(measured: Session) -> None:
    """Raise NetproofError where no job came to Slurm: that says nothing of a network."""
    tried = [one for one in measured.results if one.kind == "launches" and one.result != "skip"]
    if tried and all(one.result == "fail" and one.phase in _NOT_SUBMITTED for one in tried):
        reasons = list(dict.fromkeys(one.why for one in tried))[:_MOST_REASONS]
        raise NetproofError(
            f"no job of {len(tried)} was submitted: {'; '.join(reasons)}; look whether they are"
            f" in a shell of yours, and start the night in a login shell: {LOGIN_SHELL}"
        )


def _choose(night: Night, expected: Matrix, store: Store) -> dict[PlannedJob, tuple[str, bool]]:
    """Return the jobs to leave tonight, why, and whether by plan; print those to measure."""
    leaving = cannot_run(jobs(expected), expected)
    known = durations.past(store, expected)
    for sentence in known.unread:
        options.say(f"nightly: {sentence}")
    possible = [job for job in jobs(expected) if job not in leaving]
    if not possible:
        raise NetproofError(
            "nothing can be measured: "
            + "; ".join(dict.fromkeys(why for why, _ in leaving.values()))
        )
    times = durations.expected_seconds(possible, known)
    if night.budget_min is not None:
        leaving |= left_for_another_night(times, known, expected, 60 * night.budget_min)
    tonight = {job: one for job, one in times.items() if job not in leaving}
    seconds = durations.session_seconds(tonight, expected)
    takes = "as long as nobody knows yet" if seconds is None else f"about {duration(seconds)}"
    _say(
        f"measuring {len(tonight)} of {len(jobs(expected))} jobs, which takes {takes}:"
        f" {'; '.join(map(str, tonight))}\n"
    )
    return leaving


def _judge(night: Night, store: Store, measured: Session, *, partial: bool) -> None:
    """Store, judge, compare with history, report; judge a session that the store refuses too.

    ``partial``: whether it is not of all that is expected on the system.
    """
    from netproof.diagnosis.diagnosis import ingest
    from netproof.history import history_verdict as history
    from netproof.present.html.page import write
    from netproof.present.html.report import MAIN, Report
    from netproof.verdict import session_verdict
    from netproof.verdict.verdict import StoredResults

    kept = past = None
    with _noting(night):
        done = ingest(store, measured.path, system=night.system, full=night.full)
        kept, night.noted = done.stored, tuple(filter(None, [done.ahead]))
        night.stored = kept.name
    night.judged = judged = session_verdict.judge_session(
        measured,
        system=night.system,
        full=night.full,
        # Skipped and unrequested cases are shown from earlier nights.
        asked=StoredResults(night.store) if partial else None,
        store=night.store,
    )
    if kept is not None:
        with _noting(night):
            past = history.judge(store, kept.system, kept.name)
            worse = [event for event in past.events if event.worse]
            night.worse = tuple(event.sentence() for event in worse)
            night.noted += past.sentences()[len(worse) :]
    folder = night.reports / (night.stored or measured.path.stem)
    folder.parent.mkdir(parents=True, exist_ok=True)
    write(Report(judged, nights=None if past is None else past.nights), folder)
    # The link moves when the pages are whole.
    partial_link = night.reports / f".{LATEST}-{os.getpid()}"
    partial_link.symlink_to(folder.name)
    os.replace(partial_link, night.reports / LATEST)
    night.page = folder / MAIN


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
        options.say(f"nightly: standard output cannot be written: {error.strerror}")


def lock_of(store: Path, system: str) -> Path:
    """Return the lock's file, beside the store, which several machines may share."""
    return store.with_name(f"{store.name}.{system}.lock")


def held(path: Path, started: datetime) -> AbstractContextManager[int]:
    """Return the lock of a night, as ``writing.locked``; it says who has it since when."""
    since = f"{started:%Y-%m-%d %H:%M:%S %Z}"
    holder = f"process {os.getpid()} on {socket.gethostname()} since {since}"
    return disk.locked(path, holder, "another night is still running, and goes on untouched")


def enough_room(folders: Iterable[Path], least_mb: int) -> None:
    """Check that every folder's file system has ``least_mb`` MB (10⁶ bytes) free.

    Folders may be missing yet. Raises NetproofError naming the first on a file system that is too
    full, and OSError where one cannot be asked.
    """
    for folder in folders:
        there = next(path for path in (folder, *folder.parents) if path.exists())
        free = shutil.disk_usage(there).free / 1e6
        if free < least_mb:
            raise NetproofError(
                f"{folder}: the file system is too full: {free:.0f} MB are free, and a night needs"
                f" {least_mb} (--least-free); nothing was measured, what was there is untouched"
            )


def cannot_run(
    several: Iterable[PlannedJob], matrix: Matrix, *, wait_s: float = ANSWER_S
) -> dict[PlannedJob, tuple[str, bool]]:
    """Return the jobs that Slurm cannot run now, and why: partitions not up, too few nodes.

    Where a job only lacks nodes that do not answer, Slurm is asked again for ``wait_s`` seconds: a
    node that somebody has just resumed is ``idle*`` until slurmctld has asked it. Where a site's
    ``access`` names no partition of Slurm's, Slurm itself refuses the job. Raises NetproofError
    where Slurm does not answer.
    """
    access = {
        name: slurm.names_in(entry.get("access", [])) for name, entry in matrix.entries.items()
    }
    needed = {job: nodes_of(job, matrix) for job in several}
    ends = time.monotonic() + wait_s
    while True:
        known = slurm.partitions()
        found, soon = {}, False
        for job, nodes in needed.items():
            named = [known[name] for name in access[job.partition] if name in known]
            reasons = [one.cannot_run(nodes) for one in named]
            whys = [reason for reason in reasons if reason]
            if whys and len(whys) == len(reasons):
                found[job] = "; ".join(whys), False
                soon |= any(one.may_soon_run(nodes) for one in named)
        if not soon or time.monotonic() >= ends:
            return found
        time.sleep(_LOOK_AGAIN_S)


def left_for_another_night(
    expected: Mapping[PlannedJob, Expected], past: Past, matrix: Matrix, budget_s: float
) -> dict[PlannedJob, tuple[str, bool]]:
    """Return the jobs in ``expected`` that do not fit into ``budget_s`` seconds, and why.

    Jobs of a contention domain run one after the other and domains in parallel, so each domain has
    all of the budget. The jobs that ran longest ago come first; never is longest. A job that does
    not fit makes room for later ones. The first job runs in any case, also where it takes more than
    the budget, or an unknown time, and then alone. While nothing ever ran all of them do: else each
    night would measure one.
    """
    if not past.tried and all(one.seconds is None for one in expected.values()):
        return {}
    deferred: dict[PlannedJob, tuple[str, bool]] = {}
    rooms_s: dict[str, float] = {}
    # Among jobs that never ran, one of unknown duration comes first.
    for job in sorted(
        expected,
        key=lambda job: (past.tried.get(job, datetime.min), expected[job].seconds is not None),
    ):
        domain, seconds = domain_of(job, matrix), expected[job].seconds
        first, room_s = domain not in rooms_s, rooms_s.get(domain, budget_s)
        if first and seconds is None:
            rooms_s[domain] = 0.0
        elif seconds is not None and (first or seconds <= room_s):
            rooms_s[domain] = room_s - seconds
        else:
            last = past.measured.get(job)
            when = f"last measured {last:%Y-%m-%d}" if last else "never measured"
            takes = "nobody knows yet how long it takes"
            if seconds is not None:
                room = duration(max(room_s, 0.0))
                takes = f"takes about {duration(seconds)}, and {room} were left"
            deferred[job] = f"{job.what()}, {when}; {takes}", True
    return deferred


class Ended(Exception):
    """A signal ended the night; its text names the signal."""
