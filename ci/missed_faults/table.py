"""What a campaign found, as Markdown, and which of its aims were missed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import chain
from statistics import median

from ci.campaigns.telling import described, row, told, upper_limit
from ci.missed_faults.kinds import DERIVING, HEALTHY, HEALTHY_DERIVED, SAID
from ci.missed_faults.records import LEAST_NAMED, RUNS, Campaign, Found, Result


def missed(campaign: Campaign, results: Sequence[Result]) -> list[str]:
    """A sentence for each aim that was missed, or that so many runs cannot show."""
    sentences = []
    if len(results) < len(campaign.runs):
        sentences.append(f"{len(results)} of {len(campaign.runs)} runs were made")
    broken = sum(result.judged.found is Found.NOT_JUDGED for result in results)
    if broken:
        sentences.append(f"{broken} runs were not judged; --resume makes them again")
    for name, said in SAID.items():
        if name == DERIVING:
            continue
        found = [one.judged.found for one in results if one.run.kind == name]
        judged = [one for one in found if one is not Found.NOT_JUDGED]
        named = judged.count(Found.NAMED)
        if len(judged) < RUNS:
            sentences.append(f"{said}: {len(judged)} of the {RUNS} runs that it takes")
        if name in (HEALTHY, HEALTHY_DERIVED) and named < len(judged):
            failed = len(judged) - named
            sentences.append(f"{said}: {failed} of {len(judged)} runs fail something")
        elif named < LEAST_NAMED * len(judged):
            sentences.append(f"{said}: {named} of {len(judged)} named")
    return sentences


HEAD = (
    *("planted", "runs", *Found, "not named at most (95 %)", "named by"),
    *("median s", "longest s"),
)


def table(campaign: Campaign, results: Sequence[Result]) -> str:
    """What a campaign found, as Markdown."""
    lines = [described("Smoke runs", campaign, results), "", row(HEAD), row(["---"] * len(HEAD))]
    for name, said in SAID.items():
        several = [one for one in results if one.run.kind == name]
        if several:
            lines.append(row([said, *_cells(several)]))
    odd = [one for one in results if one.judged.found is not Found.NAMED]
    lines += ["", "Not named:" if odd else "All runs that were made are as they should be."]
    if odd:
        lines += ["", *(_told(one) for one in odd)]
    aims = missed(campaign, results)
    lines += ["", *(f"- MISSED: {sentence}." for sentence in aims)] if aims else ["", "Aims met."]
    return "\n".join(lines)


def _cells(results: Sequence[Result]) -> list[str]:
    found = Counter(result.judged.found for result in results)
    judged = len(results) - found[Found.NOT_JUDGED]
    criteria = Counter(chain.from_iterable(result.judged.criteria for result in results))
    limit = upper_limit(judged - found[Found.NAMED], judged) if judged else None
    seconds = [result.wall_s for result in results]
    return [
        *(str(count) for count in (len(results), *(found[one] for one in Found))),
        "not known" if limit is None else f"{100 * limit:.0f} %",
        ", ".join(f"{name} {count}" for name, count in criteria.most_common()) or "-",
        f"{median(seconds):.0f}",
        f"{max(seconds):.0f}",
    ]


def _told(result: Result) -> str:
    return told(result, result.judged.found, result.judged.said or ("nothing failed",))
