"""Answers as plain values for ``json``; docs/reference/json.md describes the keys."""

from __future__ import annotations

import codecs
import dataclasses
import inspect
import json
import math
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime
from enum import Enum
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from netproof.verdict import FAILED, INCONCLUSIVE, PASSED

if TYPE_CHECKING:
    from netproof.criteria import Finding
    from netproof.experiments.gpcnet import GpcnetRuns
    from netproof.experiments.load import Loaded
    from netproof.experiments.sweep import Sweep
    from netproof.experiments.tails import Tail
    from netproof.pairs.verdict import PairsVerdict
    from netproof.session.measured import Measured
    from netproof.verdict.derive import ReferenceRisk
    from netproof.verdict.files import CurveVerdict
    from netproof.verdict.session_verdict import JudgedSession
    from netproof.verdict.traffic import InterfaceTotals
    from netproof.verdict.verdict import CaseVerdict, StoredResults

FORMAT = 2
"""Format of all documents; raised when a key changes its meaning or goes."""

_WORDS = {PASSED: "pass", FAILED: "fail", INCONCLUSIVE: "cannot be judged"}


def write(document: Mapping[str, Any], out: TextIO) -> None:
    """Write a document as JSON, with its format, in characters that ``out`` has.

    All of it is written, or nothing on an error. Raises ValueError for a number that JSON does not
    have.
    """
    ascii_only = codecs.lookup(out.encoding or "utf-8").name != "utf-8"
    made = {"format": FORMAT, **document}
    out.write(json.dumps(made, indent=1, allow_nan=False, ensure_ascii=ascii_only) + "\n")


def some(record: object, *names: str, **made_by: Callable[[Any], Any]) -> dict[str, Any]:
    """Return attributes of a record as plain values, and what functions make of it.

    ``names``: ``key=attribute``, or only ``attribute`` for a key of its name; with a dot an
    attribute of an attribute, with ``?`` at its end null where it is empty. A method is called.
    """
    made = {}
    for name in names:
        key, attribute = name.partition("=")[0].rstrip("?"), name.rpartition("=")[2]
        value = attrgetter(attribute.rstrip("?"))(record)
        found = plain(value() if callable(value) else value)
        made[key] = (found or None) if attribute.endswith("?") else found
    return made | {key: plain(of(record)) for key, of in made_by.items()}


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
    if isinstance(value, frozenset):
        return sorted(map(plain, value))
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
                plain(case) | some(finding, "criterion", "size_bytes=size")
                for case, finding in recurring
            ],
        },
        "launches": sum(one.launches for one in verdict.launched),
        "crashed": sum(one.crashed for one in verdict.launched),
        **some(judged, "baseline=matrix.baseline", "not_compared=verdict.unread"),
        **some(judged, "nodes_differ=session.provenance.differences"),
        **some(verdict, "launched", "faults", "undecided", "notes", "nodes", "coverage", "pairs"),
        **some(verdict, "absences", "cases", "compared_with", "counters=traffic"),
        "skipped": [
            {
                **{"partition": partition, "environment": environment, "cases": plain(cases)},
                **{"why": why, "planned": planned},
            }
            for (partition, environment, why, planned), cases in by_reason(verdict.skipped).items()
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
    more = ("confirmed", "interval", "size_bytes=size", "sizes_bytes=sizes")
    found = [some(one, *keys, *more, "compared_bytes=compared_sizes") for one in judged.findings]
    of = ("faults", "failed_job", "score", "measured", "verdict=level", "expected?")
    again = None
    if judged.measured is not None and judged.again is not None:
        again = {
            **some(judged.measured, "nodes", "jobid"),
            "faults": [one.said for one in judged.again if not one.curves],
            "crashes": [plain(crash) for one in judged.again for crash in one.crashes],
            "launches": plain(judged.curves_again),
        }
    return {**plain(judged.case), **some(judged, *of), "again": again, "findings": found}


def _crossover(cases: tuple[CaseVerdict, ...]) -> dict[str, Any]:
    from netproof.verdict.verdict import breakdown, red_cases, red_criteria, red_sizes

    red = red_cases(cases)
    return {
        **some(cases[0].case, "partition", "environment", "benchmark", "function"),
        **some(cases[0].case, "path", "direction"),
        "ranks": [one.case.ranks for one in cases],
        "sentence": breakdown(cases),
        "least_red_ranks": red[0].case.ranks if red else None,
        "missing_ranks": [one.case.ranks for one in cases if not one.ran],
        "red": [
            some(one, "ranks=case.ranks", sizes_bytes=red_sizes, criteria=red_criteria)
            for one in red
        ],
    }


def _groups(found: StoredResults) -> list[dict[str, Any]]:
    """Return stored results by configuration, session and marks."""
    return [
        {
            **some(cases[0].case, "partition", "environment"),
            **some(cases[0], "session", "marks", "started", "days_before=days"),
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
    found = some(one, "alone", "bisection", "accusations=judgement.accusations", "lone_pairs=lone")
    return {**rounds, **found, "launches": len(one.rounds.launches), "nodes": nodes}


def _measured(one: Measured) -> dict[str, Any]:
    return {
        "launches": len(one.launches),
        **some(one, "crashes", "line_rate_mb_s", "landmarks", "cpu_costs"),
        "curve": {**plain(one.curve), "mad_us": one.mad_us},
    }


def _traffic(one: InterfaceTotals) -> dict[str, Any]:
    # Null where a count is not known.
    again = some(one.again, "segments_sent=of", "segments_sent_again=count")
    place = some(one, "partition", "node", "interface", "under_test=rail")
    return {**place, **one.counted, **again}


def _risk(one: ReferenceRisk) -> dict[str, Any]:
    """Return a landmark's risks; ratios are to the agreed value."""
    from netproof.measurement.interval import Side

    sides = {"passed": Side.WITHIN, "failed": Side.BEYOND, "inconclusive": Side.ASTRIDE}
    curve = [
        {"ratio": ratio, **{name: shares[side] for name, side in sides.items()}}
        for ratio, shares in one.curve.items()
    ]
    found = some(one, "unit", "agreed", "bound", "landmark=variable", "scatter")
    return {**plain(one.case), **found, "curve": curve, **some(one, "plan", "why?")}


def _loaded(one: Loaded) -> dict[str, Any]:
    """Return a session under load with its factors; times in µs."""
    causes, doubts = one.causes_and_doubts
    keys = ("measured=victim", "load=aggressor", "where=place", "rounds", "refused")
    return {
        **some(one, *_JOB, "beyond", "undecided"),
        **{"causes": plain(causes), "not_examined": plain(doubts)},
        "factors": [
            {
                **some(impact, *keys, "waiting_for_cpu=waited"),
                **{
                    name: some(factor, *_FACTOR, "alone_us=alone", "loaded_us=loaded")
                    for name, factor in impact.factors.items()
                },
            }
            for impact in one.impacts
        ],
    }


def _gpcnet(runs: GpcnetRuns) -> dict[str, Any]:
    from netproof.experiments.load import Statistic

    return {
        **some(runs, *_JOB, "refused", "beyond", "undecided"),
        "rounds": len(runs.rounds) - len(runs.refused),
        "tests": [
            {
                **some(one, "unit", "name=victim"),
                **some(one.factors[Statistic.MEAN], "alone", "congested=loaded"),
                "mean": some(one.factors[Statistic.MEAN], *_FACTOR),
                "tail": some(one.factors[Statistic.TAIL], *_FACTOR),
            }
            for one in runs.impacts
        ],
    }


def _tail(tail: Tail) -> dict[str, Any]:
    """Return a launch with the figures of its calls; times in µs."""
    from statistics import fmean

    keys = ("bytes", "pauses", "paused_share", "disturbed", "most", "beyond", "undecided")
    return {
        **some(tail, *_JOB, *keys, "started=launch.start", "seconds=took_s"),
        **some(tail, "segments_sent_again=sent_again"),
        "calls": len(tail.times_us),
        "mean_us": fmean(tail.times_us),
        "longest_us": max(tail.times_us),
        "percentiles": [
            {"level": at, "value_us": value_us, "interval_us": plain(interval)}
            for at, (value_us, interval) in tail.percentiles.items()
        ],
        "carrier_changes": [
            {"node": node, "interface": interface, "changes": changes}
            for node, interface, changes in tail.carriers
        ],
    }


def _curve_verdict(one: CurveVerdict) -> dict[str, Any]:
    """Return a curve of files with its findings; bandwidths in 10⁶ bytes/s."""
    kind, names = plain(one.kind), ("criterion", "level", "against", "value", "bound", "interval")
    if not one.kind.remark:
        del kind["remark"]
    more = ("why", "size_bytes=size", "sizes_bytes=sizes")
    return {
        **kind,
        **some(one, "files", "level", "yardstick", "configuration=case.name", "curve=case.curve"),
        **some(one, "landmarks=case.landmarks"),
        "launches": len(one.case.launches),
        "rank_spread": one.rank_spread and one.rank_spread[0],
        "findings": [some(each, *names, *more, common_sizes=_common) for each in one.findings],
    }


def _common(one: Finding) -> dict[str, int] | None:
    """Return the sizes at which curves were compared: how many, the least and the largest."""
    if not one.common:
        return None
    return {
        "count": len(one.common),
        "least_bytes": one.common[0],
        "largest_bytes": one.common[-1],
    }


def _sweep(one: Sweep) -> dict[str, Any]:
    from netproof.present import sweeps

    return sweeps.document(one)


def _of(*names: str, **made_by: Callable[[Any], Any]) -> Callable[[Any], dict[str, Any]]:
    return partial(_some, names, made_by)


def _some(
    names: tuple[str, ...], made_by: Mapping[str, Callable[[Any], Any]], record: Any
) -> dict[str, Any]:
    return some(record, *names, **made_by)


_JOB = ("system", "partition", "environment", "nodes")
_FACTOR = ("value", "interval", "most", "side", "why")
_CURVE = ("time_us", "bandwidth_mb_s", "time_min_us", "time_avg_us")
KEYS: Mapping[str, Callable[[Any], dict[str, Any]]] = {
    "Acceptance": _of("session", "reason", "name", "at", "covers"),
    "AcceptancePlan": _of("sessions", "launches", "bound", "seller=risk", "buyer=risk"),
    "Accusation": lambda one: _own(one) | {"sentence": str(one)},
    "Case": lambda one: {key: value for key, value in _own(one).items() if key != "system"},
    "CaseVerdict": _case_verdict,
    "ComparedCase": _of(
        *("outcome", "disturbed", "landmarks", "sentence", "ratio=score.value"),
        *("interval=score.interval", "first=first.case"),
        "second=second.case",
        common=lambda one: _common(one.score),
        sizes_bytes=lambda one: list(one.ratios),
        ratios=lambda one: list(one.ratios.values()),
        ranges=lambda one: one.ranges,
        cpu_s_per_gb=lambda one: some(one.cpu_s_per_gb, "first", "second", "ratio"),
    ),
    "ComparedSide": _of(
        *("name", "partition", "environment", "session=session.path"),
        started=lambda side: side.session.info.get("time_start"),
        labels=lambda side: side.session.labels(),
        system=lambda side: side.session.results[0].system,
    ),
    "Coverage": lambda one: _own(one) | some(one, "failed", "short", "known", sentence=str),
    "Culprit": _of(
        *("why", "alternatives", "cause", "sure", "narrowed", "sentence=headline"),
        *("failed_cases=consequences", "do=advice", "place", "evidence", "distinguish_by?"),
        *("since", "rules_out?"),
    ),
    "Culprits": _of(
        *("unknown", "from_session=before.name", "to_session=after.name", "differences"),
    ),
    "Curve": _of(*_CURVE, "sizes_bytes=sizes"),
    "CurveVerdict": _curve_verdict,
    "Diagnosis": _of(
        *("partition", "cases", "passed", "outcome", "failed=red", "asked", "culprits"),
        *("ruled_out", "not_known", "incomplete", "next_steps"),
    ),
    "Evidence": _of(
        *("sentence", "source", "sign", "sure", "nodes=place.nodes", "alone=recovery"),
        *("environment?", "effects"),
    ),
    "FilesVerdict": _of("status", "faults", "notes", "curves"),
    "Finding": _of("value", "disturbed", "interval", common=_common),
    "GpcnetRuns": _gpcnet,
    "InterfaceTotals": _traffic,
    "Launch": _of(
        *("launch=number", "attempt", "order", "status", "nodes=died_on", "said", "counters"),
    ),
    "LaunchCount": _of("partition", "environment", "launches", "crashed", "level=finding.level"),
    "Loaded": _loaded,
    "Measured": _measured,
    "NodeFinding": lambda one: _own(one) | some(one, "environment?"),
    "PairsVerdict": _pairs,
    "Place": _of("name", "nodes", "kind", "interface?"),
    "ProvenanceDifference": _of("what", "before", "after", "nodes", "of_configuration=own"),
    "Range": _of(
        "faster", "ratio", "least_bytes=least", "largest_bytes=largest", "size_bytes=size"
    ),
    "ReferenceRisk": _risk,
    "Scatter": _of("launches=within", "sessions=between"),
    "Selection": _of("partition", "environment", "quantity", "expressions=cases"),
    "Since": _of("sessions", "why", "began", "started", "session?"),
    "Smallest": _of("change", "factor", "sure", "size", "criterion=by?"),
    "StoredResults": _of("store", "max_age_days", "not_found", sessions=_groups),
    "StoredSession": _of("session=name", "started=start"),
    "Sweep": _sweep,
    "Tail": _tail,
}
"""Plain values of records by their classes, of those that have others than their fields."""
