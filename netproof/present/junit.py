"""A verdict as JUnit's XML, in the elements that GitLab and Jenkins read.

A suite with counts has a test case for each expected case, with class name, name and time, and
``failure``, ``error`` or ``skipped`` with a message.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree import ElementTree

from netproof.criteria import Level
from netproof.measurement.case import Case
from netproof.present.wording import visible
from netproof.verdict.verdict import CaseVerdict, Verdict

_NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot have, escaped or not."""


def document(
    system: str,
    verdict: Verdict | None,
    started: str,
    seconds: float,
    *,
    worse: Sequence[str] = (),
    faults: Sequence[str] = (),
) -> bytes:
    """Return the XML; ``started``: by ISO 8601; ``worse``: changes in the history.

    ``faults``: why it was not judged whole.

    Each of these is a test case of its own, as are partitions, pairs of nodes and nodes.
    """
    suite = ElementTree.Element("testsuite", name=_clean(f"netproof {system}"))
    if verdict is not None:
        for judged in verdict.cases:
            _judged(suite, judged)
        for one in verdict.skipped:
            kind = "skipped" if one.reason.planned else "error"
            _ended(_case(suite, one.case), kind, [one.reason.why])
        _partitions(suite, system, verdict)
        for fault in verdict.faults:
            _ended(_test(suite, system, f"fault: {fault}"), "failure", [fault])
    for change in worse:
        _ended(_test(suite, f"{system}.history", change), "failure", [change])
    for fault in faults:
        _ended(_test(suite, f"{system}.night", f"not judged: {fault}"), "error", [fault])
    suite.set("timestamp", _clean(started[:19]))
    suite.set("time", f"{seconds:.3f}")
    numbers = {"tests": len(suite)}
    for name, element in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        numbers[name] = len(suite.findall(f"testcase/{element}"))
    for name, number in numbers.items():
        suite.set(name, str(number))
    suites = ElementTree.Element("testsuites", {name: str(n) for name, n in numbers.items()})
    suites.append(suite)
    ElementTree.indent(suites)
    made: bytes = ElementTree.tostring(suites, encoding="utf-8", xml_declaration=True)
    return made + b"\n"


def _judged(suite: ElementTree.Element, judged: CaseVerdict) -> None:
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
    for pairs in verdict.pairs:
        where = f"{system}.{pairs.rounds.partition}.{pairs.rounds.environment}"
        test = _test(suite, where, "pairs")
        ElementTree.SubElement(test, "system-out").text = _clean(str(pairs))
        if pairs.undecided():
            _ended(test, "error", list(pairs.undecided()))
    for warning in verdict.node_warnings:
        test = _test(suite, f"{system}.nodes", f"warning: {warning}")
        ElementTree.SubElement(test, "system-out").text = _clean(warning)


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
