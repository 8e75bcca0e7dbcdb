"""A campaign's results as Markdown, and its missed aims."""

from __future__ import annotations

from collections.abc import Sequence

from ci.campaigns.telling import at_most, counts_of, described, durations, ending, line, row, unmade
from ci.tune_campaign.kinds import KINDS
from ci.tune_campaign.records import LEAST_RIGHT, LEAST_STEPS, RUNS, Campaign, Found, Result


def missed(campaign: Campaign, results: Sequence[Result]) -> list[str]:
    """Return a sentence for each aim that was missed or that takes more runs."""
    sentences = unmade(campaign, results)
    for name, kind in KINDS.items():
        several = [one.judged for one in results if one.run.kind == name]
        judged = [one for one in several if one.found is not Found.NOT_JUDGED]
        right = sum(one.found is Found.RIGHT for one in judged)
        if len(judged) < RUNS:
            sentences.append(f"{kind.said}: {len(judged)} of the {RUNS} runs that it takes")
        if kind.steps:
            seen, tried = _steps(several)
            if seen < LEAST_STEPS * tried:
                sentences.append(f"{kind.said}: {seen} of {tried} seen where they are")
        elif right < (LEAST_RIGHT if kind.best else 1) * len(judged):
            sentences.append(f"{kind.said}: {right} of {len(judged)} right")
    return sentences


HEAD = ("planted", "swept", "runs", *Found, "not right at most (95 %)", "median s", "longest s")


def table(campaign: Campaign, results: Sequence[Result]) -> str:
    """Return a campaign's results as Markdown."""
    lines = [described("Sweeps", campaign, results), "", row(HEAD), row(["---"] * len(HEAD))]
    for name, kind in KINDS.items():
        several = [one for one in results if one.run.kind == name]
        if several:
            lines.append(row([kind.said, kind.swept, *_cells(several)]))
    for name, kind in KINDS.items():
        judged = [one.judged for one in results if one.run.kind == name]
        if kind.steps and judged:
            seen, tried = _steps(judged)
            lines += ["", f"{kind.said}: {seen} of {tried} seen there or at the next size."]
    odd = [one for one in results if one.judged.found is not Found.RIGHT]
    lines += ending(
        [line(one, one.judged.found, one.judged.said) for one in odd],
        ("Not right:", "All runs that were made are right."),
        missed(campaign, results),
    )
    return "\n".join(lines)


def _steps(several: Sequence) -> tuple[int, int]:
    return sum(one.steps[0] for one in several), sum(one.steps[1] for one in several)


def _cells(results: Sequence[Result]) -> list[str]:
    limit = at_most(results, Found.RIGHT)
    return [*counts_of(results, Found), limit, *durations(results)]
