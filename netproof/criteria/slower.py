"""Slower than others: the envelope at each size, the floor over all sizes, and two side by side.

The floor scores each environment of a partition against each other one. They send over one link, so
that neither its rate nor any machine's number is needed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

from netproof.criteria.findings import (
    FLAGGED,
    Above,
    Below,
    CannotJudgeError,
    Finding,
    Level,
    figure,
    geometric_mean,
    in_common,
    over_common,
    undefined,
)
from netproof.criteria.interface import CaseCurves, ComparedCases, Criterion, Layer
from netproof.criteria.score import NO_INTERVAL
from netproof.errors import grouped
from netproof.measurement import interval as intervals
from netproof.measurement import links
from netproof.measurement.case import Curve
from netproof.measurement.links import Link

if TYPE_CHECKING:
    import numpy as np

ENVELOPE = Above(None, 10.0)
"""Multiples of what others need: an order of magnitude is red."""

FLOOR = Below(0.5, 0.25)
"""Scores against another environment of the partition.

The envelope allows an order of magnitude at a size. A mean over all sizes comes near that only
where hardly a size is sound, so a quarter fails.
"""

SLOWER = Above()
"""Shares by which one of two is slower over a range of sizes; by default it is not looked for."""

ALIKE = 0.05
"""Share below which two times of a size do not differ."""

ALONE = 0.5
"""Share from which on a size without neighbours that differ counts."""

NEARLY = 1 - 1e-9
"""Share of a bound from which on an interval is computed to the last digit."""

CERTAIN, LIKELY = "certain", "likely"


def envelope(
    curves: Mapping[str, Curve], settings: Above = ENVELOPE
) -> dict[int, tuple[float, str]]:
    """Return by size in bytes the least time in µs and whose it is, where two or more have one.

    ``curves``: by configuration, of one function at the same ranks. After the GigE
    synthetic-benchmark report.
    """
    times = {label: settings.times_or_reason(curve)[0] for label, curve in curves.items()}
    holders = grouped((size, (t, label)) for label, own in times.items() for size, t in own.items())
    return {size: min(times) for size, times in sorted(holders.items()) if len(times) > 1}


def _at(curve: Curve, size: int) -> float | None:
    return curve.time_us[curve.sizes.index(size)] if size in curve.sizes else None


class _Envelope:
    """The times of configurations, a row for each size, 0 where one was not measured."""

    def __init__(self, compared: ComparedCases, settings: Above) -> None:
        import numpy as np

        self.cases = [*compared.cases.values()]
        self.faults: dict[str, str] = {}
        every_size, known, self._crossed = replace(settings, least_size=1), [], []
        for case in self.cases:
            times, self.faults[case.where] = settings.times_or_reason(case.curve)
            known.append(times)
            crossed: Mapping[int, float] = {}
            if case.crossing is not None and times:
                # Latency is seen best at sizes that are not judged.
                every = every_size.times_or_reason(case.curve)[0] or times
                crossed = links.messages(every, case.crossing)
            self._crossed.append(crossed)
        self.sizes = sorted({size for times in known for size in times})
        self.times = self._rows(known)
        # From the median to an end of its interval, in logarithms, at most.
        self._apart = np.full(self.times.shape, np.inf)
        places = {size: place for place, size in enumerate(self.sizes)}
        for column, case in enumerate(self.cases):
            widest = intervals.most_apart(len(case.launches))
            for size, several in case.times_at.items():
                if size in places and min(several) > 0:
                    apart = math.log(max(several) / min(several)) * widest
                    self._apart[places[size], column] = apart
        self._needed: dict[Link | None, tuple[np.ndarray, np.ndarray]] = {}
        self.columns = {label: column for column, label in enumerate(compared.cases)}
        self.paired = grouped(
            (one, self.columns[other])
            for one, other in compared.pairs
            if one in self.columns and other in self.columns
        )

    def _rows(self, of_cases: Iterable[Mapping[int, float]]) -> np.ndarray:
        import numpy as np

        return np.array([[of.get(size, 0.0) for size in self.sizes] for of in of_cases]).T.copy()

    def most(self, ratios: np.ndarray, own: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the largest ratio at each size, and what its interval cannot exceed."""
        import numpy as np

        deciding, rows = ratios.argmax(axis=1), np.arange(len(self.sizes))
        apart = np.hypot(self._apart[:, self.columns[own]], self._apart[rows, deciding])
        paired = np.isin(deciding, self.paired.get(own, ()))
        # A factor beyond all bounds, where pairs or a time of 0 decide, which no product exceeds.
        worst = ratios[rows, deciding]
        return worst, worst * np.exp(np.where(paired, 200, apart.clip(max=200)))

    def needed_us(self, crossing: Link | None) -> tuple[np.ndarray, np.ndarray]:
        """Return what each case would take over a link at each size, and what that adds to it."""
        if crossing not in self._needed:
            import numpy as np

            every = zip(self.cases, self._crossed, strict=True)
            added = self._rows(links.explained_us(of, one.crossing, crossing) for one, of in every)
            needed = np.where(self.times > 0, self.times + added, np.inf)
            self._needed[crossing] = needed, added
        return self._needed[crossing]


def above_envelope(case: CaseCurves, compared: ComparedCases, settings: Above) -> list[Finding]:
    """Return how much slower a configuration is than the fastest of the others.

    At each size t over the least that another would take over this configuration's link: its time,
    and what the slower link adds to it (``links.explained_us``). Each size that is flagged or
    inconclusive has a finding, else the size that comes nearest. Two with interleaved launches are
    compared by these alone. A size fails if the ratio to any other fails with its whole interval;
    else the largest ratio decides.
    """
    if settings not in compared.shared:
        compared.shared[settings] = _Envelope(compared, settings)
    every = compared.shared[settings]
    own, (needed, added) = every.columns[case.where], every.needed_us(case.crossing)
    ratios = every.times[:, own, None] / needed
    ratios[:, own] = 0
    rows = ratios.max(axis=1, initial=0).nonzero()[0].tolist()
    sizes = tuple(every.sizes[row] for row in rows)
    if not sizes:
        alone = len(compared.cases) == 1
        why = every.faults[case.where] or (
            f"{case.where} is the only configuration, and one has no envelope: run another"
            " alongside it"
            if alone
            else "it has no size in common with another configuration"
        )
        none = undefined("envelope", case.where, why)
        # One alone has no envelope, which is only shown.
        return [none.ruled(Level.SHOWN) if alone else none]
    for column in every.paired.get(case.where, ()):
        for row, size in zip(rows, sizes, strict=True):
            if both := _paired(case, every.cases[column], size, compared):
                more = added[row, column]
                ratios[row, column] = median([one / (theirs + more) for one, theirs in both])
    worst, most = (found[rows] for found in every.most(ratios, case.where))
    bound = min(one for one in (settings.warn, settings.fail, math.inf) if one is not None)
    nearest = int(worst.clip(1).argmax())
    beyond = {*(most > bound * NEARLY).nonzero()[0].tolist()}
    of_sizes = {
        at: _of_size(case, rows[at], compared, every, ratios[rows[at]], settings, sizes)
        for at in sorted(beyond | {nearest})
    }
    flagged = [at for at, (level, _) in of_sizes.items() if level in (*FLAGGED, Level.INCONCLUSIVE)]
    findings = []
    for at in flagged or [nearest]:
        one = of_sizes[at][1]()
        other = compared.cases.get(one.against or "")
        if other is not None and len(case.launches) == len(other.launches) == 1:
            steps = [abs(math.log(two / one)) for one, two in pairwise(worst.tolist())]
            apart = math.exp(median(steps)) if len(steps) > 2 else 1.0
            if settings.level((one.value or 0) / apart)[0] is not Level.FAIL:
                # Only a failure is weighed.
                chance = (
                    "one launch was made of each, and sizes next to each other scatter by a factor"
                )
                one = one.without_noise((f"{chance} of {apart:.2g}: repeat them",), "")
        findings.append(compared.weighed(case, one))
    return findings


def _paired(
    case: CaseCurves, other: CaseCurves, size: int, compared: ComparedCases
) -> list[tuple[float, float]]:
    """Return the times of interleaved launches at a size, two pairs at least."""
    launches, _ = compared.pairs.get((case.where, other.where), ((), ""))
    both = [(_at(one, size) or 0, _at(theirs, size) or 0) for one, theirs in launches]
    both = [pair for pair in both if min(pair) > 0]
    return both if len(both) > 1 else []


def _of_size(
    case: CaseCurves,
    row: int,
    compared: ComparedCases,
    every: _Envelope,
    values: np.ndarray,
    settings: Above,
    common: tuple[int, ...],
) -> tuple[Level, Callable[[], Finding]]:
    """Return the level of the ratio that decides at a size, and what words its finding.

    ``values``: the ratios to each case.
    """
    others, size, added = every.cases, every.sizes[row], every.needed_us(case.crossing)[1][row]

    def interval(place: int) -> tuple[float, float] | None:
        more = float(added[place])
        if both := _paired(case, others[place], size, compared):
            # By order alone: what comes upon one of the two, and not upon both, is on one side.
            return intervals.of_median([one / (theirs + more) for one, theirs in both])
        theirs = [time + more for time in others[place].times_at[size]]
        return intervals.of_ratio(case.times_at[size], theirs)

    decides = int(values.argmax())
    if settings.level(float(values[decides]))[0] is Level.FAIL:
        failing = [
            place
            for place, value in enumerate(values.tolist())
            if settings.level(value)[0] is Level.FAIL
            and settings.level(value, interval(place))[0] is Level.FAIL
        ]
        decides = max(failing or [decides], key=values.__getitem__)
    value, other = float(values[decides]), others[decides]
    between = interval(decides)
    level = settings.level(value, between)[0]

    def finding() -> Finding:
        both = _paired(case, other, size, compared)
        own, theirs = every.times[row, [every.columns[case.where], decides]].tolist()
        if both:
            own, theirs = (median(side) for side in zip(*both, strict=True))
        took = f"{figure(own)} µs at {size} bytes"
        if value < 1 and level is not Level.INCONCLUSIVE:
            reason = f"{took} is the least of all, compared {over_common(common)}"
            return settings.finding(1, reason, size=size, common=common)
        whose, basis = f"the {figure(theirs)} µs of {other.where}", ""
        if added[decides] > 0 and case.crossing is not None and other.crossing is not None:
            whose = (
                f"the {figure(theirs + added[decides])} µs that {other.where} would take over"
                f" {case.crossing}"
            )
            basis = f"it took {figure(theirs)} µs over {other.crossing}, "
        if both:
            whose += f", in {len(both)} interleaved pairs of launches"
        placed_apart = other.layer is Layer.INSIDE and case.layer is not Layer.INSIDE
        return settings.finding(
            value,
            f"{took}, {value:.3g} times {whose}",
            ""
            if placed_apart
            else f"avoid or mend this configuration for messages of about {size} bytes",
            basis=f"{basis}compared {over_common(common)}",
            interval=between,
            size=size,
            common=common,
            against=other.where,
        )

    return level, finding


def floor(case: CaseCurves, compared: ComparedCases, settings: Below) -> Finding | None:
    """Return the lowest score of a case against other environments of its partition.

    It fails where the whole interval against any other is below the bound. Two interleaved pairs
    of launches or more are compared alone.
    """
    environment = case.configuration[2]
    others = [one for one in compared.cases.values() if one.configuration[2] != environment]
    if not others:
        return None
    if settings not in compared.shared:
        cases = compared.cases
        # All are compared with each other, mostly over the same sizes.
        of_launches = cache(lambda where: settings.times_of_each(cases[where].launches))
        compared.shared[settings] = (
            of_launches,
            cache(lambda where, sizes: _means(of_launches(where), sizes)),
        )
    compared.shared[settings][0](case.where)
    found = [_against(case, other, compared, settings) for other in others]
    weighed = [compared.weighed(case, one) for one in found if one is not None]
    if not weighed:
        raise CannotJudgeError("it has no size in common with another environment")
    failing = [one for one in weighed if one.level is Level.FAIL]
    undecided = [one for one in weighed if one.level is Level.INCONCLUSIVE]
    return min(failing or undecided or weighed, key=lambda one: one.value or 0.0)


def _against(
    case: CaseCurves, other: CaseCurves, compared: ComparedCases, settings: Below
) -> Finding | None:
    """Compare a case with another one; None where one cannot be judged or no size is common."""
    launches, _ = compared.pairs.get((case.where, other.where), ((), ""))
    paired, labels = len(launches) > 1, (case.where, other.where)
    of_launches, means = compared.shared[settings]
    try:
        if paired:
            times = [settings.times_of_each(several) for several in zip(*launches, strict=True)]
        else:
            times = [*map(of_launches, labels)]
    except CannotJudgeError:
        return None
    sizes = in_common([one for side in times for one in side]) if all(times) else ()
    if not sizes:
        return None
    if paired:
        own, theirs = (_means(side, sizes) for side in times)
    else:
        own, theirs = (means(label, sizes) for label in labels)
    if paired:
        scores = [other / mine for mine, other in zip(own, theirs, strict=True)]
        value, interval = median(scores), intervals.of_median(scores)
    else:
        value, interval = median(theirs) / median(own), intervals.of_ratio(theirs, own)
    basis = f"compared {over_common(sizes)}"
    basis += f", in {len(own)} interleaved pairs of launches" if paired else ""
    basis += f"; {NO_INTERVAL}" if interval is None else ""
    return settings.finding(
        value,
        f"{value:.3g} times as fast as {other.where}",
        "look at which transport and which algorithm this library takes",
        basis=basis,
        interval=interval,
        common=sizes,
        against=other.where,
    )


def _means(launches: Iterable[Mapping[int, float]], sizes: Iterable[int]) -> list[float]:
    return [geometric_mean([one[size] for size in sizes]) for one in launches]


def differences(case: CaseCurves, compared: ComparedCases, settings: Above) -> list[Finding]:
    """Return from which size to which a configuration is slower than the only other one.

    A range has sizes that differ the same way by ``ALIKE`` or more, two at least, or one by
    ``ALONE``; a single size that differs less does not end it. The value is the geometric mean of
    the ratios of its times, less 1; its interval is that over the launches. A range that all
    launches do not show, nor the interval, is chance, and left out. ``size``: where they differ
    most. Where nothing differs, a finding of the first says so. Sizes below 4 bytes count where
    there are no others. Of more than two configurations the envelope and the score say it.
    """
    several = compared.cases.values()
    if len(several) != 2 or not any(one.settings.slower.asserted for one in several):
        return []
    first, second = several
    other = second if case is first else first
    try:
        own, theirs = (_times_of_launches(one, settings) for one in (case, other))
    except CannotJudgeError as error:
        if case is not first:
            return []
        return [undefined("slower", case.where, str(error)).ruled(Level.SHOWN)]
    sizes = in_common([*own, *theirs])
    ratios = {
        size: median(one[size] for one in own) / median(one[size] for one in theirs)
        for size in sizes
    }
    found = [
        finding
        for span in _spans(ratios, ALIKE)
        for finding in _of_range(span, ratios, other, (own, theirs), settings)
    ]
    if sizes and case is first and not any(_spans(ratios, ALIKE)):
        reason = f"no slower or faster than {other.name} {over_common(sizes)}"
        alike = Finding("", Level.PASS, "", reason, value=0.0, common=sizes, against=other.where)
        found.append(alike)
    return [compared.weighed(case, one) for one in found]


def _times_of_launches(case: CaseCurves, settings: Above) -> list[dict[int, float]]:
    if case.curve.sizes[-1] < settings.least_size:
        settings = replace(settings, least_size=1)
        if case.curve.sizes[-1] == 0:
            return [dict(zip(one.sizes, one.time_us, strict=True)) for one in case.launches]
    return settings.times_of_each(case.launches)


def _of_range(
    span: Sequence[int],
    ratios: Mapping[int, float],
    other: CaseCurves,
    times: tuple[Sequence[Mapping[int, float]], Sequence[Mapping[int, float]]],
    settings: Above,
) -> Iterator[Finding]:
    """Yield the finding on a range in which a case is slower than another, and on parts of it.

    ``times``: of the launches of both.
    """
    if ratios[span[0]] < 1:
        return
    own, theirs = (_means(side, span) for side in times)
    interval = intervals.of_ratio(own, theirs)
    how = _certainty(own, theirs, interval)
    level = None
    if how:
        value = median(own) / median(theirs) - 1
        worst = max(span, key=ratios.__getitem__)
        # A time without messages, or of an empty one, has no size to name.
        where, by, more = f" at {span[0]} bytes" if worst else "", _percent(value), ""
        if len(span) > 1:
            where = f" from {span[0]} to {span[-1]} bytes"
            least, most = (_percent(one(map(ratios.__getitem__, span)) - 1) for one in (min, max))
            if least != most:
                more = f", {by} % on average, most at {worst} bytes"
                by = f"{least} to {most}"
        if interval is not None:
            interval = (interval[0] - 1, interval[1] - 1)
            more += f" (95% interval {_percent(interval[0])} to {_percent(interval[1])} %)"
        level, bound = settings.level(value, interval)
        reason = f"takes {by} % longer than {other.name}{where}{more}; {how}"
        if level in (*FLAGGED, Level.INCONCLUSIVE) and bound is not None:
            reason += f" (flagged above {_percent(bound)} %)"
        yield Finding(
            "",
            level,
            "",
            reason,
            size=worst,
            value=value,
            bound=bound,
            interval=interval,
            others=tuple(size for size in span if size != worst),
            common=tuple(ratios),
            against=other.where,
        )
    if settings.fail is not None and level is not Level.FAIL:
        # A part may be beyond the bound where all of it together is not.
        within = {size: ratios[size] for size in span}
        for part in _spans(within, max(ALIKE, settings.fail)):
            if list(part) != list(span):
                parts = _of_range(part, ratios, other, times, settings)
                yield from (one for one in parts if one.level is Level.FAIL)


def spans(
    ratios: Mapping[int, float], differs: Callable[[int], bool], others: int = 0
) -> list[list[int]]:
    """Return ranges of neighbouring sizes that differ, with ratios on the same side of 1.

    At most so many ``others`` lie between two, and are none of the range.
    """
    found: list[list[int]] = []
    since = 0
    for size, ratio in ratios.items():
        if not differs(size):
            since += 1
            continue
        if found and since <= others and (ratios[found[-1][-1]] > 1) == (ratio > 1):
            found[-1].append(size)
        else:
            found.append([size])
        since = 0
    return found


def factor(ratio: float) -> float:
    """Return how far a ratio is from 1, to either side."""
    return max(ratio, 1 / ratio)


def _spans(ratios: Mapping[int, float], least: float) -> Iterator[list[int]]:
    """Yield ranges of sizes that differ the same way by a share of ``least`` or more."""
    sizes, differ = [*ratios], {size for size in ratios if factor(ratios[size]) >= 1 + least}
    for before, size, after in zip(sizes, sizes[1:], sizes[2:], strict=False):
        if before in differ and after in differ:
            # One that differs less, in the same way, ends no range.
            same = {ratios[one] > 1 for one in (before, size, after)}
            differ |= {size} if len(same) == 1 else set()
    for span in spans(ratios, differ.__contains__):
        apart = max(factor(ratios[size]) for size in span)
        if len(span) > 1 or len(sizes) == 1 or apart >= 1 + ALONE:
            yield span


def _certainty(
    slower: Sequence[float], faster: Sequence[float], interval: tuple[float, float] | None
) -> str:
    """Return how sure a difference is, in words; empty where launches do not show it."""
    if min(len(slower), len(faster)) == 1:
        alone = len(slower) == len(faster)
        return f"one launch {'each' if alone else 'of one of them'}: repeat"
    if interval is not None and interval[0] > 1:
        return CERTAIN
    return f"{LIKELY}: all launches are slower" if min(slower) > max(faster) else ""


def _percent(share: float) -> str:
    return f"{100 * share:.3g}" if share < 9.995 else f"{100 * share:.0f}"


CRITERIA = (
    Criterion(
        "envelope",
        "envelope",
        ENVELOPE,
        compare=above_envelope,
        sets=("fail",),
        note="{count} {have} no envelope, since no other configuration measured the same: {cases}",
    ),
    Criterion(
        "floor",
        "floor",
        FLOOR,
        compare=floor,
        group=lambda case: (case.function, case.place) if case.has_sizes and case.place else None,
        asserts_inside=False,
        key_figure="floor",
    ),
    Criterion(
        "slower",
        "slower",
        SLOWER,
        compare=differences,
        sets=(),
        group=lambda case: case.function or None,
        noted=Above(0.0),
    ),
)
