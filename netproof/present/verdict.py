"""The verdict on a session: about ten lines, all of it, or JUnit's XML for GitLab and Jenkins.

Also what would have failed: the smallest changes, and buyer's and seller's risks by references.
"""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

from netproof.criteria import Finding, Level
from netproof.criteria.settings import own_bounds
from netproof.diagnosis.diagnosis import summary
from netproof.errors import grouped, listed
from netproof.measurement.case import Case
from netproof.present.document import EVERY, Block, Cell, DataTable, Headline, Links, Sentences
from netproof.present.wording import (
    CASE,
    case_cells,
    counted,
    first,
    not_available,
    number,
    size_in_words,
    visible,
)
from netproof.session.provenance import labelled
from netproof.verdict import FAILED, INCONCLUSIVE, PASSED
from netproof.verdict.derive import RISK, ReferenceRisk
from netproof.verdict.power import CasePower, Degradation, Sensitivity, Smallest
from netproof.verdict.session_verdict import NOTHING, JudgedSession, Recurring
from netproof.verdict.verdict import (
    NOT_IN_SESSION,
    CaseVerdict,
    Failure,
    Verdict,
    failures,
    named,
    sentences_of_skipped,
)

MOST_DIFFERENCES = 10
"""Differences between nodes that are printed; the store and the report have all of them."""

_PARTITIONS = 4
"""Most partitions whose nodes are counted one by one."""

_LINE = 120
"""Most characters of a line of the brief answer."""

_FOLDERS = re.compile(r"(?<![^\s'])/(?:[^\s/]+/)+")
"""Folders of an absolute path, which leave no room for the reason."""

_ERRORS = re.compile(r"(?<!\S)/\S+/(\S+)\.err: \1( ended with status [^;]+; it( said))?")
"""Path and name of a step, and its status if it said more."""

_BRIEF = {"failed": 5, "inconclusive": 4, "warned": 3}
"""Lines of the worst kind that was found; all others are counted."""

_STATES = {
    PASSED: ("passed", "✓", "Passed"),
    FAILED: ("failed", "✗", "Failed"),
    INCONCLUSIVE: ("absent", "∅", "Not judged whole"),
}


def state(verdict: Verdict) -> Headline:
    """Return the state, and what became of the cases."""
    look = (
        ("inconclusive", "?", "Inconclusive") if verdict.inconclusive else _STATES[verdict.status]
    )
    return Headline(*look, outcome(verdict))


def outcome(verdict: Verdict, worse: int = 0) -> str:
    """Return a session's result as a sentence; ``worse``: configurations that changed so."""
    cases, planned = verdict.cases, [result.planned for _, result in verdict.skipped]
    levels = Counter(one.level for one in cases)
    failed = [one for one in cases if one.failed and one.ran]
    expected = sum(one.level is Level.PASS and bool(one.expected) for one in cases)
    undecided = len({node for one in verdict.pairs for node in one.undecided_nodes()})
    waited_for = sum(len(one.waited_for) for one in verdict.coverage if one.short)
    counts = {
        "of them with a warning": levels[Level.WARN],
        "of them failed as expected": expected,
        "inconclusive": levels[Level.INCONCLUSIVE],
        "failed": len(failed),
        "of these not measured whole": sum(not one.complete for one in failed),
        "did not run": levels[Level.FAIL] - len(failed),
        "changed for the worse": worse,
        "more deferred": planned.count(True),
        "more could not be measured": planned.count(False),
    }
    said = [f"{levels[Level.PASS] + levels[Level.WARN]} of {len(cases)} cases passed"]
    said += [f"{count} {what}" for what, count in counts.items() if count]
    others = {
        ("fault", " beyond single cases"): len(verdict.faults),
        ("node", " undecided"): undecided,
        ("node", " deferred"): waited_for,
    }
    return ", ".join([*said, *_counts(others)])


def _counts(several: Mapping[tuple[str, str], int]) -> list[str]:
    """Return how many there are of each, by a noun and what follows it."""
    return [f"{counted(count, one)}{rest}" for (one, rest), count in several.items() if count]


def brief(judged: JudgedSession) -> Iterator[Block]:
    """Yield the state, culprits, what failed or is inconclusive, worst first, and what to do."""
    culprits, step = summary(judged)
    verdict = judged.verdict
    yield state(verdict)
    measured = [one for one in verdict.coverage if one.measured]
    every = [(len(one.measured), len(one.usable) or one.stated, one.partition) for one in measured]
    nodes = ", ".join(f"{count}{f' of {of}' * bool(of)} on {where}" for count, of, where in every)
    if len(measured) > _PARTITIONS:
        nodes = f"{sum(count for count, _, _ in every)} on {len(measured)} partitions"
    yield f"{_cut(f'nodes: {nodes}; ') if nodes else ''}session {judged.session.path}"
    marks = ("" if one.startswith("unexplained: ") else "culprit: " for one in culprits)
    places = [_cut(f"{mark}{one}") for mark, one in zip(marks, culprits, strict=True)]
    yield Sentences(places[:2], look="strong")
    kinds = {one.name: one for one in sentences(judged)}
    left = {name: len(kinds[name].sentences) for name in _BRIEF}
    # What is worse leaves the milder ones to be counted.
    if worst := next((name for name in _BRIEF if left[name]), ""):
        most, kind = _BRIEF[worst], kinds[worst]
        short = [getattr(one, "title", "") or one for one in kind.sentences[:most]]
        lines = replace(kind, sentences=short).lines()
        yield Sentences([_cut(line) for line in lines], look=kind.look)
        left[worst] -= len(short)
    yield replace(kinds["recurring"], mark="")
    notes = [_cut(judged.outdated), judged.session.ahead]
    yield Sentences([one for one in notes if one], look="warned", mark="note: ")
    yield compared_with(verdict)
    counts = {
        ("more failure", ""): left["failed"],
        ("inconclusive finding", ""): left["inconclusive"],
        ("warning", ""): left["warned"],
        ("more place", " that diagnosis names"): len(places[2:]),
        ("note", ""): len(verdict.notes),
        ("difference", " between nodes"): len(verdict.beyond_nodes),
        ("benchmark", " not available"): len(not_available(verdict.absences)),
        ("earlier session", " not compared"): len(verdict.unread),
    }
    besides = ", ".join(_counts(counts))
    yield Sentences([f"besides: {besides}"] if besides else [], look="faint")
    yield Sentences([f"next: {step}"] if step else [])
    yield from _only_measured(judged)
    more = "netproof diagnose says where and since when"
    if verdict.status == PASSED:
        more = "--power how much slower would have failed"
    yield f"--all prints each case, reason and note; {more}"


def _only_measured(judged: JudgedSession) -> Iterator[str]:
    """Yield how to judge alone what was measured, where the session lacks a whole partition."""
    cases = judged.verdict.cases
    measured = [one.case for one in cases if NOT_IN_SESSION not in one.faults]
    names = [*dict.fromkeys(case.partition for case in measured)]
    if 0 < len(names) < len({one.case.partition for one in cases}):
        command = f"netproof verdict {judged.session.path} {measured[0].system}:{names[0]}"
        yield f"the session measured only {listed(names)}: '{command}' judges {names[0]} alone"


def _cut(line: str) -> str:
    """Return a line that is no longer than ``_LINE``, without folders, cut between words."""
    if len(line) <= _LINE:
        return line
    line = _FOLDERS.sub("…/", _ERRORS.sub(r"\1\3", line))
    return textwrap.shorten(line, _LINE, placeholder=" …")


def _figure(judged: CaseVerdict, finding: Finding) -> str:
    """Return a finding in a line: case, figure, limit, doubt, place; empty without a figure."""
    if finding.value is None or finding.bound is None:
        return ""
    case, size = judged.case, "" if finding.size is None else f" at {size_in_words(finding.size)}"
    if (ends := finding.interval) is not None and ends[0] <= finding.bound <= ends[1]:
        size = " ({:.3g} to {:.3g})".format(*ends) + size
    nodes = finding.node or listed(judged.nodes)
    on = f", {' '.join(filter(None, (nodes, finding.interface)))}" if nodes else ""
    where, what = f"{case.partition} {case.environment} {case.what()}", finding.criterion
    value = f"{finding.variable or what} {finding.value:.3g}{size}"
    # Its figure and limit alone would not explain why it is inconclusive.
    but = f", but {finding.doubt}" if finding.doubt else ""
    return f"{where}: {value}, limit {finding.bound:.3g}{but}{on}"


def compared_with(verdict: Verdict) -> Sentences:
    """Return stored results alongside the session: configurations, sessions, dates, marks."""
    found = verdict.compared_with
    if found is None:
        return Sentences([])
    lines = [
        Cell(f"{'left out' if left_out else 'compared with'}: {together}", "warned" * bool(marks))
        for together, cases, left_out in found.together()
        for marks in [cases[0].marks]
    ]
    nothing = Cell(f"compared with nothing: {found.store} has nothing that fits", "warned")
    return Sentences([*lines, *([] if found.cases else [nothing])])


def differences(several: Sequence[str]) -> Sentences:
    """Return the differences between nodes of a session; of very many, the number of the rest."""
    rest = "nodes differ in {} more, which netproof report has"
    lines = first([labelled(one) for one in several], MOST_DIFFERENCES, rest)
    return Sentences(lines, look="warned")


def objections(
    verdict: Verdict, links: Links | None = None, recurring: Recurring = NOTHING
) -> Iterator[Sentences]:
    """Yield what failed, what is inconclusive, warnings, and flags that do not count.

    Of each the worst is first, and its title is its short form. ``links``: to cases' charts, by
    the cases' keys; ``recurring``: warnings that are left out.
    """
    had, links = {id(finding) for _, finding in recurring[1]}, links or {}
    of_case = {one.case: one for one in verdict.cases}

    def line(where: str, why: str, cases: Sequence[Case], short: str = "") -> Cell:
        linked = [Cell(str(case), link=links.get(case.key(), "")) for case in cases]
        link, more = (linked[0].link, ()) if len(linked) == 1 else ("", linked)
        text, below = (where, [why]) if where else (why, ())
        return Cell(text, below=below, link=link, more=more, title=short)

    def failed(one: Failure) -> Cell:
        short = ""
        if len(one.cases) > 1 and len(str(one)) > _LINE:
            short = f"{len(one.cases)} cases: {one.why}"
        elif len(one.cases) == 1:
            case = of_case[one.cases[0]]
            alike = (each for each in case.findings if each.reason == one.why)
            short = next((_figure(case, each) for each in alike), "")
        return line(one.subject, one.reason, (*one.cases, *one.waiting), short)

    def lines(wanted: Callable[[Finding], bool]) -> list[Cell]:
        found = [(case, one) for case in verdict.cases for one in case.findings if wanted(one)]
        return [
            line(one.where, one.reason, [case.case], _figure(case, one))
            for case, one in sorted(found, key=lambda both: -both[1].excess)
        ]

    unsure = lines(lambda one: one.level is Level.INCONCLUSIVE)
    warned = lines(lambda one: one.level is Level.WARN and id(one) not in had)
    unsure += map(Cell, verdict.undecided)
    warned += map(Cell, verdict.node_warnings)
    red = [failed(one) for one in failures(verdict)[::-1]]
    yield Sentences(red, "What failed or did not run", "failed", "FAIL ", "failed")
    yield Sentences(unsure, "What is inconclusive", "inconclusive", "INCONCLUSIVE ", "inconclusive")
    yield Sentences(warned, "Warnings", "warned", "WARN ", "warned")
    known = lines(lambda one: one.forgiven)
    yield Sentences(known, "Flagged but not confirmed, or known", mark="note: ", folded=True)


def sentences(judged: JudgedSession, links: Links | None = None) -> Iterator[Sentences]:
    """Yield all sentences on cases, nodes and session by their kind, the worst first.

    ``links``: to cases' charts, by the cases' keys.
    """
    verdict = judged.verdict
    notes = [
        *(
            f"the site's own bounds on {name}: {own}"
            for name, site in judged.matrix.partitions.items()
            if (own := own_bounds(site.criteria))
        ),
        *(f"pairs: {one}" for one in verdict.pairs),
        *(f"coverage: {one}" for one in verdict.coverage),
        *(f"not compared with an earlier session: {one}" for one in verdict.unread),
        *(Cell(str(one), "warned") for one in differences(verdict.beyond_nodes).sentences),
        *(f"note: {one}" for one in (judged.session.ahead, *verdict.notes) if one),
        *(f"not available: {one}" for one in not_available(verdict.absences)),
    ]
    yield from objections(verdict, links, judged.recurring)
    yield Sentences(_recurring(*judged.recurring), "", "warned", "WARN ", "recurring")
    skipped = sentences_of_skipped(verdict.skipped)
    yield Sentences(skipped, "What was skipped", "warned", name="skipped")
    yield Sentences(notes, "Notes", name="notes")
    yield Sentences([verdict.crashes] if verdict.crashes else [])


def changes(judged: JudgedSession) -> Block:
    """Return the differences from the stored verdict, case by case."""
    changed, stored = judged.changed, judged.stored
    if changed is None or stored is None:
        return "no verdict is stored of what was asked for, so this one is the first"
    bounds = f"other bounds: {'; '.join(judged.differs)}" if judged.differs else "the same bounds"
    if not changed:
        return Cell(f"says the same as the verdict of {stored.judged}, by {bounds}", "passed")
    count = counted(sum(one.case is not None for one in changed))
    said = f"says of {count} otherwise than the verdict of {stored.judged}, by {bounds}"
    return Sentences([said, *(f"CHANGED {one}" for one in changed)], look="warned")


def _recurring(sessions: int, warnings: Sequence[tuple[Case, Finding]]) -> list[str]:
    """Return the warnings that earlier sessions had too, in a line: criteria, cases and values."""
    parts = []
    for criterion, several in grouped((one[1].criterion, one) for one in warnings).items():
        cases, found = zip(*several, strict=True)
        values = sorted(one.value for one in found if one.value is not None)
        span = " to ".join(dict.fromkeys(f"{one:.3g}" for one in (*values[:1], *values[-1:])))
        bounds = {one.bound for one in found} - {None}
        limit = f", the bound is {bounds.pop():g}" if len(bounds) == 1 else ""
        parts.append(f"{criterion}, {named(cases)} ({span or 'undefined'}{limit})")
    count = counted(len(warnings), "warning")
    return [f"{count} as in the last {sessions} sessions: {'; '.join(parts)}"] if parts else []


def repeat_blocks(judged: CaseVerdict) -> Iterator[Block]:
    """Yield the curve of a case and those of its repeats, at their sizes; nothing without any."""
    again = judged.again
    if again is None or judged.measured is None:
        return
    nodes, jobid = judged.measured.nodes(), judged.measured.jobid
    where = f"{judged.case}: measured again in job {jobid} on {', '.join(nodes)}"
    none = [] if judged.curves_again else ["No launch of it was complete."]
    faults = (one.said for one in again if not one.curves)
    yield Sentences([*faults, *none], where, folded=True)
    if none:
        return
    curves = [
        dict(zip(curve.sizes, curve.time_us, strict=True))
        for curve in (judged.measured.curve, *judged.curves_again)
    ]
    flagged = {finding.size for finding in judged.flags()}
    rows = [
        (
            f"{'flagged: ' if size in flagged else ''}{size:,}",
            *(number(curve.get(size), ".1f", none="–") for curve in curves),
        )
        for size in sorted(set().union(*curves[1:]))
    ]
    head = ("bytes", "first, µs", *(f"again {n}, µs" for n in range(1, len(curves))))
    yield DataTable(head, rows, EVERY, fold=where)


NOTHING_FAILS = "nothing fails"


def said(one: Smallest | None) -> str:
    """Return a change in a few words; ``-`` where the case has none of its kind."""
    if one is None:
        return "-"
    factor = one.sure or one.factor
    if factor is None:
        return NOTHING_FAILS
    about = "" if one.sure is not None else "about "
    if one.change is Degradation.BANDWIDTH:
        return f"{about}{1 - 1 / factor:.0%} less"
    if one.change is Degradation.LATENCY:
        return f"{about}{factor - 1:.0%} more" if factor < 2 else f"{about}{factor:.3g} times"
    return f"{about}{factor:.3g} times at {one.size} bytes"


_CHANGED = {
    Degradation.BANDWIDTH: "less bandwidth",
    Degradation.LATENCY: "more latency, the same at each size",
    Degradation.SPIKE: "a longer time at one size, that where it is hardest to find",
}


def sensitivity(found: Sensitivity) -> str:
    """Return in a sentence how many passed cases a stated change would have failed."""
    return (
        f"Would have failed: twice the latency in {found.latency} of the {counted(found.cases)}"
        f" that passed, 20 % less bandwidth in {found.bandwidth}. {found.neither} would have"
        " passed with 100 times the latency, and with 1 % of the bandwidth."
    )


def power_blocks(powers: Sequence[CasePower], links: Links | None = None) -> Iterator[Block]:
    """Yield a line for each passed case: what would have failed it, and by which criterion.

    ``links``: to cases' charts, by the cases' keys.
    """
    passed = [one for one in powers if one[2]]
    if not passed:
        yield "no case passed, so there is nothing to say of what would have failed"
        return
    for change, what in _CHANGED.items():
        rows: list[Sequence[str | Cell]] = []
        for case, launches, smallest in passed:
            partition, *cells = case_cells(case)
            found = next((one for one in smallest if one.change is change), None)
            cells += [str(launches), said(found), (found and found.by) or "-"]
            rows.append([Cell(partition, link=(links or {}).get(case.key(), "")), *cells])
        title = f"The smallest change that would have failed, with 95 % probability: {what}"
        yield DataTable(
            (*CASE, "launches", change, "criterion that fails it"), rows, (3, 4, 5), fold=title
        )
    if single := sum(launches == 1 for _, launches, _ in passed):
        have = counted(single, "case has", "cases have")
        yield f"about: {have} a single launch, so how sure that is is not known"
    if blind := sum(None in (each.factor for each in smallest) for *_, smallest in passed):
        have = counted(blind, "case has", "cases have")
        why = (
            "no bound that such a change would cross, even 100 times; a reference would give it one"
        )
        yield Cell(f"{NOTHING_FAILS}: {have} {why}", "warned")


def risk_blocks(
    risks: Sequence[ReferenceRisk], without: Mapping[Case, str], margin: float
) -> Iterator[Block]:
    """Yield a line for each landmark: its scatter, the risks of its bound, and a plan for both."""
    head = (*CASE, "landmark", "agreed", "launches ±", "sessions ±")
    several = sorted(risks, key=lambda one: one.bound is None)
    bounded = sum(one.bound is not None for one in risks)
    worse = f"with bounds; the buyer's risk is of a network that is {margin:.0%} worse"
    groups = {worse: bounded, "without bounds": len(risks) - bounded}
    yield DataTable(
        [*head, "bound", "seller risks", "buyer risks", f"for {RISK:.0%} each"],
        [_risk_row(one, margin) for one in several],
        (3, *range(5, 11)),
        groups={heading: count for heading, count in groups.items() if count},
        heads=4,
    )
    whys = [f"{case}: nothing can be said: {reason}" for case, reason in without.items()]
    yield Sentences(whys, look="warned")


def _risk_row(one: ReferenceRisk, margin: float) -> tuple[str, ...]:
    scatter, planned, risks = one.scatter, "no plan: they scatter too much", ("-", "-", "-")
    # That of single launches is part of their sessions'.
    within = "-" if scatter.launches == scatter.sessions else f"{scatter.within:.1%}"
    if one.bound is not None:
        risks = (f"{one.bound:.0%}", f"{one.seller():.1%}", f"{one.buyer(margin):.1%}")
    if one.plan is not None:
        sessions = counted(one.plan.sessions, "session")
        launches = counted(one.plan.launches, "launch", "launches")
        planned = f"{sessions} of {launches}, bound {one.plan.bound:.1%}"
    agreed = (f"{one.agreed:.5g} {one.unit}", within, f"{scatter.between:.1%}")
    return (*case_cells(one.case), one.variable, *agreed, *risks, planned)


_NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot have, escaped or not."""


def junit(
    system: str,
    verdict: Verdict | None,
    started: str,
    seconds: float,
    *,
    worse: Sequence[str] = (),
    faults: Sequence[str] = (),
) -> bytes:
    """Return the XML, with a test case for each case, change, fault, partition, pair and node.

    ``system``: with the partition that was judged alone, if one was; ``started``: by ISO 8601;
    ``worse``: changes in the history; ``faults``: why it was not judged.
    """
    suite = ElementTree.Element("testsuite", name=_clean(f"netproof {system}"))
    # Jenkins takes what stands before the last dot as the package: all have the same.
    system = system.partition(":")[0]

    def add(place: str | Case, name: str, out: Sequence[str] = (), **ended: Any) -> Any:
        """Add a test case; ``ended``: its outcome with the reasons, None where it is another."""
        if isinstance(place, Case):
            place = f"{place.system}.{place.partition}.{place.environment}"
        names = {"classname": _clean(place), "name": _clean(name)}
        test = ElementTree.SubElement(suite, "testcase", names)
        for kind, reasons in ended.items():
            if reasons is not None:
                element = ElementTree.SubElement(test, kind, message=_clean(reasons[0]))
                element.text = _clean("\n".join(reasons))
        if out:
            ElementTree.SubElement(test, "system-out").text = _clean("\n".join(out))
        return test

    if verdict is not None:
        for judged in verdict.cases:
            failed = [*judged.faults, *judged.said(Level.FAIL)] or None
            unsure = None if failed or judged.passed else list(judged.said(Level.INCONCLUSIVE))
            warned = [*judged.said(Level.WARN), *([judged.expected] if judged.expected else [])]
            test = add(judged.case, judged.case.what(), warned, failure=failed, error=unsure)
            if judged.measured is not None:
                launches = judged.measured.launches
                test.set("time", f"{sum(launch.wall_s for launch in launches):.3f}")
        for case, result in verdict.skipped:
            kind = "skipped" if result.planned else "error"
            add(case, case.what(), **{kind: [result.skipped]})
        # A failed coverage is a fault.
        for one in (one for one in verdict.coverage if not one.failed):
            short = [str(one)] if one.short else None
            add(f"{system}.{one.partition}", "coverage", [str(one)], error=short)
        for pairs in verdict.pairs:
            where = f"{system}.{pairs.rounds.partition}.{pairs.rounds.environment}"
            add(where, "pairs", [str(pairs)], error=list(pairs.undecided()) or None)
        for warning in verdict.node_warnings:
            add(f"{system}.nodes", f"warning: {warning}", [warning])
        for fault in verdict.faults:
            add(system, f"fault: {fault}", failure=[fault])
    for change in worse:
        add(f"{system}.history", change, failure=[change])
    if faults:
        add(f"{system}.night", "night", error=faults)
    suite.set("timestamp", _clean(started[:19]))
    suite.set("time", f"{seconds:.3f}")
    suites = ElementTree.Element("testsuites")
    for element in (suite, suites):
        element.set("tests", str(len(suite)))
        for name, kind in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            element.set(name, str(len(suite.findall(f"testcase/{kind}"))))
    suites.append(suite)
    ElementTree.indent(suites)
    made: bytes = ElementTree.tostring(suites, encoding="utf-8", xml_declaration=True)
    return made + b"\n"


def _clean(text: str) -> str:
    return _NO_XML.sub("�", visible(text))
