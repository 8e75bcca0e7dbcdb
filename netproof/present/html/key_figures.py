"""Key figures of a report: latency and bandwidth between two nodes, with reference and history."""

from __future__ import annotations

import math
from collections.abc import Sequence

from netproof.benchmarks import registry
from netproof.history.selection import Quantity
from netproof.history.series import Nights
from netproof.present.document import DataTable
from netproof.present.html import content
from netproof.present.html.report import Report
from netproof.present.sparkline import columns, readable, sparkline
from netproof.verdict.limits import Limits

NIGHTS = 14
"""Newest sessions of the history that are shown."""

_LEAST_HALF = 1.2
"""Least ratio of the highest block's value to the middle's."""

_QUANTITIES = {Quantity.LATENCY: "latency, µs", Quantity.ASYMPTOTIC: "bandwidth r∞, MB/s"}


def table(report: Report, partition: str = "") -> DataTable | None:
    """Return a row for each case of one pair of nodes that was measured; None without any.

    ``partition``: the only one, or empty for all.
    """
    shown = [
        (one, one.measured.landmarks)
        for one in report.judged.verdict.cases
        if one.measured is not None
        and partition in ("", one.case.partition)
        and (one.case.path, one.case.direction, one.case.ranks) == ("inter-node", "oneway", 2)
        and registry.function_of(one.case).single
    ]
    nights = report.nights
    followed = _series(nights) if nights is not None and len(nights.sessions) > 1 else {}
    head, rows = ["configuration", "measured"], []
    for quantity, title in _QUANTITIES.items():
        head += [title, "of line rate"] if quantity is Quantity.ASYMPTOTIC else [title]
        head += ["reference", *(["last nights"] if followed else [])]
    for one, found in shown:
        state = content.state_of(one)
        row = [f"{state.sign} {content.configuration(one.case)}", content.function_name(one.case)]
        for quantity in _QUANTITIES:
            value = getattr(found, quantity)
            row.append("–" if value is None else f"{value:.4g}")
            if quantity is Quantity.ASYMPTOTIC:
                share = found.line_rate_share
                row.append("–" if share is None else f"{share:.1%}")
            row.append(_reference(report.limits(one.case).get(quantity)))
            if followed:
                row.append(_nights(followed.get((one.case.key(), quantity), ()), quantity))
        rows.append(row)
    used = [at for at, name in enumerate(head) if name != "reference" or _differs(rows, at)]
    head, rows = [head[at] for at in used], [[row[at] for at in used] for row in rows]
    numbers = [at for at, name in enumerate(head) if at > 1 and name != "last nights"]
    caption = "r∞: bandwidth that the largest messages tend to, and its share of the line rate"
    if followed:
        caption += f"; last nights: up to {NIGHTS} sessions, with the least and the largest value"
    return DataTable(head, rows, numbers, caption) if rows else None


def _differs(rows: Sequence[Sequence[str]], at: int) -> bool:
    return any(row[at] != "–" for row in rows)


def _series(nights: Nights) -> dict[tuple[tuple[object, ...], str], Sequence[float | None]]:
    """Return the values of the followed quantities by case and quantity."""
    return {
        (one.case.key(), one.quantity): one.values
        for one in nights.series
        if one.quantity in _QUANTITIES
    }


def _reference(limits: Limits | None) -> str:
    if limits is None or not limits.asserted:
        return "–"
    if math.isinf(limits.low):
        return f"≤ {limits.high:.4g}"
    least = f"{limits.low:.4g}"
    return f"≥ {least}" if math.isinf(limits.high) else f"{least}–{limits.high:.4g}"


def _nights(values: Sequence[float | None], quantity: Quantity) -> str:
    """Return the newest values as a line of blocks, with the least and the largest of them."""
    at = {night: value for night, value in enumerate(values[-NIGHTS:]) if value is not None}
    known = readable(at.values())
    if not known:
        return "–"
    worst = max if quantity.rising_is_worse else min
    # Noise stays flat, in the middle.
    middle, half = math.sqrt(min(known) * max(known)), math.sqrt(max(known) / min(known))
    scale = (middle / max(half, _LEAST_HALF), middle * max(half, _LEAST_HALF))
    drawn = sparkline(at, columns(range(min(len(values), NIGHTS)), NIGHTS), scale, worst)
    return f"{drawn} {min(known):.4g}–{max(known):.4g}"
