"""From which depth on a dip is found: dips planted into recorded launches of healthy switches.

Run ``python docs/criteria/dips.py`` in the checkout. It prints the table of docs/criteria/shape.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from netproof.criteria.findings import Below, Level
from netproof.criteria.interface import CaseCurves
from netproof.criteria.settings import Settings
from netproof.criteria.shape import DIP, dips
from netproof.measurement.case import Curve
from netproof.session import session

SESSIONS = Path(__file__).resolve().parents[2] / "tests" / "data" / "sessions"
HEALTHY = ("healthy", "passed", "ranges", "two-switches", "netpipe", "netpipe-whole")
IN_A_ROW = ("repeated-1", "repeated-2", "repeated-3")
"""Three runs of the same cases with a launch each: together they are three launches."""
DEPTHS = (0.0, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)


def recorded() -> dict[tuple, tuple[list[Curve], Below]]:
    """Return the launches of each case with three or more, and the bounds of its site."""
    found: dict[tuple, tuple[list[Curve], Below]] = {}
    for name in (*HEALTHY, *IN_A_ROW):
        together = "in a row" if name in IN_A_ROW else name
        for result in session.load(SESSIONS / f"{name}.json").results:
            if result.measured is None or result.measured.curve.sizes == (0,):
                continue
            criteria = result.extras["partition_extras"].get("criteria", {})
            bounds = replace(DIP, least_size=Settings.of_site(criteria, 0).envelope.least_size)
            launches, _ = found.setdefault((together, *result.case.key()), ([], bounds))
            launches += [launch.curve for launch in result.measured.launches]
    return {key: case for key, case in found.items() if len(case[0]) >= 3}


def planted(launches: Sequence[Curve], size: int, depth: float) -> list[Curve]:
    """Return the launches with a dip of that depth of the rate at a size."""
    slower = {size: 1 / (1 - depth)}
    return [
        Curve(
            curve.sizes,
            tuple(
                time * slower.get(one, 1)
                for one, time in zip(curve.sizes, curve.time_us, strict=True)
            ),
        )
        for curve in launches
    ]


def level(launches: Sequence[Curve], bounds: Below, size: int, depth: float) -> Level | None:
    """Return what is found at a size with a dip of that depth."""
    several = dips(CaseCurves.of_launches("", planted(launches, size, depth)), bounds)
    return next((one.level for one in several if one.size == size), None)


def main() -> None:
    """Print how many dips of each depth warn, and how many fail."""
    cases = recorded().values()
    places = [
        (launches, bounds, size)
        for launches, bounds in cases
        for size in launches[0].sizes
        # What one of 99 % shows is judged.
        if size >= bounds.least_size and level(launches, bounds, size, 0.99)
    ]
    print(f"{len(places)} sizes of {len(cases)} cases")
    for depth in DEPTHS:
        levels = [level(*place, depth) for place in places]
        shares = [levels.count(one) / len(levels) for one in (Level.WARN, Level.FAIL)]
        print(f"{depth:.0%} | {shares[0]:.1%} warn | {shares[1]:.1%} fail")


if __name__ == "__main__":
    main()
