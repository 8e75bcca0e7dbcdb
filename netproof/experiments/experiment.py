"""The base of all experiments: what is asked, what it takes, its job's plan, and its result.

``netproof measure`` makes one of its options, and refuses what cannot be measured; ReFrame's test
gets it as JSON, and plans the job by it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from netproof import codec
from netproof.session.plan import JobPlan, Step
from netproof.session.session import JobRecord


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """Base of what is asked of an experiment.

    ``nodes``: of its job; where any number from ``LEAST_NODES`` on will do, the most, or 0 for all
    that are usable, and ``WHY`` fewer will not; ``ranks``: of its job, 0 where its nodes decide.
    ``TEST``: of ReFrame; ``FOLDER``: of its reports; ``TASK``: of the job's program; ``FEATURES``:
    an environment needs one of them, ``LABEL`` in words, and gets it as ``REMEDY`` says;
    ``WORDS``: what is measured, ``0`` in braces being this; ``FULL_NODES``: whether each node has
    all ranks of the partition's, and not one; ``FIGURES_AT_ONCE``: as in the plan.
    """

    nodes: int = 2
    ranks: int = 0

    TEST: ClassVar[str]
    FOLDER: ClassVar[str]
    TASK: ClassVar[str]
    FEATURES: ClassVar[Collection[str]] = ()
    LABEL: ClassVar[str]
    REMEDY: ClassVar[str] = ""
    LEAST_NODES: ClassVar[int] = 0
    WHY: ClassVar[str] = ""
    WORDS: ClassVar[str] = ""
    FULL_NODES: ClassVar[bool] = False
    FIGURES_AT_ONCE: ClassVar[bool] = False

    @property
    def subject(self) -> str:
        """Return the subject in the report's name; empty for the partition."""
        return ""

    def features(self) -> Collection[str]:
        """Return the features; an environment needs one of them."""
        return self.FEATURES

    def steps(self, planned: JobPlan) -> tuple[Step, ...]:
        """Return the steps that are known before the job begins; NetproofError if impossible."""
        return ()

    def files(self, planned: JobPlan) -> dict[str, str]:
        """Return the lists of message sizes by name; NetproofError if impossible."""
        return {}

    def words(self, planned: JobPlan) -> str:
        """Return what is measured, in words."""
        return self.WORDS.format(self)

    def result(self, folder: Path, jobid: str) -> JobRecord:
        """Return what a job left in its folder; NetproofError where nothing of it is whole."""
        raise NotImplementedError

    def plan(self, given: JobPlan) -> tuple[JobPlan, dict[str, str]]:
        """Return the plan of its job, and its files; NetproofError for what cannot be measured.

        ``given``: has the place with its extras, the seed, and how steps begin.
        """
        asked, at_once = codec.encode(self), self.FIGURES_AT_ONCE
        planned = dataclasses.replace(given, task=self.TASK, asked=asked, figures_at_once=at_once)
        files = self.files(planned)
        return dataclasses.replace(planned, rounds=(self.steps(planned),)), files
