"""What a campaign found, as Markdown, and which of its aims were missed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import median

from ci.campaigns.telling import described, row, told, upper_limit
from ci.diagnose_campaign.kinds import HEALTHY, SAID
from ci.diagnose_campaign.records import HEALTHY_RUNS, LEAST_RIGHT, RUNS, Campaign, Found, Result
from netproof.diagnosis.diagnosis import Outcome


def missed(campaign: Campaign, results: Sequence[Result]) -> list[str]:
    """A sentence for each aim that was missed, or that so many runs cannot show."""
    sentences = []
    if len(results) < len(campaign.runs):
        sentences.append(f"{len(results)} of {len(campaign.runs)} runs were made")
    broken = sum(result.judged.found is Found.NOT_JUDGED for result in results)
    if broken:
        sentences.append(f"{broken} runs were not judged; --resume makes them again")
    for name, said in SAID.items():
        found = [one.judged.found for one in results if one.run.kind == name]
        judged = [one for one in found if one is not Found.NOT_JUDGED]
        least = HEALTHY_RUNS if name == HEALTHY else RUNS
        right = judged.count(Found.RIGHT)
        if len(judged) < least:
            sentences.append(f"{said}: {len(judged)} of the {least} runs that it takes")
        if name == HEALTHY and right < len(judged):
            sentences.append(
                f"{len(judged) - right} of {len(judged)} healthy runs accuse something"
            )
        elif right < LEAST_RIGHT * len(judged):
            sentences.append(f"{said}: {right} of {len(judged)} right")
    return sentences


HEAD = (
    *("planted", "on", "runs", *Found, "cannot be told", "not right at most (95 %)"),
    *("median s", "longest s"),
)


def table(campaign: Campaign, results: Sequence[Result]) -> str:
    """What a campaign found, as Markdown."""
    what = "Rounds of pairs" if campaign.settings.pairs else "Smoke runs"
    lines = [described(what, campaign, results), "", row(HEAD), row(["---"] * len(HEAD))]
    for name, said in SAID.items():
        several = [one for one in results if one.run.kind == name]
        if several:
            on = ", ".join(sorted({one.run.switch for one in several}))
            lines.append(row([said, on, *_cells(several)]))
    odd = [one for one in results if one.judged.found is not Found.RIGHT]
    lines += ["", "Not right:" if odd else "All runs that were made are right."]
    if odd:
        lines += ["", *map(_told, odd)]
    aims = missed(campaign, results)
    lines += ["", *(f"- MISSED: {sentence}." for sentence in aims)] if aims else ["", "Aims met."]
    return "\n".join(lines)


def _cells(results: Sequence[Result]) -> list[str]:
    found = Counter(result.judged.found for result in results)
    judged = len(results) - found[Found.NOT_JUDGED]
    unknown = sum(result.judged.outcome == Outcome.UNKNOWN.value for result in results)
    limit = upper_limit(judged - found[Found.RIGHT], judged) if judged else None
    seconds = [result.wall_s for result in results]
    return [
        *(str(count) for count in (len(results), *(found[one] for one in Found), unknown)),
        "not known" if limit is None else f"{100 * limit:.0f} %",
        f"{median(seconds):.0f}",
        f"{max(seconds):.0f}",
    ]


def _told(result: Result) -> str:
    return told(result, result.judged.found, result.judged.said or ("nothing was found",))
