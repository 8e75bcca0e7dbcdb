"""Answers as plain values for ``json``; docs/reference/json.md describes the keys."""

from __future__ import annotations

import dataclasses
import inspect
import json
import math
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime
from enum import Enum
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from netproof.verdict import FAILED, INCONCLUSIVE, PASSED

if TYPE_CHECKING:
    from netproof.pairs.verdict import PairsVerdict
    from netproof.session.measured import Measured
    from netproof.verdict.session_verdict import JudgedSession
    from netproof.verdict.traffic import InterfaceTotals
    from netproof.verdict.verdict import CaseVerdict, StoredResults

FORMAT = 2
"""Format of all documents; raised when a key changes its meaning or goes."""

_WORDS = {PASSED: "pass", FAILED: "fail", INCONCLUSIVE: "cannot be judged"}

Of = str | Callable[[Any], Any]
"""An attribute of a record, or of its attribute with a dot, or what a function makes of it."""


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


def some(record: object, *names: str, **renamed: Of) -> dict[str, Any]:
    """Return these attributes of a record as plain values, and others by keys of their own.

    A method is called.
    """
    made = {}
    for key, of in {**dict(zip(names, names, strict=True)), **renamed}.items():
        value = attrgetter(of)(record) if isinstance(of, str) else of(record)
        made[key] = plain(value() if callable(value) else value)
    return made


def plain(value: Any) -> Any:
    """Return a value as JSON has it: a record as ``KEYS`` has its class, else by its fields.

    Sizes in bytes, times in µs, bandwidths in MB/s (10⁶ bytes/s); the upper end of an interval is
    null where it has none.
    """
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Mapping):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, tuple) and len(value) == 2 and value[1] == math.inf:
        return [value[0], None]
    if isinstance(value, list | tuple):
        return list(map(plain, value))
    if dataclasses.is_dataclass(value):
        known = (KEYS[one.__name__] for one in inspect.getmro(type(value)) if one.__name__ in KEYS)
        return next(known, _own)(value)
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, datetime):
        return value.isoformat()
    return value.value if isinstance(value, Enum) else value


def _own(record: Any) -> dict[str, Any]:
    return some(record, *(one.name for one in dataclasses.fields(record)))


def of_session(judged: JudgedSession) -> dict[str, Any]:
    """Return which session was judged."""
    session = judged.session
    started, system = session.info.get("time_start"), judged.matrix.cases[0].system
    return {"session": str(session.path), "system": system, "started": started}


def of_judged(judged: JudgedSession) -> dict[str, Any]:
    """Return a judged session, with its stored verdict and what changed since."""
    # Other verbs write documents too, and load nothing of a verdict.
    from netproof import codec
    from netproof.criteria import Level
    from netproof.verdict.verdict import by_reason, crossovers

    verdict, changed, stored = judged.verdict, judged.changed, None
    levels, (sessions, recurring) = Counter(one.level for one in verdict.cases), judged.recurring
    if judged.stored is not None:
        program, _ = judged.stored.netproof
        stored = {"at": judged.stored.judged, "netproof": program, "differs": judged.differs}
    return {
        **of_session(judged),
        "labels": judged.session.labels(),
        "verdict": "inconclusive" if verdict.inconclusive else _WORDS[verdict.status],
        "passed": levels[Level.PASS] + levels[Level.WARN],
        "warned": levels[Level.WARN],
        "inconclusive": levels[Level.INCONCLUSIVE],
        "failed": levels[Level.FAIL],
        "recurring": {
            "sessions": sessions,
            "warnings": [
                plain(case) | some(finding, "criterion", size_bytes="size")
                for case, finding in recurring
            ],
        },
        "launches": sum(one.launches for one in verdict.launched),
        "crashed": sum(one.crashed for one in verdict.launched),
        **some(judged, baseline="matrix.baseline", not_compared="verdict.unread"),
        **some(judged, nodes_differ="session.provenance.differences"),
        **some(verdict, "launched", "faults", "undecided", "notes", "nodes", "coverage", "pairs"),
        **some(verdict, "absences", "cases", "compared_with", counters="traffic"),
        "skipped": [
            {
                **{"partition": partition, "environment": environment, "cases": plain(cases)},
                **codec.encode(reason),
            }
            for (partition, environment, reason), cases in by_reason(verdict.skipped).items()
        ],
        "crossovers": [_crossover(cases) for cases in crossovers(verdict)],
        "stored": stored if changed is None else None,
        "changed": None
        if changed is None
        else {
            "stored": stored,
            "cases": [
                plain(one.case) | some(one, "was", "now", "gone", "new")
                for one in changed
                if one.case is not None
            ],
            **{
                name: [why for one in changed if one.case is None for why in getattr(one, name)]
                for name in ("gone", "new")
            },
        },
    }


def _case_verdict(judged: CaseVerdict) -> dict[str, Any]:
    keys = ("criterion", "level", "why", "value", "bound", "against", "node", "interface")
    sizes: dict[str, Of] = {"sizes_bytes": "sizes", "compared_bytes": "compared_sizes"}
    return {
        **plain(judged.case),
        **some(judged, "faults", "failed_job", "score", "measured", "again", verdict="level"),
        "expected": judged.expected or None,
        "findings": [
            some(one, *keys, "confirmed", "interval", size_bytes="size", **sizes)
            for one in judged.findings
        ],
    }


def _crossover(cases: tuple[CaseVerdict, ...]) -> dict[str, Any]:
    from netproof.verdict.verdict import breakdown, red_cases, red_criteria, red_sizes

    red = red_cases(cases)
    return {
        **some(cases[0].case, *("partition", "environment", "benchmark", "function")),
        **some(cases[0].case, "path", "direction"),
        "ranks": [one.case.ranks for one in cases],
        "sentence": breakdown(cases),
        "least_red_ranks": red[0].case.ranks if red else None,
        "missing_ranks": [one.case.ranks for one in cases if not one.ran],
        "red": [
            some(one, ranks="case.ranks", sizes_bytes=red_sizes, criteria=red_criteria)
            for one in red
        ],
    }


def _groups(found: StoredResults) -> list[dict[str, Any]]:
    """Return stored results by configuration, session and marks."""
    return [
        {
            **some(cases[0].case, "partition", "environment"),
            **some(cases[0], "session", "marks", "started", days_before="days"),
            "left_out": left_out,
            "cases": [plain(one.case) | some(one, "score", "measured") for one in cases],
        }
        for _, cases, left_out in found.together()
    ]


def _pairs(one: PairsVerdict) -> dict[str, Any]:
    """Return the result of rounds of pairs; ratios are to the others' time or rate."""
    nodes = {
        name: some(node, "state", "effects") | {"reason": one.busy.get(name, node.reason)}
        for name, node in one.judgement.nodes.items()
    }
    rounds = some(one.rounds, "partition", "environment", "faults")
    found = some(one, "alone", "bisection", accusations="judgement.accusations", lone_pairs="lone")
    return {**rounds, **found, "launches": len(one.rounds.launches), "nodes": nodes}


def _measured(one: Measured) -> dict[str, Any]:
    return {
        "launches": len(one.launches),
        **some(one, "crashes", "line_rate_mb_s", "landmarks", "cpu_costs"),
        "curve": {**plain(one.curve), "mad_us": one.mad_us},
    }


def _traffic(one: InterfaceTotals) -> dict[str, Any]:
    # Null where a count is not known.
    again = some(one.again, segments_sent="of", segments_sent_again="count")
    place = some(one, "partition", "node", "interface", under_test="rail")
    return {**place, **one.counted, **again}


def _of(*names: str, **renamed: Of) -> Callable[[Any], dict[str, Any]]:
    return lambda record: some(record, *names, **renamed)


_CURVE = ("time_us", "bandwidth_mb_s", "time_min_us", "time_avg_us")
KEYS: Mapping[str, Callable[[Any], dict[str, Any]]] = {
    "Accusation": lambda one: _own(one) | {"sentence": str(one)},
    "Case": lambda one: {key: value for key, value in _own(one).items() if key != "system"},
    "CaseVerdict": _case_verdict,
    "CommonSizes": _of("count", least_bytes="least", largest_bytes="largest"),
    "Coverage": lambda one: _own(one) | some(one, "failed", "short", "known", sentence=str),
    "Curve": _of(*_CURVE, sizes_bytes="sizes"),
    "Finding": _of("value", "disturbed", "interval", "common"),
    "InterfaceTotals": _traffic,
    "LaunchCount": _of("partition", "environment", "launches", "crashed", level="finding.level"),
    "Measured": _measured,
    "MeasuredAgain": _of("nodes", "jobid", "faults", "crashes", "launches"),
    "NodeFinding": lambda one: _own(one) | {"environment": one.environment or None},
    "PairsVerdict": _pairs,
    "StoredResults": _of("store", "max_age_days", "not_found", sessions=_groups),
}
"""Plain values of records by their classes, of those that have others than their fields."""
