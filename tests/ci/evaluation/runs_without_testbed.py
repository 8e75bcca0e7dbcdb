"""Runs of evaluations without a testbed."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ci.evaluation import __main__ as command_line
from ci.evaluation.engine import Campaign, Result
from ci.evaluation.machine import Testbed, code_digest
from ci.evaluation.plants import Answer, Evaluation, Grade, Run

SETTINGS = {
    "seed": 3,
    "quiet_share": 0.05,
    "quiet_seconds": 0.05,
    "quiet_limit": 0.1,
    "run_limit": 60.0,
}


def planned(evaluation: Evaluation, *options: str, seed: int = 3) -> tuple[Run, ...]:
    """The runs of a new evaluation with these options."""
    words = ["--out", ".", f"--seed={seed}", *options]
    return evaluation.plan(command_line.options_of(evaluation, words))


def campaign(*runs: Run, **settings: Any) -> Campaign:
    machine = {"cpus": 2, "kernel": "6.18", "autogroup": True}
    return Campaign(SETTINGS | settings, runs, code_digest(), machine)


def result(run: Run, found: Grade, *said: str, **more: Any) -> Result:
    judged = Answer(found, said, **more)
    loads = {"before": (0.5, 0.4, 0.3), "after": (1.5, 1.0, 0.8)}
    return Result(run, judged, "2026-11-25T09:00:00+00:00", 60.0, **loads)


class NoTestbed(Testbed):
    """Stands for the testbed, which these tests leave alone."""

    verbs: list[str]

    def __init__(self, log: Path) -> None:
        NoTestbed.verbs = []

    def up(self, topology: Path) -> None:
        self.verbs.append(f"up {topology.stem}")

    def run(self, *verb: str) -> None:
        self.verbs.append(" ".join(verb))

    @contextmanager
    def _logged(self, *verb: str, before: tuple[str, ...]) -> Iterator[subprocess.Popen[bytes]]:
        self.verbs.append(" ".join(verb))
        process = subprocess.Popen(["sleep", "60"])
        yield process
        process.kill()
        process.wait()

    def rebuild(self) -> None:
        self.verbs.append("rebuild")

    def restore(self) -> None:
        self.verbs.append("restored")
