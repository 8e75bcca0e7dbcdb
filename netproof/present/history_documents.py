"""The history as plain values for ``json``."""

from __future__ import annotations

import dataclasses
from typing import Any

from netproof.history import history_verdict
from netproof.history.culprits import Culprits, ProvenanceDifference
from netproof.history.history_verdict import Event, HistoryVerdict, Shift
from netproof.history.series import Pool, Series
from netproof.present import documents


def document(verdict: HistoryVerdict, *, series: bool) -> dict[str, Any]:
    """Return plain values for ``json``, as docs/operation.md describes; ``series``: all values."""
    nights = verdict.nights
    return {
        "format": documents.FORMAT,
        "system": verdict.system,
        "unread": list(nights.unread),
        "sessions": [
            {"session": stored.name, "started": stored.start.isoformat()}
            for stored in nights.sessions
        ],
        "verdict": "worse"
        if verdict.status == history_verdict.WORSE
        else "not judged"
        if verdict.too_few
        else "not worse",
        "too_few": verdict.too_few,
        "tested": verdict.tested,
        "followed": len(verdict.followed),
        "false_alarms_a_month": verdict.false_alarms_a_month,
        "baseline": None
        if nights.baseline is None
        else {"partition": nights.baseline.partition, "environment": nights.baseline.environment},
        "left": nights.left,
        "other_sizes": nights.other_sizes,
        "crashes": [dataclasses.asdict(one) for one in nights.crashes],
        "counted": [dataclasses.asdict(one) for one in nights.counted],
        "inconclusive": [
            {
                "session": one.session.name,
                "case": documents.of_case(one.case),
                "why": list(one.why),
            }
            for one in nights.inconclusive
        ],
        "events": [_event(verdict, event) for event in verdict.events],
        "bad_nights": [
            {
                "partition": odd.partition,
                "environment": odd.environment,
                "session": odd.session.name,
                "sentence": odd.sentence(),
                "changes": [_shift(verdict, shift) for shift in odd.shifts],
            }
            for odd in verdict.bad_nights
        ],
        "changes": [_shift(verdict, shift) for shift in verdict.shifts],
        "accepted": [
            {
                "session": one.session,
                "reason": one.reason,
                "name": one.name,
                "at": one.at,
                "covers": {
                    "expressions": list(one.covers.cases),
                    "partition": one.covers.partition,
                    "environment": one.covers.environment,
                    "quantity": one.covers.quantity,
                },
            }
            for one in verdict.acceptances
        ],
        "series": [_series(verdict, one) for one in nights.series] if series else None,
    }


def _event(verdict: HistoryVerdict, event: Event) -> dict[str, Any]:
    return {
        "partition": event.partition,
        "environment": event.environment,
        "worse": event.worse,
        "session": event.session.name,
        "before_session": event.before.name,
        "sentence": event.sentence(),
        "changes": [_shift(verdict, shift) for shift in event.shifts],
        "culprits": _culprits(event.culprits),
        "alongside": [_culprits(culprits) for culprits in event.alongside],
    }


def _culprits(culprits: Culprits) -> dict[str, Any]:
    return {
        "from_session": culprits.before.name,
        "to_session": culprits.after.name,
        "differences": [_difference(one) for one in culprits.differences],
        "unknown": dict(culprits.unknown),
    }


def _difference(one: ProvenanceDifference) -> dict[str, Any]:
    return {
        "what": one.what,
        "before": one.before,
        "after": one.after,
        "nodes": list(one.nodes),
        "of_configuration": one.own,
    }


def _shift(verdict: HistoryVerdict, shift: Shift) -> dict[str, Any]:
    change, sessions = shift.change, verdict.nights.sessions
    return {
        "partition": shift.of.where[0],
        "environment": shift.of.where[1],
        "case": documents.of_case(shift.of.case) if isinstance(shift.of, Series) else None,
        "pooled": len(shift.of.members) if isinstance(shift.of, Pool) else None,
        "quantity": shift.of.quantity,
        "kind": change.kind,
        "state": shift.state,
        "worse": shift.worse,
        "session": sessions[change.index].name,
        "found": sessions[change.found].name,
        "ended": None if change.ended is None else sessions[change.ended].name,
        "before": change.before,
        "after": change.after,
        "size": change.size,
        "p_value": change.p_value,
    }


def _series(verdict: HistoryVerdict, one: Series) -> dict[str, Any]:
    found = verdict.followed[one]
    return {
        "case": documents.of_case(one.case),
        "quantity": one.quantity,
        "values": list(one.values),
        "inconclusive": list(one.inconclusive),
        "level": found.level,
        "noise": found.noise,
    }
