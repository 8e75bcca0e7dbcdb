"""Risks of buyer and seller by a bound, and plans that make both small.

A reference has a ``value``, that of a network as agreed, and a bound on one side of it. Launches
scatter around their session's level, and sessions around the network's, both by factors whose
logarithms are normally distributed. The seller risks that a network as agreed fails; the buyer,
that one which is worse by a margin passes. After the statistical acceptance of supercomputers by
two parties (FTXS at SC21), with the verdict's own rule instead of a test.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
import scipy

from netproof.criteria import ConfirmSettings
from netproof.errors import NetproofError
from netproof.measurement import interval
from netproof.measurement.case import Case
from netproof.measurement.interval import Side
from netproof.measurement.landmark_table import LANDMARKS, Better
from netproof.measurement.landmarks import landmarks
from netproof.session.measured import Measured
from netproof.session.session import Session
from netproof.site.partition import Partition
from netproof.verdict import derive
from netproof.verdict.derive import MEDIAN_TO_MEAN
from netproof.verdict.limits import Limits
from netproof.verdict.references import XFAIL, NotThere, ReferenceFile

RISK = 0.05
"""Largest risk of each of the two."""

CONFIRM = ConfirmSettings()
"""How launches are added where a site says nothing."""

MOST_SESSIONS = 1000
"""Most sessions of a plan."""


@dataclass(frozen=True)
class Scatter:
    """Standard deviations of logarithms: launches ``within`` sessions, and ``between`` sessions.

    ``sessions``, ``launches``: numbers of each that they are estimated from.
    """

    within: float
    between: float
    sessions: int
    launches: int

    def of_median(self, launches: int) -> float:
        """Return the standard deviation of a session's log median of so many launches."""
        factor = MEDIAN_TO_MEAN if launches > 2 else 1.0
        return math.hypot(self.between, self.within * math.sqrt(factor / launches))


def scatter(sessions: Sequence[Sequence[float]]) -> Scatter:
    """Estimate the scatter from the values of each launch of each session, all above 0.

    The scatter of launches is subtracted between sessions. Raises NetproofError for fewer than two
    sessions, and for values that have no logarithm.
    """
    if len(sessions) < 2:
        raise NetproofError("one session does not tell how far sessions lie apart")
    if not all(0 < value < math.inf for launches in sessions for value in launches):
        raise NetproofError("a value of 0 or less has no scatter")
    logs = [np.log(launches) for launches in sessions]
    freedom = sum(len(one) - 1 for one in logs)
    within = 0.0
    if freedom:
        within = math.sqrt(sum(float(((one - one.mean()) ** 2).sum()) for one in logs) / freedom)
    middles = [median(one) for one in logs]
    explained = [within**2 * (MEDIAN_TO_MEAN if len(one) > 2 else 1.0) / len(one) for one in logs]
    between = float(np.var(middles, ddof=1)) - sum(explained) / len(explained)
    launches = sum(map(len, logs))
    return Scatter(within, math.sqrt(max(between, 0.0)), len(sessions), launches)


def outcomes(
    ratio: float,
    bound: float,
    scattering: Scatter,
    first: int = 3,
    confirm: ConfirmSettings = CONFIRM,
    *,
    tries: int = 1000,
    seed: int = 0,
) -> dict[Side, float]:
    """Simulate sessions on a network whose value is ``ratio`` of the agreed one.

    Return the shares that pass (within), fail (beyond) and stay inconclusive.

    ``bound``: over the agreed value, below 1 where larger is better, above 1 where smaller is. By
    the verdict's rule the interval of the median over the launches has to lie on one side of the
    bound. If the ``first`` ones do not pass, launches are added until it does, or as many are made
    as ``confirm`` allows.
    """
    random = np.random.default_rng(seed)
    counts = dict.fromkeys(Side, 0)
    ends = (bound, math.inf) if bound < 1 else (0.0, bound)
    for _ in range(tries):
        level = math.log(ratio) + scattering.between * random.standard_normal()
        noise = scattering.within * random.standard_normal(confirm.most_launches)
        counts[_decided(np.exp(level + noise).tolist(), ends, first, confirm)] += 1
    return {side: count / tries for side, count in counts.items()}


def _decided(
    values: Sequence[float], ends: tuple[float, float], first: int, confirm: ConfirmSettings
) -> Side:
    side = _side(values[:first], ends)
    if side is Side.WITHIN:
        return side
    for count in range(first + confirm.launches, confirm.most_launches + 1):
        side = _side(values[:count], ends)
        if side is not Side.ASTRIDE:
            return side
    return side


def _side(values: Sequence[float], ends: tuple[float, float]) -> Side:
    found = interval.of_median(values)
    middle = median(values)
    return interval.side(found or (middle, middle), *ends)


@dataclass(frozen=True)
class OperatingCurve:
    """An operating-characteristic curve: ratios to the agreed value, and their outcomes."""

    bound: float
    ratios: tuple[float, ...]
    shares: tuple[dict[Side, float], ...]

    def seller(self) -> float:
        """Return the share of sessions in which a network as agreed does not pass."""
        return 1 - self._at(1.0)

    def buyer(self, margin: float) -> float:
        """Return the share in which a network passes that is worse by ``margin``."""
        worse = 1 - margin if self.bound < 1 else 1 / (1 - margin)
        return self._at(worse)

    def _at(self, ratio: float) -> float:
        """Return the share that passes."""
        for one, shares in zip(self.ratios, self.shares, strict=True):
            if math.isclose(one, ratio):
                return shares[Side.WITHIN]
        raise NetproofError(f"the curve has no point at {ratio:g}")


def characteristic(
    bound: float,
    scattering: Scatter,
    margins: Sequence[float],
    first: int = 3,
    confirm: ConfirmSettings = CONFIRM,
    *,
    tries: int = 1000,
    seed: int = 0,
) -> OperatingCurve:
    """Return the curve of a bound, at the agreed value and at each margin below or above it.

    ``margins``: shares by which the network is worse, 0.1 for a tenth.
    """
    ratios = [1.0, *(1 - margin if bound < 1 else 1 / (1 - margin) for margin in margins)]
    shares = [
        outcomes(ratio, bound, scattering, first, confirm, tries=tries, seed=seed + place)
        for place, ratio in enumerate(ratios)
    ]
    return OperatingCurve(bound, tuple(ratios), tuple(shares))


@dataclass(frozen=True)
class AcceptancePlan:
    """An acceptance of several sessions: the mean of their logarithms against a bound.

    ``bound``: over the agreed value; ``sessions`` of ``launches`` each; ``seller`` and ``buyer``:
    their risks.
    """

    bound: float
    sessions: int
    launches: int
    seller: float
    buyer: float


def plan(
    scattering: Scatter,
    margin: float,
    *,
    launches: int = 3,
    larger: bool = True,
    risk: float = RISK,
) -> AcceptancePlan:
    """Return the fewest sessions with which neither risks more than ``risk``, and their bound.

    ``margin``: the share by which a network is worse that must not pass; ``larger``: whether larger
    is better. Halfway between the two networks, in logarithms, both risks are equal. Raises
    NetproofError for a margin that is no share, and where no plan is found.
    """
    if not 0 < margin < 1:
        raise NetproofError(f"a margin of {margin:g} is no share: give 0.05 for a twentieth")
    distance = -math.log(1 - margin)
    error = scattering.of_median(launches)
    needed = (2 * float(scipy.special.ndtri(1 - risk)) * error / distance) ** 2
    sessions = max(1, math.ceil(needed))
    if sessions > MOST_SESSIONS:
        raise NetproofError(
            f"sessions scatter by {error:.1%}, so that a margin of {margin:.1%} takes more than"
            f" {MOST_SESSIONS} of them"
        )
    half = distance / 2
    risked = 0.0
    if error > 0:
        risked = float(scipy.special.ndtr(-half * math.sqrt(sessions) / error))
    bound = math.exp(-half if larger else half)
    return AcceptancePlan(bound, sessions, launches, risked, risked)


MARGINS = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5)
"""Margins of an operating-characteristic curve, besides the one that is asked for."""


@dataclass(frozen=True)
class ReferenceRisk:
    """Risk by a bound of a case, or by a landmark that has none.

    ``agreed``: the reference's value, or else the sessions' median, in ``unit``; ``curve``: of the
    bound on the worse side, None without one; ``plan``: with small risks for both, None for the
    reason ``why``.
    """

    case: Case
    variable: str
    unit: str
    agreed: float
    scatter: Scatter
    curve: OperatingCurve | None
    plan: AcceptancePlan | None
    why: str = ""


def risks_of_sessions(
    sessions: Sequence[Session],
    references: ReferenceFile,
    system: str,
    partition: str | None,
    margin: float,
    *,
    tries: int = 1000,
) -> tuple[list[ReferenceRisk], dict[Case, str]]:
    """Return the risks of each landmark with a better side, and why cases have none.

    ``margin``: the share by which a network is worse that must not pass. Raises NetproofError for
    fewer than ``derive.LEAST_SESSIONS`` sessions, and as ``derive.results_of`` does.
    """
    if len(sessions) < derive.LEAST_SESSIONS:
        raise NetproofError(
            f"{len(sessions)} of at least {derive.LEAST_SESSIONS} sessions: fewer do not tell"
            " how far sessions lie apart"
        )
    several = [derive.results_of(stored, system, partition) for stored in sessions]
    found: list[ReferenceRisk] = []
    without: dict[Case, str] = {}
    for key, first in several[0].items():
        results = [one.get(key) for one in several]
        measured = [one.measured for one in results if one is not None and one.measured]
        if len(measured) < len(sessions):
            without[first.case] = f"{len(measured)} of {len(sessions)} sessions have measured it"
            continue
        try:
            entries = references.find(first.name.split()[0], first.case)
        except NotThere:
            entries = {}
        extras = Partition.model_validate(first.extras["partition_extras"])
        confirm = extras.settings().confirm
        fewest = min(len(one.first().launches) for one in measured)
        for name, one in LANDMARKS.items():
            if one.better is Better.NEITHER or name == "paired_mb_s":
                continue
            values = [_landmark_by_launch(session, name) for session in measured]
            if not all(values):
                continue
            limits = entries.get(name)
            if limits is not None and limits[0] == XFAIL:
                continue
            found.append(_risk(first.case, name, values, limits, fewest, confirm, margin, tries))
    return found, without


def _risk(
    case: Case,
    variable: str,
    values: Sequence[Sequence[float]],
    entry: Sequence | None,
    first: int,
    confirm: ConfirmSettings,
    margin: float,
    tries: int,
) -> ReferenceRisk:
    landmark = LANDMARKS[variable]
    larger = landmark.better is Better.LARGER
    scattering = scatter(values)
    agreed = entry[0] if entry is not None and entry[0] else median(map(median, values))
    curve = None
    if entry is not None and entry[0]:
        limits = Limits.of_entry(entry)
        bound = (limits.low if larger else limits.high) / agreed
        if 0 < bound < 1 if larger else 1 < bound < float("inf"):
            margins = sorted({*MARGINS, margin})
            curve = characteristic(bound, scattering, margins, first, confirm, tries=tries)
    try:
        made, why = plan(scattering, margin, launches=first, larger=larger), ""
    except NetproofError as error:
        made, why = None, str(error)
    return ReferenceRisk(case, variable, landmark.unit, agreed, scattering, curve, made, why)


def _landmark_by_launch(measured: Measured, variable: str) -> list[float]:
    """Return a landmark of each launch, in the reference's unit; empty where one lacks it."""
    scale = 100 if LANDMARKS[variable].per_cent else 1
    values = []
    for launch in measured.launches:
        if variable == "paired_share":
            found = measured.with_launches([launch]).landmarks
        else:
            most, least = measured.line_rate_mb_s, measured.peak_from
            found = landmarks(launch.curve, most, peak_from=least)
        value = getattr(found, variable)
        if value is None or value <= 0:
            return []
        values.append(scale * value)
    return values
