"""Criterion 6: a size whose bandwidth is far below what both sides reach."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from netproof.criteria.findings import (
    AtSize,
    Bounds,
    Finding,
    Level,
    finding_at,
    rate_in_words,
    undefined,
)
from netproof.criteria.interface import AgainAtSizes, CaseCurves, Criterion
from netproof.criteria.points import Points, bandwidths_of
from netproof.measurement.curve import Curve


@dataclass(frozen=True)
class DropoutSettings(Bounds):
    """``warn`` and ``fail`` below this share of the lesser of the best on either side."""

    warn: float | None = 0.5
    fail: float | None = 0.1
    reached: ClassVar[Callable[[float, float], bool]] = operator.lt


def dropout(
    curve: Curve, *, where: str, settings: DropoutSettings = DropoutSettings()
) -> tuple[Finding, ...]:
    """Return the sizes whose bandwidth is far below what both sides reach (criterion 6).

    bw(s) / min(best at smaller sizes, best at larger sizes), a pure number. One finding for
    each size flagged, or one for the size that comes nearest; ``compared_sizes``: where the two
    sides are at their best. After the dips of the e325 Opteron NetPIPE report.
    """
    points = bandwidths_of(curve, settings, at_least=3)
    if points.fault is not None:
        return (undefined("dropout", where, points.fault),)
    values = dropout_at_sizes(points)
    flagged = [v for v in values if settings.level(v.value)[0] in (Level.WARN, Level.FAIL)]
    findings = []
    for found in flagged or [min(values, key=lambda v: v.value)]:
        level, bound = settings.level(found.value)
        left, right = found.compared
        findings.append(
            finding_at(
                "dropout",
                level,
                bound,
                where,
                found,
                f"at {found.size} bytes the bandwidth is {rate_in_words(points.at[found.size])}, "
                f"{found.value:.2g} of the lesser of {rate_in_words(points.at[left])} at {left}"
                f" bytes and {rate_in_words(points.at[right])} at {right} bytes",
                "measure the sizes around it, and look at socket buffers and flow control",
                below=True,
            )
        )
    return tuple(findings)


def dropout_at_sizes(points: Points) -> list[AtSize]:
    """Return each inner size's bandwidth over the lesser of the best on either side."""
    rates = list(points.at.items())
    found = []
    for i, (size, rate) in enumerate(rates[1:-1], 1):
        left = max(rates[:i], key=lambda point: point[1])
        right = max(rates[i + 1 :], key=lambda point: point[1])
        found.append(AtSize(size, rate / min(left[1], right[1]), (left[0], right[0])))
    return found


def _judge(case: CaseCurves, settings: Any) -> tuple[Finding, ...]:
    if case.first.bandwidth_mb_s is None:
        return ()
    return dropout(case.first, where=case.where, settings=settings.dropout)


CRITERION = Criterion(
    6,
    {"dropout": DropoutSettings()},
    {"dropout": "dropout"},
    _judge,
    again=AgainAtSizes(
        bandwidths_of, dropout_at_sizes, "the bandwidth is {} of what both sides reach"
    ),
)
