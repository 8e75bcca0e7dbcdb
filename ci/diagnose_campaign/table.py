"""A campaign's results as Markdown, and its missed aims."""

from __future__ import annotations

from collections.abc import Sequence

from ci.campaigns.telling import at_most, counts_of, described, durations, ending, line, row, unmade
from ci.diagnose_campaign.kinds import HEALTHY, SAID
from ci.diagnose_campaign.records import HEALTHY_RUNS, LEAST_RIGHT, RUNS, Campaign, Found, Result
from netproof.diagnosis.diagnosis import DiagnosisOutcome


def missed(campaign: Campaign, results: Sequence[Result]) -> list[str]:
    """Return a sentence for each aim that was missed or that takes more runs."""
    sentences = unmade(campaign, results)
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
    *("planted", "on", "runs", *Found, "inconclusive", "not right at most (95 %)"),
    *("median s", "longest s"),
)


def table(campaign: Campaign, results: Sequence[Result]) -> str:
    """Return a campaign's results as Markdown."""
    what = "Rounds of pairs" if campaign.settings.pairs else "Smoke runs"
    lines = [described(what, campaign, results), "", row(HEAD), row(["---"] * len(HEAD))]
    for name, said in SAID.items():
        several = [one for one in results if one.run.kind == name]
        if several:
            on = ", ".join(sorted({one.run.switch for one in several}))
            lines.append(row([said, on, *_cells(several)]))
    odd = [one for one in results if one.judged.found is not Found.RIGHT]
    lines += ending(
        [line(one, one.judged.found, one.judged.said or ("nothing was found",)) for one in odd],
        ("Not right:", "All runs that were made are right."),
        missed(campaign, results),
    )
    return "\n".join(lines)


def _cells(results: Sequence[Result]) -> list[str]:
    unknown = sum(
        result.judged.outcome == DiagnosisOutcome.INCONCLUSIVE.value for result in results
    )
    limit = at_most(results, Found.RIGHT)
    return [*counts_of(results, Found), str(unknown), limit, *durations(results)]
