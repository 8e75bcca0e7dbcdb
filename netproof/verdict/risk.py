"""Risks of buyer and seller by a bound, and plans that make both small.

Launches scatter around their session's level, and sessions around the network's, by factors whose
logarithms are normally distributed. The seller risks that a network as agreed, by a reference's
value, fails; the buyer, that one which is worse by a margin passes. After the statistical
acceptance of supercomputers by two parties (FTXS at SC21), with the verdict's own rule.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
import scipy

from netproof.criteria.settings import ConfirmSettings
from netproof.errors import NetproofError
from netproof.measurement import interval
from netproof.measurement.case import Case
from netproof.measurement.interval import Side
from netproof.measurement.landmark_table import LANDMARKS, Better
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

    The scatter of launches is subtracted between sessions, two at least.
    """
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
    more = range(first + confirm.launches, confirm.most_launches + 1)
    for _ in range(tries):
        level = math.log(ratio) + scattering.between * random.standard_normal()
        noise = scattering.within * random.standard_normal(confirm.most_launches)
        values = np.exp(level + noise).tolist()
        for count in (first, *more):
            middle = median(values[:count])
            found = interval.of_median(values[:count]) or (middle, middle)
            side = interval.side(found, *ends)
            if side is Side.WITHIN or (side is Side.BEYOND and count > first):
                break
        counts[side] += 1
    return {side: count / tries for side, count in counts.items()}


def _worse(bound: float, margin: float) -> float:
    """Return the ratio of a network that is worse by a margin, on the bound's side of 1."""
    return 1 - margin if bound < 1 else 1 / (1 - margin)


@dataclass(frozen=True)
class AcceptancePlan:
    """An acceptance of several sessions: the mean of their logarithms against a bound.

    ``bound``: over the agreed value; ``sessions`` of ``launches`` each; ``risk``: of either side.
    """

    bound: float
    sessions: int
    launches: int
    risk: float


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
    risked = float(scipy.special.ndtr(-half * math.sqrt(sessions) / error)) if error > 0 else 0.0
    return AcceptancePlan(math.exp(-half if larger else half), sessions, launches, risked)


MARGINS = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5)
"""Margins of an operating-characteristic curve, besides the one that is asked for."""


@dataclass(frozen=True)
class ReferenceRisk:
    """Risk by a bound of a case, or by a landmark that has none.

    ``agreed``: the reference's value, or else the sessions' median, in ``unit``; ``bound``: that on
    the worse side, over the agreed value, None without one, and ``curve`` its operating
    characteristic: ``outcomes`` by the ratio to the agreed value; ``plan``: with small risks for
    both, None for the reason ``why``.
    """

    case: Case
    variable: str
    unit: str
    agreed: float
    scatter: Scatter
    bound: float | None
    curve: Mapping[float, dict[Side, float]]
    plan: AcceptancePlan | None
    why: str = ""

    def seller(self) -> float:
        """Return the share of sessions in which a network as agreed does not pass."""
        return 1 - self.curve[1.0][Side.WITHIN]

    def buyer(self, margin: float) -> float:
        """Return the share in which a network passes that is worse by one of the margins."""
        return self.curve[_worse(self.bound or 1.0, margin)][Side.WITHIN]


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
    for key, (case, first) in several[0].items():
        results = [one[key][1].measured for one in several if key in one]
        measured = [one for one in results if one]
        if len(measured) < len(sessions):
            without[case] = f"{len(measured)} of {len(sessions)} sessions have measured it"
            continue
        try:
            entries = references.find(first.name.split()[0], case)
        except NotThere:
            entries = {}
        extras = Partition.model_validate(first.extras["partition_extras"])
        confirm = extras.settings().confirm
        fewest = min(len(one.first().launches) for one in measured)
        for name, landmark in LANDMARKS.items():
            entry = entries.get(name)
            neither = landmark.better is Better.NEITHER or name == "paired_mb_s"
            if neither or (entry is not None and entry[0] == XFAIL):
                continue
            values = [_landmark_by_launch(session, name) for session in measured]
            if not all(values):
                continue
            larger, scattering = landmark.better is Better.LARGER, scatter(values)
            agreed, bound, curve = median(map(median, values)), None, {}
            made, why = None, ""
            if entry is not None and entry[0]:
                agreed, limits = entry[0], Limits.of_entry(entry)
                over = (limits.low if larger else limits.high) / agreed
                if 0 < over < 1 if larger else 1 < over < math.inf:
                    bound = over
                    ratios = [1.0, *(_worse(over, one) for one in sorted({*MARGINS, margin}))]
                    curve = {
                        ratio: outcomes(
                            ratio, over, scattering, fewest, confirm, tries=tries, seed=place
                        )
                        for place, ratio in enumerate(ratios)
                    }
            try:
                made = plan(scattering, margin, launches=fewest, larger=larger)
            except NetproofError as error:
                why = str(error)
            unit = landmark.unit
            figures = (unit, agreed, scattering, bound, curve)
            found.append(ReferenceRisk(case, name, *figures, made, why))
    return found, without


def _landmark_by_launch(measured: Measured, variable: str) -> list[float]:
    """Return a landmark of each launch, in the reference's unit; empty where one lacks it."""
    scale = 100 if LANDMARKS[variable].per_cent else 1
    alone = [measured.with_launches([launch]).landmarks for launch in measured.launches]
    values = [scale * (getattr(one, variable) or 0.0) for one in alone]
    return values if min(values) > 0 else []
