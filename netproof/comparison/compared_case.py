"""A case that both sides measured: its ratio, its ranges and its landmarks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from netproof import criteria
from netproof.comparison.landmark_ratios import LandmarkRatio, landmark_ratios
from netproof.comparison.ranges import Range, ranges_of
from netproof.criteria import Finding, Level
from netproof.criteria.settings import Settings
from netproof.measurement.cpu_use import costliest
from netproof.session.measured import Measured
from netproof.session.session import CheckResult
from netproof.verdict.disturbing import disturbances
from netproof.verdict.subject import Subject


class Outcome(StrEnum):
    """Outcome for the second side, by the interval of the ratio."""

    FASTER = "faster"
    SLOWER = "slower"
    ALIKE = "no difference overall"
    UNDECIDED = "no interval"
    UNDEFINED = "no ratio"


@dataclass(frozen=True)
class ComparedCase:
    """A case that both sides measured.

    ``score``: the second side's score with the first as baseline; for a function without message
    sizes (Barrier), the ratio of its times. ``ratios``: by size in bytes, the first side's median
    time over the second's. ``ranges``: sizes over which one side is faster, empty with too few
    launches. ``cpu_s_per_gb``: of the costliest node of each side, without interval. ``disturbed``:
    other activity on a side's nodes in launches that count, since too few others remain, with the
    side's name.
    """

    first: Measured
    second: Measured
    score: Finding
    ratios: Mapping[int, float]
    ranges: tuple[Range, ...]
    landmarks: Mapping[str, LandmarkRatio]
    cpu_s_per_gb: LandmarkRatio
    disturbed: tuple[str, ...] = ()

    @property
    def outcome(self) -> Outcome:
        """Return the outcome by the interval: an interval that contains 1 shows no difference."""
        if self.score.value is None:
            return Outcome.UNDEFINED
        if self.score.interval is None:
            return Outcome.UNDECIDED
        low, high = self.score.interval
        if low > 1:
            return Outcome.FASTER
        return Outcome.SLOWER if high < 1 else Outcome.ALIKE

    def latency(self, first: str, second: str) -> str | None:
        """Return how the second side's latency differs, in words; None without a difference."""
        found = self.landmarks["latency_us"]
        if found.difference is None:
            return None
        before = f"the {found.first:.3g} µs of {first}"
        size = f"{abs(found.difference):.3g} µs"
        if found.difference_interval is None:
            verb = "adds" if found.difference > 0 else "takes off"
            return f"{second} {verb} {size}, with no interval, {before}"
        low, high = found.difference_interval
        if low <= 0 <= high:
            return f"{second} is no different from {before} ({low:+.2g} to {high:+.2g} µs)"
        if low > 0:
            return f"{second} adds {size} ({low:.3g} to {high:.3g}) to {before}"
        return f"{second} takes {size} ({-high:.3g} to {-low:.3g}) off {before}"

    def sentence(self) -> str:
        """Return the sentence: ratio, sizes, and what disturbed either side."""
        noise = f"; the machine was disturbed: {'; '.join(self.disturbed)}"
        return f"{self._ratio_sentence()}{noise if self.disturbed else ''}"

    def _ratio_sentence(self) -> str:
        if self.score.value is None:
            latency = self.landmarks["latency_us"].ratio
            alongside = "" if latency is None else f"; by its latency {latency:.3g} times as fast"
            return f"{self.score.reason}{alongside}"
        by = "" if self.score.common else " by its time"
        ratio = f"{self.score.value:.3g} times as fast{by}"
        if self.score.interval is None:
            return f"{ratio}, with no interval, which takes two launches of both"
        low, high = self.score.interval
        between = f"{ratio} ({low:.3g} to {high:.3g})"
        return ": ".join([between, "; ".join(map(str, self.ranges))] if self.ranges else [between])


def compared_case(one: CheckResult, other: CheckResult, first: str, second: str) -> ComparedCase:
    """Compare two results of the same case, from sides of these names.

    Raise NetproofError where a measurement cannot be read.
    """
    before, after = one.measurement, other.measurement
    extras = [result.measured["partition_extras"] for result in (one, other)]
    # The line rate takes no part in a score.
    settings = Settings.of_site(extras[1].get("criteria", {}), line_rate_from_bytes=0).score
    curves = [[launch.curve for launch in side.launches] for side in (before, after)]
    landmarks = landmark_ratios(
        before,
        after,
        tuple(
            said["line_rate_from_bytes"] if side.line_rate_mb_s else 0
            for side, said in zip((before, after), extras, strict=True)
        ),
        settings,
    )
    where = f"{second} {after.case.what()}"
    sizeless = before.curve.sizes == after.curve.sizes == (0,)
    if sizeless:
        score = _of_times(landmarks["latency_us"], where, first)
    else:
        score = criteria.score(curves[1], curves[0], where=where, baseline=first, settings=settings)
    ratios: dict[int, float] = {}
    if score.value is not None and not sizeless:
        times = [
            dict(zip(side.curve.sizes, side.curve.time_us, strict=True)) for side in (before, after)
        ]
        ratios = {
            size: times[0][size] / times[1][size]
            for size in before.curve.sizes
            if size in times[1] and size >= settings.least_size
        }
    ranges = ranges_of(curves[0], curves[1], ratios)
    disturbed = tuple(
        f"{name}: {noise}"
        for name, side, said in zip((first, second), (before, after), extras, strict=True)
        for noise in disturbances(Subject.of_extras(side, said, {}))
    )
    costs = _cpu_s_per_gb(before, after)
    return ComparedCase(before, after, score, ratios, ranges, landmarks, costs, disturbed)


def _cpu_s_per_gb(before: Measured, after: Measured) -> LandmarkRatio:
    """Return each side's CPU seconds per 10⁹ bytes; a ratio below 1 means the second costs more."""
    one, other = (costliest(side.cpu_costs).s_per_gb for side in (before, after))
    if not one or not other:
        return LandmarkRatio(one, other)
    return LandmarkRatio(one, other, one / other, difference=other - one)


def _of_times(time: LandmarkRatio, where: str, first: str) -> Finding:
    """Return the ratio of times as a score, for a function without message sizes."""
    if time.ratio is None:
        why = "no ratio: a side has no time above 0"
        return Finding("time", Level.UNDEFINED, where, why)
    spoken = "no interval, which takes two launches of both"
    if time.interval is not None:
        spoken = f"95% interval {time.interval[0]:.3g} to {time.interval[1]:.3g}"
    why = f"{time.ratio:.3g} times as fast as {first}, by its time ({spoken})"
    return Finding("time", Level.SHOWN, where, why, value=time.ratio, interval=time.interval)
