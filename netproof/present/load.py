"""Effects of load on a network, in words, as a table, and as plain values."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from rich.console import Console

from netproof.congestion.causes import CauseKind, LoadCause, LoadFindings
from netproof.congestion.factors import Factor, Impact, Impacts, Statistic
from netproof.congestion.gpcnet import GpcnetFactor
from netproof.congestion.loaded import Loaded
from netproof.measurement.interval import Side
from netproof.present.tables import TableColumn, print_table, say
from netproof.present.wording import counted, with_time_unit

MOST_REFUSED = 10
"""Rejected rounds that are named; ``--json`` has all of them."""


def factor_in_words(factor: Factor | GpcnetFactor) -> str:
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
    if factor.alone_us is None or factor.beside_us is None:
        return "-"
    return f"{with_time_unit(factor.alone_us)} → {with_time_unit(factor.beside_us)}"


def waited_in_words(impact: Impact) -> str:
    """Return the share of time waiting for a CPU on the victim's nodes, alone and alongside."""
    if impact.waited is None:
        return "not known"
    alone, alongside = impact.waited
    return f"{100 * alone:.0f} → {100 * alongside:.0f} %"


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
            low, high = cause.interval
            return (
                f"uplinks oversubscribed, 1:{cause.value:.2g}: across leaves a message takes"
                f" {times} ({low:.3g} to {high:.3g}) while pairs cross them, and within a leaf it"
                " does not"
            )


def sentences(loaded: Loaded, findings: LoadFindings) -> tuple[str, ...]:
    """Return how it was measured, what is not known, and which rounds do not count."""
    found = findings.impacts
    rounds = max((run.turn.round for run in loaded.runs), default=0)
    lines = [
        f"{counted(rounds, 'round')} on {len(loaded.nodes)} nodes, each alone and alongside back to"
        " back; a factor is alongside over alone, with its 95 % interval over rounds."
    ]
    whys = [factor.why for one in found.impacts for factor in one.factors.values() if factor.why]
    lines += [f"Not known: {why}." for why in dict.fromkeys(whys)]
    lines += [f"Inconclusive: {why}." for why in findings.not_examined]
    refused = [
        f"{one.victim} alongside {one.aggressor}, {one.place}, {why}"
        for one in found.impacts
        for why in one.refused
    ]
    lines += [f"Does not count: {why}." for why in refused[:MOST_REFUSED]]
    if len(refused) > MOST_REFUSED:
        lines.append(f"{len(refused) - MOST_REFUSED} other rounds do not count either.")
    return tuple(lines)


def conclusion(findings: LoadFindings) -> tuple[str, ...]:
    """Return the worst factor of a mean with the result of the bounds, then each cause."""
    return (_worst(findings.impacts), *map(cause_in_words, findings.causes))


def _worst(found: Impacts) -> str:
    known = [
        (one.factors[Statistic.MEAN].value, one)
        for one in found.impacts
        if one.factors[Statistic.MEAN].value is not None
    ]
    if not known:
        return "nothing is known: too few rounds count"
    value, worst = max(known, key=lambda both: both[0])
    said = (
        f"{worst.victim} takes {value:.3g} times as long alongside {worst.aggressor}, {worst.place}"
    )
    if found.beyond():
        return f"above the bound: {said}"
    return f"undecided: {said}" if found.undecided() else f"at worst {said}"


def head() -> tuple[str, ...]:
    """Return the titles of the columns of ``rows``."""
    return (
        *("measured", "alongside", "where", *(str(one) for one in Statistic)),
        *("mean time", "rounds", "waiting for a CPU"),
    )


def rows(found: Impacts) -> list[tuple[str, ...]]:
    """Return a row for each factor, as text."""
    return [
        (
            str(one.victim),
            str(one.aggressor),
            str(one.place),
            *(factor_in_words(one.factors[statistic]) for statistic in Statistic),
            time_in_words(one.factors[Statistic.MEAN]),
            str(one.rounds),
            waited_in_words(one),
        )
        for one in found.impacts
    ]


def print_load(loaded: Loaded, findings: LoadFindings, out: Console) -> None:
    """Print the conclusion, and a line for each victim alongside each aggressor."""
    say(out, f"{loaded.system}:{loaded.partition} {loaded.environment} under load", "bold")
    warns = findings.undecided() or findings.causes
    colour = "red" if findings.beyond() else "yellow" if warns else ""
    for sentence in conclusion(findings):
        say(out, sentence, colour)
    columns = zip(head(), zip(*rows(findings.impacts), strict=True), strict=True)
    print_table([TableColumn(title, list(cells), right=False) for title, cells in columns], out)
    for sentence in sentences(loaded, findings):
        say(out, sentence)


def document(several: Sequence[tuple[Loaded, LoadFindings]]) -> dict[str, Any]:
    """Return plain values for ``json``: each session with its factors; times in µs."""
    return {
        "load": [
            {
                "system": loaded.system,
                "partition": loaded.partition,
                "environment": loaded.environment,
                "nodes": list(loaded.nodes),
                "beyond": findings.beyond(),
                "undecided": findings.undecided(),
                "causes": [dataclasses.asdict(one) for one in findings.causes],
                "not_examined": list(findings.not_examined),
                "factors": [_impact(one) for one in findings.impacts.impacts],
            }
            for loaded, findings in several
        ]
    }


def _impact(impact: Impact) -> dict[str, Any]:
    return {
        "measured": str(impact.victim),
        "alongside": str(impact.aggressor),
        "where": str(impact.place),
        "rounds": impact.rounds,
        "refused": list(impact.refused),
        "waiting_for_cpu": None if impact.waited is None else list(impact.waited),
        **{str(name): dataclasses.asdict(factor) for name, factor in impact.factors.items()},
    }
