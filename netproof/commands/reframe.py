"""ReFrame, which ends with this process, where it measures, and the verbs that run all checks.

``run`` has it in the foreground, ``nightly`` for a night, which is in ``night``.
"""

from __future__ import annotations

import ctypes
import math
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import IO, TYPE_CHECKING, NamedTuple

import typer

from netproof.commands.options import verb
from netproof.errors import NetproofError
from netproof.present import terminal
from netproof.site import folders

if TYPE_CHECKING:
    from netproof.experiments.experiment import Experiment
    from netproof.session.plan import JobPlan
    from netproof.site.matrix import Matrix
    from netproof.site.partition import Partition

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


class Where(NamedTuple):
    """Where something is measured: a partition of a site, and an environment there."""

    option: str
    system: str
    partition: str
    environment: str
    matrix: Matrix

    @classmethod
    def of(cls, option: str, environment: str = "", *, full: bool = False) -> Where:
        """Return it by ``SYSTEM:PARTITION``. Raise NetproofError where the site has none such."""
        if not option.partition(":")[2]:
            raise NetproofError(f"{option}: name a partition too, SYSTEM:PARTITION")
        from netproof.site import matrix

        system, partition, _, expected = matrix.of_site(option, full=full)
        return cls(option, system, partition, environment, expected)

    @property
    def settings(self) -> Partition:
        """Return the partition as checks see it."""
        return self.matrix.partitions[self.partition]

    def insist(self, asked: Experiment) -> JobPlan:
        """Return the plan of an experiment's job; NetproofError where it cannot be measured."""
        if 0 < asked.nodes < asked.LEAST_NODES:
            raise typer.BadParameter(f"--nodes: give {asked.LEAST_NODES} at least, or 0 for all")
        known = self.matrix.environments
        extras = known.get(self.environment, {}).get("extras", {})
        needed = {*asked.features()}
        having = [
            one
            for one in self.matrix.entries[self.partition]["environs"]
            if needed.intersection(known.get(one, {}).get("features", ()))
        ]
        if self.environment not in having:
            absent = next((why for of, why in extras.get("absent", {}).items() if of in needed), "")
            raise NetproofError(
                f"{self.option} has no environment {self.environment!r} with {asked.LABEL}"
                f"{absent and f', whose site says: {absent}'}; it has"
                f" {', '.join(sorted(having)) or 'none'}{asked.REMEDY}"
            )
        if self.settings.nodes < asked.LEAST_NODES:
            raise NetproofError(f"{self.option} has {self.settings.nodes} nodes, and {asked.WHY}")
        from netproof.session.plan import JobPlan

        given = JobPlan(
            1,
            self.settings.model_dump(),
            where=(self.system, self.partition, self.environment),
            srun=("srun",),
            environment_extras=extras,
        )
        return asked.plan(given)[0]


def run_reframe(arguments: Sequence[str], said: str, label: str = "", subject: str = "") -> Path:
    """Run ReFrame with its output on standard error; return the path of its report.

    ``said``: stands before the command there; ``label``: subfolder of the reports, or empty;
    ``subject``: in the report's name. Raises NetproofError as ``measure``.
    """
    from netproof.session import session

    if not sys.stderr.isatty():
        arguments = [*arguments, "--nocolor"]
    command = shlex.join(["reframe", *arguments, "-r"])
    terminal.say(f"{said}: {command}", stderr=True)
    name = "-".join(filter(None, ("run", subject, f"{datetime.now(UTC):%Y%m%dT%H%M%S}")))
    report = session.folder_of(folders.of_reports(), label) / f"{name}.json"
    measure(arguments, report)
    return report


def measure(
    arguments: Sequence[str],
    report: Path,
    log: Path | None = None,
    *,
    folder: Path | None = None,
    settings: Mapping[str, str] = MappingProxyType({}),
    lock: Sequence[int] = (),
    patience_s: float = math.inf,
) -> None:
    """Run ``reframe -r`` in ``folder`` until it ends; check that it left its ``report``.

    Its output goes to ``log``, or to standard error. ``settings`` are added to the environment. It
    keeps ``lock`` open, so that no other night begins while it runs, and ends with this process: on
    SIGTERM, which it gets too where this process is killed, ReFrame cancels its jobs. Raises
    NetproofError where it is not installed, where slurmctld did not answer for ``patience_s``
    seconds, or, with a ``log``, does not at the end, and with the end of its output where ReFrame
    left no report; OSError where ``log`` cannot be written.
    """
    from netproof.site import slurm

    program = Path(sys.executable).with_name("reframe")
    if not program.is_file():
        raise NetproofError(f"{program}: is not there, so nothing can be measured")
    report.parent.mkdir(parents=True, exist_ok=True)
    with ExitStack() as opened:
        output: int | IO[bytes] = STDERR
        if log is not None:
            log.parent.mkdir(parents=True, exist_ok=True)
            output = opened.enter_context(log.open("wb"))
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
            _watch(process, patience_s)
        except NetproofError:
            end_reframe(process, IN_VAIN_S)
            raise
        finally:
            if process.poll() is None:
                end_reframe(process)
    try:
        if log is not None:
            slurm.answers()
    except NetproofError as error:
        # Failures meanwhile say nothing of a network.
        kept = f"what was measured until then is in {report}" if report.is_file() else "no report"
        raise NetproofError(f"{error}, and did when the night began; {kept}") from None
    if not report.is_file():
        ends = "what it printed says why"
        if log is not None:
            said = filter(None, map(str.strip, log.read_text(errors="replace").splitlines()))
            ends = f"its output {log} ends: {' | '.join([*said][-LINES:]) or 'it is empty'}"
        raise NetproofError(
            f"ReFrame left no report {report} (exit status {process.returncode}); {ends}"
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
    """Wait for ReFrame, which would wait forever for a lost slurmctld.

    Without a limit to ``patience_s`` Slurm is not asked: somebody watches.
    """
    from netproof.present.wording import duration
    from netproof.site import slurm

    silent_from = None
    while True:
        try:
            process.wait(None if patience_s == math.inf else min(WATCH_S, patience_s))
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
    from netproof.site import matrix, site

    # What a verdict could not be on is refused before anything is measured.
    matrix.of_site(system, full=full) if system else site.gather(folders.of_site())
    options = [*(["--system", system] if system else []), *(["-R"] if full else []), *further]
    report = run_reframe(["-c", str(folders.of_checks()), *options], "measuring")
    from netproof.commands import stores
    from netproof.diagnosis.diagnosis import ingest
    from netproof.present.verdict import brief
    from netproof.store import Store
    from netproof.verdict import session_verdict

    if store is not None:
        stores.print_stored(ingest(Store.create(store), report, system=system, full=full))
    judged = session_verdict.judge_session(
        session_verdict.find(report), system=system, full=full, store=store
    )
    terminal.show(brief(judged))
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
    folders.of_site()
    from netproof.commands import night
    from netproof.session.session import label_of

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
