"""Load, GPCNeT and single calls: answers in words, as tables and charts, and as plain values."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from typing import Any

from netproof.benchmarks.gpcnet import TIME
from netproof.experiments import sweep
from netproof.experiments.gpcnet import GpcnetRuns
from netproof.experiments.load import (
    CauseKind,
    Congested,
    Factor,
    Impact,
    LoadCause,
    Loaded,
    Statistic,
)
from netproof.experiments.tails import BOUNDED, Tail
from netproof.measurement.interval import Side
from netproof.present import sweeps
from netproof.present.document import EVERY, Block, Cell, DataTable, Sentences
from netproof.present.html.charts import ChartFigure, Rows, dots, template
from netproof.present.wording import counted, first, with_time_unit

MOST_LISTED = 10
"""Rejected rounds, and pauses, that are named; ``--format json`` has all of them."""

_BINS_A_DOUBLING = 4
_LONGEST_SHOWN = 2000
"""Calls of the chart over time: the longest of each of so many equal parts of it."""


def factor_in_words(factor: Factor) -> str:
    """Return a factor with interval and side of its bound: ``4.4 (4.1 to 4.6), above 1.5``."""
    if factor.value is None or factor.interval is None:
        return "not known"
    low, high = factor.interval
    text = f"{factor.value:.3g} ({low:.3g} to {high:.3g})"
    if factor.side is Side.BEYOND:
        return f"{text}, above {factor.most:g}"
    return f"{text}, undecided at {factor.most:g}" if factor.side is Side.ASTRIDE else text


def time_in_words(factor: Factor) -> str:
    """Return the times alone and alongside: ``14.1 ms → 61.9 ms``."""
    if factor.alone is None or factor.loaded is None:
        return "-"
    return f"{with_time_unit(factor.alone)} → {with_time_unit(factor.loaded)}"


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


def _worst(
    found: Congested, sentence: Callable[[Impact, str], str], causes: Sequence[LoadCause] = ()
) -> Cell:
    """Return the worst factor of a mean, by the ``sentence`` on it, with the bounds' result."""
    means = [
        (value, one)
        for one in found.impacts
        if (value := one.factors[Statistic.MEAN].value) is not None
    ]
    text = "nothing is known: too few rounds count"
    if means:
        value, one = max(means, key=lambda mean: mean[0])
        result = "undecided:" if found.undecided else "at worst"
        result = "above the bound:" if found.beyond else result
        text = f"{result} {sentence(one, f'{value:.3g} times')}"
    return Cell(text, _look(found.beyond, found.undecided or bool(causes)))


def _look(beyond: bool, undecided: bool) -> str:
    return "failed" if beyond else "inconclusive" if undecided else "strong"


def _not_known(whys: Iterable[str]) -> list[str]:
    return [f"Not known: {why}." for why in dict.fromkeys(whys)]


def load_answer(loaded: Loaded) -> tuple[str, list[Block]]:
    """Return the title, and worst factor, causes, a row for each effect, remarks and a chart."""
    impacts, (causes, doubts) = loaded.impacts, loaded.causes_and_doubts
    worst = _worst(
        loaded,
        lambda one, times: (
            f"{one.victim} takes {times} as long alongside {one.aggressor}, {one.place}"
        ),
        causes,
    )
    rounds = max((run.turn.round for run in loaded.runs), default=0)
    remarks = [
        f"{counted(rounds, 'round')} on {len(loaded.nodes)} nodes, each alone and alongside back to"
        " back; a factor is alongside over alone, with its 95 % interval over rounds."
    ]
    remarks += _not_known(f.why for one in impacts for f in one.factors.values() if f.why)
    remarks += [f"Inconclusive: {why}." for why in doubts]
    refused = [
        f"Does not count: {one.victim} alongside {one.aggressor}, {one.place}, {why}."
        for one in impacts
        for why in one.refused
    ]
    remarks += first(refused, MOST_LISTED, "{} other rounds do not count either.")
    rows = []
    for one in impacts:
        waited = "not known"
        if one.waited is not None:
            waited = f"{100 * one.waited[0]:.0f} → {100 * one.waited[1]:.0f} %"
        factors = (factor_in_words(one.factors[statistic]) for statistic in Statistic)
        times = time_in_words(one.factors[Statistic.MEAN])
        rows.append(
            (one.victim, one.aggressor, one.place, *factors, times, str(one.rounds), waited)
        )
    head = ("measured", "load", "where", *Statistic, "mean time", "rounds", "waiting for a CPU")
    return f"{loaded.system}:{loaded.partition} {loaded.environment} under load", [
        Sentences([worst, *(Cell(cause_in_words(one), worst.look) for one in causes)]),
        DataTable(head, rows, heads=3),
        Sentences(remarks),
        *_factors_chart(impacts),
    ]


def _factors_chart(impacts: Sequence[Impact]) -> list[ChartFigure]:
    rows = [
        {
            "what": f"{one.victim} alongside {one.aggressor}",
            "where": str(one.place),
            "value": factor.value,
            "low": factor.interval[0],
            "high": factor.interval[1],
        }
        for one in impacts
        if (factor := one.factors[Statistic.MEAN]).interval is not None
    ]
    if not rows:
        return []
    caption = "A line is the 95 % interval over rounds; at 1 the network shows no impact."
    title, x_title = "Times as long as alone", "times as long as alone (mean)"
    return [dots("factors", title, rows, x_title, {}, sentences=[caption])]


def gpcnet_answer(runs: GpcnetRuns) -> tuple[str, list[Block]]:
    """Return the title, the worst factor of a mean, a row for each test, and remarks."""
    remarks = []
    if ran := [one for one in runs.rounds if one.tests]:
        remarks.append(
            f"GPCNeT {ran[0].version} on {len(runs.nodes)} nodes, {ran[0].nodes_of_tests}"
            f" of them for its tests; {counted(len(runs.rounds), 'round')},"
            f" {len(runs.rounds) - len(runs.refused)} of them usable. A factor is the median over"
            " rounds, with its 95 % interval."
        )
    remarks += _not_known(
        f"{one.victim}: {factor.why}"
        for one in runs.impacts
        for factor in one.factors.values()
        if factor.why
    )
    remarks += [f"Does not count: {why}." for why in runs.refused]
    rows = []
    for one in runs.impacts:
        mean = one.factors[Statistic.MEAN]
        times = f"{mean.alone:.4g} → {mean.loaded:.4g} {'µs' if one.unit == TIME else one.unit}"
        rows.append((one.victim, *map(factor_in_words, one.factors.values()), times))
    return f"{runs.system}:{runs.partition} {runs.environment}, GPCNeT", [
        _worst(runs, lambda one, times: f"{one.victim} is {times} worse alongside the congestors"),
        DataTable(("test", "mean", "99th percentile", "mean, alone → alongside"), rows, heads=1),
        Sentences(remarks),
    ]


def tail_answer(tail: Tail) -> tuple[str, list[Block]]:
    """Return the title, and conclusion, percentiles, remarks and charts of single calls."""
    middle = tail.percentiles.get(50.0)

    def row(what: str, value_us: float, interval: str) -> tuple[str, ...]:
        times = "-" if middle is None else f"{value_us / middle[0]:.3g}"
        return what, with_time_unit(value_us), interval, times

    rows = []
    for at, (value_us, (low, high)) in tail.percentiles.items():
        upper = "more than was seen" if math.isinf(high) else with_time_unit(high)
        rows.append(row(f"{at:g}", value_us, f"{with_time_unit(low)} to {upper}"))
    rows.append(row("the longest", max(tail.times_us), "-"))
    head = ("in 100 calls", "at most", "95 % interval", "times the median")
    return f"{tail.system}:{tail.partition} {tail.environment}, single calls", [
        Cell(tail_conclusion(tail), _look(tail.beyond, tail.undecided)),
        DataTable(head, rows, EVERY),
        Sentences(_remarks_on_calls(tail)),
        *_tail_charts(tail),
    ]


def tail_conclusion(tail: Tail) -> str:
    """Return the median, the 99.9th percentile, and the result of the bound."""
    middle, bounded = tail.percentiles.get(50.0), tail.percentiles.get(BOUNDED)
    if middle is None or bounded is None:
        return f"too few calls for percentiles: {len(tail.times_us)}"
    median_us, value_us = middle[0], bounded[0]
    figures = (
        f"median {with_time_unit(median_us)}, 99.9th percentile"
        f" {with_time_unit(value_us)}, {value_us / median_us:.3g} times it"
    )
    if tail.most is None:
        return figures
    if tail.disturbed:
        return f"undecided, since it was disturbed: {figures}; bound {tail.most:g} times"
    word = "undecided at"
    if tail.side in (Side.WITHIN, Side.BEYOND):
        word = "within" if tail.side is Side.WITHIN else "above"
    return f"{word} the bound of {tail.most:g} times: {figures}"


def _remarks_on_calls(tail: Tail) -> list[str]:
    """Return how it was measured, pauses with their time, and the network's counters meanwhile."""
    remarks = [
        f"{counted(len(tail.times_us), 'call')} of {counted(tail.bytes, 'byte')} in"
        f" {tail.took_s:.0f} s between {' and '.join(tail.nodes)}, times of one way, mean"
        f" {with_time_unit(fmean(tail.times_us))}."
    ]
    remarks += [f"Disturbed: {why}." for why in tail.disturbed]
    pauses = f"{counted(len(tail.pauses), 'pause')}, {100 * tail.paused_share:.2g} % of that time"
    remarks.append(f"{pauses}, the longest:" if tail.pauses else "There was no pause.")
    listed = []
    for one in tail.pauses:
        # UTC, to a tenth of a second.
        moment = datetime.fromtimestamp(round(one.until, 1), UTC)
        until = f"{moment:%Y-%m-%d %H:%M:%S}.{moment.microsecond // 100_000} UTC"
        how = "there and back" if one.in_call else "without a call"
        listed.append(f"until {until}: {with_time_unit(one.took_us)} {how}")
    remarks += first(listed, MOST_LISTED, "and {} shorter ones")
    remarks += [
        f"{node} {interface}: the carrier changed {counted(changes, 'time')}."
        for node, interface, changes in tail.carriers
    ]
    remarks += [
        f"{node}: {'not known how many' if again is None else again} TCP segments sent again."
        for node, again in tail.sent_again.items()
        if again != 0
    ]
    return remarks


def _tail_charts(tail: Tail) -> list[ChartFigure]:
    often, over_time = template("tail", "how often"), template("tail", "over time")
    caption = "Each dot is the longest of the calls around it."
    title, longest = "How often a call took how long", "The longest calls over time"
    return [
        ChartFigure(title, often, {"points": _histogram(tail.times_us)}),
        ChartFigure(longest, over_time, {"points": _longest_over_time(tail)}, sentences=[caption]),
    ]


def _histogram(times_us: Sequence[float]) -> Rows:
    """Return calls by time, in bins of equal logarithmic width, each with both ends in µs."""
    bins = Counter(math.floor(_BINS_A_DOUBLING * math.log2(time)) for time in times_us)
    return [
        {
            "from": 2 ** (place / _BINS_A_DOUBLING),
            "to": 2 ** ((place + 1) / _BINS_A_DOUBLING),
            "calls": calls,
            # A bar on a logarithmic axis has to begin somewhere.
            "foot": 0.5,
        }
        for place, calls in sorted(bins.items())
    ]


def _longest_over_time(tail: Tail) -> Rows:
    """Return the longest call of each part of the time: seconds since the first, and µs."""
    times, began = tail.times_us, tail.watched[0][0]
    size = math.ceil(len(times) / _LONGEST_SHOWN)
    found = []
    for place in range(0, len(times), size):
        at = max(range(place, min(place + size, len(times))), key=times.__getitem__)
        found.append({"second": tail.moment(at) - began, "time": times[at]})
    return found


_Answering = tuple[str, Callable[[Path], Sequence[Any]], Callable[[Any], tuple[str, list[Block]]]]
ANSWERS: dict[str, _Answering] = {
    "load": ("Under load", Loaded.of_report, load_answer),
    "gpcnet": ("GPCNeT", GpcnetRuns.of_report, gpcnet_answer),
    "tails": ("Single calls", Tail.of_report, tail_answer),
    "sweeps": ("Tuning", sweep.results, sweeps.answer),
}
"""How an experiment's page title begins, how its report is read, and its answer, by experiment."""
