"""Tails of the times of single calls, in words, as a table, and as plain values."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from rich.console import Console

from netproof.congestion.percentiles import BOUNDED, Percentile, TailFigures
from netproof.congestion.tails import Tail
from netproof.measurement.interval import Side
from netproof.present.tables import TableColumn, print_table, say
from netproof.present.wording import counted, with_time_unit

MOST_PAUSES = 10
"""Pauses that are named; ``--json`` has all of them."""


def name_of(tail: Tail) -> str:
    """Return where it was measured, and with what."""
    return f"{tail.system}:{tail.partition} {tail.environment}"


def when(at: float) -> str:
    """Return a moment, UTC, to a tenth of a second."""
    moment = datetime.fromtimestamp(round(at, 1), UTC)
    return f"{moment:%Y-%m-%d %H:%M:%S}.{moment.microsecond // 100_000} UTC"


def conclusion(tail: Tail, found: TailFigures) -> str:
    """Return the median, the 99.9th percentile, and the result of the bound."""
    middle, bounded = found.percentiles.get(50.0), found.percentiles.get(BOUNDED)
    if middle is None or bounded is None:
        return f"too few calls for percentiles: {found.calls}"
    said = (
        f"median {with_time_unit(middle.value_us)}, 99.9th percentile"
        f" {with_time_unit(bounded.value_us)}, {_times(bounded, middle)} times it"
    )
    if found.most is None:
        return said
    if found.disturbed:
        return f"undecided, since it was disturbed: {said}; bound {found.most:g} times"
    word = {Side.WITHIN: "within", Side.BEYOND: "above", Side.ASTRIDE: "undecided at"}[found.side]
    return f"{word} the bound of {found.most:g} times: {said}"


def _times(one: Percentile, middle: Percentile) -> str:
    return f"{one.value_us / middle.value_us:.3g}"


def head() -> tuple[str, ...]:
    """Return the titles of the columns of ``rows``."""
    return ("in 100 calls", "at most", "95 % interval", "times the median")


def rows(found: TailFigures) -> list[tuple[str, ...]]:
    """Return a row for each percentile that so many calls have, and the longest."""
    middle = found.percentiles.get(50.0)
    made = [
        (
            f"{level:g}",
            with_time_unit(one.value_us),
            _interval(one),
            "-" if middle is None else _times(one, middle),
        )
        for level, one in found.percentiles.items()
    ]
    times = "-" if middle is None else f"{found.longest_us / middle.value_us:.3g}"
    return [*made, ("the longest", with_time_unit(found.longest_us), "-", times)]


def _interval(one: Percentile) -> str:
    low, high = one.interval_us
    upper = "more than was seen" if math.isinf(high) else with_time_unit(high)
    return f"{with_time_unit(low)} to {upper}"


def sentences(tail: Tail, found: TailFigures) -> tuple[str, ...]:
    """Return how it was measured, pauses with their time, and the network's counters meanwhile."""
    lines = [
        f"{counted(found.calls, 'call')} of {counted(tail.bytes, 'byte')} in {tail.took_s:.0f} s"
        f" between {' and '.join(tail.nodes)}, times of one way, mean"
        f" {with_time_unit(found.mean_us)}."
    ]
    lines += [f"Disturbed: {why}." for why in found.disturbed]
    if found.pauses:
        lines.append(
            f"{counted(len(found.pauses), 'pause')}, {100 * found.paused_share:.2g} % of that time,"
            " the longest:"
        )
        lines += [
            f"until {when(one.until)}: {with_time_unit(one.took_us)}"
            f" {'there and back' if one.in_call else 'without a call'}"
            for one in found.pauses[:MOST_PAUSES]
        ]
        if len(found.pauses) > MOST_PAUSES:
            lines.append(f"and {len(found.pauses) - MOST_PAUSES} shorter ones")
    else:
        lines.append("There was no pause.")
    lines += [
        f"{node} {interface}: the carrier changed {counted(changes, 'time')}."
        for node, interface, changes in found.carriers
    ]
    lines += [
        f"{node}: {'not known how many' if again is None else again} TCP segments sent again."
        for node, again in found.sent_again
        if again != 0
    ]
    return tuple(lines)


def print_tail(tail: Tail, found: TailFigures, out: Console) -> None:
    """Print the conclusion, the percentiles, and what stands out."""
    say(out, f"{name_of(tail)}, single calls", "bold")
    style = "red" if found.beyond else "yellow" if found.undecided else ""
    say(out, conclusion(tail, found), style)
    columns = zip(head(), zip(*rows(found), strict=True), strict=True)
    print_table([TableColumn(title, list(cells), right=True) for title, cells in columns], out)
    for sentence in sentences(tail, found):
        say(out, sentence)


def document(several: Sequence[tuple[Tail, TailFigures]]) -> dict[str, Any]:
    """Return plain values for ``json``: each launch with its figures; times in µs."""
    return {
        "tails": [
            {
                "system": tail.system,
                "partition": tail.partition,
                "environment": tail.environment,
                "nodes": list(tail.nodes),
                "bytes": tail.bytes,
                "calls": found.calls,
                "started": tail.launch.start,
                "seconds": tail.took_s,
                "mean_us": found.mean_us,
                "longest_us": found.longest_us,
                "percentiles": [_percentile(one) for one in found.percentiles.values()],
                "pauses": [dataclasses.asdict(one) for one in found.pauses],
                "paused_share": found.paused_share,
                "carrier_changes": [
                    {"node": node, "interface": interface, "changes": changes}
                    for node, interface, changes in found.carriers
                ],
                "segments_sent_again": dict(found.sent_again),
                "disturbed": list(found.disturbed),
                "most": found.most,
                "beyond": found.beyond,
                "undecided": found.undecided,
            }
            for tail, found in several
        ]
    }


def _percentile(one: Percentile) -> dict[str, Any]:
    low, high = one.interval_us
    interval = [low, None if math.isinf(high) else high]
    return {"level": one.level, "value_us": one.value_us, "interval_us": interval}
