"""Grade a verdict by the planted fault."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ci.campaigns.telling import short
from ci.false_reds import judging as verdicts
from ci.false_reds.records import Outcome
from ci.missed_faults.kinds import DERIVING, HEALTHY, HEALTHY_DERIVED, KINDS
from ci.missed_faults.records import Found, Judged, Run
from netproof.criteria import Level
from netproof.session.session import REFERENCE
from netproof.verdict.verdict import NOT_IN_SESSION


def judge(run: Run, status: int, text: str, errors: str) -> Judged:
    """Grade ``netproof verdict --format json`` by its exit status, its document and its errors.

    The run is not judged where they contradict each other or docs/reference/json.md. A run measures
    two of the site's environments, for some faults not all cases. Cases outside it do not count.
    """
    whole = verdicts.judge(status, text, errors)
    if whole.outcome is Outcome.NOT_JUDGED:
        return not_judged(whole.reason)
    document = json.loads(text)
    measured = [
        case
        for case in document["cases"]
        if case["environment"] in run.environments and NOT_IN_SESSION not in case["faults"]
    ]
    if {case["environment"] for case in measured} != {*run.environments}:
        return not_judged("the verdict does not have all environments of the run")
    if run.kind in (HEALTHY, HEALTHY_DERIVED, DERIVING):
        return _of_healthy(measured, certain=run.kind == DERIVING)
    return _of_fault(run, measured)


def _of_healthy(cases: Sequence[Mapping[str, Any]], *, certain: bool) -> Judged:
    """Grade a healthy run; ``certain``: an inconclusive one makes no references."""
    failed = [why for case in cases for why in _failures(case)]
    if failed:
        return Judged(Found.FALSE, tuple(map(short, failed)))
    undecided = [
        finding
        for case in cases
        for finding in case["findings"]
        if finding["level"] == Level.INCONCLUSIVE
    ]
    if certain and undecided:
        return Judged(Found.INCONCLUSIVE, _sentences(undecided))
    return Judged(Found.NAMED)


def _of_fault(run: Run, cases: Sequence[Mapping[str, Any]]) -> Judged:
    shows = KINDS[run.kind].shows
    faulty = [case for case in cases if case["environment"] == run.environments[0]]
    concerned = [case for case in faulty if shows.of(case)]
    if not concerned:
        return not_judged("the verdict has none of the cases that the fault concerns")
    named = list(_findings(concerned, shows.sizes, Level.FAIL))
    if named:
        criteria = tuple(sorted({finding["criterion"] for finding in named}))
        return Judged(Found.NAMED, _sentences(named), criteria)
    failed = [why for case in faulty for why in _failures(case)]
    if failed:
        return Judged(Found.OTHERWISE, tuple(map(short, failed)))
    undecided = list(_findings(concerned, shows.sizes, Level.INCONCLUSIVE))
    if undecided:
        return Judged(Found.INCONCLUSIVE, _sentences(undecided))
    return Judged(Found.MISSED)


def _findings(
    cases: Sequence[Mapping[str, Any]], sizes: tuple[int, int], level: Level
) -> Iterator[Mapping[str, Any]]:
    """Yield findings of a level whose sentence names a size within ``sizes``."""
    least, most = sizes
    for case in cases:
        for finding in case["findings"]:
            if finding["level"] == level and any(
                least <= size <= most for size in _sizes_named(finding)
            ):
                yield finding


def _sizes_named(finding: Mapping[str, Any]) -> set[int]:
    """Return the sizes in bytes in a finding's sentence; a reference has them in words or names."""
    if finding["criterion"] == REFERENCE:
        rates = {1024 * int(kib) for kib in re.findall(r"rate_(\d+)_kib", finding["why"])}
        named = re.findall(r"(?:at|messages of|to) (\d+)(?= bytes| to \d+ bytes)", finding["why"])
        return rates | {int(size) for size in named}
    of = {finding["size_bytes"], *(finding["sizes_bytes"] or ())} - {None}
    return {size for size in of if str(size) in finding["why"]}


def _failures(case: Mapping[str, Any]) -> list[str]:
    """Return a case's failures: bounds of references, and criteria."""
    findings = (one["why"] for one in case["findings"] if one["level"] == Level.FAIL)
    return [*case["faults"], *findings]


def _sentences(findings: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    return tuple(short(finding["why"]) for finding in findings)


def not_judged(reason: str) -> Judged:
    """Return the result of a run without a verdict, with the reason."""
    return Judged(Found.NOT_JUDGED, (short(reason),))
