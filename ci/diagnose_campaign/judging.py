"""Grade a diagnosis by the planted fault."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ci.campaigns.telling import short
from ci.diagnose_campaign.kinds import HEALTHY, KINDS, MANAGEMENT, Kind
from ci.diagnose_campaign.records import Found, Judged, Run
from ci.testbed.faults import LEAF, NODE, SWITCH
from netproof.diagnosis.causes import BY_NAME
from netproof.diagnosis.diagnosis import (
    INCONCLUSIVE,
    NOTHING_WRONG,
    SOMETHING_WRONG,
    DiagnosisOutcome,
)
from netproof.diagnosis.evidence import CauseName, PlaceKind
from netproof.pairs.topology import UPLINK_OF
from netproof.present import documents


def judge(run: Run, status: int, text: str, errors: str) -> Judged:
    """Grade ``netproof diagnose --format json`` by its exit status, its document and its errors.

    The run is not judged where they contradict each other or docs/reference/json.md.
    """
    try:
        document = json.loads(text)
    except ValueError:
        said = " ".join(errors.split()) or "nothing else was said"
        return not_judged(f"netproof diagnose ended with {status} and left no JSON: {said}")
    try:
        return _judge(run, status, document)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        return not_judged(f"what netproof diagnose printed is no diagnosis: {error!r}")


_OUTCOMES = {
    NOTHING_WRONG: DiagnosisOutcome.NOTHING,
    SOMETHING_WRONG: DiagnosisOutcome.FOUND,
    INCONCLUSIVE: DiagnosisOutcome.INCONCLUSIVE,
}


def _judge(run: Run, status: int, document: Mapping[str, Any]) -> Judged:
    if document["format"] != documents.FORMAT:
        return not_judged(f"its format is {document['format']}, not {documents.FORMAT}")
    (partition,) = document["partitions"]
    culprits, outcome = partition["culprits"], DiagnosisOutcome(partition["outcome"])
    fits = _OUTCOMES.get(status) is outcome and bool(culprits) is (
        outcome is DiagnosisOutcome.FOUND
    )
    if partition["partition"] != run.switch or not fits:
        return not_judged(
            f"netproof diagnose ended with {status} and says {outcome.value!r} of"
            f" {partition['partition']}, with {len(culprits)} culprits"
        )
    said = [culprit["sentence"] for culprit in culprits]
    if outcome is DiagnosisOutcome.INCONCLUSIVE:
        said = [f"inconclusive: {'; '.join(partition['incomplete'])}"]
    return Judged(_worth(run, culprits), tuple(map(short, said)), outcome.value)


def _worth(run: Run, culprits: Sequence[Mapping[str, Any]]) -> Found:
    """Grade all culprits together: nothing else may be accused."""
    if run.kind == HEALTHY:
        return Found.FALSE if culprits else Found.RIGHT
    named = [one for one in culprits if not _names_no_kind(run, one)]
    worth = [worth_of(run, culprit) for culprit in named]
    if Found.FALSE in worth:
        return Found.FALSE
    elsewhere = any(
        one is Found.HALF and run.place not in culprit["place"]["nodes"]
        for one, culprit in zip(worth, named, strict=True)
    )
    if Found.RIGHT in worth and not elsewhere:
        return Found.RIGHT
    return Found.HALF if worth else Found.MISSED


def _names_no_kind(run: Run, culprit: Mapping[str, Any]) -> bool:
    """Check whether a culprit only says that something failed, or that it did around the place."""
    cause = CauseName(culprit["cause"])
    around = KINDS[run.kind].place != NODE or run.place in culprit["place"]["nodes"]
    return cause is CauseName.UNEXPLAINED or (cause is CauseName.ONE_OR_TWO and around)


def worth_of(run: Run, culprit: Mapping[str, Any]) -> Found:
    """Grade one culprit: ``RIGHT``, ``HALF`` or ``FALSE``."""
    kind, cause = KINDS[run.kind], CauseName(culprit["cause"])
    here = _is_here(run, culprit)
    if cause in kind.causes:
        return Found.RIGHT if here else Found.HALF
    if cause in kind.wider or (here and _fits_alike(kind, culprit["alternatives"])):
        return Found.HALF
    return Found.FALSE


def _is_here(run: Run, culprit: Mapping[str, Any]) -> bool:
    """Check that a culprit has the place of the fault, as precisely as the fault has one."""
    kind, place = KINDS[run.kind], culprit["place"]
    name, nodes, of = place["name"], place["nodes"], PlaceKind(place["kind"])
    if kind.misleads:
        mine = {*name.split(", ")} == {*run.environments}
        return of is PlaceKind.ENVIRONMENT and mine and place["interface"] == MANAGEMENT
    if kind.place == SWITCH:
        return of is PlaceKind.WHOLE
    if kind.place == LEAF:
        return of is PlaceKind.UPLINK and name == UPLINK_OF + run.place
    if nodes != [run.place]:
        return False
    sentences = [culprit["sentence"], name, *(one["sentence"] for one in culprit["evidence"])]
    if CauseName(culprit["cause"]) is CauseName.SETTING:
        words = {word.rstrip(",;:") for sentence in sentences for word in sentence.split()}
        return of is PlaceKind.SETTING and not words.isdisjoint(run.fault)
    if CauseName(culprit["cause"]) is CauseName.ONE_DIRECTION:
        slow = "sends" if "send_rate" in run.fault else "receives"
        return culprit["sentence"].endswith(f"what it {slow}")
    return of is PlaceKind.NODE


def _fits_alike(kind: Kind, alternatives: Sequence[str]) -> bool:
    """Check whether an alternative has the headline of one of the causes."""
    forms = [
        re.escape(BY_NAME[cause].headline)
        .replace(re.escape("{place}"), ".+")
        .replace(re.escape("{detail}"), ".*")
        for cause in kind.causes
    ]
    return any(re.fullmatch(form, one) for form in forms for one in alternatives)


def not_judged(reason: str) -> Judged:
    """Return the result of a run without an answer, with the reason."""
    return Judged(Found.NOT_JUDGED, (short(reason),))
