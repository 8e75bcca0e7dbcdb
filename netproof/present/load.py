"""Effects of load on a network, in words, as a table, and as plain values."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from netproof.experiments.load import (
    CauseKind,
    Factor,
    Impact,
    LoadCause,
    Loaded,
    LoadFindings,
    Statistic,
)
from netproof.measurement.interval import Side
from netproof.present.document import Block, Cell, DataTable, Sentences
from netproof.present.documents import some
from netproof.present.wording import counted, with_time_unit

KIND = "Under load"

MOST_REFUSED = 10
"""Rejected rounds that are named; ``--format json`` has all of them."""


def factor_in_words(factor: Factor) -> str:
    """Return a factor with interval and side of its bound: ``4.4 (4.1 to 4.6), above 1.5``."""
    if factor.value is None or factor.interval is None:
        return "not known"
    low, high = factor.interval
    text = f"{factor.value:.3g} ({low:.3g} to {high:.3g})"
    if factor.side is Side.BEYOND:
        return f"{text}, above {factor.most:g}"
    if factor.side is Side.ASTRIDE:
        return f"{text}, undecided at {factor.most:g}"
    return text


def time_in_words(factor: Factor) -> str:
    """Return the times alone and alongside: ``14.1 ms → 61.9 ms``."""
    if factor.alone is None or factor.loaded is None:
        return "-"
    return f"{with_time_unit(factor.alone)} → {with_time_unit(factor.loaded)}"


def factor_document(factor: Factor) -> dict[str, Any]:
    """Return plain values of a factor, without its figures."""
    return some(factor, "value", "interval", "most", "side", "why")


def cause_in_words(cause: LoadCause) -> str:
    """Return what explains the figures, where, and by which evidence, without a full stop."""
    where, times = " or ".join(cause.nodes), f"{cause.value:.3g} times as long"
    share = f"{100 * cause.value:.2g} % of the segments"
    match cause.kind:
        case CauseKind.SLOW_PORT:
            return (
                f"{where}: slow port: a message takes {times} as between the others, which are"
                f" all silent, in each of its launches ({cause.launches})"
            )
        case CauseKind.LOSING_PORT:
            return f"{where}: packets lost at its port: {share}, while all others are silent"
        case CauseKind.SMALL_BUFFERS:
            return (
                f"packets lost at all ports: {share} are sent again while all others are silent,"
                f" in {cause.launches} launches; buffers that are too small do that"
            )
        case CauseKind.UPLINKS:
            low, high = cause.interval or (cause.value, cause.value)
            return (
                f"uplinks oversubscribed, 1:{cause.value:.2g}: across leaves a message takes"
                f" {times} ({low:.3g} to {high:.3g}) while pairs cross them, and within a leaf it"
                " does not"
            )


def worst(found: LoadFindings, means: Sequence[tuple[float, str]]) -> str:
    """Return the worst factor of a mean, of each with its sentence, with the bounds' result."""
    if not means:
        return "nothing is known: too few rounds count"
    _, sentence = max(means, key=lambda mean: mean[0])
    if found.beyond:
        return f"above the bound: {sentence}"
    return f"undecided: {sentence}" if found.undecided else f"at worst {sentence}"


def conclusion(findings: LoadFindings) -> list[str]:
    """Return the worst factor of a mean with the result of the bounds, then each cause."""
    means = [
        (
            value,
            f"{one.victim} takes {value:.3g} times as long alongside {one.aggressor}, {one.place}",
        )
        for one in findings.impacts
        if (value := one.factors[Statistic.MEAN].value) is not None
    ]
    return [worst(findings, means), *map(cause_in_words, findings.causes)]


def answer(loaded: Loaded, findings: LoadFindings) -> tuple[str, list[Block]]:
    """Return the title, and what terminal and page show: conclusion, factors, remarks."""
    impacts = findings.impacts
    head = ("measured", "load", "where", *Statistic, "mean time", "rounds")
    rounds = max((run.turn.round for run in loaded.runs), default=0)
    remarks = [
        f"{counted(rounds, 'round')} on {len(loaded.nodes)} nodes, each alone and alongside back to"
        " back; a factor is alongside over alone, with its 95 % interval over rounds."
    ]
    whys = [factor.why for one in impacts for factor in one.factors.values() if factor.why]
    remarks += [f"Not known: {why}." for why in dict.fromkeys(whys)]
    remarks += [f"Inconclusive: {why}." for why in findings.not_examined]
    refused = [
        f"{one.victim} alongside {one.aggressor}, {one.place}, {why}"
        for one in impacts
        for why in one.refused
    ]
    remarks += [f"Does not count: {why}." for why in refused[:MOST_REFUSED]]
    if len(refused) > MOST_REFUSED:
        remarks.append(f"{len(refused) - MOST_REFUSED} other rounds do not count either.")
    look = look_of(findings.beyond, findings.undecided or bool(findings.causes))
    return f"{loaded.system}:{loaded.partition} {loaded.environment} under load", [
        Sentences([Cell(one, look) for one in conclusion(findings)]),
        DataTable((*head, "waiting for a CPU"), list(map(_row, impacts))),
        Sentences(remarks),
    ]


def look_of(beyond: bool, undecided: bool) -> str:
    """Return the look of a result by its bounds."""
    return "failed" if beyond else "inconclusive" if undecided else "strong"


def _row(impact: Impact) -> tuple[str, ...]:
    waited = "not known"
    if impact.waited is not None:
        alone, loaded = impact.waited
        waited = f"{100 * alone:.0f} → {100 * loaded:.0f} %"
    return (
        *(impact.victim, impact.aggressor, impact.place),
        *(factor_in_words(impact.factors[statistic]) for statistic in Statistic),
        *(time_in_words(impact.factors[Statistic.MEAN]), str(impact.rounds), waited),
    )


def document(several: Sequence[tuple[Loaded, LoadFindings]]) -> dict[str, Any]:
    """Return plain values for ``json``: each session with its factors; times in µs."""
    return {
        "load": [
            {
                **some(loaded, "system", "partition", "environment", "nodes"),
                **some(findings, "beyond", "undecided"),
                "causes": [dataclasses.asdict(one) for one in findings.causes],
                "not_examined": findings.not_examined,
                "factors": [
                    {
                        "measured": one.victim,
                        "load": one.aggressor,
                        "where": one.place,
                        **some(one, "rounds", "refused"),
                        "waiting_for_cpu": one.waited,
                        **{
                            name: {
                                **factor_document(each),
                                "alone_us": each.alone,
                                "loaded_us": each.loaded,
                            }
                            for name, each in one.factors.items()
                        },
                    }
                    for one in findings.impacts
                ],
            }
            for loaded, findings in several
        ]
    }
