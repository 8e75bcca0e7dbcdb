"""Criterion 5: the total variation of a curve."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from netproof.criteria.findings import Bounds, Finding, bound_in_words, undefined
from netproof.criteria.interface import CaseCurves, Criterion
from netproof.criteria.points import times_of
from netproof.measurement.curve import Curve


@dataclass(frozen=True)
class RoughnessSettings(Bounds):
    """``warn`` and ``fail`` at this roughness in octaves; by default nothing is asserted."""


def roughness(
    curve: Curve, *, where: str, settings: RoughnessSettings = RoughnessSettings()
) -> Finding:
    """Return the total variation of log₂ t less its net rise, in octaves (criterion 5).

    0 for a curve that never falls; summed as twice all falls, which is the same and exact.
    ``size`` is the size of the deepest fall, None where there is none.
    """
    points = times_of(curve, settings, at_least=2)
    if points.fault is not None:
        return undefined("roughness", where, points.fault)
    logs = [(size, math.log2(time)) for size, time in points.at.items()]
    falls = [
        (before - after, size) for (_, before), (size, after) in pairwise(logs) if after < before
    ]
    value = 2 * math.fsum(fall for fall, _ in falls)
    level, bound = settings.level(value)
    deepest = max(falls, key=lambda fall: fall[0])[1] if falls else None
    reason = f"time falls by {value / 2:.3g} octaves in all along the curve, roughness {value:.3g}"
    if deepest is not None:
        reason += f", most at {deepest} bytes"
    return Finding(
        "roughness",
        level,
        where,
        f"{reason}{bound_in_words(level, bound)}",
        size=deepest,
        value=value,
        bound=bound,
    )


def _judge(case: CaseCurves, settings: Any) -> tuple[Finding, ...]:
    if case.curve.sizes == (0,):
        return ()
    return (roughness(case.first, where=case.where, settings=settings.roughness),)


CRITERION = Criterion(5, {"roughness": RoughnessSettings()}, {"roughness": "roughness"}, _judge)
