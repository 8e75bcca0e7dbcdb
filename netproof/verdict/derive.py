"""References from sessions: medians, bounds from the sessions' spread, and the risks of a bound.

The bounds are a prediction interval: in a network that does not change, a given share of sessions
crosses one of all bounds together. The seller risks that a network as agreed, by a reference's
value, fails; the buyer, that one which is worse by a margin passes. Launches scatter around their
session's level, and sessions around the network's, by factors whose logarithms are normally
distributed. After the statistical acceptance of supercomputers by two parties (FTXS at SC21).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, variance
from typing import Any

from netproof.criteria.settings import ConfirmSettings
from netproof.errors import NetproofError
from netproof.measurement import interval, twin
from netproof.measurement.case import Case
from netproof.measurement.interval import Side, Variance
from netproof.measurement.landmarks import LANDMARKS, Better
from netproof.session import session
from netproof.session.measured import Measured
from netproof.session.session import CheckResult, Session
from netproof.site.partition import Partition
from netproof.verdict.limits import TIME_AT, Limits, variables
from netproof.verdict.references import XFAIL, Entry, NotThere, ReferenceFile

LEAST_SESSIONS = 3
"""Fewest values for a median absolute deviation."""

TWIN_ITSELF = "paired_mb_s"
"""Bandwidth of the healthy twin, which belongs to the machine and gets no reference."""

Results = dict[tuple[Any, ...], tuple[Case, CheckResult]]
"""The cases of a session by key, each with its last result."""


def results_of(sessions: Sequence[Session], system: str, partition: str | None) -> list[Results]:
    """Return each session's cases of a system.

    Raises NetproofError for too few sessions, one given twice, and one without a case.
    """
    seen: dict[Any, Path] = {}
    for stored in sessions:
        first_at = seen.setdefault(stored.info.get("uuid", stored.path), stored.path)
        if first_at is not stored.path:
            raise NetproofError(
                f"{stored.path}: is the session of {first_at} once more; each counts once"
            )
    if len(sessions) < LEAST_SESSIONS:
        raise NetproofError(
            f"{len(sessions)} of at least {LEAST_SESSIONS} sessions: fewer tell no spread; run"
            " 'reframe -c checks -r' again, on another day or other nodes"
        )
    every: list[Results] = []
    for stored in sessions:
        here = [one for one in stored.results if one.system == system]
        here = [one for one in here if partition in (None, one.partition)]
        every.append({one.case.key(): (one.case, one) for one in here if one.case is not None})
        if not every[-1]:
            where = f"{system}:{partition}" if partition else system
            raise NetproofError(f"{stored.path}: has no case of {where}")
    return every


def measured_alike(
    sessions: Sequence[Session], results: Sequence[CheckResult | None]
) -> tuple[list[Measured], str]:
    """Return what each session measured of a case, and why it makes no references, or empty."""
    measured, every = [], []
    for stored, result in zip(sessions, results, strict=True):
        name = stored.path.name
        if result is None:
            return [], f"{name} does not have it"
        if result.result not in session.GOOD_RESULTS:
            return [], f"{result.result}{f' in {result.phase}' if result.phase else ''} in {name}"
        if result.measured is None:
            return [], f"nothing was measured in {name}"
        measured.append(result.measured)
        every.append((name, result.extras))
    first, then = every[0]
    for name, extras in every[1:]:
        for which in ("partition_extras", "environment_extras"):
            before, now = then[which], extras[which]
            for key in sorted(before.keys() | now.keys()):
                was, is_now = before.get(key), now.get(key)
                if was != is_now:
                    return [], f"{key} was {was!r} in {first} and {is_now!r} in {name}"
    return measured, ""


def system_of(sessions: Sequence[Session]) -> str:
    """Return the only system of sessions; NetproofError where there are several, or none."""
    systems = sorted({stored.system("name one: SYSTEM") for stored in sessions})
    if len(systems) != 1:
        raise NetproofError(
            f"the sessions hold results of {len(systems)} systems ({', '.join(systems)}); name one:"
            " SYSTEM"
        )
    return systems[0]


MEDIAN_TO_MEAN = math.pi / 2
"""Variance of a median of normal values over that of their mean."""
LEAST_VARIANCE = 1e-8
"""Least variance of logarithms: values with the same four printed digits are equal."""
FEW_LAUNCHES = 3
"""With fewer in a session one slow launch would be the session's value."""
OCTAVE = (-0.5, 1.0)
"""Least tolerance of a size, below and above: sizes move in steps of the measured grid."""
SHARE_LIMIT = 102.0
"""Per cent of the line rate above which a bandwidth is an error of measurement."""
VALUE_DIGITS = 5
BOUND_STEPS = 10_000
WIDEST = 2.0
"""Bounds beyond half of the value or twice it are too wide for references."""
RISK = 0.05
"""Share of sessions that may cross one of all bounds, or be judged wrongly on either side."""
FLOOR = 0.1
"""Least tolerance, but for sizes."""
SPREAD_LIMIT = 0.1
"""Largest scaled MAD over the sessions, over their median."""
OUTSIDE_LIMIT = 0.1
"""Share of sessions that may lie outside their own bounds."""


@dataclass
class DerivedCase:
    """A case's new entries by variable, with remarks.

    ``check``: the class of its check; ``reason``: why the case makes no references, or empty;
    ``unchanged``: why an entry stays as it is; ``kept``: bounds that stay though it changes;
    ``outside``: a median lies beyond the present bounds, or there are none; ``launches``: the
    fewest of a session.
    """

    check: str
    case: Case
    entries: dict[str, Entry] = field(default_factory=dict)
    reason: str = ""
    unchanged: dict[str, str] = field(default_factory=dict)
    kept: dict[str, str] = field(default_factory=dict)
    outside: bool = False
    launches: int = 0


def derive(
    values: Sequence[float],
    variable: str,
    half_width: float,
    *,
    floor: float = FLOOR,
    spread_limit: float = SPREAD_LIMIT,
) -> Entry:
    """Return a variable's entry from the sessions' values, one each, in its unit.

    Its value is their median, rounded to five digits, and a size's to whole bytes. ``half_width``:
    from there to each bound, in logarithms. A share of the line rate gets no upper bound above
    102 %.
    Raises NetproofError with the reason where no reference can be made.
    """
    unit = _unit(variable)
    middle, listed = median(values), f"{_listed(values)} {unit}"
    if not all(0 < value < math.inf for value in values):
        raise NetproofError(f"values of {listed} take no relative bounds")
    spread = interval.MAD_OF_NORMAL * median(abs(value - middle) for value in values) / middle
    if spread > spread_limit:
        raise NetproofError(
            f"the sessions spread by {100 * spread:.1f} % ({listed}), and the limit is"
            f" {100 * spread_limit:g} %"
        )
    if half_width > math.log(WIDEST):
        times = f"{math.exp(half_width):.3g} times" if half_width < 9 else "thousands of times"
        raise NetproofError(
            f"{len(values)} sessions that spread like this ({listed}) would allow {times} the"
            " value; more sessions, and more launches in each, allow less"
        )
    digits = VALUE_DIGITS - 1 - math.floor(math.log10(middle))
    value = round(middle) if unit == "B" else round(middle, digits)
    below, above = OCTAVE if unit == "B" else (-floor, floor)
    lower = min(below, -_outward(-math.expm1(-half_width)))
    upper = max(above, _outward(math.expm1(half_width)))
    if variable == "line_rate_share":
        if value > SHARE_LIMIT:
            raise NetproofError(
                f"{value:g} % of the line rate is an error of measurement, see the partition's"
                " link_mbit_s, mtu and interface"
            )
        upper = min(upper, _inward(SHARE_LIMIT / value - 1))
    entry = [value, lower, upper, unit]
    limits = Limits.of_entry(entry)
    outside = [one for one in values if not limits.low <= one <= limits.high]
    if len(outside) > OUTSIDE_LIMIT * len(values):
        raise NetproofError(
            f"the sessions' {listed} make bounds of {_range(entry)}, and {_listed(outside)} lies"
            " outside; leave that session out, add more, or raise --floor"
        )
    return entry


def half_widths(
    several: Sequence[Mapping[str, Sequence[float]]], risk: float
) -> list[dict[str, float]]:
    """Return the distance of bounds from each variable's value in each case, in logarithms.

    ``several``: values of each case's variables, one a session. A further session crosses one of
    all bounds with a probability of ``risk``: Student's prediction intervals of logarithms around a
    median, with Bonferroni's correction. A variable with a value without a logarithm is left out.
    """
    own: dict[str, dict[int, Variance]] = {}
    for place, case in enumerate(several):
        for variable, values in case.items():
            if all(0 < value < math.inf for value in values):
                spread = variance([math.log(value) for value in values])
                estimated = Variance(max(spread, LEAST_VARIANCE), len(values) - 1)
                own.setdefault(variable, {})[place] = estimated
    made: list[dict[str, float]] = [{} for _ in several]
    bounds = sum(map(len, own.values()))
    # Differences between cases are estimated better from all variables than from one.
    beyond = interval.beyond_chance([*of.values()] for of in own.values())
    for variable, estimates in own.items():
        # Cases of a session share its conditions: together they count as all of them but one.
        freedom = [one.freedom for one in estimates.values()]
        shared = interval.in_common([*estimates.values()], sum(freedom) - max(freedom), beyond)
        for place, estimated in estimates.items():
            around_median = 1 + MEDIAN_TO_MEAN / len(several[place][variable])
            width = interval.moderated(estimated, shared).half_width(risk / bounds, around_median)
            made[place][variable] = width
    return made


def tightened(derived: Entry, standing: Entry) -> tuple[Entry, str]:
    """Return the derived entry with the tighter bound on each side, and which were kept.

    Raises NetproofError where the derived value lies outside the present bounds.
    """
    value, lower, upper, unit = derived
    stands, own = Limits.of_entry(standing), Limits.of_entry(derived)
    if not stands.low <= value <= stands.high:
        raise NetproofError(
            f"the sessions' median {_shown(value)} {unit} lies outside what stands,"
            f" {_range(standing)}"
        )
    kept = []
    if stands.low > own.low:
        lower = -_inward(1 - stands.low / value)
        kept.append(f"at least {_shown(stands.low)} {unit}")
    if stands.high < own.high:
        upper = _inward(stands.high / value - 1)
        kept.append(f"at most {_shown(stands.high)} {unit}")
    tighter = f"{' and '.join(kept)} stands, tighter than the sessions' {_range(derived)}"
    return [value, lower, upper, unit], tighter if kept else ""


def derived(
    sessions: Sequence[Session],
    references: ReferenceFile,
    system: str,
    partition: str | None = None,
    *,
    risk: float = RISK,
    floor: float = FLOOR,
    spread_limit: float = SPREAD_LIMIT,
    allow_looser: bool = False,
    per_size: bool = False,
) -> list[DerivedCase]:
    """Return new entries for every case of the sessions, in their order.

    A case gets none, with the reason, unless it passed and was settled in every session, in the
    same configuration. Raises as ``results_of``.
    """
    results = results_of(sessions, system, partition)
    from netproof.verdict import judge

    unsettled = [judge.unsettled_of(stored) for stored in sessions]
    cases: Results = {}
    for several in results:
        cases |= {key: one for key, one in several.items() if key not in cases}
    made: list[DerivedCase] = []
    fit: list[tuple[DerivedCase, dict[str, Entry], dict[str, list[float]]]] = []
    for key, (case, first) in cases.items():
        one = DerivedCase(first.name.split()[0], case)
        made.append(one)
        here = [several[key][1] if key in several else None for several in results]
        measured, one.reason = measured_alike(sessions, here)
        for stored, open_questions in zip(sessions, unsettled, strict=True):
            if not one.reason and key in open_questions and (why := open_questions[key][0]):
                more = f"; and {len(why) - 1} more" if len(why) > 1 else ""
                one.reason = f"inconclusive in {stored.path.name}: {why[0]}{more}"
        if one.reason:
            continue
        try:
            standing = references.find(one.check, case)
        except NotThere as error:
            one.reason, one.outside = f"{error}; add it with null for bounds", True
            continue
        for variable, stands in standing.items():
            unit = (stands[2] if stands[0] == XFAIL else stands)[3]
            if unit != _unit(variable):
                raise NetproofError(
                    f"{references.path}: {one.check}, {one.case}, {variable}: the unit is"
                    f" {unit!r}, and the check reports {_unit(variable)!r}"
                )
        known = [
            {
                name: value
                for name, (value, _) in variables(it).items()
                if value is not None
                and name != TWIN_ITSELF
                and (per_size or not name.startswith(TIME_AT))
            }
            for it in measured
        ]
        values: dict[str, list[float]] = {}
        for variable in dict.fromkeys(name for it in known for name in it):
            found = [it[variable] for it in known if variable in it]
            if len(found) == len(known):
                values[variable] = found
            else:
                one.unchanged[variable] = f"{len(found)} of {len(known)} sessions define it"
        one.launches = min(len(it.launches) for it in measured)
        fit.append((one, standing, values))
    widths = half_widths([values for *_, values in fit], risk)
    for (one, standing, values), width in zip(fit, widths, strict=True):
        for variable, found in values.items():
            old = standing.get(variable)
            if old is not None and old[0] == XFAIL:
                one.unchanged[variable] = f"{XFAIL}, {old[1]}"
                continue
            try:
                around = width.get(variable, math.inf)
                entry = derive(found, variable, around, floor=floor, spread_limit=spread_limit)
            except NetproofError as error:
                one.unchanged[variable] = str(error)
                continue
            if old is not None and not allow_looser:
                try:
                    entry, kept = tightened(entry, old)
                except NetproofError as error:
                    one.unchanged[variable], one.outside = str(error), True
                    continue
                one.kept |= {variable: kept} if kept else {}
            if entry != old:
                one.entries[variable] = entry
    return made


def _unit(variable: str) -> str:
    """Return the unit of a variable; those that no table names are times at a size."""
    if variable in twin.VARIABLES:
        return "%"
    return LANDMARKS[variable].unit if variable in LANDMARKS else "us"


def _outward(distance: float) -> float:
    return math.ceil(round(distance * 1000, 6)) / 1000


def _inward(distance: float) -> float:
    """Round a bound's distance from the value down, so that no more passes."""
    return math.floor(round(distance * BOUND_STEPS, 5)) / BOUND_STEPS


def _range(entry: Entry) -> str:
    limits = Limits.of_entry(entry)
    return f"{_shown(limits.low)} to {_shown(limits.high)} {entry[3]}"


def _shown(value: float) -> str:
    return f"{value:.5g}" if abs(value) < 1e5 or math.isinf(value) else f"{value:.0f}"


def _listed(values: Sequence[float]) -> str:
    return ", ".join(_shown(value) for value in values)


_CONFIRM = ConfirmSettings()

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
        return math.sqrt(self.between**2 + _of_median(self.within**2, launches))


def _of_median(of_one: float, launches: int) -> float:
    """Return the variance of the median of so many launches, by that ``of_one``."""
    return of_one * (MEDIAN_TO_MEAN if launches > 2 else 1.0) / launches


def scatter(sessions: Sequence[Sequence[float]]) -> Scatter:
    """Estimate the scatter from the values of each launch of each session, all above 0.

    The scatter of launches is subtracted between sessions, two at least.
    """
    import numpy as np

    logs = [np.log(launches) for launches in sessions]
    freedom = sum(len(one) - 1 for one in logs)
    within = 0.0
    if freedom:
        within = math.sqrt(sum(float(((one - one.mean()) ** 2).sum()) for one in logs) / freedom)
    middles = [median(one) for one in logs]
    explained = [_of_median(within**2, len(one)) for one in logs]
    between = float(np.var(middles, ddof=1)) - sum(explained) / len(explained)
    launches = sum(map(len, logs))
    return Scatter(within, math.sqrt(max(between, 0.0)), len(sessions), launches)


def outcomes(
    ratio: float,
    bound: float,
    scattering: Scatter,
    first: int = 3,
    confirm: ConfirmSettings = _CONFIRM,
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
    import numpy as np

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
    scattering: Scatter, margin: float, *, launches: int = 3, larger: bool = True
) -> AcceptancePlan:
    """Return the fewest sessions with which neither risks more than ``RISK``, and their bound.

    ``margin``: the share by which a network is worse that must not pass; ``larger``: whether larger
    is better. Halfway between the two networks, in logarithms, both risks are equal. Raises
    NetproofError for a margin that is no share, and where no plan is found.
    """
    if not 0 < margin < 1:
        raise NetproofError(f"a margin of {margin:g} is no share: give 0.05 for a twentieth")
    import scipy

    distance = -math.log(1 - margin)
    error = scattering.of_median(launches)
    needed = (2 * float(scipy.special.ndtri(1 - RISK)) * error / distance) ** 2
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

    ``margin``: the share by which a network is worse that must not pass. Raises as ``results_of``.
    """
    several = results_of(sessions, system, partition)
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
        site = Partition.model_validate(first.extras["partition_extras"])
        fewest = min(len(one.first().launches) for one in measured)
        alone = [[it.with_launches([one]).landmarks for one in it.launches] for it in measured]
        for name, landmark in LANDMARKS.items():
            entry = entries.get(name)
            neither = landmark.better is Better.NEITHER or name == TWIN_ITSELF
            if neither or (entry is not None and entry[0] == XFAIL):
                continue
            scale = 100 if landmark.per_cent else 1
            values = [[scale * (getattr(one, name) or 0.0) for one in it] for it in alone]
            if min(map(min, values)) <= 0:
                continue
            larger, scattering = landmark.better is Better.LARGER, scatter(values)
            agreed, bound, curve = median(map(median, values)), None, {}
            confirm, made, why = site.settings().confirm, None, ""
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
            figures = (landmark.unit, agreed, scattering, bound, curve)
            found.append(ReferenceRisk(case, name, *figures, made, why))
    return found, without
