"""A night as JUnit XML, from the verdict: a test case for each expected case.

It has the elements that GitLab and Jenkins read: a suite with counts, test cases with class name,
name and time, and ``failure``, ``error`` or ``skipped`` with a message.
"""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

from netproof.commands.nightly.summary import Night
from netproof.criteria import Level
from netproof.intake import writing
from netproof.measurement.case import Case
from netproof.present.characters import visible
from netproof.verdict.verdict import Judged, SkippedCase, Verdict

_NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot have, escaped or not."""


def write(night: Night, path: Path) -> None:
    """Write the night, whole or not at all; OSError where it cannot be written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    writing.replace(path, document(night))


def document(night: Night) -> bytes:
    """Return the XML. A night without a verdict is an error in a test case of its own."""
    suite = ElementTree.Element("testsuite", name=_clean(f"netproof {night.system}"))
    if night.judged is not None:
        verdict = night.judged.verdict
        for judged in verdict.cases:
            _judged(suite, judged)
        for left in verdict.left:
            _left(suite, left)
        _partitions(suite, night.system, verdict)
        for fault in verdict.faults:
            _ended(_test(suite, night.system, f"fault: {fault}"), "failure", [fault])
        for change in night.worse:
            _ended(_test(suite, f"{night.system}.history", change), "failure", [change])
    for fault in night.faults:
        _ended(_test(suite, f"{night.system}.night", f"not judged: {fault}"), "error", [fault])
    suite.set("timestamp", f"{night.started:%Y-%m-%dT%H:%M:%S}")
    suite.set("time", f"{(night.ended - night.started).total_seconds():.3f}")
    counts = {"tests": len(suite)}
    for outcome, attribute in (
        ("failure", "failures"),
        ("error", "errors"),
        ("skipped", "skipped"),
    ):
        counts[attribute] = len(suite.findall(f"testcase/{outcome}"))
    for name, count in counts.items():
        suite.set(name, str(count))
    suites = ElementTree.Element("testsuites", {name: str(n) for name, n in counts.items()})
    suites.append(suite)
    ElementTree.indent(suites)
    return ElementTree.tostring(suites, encoding="utf-8", xml_declaration=True) + b"\n"


def _judged(suite: ElementTree.Element, judged: Judged) -> None:
    test = _case(suite, judged.case)
    if judged.measured is not None:
        launches = judged.measured.launches
        test.set("time", f"{sum(launch.wall_s for launch in launches):.3f}")
    reasons = [*judged.faults, *judged.said(Level.FAIL)]
    if reasons:
        _ended(test, "failure", reasons)
    elif not judged.passed:
        _ended(test, "error", list(judged.said(Level.INCONCLUSIVE)))
    warnings = [*judged.said(Level.WARN), *([judged.expected] if judged.expected else [])]
    if warnings:
        ElementTree.SubElement(test, "system-out").text = _clean("\n".join(warnings))


def _partitions(suite: ElementTree.Element, system: str, verdict: Verdict) -> None:
    """Add the coverage of each partition, and warnings on its nodes; a failure is a fault."""
    for one in verdict.coverage:
        if not one.failed:
            test = _test(suite, f"{system}.{one.partition}", "coverage")
            ElementTree.SubElement(test, "system-out").text = _clean(str(one))
            if one.short:
                _ended(test, "error", [str(one)])
    for one in verdict.pairs:
        test = _test(suite, f"{system}.{one.rounds.partition}.{one.rounds.environment}", "pairs")
        ElementTree.SubElement(test, "system-out").text = _clean(str(one))
        if one.undecided():
            _ended(test, "error", list(one.undecided()))
    for warning in verdict.node_warnings:
        test = _test(suite, f"{system}.nodes", f"warning: {warning}")
        ElementTree.SubElement(test, "system-out").text = _clean(warning)


def _left(suite: ElementTree.Element, one: SkippedCase) -> None:
    outcome = "skipped" if one.left.planned else "error"
    _ended(_case(suite, one.case), outcome, [one.left.why])


def _case(suite: ElementTree.Element, case: Case) -> ElementTree.Element:
    return _test(suite, f"{case.system}.{case.partition}.{case.environment}", case.what())


def _test(suite: ElementTree.Element, class_name: str, name: str) -> ElementTree.Element:
    return ElementTree.SubElement(
        suite, "testcase", classname=_clean(class_name), name=_clean(name)
    )


def _ended(test: ElementTree.Element, outcome: str, reasons: list[str]) -> None:
    element = ElementTree.SubElement(test, outcome, message=_clean(reasons[0]))
    element.text = _clean("\n".join(reasons))


def _clean(text: str) -> str:
    return _NO_XML.sub("�", visible(text))
