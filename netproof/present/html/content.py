"""Content of a report as plain values: states, groups of cases, rows of charts.

Nothing is computed here: times, bandwidths, envelopes, flags and scores are those of
``netproof.session.measured``, ``netproof.verdict.judge`` and ``netproof.comparison``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from netproof.benchmarks import registry
from netproof.criteria import Envelope, Level
from netproof.errors import NetproofError
from netproof.measurement.case import Case
from netproof.measurement.curve import Curve
from netproof.measurement.launches import median_curve, spread
from netproof.measurement.units import mbit_s
from netproof.present.html.charts import NotDrawn
from netproof.present.html.html import file_name
from netproof.session.measured import Measured
from netproof.verdict import group_rulings
from netproof.verdict.subject import Ruling
from netproof.verdict.verdict import Borrowed, Judged, Verdict


class CaseState(Enum):
    """State of a case: a word, a sign without colour, its severity, the style's class."""

    PASSED = ("passed", "✓", 0, "passed")
    EXPECTED = ("fails as expected", "≈", 1, "passed")
    UNCONFIRMED = ("passed, a flag was not confirmed", "○", 2, "passed")
    WARNED = ("passed with a warning", "▲", 3, "warned")
    INCONCLUSIVE = ("inconclusive", "?", 4, "inconclusive")
    ABSENT = ("did not run", "∅", 5, "absent")
    FAILED = ("failed", "✗", 6, "failed")

    def __init__(self, word: str, sign: str, badness: int, look: str) -> None:
        self.word, self.sign, self.badness, self.look = word, sign, badness, look


def state_of(judged: Judged) -> CaseState:
    """Return the state of one case."""
    if not judged.ran:
        return CaseState.ABSENT
    if judged.failed:
        return CaseState.FAILED
    if not judged.passed:
        return CaseState.INCONCLUSIVE
    if judged.said(Level.WARN):
        return CaseState.WARNED
    if judged.expected:
        return CaseState.EXPECTED
    if any(ruling.level is Level.SHOWN for ruling in judged.flags()):
        return CaseState.UNCONFIRMED
    return CaseState.PASSED


def configuration(case: Case) -> str:
    """Return the label of a configuration at curves: partition and environment."""
    return f"{case.partition} {case.environment}"


def switch(one: Judged | Borrowed) -> str:
    """Return the partition's label in legends, with the day if another session measured it."""
    if isinstance(one, Borrowed):
        return f"{one.case.partition}, of {one.date}"
    return one.case.partition


def label(one: Judged | Borrowed) -> str:
    """Return the label of a configuration at curves, with the day as in ``switch``."""
    day = f", of {one.date}" if isinstance(one, Borrowed) else ""
    return f"{configuration(one.case)}{day}"


def function_name(case: Case) -> str:
    """Return the benchmark and its function or protocol: ``IMB Alltoall``, ``NetPIPE TCP``."""
    return registry.of(case).title(case.function)


def variant(case: Case) -> str:
    """Return what distinguishes cases of one function: ranks, or NetPIPE's path and direction."""
    return registry.of(case).variant(case)


@dataclass(frozen=True)
class Group:
    """Cases that measured the same in every configuration, in the verdict's order.

    ``name`` is that of its anchor and its files, ``page`` that of its page; ``stored``: cases that
    other sessions measured.
    """

    name: str
    page: str
    function: str
    variant: str
    members: tuple[Judged, ...]
    stored: tuple[Borrowed, ...] = ()

    @property
    def title(self) -> str:
        """Function and variant."""
        return f"{self.function}, {self.variant}"

    @property
    def short(self) -> str:
        """Title on its page, which names the benchmark or the function already."""
        if registry.of(self.case).by_protocol:
            return f"{self.case.function.upper()}, {self.variant}"
        return self.variant

    @property
    def case(self) -> Case:
        """Any of its cases, for what all have in common."""
        return self.members[0].case

    @property
    def link(self) -> str:
        """Link to it from another page."""
        return f"{self.page}#{self.name}"

    def state(self) -> CaseState:
        """Return the worst state of a case."""
        return max((state_of(judged) for judged in self.members), key=lambda state: state.badness)


def groups(verdict: Verdict) -> tuple[Group, ...]:
    """Return all groups, in the order in which the verdict first has them.

    Raises NetproofError where two would have one file.
    """
    several: dict[tuple, list[Judged]] = {}
    for judged in verdict.cases:
        several.setdefault(group_rulings.group(judged.case), []).append(judged)
    stored: dict[tuple, list[Borrowed]] = {}
    for one in () if verdict.alongside is None else verdict.alongside.cases:
        stored.setdefault(group_rulings.group(one.case), []).append(one)
    found = []
    for key, members in several.items():
        case = members[0].case
        name = file_name(function_name(case), variant(case))
        benchmark = registry.of(case)
        page = benchmark.name if benchmark.by_protocol else file_name(function_name(case))
        found.append(
            Group(
                name,
                f"{page}.html",
                function_name(case),
                variant(case),
                tuple(members),
                tuple(stored.get(key, ())),
            )
        )
    for group in found:
        same = [other for other in found if other.name == group.name and other is not group]
        if same:
            raise NetproofError(
                f"{group.title} and {same[0].title} would both be {group.name}: rename one"
            )
    return tuple(found)


def page_title(group: Group) -> str:
    """Return the title of a group's page: a benchmark with one page, or a function."""
    benchmark = registry.of(group.case)
    return benchmark.label if benchmark.by_protocol else group.function


def pages(several: Sequence[Group]) -> dict[str, list[Group]]:
    """Return the groups of each page, by its file."""
    found: dict[str, list[Group]] = {}
    for group in several:
        found.setdefault(group.page, []).append(group)
    return found


def points(judged: Judged | Borrowed) -> list[dict[str, Any]]:
    """Return a row for each size of a case: medians over launches in µs, MAD, band and rates.

    The fastest rank's time, the ranks' mean and the bandwidth are None where they are missing.
    Sizes of 0 bytes and times of 0 µs are left out: a logarithmic axis has no place for them.
    """
    if judged.measured is None:
        return []
    day = {"configuration": label(judged), "partition": switch(judged)}
    return [{**row, **day} for row in points_of(judged.measured)]


def points_of(measured: Measured) -> list[dict[str, Any]]:
    """Return the same of a measurement, whoever made it."""
    return _points(measured.case, measured.curve, measured.mad_us, len(measured.launches))


def _points_again(judged: Judged) -> list[dict[str, Any]]:
    """Return the same of a repeated measurement, at sizes that may be between the curve's."""
    if judged.again is None or not judged.again.launches:
        return []
    launches = judged.again.launches
    return _points(judged.case, median_curve(launches), spread(launches), len(launches))


def _points(
    case: Case, curve: Curve, mad_us: Sequence[float], launches: int
) -> list[dict[str, Any]]:
    rates, least, means = (
        (None,) * len(curve.sizes) if column is None else column
        for column in (curve.bandwidth_mb_s, curve.time_min_us, curve.time_avg_us)
    )
    rows = []
    for size, time, mad, low, mean, rate in zip(
        curve.sizes, curve.time_us, mad_us, least, means, rates, strict=True
    ):
        if size < 1 or time <= 0:
            continue
        rows.append(
            {
                "configuration": configuration(case),
                "partition": case.partition,
                "environment": case.environment,
                "protocol": case.function.upper() if registry.of(case).by_protocol else None,
                "size_bytes": size,
                "time_us": time,
                "mad_us": mad,
                "low_us": time - mad,
                "high_us": time + mad,
                "time_min_us": low,
                "time_avg_us": mean,
                "bandwidth_mb_s": rate,
                "bandwidth_mbit_s": None if rate is None else mbit_s(rate),
                "launches": launches,
            }
        )
    return rows


def again(group: Group) -> list[dict[str, Any]]:
    """Return a row for each size of each repeated launch of the group's cases."""
    return [
        {
            "configuration": configuration(judged.case),
            "partition": judged.case.partition,
            "environment": judged.case.environment,
            "size_bytes": size,
            "time_us": time,
            "launch": f"{number} of {len(judged.again.launches)}",
            "where": f"job {judged.again.jobid} on {', '.join(judged.again.nodes)}",
        }
        for judged in group.members
        if judged.again is not None
        for number, curve in enumerate(judged.again.launches, 1)
        for size, time in zip(curve.sizes, curve.time_us, strict=True)
        if size >= 1 and time > 0
    ]


def envelope(found: Envelope | None) -> list[dict[str, Any]]:
    """Return an envelope as rows of size and time; none without one."""
    if found is None:
        return []
    return [
        {"size_bytes": size, "time_us": time, "fastest": fastest}
        for size, time, fastest in zip(
            found.curve.sizes, found.curve.time_us, found.fastest, strict=True
        )
    ]


def flags(group: Group) -> list[dict[str, Any]]:
    """Return the flagged sizes of a group, a row each with mark, sentence and position."""
    return [row for _, rows in flags_by_case(group) for row in rows]


def flags_by_case(group: Group) -> list[tuple[Judged, list[dict[str, Any]]]]:
    """Return the same, case by case."""
    found = []
    for judged in group.members:
        several = [*_points_again(judged), *points(judged)]
        at = {row["size_bytes"]: row for row in several}
        rows = []
        for ruling in judged.rulings:
            mark = _mark(ruling)
            if mark is None:
                continue
            rows += [
                {
                    **at[size],
                    "mark": mark,
                    "criterion": ruling.finding.criterion,
                    "why": ruling.reason,
                }
                for size in ruling.sizes()
                if size in at
            ]
        found.append((judged, rows))
    return found


def _mark(ruling: Ruling) -> str | None:
    if ruling.level is Level.FAIL:
        return "failed"
    if ruling.level is Level.INCONCLUSIVE:
        return "inconclusive"
    if ruling.level is Level.WARN:
        return "warning"
    return None if ruling.confirmation is None else "not confirmed"


def reasons(judged: Judged, level: Level) -> list[str]:
    """Return the reasons of a case's rulings of a level."""
    return [ruling.reason for ruling in judged.rulings if ruling.level is level]


def missing(group: Group) -> list[NotDrawn]:
    """Return the configurations without a curve in the chart of a group, and why."""
    found = []
    for judged in group.members:
        if judged.measured is None:
            why = "; ".join(judged.faults) or "it left no complete curve"
            found.append(NotDrawn(configuration(judged.case), why))
        elif not points(judged):
            name, curve = function_name(judged.case), judged.measured.curve
            why = f"{name} has no time that a logarithmic axis has a place for"
            if curve.sizes == (0,):
                why = f"{name} has no message sizes; a call takes {curve.time_us[0]:.3g} µs"
            found.append(NotDrawn(configuration(judged.case), why))
    return found
