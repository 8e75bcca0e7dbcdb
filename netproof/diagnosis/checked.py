"""Sentences on checks: in order, not made, missing, and steps that make a diagnosis conclusive."""

from __future__ import annotations

import collections
import dataclasses
import statistics
from collections.abc import Iterable, Iterator, Sequence

from netproof.criteria import Finding, Level
from netproof.criteria.interface import Shows
from netproof.diagnosis.evidence import EvidenceSource, PartitionView, Sign, count_of
from netproof.measurement import interval
from netproof.measurement.disturbance import disturbed
from netproof.pairs.rounds import FEW_NODES
from netproof.session.node_differences import OF_ITS_OWN
from netproof.session.node_facts import GROUPS, Node, named
from netproof.site.hostlist import fold
from netproof.verdict.coverage import Coverage
from netproof.verdict.nodes import NodeFindingKind


def ruled_out(view: PartitionView) -> Iterator[str]:
    """Yield what was checked and is in order, a sentence each."""
    if view.cleared:
        alone = f" by {view.cleared_by[0]} alone" if len(view.cleared_by) == 1 else ""
        yield f"rounds of pairs clear {fold(view.cleared)}{alone}"
    changes = [one.carrier_changes() for one in view.rails]
    if changes and not any(changes) and None not in changes and not view.of(Sign.NO_CARRIER):
        yield f"no interface lost its carrier ({count_of(len(changes), 'interface')})"
    again = [one.again for one in view.rails if one.again.of]
    if again and not view.of(Sign.LOSS):
        most = max(again, key=lambda one: one.value)
        if most.count:
            share = f"{most.count:,} of {most.of:,} segments again ({100 * most.value:.2g} %)"
            yield f"no node sent more than {share}"
        else:
            yield f"no segment was sent again ({count_of(len(again), 'node')})"
    paths = [one for one in view.showing(Shows.PATH) if one.level is Level.PASS]
    where = [f"in {count_of(len(paths), 'case')}"] if paths else []
    if any(one.path is not None and one.path.level is Level.PASS for one in view.pairs):
        where.append("in rounds of pairs")
    if where and not view.of(Sign.OTHER_PATH):
        yield f"messages went over {view.interface} {' and '.join(where)}"
    alike = len({node.node for node in view.described})
    if alike > 1 and not any(one.source is EvidenceSource.HOST for one in view.evidence):
        yield f"{alike} nodes are alike in {_facts(view.described)} facts"
    answering = {other for node in view.described for other in named(node.tcp_answered)}
    if answering and not any(named(node.tcp_unanswered) for node in view.described):
        yield f"{count_of(len(answering), 'node')} answered TCP connections"
    noisy = _noisy(view)
    if noisy and not any(noisy):
        yield f"no other program took CPUs in {count_of(len(noisy), 'launch', 'launches')}"


def not_known(view: PartitionView) -> Iterator[str]:
    """Yield what was not checked or is inconclusive, a sentence each."""
    yield from incomplete(view)
    if not any(one.rounds.launches for one in view.pairs):
        yield "which node is slow: no rounds of pairs were measured (--measure does)"
    if not view.ran:
        yield from _what_pairs_get(view)
    yield from _of_pairs(view)
    for environment, paths in view.paths().items():
        if any(map(_judges, paths)):
            for why in _undefined(paths):
                yield f"the path of some messages of {environment}: {why}"
    if not view.described:
        yield "whether nodes are alike: the session does not describe them"
    for finding in view.findings:
        if finding.kind is NodeFindingKind.NOT_KNOWN and finding.level is not Level.FAIL:
            yield finding.why
    for one in view.coverage:
        for word, nodes in (("down", one.down), ("drained", one.drained)):
            if nodes:
                yield f"{fold(nodes)}: {word}, so not measured"
    for node, _ in view.lost_once:
        yield f"whether {node} loses packets: it did in few launches only"
    missing = len(view.cases) - len(view.ran)
    if missing and view.ran:
        yield f"{count_of(missing, 'case')} did not run in this session"
    planned = sum(one.reason.planned for one in view.skipped)
    if planned:
        yield f"{count_of(planned, 'case')} deferred to another session"
    noisy = _noisy(view)
    if 2 * sum(noisy) > len(noisy):
        yield f"other programs ran on the nodes in {sum(noisy)} of {len(noisy)} launches"


def _of_pairs(view: PartitionView) -> Iterator[str]:
    """Yield what rounds of pairs leave open: too few nodes, quantities that clear no node."""
    jobs = collections.Counter(one.rounds.environment for one in view.pairs if one.rounds.launches)
    for environment, count in jobs.items():
        if count > 1:
            where = f"rounds of pairs of {environment}"
            yield f"whether nodes of different jobs are slow with each other: {where} took {count}"
    for one in view.pairs:
        if one.lone:
            where = f"rounds of pairs of {one.rounds.environment}"
            yield f"which node is slow, if one is: {where}: {one.too_few}"
        elif one.rounds.launches and len(one.rounds.nodes) > FEW_NODES and one.never_met():
            yield f"whether a pair is slow with each other alone: {one.never_met()}"
        for quantity, factor in one.not_judged().items():
            yield (
                f"whether the {quantity} of pairs differs by less than {factor:.2g} times: the site"
                f" clears nodes by the {' and '.join(one.quantities)} alone ('quantities')"
            )


def _what_pairs_get(view: PartitionView) -> Iterator[str]:
    """Yield each environment's median share of the line rate in undisturbed rounds.

    Pairs are compared with each other, so nodes that are all equally slow are not accused.
    """
    settings = view.settings.disturbance
    for one in view.pairs:
        if one.lone:
            continue
        line_rate = view.line_rate_mb_s(one.rounds.environment)
        shares = [
            pair.rate_mb_s / line_rate
            for launch in one.rounds.launches
            if not (launch.stream or launch.both_ways or disturbed(launch.loads, settings))
            for pair in launch.pairs
        ]
        if not shares:
            continue
        ends = interval.of_median(shares)
        over = "" if ends is None else f", 95% interval {ends[0]:.1%} to {ends[1]:.1%}"
        yield (
            f"whether all nodes are slow alike: no case was judged. A pair of"
            f" {one.rounds.environment} gets {statistics.median(shares):.1%} of the line rate"
            f" (median of {len(shares)}{over})"
        )


def incomplete(view: PartitionView) -> Iterator[str]:
    """Yield why the partition cannot be declared healthy, a sentence each."""
    if not view.ran and not any(one.rounds.launches for one in view.pairs):
        yield "nothing was measured on this partition"
    if _judges_nothing(view):
        yield "no case was judged, and there are too few nodes to compare with each other"
    for one in view.pairs:
        where = f"rounds of pairs of {one.rounds.environment}"
        for reason, nodes in one.undecided_for().items():
            yield f"{fold(nodes)} undecided by {where}: {reason}"
        few = len(one.rounds.nodes) <= FEW_NODES
        if few and one.rounds.launches and not one.lone and one.never_met():
            yield f"whether a pair is slow with each other alone: {one.never_met()}"
        several = one.what_failed()
        if several:
            counted = count_of(len(several), "fault")
            first = ", the first" if several[1:] else ""
            yield f"{where} have {counted}{first}: {(*one.rounds.faults, *several)[0]}"
    for coverage in view.coverage:
        yield from _not_covered(coverage)
    yield from _not_judged(view)
    undecided = sum(one.level is Level.INCONCLUSIVE for one in view.ran)
    if undecided:
        yield f"{count_of(undecided, 'case')} inconclusive"
    failing = [one for one in view.skipped if not one.reason.planned]
    if failing:
        yield f"{count_of(len(failing), 'case')} not measured: {failing[0].reason.why}"


def _not_judged(view: PartitionView) -> Iterator[str]:
    """Yield what was to be judged and could not be: a quantity of pairs, packets, the path."""
    for one in view.pairs:
        for quantity in one.unjudged():
            yield f"whether the {quantity} of pairs of {one.rounds.environment} differs"
    environments = view.between_nodes()
    if environments and not view.totals:
        yield "what interfaces counted: it was not recorded"
    if view.rails and any(environments.values()) and not any(one.again.of for one in view.rails):
        why = view.rails[0].again.why or "no segments were counted"
        yield f"whether packets are lost: {why}"
    for environment, several in view.paths().items():
        why = "; ".join(_undefined(several))
        if why and not any(map(_judges, several)):
            yield f"the path of messages of {environment}: {why}"


def _judges(path: Finding) -> bool:
    return path.own_level is not Level.UNDEFINED


def _undefined(paths: Iterable[Finding]) -> list[str]:
    """Return why paths of messages are not known, each reason once."""
    return list(dict.fromkeys(one.why_undefined or one.reason for one in paths if not _judges(one)))


def next_steps(view: PartitionView) -> Iterator[str]:
    """Yield the steps that would make the diagnosis conclusive, a sentence each."""
    again = f"netproof diagnose {view.system}:{view.name} --measure"
    if any(one.busy for one in view.pairs):
        yield f"when nothing else runs on the nodes, which 'top' there shows, run '{again}'"
    waited_for = {node for one in view.coverage for node in one.waited_for}
    if waited_for:
        yield f"when other jobs have left {fold(waited_for)}, which 'squeue' shows, run '{again}'"
    if not any(one.rounds.launches or one.rounds.faults for one in view.pairs):
        yield f"run '{again}'"
    if _judges_nothing(view):
        yield "measure its cases: 'reframe -c checks -r'"


def _judges_nothing(view: PartitionView) -> bool:
    """Check whether only pairs were measured, and without anything to compare them with."""
    if view.ran or not view.pairs:
        return False
    return all(one.lone and one.least is None for one in view.pairs)


def _not_covered(coverage: Coverage) -> Iterator[str]:
    if not coverage.known:
        yield f"how many nodes there are: {coverage.why}"
        return
    others = set(coverage.unmeasured) - set(coverage.waited_for)
    if others:
        yield f"{fold(others)}: usable and not measured"
    if coverage.waited_for:
        held = f"other jobs held it for {coverage.waited_s:.0f} s"
        yield f"{fold(coverage.waited_for)}: not measured, {held}"


def _noisy(view: PartitionView) -> list[bool]:
    """Return of each launch whose loads are known whether other programs took CPUs."""
    settings = view.settings.disturbance
    return [bool(disturbed(loads, settings)) for loads, _ in view.launches() if loads]


def _facts(nodes: Sequence[Node]) -> int:
    """Count the facts reported by nodes that have to be alike."""
    names: set[str] = set()
    for node in nodes:
        for field in dataclasses.fields(node):
            value = getattr(node, field.name)
            if field.name in OF_ITS_OWN or value is None:
                continue
            keys = value if field.name in GROUPS else [""]
            names |= {f"{field.name} {key}" for key in keys}
    return len(names)
