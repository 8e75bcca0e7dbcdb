"""Result of a night, in words and as JUnit XML.

The summary has a headline first, then what a person has to know. JUnit's XML has a test case for
each expected case, and the elements that GitLab and Jenkins read: a suite with counts, test cases
with class name, name and time, and ``failure``, ``error`` or ``skipped`` with a message.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from xml.etree import ElementTree

from netproof.criteria import Level
from netproof.intake import writing
from netproof.measurement.case import Case
from netproof.present.characters import visible
from netproof.present.wording import outcome
from netproof.session.slurm_nodes import labelled
from netproof.verdict.exit_status import CANNOT, FAILED, INCONCLUSIVE, PASSED
from netproof.verdict.explain import counts, failures
from netproof.verdict.session_verdict import JudgedSession
from netproof.verdict.verdict import CaseVerdict, Verdict, sentences_of_skipped

SENTENCES = 20
"""Sentences of a kind that are listed; the report has all."""

WORDS = {PASSED: "PASSED", FAILED: "FAILED", CANNOT: "NOT JUDGED", INCONCLUSIVE: "NOT JUDGED"}

_NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot have, escaped or not."""


@dataclass
class Night:
    """Result of a night, as far as it came.

    ``faults``: why it could not be judged, or not whole, a sentence each; ``judged``: None without
    a verdict; ``worse``, ``noted``: changes in its history for the worse, and others; ``stored``:
    the session's name in the store; ``page``: of the report.
    """

    system: str
    started: datetime
    ended: datetime
    faults: list[str] = field(default_factory=list)
    judged: JudgedSession | None = None
    worse: tuple[str, ...] = ()
    noted: tuple[str, ...] = ()
    stored: str = ""
    page: Path | None = None
    log: Path | None = None

    @property
    def status(self) -> int:
        """Exit status: a failure first, then what kept it from being judged."""
        if self.judged is not None and (self.judged.verdict.status == FAILED or self.worse):
            return FAILED
        if self.judged is None or self.faults:
            return CANNOT
        return self.judged.verdict.status

    @property
    def inconclusive(self) -> bool:
        """Whether it was judged, and ends with 3 only for inconclusive cases."""
        judged_whole = self.judged is not None and not self.faults
        return judged_whole and self.status == INCONCLUSIVE and self.judged.verdict.inconclusive


def summary(night: Night) -> str:
    """Return the summary; its first line could be the subject of a mail."""
    lines = [headline(night), ""]
    lines += [f"NOT JUDGED: {fault}" for fault in night.faults]
    if night.judged is not None:
        verdict = night.judged.verdict
        # A mail is read from the top.
        lines += _some("FAIL ", [str(one) for one in reversed(failures(verdict))])
        lines += _some("WORSE ", night.worse)
        inconclusive = [why for one in verdict.cases for why in one.said(Level.INCONCLUSIVE)]
        lines += _some("INCONCLUSIVE ", [*inconclusive, *verdict.undecided])
        if night.worse:
            lines.append("what of this is intended ends by 'netproof history accept'")
        lines += [f"coverage: {one}" for one in verdict.coverage]
        lines += [f"pairs: {one}" for one in verdict.pairs]
        lines += _some("WARN ", verdict.node_warnings)
        lines += _some("", [labelled(one) for one in night.judged.beyond_nodes])
        for planned in (False, True):
            of_kind = [one for one in verdict.left if one.left.planned == planned]
            lines += _some("", sentences_of_skipped(of_kind))
        lines += _some("note: ", [*verdict.notes, *night.noted])
    lines.append("")
    if night.stored:
        lines.append(f"session {night.stored}")
    if night.page:
        lines.append(f"report {night.page}")
    if night.log:
        lines.append(f"output of ReFrame {night.log}")
    lines.append(f"exit status {night.status}")
    # Further lines are indented: a job's text cannot look like the night's own.
    whole = "".join(f"{visible(line)}\n".replace("\n", "\n    ").rstrip(" ") for line in lines)
    # Output of a job may be no valid text.
    return whole.encode(errors="replace").decode()


def headline(night: Night) -> str:
    """Return the night in a line: system, outcome, how many cases, when."""
    when = (
        f"{night.started:%Y-%m-%d %H:%M}, {minutes((night.ended - night.started).total_seconds())}"
    )
    word = "INCONCLUSIVE" if night.inconclusive else WORDS[night.status]
    return f"netproof {night.system}: {word}{_counted(night)} ({when})"


def _counted(night: Night) -> str:
    if night.judged is None:
        return ""
    return f", {outcome(counts(night.judged.verdict), len(night.worse))}"


def _some(mark: str, sentences: Sequence[str]) -> list[str]:
    lines = [f"{mark}{sentence}" for sentence in sentences[:SENTENCES]]
    if len(sentences) > SENTENCES:
        lines.append(f"{mark}and {len(sentences) - SENTENCES} more, in the report")
    return lines


def minutes(seconds: float) -> str:
    """Return a time as people write it: ``40 s``, ``12 min``, ``2 h 5 min``."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    whole = round(seconds / 60)
    return f"{whole} min" if whole < 120 else f"{whole // 60} h {whole % 60} min"


def write_junit(night: Night, path: Path) -> None:
    """Write the night, whole or not at all; OSError where it cannot be written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    writing.replace(path, junit_document(night))


def junit_document(night: Night) -> bytes:
    """Return the XML. A night without a verdict is an error in a test case of its own."""
    suite = ElementTree.Element("testsuite", name=_clean(f"netproof {night.system}"))
    if night.judged is not None:
        verdict = night.judged.verdict
        for judged in verdict.cases:
            _judged(suite, judged)
        for one in verdict.left:
            kind = "skipped" if one.left.planned else "error"
            _ended(_case(suite, one.case), kind, [one.left.why])
        _partitions(suite, night.system, verdict)
        for fault in verdict.faults:
            _ended(_test(suite, night.system, f"fault: {fault}"), "failure", [fault])
        for change in night.worse:
            _ended(_test(suite, f"{night.system}.history", change), "failure", [change])
    for fault in night.faults:
        _ended(_test(suite, f"{night.system}.night", f"not judged: {fault}"), "error", [fault])
    suite.set("timestamp", f"{night.started:%Y-%m-%dT%H:%M:%S}")
    suite.set("time", f"{(night.ended - night.started).total_seconds():.3f}")
    numbers = {"tests": len(suite)}
    for name, element in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        numbers[name] = len(suite.findall(f"testcase/{element}"))
    for name, number in numbers.items():
        suite.set(name, str(number))
    suites = ElementTree.Element("testsuites", {name: str(n) for name, n in numbers.items()})
    suites.append(suite)
    ElementTree.indent(suites)
    return ElementTree.tostring(suites, encoding="utf-8", xml_declaration=True) + b"\n"


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
    for one in verdict.pairs:
        test = _test(suite, f"{system}.{one.rounds.partition}.{one.rounds.environment}", "pairs")
        ElementTree.SubElement(test, "system-out").text = _clean(str(one))
        if one.undecided():
            _ended(test, "error", list(one.undecided()))
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
