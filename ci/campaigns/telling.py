"""What tables of campaigns have in common."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Protocol

from scipy.stats import binomtest

from ci.campaigns.keeping import Campaign

CONFIDENCE = 0.95
SENTENCE = 200
"""Characters that are kept of a sentence."""


class Result(Protocol):
    """What became of a run of some environments: when, how long, and load averages around it."""

    run: Any
    started: str
    wall_s: float
    before: tuple[float, ...]
    after: tuple[float, ...]


def upper_limit(wrong: int, runs: int) -> float:
    """The largest rate that ``wrong`` of ``runs`` allows, one-sided (Clopper and Pearson 1934)."""
    return binomtest(wrong, runs, alternative="less").proportion_ci(CONFIDENCE, "exact").high


def row(cells: Sequence[str]) -> str:
    """A row of a table in Markdown."""
    return f"| {' | '.join(cells)} |"


def described(what: str, campaign: Campaign, results: Sequence[Result]) -> str:
    """What was run, when, by which code and where; ``what``: of which kind."""
    settings, machine = campaign.settings, campaign.machine
    days = sorted({result.started[:10] for result in results})
    when = f", {' to '.join(dict.fromkeys((days[0], days[-1])))}" if days else ""
    loads = [result.before[0] for result in results if result.before]
    load = f" Load average before a run: {min(loads):.2f} to {max(loads):.2f}." if loads else ""
    return (
        f"{what}, seed {settings.seed}, {machine['cpus']} CPUs, Linux {machine['kernel']}, code"
        f" {campaign.code}{when}.{load}"
    )


def told(result: Result, found: str, said: Sequence[str]) -> str:
    """A line on a run that is not as it should be."""
    run = result.run
    facts = [f"seed {run.seed}", result.started, f"{result.wall_s:.0f} s"]
    facts.append(", ".join(run.environments))
    if result.before and result.after:
        facts.append(f"load average {result.before[0]:.1f} to {result.after[0]:.1f}")
    return f"- run {run.number}, {run} ({', '.join(facts)}): **{found}**: {' · '.join(said)}"


def short(sentence: str) -> str:
    """A sentence of SENTENCE characters at most."""
    return textwrap.shorten(sentence, SENTENCE, placeholder=" …")


def now() -> str:
    """This moment in ISO 8601, UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")
