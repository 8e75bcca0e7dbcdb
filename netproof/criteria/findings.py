"""Findings of criteria, the bounds that they are compared with, and the curves that they read."""

from __future__ import annotations

import math
import operator
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar

from netproof.errors import NetproofError
from netproof.measurement.case import Curve

READABLE = (1e-15, 1e24)
"""Least and largest time in µs or bandwidth in MB/s that enters a ratio."""


class Level(StrEnum):
    """Meaning of a finding for the verdict; ``SHOWN``: measured, but nothing is asserted.

    ``INCONCLUSIVE``: the interval contains a bound after all repeats, or nodes were disturbed.
    """

    PASS = "pass"
    SHOWN = "shown"
    WARN = "warn"
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"
    UNDEFINED = "undefined"


FLAGGED = (Level.WARN, Level.FAIL)

AGAINST = (Level.FAIL, Level.INCONCLUSIVE)
"""Levels of a finding that keep its case from passing."""

REFERENCE = "reference"
"""Criterion of the findings that references make."""


@dataclass(frozen=True)
class Finding:
    """Result of a criterion for a configuration, ``where``, with its reason in a sentence.

    ``size``: bytes, None for a whole curve; ``value`` and ``bound``: in the criterion's unit, None
    where undefined or not asserted; ``compared_sizes``: the other sizes that made the value;
    ``common``: those at which curves were compared, increasing; ``against``: the configuration
    compared with; ``disturbed``: what else the nodes did; ``doubt``: why it is inconclusive,
    whatever its value; ``node``, ``interface``: whose counters; ``why_undefined``: the reason
    alone, reported for many cases at once; ``variable``: of a reference.

    The verdict's level may differ from the criterion's own, ``before``. ``repeated``: what repeats
    around its size showed, None without any: the level, in how many launches, of how many usable
    ones; ``others``: further sizes in bytes with the same finding and none of their own; ``known``:
    why the site expects it, or empty.
    """

    criterion: str
    level: Level
    where: str
    reason: str
    size: int | None = None
    value: float | None = None
    bound: float | None = None
    compared_sizes: tuple[int, ...] = ()
    common: tuple[int, ...] = ()
    interval: tuple[float, float] | None = None
    against: str | None = None
    disturbed: tuple[str, ...] = ()
    doubt: str = ""
    node: str | None = None
    interface: str | None = None
    why_undefined: str = ""
    variable: str = ""
    before: Level | None = None
    repeated: tuple[Level, int, int] | None = None
    others: tuple[int, ...] = ()
    known: str = ""

    def but(self, **other: Any) -> Finding:
        """Return it with other values; ``dataclasses.replace`` takes five times as long."""
        found = object.__new__(Finding)
        vars(found).update(vars(self), **other)
        return found

    @property
    def why(self) -> str:
        """Configuration and reason."""
        return f"{self.where}: {self.reason}"

    @property
    def own_level(self) -> Level:
        """Level by the criterion alone, before repeats and known flaws."""
        return self.before or self.level

    @property
    def confirmed(self) -> bool | None:
        """Whether repeats confirmed it; None without any."""
        return self.repeated and self.repeated[0] in FLAGGED

    @property
    def forgiven(self) -> bool:
        """Whether a flag does not count, since it was not confirmed or is known."""
        return self.level is Level.SHOWN and bool(self.repeated or self.known)

    @property
    def excess(self) -> float:
        """How many times its value is beyond its bound, on either side; 1 where not known."""
        if self.value is None or not self.bound or not math.isfinite(self.value):
            return 1.0
        ratio = self.value / self.bound
        return math.inf if ratio <= 0 else max(ratio, 1 / ratio)

    def how_far(self) -> float:
        """Return its excess if it is flagged, else its value, for the order of findings."""
        if self.level not in FLAGGED:
            return self.value or 0.0
        return self.excess if math.isfinite(self.excess) else 1.0

    def sizes(self) -> tuple[int, ...]:
        """Return all its sizes in bytes, increasing."""
        own = () if self.size is None else (self.size,)
        return tuple(sorted({*own, *self.others}))

    def without_noise(
        self, noise: Sequence[str], why: str = "the machine was disturbed: "
    ) -> Finding:
        """Return it as it rests on disturbed launches: a failure is inconclusive."""
        if not noise or self.level not in AGAINST:
            return self
        doubt = f"{why}{'; '.join(noise)}"
        return self.but(
            level=Level.INCONCLUSIVE, reason=self.reason + then(doubt), doubt=self.doubt or doubt
        )

    def ruled(self, level: Level, more: str = "", **known: Any) -> Finding:
        """Return it with the verdict's level and more of a reason; ``known``: further fields."""
        before = None if level is self.own_level else self.own_level
        return self.but(level=level, reason=self.reason + more, before=before, **known)


_UNNAMED = Finding("", Level.PASS, "", "")


def then(sentence: str) -> str:
    """Return a sentence to follow another one, or nothing; a path stays as it is."""
    first = sentence.partition(" ")[0]
    begun = f"{sentence[0].upper()}{sentence[1:]}" if first.isalpha() else sentence
    return f". {begun}" if sentence else ""


def at_sizes(findings: Sequence[Finding], measured: Sequence[int] = ()) -> str:
    """Return the end of a sentence that lists the sizes of several findings; empty for one.

    Neighbours of the ``measured`` sizes are ranges.
    """
    if len(findings) < 2:
        return ""
    sizes = [finding.size for finding in findings if finding.size is not None]
    listed = ranges_in_words(sizes, measured) if measured else sizes_in_words(sizes)
    return f". Likewise at {len(findings)} sizes in all: {listed}"


def folded(findings: Sequence[Finding], measured: Sequence[int] = ()) -> list[Finding]:
    """Return one finding for each criterion and level: the one that is furthest off.

    It has the other sizes, and its sentence lists all, as ``at_sizes``. A finding about a whole
    curve, or about several sizes, stands for itself.
    """
    kinds: dict[tuple[str, Level, int | None], list[Finding]] = {}
    for place, one in enumerate(findings):
        whole = one.size is None or bool(one.others)
        kinds.setdefault((one.criterion, one.level, place if whole else None), []).append(one)
    worst_of_each = []
    for several in kinds.values():
        worst = max(several, key=Finding.how_far)
        others = worst.others or tuple(one.size or 0 for one in several if one is not worst)
        reason = worst.reason + at_sizes(several, measured)
        worst_of_each.append(worst.but(reason=reason, others=others))
    return worst_of_each


class CannotJudgeError(NetproofError):
    """Reason for which a criterion cannot judge a curve."""


@dataclass(frozen=True)
class Bounds:
    """Bounds from which on a value is a warning and a failure; None asserts nothing.

    ``least_size``: smaller messages in bytes are left out, since benchmarks print 0 µs there (after
    the GigE synthetic-benchmark report). Raises NetproofError for bounds that contradict.
    """

    warn: float | None = None
    fail: float | None = None
    least_size: int = 4

    def __post_init__(self) -> None:
        known = {name: getattr(self, name) for name in self.increasing()}
        values = [value for value in known.values() if value is not None]
        if not all(map(math.isfinite, values)) or values != sorted(values):
            stated = ", ".join(f"{name}={value}" for name, value in known.items())
            raise NetproofError(f"{stated}: they are numbers that increase in this order, or None")
        if self.least_size < 1:
            raise NetproofError(f"least_size={self.least_size}: it is 1 byte or more")

    reached = staticmethod(operator.ge)
    """Whether a value is beyond a bound, or at it."""

    percent: ClassVar = ""
    """The sign, where values are shares that people read in percent."""

    def in_words(self, value: float, form: str = "g") -> str:
        """Return a bound or a value in words."""
        return f"{100 * value:{form}}{self.percent}" if self.percent else f"{value:{form}}"

    def increasing(self) -> tuple[str, ...]:
        """Return the names of the bounds, in the order in which they do not decrease."""
        return ("fail", "warn") if self.flags_small else ("warn", "fail")

    @property
    def flags_small(self) -> bool:
        """Whether small values are flagged, and not large ones."""
        return bool(self.reached(0.0, 1.0))

    def allowed(self) -> str:
        """Return which values are not flagged, in words; empty where nothing is asserted."""
        bound = self.fail if self.warn is None else self.warn
        return "" if bound is None else f"{'≥' if self.flags_small else '≤'} {self.in_words(bound)}"

    @property
    def asserted(self) -> bool:
        """Whether a value can be flagged."""
        return (self.warn, self.fail) != (None, None)

    def level(
        self, value: float, interval: tuple[float, float] | None = None
    ) -> tuple[Level, float | None]:
        """Return the level of a value, and the bound that decided it.

        It fails where all of the ``interval`` is beyond the bound, and is inconclusive where the
        interval contains it. The value alone decides whether it warns: a warning stops nothing.
        """
        if self.fail is not None:
            beyond = {self.reached(one, self.fail) for one in (value, *(interval or ()))}
            if True in beyond:
                return (Level.INCONCLUSIVE if False in beyond else Level.FAIL), self.fail
        if self.warn is not None and self.reached(value, self.warn):
            return Level.WARN, self.warn
        nearest = self.warn if self.warn is not None else self.fail
        return (Level.SHOWN, None) if nearest is None else (Level.PASS, nearest)

    def finding(
        self,
        value: float,
        reason: str,
        advice: str = "",
        *,
        basis: str = "",
        interval: tuple[float, float] | None = None,
        decided: tuple[Level, float | None] | None = None,
        below: bool = False,
        **more: Any,
    ) -> Finding:
        """Return the finding on a value, to be named.

        Its sentences: ``reason`` with the deciding bound, the interval, ``basis``, and ``advice``
        where the value is flagged. ``decided``: level and bound, where these are not those of
        ``level``, and whether values ``below`` are flagged; ``more``: further fields.
        """
        level, bound = decided or self.level(value, interval)
        side = "below" if below or self.flags_small else "above"
        if bound is not None:
            reason += f" (flagged {side} {self.in_words(bound)})"
        if interval is not None and interval[0] < interval[1]:
            low, high = (self.in_words(end, ".3g") for end in interval)
            reason += f". 95% interval {low} to {high}"
        if level is Level.INCONCLUSIVE:
            reason += ". The interval contains that bound, and more launches would make it shorter"
        reason += then(basis) + (then(advice) if level in FLAGGED else "")
        return _UNNAMED.but(
            level=level, reason=reason, value=value, bound=bound, interval=interval, **more
        )

    def worst(self, values: Mapping[Any, float], word: Callable[[Any], Finding]) -> Finding:
        """Return the finding on the largest value, of those that fail if some do.

        ``word``: makes the finding at a place, which fails only where the value by itself does.
        """
        beyond = [at for at, value in values.items() if self.level(value)[0] is Level.FAIL]
        found = map(word, beyond or [max(values, key=values.__getitem__)])
        return max(found, key=lambda one: (one.level is Level.FAIL, one.value or 0))

    def times(self, curve: Curve, at_least: int = 1, of: str = "") -> dict[int, float]:
        """Return times in µs by size, ``of`` what begins the reason of a fault.

        Raises CannotJudgeError where fewer than ``at_least`` sizes can be judged.
        """
        return self._points(curve, curve.time_us, "µs", at_least, of)

    def rates(self, curve: Curve, at_least: int = 1, of: str = "") -> dict[int, float]:
        """Return bandwidths in MB/s by size, as ``times``; there may be none for a benchmark."""
        if curve.bandwidth_mb_s is None:
            raise CannotJudgeError(f"{of}the benchmark defines no bandwidth")
        return self._points(curve, curve.bandwidth_mb_s, "MB/s", at_least, of)

    def times_or_reason(self, curve: Curve) -> tuple[dict[int, float], str]:
        """Return the ``times`` of a curve, or none and why it cannot be judged."""
        try:
            return self.times(curve), ""
        except CannotJudgeError as error:
            return {}, str(error)

    def times_of_each(self, launches: Sequence[Curve], of: str = "") -> list[dict[int, float]]:
        """Return the ``times`` of several launches."""
        return [
            self.times(curve, of=f"in launch {number}{of}, ")
            for number, curve in enumerate(launches, 1)
        ]

    def _points(
        self, curve: Curve, values: Sequence[float], unit: str, at_least: int, of: str
    ) -> dict[int, float]:
        judged, (least, most) = bisect_left(curve.sizes, self.least_size), READABLE
        values = values[judged:]
        points = dict(zip(curve.sizes[judged:], values, strict=True))
        if values and not least <= min(values) <= max(values) <= most:
            size, value = next(one for one in points.items() if not least <= one[1] <= most)
            raise CannotJudgeError(
                f"{of}{value:g} {unit} at {size} bytes is no reading: measure it again"
            )
        if len(points) < at_least:
            sizes = "1 size" if len(points) == 1 else f"{len(points)} sizes"
            raise CannotJudgeError(
                f"{of}it has {sizes} of {self.least_size} bytes or more, and this takes {at_least}"
            )
        return points


class Above(Bounds):
    """Bounds above which a value is flagged."""

    reached = staticmethod(operator.gt)


class Below(Bounds):
    """Bounds below which a value is flagged."""

    reached = staticmethod(operator.lt)


AtSizes = dict[int, tuple[float, tuple[int, ...]]]
"""Values of a criterion by size in bytes, each with the other sizes that it was made with."""


def over_common(sizes: Sequence[int]) -> str:
    """Return the words for increasing sizes in bytes at which curves were compared."""
    if len(sizes) == 1:
        return f"at the one common size of {sizes[0]} bytes"
    return f"over {len(sizes)} common sizes, {sizes[0]} to {sizes[-1]} bytes"


def undefined(criterion: str, where: str, reason: str, **more: Any) -> Finding:
    """Return the finding of a criterion that cannot judge, with the reason."""
    sentence = f"{criterion} undefined: {reason}"
    return Finding(criterion, Level.UNDEFINED, where, sentence, why_undefined=reason, **more)


def geometric_mean(values: Sequence[float]) -> float:
    """Return the geometric mean of values above 0; ``statistics`` takes four times as long."""
    return math.exp(math.fsum(map(math.log, values)) / len(values))


def in_common(several: Iterable[Mapping[int, float]]) -> tuple[int, ...]:
    """Return the sizes that all have, increasing."""
    first, *others = several
    if all(one.keys() == first.keys() for one in others):
        return tuple(sorted(first))
    return tuple(sorted(set(first).intersection(*others)))


def figure(value: float) -> str:
    """Return four digits of a value, and no power of ten for a large one."""
    return f"{value:.4g}" if value < 9999.5 else f"{value:.0f}"


def rate_in_words(bandwidth_mb_s: float) -> str:
    """Return a bandwidth with its unit."""
    return f"{figure(bandwidth_mb_s)} MB/s"


def sizes_in_words(sizes: Sequence[int]) -> str:
    """Return sizes in bytes, with commas."""
    return f"{', '.join(map(str, sizes))} bytes"


def ranges_in_words(sizes: Iterable[int], measured: Sequence[int]) -> str:
    """Return sizes in bytes, three or more neighbours of those ``measured`` as "4 to 64"."""
    places = {size: place for place, size in enumerate(measured)}
    ranges: list[list[int]] = []
    for size in sorted({*sizes}):
        if ranges and places[size] == places[ranges[-1][-1]] + 1:
            ranges[-1].append(size)
        else:
            ranges.append([size])
    words = [
        part
        for one in ranges
        for part in ([f"{one[0]} to {one[-1]}"] if len(one) > 2 else map(str, one))
    ]
    return f"{', '.join(words[:-1])}{' and ' if words[1:] else ''}{words[-1]} bytes"
