"""Charts of curves that belong to no case of a matrix: named, and without a known switch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from netproof.measurement.curve import Curve
from netproof.measurement.launches import spread
from netproof.measurement.units import mbit_s
from netproof.present.html.charts import BANDS_AT_ONCE, ChartFigure
from netproof.present.html.figures import BAND, CROWDED_BAND, MARKS
from netproof.present.html.html import file_name
from netproof.present.html.looks import Looks

NOWHERE = "as given"
"""Stands for the switch, where it is not named."""


def looks(names: Sequence[str], legend: str = Looks.legend) -> Looks:
    """Return the look of curves of these names in every chart; ``legend``: the legend's title."""
    return Looks((NOWHERE,), tuple(names), legend=legend)


def rows(name: str, curve: Curve, launches: Sequence[Curve]) -> list[dict[str, Any]]:
    """Return a row for each size of a curve: times in µs with their MAD over launches, rates.

    Sizes of 0 bytes and times of 0 µs are left out: a logarithmic axis has no place for them.
    """
    none = (None,) * len(curve.sizes)
    columns = zip(
        curve.sizes,
        curve.time_us,
        spread(launches),
        curve.time_min_us or none,
        curve.time_avg_us or none,
        curve.bandwidth_mb_s or none,
        strict=True,
    )
    return [
        {
            "configuration": name,
            "partition": NOWHERE,
            "environment": name,
            "protocol": None,
            "size_bytes": size,
            "time_us": time,
            "mad_us": mad,
            "low_us": time - mad,
            "high_us": time + mad,
            "time_min_us": least,
            "time_avg_us": mean,
            "bandwidth_mb_s": rate,
            "bandwidth_mbit_s": None if rate is None else mbit_s(rate),
            "launches": len(launches),
        }
        for size, time, mad, least, mean, rate in columns
        if size >= 1 and time > 0
    ]


def figure(
    title: str,
    several: Mapping[str, tuple[Curve, Sequence[Curve]]],
    flags: Sequence[dict[str, Any]] = (),
) -> ChartFigure:
    """Return time over size of curves by their names, each with its launches."""
    found = [
        row for name, (curve, launches) in several.items() for row in rows(name, curve, launches)
    ]
    crowded = len(several) > BANDS_AT_ONCE
    return ChartFigure(
        name=file_name(title),
        title=f"{title}: time against message size",
        kind="time",
        rows=found,
        flags=list(flags),
        sentences=(*([] if crowded else [BAND]), *([MARKS] if flags else [])),
        hint=CROWDED_BAND if crowded else None,
    )
