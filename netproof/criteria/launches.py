"""Launches as a whole: how far they lie apart, how many crash, and what CPU time they cost."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import median
from types import MappingProxyType
from typing import Any

from netproof.criteria.findings import (
    FLAGGED,
    READABLE,
    Above,
    AtSize,
    Bounds,
    CannotJudgeError,
    Finding,
    Level,
    common_sizes,
    greatest,
    in_common,
    times_of_each,
    undefined,
    undefined_if_unreadable,
)
from netproof.criteria.interface import CaseCurves, Criterion
from netproof.errors import NetproofError
from netproof.measurement.curve import Curve

CPU_COST = Bounds()
"""CPU seconds for a second of benchmark; nothing is asserted by default."""

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


@undefined_if_unreadable("CPU cost", several=True)
def cpu_cost(
    cpu_seconds: Mapping[str, float],
    benchmark_seconds: float,
    *,
    where: str,
    settings: Bounds = CPU_COST,
    notes: Mapping[str, str] = MappingProxyType({}),
) -> tuple[Finding, ...]:
    """Return the CPU seconds per second of benchmark, a finding for each node.

    1 is one core all the time; ``notes``: what else is known of a node, by its name. After the
    network-adapter page. Raises NetproofError for seconds that are negative or no number.
    """
    for label, seconds in [*cpu_seconds.items(), (where, benchmark_seconds)]:
        if not math.isfinite(seconds) or seconds < 0:
            raise NetproofError(f"{label}: {seconds} s is no time used")
    if not cpu_seconds:
        raise CannotJudgeError("the job's resource use names no node")
    if benchmark_seconds < READABLE[0]:
        raise CannotJudgeError("the benchmark ran for 0 s")
    findings = []
    for node, seconds in cpu_seconds.items():
        value = seconds / benchmark_seconds
        more = f"; {notes[node]}" if notes.get(node) else ""
        reason = (
            f"node {node} spent {seconds:.3g} CPU s in {benchmark_seconds:.3g} s of benchmark,"
            f" {value:.0%} of a core{more}"
        )
        findings.append(settings.finding("CPU cost", where, value, reason))
    return tuple(findings)


@undefined_if_unreadable("launch spread")
def launch_spread(
    launches: Sequence[Curve], *, where: str, settings: Bounds = LAUNCH_SPREAD
) -> Finding:
    """Return the largest ratio of the slowest launch to the fastest one, of all sizes.

    After the "erratic throughput" of the Myri-10G report. Undefined for fewer than two launches.
    """
    if len(launches) < 2:
        raise CannotJudgeError("one launch has no spread")
    readings = times_of_each(launches, settings)
    sizes = in_common(readings)
    if not sizes:
        raise CannotJudgeError("its launches have no size in common")
    times = {size: [one[size] for one in readings] for size in sizes}
    worst = greatest([AtSize(size, max(took) / min(took)) for size, took in times.items()])
    took = times[worst.size]
    return settings.finding(
        "launch spread",
        where,
        worst.value,
        f"at {worst.size} bytes {len(launches)} launches took {min(took):.4g} to"
        f" {max(took):.4g} µs, {worst.value:.3g} times apart",
        "look at what else used the nodes and the network meanwhile, and where the ranks ran",
        size=worst.size,
        common=common_sizes(sizes),
    )


@undefined_if_unreadable("apart", several=True)
def apart(
    launches: Sequence[Curve], *, where: str, settings: Bounds = APART
) -> tuple[Finding, ...]:
    """Return that launches lie apart by one factor at all sizes alike; nothing where they do not.

    Each launch's factor is the median over sizes of its time over the median of all launches; its
    scatter is the standard deviation around that, in logarithms, at most ``STEADY`` of the largest
    distance. Noise of the machine scatters within a launch too, another placement does not.
    """
    each = times_of_each(launches, settings)
    sizes = in_common(each)
    if len(launches) < 2 or len(sizes) < 3:
        return ()
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
        return ()
    return (
        settings.finding(
            "apart",
            where,
            ratio,
            f"{len(launches)} launches lie {ratio:.3g} times apart, and each is steady over its"
            f" {len(sizes)} sizes",
            "look at where the ranks ran: sockets, cores, nodes",
        ),
    )


def crash_share(crashed: int, launches: int, *, where: str, settings: Above = CRASHES) -> Finding:
    """Return the share of a configuration's attempted launches that crashed before a figure."""
    if not 0 <= crashed <= launches:
        raise NetproofError(f"{where}: {crashed} of {launches} launches cannot have crashed")
    if launches == 0:
        return undefined("crashes", where, "nothing was launched")
    value = crashed / launches
    level, bound = settings.level(value) if crashed >= FEWEST_CRASHES else (Level.PASS, None)
    held = f", above {100 * bound:.3g} % is flagged" if level in FLAGGED else ""
    reason = f"{crashed} of {launches} launches crashed ({100 * value:.2g} %{held})"
    return Finding("crashes", level, where, reason, value=value, bound=bound)


def crashed(where: str, crashes: Sequence[str], place: str = "") -> Finding:
    """Return the warning that launches crashed; ``place``: the beginning of its reason."""
    reason = f"{place}{'; '.join(crashes)}"
    return Finding("crashes", Level.WARN, where, reason, value=len(crashes))


def _crashes(case: CaseCurves, settings: Any) -> tuple[Finding, ...]:
    return (crashed(case.where, case.crashes),) if case.crashes else ()


def _cpu_costs(case: CaseCurves, settings: Any) -> tuple[Finding, ...]:
    if case.cpu_seconds is None:
        return ()
    own, notes = settings.cpu_cost, case.cpu_notes
    return cpu_cost(case.cpu_seconds, case.seconds, where=case.where, settings=own, notes=notes)


def _spreads(case: CaseCurves, settings: Any) -> tuple[Finding, ...]:
    if not case.has_sizes or len(case.launches) < 2:
        return ()
    return (launch_spread(case.launches, where=case.where, settings=settings.launch_spread),)


def _apart(case: CaseCurves, settings: Any) -> tuple[Finding, ...]:
    if not case.has_sizes or settings.apart.warn is None:
        return ()
    return apart(case.launches, where=case.where, settings=settings.apart)


CRITERIA = (
    Criterion({"cpu_cost": CPU_COST}, {"CPU cost": "cpu_cost"}, _cpu_costs, of_launches=True),
    Criterion(
        {"launch_spread": LAUNCH_SPREAD},
        {"launch spread": "launch_spread"},
        _spreads,
        of_launches=True,
    ),
    Criterion({"apart": APART}, {"apart": "apart"}, _apart, of_launches=True),
    Criterion({"crash": CRASHES}, {"crashes": "crash"}, _crashes, of_launches=True),
)
