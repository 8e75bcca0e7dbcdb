"""Cases of launches, and what one criterion finds on them."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from netproof.criteria.findings import Below, Bounds, Finding
from netproof.criteria.interface import CaseCurves, ComparedCases
from netproof.criteria.registry import BY_FINDING
from netproof.criteria.score import SCORE, ScoredSide
from netproof.criteria.score import score as found
from netproof.criteria.settings import Settings
from netproof.measurement.case import Curve

Launches = Curve | Sequence[Curve]


def curve(sizes: Sequence[int], time_us: Callable[[int], float], rates: bool = False) -> Curve:
    """Return a curve of a function of the size, and the bandwidths of these times."""
    times = tuple(map(time_us, sizes))
    made = tuple(size / time for size, time in zip(sizes, times, strict=True)) if rates else None
    return Curve(tuple(sizes), times, made)


def noisy(
    sizes: Sequence[int],
    time_us: Callable[[int], float],
    count: int = 1,
    noise: float = 0.0,
    seed: int = 1,
    rates: bool = False,
) -> list[Curve]:
    """Return launches of a function of the size, each time with noise of its own."""
    draw = random.Random(seed)
    return [
        curve(sizes, lambda size: time_us(size) * draw.lognormvariate(0, noise), rates)
        for _ in range(count)
    ]


def case(launches: Launches, where: str = "it", **known: Any) -> CaseCurves:
    several = [launches] if isinstance(launches, Curve) else launches
    return CaseCurves.of_launches(where, several, **{"name": where, **known})


def along(
    name: str,
    launches: Launches,
    where: str = "it",
    settings: Bounds | None = None,
    **known: Any,
) -> tuple[Finding, ...]:
    """Return the findings of a criterion on a case, by these bounds or its own."""
    return BY_FINDING[name].on(case(launches, where, **known), _settings(name, settings))


def only(name: str, launches: Launches, *args: Any, **known: Any) -> Finding | None:
    """Return the one finding of a criterion on a case, None without any."""
    found = along(name, launches, *args, **known)
    assert len(found) < 2
    return found[0] if found else None


def compared(
    name: str,
    sides: Mapping[str, CaseCurves | Launches],
    settings: Bounds | None = None,
    pairs: Mapping[tuple[str, str], Sequence[tuple[Curve, Curve]]] | None = None,
    only: str | None = None,
) -> tuple[Finding, ...]:
    """Return the findings of a criterion that compares cases, by their labels."""
    own = _settings(name, settings)
    cases = {
        label: one if isinstance(one, CaseCurves) else case(one, label)
        for label, one in sides.items()
    }
    cases = {label: replace(one, settings=one.settings or own) for label, one in cases.items()}
    paired = {labels: (launches, "") for labels, launches in (pairs or {}).items()}
    several = ComparedCases(cases, paired)
    wanted = [*cases.values()] if only is None else [cases[only]]
    judged = (BY_FINDING[name].on(one, one.settings, several) for one in wanted)
    return tuple(finding for found in judged for finding in found)


def score(own: Launches, base: Launches, where: str, of: str, bounds: Below = SCORE) -> Finding:
    sides = ScoredSide(own, where, bounds), ScoredSide(base, of, bounds)
    return found(*sides, bounds).but(where=where)


def _settings(name: str, bounds: Bounds | None) -> Settings:
    return replace(Settings(), **({BY_FINDING[name].key: bounds} if bounds is not None else {}))


SIZES = (4, 64, 1024, 16384)
TIMES = (10.0, 11.0, 20.0, 150.0)


def launches(*factors: float, slow: dict[int, float] | None = None) -> list[Curve]:
    """Return launches that take so many times TIMES, at some sizes ``slow`` times more."""
    table = dict(zip(SIZES, TIMES, strict=True))
    return [
        curve(SIZES, lambda size, factor=factor: factor * table[size] * (slow or {}).get(size, 1))
        for factor in factors
    ]
