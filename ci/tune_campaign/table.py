"""What a campaign found, as Markdown, and which of its aims were missed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import median

from ci.campaigns.telling import described, row, told, upper_limit
from ci.tune_campaign.kinds import KINDS
from ci.tune_campaign.records import LEAST_RIGHT, LEAST_STEPS, RUNS, Campaign, Found, Result


def missed(campaign: Campaign, results: Sequence[Result]) -> list[str]:
    """A sentence for each aim that was missed, or that so many runs cannot show."""
    sentences = []
    if len(results) < len(campaign.runs):
        sentences.append(f"{len(results)} of {len(campaign.runs)} runs were made")
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
    """What a campaign found, as Markdown."""
    lines = [described("Sweeps", campaign, results), "", row(HEAD), row(["---"] * len(HEAD))]
    for name, kind in KINDS.items():
        several = [one for one in results if one.run.kind == name]
        if several:
            swept = f"{kind.parameter} over {kind.protocol.upper()}"
            lines.append(row([kind.said, swept, *_cells(several)]))
    for name, kind in KINDS.items():
        judged = [one.judged for one in results if one.run.kind == name]
        if kind.steps and judged:
            seen, tried = _steps(judged)
            lines += ["", f"{kind.said}: {seen} of {tried} seen there or at the next size."]
    odd = [one for one in results if one.judged.found is not Found.RIGHT]
    lines += ["", "Not right:" if odd else "All runs that were made are right."]
    if odd:
        lines += ["", *(told(one, one.judged.found, one.judged.said) for one in odd)]
    aims = missed(campaign, results)
    lines += ["", *(f"- MISSED: {sentence}." for sentence in aims)] if aims else ["", "Aims met."]
    return "\n".join(lines)


def _steps(several: Sequence) -> tuple[int, int]:
    return sum(one.steps[0] for one in several), sum(one.steps[1] for one in several)


def _cells(results: Sequence[Result]) -> list[str]:
    found = Counter(result.judged.found for result in results)
    judged = len(results) - found[Found.NOT_JUDGED]
    limit = upper_limit(judged - found[Found.RIGHT], judged) if judged else None
    seconds = [result.wall_s for result in results]
    return [
        *(str(count) for count in (len(results), *(found[one] for one in Found))),
        "not known" if limit is None else f"{100 * limit:.0f} %",
        f"{median(seconds):.0f}",
        f"{max(seconds):.0f}",
    ]
