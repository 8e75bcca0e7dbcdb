"""Jobs on demand: a victim beside an aggressor, single calls, values of a setting, algorithms."""

from __future__ import annotations

import itertools
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from netproof.errors import NetproofError
from netproof.experiments import load, load_plan, parameters, tails
from netproof.jobs.job import RunningJob, ended_within
from netproof.session import job_files
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
    asked = job.plan.task_of(load_plan.LoadAsked)
    compared = asked.victims, asked.aggressors, asked.rounds
    turns = load_plan.turns(job.nodes, leaves, *compared, job.plan.seed)
    job_files.note(job.folder / load_plan.TURNS_FILE, turns)
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
    known = {**load.aggressions_of(job.folder), aggressor.name: (began, ended, rows, why)}
    job_files.note(job.folder / load.AGGRESSORS_FILE, known)


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
    long, calls = tails.long_step(job.plan, job.folder)
    looks: list[tuple[float, int]] = []
    over, output = threading.Event(), job.folder / f"{tails.LONG}.out"
    watcher = threading.Thread(target=_watch, args=(output, looks, over), daemon=True)
    watcher.start()
    try:
        job.launch(long)
    finally:
        # It looks once more at the end.
        over.wait(10 * tails.WATCH_S)
        over.set()
        watcher.join()
        job_files.note(job.folder / tails.WATCH_FILE, (calls, looks))


def _watch(output: Path, looks: list[tuple[float, int]], over: threading.Event) -> None:
    """Add when an output had grown, and to how many bytes, until it is over."""
    seen = 0
    while not over.wait(tails.WATCH_S):
        size = output.stat().st_size if output.exists() else 0
        if size != seen:
            looks.append((round(time.time(), 6), size))
            seen = size


def run_algorithms(job: RunningJob) -> None:
    """Launch the steps, but no more of an algorithm, a label, that failed in one."""
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
    name, record = job.plan.asked["parameter"], Path(job.plan.asked["record"])
    by_hook = parameters.of(name).by_hook
    with _set_by_hook(job, name, record) if by_hook and not job.dry else nullcontext() as put:
        for step in itertools.chain(*job.plan.rounds):
            if put:
                put(step.label)
            elif by_hook:
                print(f"# {name} = {step.label or 'the own value of each node'}")
            job.launch(step)


@contextmanager
def _set_by_hook(job: RunningJob, name: str, record: Path) -> Iterator[Callable[[str], None]]:
    """Yield what sets a value on every node, and reads it back; empty: each node's own.

    Each has its own again at the end, when all steps have ended; raise NetproofError if not, if a
    hook prints no value, and if there is a record already.
    """
    hook = job.partition.tuning_hook
    if record.exists():
        raise NetproofError(f"{record}: an earlier sweep ended before everything was restored")
    own = {node: parameters.ask(node, [*hook, "get", name]) for node in job.nodes}
    for node, value in own.items():
        if len(value.split()) != 1:
            raise NetproofError(f"{node}: the hook printed {value!r} for {name}, no value")
    for path in (job.folder / parameters.OWN_FILE, record):
        job_files.note(path, [(node, name, value) for node, value in own.items()])

    def forget_carriers() -> None:
        # A card that is reset interrupts its carrier, which is no fault of the network.
        for node in job.nodes:
            (job.folder / f"carriers.{node}").unlink(missing_ok=True)

    def put(value: str) -> None:
        forget_carriers()
        for node in job.nodes:
            parameters.put(node, hook, name, value or own[node])

    try:
        yield put
    finally:
        job.end_all()
        forget_carriers()
        parameters.restore(record, hook, ())
