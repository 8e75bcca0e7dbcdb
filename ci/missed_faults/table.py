"""A campaign's results as Markdown, and its missed aims."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import chain

from ci.campaigns.telling import at_most, counts_of, described, durations, ending, line, row, unmade
from ci.missed_faults.kinds import DERIVING, HEALTHY, HEALTHY_DERIVED, SAID
from ci.missed_faults.records import LEAST_NAMED, RUNS, Campaign, Found, Result


def missed(campaign: Campaign, results: Sequence[Result]) -> list[str]:
    """Return a sentence for each aim that was missed or that takes more runs."""
    sentences = unmade(campaign, results)
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
    """Return a campaign's results as Markdown."""
    lines = [described("Smoke runs", campaign, results), "", row(HEAD), row(["---"] * len(HEAD))]
    for name, said in SAID.items():
        several = [one for one in results if one.run.kind == name]
        if several:
            lines.append(row([said, *_cells(several)]))
    odd = [one for one in results if one.judged.found is not Found.NAMED]
    lines += ending(
        [line(one, one.judged.found, one.judged.said or ("nothing failed",)) for one in odd],
        ("Not named:", "All runs that were made are as they should be."),
        missed(campaign, results),
    )
    return "\n".join(lines)


def _cells(results: Sequence[Result]) -> list[str]:
    criteria = Counter(chain.from_iterable(result.judged.criteria for result in results))
    return [
        *counts_of(results, Found),
        at_most(results, Found.NAMED),
        ", ".join(f"{name} {count}" for name, count in criteria.most_common()) or "-",
        *durations(results),
    ]
