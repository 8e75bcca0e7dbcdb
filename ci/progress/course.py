"""Progress of a run, and the time left."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import mean

from ci.progress.lines import BAD, Line, Test, repeats_launches
from netproof.site.matrix import PlannedJob

_WEIGHT = 0.05
"""Share of the expected time that has to have ended to count half for the pace."""


@dataclass
class Course:
    """Progress of a run. Times are seconds since it began.

    ``seconds``: each job's time in past sessions, empty if unknown: similar jobs decide then.
    ``domains``: each job's contention domain, in which one job runs at a time. ``serial``: whether
    tests run one by one, so that later ones have not begun; ``past``: each test's time in past
    serial runs of the same command.
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
        """Note a line; return whether a job ended."""
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
        """Return the seconds left; None if nothing is known."""
        if not self.serial:
            return self._left_of_domains(now_s)
        return self._left_by_past(now_s) if self.past else self._left_by_similar_jobs(now_s)

    def at_least(self) -> bool:
        """Return whether the time left is a lower limit, since a later test's time is unknown.

        A test that repeats launches takes as long as its undecided cases.
        """
        if self.past:
            known = self.past.keys() | self.took.keys() | self.begun.keys()
            return len(known) < self.tests or any(test not in self.past for test in self.begun)
        return self._further_to_come() > 0

    def _further_to_come(self) -> int:
        """Count unfinished tests that repeat launches: two for each job."""
        several = 2 * len(self.domains.keys() | self.jobs.keys())
        return several - sum(repeats_launches(test) for test in self.took)

    def _overdue(self, now_s: float) -> bool:
        """Return whether a test runs for longer than expected."""
        return any(now_s - at > self.past.get(test, 0) + 1 for test, at in self.begun.items())

    def _left_by_past(self, now_s: float) -> float:
        """Estimate from the same tests' past times, scaled by the pace of finished tests.

        Tests that repeat launches have no part in the pace: their undecided cases set their time.
        """
        whole = sum(self.past.values())
        both = [test for test in self.took if test in self.past and not repeats_launches(test)]
        weight = _WEIGHT * whole
        pace = (sum(self.took[test] for test in both) + weight) / (
            sum(self.past[test] for test in both) + weight
        )
        left = {test: pace * one for test, one in self.past.items() if test not in self.took}
        for test, since in self.begun.items():
            left[test] = max(0.0, left.get(test, 0.0) - (now_s - since))
        return sum(left.values())

    def _left_by_similar_jobs(self, now_s: float) -> float | None:
        """Estimate jobs from past sessions or similar jobs, and other tests from their mean.

        Tests that repeat launches count as 0, since they may find nothing undecided.
        """
        jobs = {self.job_of[test]: one for test, one in self.took.items() if test in self.job_of}
        if not jobs and not self.seconds:
            return None
        expected = sum(map(self._seconds, jobs)) if self.seconds else 0.0
        pace = sum(jobs.values()) / expected if expected else 1.0
        everyone = self.domains.keys() | self.jobs.keys()
        left = 0.0
        for job in everyone - jobs.keys():
            takes = pace * self._seconds(job) if self.seconds else _mean_of_similar(job, jobs)
            since = [at for test, at in self.begun.items() if self.job_of.get(test) == job]
            left += max(0.0, takes - (now_s - since[0] if since else 0.0))
        others = [
            one
            for test, one in self.took.items()
            if test not in self.job_of and not repeats_launches(test)
        ]
        to_come = self.tests - 3 * len(everyone) - len(others)
        return left + max(0, to_come) * (mean(others) if others else 0.0)

    def _left_of_domains(self, now_s: float) -> float | None:
        """Estimate from the jobs, which all have begun; None if nothing is known.

        Past sessions' times are scaled by the pace of finished jobs; the longest domain counts.
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
                # A job that runs for too long takes no time from the others.
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
        """Return a sentence: time so far, time left, and failed tests."""
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
    """Format minutes and seconds: ``3:07``."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02}"


def _mean_of_similar(job: PlannedJob, took: Mapping[PlannedJob, float]) -> float:
    """Estimate a job from finished ones: of its benchmark and ranks, else of any."""
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
