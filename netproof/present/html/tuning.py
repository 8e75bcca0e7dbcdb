"""The page on sweeps: the recommendation on top, the curves of all values over each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from netproof.measurement.launches import median_curve
from netproof.present.html import curves, plain_curves
from netproof.present.html.curves import FigureView
from netproof.present.html.html import DataTable, file_name, number_table, render, text_table
from netproof.present.tables import benchmark_name
from netproof.present.tuning import (
    SEEN,
    gain_in_words,
    heading,
    ranges_of,
    recommendation,
    rounds_in_words,
    seen_in_words,
    setting,
    value_in_words,
)
from netproof.tuning.gains import Tuned
from netproof.tuning.sweep import Sweep

DEFAULT = "default"


@dataclass(frozen=True)
class SweepView:
    """One sweep; ``setting``: how to set the recommended value, empty without one."""

    name: str
    title: str
    recommended: str
    setting: str
    gains: DataTable
    sentences: tuple[str, ...]
    figure: FigureView
    by_size: DataTable


def page(several: Sequence[tuple[Sweep, Tuned]], scripts: Sequence[str]) -> str:
    """Return the page on all sweeps of a report."""
    return render(
        "tuning.html",
        title="Tuning: " + ", ".join(dict.fromkeys(sweep.title for sweep, _ in several)),
        scripts=scripts,
        sweeps=[view(sweep, tuned) for sweep, tuned in several],
    )


def view(sweep: Sweep, tuned: Tuned) -> SweepView:
    """Return one sweep as pages show it."""
    names = {None: DEFAULT, **{one.value: value_in_words(sweep, one.value) for one in tuned.gains}}
    launches = sweep.curves()
    together = {
        name: (median_curve(launches[value]), launches[value]) for value, name in names.items()
    }
    case = sweep.case
    title = f"{sweep.title}, {case.partition} {case.environment} {benchmark_name(case)}"
    kinds = ranges_of(tuned)
    seen = sweep.eager_limits()
    rows = [
        (
            names[one.value],
            *(gain_in_words(one.ranges[kind]) if kind in one.ranges else "–" for kind in kinds),
            *(() if seen is None else (seen_in_words(seen[one.value]),)),
        )
        for one in tuned.gains
    ]
    sizes = list(tuned.gains[0].by_size)
    factors = [
        (f"{size:,}", *(f"{one.by_size[size]:.3f}" for one in tuned.gains)) for size in sizes
    ]
    best = tuned.recommended
    return SweepView(
        file_name(title),
        title,
        recommendation(sweep, tuned),
        "" if best is None else setting(sweep, best.value),
        text_table((sweep.title, *map(heading, kinds), *(() if seen is None else (SEEN,))), rows),
        rounds_in_words(sweep, tuned),
        curves.figure(
            plain_curves.figure(title, together),
            plain_curves.looks(tuple(together), sweep.title),
            (),
        ),
        number_table(
            ("bytes", *(names[one.value] for one in tuned.gains)),
            factors,
            "How many times as fast as the default, the mean over rounds",
        ),
    )
