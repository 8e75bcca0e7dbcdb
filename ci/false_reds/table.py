"""A campaign's results as Markdown, and its missed aims."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import median

from ci.campaigns.telling import CONFIDENCE, durations, ending, row, upper_limit
from ci.false_reds.records import (
    LEAST_HEALTHY,
    LEAST_QUIET,
    LEAST_SICK,
    MOST_INCONCLUSIVE,
    SAID,
    Campaign,
    Condition,
    Judged,
    Outcome,
    Result,
)

MOST_CASES = 6
"""Largest number of a run's cases in a table."""


def said(judged: Judged) -> str:
    """Explain on one line why a run is not green; measured cases come first."""
    parts = [*([judged.reason] if judged.reason else []), *judged.faults, *judged.undecided]
    ordered = sorted(judged.cases, key=lambda case: not case.criteria)
    parts += [str(case) for case in ordered[:MOST_CASES]]
    more = len(judged.cases) - MOST_CASES
    return " · ".join([*parts, *([f"and {more} more cases"] if more > 0 else [])])


def missed(campaign: Campaign, results: Sequence[Result]) -> list[str]:
    """Return a sentence for each aim that was missed or that takes more runs."""
    sentences = []
    if len(results) < len(campaign.runs):
        sentences.append(f"{len(results)} of {len(campaign.runs)} runs were made")
    healthy = [result for result in results if not result.run.sick]
    sick = [result for result in results if result.run.sick]
    quiet = [result for result in healthy if result.run.condition is Condition.QUIET]
    for what, made, least in (
        ("healthy runs", healthy, LEAST_HEALTHY),
        ("quiet runs", quiet, LEAST_QUIET),
        ("runs on the sick switch", sick, LEAST_SICK),
    ):
        if len(made) < least:
            sentences.append(f"{what}: {len(made)} of the {least} that it takes")
    of_a_kind = Counter(result.run.condition for result in results)
    sentences += [
        f"no run was made with this: {SAID[one]}" for one in Condition if not of_a_kind[one]
    ]
    wrong = sum(result.wrong for result in healthy)
    if wrong:
        sentences.append(f"{wrong} of {len(healthy)} healthy runs were red or not judged")
    undecided = sum(result.judged.outcome is Outcome.INCONCLUSIVE for result in quiet)
    if undecided > MOST_INCONCLUSIVE * len(quiet):
        sentences.append(f"{undecided} of {len(quiet)} quiet runs were inconclusive")
    unseen = sum(result.wrong for result in sick)
    if unseen:
        sentences.append(f"{unseen} of {len(sick)} sick runs were not red by a criterion")
    return sentences


HEAD = (
    *("condition", "runs", "green", "inconclusive", "red", "not judged"),
    f"wrong at most ({CONFIDENCE:.0%})",
    *("median s", "longest s", "CPUs taken alongside", "waiting for a CPU"),
)


def table(campaign: Campaign, results: Sequence[Result]) -> str:
    """Return a campaign's results as Markdown."""
    groups = [(SAID[one], [r for r in results if r.run.condition is one]) for one in Condition]
    groups.insert(
        len(groups) - 1, ("all healthy", [result for result in results if not result.run.sick])
    )
    lines = [_described(campaign, results), "", row(HEAD), row(["---"] * len(HEAD))]
    lines += [row([name, *_cells(several)]) for name, several in groups if several]
    odd = [
        result
        for result in results
        if result.wrong or (not result.run.sick and result.judged.outcome is not Outcome.GREEN)
    ]
    found = Counter(
        criterion
        for result in results
        if result.run.sick
        for criterion in result.judged.by_criterion
    )
    if found:
        said = ", ".join(f"{name} in {count}" for name, count in found.most_common())
        lines += ["", f"The sick switch was red by: {said}."]
    lines += ending(
        [f"- {_line(result)}" for result in odd],
        ("Not as it should be:", "All runs ended as they should."),
        missed(campaign, results),
    )
    return "\n".join(lines)


def _described(campaign: Campaign, results: Sequence[Result]) -> str:
    settings, machine = campaign.settings, campaign.machine
    kind = "whole runs" if settings.whole else "smoke runs"
    groups = {True: "on", False: "off", None: "not there"}[machine["autogroup"]]
    days = sorted({result.started[:10] for result in results})
    when = f", {' to '.join(dict.fromkeys((days[0], days[-1])))}" if days else ""
    return (
        f"{kind.capitalize()}, seed {settings.seed}, {machine['cpus']} CPUs, Linux"
        f" {machine['kernel']}, autogroup {groups}, code {campaign.code}{when}. Bursts of"
        f" {settings.burst_s:g} s and pauses of {settings.pause_s:g} s on average."
    )


def _cells(results: Sequence[Result]) -> list[str]:
    outcomes = Counter(result.judged.outcome for result in results)
    known = [result for result in results if result.machine and result.wall_s]
    taken = [result.machine.load_cpu_s / result.wall_s for result in known]
    waiting = [
        result.machine.pressure_s / result.wall_s
        for result in known
        if result.machine.pressure_s is not None
    ]
    order = (Outcome.GREEN, Outcome.INCONCLUSIVE, Outcome.RED, Outcome.NOT_JUDGED)
    return [
        str(len(results)),
        *(str(outcomes[outcome]) for outcome in order),
        f"{100 * upper_limit(sum(result.wrong for result in results), len(results)):.0f} %",
        *durations(results),
        f"{median(taken):.2f}" if taken else "not available",
        f"{100 * median(waiting):.0f} %" if waiting else "not available",
    ]


def _line(result: Result) -> str:
    machine, launches = result.machine, result.launches
    facts = [f"seed {result.run.seed}", f"{result.started}", f"{result.wall_s:.0f} s"]
    if machine:
        loads = " to ".join(f"{average[0]:.1f}" for average in (machine.before, machine.after))
        facts.append(f"load average {loads}")
    if machine and machine.cpu is not None:
        facts.append(f"CPU {machine.cpu} taken")
    if launches:
        facts.append(f"{launches.failed} of {launches.made} launches failed")
    why = said(result.judged) or "nothing was found"
    return (
        f"run {result.run.number}, {SAID[result.run.condition]} ({', '.join(facts)}):"
        f" **{result.judged.outcome}**: {why}"
    )
