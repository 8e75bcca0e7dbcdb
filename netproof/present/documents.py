"""The verdict as plain values for ``json``; docs/reference/json.md describes the keys."""

from __future__ import annotations

import dataclasses
import json
import math
import operator
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TextIO

from netproof.verdict import FAILED, INCONCLUSIVE, PASSED

if TYPE_CHECKING:
    from netproof.criteria import CommonSizes, Finding
    from netproof.measurement.case import Case
    from netproof.measurement.curve import Curve
    from netproof.measurement.interval import Interval
    from netproof.measurement.landmarks import Landmarks
    from netproof.session.measured import Measured
    from netproof.verdict.session_verdict import JudgedSession
    from netproof.verdict.verdict import CaseVerdict, Crossover, StoredResults

FORMAT = 2
"""Format of all documents; raised when a key changes its meaning or goes."""


_WORDS = {PASSED: "pass", FAILED: "fail", INCONCLUSIVE: "cannot be judged"}


def write(document: Mapping[str, Any], out: TextIO) -> None:
    """Write a document as JSON, with its format, in characters that ``out`` has.

    All of it is written, or nothing on an error. Raises ValueError for a number that JSON does not
    have.
    """
    document = {"format": FORMAT, **document}
    made = json.dumps(document, indent=1, allow_nan=False, ensure_ascii=False)
    try:
        made.encode(out.encoding or "utf-8")
    except UnicodeEncodeError:
        made = json.dumps(document, indent=1, allow_nan=False)
    out.write(made + "\n")


def of_judged(judged: JudgedSession) -> dict[str, Any]:
    """Return a judged session, with its stored verdict and what changed since.

    Sizes in bytes, times in µs, bandwidths in MB/s (10⁶ bytes/s).
    """
    # Other verbs write documents too, and load nothing of a verdict.
    from netproof import codec
    from netproof.criteria import Level
    from netproof.verdict.verdict import by_reason, crossovers

    session, matrix, verdict = judged.session, judged.matrix, judged.verdict
    sessions, recurring = judged.recurring
    levels = Counter(one.level for one in verdict.cases)
    changed, stored = judged.changed, None
    if judged.stored is not None:
        program, _ = judged.stored.bounds.netproof
        stored = {"at": judged.stored.judged, "netproof": program, "differs": judged.differs}
    return {
        "session": str(session.path),
        "system": matrix.cases[0].system,
        "started": session.info.get("time_start"),
        "labels": session.labels(),
        "verdict": "inconclusive" if verdict.inconclusive else _WORDS[verdict.status],
        "passed": levels[Level.PASS] + levels[Level.WARN],
        "warned": levels[Level.WARN],
        "inconclusive": levels[Level.INCONCLUSIVE],
        "failed": levels[Level.FAIL],
        "recurring": {
            "sessions": sessions,
            "warnings": [
                {**of_case(case), "criterion": finding.criterion, "size_bytes": finding.size}
                for case, finding in recurring
            ],
        },
        "launches": sum(one.launches for one in verdict.launched),
        "crashed": sum(one.crashed for one in verdict.launched),
        "launched": [
            some(one, "partition", "environment", "launches", "crashed", level="finding.level")
            for one in verdict.launched
        ],
        "baseline": matrix.baseline and dataclasses.asdict(matrix.baseline),
        **some(verdict, "faults", "undecided", "notes"),
        "not_compared": judged.unread,
        "nodes_differ": judged.differences,
        "nodes": [
            {**dataclasses.asdict(one), "environment": one.environment or None}
            for one in verdict.nodes
        ],
        "coverage": [
            {
                **dataclasses.asdict(one),
                **some(one, "failed", "short", "known"),
                "sentence": str(one),
            }
            for one in verdict.coverage
        ],
        "pairs": [one.as_json() for one in verdict.pairs],
        "skipped": [
            {
                "partition": partition,
                "environment": environment,
                **codec.encode(reason),
                "cases": list(map(of_case, cases)),
            }
            for (partition, environment, reason), cases in by_reason(verdict.skipped).items()
        ],
        "counters": [
            # Null where a count is not known.
            {
                **some(one, "partition", "node", "interface", under_test="rail"),
                **one.counted,
                **some(one.again, segments_sent="of", segments_sent_again="count"),
            }
            for one in verdict.traffic
        ],
        "absences": [dataclasses.asdict(absence) for absence in verdict.absences],
        "cases": [_case(one) for one in verdict.cases],
        "crossovers": [_crossover(one) for one in crossovers(verdict)],
        "compared_with": verdict.compared_with and _compared_with(verdict.compared_with),
        "stored": stored if changed is None else None,
        "changed": None
        if changed is None
        else {
            "stored": stored,
            "cases": [
                {**of_case(one.case), **some(one, "was", "now", "gone", "new")}
                for one in changed
                if one.case is not None
            ],
            **{
                name: [why for one in changed if one.case is None for why in getattr(one, name)]
                for name in ("gone", "new")
            },
        },
    }


def some(record: object, *names: str, **renamed: str) -> dict[str, Any]:
    """Return these attributes of a record by their names, and others by a key of their own.

    ``renamed``: attributes by their keys, one of another attribute with a dot.
    """
    keys = {**{name: name for name in names}, **renamed}
    return {key: operator.attrgetter(name)(record) for key, name in keys.items()}


def of_case(case: Case) -> dict[str, Any]:
    """Return a case without its system."""
    values = dataclasses.asdict(case)
    del values["system"]
    return values


def of_measured(measured: Measured) -> dict[str, Any]:
    """Return the measurement of a case; its launches are their count."""
    return {
        "launches": len(measured.launches),
        "crashes": [dataclasses.asdict(crash) for crash in measured.crashes],
        "line_rate_mb_s": measured.line_rate_mb_s,
        "landmarks": of_landmarks(measured.landmarks),
        "curve": {**of_curve(measured.curve), "mad_us": measured.mad_us},
        "cpu_costs": [dataclasses.asdict(cost) for cost in measured.cpu_costs],
    }


def of_landmarks(landmarks: Landmarks) -> dict[str, Any]:
    """Return the landmarks of a curve, with reasons and intervals by their names."""
    return {
        **dataclasses.asdict(landmarks),
        "intervals": {
            name: [low, high if high < math.inf else None]
            for name, (low, high) in landmarks.intervals.items()
        },
    }


def of_curve(curve: Curve) -> dict[str, Any]:
    """Return a curve by its columns."""
    times = some(curve, "time_us", "bandwidth_mb_s", "time_min_us", "time_avg_us")
    return {"sizes_bytes": curve.sizes, **times}


def of_interval(interval: Interval | None) -> list[float | None] | None:
    """Return both ends of an interval, null for an upper one that is missing."""
    if interval is None:
        return None
    return [interval[0], interval[1] if interval[1] < math.inf else None]


def of_common(common: CommonSizes | None) -> dict[str, int] | None:
    """Return the sizes at which curves meet."""
    if common is None:
        return None
    return some(common, "count", least_bytes="least", largest_bytes="largest")


def _crossover(crossover: Crossover) -> dict[str, Any]:
    from netproof.verdict.verdict import red_criteria, red_sizes

    case = of_case(crossover.case)
    del case["ranks"], case["ranks_per_node"]
    return {
        **case,
        "ranks": [one.case.ranks for one in crossover.cases],
        **some(crossover, least_red_ranks="least", missing_ranks="missing"),
        "red": [
            {
                "ranks": one.case.ranks,
                "sizes_bytes": red_sizes(one),
                "criteria": red_criteria(one),
            }
            for one in crossover.red
        ],
        "sentence": crossover.sentence(),
    }


def _compared_with(found: StoredResults) -> dict[str, Any]:
    sessions = [
        {
            **some(cases[0].case, "partition", "environment"),
            **some(cases[0], "session", "marks", days_before="days"),
            "started": cases[0].started.isoformat(),
            "left_out": left_out,
            "cases": [
                {
                    **of_case(case.case),
                    "score": _score(case.score()),
                    "measured": of_measured(case.measured),
                }
                for case in cases
            ],
        }
        for _, cases, left_out in found.together()
    ]
    return {
        "store": str(found.store),
        "max_age_days": found.max_age_days,
        "sessions": sessions,
        "not_found": list(map(of_case, found.not_found)),
    }


def _score(score: Finding | None) -> dict[str, Any] | None:
    if score is None:
        return None
    return {
        **some(score, "value", "disturbed"),
        "interval": of_interval(score.interval),
        "common": of_common(score.common),
    }


def _case(judged: CaseVerdict) -> dict[str, Any]:
    again = judged.again
    return {
        **of_case(judged.case),
        **some(judged, "faults", "failed_job", verdict="level"),
        "expected": judged.expected or None,
        "score": _score(judged.score()),
        "measured": judged.measured and of_measured(judged.measured),
        "findings": [
            {
                **some(one, "criterion", "level", "why", "value", "bound"),
                **some(one, "against", "node", "interface", "confirmed"),
                **some(one, size_bytes="size", compared_bytes="compared_sizes"),
                "sizes_bytes": one.sizes(),
                "interval": of_interval(one.interval),
            }
            for one in judged.findings
        ],
        "again": again
        and {
            **some(again, "nodes", "jobid", "faults"),
            "crashes": [dataclasses.asdict(crash) for crash in again.crashes],
            "launches": list(map(of_curve, again.launches)),
        },
    }
