"""Diagnose each partition of a judged session: culprits, confidence, and when they began."""

from __future__ import annotations

import itertools
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from netproof.criteria import Finding, Level
from netproof.criteria.interface import Shows
from netproof.diagnosis.causes import find_culprits
from netproof.diagnosis.evidence import (
    NO_EARLIER,
    Began,
    Culprit,
    EvidenceSource,
    PartitionView,
    Sign,
    Since,
)
from netproof.errors import NetproofError, counted
from netproof.measurement import interval
from netproof.measurement.disturbance import disturbed
from netproof.pairs.alone import LEAST_LONE, across_and_within, two_by_two
from netproof.pairs.rounds import FEW_NODES
from netproof.pairs.verdict import PairsVerdict, lone_observations, topology
from netproof.session import session
from netproof.session.node_facts import facts, named
from netproof.site import folders
from netproof.site.slurm import fold
from netproof.verdict import PASSED, session_verdict
from netproof.verdict.coverage import Coverage
from netproof.verdict.judge import unsettled_of
from netproof.verdict.nodes import NodeFindingKind
from netproof.verdict.session_verdict import JudgedSession
from netproof.verdict.stored import document
from netproof.verdict.verdict import NOT_IN_SESSION, Verdict

if TYPE_CHECKING:
    from netproof.store import Store
    from netproof.store.ingest import Ingested, LeftOpen

NOTHING_WRONG, SOMETHING_WRONG, INCONCLUSIVE = 0, 1, 3
"""Exit statuses of a diagnosis."""


class DiagnosisOutcome(StrEnum):
    """Outcome of a diagnosis."""

    NOTHING = "nothing wrong"
    FOUND = "something found"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True)
class Diagnosis:
    """A partition's culprits, worst first, what was ruled out, and what is not known.

    ``cases``, ``passed``, ``red``: counts of cases measured, passed and failed, and ``unmeasured``
    of those failed and not measured; ``asked``: sources that have evidence; ``incomplete``: why the
    partition cannot be declared healthy; ``next_steps``: what would settle it.
    """

    partition: str
    culprits: tuple[Culprit, ...]
    cases: int
    passed: int
    red: int
    asked: frozenset[EvidenceSource]
    ruled_out: tuple[str, ...]
    not_known: tuple[str, ...]
    incomplete: tuple[str, ...]
    next_steps: tuple[str, ...] = ()
    unmeasured: int = 0

    @property
    def outcome(self) -> DiagnosisOutcome:
        """Outcome by the culprits found and the evidence missing."""
        if self.culprits:
            return DiagnosisOutcome.FOUND
        return DiagnosisOutcome.INCONCLUSIVE if self.incomplete else DiagnosisOutcome.NOTHING


Earlier = tuple[str, datetime, Callable[[], JudgedSession]]
"""Name and start of an earlier session, and its verdict on request, or NetproofError."""


def partitions_of(judged: JudgedSession) -> tuple[str, ...]:
    """Return the partitions with results in the session, in the site's order."""
    there = {result.partition for result in judged.session.results}
    return tuple(name for name in judged.matrix.partitions if name in there)


def diagnose(
    judged: JudgedSession, partition: str | None = None, earlier: Iterable[Earlier] = ()
) -> tuple[Diagnosis, ...]:
    """Diagnose a partition, or each one with results in the session.

    ``earlier``: sessions before it, newest first, judged only as far as needed. Raises
    NetproofError for a partition unknown to the site, and for a session without results.
    """
    known = tuple(judged.matrix.partitions)
    if partition is not None and partition not in known:
        raise NetproofError(f"the system has no partition {partition!r}; it has {', '.join(known)}")
    names = partitions_of(judged) if partition is None else (partition,)
    if not names:
        raise NetproofError(
            f"{judged.session.path}: has results of none of the partitions {', '.join(known)}"
        )
    found = [_of(judged, name) for name in names]
    dates = iter(_dates([(one.partition, each) for one in found for each in one.culprits], earlier))
    return tuple(
        replace(one, culprits=tuple(replace(each, since=next(dates)) for each in one.culprits))
        for one in found
    )


def summary(judged: JudgedSession) -> tuple[tuple[str, ...], str]:
    """Return the headlines of all culprits, and what to do first; those of a stored verdict."""
    if judged.stored is not None and judged.changed is None:
        return judged.stored.culprits, judged.stored.next_step
    unsettled = () if judged.verdict.status == PASSED else partitions_of(judged)
    views = (PartitionView(judged, name) for name in unsettled)
    # All else of a diagnosis takes as long again.
    found = [(find_culprits(view), tuple(_next_steps(view))) for view in views]
    headlines = (culprit.headline for culprits, _ in found for culprit in culprits)
    return tuple(headlines), next_step(judged.verdict, found)


def ingest(
    store: Store, report: Path, *, system: str | None = None, full: bool = False
) -> Ingested:
    """Put a session's report into the store, with its verdict; a second time changes nothing.

    ``system``, ``full``: as in ``judge_session``. A session that cannot be judged, without its
    site's configuration for instance, is stored without a verdict and judged when it is read.
    Raises NetproofError, with the store unchanged, where the report is damaged, is still being
    written, or differs from the stored one of this session.
    """
    from netproof.store import ingest as storing

    def left_open(read: session.Session, *judged: Any) -> LeftOpen:
        """Return why the figures of cases are not usable, by case."""
        try:
            found = unsettled_of(read, *judged)
        except NetproofError:
            # With settings of another netproof they are stored all the same.
            return {}
        return {key: () if usable else why for key, (why, usable) in found.items()}

    def judge(read: session.Session, sha256: str) -> tuple[LeftOpen, bytes | str]:
        try:
            # Warnings are folded when it is read, since that depends on other sessions.
            judged = session_verdict.judge_session(read, system=system, full=full, fold=0)
            matrix, verdict, (culprits, step) = judged.matrix, judged.verdict, summary(judged)
            return left_open(read, matrix, verdict), document(
                verdict,
                matrix,
                folders.of_references(),
                partition=(system or "").partition(":")[2],
                full=full,
                report_sha256=sha256,
                culprits=culprits,
                next_step=step,
            )
        except NetproofError as error:
            return left_open(read), str(error)

    return storing.ingest(store, report, judge)


def next_step(
    verdict: Verdict, partitions: Sequence[tuple[Sequence[Culprit], Sequence[str]]]
) -> str:
    """Return what to do first, by each partition's culprits and next steps; empty if nothing."""
    steps = [culprit.advice for culprits, _ in partitions for culprit in culprits[:1]]
    missing = [one.case for one in verdict.cases if NOT_IN_SESSION in one.faults]
    if 2 * len(missing) > len(verdict.cases):
        places = {f"{one.system}:{one.partition}" for one in missing}
        what = places.pop() if len(places) == 1 else missing[0].system
        steps += [f"'netproof run {what}' measures what this session does not have"]
    steps += [step for _, several in partitions for step in several]
    return next(iter(steps), "")


def status(diagnoses: Sequence[Diagnosis]) -> int:
    """Return the exit status of several: 1 if any found a fault, else 3 if any is inconclusive."""
    outcomes = {one.outcome for one in diagnoses}
    if DiagnosisOutcome.FOUND in outcomes:
        return SOMETHING_WRONG
    return NOTHING_WRONG if outcomes == {DiagnosisOutcome.NOTHING} else INCONCLUSIVE


def _of(judged: JudgedSession, partition: str) -> Diagnosis:
    view = PartitionView(judged, partition)
    return Diagnosis(
        partition,
        find_culprits(view),
        len(view.measured),
        len(view.passed),
        len(view.red),
        view.asked(),
        tuple(_ruled_out(view)),
        tuple(_not_known(view)),
        tuple(_incomplete(view)),
        tuple(_next_steps(view)),
        sum(not one.complete for one in view.red),
    )


def _dates(culprits: Sequence[tuple[str, Culprit]], earlier: Iterable[Earlier]) -> list[Since]:
    """Date culprits, each with its partition, by as few earlier sessions as possible."""
    dates: dict[int, Since] = {}
    had: list[list[Earlier]] = [[] for _ in culprits]
    stopped, looked = "", False
    try:
        for one in earlier if culprits else ():
            looked, which = True, f"session {one[0]}"
            stopped = f"{which} cannot be judged: "
            judged = one[2]()
            stopped = ""
            measured = set(partitions_of(judged)) & {name for name, _ in culprits}
            before = {name: _of(judged, name) for name in measured}
            for place, (name, culprit) in enumerate(culprits):
                if place in dates or name not in before:
                    continue
                source = culprit.evidence[0].source
                if any(culprit.same(other) for other in before[name].culprits):
                    had[place].append(one)
                elif source not in before[name].asked:
                    why = f"{which} has nothing of its evidence ({source})"
                    dates[place] = _at_least(had[place], why)
                elif had[place]:
                    since = _at_least(had[place], f"{which} did not have it")
                    dates[place] = replace(since, began=Began.EARLIER)
                else:
                    dates[place] = Since(Began.THIS, f"{which} did not have it")
            if len(dates) == len(culprits):
                break
    except NetproofError as error:
        looked, stopped = True, f"{stopped}{error}"
    for place, several in enumerate(had):
        none = "no earlier one was looked at"
        none = none if several else "no earlier session measured this partition"
        dates.setdefault(place, _at_least(several, stopped or none) if looked else NO_EARLIER)
    return [dates[place] for place in range(len(culprits))]


def _at_least(had: Sequence[Earlier], why: str) -> Since:
    if not had:
        return Since(Began.NOT_KNOWN, why)
    name, started, _ = had[-1]
    return Since(Began.AT_LEAST, why, name, started, len(had) + 1)


def sessions_before(
    judged: JudgedSession, store: Path | None = None, most: int = 10
) -> Iterator[Earlier]:
    """Return up to ``most`` earlier sessions of the system, newest first, opened only on request.

    They come from ``store``, or from the reports beside the session's own. Raises NetproofError.
    """
    return itertools.islice(_of_store(judged, store) if store else _of_folder(judged), most)


def _of_store(judged: JudgedSession, folder: Path) -> Iterator[Earlier]:
    from netproof.store import Store, questions

    store, system = Store(folder), judged.matrix.cases[0].system
    # To the second, as in a store's names; 0 where it is not known.
    began = int(judged.session.began)
    for stored in reversed(store.sessions(system)):
        if not began or stored.start.replace(tzinfo=UTC).timestamp() < began:
            read = partial(questions.load, store, stored)
            yield stored.name, stored.start, partial(_judge, read, system)


def _of_folder(judged: JudgedSession) -> Iterator[Earlier]:
    path, system = judged.session.path, judged.matrix.cases[0].system
    if path.is_dir():
        return
    own = path.stat().st_mtime
    for other in session.reports(path.parent):
        written = other.stat().st_mtime
        if other.resolve() == path.resolve() or written > own:
            continue
        when = datetime.fromtimestamp(written, UTC).replace(tzinfo=None)
        read = cache(partial(session.load, other))
        with suppress(NetproofError):
            if not any(result.system == system for result in read().results):
                continue
        yield other.name, when, partial(_judge, read, system)


def _judge(read: Callable[[], session.Session], system: str) -> JudgedSession:
    return session_verdict.judge_session(read(), system=system, fold=0)


def _ruled_out(view: PartitionView) -> Iterator[str]:
    if view.cleared:
        alone = f" by {view.cleared_by[0]} alone" if len(view.cleared_by) == 1 else ""
        yield f"rounds of pairs clear {fold(view.cleared)}{alone}"
    changes = [one.faults[2] for one in view.rails]
    if changes and not any(changes) and None not in changes and not view.of(Sign.NO_CARRIER):
        yield f"no interface lost its carrier ({counted(len(changes), 'interface')})"
    again = [one.again for one in view.rails if one.again.of]
    if again and not view.of(Sign.LOSS) and not view.lost_once:
        most = max(again, key=lambda one: one.value)
        if most.count:
            share = f"{most.count:,} of {most.of:,} segments again ({100 * most.value:.2g} %)"
            yield f"no node sent more than {share}"
        else:
            yield f"no segment was sent again ({counted(len(again), 'node')})"
    paths = [one for one in view.showing(Shows.PATH) if one.level is Level.PASS]
    where = [f"in {counted(len(paths), 'case')}"] if paths else []
    if any(one.path is not None and one.path.level is Level.PASS for one in view.pairs):
        where.append("in rounds of pairs")
    if where and not view.of(Sign.OTHER_PATH):
        yield f"messages went over {view.interface} {' and '.join(where)}"
    alike = len({node.node for node in view.described})
    if alike > 1 and not any(one.source is EvidenceSource.HOST for one in view.evidence):
        names = {name for node in view.described for name, _ in facts(vars(node))}
        yield f"{alike} nodes are alike in {len(names)} facts"
    answering = {other for node in view.described for other in named(node.tcp_answered)}
    if answering and not any(named(node.tcp_unanswered) for node in view.described):
        yield f"{counted(len(answering), 'node')} answered TCP connections"
    noisy = _noisy(view)
    if noisy and not any(noisy) and view.settings.disturbance.others < 1:
        yield f"no other program took CPUs in {counted(len(noisy), 'launch', 'launches')}"


def _not_known(view: PartitionView) -> Iterator[str]:
    yield from _incomplete(view)
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
        yield f"whether {node} loses packets: few launches that nothing disturbed show it"
    missing = len(view.cases) - len(view.ran)
    if missing and view.ran:
        yield f"{counted(missing, 'case')} did not run in this session"
    planned = sum(one.planned for one in view.skipped)
    if planned:
        yield f"{counted(planned, 'case')} deferred to another session"
    noisy = _noisy(view)
    if 2 * sum(noisy) > len(noisy):
        yield f"other programs ran on the nodes in {sum(noisy)} of {len(noisy)} launches"


def _of_pairs(view: PartitionView) -> Iterator[str]:
    """Yield what rounds of pairs leave open: too few nodes, quantities that clear no node."""
    jobs = Counter(one.rounds.environment for one in view.pairs if one.rounds.launches)
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
                f"whether the {quantity} of pairs differs by less than {factor:.2g} times: the"
                f" site's file judges pairs by the {' and '.join(one.quantities)} alone"
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
            rate_mb_s / line_rate
            for launch in one.rounds.launches
            if not (launch.stream or launch.both_ways or disturbed(launch.loads, settings))
            for rate_mb_s in launch.rates_mb_s
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
        few = len(one.rounds.nodes) <= FEW_NODES
        if few and one.rounds.launches and not one.lone and one.never_met():
            yield f"whether a pair is slow with each other alone: {one.never_met()}"
        several = one.what_failed()
        if several:
            count = counted(len(several), "fault")
            first = ", the first" if several[1:] else ""
            yield f"{where} have {count}{first}: {(*one.rounds.faults, *several)[0]}"
    for coverage in view.coverage:
        yield from _not_covered(coverage)
    yield from _not_judged(view)
    undecided = sum(one.level is Level.INCONCLUSIVE for one in view.ran)
    if undecided:
        yield f"{counted(undecided, 'case')} inconclusive"
    failing = [one.skipped for one in view.skipped if not one.planned]
    if failing:
        yield f"{counted(len(failing), 'case')} not measured: {failing[0]}"


def _uplink_not_shown(view: PartitionView, pairs: PairsVerdict) -> Iterator[str]:
    """Yield that too few pairs alone show what is between two leaves of two nodes."""
    switches, rounds = topology(pairs.rounds), pairs.rounds
    if switches is None or not two_by_two(rounds.nodes, switches) or pairs.accusations():
        return
    lone = lone_observations(rounds, view.settings.disturbance)
    count = min(map(len, across_and_within(lone, switches)))
    if count < LEAST_LONE:
        yield (
            f"whether an uplink is slow: with two nodes of each of two leaves only pairs of"
            f" {rounds.environment} alone show it, and of these {count} within or across were"
            f" undisturbed, of at least {LEAST_LONE}"
        )


def _not_judged(view: PartitionView) -> Iterator[str]:
    """Yield what was to be judged and could not be: a quantity of pairs, packets, the path."""
    for one in view.pairs:
        yield from _uplink_not_shown(view, one)
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
    return list(dict.fromkeys(one.why_undefined or one.reason for one in paths if not _judges(one)))


def _next_steps(view: PartitionView) -> Iterator[str]:
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
    return [bool(disturbed(one.loads, settings)) for one in view.launches() if one.loads]
