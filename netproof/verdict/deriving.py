"""References from sessions: the median of each variable, with bounds from the sessions' spread."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from netproof.errors import NetproofError
from netproof.measurement import twin
from netproof.measurement.case import Case
from netproof.measurement.landmark_table import LANDMARKS
from netproof.session import session
from netproof.session.session import CheckResult, Session
from netproof.verdict import unsettled
from netproof.verdict.references import XFAIL, Entry, NotThere, ReferenceFile

LEAST_SESSIONS = 3
"""Of fewer values a median absolute deviation says nothing."""
MAD_TO_SIGMA = 1.4826
"""What makes the MAD of normally distributed values their standard deviation."""
OCTAVE = (-0.5, 1.0)
"""Floor of a size's tolerance, below and above: sizes move in steps of the grid measured."""
SHARE_LIMIT = 102.0
"""Per cent of the line rate above which a bandwidth is an error of measurement (criterion 8)."""
VALUE_DIGITS = 5
BOUND_DECIMALS = 4

DERIVED, NOT_ALL_DERIVED = 0, 2
"""Exit statuses of ``netproof references derive``, which judges no network."""


@dataclass(frozen=True)
class DerivingSettings:
    """How wide derived bounds are, and what is refused.

    The spread is the MAD over the sessions, scaled to a standard deviation, over their median.
    ``factor``: tolerance over spread. ``floor``: the least tolerance, but for sizes, whose floor
    is an octave. ``spread_limit``: the largest spread that makes a reference.
    ``outside_limit``: the share of sessions that may lie outside the bounds they make.

    Raises NetproofError for settings that make no bounds.
    """

    factor: float = 4.0
    floor: float = 0.1
    spread_limit: float = 0.1
    outside_limit: float = 0.1

    def __post_init__(self) -> None:
        if not 0 < self.floor < 1:
            raise NetproofError(
                f"a floor of {self.floor:g} makes no bounds; 0.1 is a tenth, and 1 too much"
            )
        if not 0 <= self.spread_limit < 1 / self.factor:
            raise NetproofError(
                f"a spread limit of {self.spread_limit:g} makes no bounds: the tolerance is"
                f" {self.factor:g} times the spread and has to stay below 1, so the limit lies"
                f" below {1 / self.factor:g}"
            )


@dataclass(frozen=True)
class Reference:
    """A variable's reference: ``lower`` and ``upper`` relative to ``value``, None for no bound."""

    value: float
    lower: float | None
    upper: float | None
    unit: str

    def entry(self) -> Entry:
        """As it stands in a file of references."""
        return [self.value, self.lower, self.upper, self.unit]

    def bounds(self) -> tuple[float, float]:
        """The least and the largest value that pass, as ReFrame reckons them."""
        low = -math.inf if self.lower is None else self.lower
        high = math.inf if self.upper is None else self.upper
        if self.value == 0:
            return low, high
        return self.value * (1 + low), self.value * (1 + high)

    def __str__(self) -> str:
        """As it stands in a sentence: what passes."""
        low, high = self.bounds()
        return f"{_shown(low)} to {_shown(high)} {self.unit}"


@dataclass(frozen=True)
class DerivedCase:
    """A case's new entries by variable, and what is to be said of it.

    ``check`` is the class of its check. ``reason``: why the case makes no references, empty where
    it does. ``left``: why a variable's entry stays as it is; ``kept``: which bounds stay though
    the entry changes. ``outside``: a median lies beyond the bounds that stand, or there are none.
    """

    check: str
    case: Case
    entries: dict[str, Entry] = field(default_factory=dict)
    reason: str = ""
    left: dict[str, str] = field(default_factory=dict)
    kept: dict[str, str] = field(default_factory=dict)
    outside: bool = False


def derive(
    values: Sequence[float],
    variable: str,
    settings: DerivingSettings = DerivingSettings(),
) -> Reference:
    """The reference that the sessions' values of a variable make.

    ``values``: one for each session, in the variable's unit; the value is their median, rounded
    to five digits, and a size's to whole bytes. A share of the line rate gets no upper bound
    above 102 %. Raises NetproofError with the reason where they make none.
    """
    unit = _unit(variable)
    middle = median(values)
    if not (math.isfinite(middle) and middle > 0):
        raise NetproofError(f"a median of {middle:g} {unit} takes no relative bounds")
    spread = MAD_TO_SIGMA * median(abs(value - middle) for value in values) / middle
    if spread > settings.spread_limit:
        raise NetproofError(
            f"the sessions spread by {100 * spread:.1f} % ({_listed(values)} {unit}), and the limit"
            f" is {100 * settings.spread_limit:g} %"
        )
    value = round(middle) if unit == "B" else _rounded(middle)
    tolerance = math.ceil(round(settings.factor * spread * 1000, 6)) / 1000
    below, above = OCTAVE if unit == "B" else (-settings.floor, settings.floor)
    lower, upper = min(below, -tolerance), max(above, tolerance)
    if unit == "%":
        if value > SHARE_LIMIT:
            raise NetproofError(
                f"{value:g} % of the line rate is an error of measurement, see the partition's"
                " link_mbit_s, mtu and interface"
            )
        upper = min(upper, _inward(SHARE_LIMIT / value - 1))
    reference = Reference(value, lower, upper, unit)
    low, high = reference.bounds()
    outside = [one for one in values if not low <= one <= high]
    if len(outside) > settings.outside_limit * len(values):
        raise NetproofError(
            f"the sessions' {_listed(values)} {unit} make bounds of {reference}, and"
            f" {_listed(outside)} lies outside; leave that session out, add more, or raise --floor"
        )
    return reference


def tightened(derived: Reference, standing: Reference) -> tuple[Reference, str]:
    """The derived reference with the tighter bound of the two on each side, and what was kept.

    Raises NetproofError where the derived value lies outside the bounds that stand.
    """
    low, high = standing.bounds()
    if not low <= derived.value <= high:
        raise NetproofError(
            f"the sessions' median {_shown(derived.value)} {derived.unit} lies outside what stands,"
            f" {standing}"
        )
    own_low, own_high = derived.bounds()
    lower, upper, kept = derived.lower, derived.upper, []
    if low > own_low:
        lower = -_inward(1 - low / derived.value)
        kept.append(f"at least {_shown(low)} {derived.unit}")
    if high < own_high:
        upper = _inward(high / derived.value - 1)
        kept.append(f"at most {_shown(high)} {derived.unit}")
    text = f"{' and '.join(kept)} stands, tighter than the sessions' {derived}" if kept else ""
    return Reference(derived.value, lower, upper, derived.unit), text


def derived(
    sessions: Sequence[Session],
    references: ReferenceFile,
    system: str,
    partition: str | None = None,
    *,
    settings: DerivingSettings = DerivingSettings(),
    allow_looser: bool = False,
    per_size: bool = False,
) -> list[DerivedCase]:
    """What the sessions make of every case that one of them has, in the order they have them.

    A case that did not pass in every session, or not in the same configuration, or that one of
    them leaves open, makes nothing, and its remark says so. Raises NetproofError for too few
    sessions, one given twice, and one without a case of the system, or of the partition.
    """
    _insist_on_sessions(sessions)
    results = [results_of(stored, system, partition) for stored in sessions]
    left_open = [unsettled.of_session(stored) for stored in sessions]
    cases: dict[tuple, CheckResult] = {}
    for several in results:
        for key, result in several.items():
            cases.setdefault(key, result)
    made = []
    for key, first in cases.items():
        case, check = first.case, first.name.split()[0]
        here = [several.get(key) for several in results]
        reason = _unfit(sessions, here) or _open(
            sessions, [several[key].all if key in several else () for several in left_open]
        )
        if reason:
            made.append(DerivedCase(check, case, reason=reason))
            continue
        try:
            standing = references.find(check, case)
        except NotThere as error:
            reason = f"{error}; add it with null for bounds"
            made.append(DerivedCase(check, case, reason=reason, outside=True))
            continue
        for variable, stands in standing.items():
            unit = (stands[2] if stands[0] == XFAIL else stands)[3]
            if unit != _unit(variable):
                raise NetproofError(
                    f"{references.path}: {check}, {case}, {variable}: the unit is {unit!r}, and"
                    f" the check reports {_unit(variable)!r}"
                )
        values, left = _values([result.measured for result in here], per_size=per_size)
        made.append(_made(check, case, standing, values, left, settings, allow_looser))
    return made


def _made(
    check: str,
    case: Case,
    standing: Mapping[str, Entry],
    values: Mapping[str, Sequence[float]],
    left: Mapping[str, str],
    settings: DerivingSettings,
    allow_looser: bool,
) -> DerivedCase:
    """A case's entries from the sessions' values; ``left`` are the variables without some."""
    entries, left, kept, outside = {}, dict(left), {}, False
    for variable, several in values.items():
        stands = standing.get(variable)
        if stands is not None and stands[0] == XFAIL:
            left[variable] = f"{XFAIL}, {stands[1]}"
            continue
        try:
            derived = derive(several, variable, settings)
        except NetproofError as error:
            left[variable] = str(error)
            continue
        if stands is not None and not allow_looser:
            try:
                derived, text = tightened(derived, Reference(*stands))
            except NetproofError as error:
                left[variable], outside = str(error), True
                continue
            if text:
                kept[variable] = text
        if derived.entry() != stands:
            entries[variable] = derived.entry()
    return DerivedCase(check, case, entries, left=left, kept=kept, outside=outside)


def _insist_on_sessions(sessions: Sequence[Session]) -> None:
    seen: dict[Any, Path] = {}
    for stored in sessions:
        identity = stored.info.get("uuid", stored.path)
        if identity in seen:
            raise NetproofError(
                f"{stored.path}: is the session of {seen[identity]} once more; each counts once"
            )
        seen[identity] = stored.path
    if len(sessions) < LEAST_SESSIONS:
        raise NetproofError(
            f"{len(sessions)} of at least {LEAST_SESSIONS} sessions: fewer tell no spread; run"
            " 'reframe -c checks -r' again, on another day or other nodes"
        )


def results_of(stored: Session, system: str, partition: str | None) -> dict[tuple, CheckResult]:
    """A session's cases of a system, by key; one that ReFrame ran again stands as it ended."""
    found = {
        result.case.key(): result
        for result in stored.results
        if result.case is not None
        and result.system == system
        and partition in (None, result.partition)
    }
    if not found:
        where = f"{system}:{partition}" if partition else system
        raise NetproofError(f"{stored.path}: has no case of {where}")
    return found


def _unfit(sessions: Sequence[Session], results: Sequence[CheckResult | None]) -> str:
    """Why a case makes no references; empty where it does."""
    for stored, result in zip(sessions, results, strict=True):
        if result is None:
            return f"{stored.path.name} does not have it"
        if result.result not in session.GOOD_RESULTS:
            phase = f" in {result.phase}" if result.phase else ""
            return f"{result.result}{phase} in {stored.path.name}"
        if result.measured is None:
            return f"nothing was measured in {stored.path.name}"
    first = results[0].measured
    for stored, result in zip(sessions[1:], results[1:], strict=True):
        for extras in ("partition_extras", "environment_extras"):
            before, now = first[extras], result.measured[extras]
            for key in sorted(before.keys() | now.keys()):
                if before.get(key) != now.get(key):
                    return (
                        f"{key} was {before.get(key)!r} in"
                        f" {sessions[0].path.name} and {now.get(key)!r} in {stored.path.name}"
                    )
    return ""


def _open(sessions: Sequence[Session], reasons: Sequence[Sequence[str]]) -> str:
    """Which session has not settled a case, and the first of its ``reasons``; empty for none."""
    for stored, several in zip(sessions, reasons, strict=True):
        if several:
            more = f"; and {len(several) - 1} more" if len(several) > 1 else ""
            return f"inconclusive in {stored.path.name}: {several[0]}{more}"
    return ""


def _values(
    measured: Sequence[Mapping[str, Any]], *, per_size: bool
) -> tuple[dict[str, list[float]], dict[str, str]]:
    """Each variable's value in every session; a reason for one that only some of them define."""
    several = [_of_session(one, per_size=per_size) for one in measured]
    values, left = {}, {}
    for variable in dict.fromkeys(name for one in several for name in one):
        found = [one[variable] for one in several if variable in one]
        if len(found) == len(several):
            values[variable] = found
        else:
            left[variable] = f"{len(found)} of {len(several)} sessions define it"
    return values, left


def _unit(variable: str) -> str:
    """The unit of a performance variable; those not named in a table are times at a size."""
    if variable in twin.VARIABLES:
        return "%"
    return LANDMARKS[variable].unit if variable in LANDMARKS else "us"


def _of_session(measured: Mapping[str, Any], *, per_size: bool) -> dict[str, float]:
    landmarks, curve = measured["landmarks"], measured["curve"]
    values = {
        name: 100 * landmarks[name] if one.per_cent else landmarks[name]
        for name, one in LANDMARKS.items()
        if landmarks.get(name) is not None
    }
    if per_size:
        values |= {
            f"time_us_{size}": time
            for size, time in zip(curve["sizes"], curve["time_us"], strict=True)
        }
    return values


def reference_folder() -> Path:
    """Folder of the references, which RFM_REFERENCE_PREFIX names; NetproofError without."""
    folder = os.environ.get("RFM_REFERENCE_PREFIX")
    if not folder:
        raise NetproofError("RFM_REFERENCE_PREFIX is not set; run '. ci/activate'")
    return Path(folder)


def system_of(sessions: Sequence[Session]) -> str:
    """The one system that sessions are of; NetproofError where they are of several, or none."""
    systems = {result.system for stored in sessions for result in stored.results}
    if len(systems) != 1:
        found = ", ".join(sorted(systems)) or "none"
        raise NetproofError(
            f"the sessions hold results of {len(systems)} systems ({found}); name one with --system"
        )
    return systems.pop()


def _rounded(value: float) -> float:
    return round(value, VALUE_DIGITS - 1 - math.floor(math.log10(value)))


def _inward(distance: float) -> float:
    """A bound's distance from the value, rounded so that it never lets more pass."""
    scale = 10**BOUND_DECIMALS
    return math.floor(round(distance * scale, 5)) / scale


def _shown(value: float) -> str:
    return f"{value:.5g}" if abs(value) < 1e5 or math.isinf(value) else f"{value:.0f}"


def _listed(values: Sequence[float]) -> str:
    return ", ".join(_shown(value) for value in values)
