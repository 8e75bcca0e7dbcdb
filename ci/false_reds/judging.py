"""Result of a run by ``netproof verdict --format json``."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from ci.campaigns.telling import short
from ci.false_reds.records import FlaggedCase, Judged, Outcome
from netproof.criteria import Level
from netproof.measurement.case import Case
from netproof.present import documents
from netproof.verdict.exit_status import FAILED, INCONCLUSIVE, PASSED


def judge(status: int, text: str, errors: str) -> Judged:
    """Judge a run by the verdict's exit status, its document and its errors.

    The run is not judged where they contradict each other or docs/reference/json.md.
    """
    try:
        document = json.loads(text)
    except ValueError:
        said = " ".join(errors.split()) or "nothing else was said"
        return not_judged(f"netproof verdict ended with {status} and left no JSON: {said}")
    try:
        return _judge(status, document)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        return not_judged(f"what netproof verdict printed is no verdict: {error!r}")


def _judge(status: int, document: Mapping[str, Any]) -> Judged:
    if document["format"] != documents.FORMAT:
        return not_judged(f"the verdict's format is {document['format']}, not {documents.FORMAT}")
    found = [_flagged(case, document["system"]) for case in document["cases"]]
    if not found:
        return not_judged("the verdict has no cases")
    cases = tuple(case for case in found if case is not None)
    faults = tuple(short(fault) for fault in document["faults"])
    failed = bool(faults) or any(case.level is Level.FAIL for case in cases)
    beyond = tuple(short(sentence) for sentence in document["undecided"])
    left, word = bool(document["skipped"]), document["verdict"]
    if status == PASSED and word == "pass" and not (cases or faults or beyond or left):
        return Judged(Outcome.GREEN)
    if status == FAILED and word == "fail" and failed:
        return Judged(Outcome.RED, "", cases, faults, beyond)
    is_open = (cases or beyond) and not (failed or left) and word not in ("pass", "fail")
    if status == INCONCLUSIVE and is_open:
        return Judged(Outcome.INCONCLUSIVE, "", cases, undecided=beyond)
    return dataclasses.replace(
        not_judged(
            f"netproof verdict ended with {status} and says {word!r}, with {len(cases)} of"
            f" {len(found)} cases failed or inconclusive, {len(faults)} faults and"
            f" {len(beyond)} undecided beyond a case"
            f"{' and cases that were left' if left else ''}"
        ),
        cases=cases,
        faults=faults,
        undecided=beyond,
    )


def _flagged(case: Mapping[str, Any], system: str) -> FlaggedCase | None:
    """Return a case of the document that failed or is inconclusive; None for one that passed."""
    word = Level(case["verdict"])
    levels = {Level(finding["level"]) for finding in case["findings"]}
    if word is Level.FAIL or case["faults"] or Level.FAIL in levels:
        level = Level.FAIL
    elif Level.INCONCLUSIVE in {word, *levels}:
        level = Level.INCONCLUSIVE
    elif word in (Level.PASS, Level.WARN):
        return None
    else:
        raise ValueError(f"a case is {word!r}")
    counted = [finding for finding in case["findings"] if finding["level"] == level]
    fields = [field.name for field in dataclasses.fields(Case) if field.name != "system"]
    what = Case(system, *(case[name] for name in fields))
    sentences = (*case["faults"], *(finding["why"] for finding in counted))
    return FlaggedCase(
        f"{what.partition} {what.environment} {what.what()}",
        level,
        tuple(sorted({finding["criterion"] for finding in counted})),
        tuple(short(_without(str(what), sentence)) for sentence in sentences),
    )


def _without(case: str, sentence: str) -> str:
    """Return a sentence without the case and switch at its beginning."""
    return sentence.partition("): ")[2] or sentence if sentence.startswith(case) else sentence


def not_judged(reason: str) -> Judged:
    """Return the result of a run without a verdict, with the reason."""
    return Judged(Outcome.NOT_JUDGED, short(reason))
