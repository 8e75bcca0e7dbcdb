"""Parts that tables of campaigns share."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from enum import StrEnum
from statistics import median
from typing import Any

from scipy.stats import binomtest

from ci.campaigns.records import NOT_JUDGED, Campaign, Result

CONFIDENCE = 0.95
SENTENCE = 200
"""Longest sentence in characters; the rest is cut."""

SomeCampaign = Campaign[Any, Any]
SomeResult = Result[Any, Any]


def upper_limit(wrong: int, runs: int) -> float:
    """Return the one-sided limit on the rate of ``wrong`` (Clopper and Pearson 1934)."""
    return binomtest(wrong, runs, alternative="less").proportion_ci(CONFIDENCE, "exact").high


def row(cells: Sequence[str]) -> str:
    """Return a row of a table in Markdown."""
    return f"| {' | '.join(cells)} |"


def described(what: str, campaign: SomeCampaign, results: Sequence[SomeResult]) -> str:
    """Describe the runs: their kind ``what``, seed, machine, code, days and load."""
    settings, machine = campaign.settings, campaign.machine
    days = sorted({result.started[:10] for result in results})
    when = f", {' to '.join(dict.fromkeys((days[0], days[-1])))}" if days else ""
    loads = [result.before[0] for result in results if result.before]
    load = f" Load average before a run: {min(loads):.2f} to {max(loads):.2f}." if loads else ""
    return (
        f"{what}, seed {settings.seed}, {machine['cpus']} CPUs, Linux {machine['kernel']}, code"
        f" {campaign.code}{when}.{load}"
    )


def unmade(campaign: SomeCampaign, results: Sequence[SomeResult]) -> list[str]:
    """Return sentences on runs that were not made or not judged."""
    sentences = []
    if len(results) < len(campaign.runs):
        sentences.append(f"{len(results)} of {len(campaign.runs)} runs were made")
    broken = sum(result.judged.found == NOT_JUDGED for result in results)
    if broken:
        sentences.append(f"{broken} runs were not judged; --resume makes them again")
    return sentences


def counts_of(results: Sequence[SomeResult], found: type[StrEnum]) -> list[str]:
    """Return cells: the number of runs, and of runs with each result."""
    counted = Counter(result.judged.found for result in results)
    return [str(len(results)), *(str(counted[one]) for one in found)]


def at_most(results: Sequence[SomeResult], right: str) -> str:
    """Return a cell: the largest rate of runs that are not ``right``, by its upper limit."""
    judged = [one.judged.found for one in results if one.judged.found != NOT_JUDGED]
    if not judged:
        return "not known"
    return f"{100 * upper_limit(len(judged) - judged.count(right), len(judged)):.0f} %"


def durations(results: Sequence[Any]) -> list[str]:
    """Return two cells: the median of the runs' seconds, and the longest."""
    seconds = [result.wall_s for result in results]
    return [f"{median(seconds):.0f}", f"{max(seconds):.0f}"]


def ending(odd: Sequence[str], titles: tuple[str, str], aims: Sequence[str]) -> list[str]:
    """Return the last lines of a table: runs with a wrong result, and missed aims.

    ``titles``: the heading of these runs, and the line without any.
    """
    return [
        *("", titles[0] if odd else titles[1]),
        *(("", *odd) if odd else ()),
        *("", *([f"- MISSED: {sentence}." for sentence in aims] or ["Aims met."])),
    ]


def line(result: SomeResult, found: str, said: Sequence[str]) -> str:
    """Return a line on a run with a wrong result."""
    run = result.run
    facts = [f"seed {run.seed}", result.started, f"{result.wall_s:.0f} s"]
    facts.append(", ".join(run.environments))
    if result.before and result.after:
        facts.append(f"load average {result.before[0]:.1f} to {result.after[0]:.1f}")
    return f"- run {run.number}, {run} ({', '.join(facts)}): **{found}**: {' · '.join(said)}"


def short(sentence: str) -> str:
    """Cut a sentence to SENTENCE characters at most."""
    return textwrap.shorten(sentence, SENTENCE, placeholder=" …")


def now() -> str:
    """Return the time in ISO 8601, UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")
