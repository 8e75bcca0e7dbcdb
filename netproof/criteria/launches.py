"""Launches as a whole: how far they lie apart, and how many crash."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

from netproof.criteria.findings import (
    FLAGGED,
    Above,
    Bounds,
    CannotJudgeError,
    Finding,
    Level,
    undefined,
)
from netproof.criteria.interface import CaseCurves, Criterion

LAUNCH_SPREAD = Bounds(10.0)
"""Ratios of the slowest launch to the fastest one.

An order of magnitude warns, as it fails between configurations. Nothing fails by default: the
ratio does not show which of the launches is the network.
"""

APART = Bounds()
"""Ratios of launches that are each steady; by default they are not looked for."""

STEADY = 0.25
"""Share of the distance of launches, in logarithms, that each may scatter, to be steady."""

CRASHES = Above(None, 0.02)
"""Shares of a configuration's launches that crashed."""

FEWEST_CRASHES = 2
"""Crashes that are flagged, at least; one of 40 is no rate."""


def launch_spread(case: CaseCurves, settings: Bounds) -> Finding | None:
    """Return the largest ratio of the slowest launch to the fastest one, of all sizes.

    After the "erratic throughput" of the Myri-10G report. None for fewer than two launches.
    """
    if not case.has_sizes or len(case.launches) < 2:
        return None
    readings, sizes = case.each(settings)
    if not sizes:
        raise CannotJudgeError("its launches have no size in common")
    times = {size: [one[size] for one in readings] for size in sizes}
    worst = max(sizes, key=lambda size: max(times[size]) / min(times[size]))
    least, most = min(times[worst]), max(times[worst])
    return settings.finding(
        most / least,
        f"at {worst} bytes {len(readings)} launches took {least:.4g} to {most:.4g} µs,"
        f" {most / least:.3g} times apart, number {times[worst].index(most) + 1} the longest",
        "look at what else used the nodes and the network meanwhile, and where the ranks ran",
        size=worst,
        common=sizes,
    )


def apart(case: CaseCurves, settings: Bounds) -> Finding | None:
    """Return that launches lie apart by one factor at all sizes alike; None where they do not.

    Each launch's factor is the median over sizes of its time over the median of all launches; its
    scatter is the standard deviation around that, in logarithms, at most ``STEADY`` of the largest
    distance. Noise of the machine scatters within a launch too, another placement does not.
    """
    if not case.has_sizes or settings.warn is None:
        return None
    each, sizes = case.each(settings)
    if len(each) < 2 or len(sizes) < 3:
        return None
    middle = {size: median(one[size] for one in each) for size in sizes}
    logs = [[math.log(one[size] / middle[size]) for size in sizes] for one in each]
    factors = [median(one) for one in logs]
    distance = max(factors) - min(factors)
    scatter = max(
        math.sqrt(math.fsum((log - factor) ** 2 for log in one) / (len(sizes) - 1))
        for one, factor in zip(logs, factors, strict=True)
    )
    ratio = math.exp(distance)
    if settings.level(ratio)[0] not in FLAGGED or scatter > STEADY * distance:
        return None
    return settings.finding(
        ratio,
        f"{len(each)} launches lie {ratio:.3g} times apart, and each is steady over its"
        f" {len(sizes)} sizes",
        "look at where the ranks ran: sockets, cores, nodes",
    )


def crash_share(crashed: int, launches: int, *, where: str, settings: Above = CRASHES) -> Finding:
    """Return the share of a configuration's attempted launches that crashed before a figure."""
    if launches == 0:
        return undefined("crashes", where, "nothing was launched")
    value = crashed / launches
    level, bound = settings.level(value) if crashed >= FEWEST_CRASHES else (Level.PASS, None)
    held = f", flagged above {100 * (bound or 0):.3g} %" if level in FLAGGED else ""
    reason = f"{crashed} of {launches} launches crashed ({100 * value:.2g} %{held})"
    return Finding("crashes", level, where, reason, value=value, bound=bound)


def crashed(where: str, crashes: Sequence[str], place: str = "") -> Finding:
    """Return the warning that launches crashed; ``place``: the beginning of its reason."""
    reason = f"{place}{'; '.join(crashes)}"
    return Finding("crashes", Level.WARN, where, reason, value=len(crashes))


CRITERIA = (
    Criterion(
        "launch spread",
        "launch_spread",
        LAUNCH_SPREAD,
        launch_spread,
        sets=("warn",),
        of_launches=True,
    ),
    Criterion("apart", "apart", APART, apart, sets=(), of_launches=True),
    Criterion(
        "crashes",
        "crash",
        CRASHES,
        lambda case, _: crashed(case.where, case.crashes) if case.crashes else None,
        sets=("fail",),
        of_launches=True,
    ),
)
