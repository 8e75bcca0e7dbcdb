"""A sweep's result, in words, as a table, and as plain values."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from rich.console import Console

from netproof.experiments.gains import LONG_SHARE, SHORT_UP_TO, Gain, MessageRange, SweepTable
from netproof.experiments.parameters import BY_NAME, are_sizes
from netproof.experiments.sweep import Sweep
from netproof.measurement.eager_limit import EagerLimit
from netproof.present.tables import DataTable, benchmark_name, print_answer
from netproof.present.wording import counted, size_in_words


def value_in_words(sweep: Sweep, value: str) -> str:
    """Return a value as people write it: ``64 KiB`` where it is a size."""
    sized = are_sizes(sweep.parameter) and value.isdigit()
    return size_in_words(int(value)) if sized else value


def percent(factor: float) -> str:
    """Return how much faster, or slower: ``+31 %``."""
    return f"{_signed(factor)} %"


def _signed(factor: float) -> str:
    """Return percent with a sign, except where it rounds to 0."""
    whole = round(100 * (factor - 1))
    return f"{whole:+d}" if whole else "0"


def gain_in_words(gain: Gain) -> str:
    """Return a gain with its interval: ``+31 % (+24 to +38)``; or no change."""
    if gain.none:
        return "no change"
    low, high = map(_signed, gain.interval)
    text = f"{percent(gain.factor)} ({low} to {high})"
    return text if gain.sure or gain.costs else f"{text}, not sure"


def recommendation(sweep: Sweep, tuned: SweepTable) -> str:
    """Return what to set, its gain and cost, and what is as good; or that nothing is worth it."""
    best = tuned.best
    if best is None:
        return f"{sweep.title}: leave it as it is: no value is faster for sure"
    value, gains = value_in_words(sweep, best.winner), tuned.gains_of(best.winner)
    parts = [
        f"{sweep.title} {value}: {gain_in_words(best.gain)} for {best.at} messages",
        *(f"{gain_in_words(gain)} for {kind} ones" for kind, gain in gains.items() if gain.costs),
    ]
    same = [kind for kind, gain in gains.items() if gain.none]
    if same:
        parts.append(f"no change for {' and '.join(same)} ones")
    text = ", ".join(parts)
    if best.as_good:
        others = ", ".join(
            f"{value_in_words(sweep, other)} (at most {100 * behind:.0f} % behind)"
            for other, behind in best.as_good.items()
        )
        text += f"; statistically tied with it: {others}"
    return text


def setting(sweep: Sweep, value: str) -> str:
    """Return how to set a value: variables in a shell's form, or arguments of NPtcp."""
    how = sweep.told.of(value)
    named = [f"{name}={text}" for name, text in how.variables.items()]
    arguments = [f"NPtcp {' '.join(how.arguments)}"] if how.arguments else []
    parameter = BY_NAME.get(sweep.parameter)
    by_hook = [f"{parameter.title} {value}"] if parameter and parameter.by_hook else []
    return " ".join([*named, *arguments, *by_hook])


def _seen(found: EagerLimit | None) -> str:
    """Return between which sizes messages change to rendezvous."""
    return "none" if found is None else f"{found.size_below} to {found.size_above} B"


def answer(sweep: Sweep, tuned: SweepTable) -> dict[str, Any]:
    """Return what terminal and page show: conclusion, how to set it, a row a value, remarks."""
    best, seen = tuned.best, sweep.eager_limits()
    sizes = {
        MessageRange.SHORT: f"up to {SHORT_UP_TO} B",
        MessageRange.MEDIUM: "between",
        MessageRange.LONG: f"from 1/{LONG_SHARE} of the largest",
    }
    head = [sweep.title, *(f"{row.at} ({sizes[row.at]})" for row in tuned.rows)]
    rows = [
        [value_in_words(sweep, value), *map(gain_in_words, tuned.gains_of(value).values())]
        for value in tuned.values
    ]
    remarks = []
    if seen is not None:
        head.append("step seen")
        for row, value in zip(rows, tuned.values, strict=True):
            row.append(_seen(seen[value]))
        remarks.append(f"With the default: step seen {_seen(seen[None])}.")
    remarks.append(
        f"{tuned.rounds} rounds of {counted(len(tuned.values), 'value')}, each alongside the"
        f" default at the same time; the last default took {tuned.drift:.2f} times the first."
    )
    if sweep.already in tuned.values:
        value = value_in_words(sweep, sweep.already)
        remarks.append(f"All nodes have {value} already: it is the default by name.")
    if tuned.disturbed:
        count = len(sweep.launches)
        remarks.append(f"{tuned.disturbed} of {count} launches were disturbed and are left out.")
    return {
        "conclusion": [recommendation(sweep, tuned)],
        "style": "green" if best else "",
        "settings": {"set it by": setting(sweep, best.winner)} if best else {},
        "table": DataTable(head, rows, (0, len(tuned.rows) + 1)),
        "remarks": remarks,
    }


def print_sweep(sweep: Sweep, tuned: SweepTable, out: Console) -> None:
    """Print the recommendation, and a line for each value."""
    case = sweep.case
    where = f"{case.system}:{case.partition} {case.environment} {benchmark_name(case)}"
    print_answer(where, answer(sweep, tuned), out)


def document(several: Sequence[tuple[Sweep, SweepTable]]) -> dict[str, Any]:
    """Return plain values for ``json``: each sweep with its result."""
    return {"sweeps": [_document(sweep, tuned) for sweep, tuned in several]}


def _document(sweep: Sweep, tuned: SweepTable) -> dict[str, Any]:
    best, seen = tuned.best, sweep.eager_limits()

    def plain(value: str) -> dict[str, Any]:
        return {kind: dataclasses.asdict(gain) for kind, gain in tuned.gains_of(value).items()}

    return {
        "case": str(sweep.case),
        "parameter": sweep.parameter,
        "own": sweep.own,
        "rounds": tuned.rounds,
        "drift": tuned.drift,
        "disturbed": tuned.disturbed,
        "eager_steps": None
        if seen is None
        else [
            {"value": value, "sizes": one and [one.size_below, one.size_above]}
            for value, one in seen.items()
        ],
        "values": [
            {
                "value": value,
                "set": setting(sweep, value),
                "ranges": plain(value),
                "by_size": list(by_size.items()),
            }
            for value, by_size in tuned.by_size.items()
        ],
        "recommended": None
        if best is None
        else {
            "value": best.winner,
            "set": setting(sweep, best.winner),
            "for": best.at,
            "gain": dataclasses.asdict(best.gain),
            "costs": {
                kind: plain(best.winner)[kind]
                for kind, gain in tuned.gains_of(best.winner).items()
                if gain.costs
            },
            "as_good": best.as_good,
            "sentence": recommendation(sweep, tuned),
        },
    }
