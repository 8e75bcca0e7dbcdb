"""Collect the typed evidence that a judged session has on one partition."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from netproof.criteria import Level
from netproof.criteria.paths import PATH
from netproof.diagnosis import from_counters, from_loads, from_nodes, from_pairs
from netproof.diagnosis.evidence import Collected, Evidence, EvidenceSource, RedCase, Sign
from netproof.diagnosis.partition_view import PartitionView, count_of
from netproof.localization.observations import PairQuantity
from netproof.measurement.disturbance import disturbed
from netproof.measurement.readings import LandmarkSettings
from netproof.session.node_differences import OF_ITS_OWN
from netproof.session.node_facts import GROUPS, Node, named
from netproof.site.hostlist import fold
from netproof.verdict.coverage import Coverage
from netproof.verdict.judged import Judged
from netproof.verdict.judging import JudgedSession
from netproof.verdict.limits import size_of
from netproof.verdict.node_findings import NodeFindingKind


def collect(judged: JudgedSession, partition: str) -> Collected:
    """Return the evidence of a session on a partition that it judged."""
    return _collected(PartitionView(judged, partition))


def _collected(view: PartitionView) -> Collected:
    evidence = [
        *from_nodes.of_nodes(view),
        *from_nodes.of_requeues(view),
        *from_counters.of_counters(view),
        *from_counters.of_paths(view),
        *from_loads.of_loads(view),
        *from_pairs.of_pairs(view),
        *from_nodes.of_crashes(view),
    ]
    evidence += from_pairs.of_directions(view, evidence)
    measured = [one for one in view.ran if one.measured is not None]
    warns, fails = view.loses_from(), view.site.settings().retransmission.fail
    return Collected(
        view.name,
        view.nodes,
        tuple(evidence),
        frozenset(_asked(view)),
        tuple(one.case for one in measured),
        tuple(one.case for one in measured if one.passed),
        tuple(_red(view)),
        (*map(str, view.tests), *view.crashing),
        {one.node: one.again.value for one in view.rail_totals() if one.again.of},
        warns,
        fails if fails is not None else warns,
        tuple(sorted({node for one in view.pairs for node in one.cleared()})),
        view.site.pair_settings().quantities,
        tuple(_ruled_out(view, evidence)),
        tuple(_not_known(view)),
        tuple(_incomplete(view)),
        tuple(_next_steps(view)),
    )


def _asked(view: PartitionView) -> Iterator[EvidenceSource]:
    """Yield the sources that have any evidence."""
    if any(one.rounds.launches for one in view.pairs):
        yield EvidenceSource.PAIRS
    if view.totals:
        yield EvidenceSource.COUNTERS
    if view.paths():
        yield EvidenceSource.PATH
    if view.described:
        yield EvidenceSource.HOST
    if any(loads for loads, _ in view.launches()):
        yield EvidenceSource.LOAD
    if any(one.measured is not None for one in view.ran):
        yield EvidenceSource.CURVES


def _red(view: PartitionView) -> Iterator[RedCase]:
    for one in view.ran:
        if not one.failed:
            continue
        fails = [ruling for ruling in one.rulings if ruling.level is Level.FAIL]
        why = next(iter((*one.faults, *(ruling.reason for ruling in fails))))
        measured = one.measured is not None
        of_network = measured and one.case.path == "between"
        yield RedCase(one.case, _ran_on(view, one), measured, why, of_network, _quantity(one))


def _quantity(judged: Judged) -> PairQuantity:
    """Return latency if a case failed at short messages alone, else rate.

    A message is short if the link carries more within the case's own latency.
    """
    if judged.measured is None or judged.faults:
        return PairQuantity.RATE
    latency_us, rate_mb_s = judged.measured.landmarks.latency_us, judged.measured.line_rate_mb_s
    short = LandmarkSettings().latency_below
    if latency_us is not None and rate_mb_s is not None:
        short = max(short, latency_us * rate_mb_s)
    sizes: list[int | None] = []
    for ruling in judged.rulings:
        if ruling.level is Level.FAIL:
            variable = ruling.finding.variable
            sizes += [size_of(variable)] if variable else ruling.sizes() or [None]
    of_latency = all(size is not None and size < short for size in sizes)
    return PairQuantity.LATENCY if of_latency else PairQuantity.RATE


def _ran_on(view: PartitionView, judged: Judged) -> tuple[str, ...]:
    """Return the nodes of a case; if unmeasured those of its job, () if unknown."""
    if judged.measured is not None:
        several = (node for launch in judged.measured.launches for node in launch.nodes())
        return tuple(dict.fromkeys(several))
    # If a job ended early, ReFrame reports the host of ReFrame itself.
    known = {*view.nodes, *(node for one in view.coverage for node in one.usable)}
    named = () if judged.result is None else judged.result.nodes
    return tuple(node for node in named if node in known)


def _ruled_out(view: PartitionView, evidence: Sequence[Evidence]) -> Iterator[str]:
    """Yield what was checked and is in order, a sentence each."""
    signs = {one.sign for one in evidence}
    cleared = sorted({node for one in view.pairs for node in one.cleared()})
    if cleared:
        by = view.site.pair_settings().quantities
        alone = f" by {by[0]} alone" if len(by) == 1 else ""
        yield f"rounds of pairs clear {fold(cleared)}{alone}"
    rails = view.rail_totals()
    changes = [one.carrier_changes() for one in rails]
    if changes and not any(changes) and None not in changes and Sign.NO_CARRIER not in signs:
        yield f"no interface lost its carrier ({count_of(len(rails), 'interface')})"
    again = [one.again for one in rails if one.again.of]
    if again and Sign.LOSS not in signs:
        most = max(again, key=lambda one: one.value)
        if most.count:
            share = f"{most.count:,} of {most.of:,} segments again ({100 * most.value:.2g} %)"
            yield f"no node sent more than {share}"
        else:
            yield f"no segment was sent again ({count_of(len(again), 'node')})"
    paths = [one for one in view.findings_of(PATH) if one.level is Level.PASS]
    rounds = any(one.path is not None and one.path.level is Level.PASS for one in view.pairs)
    if (paths or rounds) and Sign.OTHER_PATH not in signs:
        where = [f"in {count_of(len(paths), 'case')}"] if paths else []
        where += ["in rounds of pairs"] if rounds else []
        yield f"messages went over {view.interface} {' and '.join(where)}"
    alike = len({node.node for node in view.described})
    if alike > 1 and not any(one.source is EvidenceSource.HOST for one in evidence):
        yield f"{alike} nodes are alike in {_facts(view.described)} facts"
    answering = {other for node in view.described for other in named(node.tcp_answered)}
    if answering and not any(named(node.tcp_unanswered) for node in view.described):
        yield f"{count_of(len(answering), 'node')} answered TCP connections"
    launches = list(view.launches())
    settings = view.site.settings().disturbance
    known = [loads for loads, _ in launches if loads]
    undisturbed = sum(not disturbed(loads, settings) for loads in known)
    if known and undisturbed == len(known):
        yield f"no other program took CPUs in {count_of(undisturbed, 'launch', 'launches')}"


def _not_known(view: PartitionView) -> Iterator[str]:
    """Yield what was not checked or is inconclusive, a sentence each."""
    yield from _incomplete(view)
    if not any(one.rounds.launches for one in view.pairs):
        yield "which node is slow: no rounds of pairs were measured (--measure does)"
    if not view.ran:
        yield from from_pairs.what_pairs_get(view)
    yield from from_pairs.not_compared(view)
    yield from from_pairs.not_judged(view)
    if view.ran and not view.totals:
        yield "what interfaces counted: it was not recorded"
    yield from dict.fromkeys(
        f"the path of messages: {finding.why_undefined or finding.reason}"
        for finding in view.paths()
        if finding.level is Level.UNDEFINED
    )
    if not view.described:
        yield "whether nodes are alike: the session does not describe them"
    for one in view.findings:
        if one.kind is NodeFindingKind.NOT_KNOWN and one.level is not Level.FAIL:
            yield one.why
    for one in view.coverage:
        for word, nodes in (("down", one.down), ("drained", one.drained)):
            if nodes:
                yield f"{fold(nodes)}: {word}, so not measured"
        if one.never:
            yield f"{fold(one.never)}: never measured, a job can have {one.attainable}: {one.limit}"
    for one in view.lost_once:
        yield f"whether {one.node} loses packets: it did in few launches only"
    missing = len(view.cases) - len(view.ran)
    if missing and view.ran:
        yield f"{count_of(missing, 'case')} did not run in this session"
    planned = sum(one.left.planned for one in view.left)
    if planned:
        yield f"{count_of(planned, 'case')} deferred to another session"
    settings = view.site.settings().disturbance
    known = [loads for loads, _ in view.launches() if loads]
    noisy = sum(bool(disturbed(loads, settings)) for loads in known)
    if 2 * noisy > len(known):
        yield f"other programs ran on the nodes in {noisy} of {len(known)} launches"


def _incomplete(view: PartitionView) -> Iterator[str]:
    """Yield why the partition cannot be declared healthy, a sentence each."""
    if not view.ran and not any(one.rounds.launches for one in view.pairs):
        yield "nothing was measured on this partition"
    if _judges_nothing(view):
        yield "no case was judged, and there are too few nodes to compare with each other"
    for one in view.pairs:
        where = f"rounds of pairs of {one.rounds.environment}"
        for reason, nodes in one.undecided_for().items():
            yield f"{fold(nodes)} undecided by {where}: {reason}"
        several = one.what_failed()
        if several:
            counted = count_of(len(several), "fault")
            first = ", the first" if several[1:] else ""
            yield f"{where} have {counted}{first}: {(*one.rounds.faults, *several)[0]}"
    for one in view.coverage:
        yield from _not_covered(one)
    undecided = sum(one.level is Level.INCONCLUSIVE for one in view.ran)
    if undecided:
        yield f"{count_of(undecided, 'case')} inconclusive"
    failing = [one for one in view.left if not one.left.planned]
    if failing:
        yield f"{count_of(len(failing), 'case')} not measured: {failing[0].left.why}"


def _judges_nothing(view: PartitionView) -> bool:
    """Check whether only pairs were measured, and without anything to compare them with."""
    if view.ran or not view.pairs:
        return False
    return all(one.lone and one.least is None for one in view.pairs)


def _next_steps(view: PartitionView) -> Iterator[str]:
    """Yield the steps that would make the diagnosis conclusive, a sentence each."""
    again = f"netproof diagnose {view.name} --measure"
    if any(one.alongside for one in view.pairs):
        yield f"when nothing else runs on the nodes, which 'top' there shows, run '{again}'"
    waited_for = {node for one in view.coverage for node in one.waited_for}
    if waited_for:
        yield f"when other jobs have left {fold(waited_for)}, which 'squeue' shows, run '{again}'"
    if not any(one.rounds.launches or one.rounds.faults for one in view.pairs):
        yield f"run '{again}'"
    if _judges_nothing(view):
        yield "measure its cases: 'reframe -c checks -r'"


def _not_covered(coverage: Coverage) -> Iterator[str]:
    if not coverage.known:
        yield f"how many nodes there are: {coverage.why}"
        return
    others = set(coverage.unmeasured) - {*coverage.waited_for, *coverage.never}
    if others:
        yield f"{fold(others)}: usable and not measured"
    if coverage.waited_for:
        yield (
            f"{fold(coverage.waited_for)}: not measured, other jobs held it for"
            f" {coverage.waited_s:.0f} s"
        )


def _facts(nodes: Sequence[Node]) -> int:
    """Count the facts reported by nodes that have to be alike."""
    names: set[str] = set()
    for node in nodes:
        for field in dataclasses.fields(node):
            value = getattr(node, field.name)
            if field.name in OF_ITS_OWN or value is None:
                continue
            if field.name in GROUPS:
                names |= {f"{field.name} {key}" for key in value}
            else:
                names.add(field.name)
    return len(names)
