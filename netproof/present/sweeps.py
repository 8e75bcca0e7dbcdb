"""A sweep of a setting or of a collective's algorithms: words, tables, charts, plain values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any

from netproof.errors import grouped
from netproof.experiments import parameters
from netproof.experiments.sweep import (
    LONG_SHARE,
    SHORT_UP_TO,
    Gain,
    MessageRange,
    Sweep,
    SweepRow,
)
from netproof.measurement.case import median_curve
from netproof.measurement.landmarks import EagerLimit
from netproof.present.document import EVERY, Block, Cell, DataTable, Sentences
from netproof.present.documents import plain, some
from netproof.present.html import figures
from netproof.present.html.charts import ChartFigure, Rows, template
from netproof.present.wording import counted, first, size_in_words

MOST_AS_GOOD = 3
"""Other algorithms of a row that a terminal and a page name; ``--format json`` has all."""

_TICKS = (0.01, 0.03, 0.1, 0.25, 0.5, 1, 2, 4, 10, 30, 100)
_FINE_TICKS = (0.67, 0.8, 0.9, 1, 1.1, 1.25, 1.5)


def default_of(sweep: Sweep) -> str:
    """Return the name of what the values are compared with."""
    return "the library's own" if sweep.library else "default"


def name_of(sweep: Sweep, value: str) -> str:
    """Return a value's name: ``4 ring`` of a numbered algorithm, ``64 KiB`` of a size."""
    if sweep.names.get(value):
        return f"{value} {sweep.names[value]}"
    sized = parameters.of(sweep.parameter).in_bytes and value.isdigit()
    return size_in_words(int(value)) if sized else value


def _signed(factor: float) -> str:
    """Return percent with a sign, except where it rounds to 0."""
    whole = round(100 * (factor - 1))
    return f"{whole:+d}" if whole else "0"


def gain_in_words(gain: Gain) -> str:
    """Return a gain with its interval: ``+31 % (+24 to +38)``; or no change."""
    if gain.none:
        return "no change"
    low, high = map(_signed, gain.interval)
    text = f"{_signed(gain.factor)} % ({low} to {high})"
    return text if gain.sure or gain.costs else f"{text}, not sure"


def as_good_in_words(sweep: Sweep, row: SweepRow, most: int | None = None) -> str:
    """Return at most so many values that are statistically tied with a row's fastest."""
    several = [
        f"{name_of(sweep, value)} (at most {100 * behind:.0f} % behind)"
        for value, behind in sorted(row.as_good.items(), key=lambda one: one[1])
    ]
    shown = several if most is None else first(several, most, "{} more")
    return ", ".join(shown) or "-"


def recommendation(sweep: Sweep) -> str:
    """Return what to set, its gain and cost, and what is as good; or that nothing is worth it."""
    best = sweep.table.best
    if best is None or best.winner is None or best.gain is None:
        return f"{sweep.title}: leave it as it is: no value is faster for sure"
    gains = sweep.table.gains_of(best.winner)
    parts = [
        f"{sweep.title} {name_of(sweep, best.winner)}: {gain_in_words(best.gain)}"
        f" for {best.at} messages",
        *(f"{gain_in_words(gain)} for {kind} ones" for kind, gain in gains.items() if gain.costs),
    ]
    same = [str(kind) for kind, gain in gains.items() if gain.none]
    if same:
        parts.append(f"no change for {' and '.join(same)} ones")
    tied = f"; statistically tied with it: {as_good_in_words(sweep, best)}"
    return ", ".join(parts) + (tied if best.as_good else "")


def winner_in_words(sweep: Sweep, row: SweepRow) -> str:
    """Return the fastest algorithm of a row, or why no algorithm is."""
    if row.winner is not None:
        return name_of(sweep, row.winner)
    if row.costly:
        return default_of(sweep)
    return "no change" if row.none else "statistically tied"


def _size(row: SweepRow) -> str:
    return size_in_words(row.at) if isinstance(row.at, int) else str(row.at)


def conclusion(sweep: Sweep) -> str:
    """Return which algorithm is fastest from which size to which, as a sentence."""
    parts = []
    for winner, group in groupby(sweep.table.rows, key=lambda row: row.winner):
        rows = list(group)
        if winner is None:
            continue
        gains = [row.gains[winner].factor for row in rows]
        low, high = _signed(min(gains)), _signed(max(gains))
        by = f"{low} %" if low == high else f"{low} to {high} %"
        where = ""
        if rows[0].at:
            first, last = _size(rows[0]), _size(rows[-1])
            where = f" at {first}" if len(rows) == 1 else f" from {first} to {last}"
        parts.append(f"{name_of(sweep, winner)}{where} ({by})")
    title = f"{sweep.title} on {sweep.case.ranks} ranks"
    if not parts:
        return f"{title}: leave it to the library: no algorithm is faster for sure"
    lost = sum(row.winner is None for row in sweep.table.rows)
    rest = f"; at the other {counted(lost, 'size')} none is faster for sure" if lost else ""
    return f"{title}: {', '.join(parts)}{rest}"


def setting(sweep: Sweep, value: str) -> str:
    """Return how to set a value: variables in a shell's form, or arguments of NPtcp."""
    how = sweep.assignment.of(value)
    named = [f"{name}={text}" for name, text in how.variables.items()]
    arguments = [f"NPtcp {' '.join(how.arguments)}"] if how.arguments else []
    parameter = parameters.of(sweep.parameter)
    by_hook = [f"{parameter.title} {value}"] if parameter.by_hook else []
    return " ".join([*named, *arguments, *by_hook])


def answer(sweep: Sweep) -> tuple[str, list[Block]]:
    """Return the title, and what terminal and page show: conclusion, how to set it, tables."""
    made = list((_of_algorithms if sweep.library else _of_setting)(sweep))
    if sweep.table.disturbed:
        launches = f"{sweep.table.disturbed} of {len(sweep.launches)} launches"
        made.append(f"{launches} were disturbed and are left out.")
    by_size = DataTable(
        ("bytes", *(name_of(sweep, value) for value in sweep.table.values)),
        [
            (f"{size:,}", *(f"{factors[size]:.3f}" for factors in sweep.table.by_size.values()))
            for size in next(iter(sweep.table.by_size.values()))
        ],
        EVERY,
        f"How many times as fast as {default_of(sweep)}, the mean over rounds",
        heads=1,
        fold="By message size",
    )
    return str(sweep.case), [*made, by_size, *_charts(sweep)]


def _of_algorithms(sweep: Sweep) -> Iterator[Block]:
    won = list(dict.fromkeys(row.winner for row in sweep.table.rows if row.winner is not None))
    remarks = [f"Not taken, {name_of(sweep, value)}: {why}" for value, why in sweep.refused.items()]
    remarks += [
        f"In some calls the library took its own choice instead of {name_of(sweep, value)}: {line}"
        for value, line in sweep.fell_back.items()
    ]
    remarks += [
        f"{name_of(sweep, value)} is left out: {counted(count, 'round')} of it"
        " had nothing that disturbed."
        for value, count in sweep.table.disturbed_values.items()
    ]
    remarks.append(
        f"{counted(sweep.table.rounds, 'round')} of"
        f" {counted(len(sweep.table.values), 'algorithm')}, each alongside the library's own choice"
        f" at the same time; the last launch of that took {sweep.table.drift:.2f} times the first."
    )
    rows = [
        (
            _size(row) if row.at else "-",
            winner_in_words(sweep, row),
            "-" if row.gain is None else gain_in_words(row.gain),
            as_good_in_words(sweep, row, MOST_AS_GOOD),
        )
        for row in sweep.table.rows
    ]
    head = ("message", "fastest", "than the library's own choice", "statistically tied with it")
    yield Cell(conclusion(sweep), "passed" if won else "strong")
    if won:
        yield {f"set {name_of(sweep, one)} by": setting(sweep, one) for one in won}
    yield DataTable(head, rows, (0,), heads=1)
    yield Sentences(remarks)


def _of_setting(sweep: Sweep) -> Iterator[Block]:
    best, seen = sweep.table.best, sweep.eager_limits()
    sizes = {
        MessageRange.SHORT: f"up to {SHORT_UP_TO} B",
        MessageRange.MEDIUM: "between",
        MessageRange.LONG: f"from 1/{LONG_SHARE} of the largest",
    }
    there = {row.at for row in sweep.table.rows}
    head = [sweep.title, *(f"{at} ({what})" for at, what in sizes.items() if at in there)]
    rows = [
        [name_of(sweep, value), *map(gain_in_words, sweep.table.gains_of(value).values())]
        for value in sweep.table.values
    ]
    remarks = []
    if seen is not None:
        head.append("step seen")
        for row, value in zip(rows, sweep.table.values, strict=True):
            row.append(_seen(seen[value]))
        remarks.append(f"With the default: step seen {_seen(seen[None])}.")
    remarks.append(
        f"{sweep.table.rounds} rounds of {counted(len(sweep.table.values), 'value')}, each"
        " alongside the default at the same time; the last default took"
        f" {sweep.table.drift:.2f} times the first."
    )
    if sweep.already in sweep.table.values:
        value = name_of(sweep, sweep.already)
        remarks.append(f"All nodes have {value} already: it is the default by name.")
    yield Cell(recommendation(sweep), "passed" if best else "strong")
    if best and best.winner is not None:
        yield {"set it by": setting(sweep, best.winner)}
    yield DataTable(head, rows, (0, len(sweep.table.rows) + 1), heads=1)
    yield Sentences(remarks)


def _seen(found: EagerLimit | None) -> str:
    """Return between which sizes messages change to rendezvous."""
    return "none" if found is None else f"{found.size_below} to {found.size_above} B"


def _charts(sweep: Sweep) -> list[ChartFigure]:
    launches = zip(sweep.turns, sweep.launches, strict=True)
    found = {
        value: [launch.curve for _, launch in several]
        for value, several in grouped((one[0].value, one) for one in launches).items()
    }
    together = {default_of(sweep): (median_curve(found[None]), found[None])}
    for value in sweep.table.values:
        together[name_of(sweep, value)] = (median_curve(found[value]), found[value])
    case = sweep.case
    title = f"{sweep.title}, {case.partition} {case.environment}"
    times = figures.of_curves(title, together, legend=sweep.title)
    return [_small_charts(sweep), times] if sweep.library else [times]


def _small_charts(sweep: Sweep) -> ChartFigure:
    """Return a small chart for each algorithm, on the same axes: its gains with intervals."""
    title = "How many times as fast as the library's own choice"
    names = {value: name_of(sweep, value) for value in sweep.table.values}
    rows: Rows = [
        {
            **{"algorithm": name, "size_bytes": row.at, "won": row.winner == value},
            "factor": row.gains[value].factor,
            **dict(zip(("low", "high"), row.gains[value].interval, strict=True)),
        }
        for value, name in names.items()
        for row in sweep.table.rows
        if row.at
    ]
    if not rows:
        # A function without a message has one gain, which the table has.
        return ChartFigure(title, None, {})
    # Intervals are cut beyond the outermost factors, so that the factors fill the chart.
    edge = 1.25 * max(max(row["factor"], 1 / row["factor"]) for row in rows)
    several = _TICKS if edge >= 2 else _FINE_TICKS
    small = template(
        "gains",
        domain=[1 / edge, edge],
        ticks=[tick for tick in several if 1 / edge < tick < edge],
        algorithms=list(names.values()),
    )
    caption = (
        "Above 1 an algorithm is faster than the library's own choice at the same time. The band"
        " is the interval that holds for all sizes and algorithms together; a dot is a size at"
        " which the algorithm is the fastest for sure."
    )
    return ChartFigure(title, small, {"points": rows}, sentences=[caption])


def document(sweep: Sweep) -> dict[str, Any]:
    """Return plain values for ``json``: a sweep with its result."""
    return {
        "case": str(sweep.case),
        "parameter": sweep.parameter,
        **some(sweep.table, "rounds", "drift", "disturbed"),
        **(_algorithms if sweep.library else _setting)(sweep),
    }


def _algorithms(sweep: Sweep) -> dict[str, Any]:
    def remarks(several: Mapping[str, str]) -> list[dict[str, str]]:
        return [{"value": value, "said": remark} for value, remark in several.items()]

    return {
        **some(sweep, "library", "function=case.function", "ranks=case.ranks"),
        "conclusion": conclusion(sweep),
        "algorithms": [
            {"value": value, "name": sweep.names.get(value) or value, "set": setting(sweep, value)}
            for value in sweep.table.values
        ],
        "refused": remarks(sweep.refused),
        "fell_back": remarks(sweep.fell_back),
        "left_out": sweep.table.disturbed_values,
        "sizes": [
            some(row, "winner", "as_good", "gains", "bytes=at")
            | {"sentence": winner_in_words(sweep, row)}
            for row in sweep.table.rows
        ],
    }


def _setting(sweep: Sweep) -> dict[str, Any]:
    best, seen, recommended = sweep.table.best, sweep.eager_limits(), None
    if best is not None and best.winner is not None:
        gains = sweep.table.gains_of(best.winner)
        recommended = {
            **some(best, "as_good", "value=winner", "for=at"),
            "set": setting(sweep, best.winner),
            "gain": plain(best.gains[best.winner]),
            "costs": plain({kind: gain for kind, gain in gains.items() if gain.costs}),
            "sentence": recommendation(sweep),
        }
    steps = [
        {"value": value, "sizes": one and [one.size_below, one.size_above]}
        for value, one in (seen or {}).items()
    ]
    return {
        "own": sweep.own,
        "eager_steps": None if seen is None else steps,
        "values": [
            {
                "value": value,
                "set": setting(sweep, value),
                "ranges": plain(sweep.table.gains_of(value)),
                "by_size": list(by_size.items()),
            }
            for value, by_size in sweep.table.by_size.items()
        ],
        "recommended": recommended,
    }
