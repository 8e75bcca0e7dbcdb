"""A PingPong between two nodes for a minute or so, with a time for each call.

A mean hides the call in a thousand for which all ranks of a job wait. The number of calls that fill
the time is known only within the job, where two short launches give the time per call. Most of its
time lies between the calls, where the benchmark synchronizes and prints. Watching its output grow
shows when each call was, and when there was none.
"""

from __future__ import annotations

import itertools
import math
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import scipy

from netproof.benchmarks.fixed import of_program
from netproof.benchmarks.outputs import text_of
from netproof.benchmarks.registry import OF_PAIRS
from netproof.errors import NetproofError
from netproof.experiments import load_plan
from netproof.experiments.experiment import Experiment
from netproof.experiments.load_plan import ONE_CALL
from netproof.measurement.case import Case
from netproof.measurement.counters import CARRIER, INTERFACE, TCP
from netproof.measurement.disturbance import disturbed
from netproof.measurement.interval import CONFIDENCE, Interval, Side, side
from netproof.session import job_files, node_facts, plan
from netproof.session.measured import Launch
from netproof.session.plan import PLAN_FILE, JobPlan, Step
from netproof.session.session import MeasuredJob

FUNCTION = "PingPong"
LONG = "tail.1"
"""Name of the long launch's step."""
WATCH_FILE = "tails-watch.json"
"""Its number of calls, and the times at which its output had grown, and to how many bytes."""
Looks = tuple[tuple[float, int], ...]
WATCH_S = 0.02
"""Seconds between two readings of its size."""
TRIALS = (500, 4000)
"""Calls of the launches that measure the time per call."""
ENOUGH_S = 4.0
"""Seconds of the first trial that make the second unnecessary: starting is a small part."""

MOST_CALLS = 1_000_000
"""Most calls of the long launch; each is a line of its output."""
_ROW = re.compile(OF_PAIRS.figures.encode())


@dataclass(frozen=True, kw_only=True)
class TailsAsked(Experiment):
    """The seconds of the long launch, and the bytes of a message."""

    seconds: float
    bytes: int

    TEST, FOLDER, LABEL = "Tails", "tails", OF_PAIRS.label
    TASK, FEATURES = "tails", OF_PAIRS.features

    WORDS = "single calls of {0.bytes} bytes for {0.seconds:g} s"

    def files(self, planned: JobPlan) -> dict[str, str]:
        """Return the trials' lists of message sizes, a line for each call."""
        if not 0 < self.bytes <= (most := planned.partition.max_message_bytes):
            where = ":".join(planned.where[:2])
            raise NetproofError(
                f"--bytes {self.bytes}: the largest message of {where} is of {most} bytes"
            )
        return plan.size_files({f"{calls}-calls": [self.bytes] * calls for calls in TRIALS})

    def result(self, folder: Path, jobid: str) -> Tail:
        """Return the long launch."""
        return of_job(folder, jobid)


def step(planned: JobPlan, name: str, calls: int) -> Step:
    """Return the step ``name`` of so many calls."""
    asked, partition = planned.task_of(TailsAsked), planned.partition
    sizes, arguments = plan.size_file(f"{calls}-calls"), partition.load_settings().arguments
    program = OF_PAIRS.command(
        OF_PAIRS.function(FUNCTION), 2, (asked.bytes,), sizes, [*ONE_CALL, *arguments]
    )
    subject, _, launch = name.rpartition(".")
    command = (*planned.srun, "--ntasks=2", "--kill-on-bad-exit=1", *plan.RANK, *program)
    limit_s = partition.step_limit_s + int(2 * asked.seconds)
    return Step(subject, int(launch), command, limit_s=limit_s)


def call_s(folder: Path) -> float:
    """Return the seconds from one call to the next, by the trials; NetproofError if they failed."""
    recorded, found = job_files.records(folder), []
    for number, calls in enumerate(TRIALS, 1):
        if trial := recorded.get(f"trial.{number}"):
            if trial.status:
                errors = folder / f"trial.{number}.err"
                raise NetproofError(f"{errors}: trial.{number} ended with status {trial.status}")
            found.append((calls, trial.wall_s))
    if not found:
        raise NetproofError(f"{folder / job_files.LAUNCHES_FILE}: no trial was made")
    (calls, wall_s), (more, longer_s) = found[0], found[-1]
    # The start of a launch may vary more than short calls last.
    return (longer_s - wall_s) / (more - calls) if longer_s > wall_s else longer_s / more


def enough(folder: Path) -> bool:
    """Check whether the first trial alone gives the time per call."""
    first = job_files.records(folder).get("trial.1")
    return first is not None and first.wall_s >= ENOUGH_S


def long_step(planned: JobPlan, folder: Path) -> tuple[Step, int]:
    """Return the long launch, whose sizes are in the folder, and its calls; NetproofError."""
    asked = planned.task_of(TailsAsked)
    calls = min(max(round(asked.seconds / call_s(folder)), TRIALS[0]), MOST_CALLS)
    for name, text in plan.size_files({f"{calls}-calls": [asked.bytes] * calls}).items():
        (folder / name).write_text(text)
    return step(planned, LONG, calls), calls


def watched(looks: Looks, text: str) -> Looks:
    """Return how many rows had been printed at which times (s since the epoch); NetproofError."""
    ends, so_far = [], 0
    for line in text.encode().splitlines(keepends=True):
        so_far += len(line)
        if _ROW.match(line):
            ends.append(so_far)
    found = tuple((moment, bisect_right(ends, size)) for moment, size in looks)
    if not found or found[-1][1] != len(ends):
        raise NetproofError(f"{WATCH_FILE}: does not tell how {LONG}'s output grew to its end")
    return found


LEVELS = (50.0, 90.0, 99.0, 99.9, 99.99)
BOUNDED = 99.9
"""The percentile that a site may bound."""
PAUSE_TIMES = 10
"""Least time of a pause, in medians, whatever the site sets."""
LEAST_SILENCE_S = 5 * WATCH_S
"""Seconds without a new call that cannot result from when the output was read."""


@dataclass(frozen=True)
class Pause:
    """A time in which nothing came through: its end in seconds since the epoch, and its µs.

    ``in_call``: it was a call's, there and back; else no call was printed, since the benchmark
    waited between two of them.
    """

    until: float
    took_us: float
    in_call: bool


def nearest_rank(ordered: Sequence[float], level: float) -> float | None:
    """Return a percentile of sorted values; None where it would be the largest of them."""
    rank = math.ceil(round(level / 100 * len(ordered), 6))
    return None if rank >= len(ordered) else ordered[rank - 1]


def percentile(ordered: Sequence[float], level: float) -> tuple[float, Interval] | None:
    """Return a percentile of sorted times by nearest rank, and its 95 % interval.

    The interval is that of order statistics, infinite above where too few calls are beyond. None
    where it would be the longest of them.
    """
    value, count = nearest_rank(ordered, level), len(ordered)
    if value is None:
        return None
    low, high = map(int, scipy.stats.binom.interval(CONFIDENCE, count, level / 100))
    return value, (ordered[max(low, 1) - 1], ordered[high] if high < count else math.inf)


@dataclass(frozen=True)
class Tail(MeasuredJob):
    """A long launch, and its figures by the settings of its partition.

    ``seconds``: asked for; ``times_us``: one way, of each call in order; ``watched``: seconds since
    the epoch, and how many calls had been printed by then.
    """

    KEY = "netproof_tails"
    CALLED = "measurement of tails"

    bytes: int
    seconds: float
    launch: Launch
    times_us: tuple[float, ...]
    watched: tuple[tuple[float, int], ...]

    @property
    def took_s(self) -> float:
        """Return the seconds from the first recorded call to the last."""
        return self.watched[-1][0] - self.watched[0][0]

    def moment(self, call: int) -> float:
        """Return when call ``call``, from 0, had been printed, in seconds since the epoch."""
        place = bisect_right(self.watched, call, key=lambda one: one[1])
        return self.watched[min(place, len(self.watched) - 1)][0]

    @cached_property
    def percentiles(self) -> Mapping[float, tuple[float, Interval]]:
        """Return the time in µs that so many in 100 calls do not exceed, with its interval.

        By level, where there are enough calls.
        """
        ordered = sorted(self.times_us)
        found = {level: percentile(ordered, level) for level in LEVELS}
        return {level: one for level, one in found.items() if one is not None}

    @cached_property
    def pauses(self) -> tuple[Pause, ...]:
        """Return its pauses, the longest first."""
        middle_us = self.percentiles.get(50.0, self.times_us)[0]
        from_us = max(self.where.load_settings().pause_us, PAUSE_TIMES * middle_us)
        found = _pauses(self, from_us)
        return tuple(sorted(found, key=lambda pause: pause.took_us, reverse=True))

    @property
    def paused_share(self) -> float:
        """Return the share of the whole time in pauses."""
        return sum(one.took_us for one in self.pauses) / 1e6 / self.took_s if self.took_s else 0.0

    @property
    def carriers(self) -> list[tuple[str, str, int]]:
        """Return the changes of carriers by node and interface, where there are any."""
        return [
            (node, source.name, changes)
            for counters in filter(None, [self.launch.counters])
            for node in counters.sources
            for source in counters.of_kind(node, INTERFACE)
            if (changes := counters.of_source(source, CARRIER))
        ]

    @property
    def sent_again(self) -> dict[str, int | None]:
        """Return the segments sent again by node, None where it is not known."""
        return {
            node: counters.value(node, TCP, "", "Tcp.RetransSegs")
            for counters in filter(None, [self.launch.counters])
            for node in counters.sources
        }

    @property
    def disturbed(self) -> tuple[str, ...]:
        """Return what disturbed it, a sentence each."""
        return tuple(disturbed(self.launch.loads, self.where.settings().disturbance))

    @property
    def most(self) -> float | None:
        """Return the bound of the 99.9th percentile in medians."""
        return self.where.load_settings().most_999th

    @property
    def side(self) -> Side | None:
        """Return on which side of the bound the interval of the 99.9th percentile is."""
        if self.most is None or BOUNDED not in self.percentiles:
            return None
        middle, (low, high) = self.percentiles[50.0][0], self.percentiles[BOUNDED][1]
        return side((low / middle, high / middle), 0, self.most)

    @property
    def beyond(self) -> bool:
        """Check whether the 99.9th percentile exceeds its bound, undisturbed."""
        return self.side is Side.BEYOND and not self.disturbed

    @property
    def undecided(self) -> bool:
        """Check whether it has a bound, and is inconclusive."""
        bounded = self.most is not None
        return bounded and (bool(self.disturbed) or self.side in (None, Side.ASTRIDE))


def _pauses(tail: Tail, from_us: float) -> Iterator[Pause]:
    """Yield calls from ``from_us`` on, and times between calls in which none was printed."""
    # A call goes there and back, and a time is that of one way.
    long = {place: 2 * time for place, time in enumerate(tail.times_us) if time >= from_us}
    for place, took_us in long.items():
        yield Pause(tail.moment(place), took_us, in_call=True)
    usual_s = tail.took_s / len(tail.times_us)
    least_s = max(LEAST_SILENCE_S, PAUSE_TIMES * usual_s)
    for (before, seen), (after, now) in itertools.pairwise(tail.watched):
        printed_us = max((long.get(place, 0.0) for place in range(seen, now)), default=0.0)
        silent_s = after - before
        if silent_s >= least_s and printed_us < 1e6 * silent_s / 2:
            yield Pause(after, 1e6 * silent_s, in_call=False)


def of_job(folder: Path, jobid: str) -> Tail:
    """Return the long launch from ``folder``; NetproofError where it is cut short."""
    planned = JobPlan.read(folder / PLAN_FILE)
    asked, job = planned.task_of(TailsAsked), job_files.JobFolder(folder)
    path = folder / WATCH_FILE
    try:
        calls, looks = job_files.noted(path, tuple[int, Looks])
    except OSError as error:
        why = f"the job did not come to the end of its long launch: {error.strerror}"
        raise NetproofError(f"{path}: {why}") from None
    case = Case(*planned.where, OF_PAIRS.name, FUNCTION, 2, 1)
    launch, times = load_plan.repeated(job, LONG, case, asked.bytes, calls, "call")
    printed, _ = of_program(text_of(folder / f"{LONG}.{OF_PAIRS.suffix}"))
    node_facts.nodes_of_job(folder, jobid)
    where, seen = (*planned.where, jobid, launch.ranks, planned.extras), watched(looks, printed)
    return Tail(*where, asked.bytes, asked.seconds, launch, times, seen)
