"""A sweep's result, in words, as a table, and as plain values."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from rich.console import Console

from netproof.measurement.eager_limit import EagerLimit
from netproof.present.tables import DataTable, benchmark_name, print_answer
from netproof.present.wording import counted, size_in_words
from netproof.tuning.gains import LONG_SHARE, SHORT_UP_TO, Gain, MessageRange, Tuned
from netproof.tuning.parameters import BY_NAME, are_sizes
from netproof.tuning.sweep import Sweep


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


def recommendation(sweep: Sweep, tuned: Tuned) -> str:
    """Return what to set, its gain and cost, and what is as good; or that nothing is worth it."""
    best = tuned.recommended
    if best is None:
        return f"{sweep.title}: leave it as it is: no value is faster for sure"
    value = value_in_words(sweep, best.value)
    parts = [
        f"{sweep.title} {value}: {gain_in_words(best.gain)} for {best.best_in} messages",
        *(f"{gain_in_words(gain)} for {kind} ones" for kind, gain in best.costs.items()),
    ]
    (own,) = (one for one in tuned.gains if one.value == best.value)
    same = [kind for kind, gain in own.ranges.items() if gain.none]
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


def answer(sweep: Sweep, tuned: Tuned) -> dict[str, Any]:
    """Return what terminal and page show: conclusion, how to set it, a row a value, remarks."""
    best, seen = tuned.recommended, sweep.eager_limits()
    sizes = {
        MessageRange.SHORT: f"up to {SHORT_UP_TO} B",
        MessageRange.MEDIUM: "between",
        MessageRange.LONG: f"from 1/{LONG_SHARE} of the largest",
    }
    kinds = [kind for kind in MessageRange if any(kind in one.ranges for one in tuned.gains)]
    head = [sweep.title, *(f"{kind} ({sizes[kind]})" for kind in kinds)]
    rows = [
        [
            value_in_words(sweep, one.value),
            *(gain_in_words(one.ranges[kind]) if kind in one.ranges else "-" for kind in kinds),
        ]
        for one in tuned.gains
    ]
    remarks = []
    if seen is not None:
        head.append("step seen")
        for row, one in zip(rows, tuned.gains, strict=True):
            row.append(_seen(seen[one.value]))
        remarks.append(f"With the default: step seen {_seen(seen[None])}.")
    remarks.append(
        f"{tuned.rounds} rounds of {counted(len(tuned.gains), 'value')}, each alongside the"
        f" default at the same time; the last default took {tuned.drift:.2f} times the first."
    )
    if sweep.already in [one.value for one in tuned.gains]:
        value = value_in_words(sweep, sweep.already)
        remarks.append(f"All nodes have {value} already: it is the default by name.")
    if tuned.disturbed:
        count = len(sweep.launches)
        remarks.append(f"{tuned.disturbed} of {count} launches were disturbed and are left out.")
    return {
        "conclusion": [recommendation(sweep, tuned)],
        "style": "green" if best else "",
        "settings": {"set it by": setting(sweep, best.value)} if best else {},
        "table": DataTable(head, rows, (0, len(kinds) + 1)),
        "remarks": remarks,
    }


def print_sweep(sweep: Sweep, tuned: Tuned, out: Console) -> None:
    """Print the recommendation, and a line for each value."""
    case = sweep.case
    where = f"{case.system}:{case.partition} {case.environment} {benchmark_name(case)}"
    print_answer(where, answer(sweep, tuned), out)


def document(several: Sequence[tuple[Sweep, Tuned]]) -> dict[str, Any]:
    """Return plain values for ``json``: each sweep with its result."""
    return {"sweeps": [_document(sweep, tuned) for sweep, tuned in several]}


def _document(sweep: Sweep, tuned: Tuned) -> dict[str, Any]:
    best, seen = tuned.recommended, sweep.eager_limits()
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
                "value": one.value,
                "set": setting(sweep, one.value),
                "ranges": {kind: dataclasses.asdict(gain) for kind, gain in one.ranges.items()},
                "by_size": list(one.by_size.items()),
            }
            for one in tuned.gains
        ],
        "recommended": None
        if best is None
        else {
            "value": best.value,
            "set": setting(sweep, best.value),
            "for": best.best_in,
            "gain": dataclasses.asdict(best.gain),
            "costs": {kind: dataclasses.asdict(gain) for kind, gain in best.costs.items()},
            "as_good": best.as_good,
            "sentence": recommendation(sweep, tuned),
        },
    }
