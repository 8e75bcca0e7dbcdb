"""Pages of a report: the main one in a reader's order, and one for each function."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Any

from netproof.benchmarks import registry
from netproof.criteria import Level
from netproof.diagnosis import diagnosis
from netproof.diagnosis.diagnosis import Diagnosis
from netproof.diagnosis.evidence import NO_EARLIER
from netproof.measurement.case import Case
from netproof.present import cpu
from netproof.present.diagnosis import headline, rows
from netproof.present.html import (
    content,
    key_figures,
    matrix,
    nodes,
    provenance,
    sides,
    study_page,
)
from netproof.present.html.content import CaseState, Group
from netproof.present.html.html import render
from netproof.present.html.provenance import stated
from netproof.present.html.report import MAIN, STUDIES, Report
from netproof.present.power import said
from netproof.present.verdict import MOST_DIFFERENCES, repeated_table
from netproof.present.wording import counted, not_available, outcome
from netproof.verdict import session_verdict
from netproof.verdict.exit_status import FAILED, INCONCLUSIVE, PASSED
from netproof.verdict.explain import CpuRows, Crossover, cpu_rows, crossovers
from netproof.verdict.power import Degradation
from netproof.verdict.verdict import CaseVerdict, Verdict

MAIN_NETPIPE = ("inter-node", "oneway")
"""Path and direction whose charts are on the main page; the others are on NetPIPE's."""
MAIN_FAILED = 2
"""Charts of failed functions on the main page."""

Part = tuple[str, str, Any]
"""Anchor, title, and the view of its template."""


def pages(report: Report) -> Iterator[tuple[str, str]]:
    """Yield every page of a report: its file and its text."""
    by_page: dict[str, list[Group]] = {}
    for group in report.groups:
        by_page.setdefault(group.page, []).append(group)
    costs = cpu_rows(report.judged.verdict)
    yield MAIN, _main(report, by_page, costs)
    for partition, name in report.partition_pages.items():
        several = {
            page: groups for page, groups in by_page.items() if groups[0].partition == partition
        }
        of_partition = tuple(row for row in costs.rows if row.case.partition == partition)
        parts = _results(report, several, CpuRows(of_partition, {}), partition)
        yield name, _page(report, partition, f"{partition} on {report.system}", "", parts, MAIN)
    if report.partition_pages:
        title = "Compared with earlier studies"
        parts = [("studies", title, study_page.view(report))]
        yield STUDIES, _page(report, title, f"{report.system} and earlier studies", "", parts, MAIN)
    for name, groups in by_page.items():
        yield name, _function(report, groups)
    if report.against is not None:
        yield report.against_page, _switch(report)


def _main(report: Report, by_page: Mapping[str, Sequence[Group]], costs: CpuRows) -> str:
    """Return the main page; of very many cases, with a link to each partition's page."""
    judged = report.judged.verdict
    view = _verdict(report)
    parts: list[Part] = [("verdict", "Verdict", view)]
    if report.against is not None:
        parts.append(("switch", f"Switch {report.against.partition}", report))
    if judged.compared_with is not None:
        parts.append(("compared_with", "Compared with", judged.compared_with))
    if not report.partition_pages:
        parts += _results(report, by_page, costs)
        parts.append(("studies", "Compared with earlier studies", study_page.view(report)))
    parts.append(("provenance", "Provenance, and how to repeat it", provenance.view(report)))
    info, labels = report.judged.session.info, report.judged.session.labels()
    start, end = (_time(stated(info, key)) for key in ("time_start", "time_end"))
    when = f"Measured from {start} to {end}, started on {stated(info, 'hostname')}"
    if labels:
        when += f"; labelled {', '.join(f'{key}={value}' for key, value in labels.items())}"
    title = f"{report.system}: {view['word'].lower()}"
    return _page(report, title, f"Cluster interconnect of {report.system}", when, parts)


def _results(
    report: Report, by_page: Mapping[str, Sequence[Group]], costs: CpuRows, partition: str = ""
) -> list[Part]:
    """Return the parts on what was measured, of one partition, or of all where it is empty."""
    of_nodes = nodes.view(report, partition)
    groups = [group for several in by_page.values() for group in several]
    failed = (report.figure(group) for group in groups if group.state() is CaseState.FAILED)
    drawn = islice((one for one in failed if one.rows), MAIN_FAILED)
    links = [(content.page_title(several[0]), name, several) for name, several in by_page.items()]
    parts: list[Part] = []
    if partition and (figures := key_figures.table(report, partition)) is not None:
        parts.append(("figures", "Key figures", figures))
    parts += [("nodes", "Nodes", of_nodes)] if of_nodes else []
    parts += [
        ("matrix", "Matrix", matrix.view(report, groups)),
        ("curves", "Curves", {"pages": links, "failed": list(drawn)}),
    ]
    if not partition:
        # A partition's own page of NetPIPE has these.
        pairs = [report.pair(key) for key in report.netpipe if key[:2] == MAIN_NETPIPE]
        parts.append(("netpipe", "NetPIPE", pairs))
    cost = cpu.answer(costs)
    return [*parts, *([("cpu", "What it costs the CPU", cost)] if cost else [])]


def _page(
    report: Report, title: str, heading: str, when: str, parts: Sequence[Part], back: str = ""
) -> str:
    return render(
        "index.html",
        title=title,
        heading=heading,
        when=when,
        parts=parts,
        back=back,
        files=report.files,
    )


def _time(stated: str) -> str:
    """Return ReFrame's time of day as people read it; anything else as it is."""
    try:
        return f"{datetime.strptime(stated, '%Y%m%dT%H%M%S%z'):%Y-%m-%d %H:%M:%S %z}"
    except ValueError:
        return stated


def _verdict(report: Report) -> dict[str, Any]:
    """Return the verdict, cases with their reasons, what did not run, and remarks.

    ``more_differences``: of nodes, beyond those among the ``notes``; ``diagnoses``: by partition;
    ``powers``: cases that passed, with the mildest change of each kind that fails them.
    """
    verdict, differences = report.judged.verdict, report.judged.beyond_nodes
    states = {id(one): content.state_of(one) for one in verdict.cases}
    state, word = state_of(verdict)

    def named(case: Case) -> tuple[str, str]:
        name = f"{content.configuration(case)}: {content.named(case)}"
        return name, report.links[case.key()]

    def entries(
        reasons: Callable[[CaseVerdict], Iterable[str]], only: CaseState | None = None
    ) -> dict[tuple[str, ...], list[tuple[str, str]]]:
        """Return names and links of cases by their reasons, those alike together."""
        found: dict[tuple[str, ...], list[tuple[str, str]]] = {}
        for one in verdict.cases:
            why = tuple(reasons(one)) if only in (None, states[id(one)]) else ()
            if why:
                found.setdefault(why, []).append(named(one.case))
        return found

    powers = []
    for one in session_verdict.power_of(report.judged) if report.power else ():
        found = {each.change: each for each in one.smallest}
        several = [found.get(change) for change in Degradation]
        if found:
            changes = [(said(each), "" if each is None else each.by) for each in several]
            powers.append((*named(one.case), changes))
    diagnosed = diagnosis.partitions_of(report.judged)
    return {
        "state": state,
        "word": word,
        "sentence": outcome(verdict),
        "chips": _chips(verdict, states),
        "tested": provenance.tested(report),
        "figures": None if report.partition_pages else key_figures.table(report),
        "pages": report.partition_pages,
        "diagnoses": list(map(_diagnosis, diagnosis.diagnose(report.judged) if diagnosed else ())),
        "faults": verdict.faults,
        "failed": entries(
            lambda one: (*one.faults, *content.reasons(one, Level.FAIL)), CaseState.FAILED
        ),
        "inconclusive": entries(
            lambda one: content.reasons(one, Level.INCONCLUSIVE), CaseState.INCONCLUSIVE
        ),
        "not_run": _not_run(verdict, states),
        "warned": entries(lambda one: content.reasons(one, Level.WARN)),
        "unconfirmed": entries(
            lambda one: [finding.reason for finding in one.findings if finding.forgiven]
        ),
        "notes": [
            *(f"Nodes differ: {one}" for one in differences[:MOST_DIFFERENCES]),
            *(f"Coverage: {one}" for one in verdict.coverage),
            *(f"Pairs: {one}" for one in verdict.pairs),
            *(f"Inconclusive: {one}" for one in verdict.undecided),
            *(f"Warning: {one}" for one in verdict.node_warnings),
            *(f"Not available: {one}" for one in not_available(verdict.absences)),
            *(f"Note: {note}" for note in verdict.notes),
            *(f"Not compared with an earlier session: {why}" for why in report.judged.unread),
        ],
        "more_differences": max(len(differences) - MOST_DIFFERENCES, 0),
        "kinds": ["case", *Degradation],
        "powers": powers,
    }


def _chips(verdict: Verdict, states: Mapping[int, CaseState]) -> list[tuple[str, str, str]]:
    """Return look, words and anchor of what a reader has to look at besides the result."""
    count = Counter(states.values())
    found = [
        (state.look, f"{state.sign} {count[state]} {word}", name)
        for state, word, name in (
            (CaseState.FAILED, "failed", "failed"),
            (CaseState.INCONCLUSIVE, "inconclusive", "inconclusive"),
            (CaseState.ABSENT, "did not run", "not-run"),
            (CaseState.WARNED, "with a warning", "warned"),
        )
        if count[state]
    ]
    faults = [("failed", f"✗ {counted(len(verdict.faults), 'fault')}", "faults")]
    warned = counted(len(verdict.node_warnings), "node warning")
    nodes = [("warned", f"▲ {warned}", "notes")]
    return [*(faults if verdict.faults else []), *found, *(nodes if verdict.node_warnings else [])]


def state_of(verdict: Verdict) -> tuple[CaseState, str]:
    """Return the look of a verdict, and its word."""
    if verdict.inconclusive:
        return CaseState.INCONCLUSIVE, "Inconclusive"
    return {
        PASSED: (CaseState.PASSED, "Passed"),
        FAILED: (CaseState.FAILED, "Failed"),
        INCONCLUSIVE: (CaseState.ABSENT, "Not judged whole"),
    }[verdict.status]


def _diagnosis(one: Diagnosis) -> dict[str, Any]:
    """Return culprits with labelled findings; since when only where earlier sessions were read."""
    culprits = [
        (
            culprit.headline,
            [row for row in rows(culprit) if culprit.since is not NO_EARLIER or row[0] != "since"],
        )
        for culprit in one.culprits
    ]
    notes = {"Ruled out": one.ruled_out, "Not known": one.not_known}
    return {"headline": headline(one), "culprits": culprits, "notes": notes}


def _not_run(verdict: Verdict, states: Mapping[int, CaseState]) -> dict[tuple[str, str], list[str]]:
    """Return the cases that did not run, by configuration and reason."""
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    absent = [one for one in verdict.cases if states[id(one)] is CaseState.ABSENT]
    whys = [(one.case, "; ".join(one.faults)) for one in absent]
    for one in verdict.skipped:
        word = "deferred" if one.reason.planned else "could not be measured"
        whys.append((one.case, f"{word}: {one.reason.why}"))
    for case, why in whys:
        found[content.configuration(case), why].append(content.named(case))
    return found


def _function(report: Report, groups: Sequence[Group]) -> str:
    """Return the page of a function, or of NetPIPE."""
    partition, pairs = groups[0].partition, None
    if registry.of(groups[0].case).by_protocol:
        pairs = [report.pair(key) for key in report.netpipe if partition in ("", key[2])]
    heading = content.page_title(groups[0])
    return render(
        "function.html",
        title=f"{heading}, {report.system}",
        back=report.partition_pages.get(partition, MAIN),
        heading=f"{heading} on {report.system}",
        groups=[
            {
                "group": group,
                "figure": report.figure(group),
                "findings": [one for judged in group.members for one in _findings(judged)],
                "again": [
                    (judged, repeated_table(judged))
                    for judged in group.members
                    if judged.again is not None and judged.measured is not None
                ],
            }
            for group in groups
        ],
        pairs=pairs,
        files=report.files,
    )


def _findings(judged: CaseVerdict) -> list[tuple[str, str, list[str]]]:
    """Return style, configuration and reasons of a case against which there are any."""
    # The chart has the reason for a missing curve.
    faults = judged.faults if judged.measured is not None else ()
    reasons = [*faults, *content.reasons(judged, Level.FAIL)]
    reasons += [f"inconclusive: {why}" for why in content.reasons(judged, Level.INCONCLUSIVE)]
    reasons += content.reasons(judged, Level.WARN)
    look = content.LOOKS.get(judged.level, "warned")
    return [(look, content.configuration(judged.case), reasons)] if reasons else []


def _switch(report: Report) -> str:
    """Return the page for a buyer: one switch against the others, breakdowns, ratios, plots."""
    against, alongside = report.against, report.judged.verdict.compared_with
    name = against.partition
    functions = [one for one in crossovers(report.judged.verdict) if one.case.partition == name]
    together = () if alongside is None else alongside.together()
    # Plots are of where the switch is red, or slower than another one.
    keys = against.worse() | {one.case.key() for several in functions for one in several.red}
    plotted = [
        report.figure(group)
        for group in report.groups
        if any(one.case.key() in keys and one.measured is not None for one in group.members)
    ]
    breakdown: dict[str, dict[str, Crossover]] = {}
    for one in functions:
        function = content.function_name(one.case)
        if registry.of(one.case).by_protocol:
            function = f"{function} {content.variant(one.case)}"
        breakdown.setdefault(function, {})[one.case.environment] = one
    return render(
        "switch_page.html",
        title=f"{name} against the others, {report.system}",
        main=MAIN,
        partition=name,
        comparisons=list(map(sides.view, against.comparisons)),
        alone=against.alone,
        borrowed=alongside is not None,
        marked=[words for words, cases, left_out in together if cases[0].marks and not left_out],
        environments=list(dict.fromkeys(one.case.environment for one in functions)),
        breakdown=breakdown,
        links=report.links,
        figures=[one for one in plotted if one.rows],
        files=report.files,
    )
