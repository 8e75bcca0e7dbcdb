"""Jobs on demand: a victim beside an aggressor, single calls, values of a setting, algorithms."""

from __future__ import annotations

import itertools
import subprocess
import threading
import time
from pathlib import Path

from netproof.errors import NetproofError
from netproof.experiments import load, load_plan, parameters, restoring, tails
from netproof.intake import writing
from netproof.jobs.job import RunningJob, ended_within
from netproof.session.plan import Step
from netproof.site import slurm

LOOK_S = 0.1
"""Seconds between two looks at what an aggressor has printed."""


def run_load(job: RunningJob) -> None:
    """Launch victims alone and beside aggressors, on nodes that are drawn here."""
    if job.dry:
        print("# load: drawn within the job, by its nodes")
        return
    leaves, _ = slurm.topology()
    turns = load_plan.drawn(job.plan, job.folder, job.nodes, leaves)
    (job.folder / load.AGGRESSORS_FILE).write_text(f"{load.AGGRESSORS_HEADER}\n")
    for turn in turns:
        victim, aggressor = load_plan.steps(turn, job.plan)
        if aggressor is None:
            job.launch(victim)
        else:
            beside(job, victim, aggressor)


def beside(job: RunningJob, victim: Step, aggressor: Step) -> None:
    """Launch a victim while an aggressor sends: from before it begins until after it has ended.

    One that ends before it sends is started again, up to ``crash_retries`` times. The record has
    when it ran, how many rows it printed, and why it did not send throughout.
    """
    limit_s, rows = job.partition.step_limit_s, 0
    for _ in range(job.partition.crash_retries + 1):
        process = job.begin(aggressor)
        began, why = _sends(job, process, aggressor, 0, limit_s)
        ended = time.time()
        if not why:
            job.launch(victim)
            before = job.rows(aggressor.name)
            ended, why = _sends(job, process, aggressor, before, limit_s)
            rows = job.rows(aggressor.name)
        if process is not None:
            job.end(process)
        if rows:
            break
    with (job.folder / load.AGGRESSORS_FILE).open("a") as record:
        print(aggressor.name, f"{began:.6f}", f"{ended:.6f}", rows, why, sep="\t", file=record)


def _sends(
    job: RunningJob,
    process: subprocess.Popen[bytes] | None,
    step: Step,
    before: int,
    limit_s: float,
) -> tuple[float, str]:
    """Wait until an aggressor has printed more rows than ``before``; return when, and why not."""
    until_s = time.monotonic() + limit_s
    while True:
        # Looked at before its rows: once it has ended it prints no more.
        ended = process is None or ended_within(process, 0)
        if job.rows(step.name) > before:
            return time.time(), ""
        if ended:
            why = "it ended before the victim did" if before else "it ended before it sent anything"
            return time.time(), why
        if time.monotonic() >= until_s:
            return time.time(), f"it sent nothing {'for' if before else 'within'} {limit_s} s"
        time.sleep(LOOK_S)


def run_tails(job: RunningJob) -> None:
    """Launch the trials, and the long launch that follows from them, whose output is watched."""
    for number, calls in enumerate(tails.TRIALS, 1):
        if number == 1 or not tails.enough(job.folder):
            job.launch(tails.step(job.plan, f"trial.{number}", calls))
        if job.dry:
            return
    long = tails.long_step(job.plan, job.folder)
    over, begun = threading.Event(), threading.Event()
    watcher = threading.Thread(target=_watch, args=(job.folder, over, begun), daemon=True)
    watcher.start()
    begun.wait()
    try:
        job.launch(long)
    finally:
        # It looks once more at the end.
        over.wait(10 * tails.WATCH_S)
        over.set()
        watcher.join()


def _watch(folder: Path, over: threading.Event, begun: threading.Event) -> None:
    """Note when the output of the long launch had grown, until it is over."""
    path, seen = folder / f"{tails.LONG}.out", 0
    with (folder / tails.WATCH_FILE).open("w", buffering=1) as noted:
        begun.set()
        while not over.wait(tails.WATCH_S):
            size = path.stat().st_size if path.exists() else 0
            if size != seen:
                print(f"{time.time():.6f}\t{size}", file=noted)
                seen = size


def run_algorithms(job: RunningJob) -> None:
    """Launch the steps; an algorithm, a label, of which a launch failed is launched no more."""
    for step in itertools.chain(*job.plan.rounds):
        if step.label not in job.closed and job.launch(step) and step.label:
            job.closed.add(step.label)


def run_setting(job: RunningJob) -> None:
    """Launch each step; with the value that is its label where the site's hook sets that.

    Then each node has it, and its own where the label is empty. The plan asks for the ``parameter``
    and a ``record``, which has a line of node, setting and own value for each node that may have
    another one, from before any change until all are restored. Raise NetproofError if a value
    cannot be set.
    """
    asked = job.plan.asked
    known = parameters.BY_NAME.get(asked["parameter"])
    setting = Setting(job, Path(asked["record"]), known.name) if known and known.by_hook else None
    if setting and not job.dry:
        setting.note()
    try:
        for step in itertools.chain(*job.plan.rounds):
            if setting and job.dry:
                print(f"# {setting.name} = {step.label or 'the own value of each node'}")
            elif setting:
                setting.set(step.label)
            job.launch(step)
    finally:
        if setting and not job.dry:
            job.end_all()
            setting.restore()


class Setting:
    """A setting of the nodes that the site's hook sets and reads."""

    def __init__(self, job: RunningJob, record: Path, name: str) -> None:
        self.job, self.record, self.name = job, record, name
        self.own: dict[str, str] = {}

    def note(self) -> None:
        """Note each node's own value in the record; raise NetproofError if one is there."""
        if self.record.exists():
            raise NetproofError(
                f"{self.record}: an earlier sweep ended before everything was restored"
            )
        for node in self.job.nodes:
            value = restoring.ask(node, [*self.job.partition.tuning_hook, "get", self.name])
            if len(value.split()) != 1:
                raise NetproofError(f"{node}: the hook printed {value!r} for {self.name}, no value")
            self.own[node] = value
        lines = "".join(f"{node}\t{self.name}\t{value}\n" for node, value in self.own.items())
        (self.job.folder / restoring.OWN_FILE).write_text(lines)
        writing.replace(self.record, lines)

    def set(self, value: str) -> None:
        """Set a value on every node, and read it back; empty: each node's own."""
        self._forget_carriers()
        for node in self.job.nodes:
            restoring.put(node, self.job.partition.tuning_hook, self.name, value or self.own[node])

    def restore(self) -> None:
        """Set each node's own value, and remove the record; raise NetproofError if one is left."""
        self._forget_carriers()
        restoring.restore(self.record, self.job.partition.tuning_hook, ())

    def _forget_carriers(self) -> None:
        """Let a card that is reset interrupt its carrier, which is no fault of the network."""
        for node in self.job.nodes:
            (self.job.folder / f"carriers.{node}").unlink(missing_ok=True)
