"""Results as Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import median

from scipy.stats import binomtest

from ci.evaluation.engine import SILENT, Campaign, Evaluation, Grade, Result

CONFIDENCE = 0.95
AT_MOST = " at most (95%)"
"""End of the head of a rate's upper limit."""


def markdown(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table in Markdown; the first row is its head."""
    return [f"| {' | '.join(row)} |" for row in (rows[0], ["---"] * len(rows[0]), *rows[1:])]


def upper_limit(wrong: int, runs: int) -> float:
    """Return the one-sided limit on the rate of ``wrong`` (Clopper and Pearson 1934)."""
    return binomtest(wrong, runs, alternative="less").proportion_ci(CONFIDENCE, "exact").high


def table(evaluation: Evaluation, campaign: Campaign, results: Sequence[Result]) -> str:
    """Return an evaluation's results as Markdown, with its missed aims."""
    rows = [evaluation.heads]
    rows += [_row(evaluation, name, some) for name, some in evaluation.groups(results) if some]
    lines = [_description(evaluation, campaign, results), "", *markdown(rows)]
    for note in evaluation.notes(results):
        lines += ["", note]
    odd = [one for one in results if evaluation.is_odd(one)]
    lines += ["", "Not as it should be:" if odd else "All runs ended as they should."]
    if odd:
        lines += ["", *(_line(evaluation, one) for one in odd)]
    aims = evaluation.missed(campaign, results)
    lines += ["", *([f"- MISSED: {sentence}." for sentence in aims] or ["Aims met."])]
    return "\n".join(lines)


def _description(evaluation: Evaluation, campaign: Campaign, results: Sequence[Result]) -> str:
    """Describe the runs: what they are, seed, machine, code, days and load."""
    host = campaign.machine
    groups = {True: "on", False: "off", None: "not there"}[host["autogroup"]]
    days = sorted({result.started[:10] for result in results})
    when = f", {' to '.join(dict.fromkeys((days[0], days[-1])))}" if days else ""
    before = [result.before[0] for result in results if result.before]
    load = f" Load average before a run: {min(before):.2f} to {max(before):.2f}." if before else ""
    return (
        f"{evaluation.of_settings(campaign.settings)}, seed {campaign.settings['seed']},"
        f" {host['cpus']} CPUs, Linux {host['kernel']}, autogroup {groups}, code"
        f" {campaign.code}{when}.{load}"
    )


def _row(evaluation: Evaluation, name: str, results: Sequence[Result]) -> list[str]:
    counted = Counter(result.judged.found for result in results)
    limit = "not known"
    if judged := evaluation.counting(results):
        wrong = sum(evaluation.is_wrong(one) for one in judged)
        limit = f"{100 * upper_limit(wrong, len(judged)):.0f} %"
    seconds = [result.wall_s for result in results]
    cells = {
        **{grade: str(counted[grade]) for grade in Grade},
        "runs": str(len(results)),
        "median s": f"{median(seconds):.0f}",
        "longest s": f"{max(seconds):.0f}",
        **evaluation.cells(results),
    }
    heads = evaluation.heads[1:]
    return [name, *(limit if head.endswith(AT_MOST) else cells[head] for head in heads)]


def _line(evaluation: Evaluation, result: Result) -> str:
    run, judged = result.run, result.judged
    facts = [f"seed {run.seed}", result.started, f"{result.wall_s:.0f} s"]
    facts += [", ".join(run.environments)] if run.environments else []
    if result.before and result.after:
        facts.append(f"load average {result.before[0]:.1f} to {result.after[0]:.1f}")
    said = " · ".join(judged.said) or SILENT
    return (
        f"- run {run.number}, {evaluation.name_of(run)} ({', '.join(facts)}):"
        f" **{judged.found}**: {said}"
    )
