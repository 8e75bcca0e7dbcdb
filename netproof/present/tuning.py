"""A sweep's result, in words, as a table, and as plain values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console

from netproof.measurement.eager_limit import EagerLimit
from netproof.present.tables import TableColumn, benchmark_name, print_table, say
from netproof.present.wording import counted
from netproof.tuning.gains import LONG_SHARE, SHORT_UP_TO, Gain, MessageRange, Tuned
from netproof.tuning.parameters import BY_NAME, are_sizes
from netproof.tuning.sweep import Sweep

_KIB, _MIB = 1024, 1024 * 1024


def value_in_words(sweep: Sweep, value: str) -> str:
    """Return a value as people write it: ``64 KiB`` where it is a size."""
    if not are_sizes(sweep.parameter) or not value.isdigit():
        return value
    count = int(value)
    for unit, name in ((_MIB, "MiB"), (_KIB, "KiB")):
        if count >= unit and count % unit == 0:
            return f"{count // unit} {name}"
    return f"{count} B"


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
    same = [
        str(kind)
        for one in tuned.gains
        if one.value == best.value
        for kind, gain in one.ranges.items()
        if gain.none
    ]
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


def ranges_of(tuned: Tuned) -> list[MessageRange]:
    """Return the ranges of messages that were measured."""
    return [kind for kind in MessageRange if any(kind in one.ranges for one in tuned.gains)]


def heading(kind: MessageRange) -> str:
    """Return a range with its message sizes."""
    those = {
        MessageRange.SHORT: f"up to {SHORT_UP_TO} B",
        MessageRange.MEDIUM: "between",
        MessageRange.LONG: f"from 1/{LONG_SHARE} of the largest",
    }
    return f"{kind} ({those[kind]})"


SEEN = "step seen"
"""Title of the column on eager limits."""


def seen_in_words(found: EagerLimit | None) -> str:
    """Return between which sizes messages change to rendezvous."""
    return "none" if found is None else f"{found.size_below} to {found.size_above} B"


def rounds_in_words(sweep: Sweep, tuned: Tuned) -> tuple[str, ...]:
    """Return how it was measured, and what that excludes."""
    seen = sweep.eager_limits()
    lines = [] if seen is None else [f"With the default: {SEEN} {seen_in_words(seen[None])}."]
    lines += [
        f"{tuned.rounds} rounds of {counted(len(tuned.gains), 'value')}, each alongside the"
        f" default at the same time; the last default took {tuned.drift:.2f} times the first."
    ]
    if sweep.already in [one.value for one in tuned.gains]:
        value = value_in_words(sweep, sweep.already)
        lines.append(f"All nodes have {value} already: it is the default by name.")
    if tuned.disturbed:
        count = len(sweep.launches)
        lines.append(f"{tuned.disturbed} of {count} launches were disturbed and are left out.")
    return tuple(lines)


def print_sweep(sweep: Sweep, tuned: Tuned, out: Console) -> None:
    """Print the recommendation, and a line for each value."""
    case = sweep.case
    say(out, f"{case.system}:{case.partition} {case.environment} {benchmark_name(case)}", "bold")
    say(out, recommendation(sweep, tuned), "green" if tuned.recommended else "")
    if tuned.recommended is not None:
        say(out, f"set it by: {setting(sweep, tuned.recommended.value)}")
    columns = [TableColumn(sweep.title, [value_in_words(sweep, one.value) for one in tuned.gains])]
    for kind in ranges_of(tuned):
        cells = [
            gain_in_words(one.ranges[kind]) if kind in one.ranges else "-" for one in tuned.gains
        ]
        columns.append(TableColumn(heading(kind), cells, right=False))
    seen = sweep.eager_limits()
    if seen is not None:
        cells = [seen_in_words(seen[one.value]) for one in tuned.gains]
        columns.append(TableColumn(SEEN, cells))
    print_table(columns, out)
    for sentence in rounds_in_words(sweep, tuned):
        say(out, sentence)


def document(several: Sequence[tuple[Sweep, Tuned]]) -> dict[str, Any]:
    """Return plain values for ``json``: each sweep with its result."""
    return {"sweeps": [_document(sweep, tuned) for sweep, tuned in several]}


def _document(sweep: Sweep, tuned: Tuned) -> dict[str, Any]:
    best, seen = tuned.recommended, sweep.eager_limits()
    return {
        "case": str(sweep.case),
        "parameter": sweep.parameter,
        "own": list(sweep.own),
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
                "ranges": {str(kind): _gain(gain) for kind, gain in one.ranges.items()},
                "by_size": [[size, factor] for size, factor in one.by_size.items()],
            }
            for one in tuned.gains
        ],
        "recommended": None
        if best is None
        else {
            "value": best.value,
            "set": setting(sweep, best.value),
            "for": str(best.best_in),
            "gain": _gain(best.gain),
            "costs": {str(kind): _gain(gain) for kind, gain in best.costs.items()},
            "as_good": dict(best.as_good),
            "sentence": recommendation(sweep, tuned),
        },
    }


def _gain(gain: Gain) -> dict[str, Any]:
    return {"factor": gain.factor, "interval": list(gain.interval)}
