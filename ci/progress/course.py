"""How far a run is, and how long it takes yet."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import mean

from ci.progress.lines import BAD, Line, Test, launches_on
from netproof.site.jobs import PlannedJob

_WEIGHT = 0.05
"""How much of what is expected of a run has to have ended to count half for its pace."""


@dataclass
class Course:
    """How far a run is. Times are seconds since it began.

    ``seconds``: how long each job should take by past sessions, empty where that is not known:
    then each takes as long as the like. ``domains``: of every job of the run, in which of them one
    job runs at a time. ``serial``: whether one test runs after the other, so that those to come
    have not begun; ``past``: how long each test took where the same was run before, so.
    """

    seconds: Mapping[PlannedJob, float] = field(default_factory=dict)
    domains: Mapping[PlannedJob, str] = field(default_factory=dict)
    serial: bool = False
    past: Mapping[Test, float] = field(default_factory=dict)
    done: int = 0
    tests: int = 0
    bad: int = 0
    jobs: dict[PlannedJob, float | None] = field(default_factory=dict)
    begun: dict[Test, float] = field(default_factory=dict)
    took: dict[Test, float] = field(default_factory=dict)
    job_of: dict[Test, PlannedJob] = field(default_factory=dict)

    def take(self, line: Line, now_s: float) -> bool:
        """Note what a line says; whether a job ended."""
        self.done, self.tests = max(self.done, line.done), max(self.tests, line.tests)
        self.bad += line.word in BAD
        ended = line.word != "RUN"
        if ended:
            self.took[line.test] = now_s - self.begun.pop(line.test, now_s)
        else:
            self.begun[line.test] = now_s
        if line.job is None:
            return False
        self.job_of[line.test] = line.job
        self.jobs[line.job] = now_s if ended else None
        return ended

    def left_s(self, now_s: float) -> float | None:
        """How long it takes yet; None where nothing is known to tell it from."""
        if not self.serial:
            return self._left_of_domains(now_s)
        return self._left_by_past(now_s) if self.past else self._left_by_the_like(now_s)

    def at_least(self) -> bool:
        """Whether it may take any longer: something is to come whose time nothing tells.

        What launches on takes as long as what it finds undecided.
        """
        if self.past:
            known = self.past.keys() | self.took.keys() | self.begun.keys()
            return len(known) < self.tests or any(test not in self.past for test in self.begun)
        return self._further_to_come() > 0

    def _further_to_come(self) -> int:
        """How many tests that launch on have not ended: two for each job."""
        several = 2 * len(self.domains.keys() | self.jobs.keys())
        return several - sum(launches_on(test) for test in self.took)

    def _overdue(self, now_s: float) -> bool:
        """Whether a test runs for longer than it ever should."""
        return any(now_s - at > self.past.get(test, 0) + 1 for test, at in self.begun.items())

    def _left_by_past(self, now_s: float) -> float:
        """As the same tests took, as much slower or faster as those that have ended were.

        What launched on has no part in that: it took as long as what it found undecided.
        """
        whole = sum(self.past.values())
        told = [test for test in self.took if test in self.past and not launches_on(test)]
        weight = _WEIGHT * whole
        pace = (sum(self.took[test] for test in told) + weight) / (
            sum(self.past[test] for test in told) + weight
        )
        left = {test: pace * one for test, one in self.past.items() if test not in self.took}
        for test, since in self.begun.items():
            left[test] = max(0.0, left.get(test, 0.0) - (now_s - since))
        return sum(left.values())

    def _left_by_the_like(self, now_s: float) -> float | None:
        """Every job as past sessions have it, or as the like took; every other test as the mean.

        What launches on takes nothing, since it may find nothing undecided.
        """
        jobs = {self.job_of[test]: one for test, one in self.took.items() if test in self.job_of}
        if not jobs and not self.seconds:
            return None
        expected = sum(map(self._seconds, jobs)) if self.seconds else 0.0
        pace = sum(jobs.values()) / expected if expected else 1.0
        everyone = self.domains.keys() | self.jobs.keys()
        left = 0.0
        for job in everyone - jobs.keys():
            takes = pace * self._seconds(job) if self.seconds else _as_the_like(job, jobs)
            since = [at for test, at in self.begun.items() if self.job_of.get(test) == job]
            left += max(0.0, takes - (now_s - since[0] if since else 0.0))
        others = [
            one
            for test, one in self.took.items()
            if test not in self.job_of and not launches_on(test)
        ]
        to_come = self.tests - 3 * len(everyone) - len(others)
        return left + max(0, to_come) * (mean(others) if others else 0.0)

    def _left_of_domains(self, now_s: float) -> float | None:
        """By the jobs, which all have begun; None where nothing is known to tell it from.

        As past sessions took, and as much slower or faster as the jobs that have ended were; of
        several domains the one that takes longest.
        """
        ended = {job: at for job, at in self.jobs.items() if at is not None}
        if not self.jobs or (not ended and not self.seconds):
            return None
        last: dict[str, float] = defaultdict(float)
        done: dict[str, float] = defaultdict(float)
        for job, at in ended.items():
            domain = self.domains.get(job, "")
            last[domain] = max(last[domain], at)
            done[domain] += self._seconds(job)
        expected = sum(done.values())
        pace = sum(last.values()) / expected if expected else 1.0
        running: dict[str, list[float]] = defaultdict(list)
        for job in self.jobs.keys() - ended.keys():
            running[self.domains.get(job, "")].append(pace * self._seconds(job))
        return max(
            (
                # A job that takes longer than it should takes none of the others' time.
                sum(several) - min(now_s - last[domain], sum(several) / len(several))
                for domain, several in running.items()
            ),
            default=0.0,
        )

    def _seconds(self, job: PlannedJob) -> float:
        if not self.seconds:
            return 1.0
        return self.seconds.get(job, sum(self.seconds.values()) / len(self.seconds))

    def sentence(self, now_s: float) -> str:
        """How long it has run, how long it takes yet, and how many tests failed so far."""
        left_s = self.left_s(now_s)
        at_least = self.at_least()
        if left_s is None:
            left = "time left not known yet"
        elif left_s >= 1:
            left = f"{'at least' if at_least else 'about'} {clock(left_s)} left"
        elif at_least or self._overdue(now_s):
            left = "time left not known"
        else:
            left = "nearly done"
        bad = f", {self.bad} failed" if self.bad else ""
        return f"{clock(now_s)}, {left}{bad}"


def clock(seconds: float) -> str:
    """Minutes and seconds: ``3:07``."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02}"


def _as_the_like(job: PlannedJob, took: Mapping[PlannedJob, float]) -> float:
    """How long a job takes by those that ended: of its benchmark and ranks, else of any."""
    for near in (
        lambda other: (other.what(), other.partition) == (job.what(), job.partition),
        lambda other: other.what() == job.what(),
        lambda other: other.benchmark == job.benchmark,
        lambda other: True,
    ):
        several = [one for other, one in took.items() if near(other)]
        if several:
            return mean(several)
    return 0.0
