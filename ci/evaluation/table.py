"""Tables as Markdown, and the statistics of proportions, for all programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from statistics import median

from scipy.stats import binomtest

from ci.evaluation.engine import SILENT, Campaign, Evaluation, Result

CONFIDENCE = 0.95


def markdown(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table in Markdown; the first row is its head."""
    return [f"| {' | '.join(row)} |" for row in (rows[0], ["---"] * len(rows[0]), *rows[1:])]


def upper_limit(wrong: int, runs: int) -> float:
    """Return the one-sided limit on the rate of ``wrong`` (Clopper and Pearson 1934)."""
    return binomtest(wrong, runs, alternative="less").proportion_ci(CONFIDENCE, "exact").high


def exact_interval(hits: int, runs: int) -> tuple[float, float]:
    """Return the exact 95 % interval of a share (Clopper and Pearson, Biometrika 26, 1934)."""
    interval = binomtest(hits, runs).proportion_ci(CONFIDENCE, "exact")
    return interval.low, interval.high


def counted(names: Iterable[str]) -> str:
    """Return how often each name occurs, the most frequent first."""
    return ", ".join(f"{name} {count}" for name, count in Counter(names).most_common()) or "-"


def table(evaluation: Evaluation, campaign: Campaign, results: Sequence[Result]) -> str:
    """Return an evaluation's results as Markdown, with its missed aims."""
    rows = [
        _row(evaluation, plant.said, some)
        for kind, plant in evaluation.plants.items()
        if (some := [one for one in results if one.run.kind == kind])
    ]
    if len(rows) > 1:
        rows.append(_row(evaluation, "all", results))
    # A column in which no row has anything is left out.
    heads = [head for head in rows[0] if any(row[head] != "-" for row in rows)] if rows else []
    lines = [_description(evaluation, campaign, results), ""]
    lines += markdown([heads, *([row[head] for head in heads] for row in rows)]) if rows else []
    odd = [one for one in results if one.judged.found is not _good(evaluation, one)[0]]
    lines += ["", "Not as it should be:" if odd else "All runs ended as they should."]
    if odd:
        lines += ["", *(_line(evaluation, one) for one in odd)]
    aims = evaluation.missed(campaign, results)
    lines += ["", *([f"- MISSED: {sentence}." for sentence in aims] or ["Aims met."])]
    return "\n".join(lines)


def _description(evaluation: Evaluation, campaign: Campaign, results: Sequence[Result]) -> str:
    """Describe the runs: what they are, seed, machine, code, days and load."""
    host, settings = campaign.machine, campaign.settings
    groups = {True: "on", False: "off", None: "not there"}[host["autogroup"]]
    days = sorted({result.started[:10] for result in results})
    when = f", {' to '.join(dict.fromkeys((days[0], days[-1])))}" if days else ""
    before = [result.before[0] for result in results if result.before]
    load = f" Load average before a run: {min(before):.2f} to {max(before):.2f}." if before else ""
    flags = "".join(f" --{name}" for name in ("whole", "pairs") if settings.get(name))
    return (
        f"{evaluation.name}{flags}, seed {settings['seed']}, {host['cpus']} CPUs, Linux"
        f" {host['kernel']}, autogroup {groups}, code {campaign.code}{when}.{load}"
    )


def _good(evaluation: Evaluation, result: Result) -> tuple[str, ...]:
    return evaluation.plants[result.run.kind].good


def _row(evaluation: Evaluation, name: str, results: Sequence[Result]) -> dict[str, str]:
    found, seconds = Counter(one.judged.found for one in results), [one.wall_s for one in results]
    limit = "not known"
    if judged := evaluation.counting(results):
        wrong = sum(one.judged.found not in _good(evaluation, one) for one in judged)
        limit = f"{100 * upper_limit(wrong, len(judged)):.0f} %"
    known = [one for one in results if one.after and one.wall_s]
    taken = [one.load_cpu_s / one.wall_s for one in known]
    waiting = [one.pressure_s / one.wall_s for one in known if one.pressure_s is not None]
    return {
        "planted": name,
        "on": ", ".join(sorted({one.run.switch for one in results})),
        "runs": str(len(results)),
        **{grade: str(found[grade]) for grade in evaluation.grades},
        "wrong at most (95%)": limit,
        "by": counted(chain.from_iterable(one.judged.by for one in results)),
        "CPUs taken alongside": f"{median(taken):.2f}" if any(taken) else "-",
        "waiting for a CPU": f"{100 * median(waiting):.0f} %" if waiting else "-",
        "median s": f"{median(seconds):.0f}",
        "longest s": f"{max(seconds):.0f}",
    }


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
