"""Tails of the times of single calls, in words, as a table, and as plain values."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from netproof.experiments.tails import BOUNDED, Tail, TailFigures
from netproof.measurement.interval import Interval, Side
from netproof.present.document import EVERY, Block, Cell, DataTable, Sentences
from netproof.present.documents import of_interval, some
from netproof.present.load import look_of
from netproof.present.wording import counted, with_time_unit

KIND = "Single calls"

MOST_PAUSES = 10
"""Pauses that are named; ``--format json`` has all of them."""


def conclusion(found: TailFigures) -> str:
    """Return the median, the 99.9th percentile, and the result of the bound."""
    middle, bounded = found.percentiles.get(50.0), found.percentiles.get(BOUNDED)
    if middle is None or bounded is None:
        return f"too few calls for percentiles: {found.calls}"
    median_us, value_us = middle[0], bounded[0]
    figures = (
        f"median {with_time_unit(median_us)}, 99.9th percentile"
        f" {with_time_unit(value_us)}, {value_us / median_us:.3g} times it"
    )
    if found.most is None:
        return figures
    if found.disturbed:
        return f"undecided, since it was disturbed: {figures}; bound {found.most:g} times"
    words = {Side.WITHIN: "within", Side.BEYOND: "above"}
    word = words.get(found.side, "undecided at") if found.side else "undecided at"
    return f"{word} the bound of {found.most:g} times: {figures}"


def answer(tail: Tail, found: TailFigures) -> tuple[str, list[Block]]:
    """Return the title, and what terminal and page show: conclusion, percentiles, remarks."""
    middle = found.percentiles.get(50.0)

    def row(what: str, value_us: float, interval: str) -> tuple[str, ...]:
        times = "-" if middle is None else f"{value_us / middle[0]:.3g}"
        return what, with_time_unit(value_us), interval, times

    head = ("in 100 calls", "at most", "95 % interval", "times the median")
    rows = [
        row(f"{at:g}", value_us, _interval(interval))
        for at, (value_us, interval) in found.percentiles.items()
    ]
    rows.append(row("the longest", found.longest_us, "-"))
    return f"{tail.system}:{tail.partition} {tail.environment}, single calls", [
        Cell(conclusion(found), look_of(found.beyond, found.undecided)),
        DataTable(head, rows, EVERY),
        Sentences(_remarks(tail, found)),
    ]


def _interval(interval_us: Interval) -> str:
    low, high = interval_us
    upper = "more than was seen" if math.isinf(high) else with_time_unit(high)
    return f"{with_time_unit(low)} to {upper}"


def _remarks(tail: Tail, found: TailFigures) -> list[str]:
    """Return how it was measured, pauses with their time, and the network's counters meanwhile."""
    remarks = [
        f"{counted(found.calls, 'call')} of {counted(tail.bytes, 'byte')} in {tail.took_s:.0f} s"
        f" between {' and '.join(tail.nodes)}, times of one way, mean"
        f" {with_time_unit(found.mean_us)}."
    ]
    remarks += [f"Disturbed: {why}." for why in found.disturbed]
    if not found.pauses:
        remarks.append("There was no pause.")
    else:
        remarks.append(
            f"{counted(len(found.pauses), 'pause')}, {100 * found.paused_share:.2g} % of that time,"
            " the longest:"
        )
    for one in found.pauses[:MOST_PAUSES]:
        # UTC, to a tenth of a second.
        moment = datetime.fromtimestamp(round(one.until, 1), UTC)
        until = f"{moment:%Y-%m-%d %H:%M:%S}.{moment.microsecond // 100_000} UTC"
        how = "there and back" if one.in_call else "without a call"
        remarks.append(f"until {until}: {with_time_unit(one.took_us)} {how}")
    if len(found.pauses) > MOST_PAUSES:
        remarks.append(f"and {len(found.pauses) - MOST_PAUSES} shorter ones")
    remarks += [
        f"{node} {interface}: the carrier changed {counted(changes, 'time')}."
        for node, interface, changes in found.carriers
    ]
    remarks += [
        f"{node}: {'not known how many' if again is None else again} TCP segments sent again."
        for node, again in found.sent_again
        if again != 0
    ]
    return remarks


def document(several: Sequence[tuple[Tail, TailFigures]]) -> dict[str, Any]:
    """Return plain values for ``json``: each launch with its figures; times in µs."""
    return {
        "tails": [
            {
                **some(tail, "system", "partition", "environment", "nodes", "bytes"),
                "calls": found.calls,
                "started": tail.launch.start,
                "seconds": tail.took_s,
                **some(found, "mean_us", "longest_us"),
                "percentiles": [
                    {"level": at, "value_us": value_us, "interval_us": of_interval(interval)}
                    for at, (value_us, interval) in found.percentiles.items()
                ],
                "pauses": [dataclasses.asdict(one) for one in found.pauses],
                "paused_share": found.paused_share,
                "carrier_changes": [
                    {"node": node, "interface": interface, "changes": changes}
                    for node, interface, changes in found.carriers
                ],
                "segments_sent_again": dict(found.sent_again),
                **some(found, "disturbed", "most", "beyond", "undecided"),
            }
            for tail, found in several
        ]
    }
