"""ReFrame, which ends with this process, and the verbs that run all checks by it.

``run`` has it in the foreground, ``nightly`` for a night, which is in ``night``.
"""

from __future__ import annotations

import ctypes
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import IO

import typer

from netproof.commands.options import insist_on_site, verb
from netproof.errors import NetproofError

STDERR = 2
ENDING_S = 120
"""Seconds that ReFrame has to cancel its jobs when the night has to end."""
IN_VAIN_S = 10
"""The same where slurmctld does not answer."""
WATCH_S = 15
"""Seconds between checks that slurmctld still answers."""
LINES = 6
"""Lines of ReFrame's output that are quoted where it left no report."""
_DEATH_SIGNAL = 1
"""PR_SET_PDEATHSIG of prctl(2)."""


@contextmanager
def started(
    arguments: Sequence[str],
    report: Path,
    output: int | IO[bytes],
    settings: Mapping[str, str] = MappingProxyType({}),
    folder: Path | None = None,
    lock: Sequence[int] = (),
) -> Iterator[subprocess.Popen[bytes]]:
    """Start ``reframe -r`` with ``settings`` in its environment, and end it with the block.

    ``report``: where it leaves its report. It ends with this process too, and cancels its jobs.
    Raise NetproofError where it is not installed.
    """
    program = Path(sys.executable).with_name("reframe")
    if not program.is_file():
        raise NetproofError(f"{program}: is not there, so nothing can be measured")
    report.parent.mkdir(parents=True, exist_ok=True)
    process = subprocess.Popen(
        [str(program), *arguments, "-r"],
        cwd=folder,
        env={**os.environ, **settings, "RFM_REPORT_FILE": str(report)},
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        # A signal to the terminal's processes would reach it twice.
        start_new_session=True,
        preexec_fn=ending_with_this_process(),
        pass_fds=lock,
    )
    try:
        yield process
    except NetproofError:
        end_reframe(process, IN_VAIN_S)
        raise
    finally:
        if process.poll() is None:
            end_reframe(process)


def run_reframe(arguments: Sequence[str], said: str, report: Path) -> None:
    """Run ReFrame with its output on standard error.

    ``said``: stands before the command on standard error. Raise NetproofError where it is not
    installed, and where it leaves no ``report``.
    """
    from netproof.present import terminal

    if not sys.stderr.isatty():
        arguments = [*arguments, "--nocolor"]
    terminal.say(
        terminal.console(stderr=True), f"{said}: {shlex.join(['reframe', *arguments, '-r'])}"
    )
    with started(arguments, report, STDERR) as process:
        ended = process.wait()
    if not report.is_file():
        raise NetproofError(
            f"reframe left no report {report} (exit status {ended}); what it printed says why"
        )


def measure(
    arguments: Sequence[str],
    *,
    folder: Path,
    report: Path,
    log: Path,
    settings: Mapping[str, str],
    lock: int,
    patience_s: float,
) -> None:
    """Run ReFrame in ``folder`` until it ends, its output in ``log``; check that it left a report.

    ``settings`` are added to the environment. It keeps ``lock`` open, so that no other night begins
    while it runs, and ends with this process: on SIGTERM, which it gets too where this process is
    killed, ReFrame cancels its jobs. The verdict judges its results. Raises NetproofError where
    slurmctld did not answer for ``patience_s`` seconds, or does not at the end, and with the end of
    its output where ReFrame left no ``report``; OSError where ``log`` cannot be written.
    """
    from netproof.site import slurm

    log.parent.mkdir(parents=True, exist_ok=True)
    with (
        log.open("wb") as output,
        started(arguments, report, output, settings, folder, [lock]) as process,
    ):
        _watch(process, patience_s)
    try:
        slurm.answers()
    except NetproofError as error:
        # Failures meanwhile say nothing of a network.
        kept = f"what was measured until then is in {report}" if report.is_file() else "no report"
        raise NetproofError(f"{error}, and did when the night began; {kept}") from None
    if not report.is_file():
        raise NetproofError(
            f"ReFrame left no report (exit status {process.returncode}); its output {log} ends:"
            f" {_end_of(log)}"
        )


def ending_with_this_process() -> Callable[[], None]:
    """Return what a child runs before its program, to get SIGTERM when this process is killed."""
    library = ctypes.CDLL(None, use_errno=True)
    mine = os.getpid()

    def ask() -> None:
        library.prctl(_DEATH_SIGNAL, signal.SIGTERM)
        if os.getppid() != mine:
            os._exit(1)

    return ask


def _watch(process: subprocess.Popen[bytes], patience_s: float) -> None:
    """Wait for ReFrame, which would wait forever for a lost slurmctld."""
    from netproof.present.wording import duration
    from netproof.site import slurm

    silent_from = None
    while True:
        try:
            process.wait(min(WATCH_S, patience_s))
            return
        except subprocess.TimeoutExpired:
            pass
        asked = time.monotonic()
        try:
            slurm.answers()
            silent_from = None
        except NetproofError as error:
            silent_from = asked if silent_from is None else silent_from
            if time.monotonic() - silent_from >= patience_s:
                raise NetproofError(
                    f"{error}, not for {duration(time.monotonic() - silent_from)} (--patience); the"
                    " night was ended. Slurm may still have its jobs when it is back: squeue"
                    " shows them, named netproof-…"
                ) from None


def end_reframe(process: subprocess.Popen[bytes], seconds: float = ENDING_S) -> None:
    """Let ReFrame cancel its jobs within these seconds; kill it after."""
    process.terminate()
    try:
        with suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
    finally:
        # Also where a signal ends the night while it waits.
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _end_of(log: Path) -> str:
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return " | ".join(lines[-LINES:]) or "it is empty"


def _measured(arguments: Sequence[str] | None) -> tuple[str | None, list[str]]:
    """Return the system to measure, and the options of ReFrame."""
    further = list(arguments or ())
    named = bool(further) and not further[0].startswith("-")
    return (further.pop(0) if named else os.environ.get("RFM_SYSTEM")), further


@verb("no verdict")
def run(
    arguments: list[str] | None = None,
    store: Path | None = None,
    full: bool = False,
) -> int:
    """Run all checks by ReFrame, store the session where there is a store, print the verdict."""
    system, further = _measured(arguments)
    insist_on_site()
    from netproof.site import folders, site
    from netproof.site.matrix import matrix

    name, _, partition = (system or "").partition(":")
    if partition:
        # An unknown one is refused before anything is measured.
        matrix(site.gather(folders.of_site()), name, [partition])
    report = folders.of_reports() / f"run-{datetime.now(UTC):%Y%m%dT%H%M%S}.json"
    options = [*(["--system", system] if system else []), *(["-R"] if full else []), *further]
    run_reframe(["-c", str(folders.of_checks()), *options], "measuring", report)
    from netproof.commands import stores
    from netproof.present import terminal
    from netproof.present.document import show
    from netproof.present.verdict import brief
    from netproof.store import Store
    from netproof.verdict import session_verdict

    if store is not None:
        stores.print_stored(
            session_verdict.ingest(Store.create(store), report, system=system, full=full)
        )
    judged = session_verdict.judge_session(
        session_verdict.find(report), system=system, full=full, store=store
    )
    show(brief(judged), terminal.console())
    return judged.verdict.status


@verb()
def nightly(
    store: Path,
    arguments: list[str] | None = None,
    pages: Path | None = None,
    junit: Path | None = None,
    hook: str = "",
    budget: float | None = None,
    label: list[str] | None = None,
    full: bool = False,
    least_free: int = 200,
    patience: float = 10,
) -> int:
    """Measure, judge, report and notify people, for one night.

    docs/nightly.md has the rest.
    """
    system, further = _measured(arguments)
    if not system:
        raise typer.BadParameter("say what to measure: SYSTEM[:PARTITION], or in RFM_SYSTEM")
    insist_on_site()
    from netproof.commands import night
    from netproof.session.session import label_of
    from netproof.site import folders

    for given in label or ():
        try:
            _, value = label_of(given)
        except NetproofError:
            value = ""
        if not value or "," in given:
            raise typer.BadParameter(
                f"{given!r} is no KEY=VALUE without a comma", param_hint="--label"
            )
    return night.run(
        night.Night(
            system=system,
            store=store.resolve(),
            reports=(pages or folders.of_reports() / "nightly").resolve(),
            junit=junit.resolve() if junit else None,
            hook=hook,
            budget_min=budget,
            labels=label or (),
            full=full,
            least_free_mb=least_free,
            patience_min=patience,
            arguments=further,
        )
    )
