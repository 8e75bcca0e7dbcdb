"""The verdict as plain values for ``json``; docs/operation.md describes the keys."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, TextIO

from netproof.criteria import CommonSizes, Finding, Level
from netproof.measurement.case import Case
from netproof.measurement.curve import Curve
from netproof.measurement.interval import Interval
from netproof.session.measured import Measured
from netproof.session.session import Session
from netproof.site.matrix import Matrix
from netproof.verdict.exit_status import CANNOT_JUDGE, FAILED, PASSED
from netproof.verdict.explain import Crossover, crossovers, red_criteria, red_sizes
from netproof.verdict.judging import JudgedSession
from netproof.verdict.recurring import NOTHING, Recurring
from netproof.verdict.subject import Ruling
from netproof.verdict.traffic import InterfaceTotals
from netproof.verdict.verdict import Alongside, Judged, Verdict, by_reason

FORMAT = 2
"""Format of all documents; raised when a key changes its meaning or goes."""


_WORDS = {PASSED: "pass", FAILED: "fail", CANNOT_JUDGE: "cannot be judged"}


def write(document: Mapping[str, Any], out: TextIO) -> None:
    """Write a document as JSON: all of it, or nothing on an error.

    Raises ValueError for a number that JSON does not have.
    """
    out.write(text(document, out) + "\n")


def text(document: object, out: TextIO) -> str:
    """Return a document as JSON, in characters that ``out`` has."""
    made = json.dumps(document, indent=1, allow_nan=False, ensure_ascii=False)
    try:
        made.encode(out.encoding or "utf-8")
    except UnicodeEncodeError:
        return json.dumps(document, indent=1, allow_nan=False)
    return made


def of_judged(judged: JudgedSession) -> dict[str, Any]:
    """Return ``of_verdict`` of a judged session, with its stored verdict and what changed since."""
    document = of_verdict(
        judged.session,
        judged.matrix,
        judged.verdict,
        judged.unread,
        judged.differences,
        judged.usual,
    )
    changed = judged.changed
    return {
        **document,
        "kept": None if judged.kept is None else dataclasses.asdict(judged.kept),
        "changed": None
        if changed is None
        else {
            "kept": dataclasses.asdict(changed.kept),
            "cases": [
                {
                    **of_case(one.case),
                    "was": one.was,
                    "now": one.now,
                    "gone": list(one.gone),
                    "new": list(one.new),
                }
                for one in changed.cases
            ],
            "gone": list(changed.gone),
            "new": list(changed.new),
        },
    }


def of_verdict(
    session: Session,
    matrix: Matrix,
    verdict: Verdict,
    unread: Sequence[str],
    differences: Sequence[str],
    usual: Recurring = NOTHING,
) -> dict[str, Any]:
    """Return a judged session. Sizes in bytes, times in µs, bandwidths in MB/s (10⁶ bytes/s).

    ``unread``: why earlier sessions could not be read; ``differences``: between nodes or jobs, a
    sentence each; ``usual``: the warnings that earlier sessions had too.
    """
    return {
        "format": FORMAT,
        "session": str(session.path),
        "system": matrix.cases[0].system,
        "started": session.info.get("time_start"),
        "labels": session.labels(),
        "verdict": "inconclusive" if verdict.inconclusive else _WORDS[verdict.status],
        "passed": sum(one.passed for one in verdict.cases),
        "warned": sum(one.level is Level.WARN for one in verdict.cases),
        "inconclusive": sum(one.level is Level.INCONCLUSIVE for one in verdict.cases),
        "failed": sum(one.level is Level.FAIL for one in verdict.cases),
        "usual": {
            "sessions": usual.sessions,
            "warnings": [
                {
                    **of_case(one.judged.case),
                    "criterion": one.ruling.finding.criterion,
                    "size_bytes": one.ruling.finding.size,
                }
                for one in usual.warnings
            ],
        },
        "launches": sum(one.launches for one in verdict.launched),
        "crashed": sum(one.crashed for one in verdict.launched),
        "launched": [
            {
                "partition": one.partition,
                "environment": one.environment,
                "launches": one.launches,
                "crashed": one.crashed,
                "level": one.finding.level,
            }
            for one in verdict.launched
        ],
        "baseline": None if matrix.baseline is None else dataclasses.asdict(matrix.baseline),
        "faults": list(verdict.faults),
        "undecided": list(verdict.undecided),
        "notes": list(verdict.notes),
        "not_compared": list(unread),
        "nodes_differ": list(differences),
        "nodes": [
            {**dataclasses.asdict(one), "environment": one.environment or None}
            for one in verdict.nodes
        ],
        "coverage": [
            {
                **dataclasses.asdict(one),
                "failed": one.failed,
                "short": one.short,
                "known": one.known,
                "sentence": str(one),
            }
            for one in verdict.coverage
        ],
        "pairs": [one.as_json() for one in verdict.pairs],
        "left": [
            {
                "partition": partition,
                "environment": environment,
                **reason.as_json(),
                "cases": [of_case(case) for case in cases],
            }
            for (partition, environment, reason), cases in by_reason(verdict.left).items()
        ],
        "counters": [_traffic(one) for one in verdict.traffic],
        "absences": [dataclasses.asdict(absence) for absence in verdict.absences],
        "cases": [_case(one) for one in verdict.cases],
        "crossovers": [_crossover(one) for one in crossovers(verdict)],
        "alongside": None if verdict.alongside is None else _alongside(verdict.alongside),
    }


def _traffic(totals: InterfaceTotals) -> dict[str, Any]:
    """Return an interface's counters over the session; null for unknown ones."""
    return {
        **{name: getattr(totals, name) for name in ("partition", "node", "interface")},
        "under_test": totals.rail,
        **totals.counted,
        "segments_sent": totals.again.of,
        "segments_sent_again": totals.again.count,
    }


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
        "landmarks": {
            **dataclasses.asdict(measured.landmarks),
            "undefined": dict(measured.landmarks.undefined),
            "intervals": {name: [low, high] for name, low, high in measured.landmarks.intervals},
        },
        "curve": {**of_curve(measured.curve), "mad_us": measured.mad_us},
        "cpu_costs": [
            {**dataclasses.asdict(cost), "absent": dict(cost.absent)} for cost in measured.cpu_costs
        ],
    }


def of_curve(curve: Curve) -> dict[str, Any]:
    """Return a curve by its columns."""
    return {
        "sizes_bytes": curve.sizes,
        "time_us": curve.time_us,
        "bandwidth_mb_s": curve.bandwidth_mb_s,
        "time_min_us": curve.time_min_us,
        "time_avg_us": curve.time_avg_us,
    }


def of_interval(interval: Interval | None) -> list[float | None] | None:
    """Return both ends of an interval, null for an upper one that is missing."""
    if interval is None:
        return None
    return [interval[0], interval[1] if interval[1] < math.inf else None]


def of_common(common: CommonSizes | None) -> dict[str, int] | None:
    """Return the sizes at which curves meet."""
    if common is None:
        return None
    return {
        "count": common.count,
        "least_bytes": common.least,
        "largest_bytes": common.largest,
    }


def _crossover(crossover: Crossover) -> dict[str, Any]:
    case = of_case(crossover.case)
    del case["ranks"], case["ranks_per_node"]
    return {
        **case,
        "ranks": [one.case.ranks for one in crossover.cases],
        "least_red_ranks": crossover.least,
        "missing_ranks": list(crossover.missing),
        "red": [
            {
                "ranks": one.case.ranks,
                "sizes_bytes": list(red_sizes(one)),
                "criteria": list(red_criteria(one)),
            }
            for one in crossover.red
        ],
        "sentence": crossover.sentence(),
    }


def _alongside(alongside: Alongside) -> dict[str, Any]:
    return {
        "store": str(alongside.store),
        "max_age_days": alongside.max_age_days,
        "sessions": [
            {
                "partition": one.cases[0].case.partition,
                "environment": one.cases[0].case.environment,
                "session": one.cases[0].session,
                "started": one.cases[0].started.isoformat(),
                "days_before": one.cases[0].days,
                "marks": list(one.cases[0].marks),
                "left_out": one.left_out,
                "cases": [
                    {
                        **of_case(case.case),
                        "score": _score(case.score()),
                        "measured": of_measured(case.measured),
                    }
                    for case in one.cases
                ],
            }
            for one in alongside.together()
        ],
        "not_found": [of_case(case) for case in alongside.not_found],
    }


def _score(score: Finding | None) -> dict[str, Any] | None:
    if score is None:
        return None
    return {
        "value": score.value,
        "interval": of_interval(score.interval),
        "common": of_common(score.common),
        "disturbed": list(score.disturbed),
    }


def _case(judged: Judged) -> dict[str, Any]:
    again = judged.again
    return {
        **of_case(judged.case),
        "verdict": judged.level,
        "faults": list(judged.faults),
        "expected": judged.expected or None,
        "failed_job": judged.failed_job,
        "score": _score(judged.score()),
        "measured": None if judged.measured is None else of_measured(judged.measured),
        "findings": [_ruling(ruling) for ruling in judged.rulings],
        "again": None
        if again is None
        else {
            "nodes": list(again.nodes),
            "jobid": again.jobid,
            "faults": list(again.faults),
            "crashes": [dataclasses.asdict(crash) for crash in again.crashes],
            "launches": [of_curve(curve) for curve in again.launches],
        },
    }


def _ruling(ruling: Ruling) -> dict[str, Any]:
    finding, confirmation = ruling.finding, ruling.confirmation
    return {
        "criterion": finding.criterion,
        "level": ruling.level,
        "why": ruling.why,
        "size_bytes": finding.size,
        "sizes_bytes": list(ruling.sizes()),
        "compared_bytes": list(finding.compared_sizes),
        "value": finding.value,
        "bound": finding.bound,
        "interval": of_interval(finding.interval),
        "against": finding.against,
        "node": finding.node,
        "interface": finding.interface,
        "confirmed": None if confirmation is None else confirmation.confirmed,
    }
