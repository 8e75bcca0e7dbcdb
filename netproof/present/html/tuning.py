"""The page on sweeps: the recommendation on top, the curves of all values over each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from netproof.experiments.gains import SweepTable
from netproof.experiments.sweep import Sweep
from netproof.measurement.launches import median_curve
from netproof.present.html import curves, figures
from netproof.present.html.html import answers_page, file_name
from netproof.present.tables import EVERY, DataTable, benchmark_name
from netproof.present.tuning import answer, value_in_words


def page(several: Sequence[tuple[Sweep, SweepTable]], scripts: Sequence[str]) -> str:
    """Return the page on all sweeps of a report."""
    answers = [view(sweep, tuned) for sweep, tuned in several]
    return answers_page("Tuning", (sweep.title for sweep, _ in several), answers, scripts)


def view(sweep: Sweep, tuned: SweepTable) -> dict[str, Any]:
    """Return one sweep as pages show it."""
    names = {value: value_in_words(sweep, value) for value in tuned.values}
    launches = sweep.curves()
    together = {
        name: (median_curve(launches[value]), launches[value])
        for value, name in {None: "default", **names}.items()
    }
    case = sweep.case
    title = f"{sweep.title}, {case.partition} {case.environment} {benchmark_name(case)}"
    return {
        **answer(sweep, tuned),
        "name": file_name(title),
        "title": title,
        "figures": [curves.figure(*figures.of_curves(title, together, legend=sweep.title))],
        "by_size": DataTable(
            ("bytes", *names.values()),
            [
                (f"{size:,}", *(f"{factors[size]:.3f}" for factors in tuned.by_size.values()))
                for size in tuned.by_size[tuned.values[0]]
            ],
            EVERY,
            "How many times as fast as the default, the mean over rounds",
        ),
    }
