"""Cases of a job: what it has launched again of them so far, and which of them are undecided."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from netproof.benchmarks import registry
from netproof.criteria import Finding, Level
from netproof.criteria.registry import RELATIVE
from netproof.criteria.settings import ConfirmSettings, dense_sizes, needed_sizes
from netproof.errors import NetproofError, grouped
from netproof.measurement.case import Case, Curve
from netproof.measurement.disturbance import disturbed, others_share
from netproof.session import node_facts
from netproof.session.job_files import JobFolder
from netproof.session.measured import Launch
from netproof.session.plan import SizeSweep
from netproof.site.partition import ScoreBaseline
from netproof.verdict import confirmations, engine, limits
from netproof.verdict.engine import Job, Subject, pairs_needed
from netproof.verdict.limits import Limits

AGAINST = (Level.FAIL, Level.INCONCLUSIVE)
"""Levels of findings whose cases are measured again."""

ROUNDS_OF_PAIRS = 3
"""Ratio of interleaved rounds to the repeat launches that a site allows.

Not every round counts, and more are needed the more often a machine changes its pace.
"""

DENSE = "-dense"
"""Suffix of the subjects of IMB or OMB launches around flagged sizes, or between sizes."""


@dataclass(frozen=True)
class RepeatCase:
    """A case that may be repeated, and what was launched again of it so far.

    ``subject``: by its first launches; ``limits``: of its references; ``peers``: cases of other
    configurations that it is compared with;
    ``baseline``: the configuration that their scores are relative to; ``paired``: environments that
    its launches are interleaved with; ``by_score``: whether its score is to be decided too, which
    takes every round; ``elsewhere``: whether it scatters too much to be compared with a partition
    that is as fast. Results: ``launches`` of the whole curve; ``again``: launches
    around flagged sizes, None if none was requested; ``faults``: why launches of the whole curve
    are not complete, a sentence each; ``crashes``: attempts at them that crashed. To repeat:
    ``whole`` curves, and ``around`` flagged sizes.
    """

    subject: Subject
    limits: Mapping[str, Limits]
    peers: tuple[Subject, ...] = ()
    baseline: ScoreBaseline | None = None
    paired: tuple[str, ...] = ()
    by_score: bool = False
    elsewhere: bool = False
    launches: tuple[Launch, ...] = ()
    again: tuple[Launch, ...] | None = None
    faults: tuple[str, ...] = ()
    crashes: tuple[Launch, ...] = ()
    whole: bool = False
    around: bool = False

    @property
    def case(self) -> Case:
        """The case to measure."""
        return self.subject.case

    @property
    def key(self) -> tuple[Any, ...]:
        """The key of the case."""
        return self.case.key()

    @property
    def compares(self) -> bool:
        """True if it is repeated to compare it with other configurations."""
        return bool(self.peers) or self.elsewhere

    @property
    def step(self) -> str:
        """Subject of the steps that launch its whole curve."""
        return registry.of(self.case).subject(self.case)

    @property
    def open(self) -> bool:
        """True if something is to be launched."""
        return self.whole or self.around

    def flags(self) -> tuple[Finding, ...]:
        """Return the findings to repeat around their sizes."""
        return engine.flagged(engine.smoothness(self.subject))

    def sweeps(self) -> tuple[SizeSweep, ...]:
        """Return the NetPIPE calls of one launch around flagged sizes and between sizes."""
        closer = confirmations.closer_sizes(self.subject)
        return netpipe_sweeps(self.flags(), self.subject.confirm_settings(), closer)

    def dense(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """Return the steps of one such launch, each with its sizes in bytes."""
        flags, closer = self.flags(), confirmations.closer_sizes(self.subject)
        if not flags and not closer:
            return ()
        if registry.of(self.case).by_protocol:
            sweeps = self.sweeps()
            return tuple((f"{self.step}-from-{one.lower}", one.sizes()) for one in sweeps)
        settings = self.subject.confirm_settings()
        sizes = {size for one in flags for size in dense_sizes(one, settings)}
        sizes |= {*itertools.chain(*closer)}
        parts = registry.mpi(self.case.benchmark).parts(tuple(sorted(sizes)))
        if len(parts) == 1:
            return ((self.step + DENSE, parts[0]),)
        return tuple((f"{self.step}{DENSE}-from-{part[0]}", part) for part in parts)

    def rounds(self) -> int:
        """Return how many repeat launches are allowed."""
        return self.rounds_alone() * (ROUNDS_OF_PAIRS if self.paired else 1)

    def rounds_alone(self) -> int:
        """Return how many repeat launches are allowed without interleaving."""
        confirm = self.subject.settings.confirm
        allowed = confirm.most_launches - len(self.subject.measured.launches)
        most: int = max(allowed, confirm.launches)
        return most

    @cached_property
    def repeated(self) -> Subject:
        """Return the case with its repeat launches."""
        if not self.launches:
            return self.subject
        first = self.subject.measured
        whole = first.with_launches([*first.launches, *self.launches])
        return dataclasses.replace(self.subject, measured=whole)


def undecided(asked: Sequence[RepeatCase]) -> list[RepeatCase]:
    """Return the cases of one job, of all its environments, with what is to be repeated of them.

    A quantity is decided when its interval over undisturbed launches lies within its bounds, or
    wholly outside; a repeated case needs at least as many repeat launches as confirming takes. It
    stays inconclusive if by then every launch was disturbed, or a healthy twin was too slow for a
    comparison. A case that failed by one quantity, or by its nodes' counters, is decided as a
    whole, flagged sizes included: on a network that loses packets these take minutes. Comparisons
    with such a case need nothing. Once a case has failed, the others of its environment are
    repeated no more often than confirming takes: it is red, however certain they are. In cases that
    have not failed, ``confirmations.settled`` decides flagged sizes, and
    ``confirmations.closer_settled`` places between sizes. A case compared with others of the job,
    such as TCP's or other functions', is repeated with them.
    """
    subjects = engine.by_place({one.key: one.repeated for one in asked})
    alone = [one for one in asked if not one.compares]
    red = {one.key for one in alone if _fails_by_counters(one.repeated) or failed(one, subjects)}
    red_environments = {one.case.environment for one in alone if one.key in red}
    whole = {one.key for one in asked if one.compares and _comparison_is_open(one)}
    around = set()
    for one in alone:
        if one.key in red:
            continue
        subject, flags = one.repeated, one.flags()
        confirm = subject.settings.confirm
        most = one.rounds()
        if one.case.environment in red_environments:
            most = confirm.launches
        settled = not flags or confirmations.settled(subject, flags, one.again, most)
        if not (settled and confirmations.closer_settled(subject, one.again, most)):
            around.add(one.key)
        if len(one.launches) >= most:
            continue
        enough = len(one.launches) >= confirm.launches
        if one.launches and not enough:
            whole.add(one.key)
            continue
        for name, finding in _of_whole(one, subjects):
            if finding.level not in AGAINST:
                continue
            sides = (subject, *engine.rests_on(subject, finding, subjects))
            in_vain = any(all(side.noise) for side in sides) or (
                name == "paired_share" and limits.twin_too_slow(subject.measured)
            )
            keys = {side.case.key() for side in sides}
            if not (enough and in_vain) and keys.isdisjoint(red):
                whole.update(keys)
    return [
        dataclasses.replace(one, whole=one.key in whole, around=one.key in around) for one in asked
    ]


def _comparison_is_open(one: RepeatCase) -> bool:
    """Check whether a case is to be repeated to compare it with other environments.

    Launches are interleaved until their ratio is decided, or most were disturbed. A score needs
    every round, since its launches are not paired.
    """
    subject, count = one.repeated, len(one.launches)
    confirm = subject.settings.confirm
    enough = count >= (pairs_needed(one.subject) if one.paired else confirm.launches)
    in_vain = enough and (all(subject.noise) or _mostly_disturbed(one))
    if count >= one.rounds() or in_vain:
        return False
    if count and (one.by_score or not enough):
        return True
    if one.elsewhere and count < one.rounds_alone() and _open_elsewhere(subject, one.peers):
        return True
    findings = _comparing(subject, one.peers, one.baseline)
    if not count:
        return _any_against(findings)
    levels = {finding.level for finding in findings if finding.where == str(subject)}
    return Level.INCONCLUSIVE in levels and Level.FAIL not in levels


def _open_elsewhere(subject: Subject, peers: Sequence[Subject]) -> bool:
    """Check whether launches scatter too much to compare a case with another partition.

    That one is measured in another job, so the partition's own cases stand for its cases.
    """
    there = {}
    for one in (subject, *peers):
        case = dataclasses.replace(one.case, partition=f"{one.case.partition} elsewhere")
        copy = dataclasses.replace(one, measured=dataclasses.replace(one.measured, case=case))
        there[str(copy)] = copy
    # The copies are first: of two that are as fast, the first one decides.
    members = [*there.values(), subject, *peers]
    return any(
        finding.level is Level.INCONCLUSIVE and finding.against in there
        for _, finding in engine.compared(members, None, only=subject, scored=False)
    )


def _mostly_disturbed(one: RepeatCase) -> bool:
    """Check whether most launches were disturbed, once as many were made as a case alone may have.

    Interleaved cases may have more because a hypervisor moves CPUs, not because of other work.
    """
    if len(one.launches) < one.rounds_alone():
        return False
    settings = one.subject.settings.disturbance
    busy = sum(bool(disturbed(launch.loads, settings)) for launch in one.launches)
    return 2 * busy > len(one.launches)


def _fails_by_counters(subject: Subject) -> bool:
    """Check whether a case fails by its nodes' counters, which more launches do not change."""
    return any(finding.level is Level.FAIL for finding in engine.counted(subject))


def failed(one: RepeatCase, job: Job, *, ended: bool = False) -> bool:
    """Check whether a case failed, whatever more launches show; ``ended``: none come."""
    subject = one.repeated
    most = 0 if ended else one.rounds()
    if confirmations.failed(subject, one.flags(), one.again, most):
        return True
    repeats = sum(launch.further for launch in subject.measured.launches)
    # More launches may define an undefined value.
    return repeats >= subject.settings.confirm.launches and any(
        finding.level is Level.FAIL and finding.own_level is Level.FAIL
        for _, finding in _of_whole(one, job)
    )


def _of_whole(one: RepeatCase, job: Job) -> list[tuple[str, Finding]]:
    """Return the findings by all launches of whole curves, each with its reference's name or ''."""
    subject = one.repeated
    findings = [("", finding) for finding in engine.rates(subject, job)]
    findings += engine.references(subject, one.limits).items()
    return [(name, engine.rule(subject, finding)) for name, finding in findings]


def _any_against(findings: Iterable[Finding]) -> bool:
    return any(finding.level in AGAINST for finding in findings)


def _comparing(
    subject: Subject, peers: Sequence[Subject], baseline: ScoreBaseline | None
) -> list[Finding]:
    """Return the findings of envelope, floor and score with the case on either side."""
    label, members = str(subject), [subject, *peers]
    compared = engine.compared(members, baseline, scored=baseline is not None)
    return [finding for _, finding in compared if label in (finding.where, finding.against)]


def compared(everyone: Sequence[RepeatCase], baseline: ScoreBaseline | None) -> list[RepeatCase]:
    """Return the cases of a job that comparing its environments leaves undecided.

    Flagged cases are interleaved with the environments that they are flagged against. Each comes
    with the cases that it is compared with. A case that failed by itself needs nothing.
    ``baseline``: the configuration that scores are relative to.
    """
    by_key = {one.key: one.subject for one in everyone}
    red = {
        str(one.subject)
        for one in everyone
        if _fails_by_counters(one.subject) or failed(one, by_key, ended=True)
    }
    sized = (one for one in by_key.values() if one.measured.curve.sizes != (0,))
    groups = grouped((engine.group(one.case), one) for one in sized)
    found = []
    for one in everyone:
        members = groups.get(engine.group(one.case), [])
        peers = tuple(member for member in members if member.case.key() != one.key)
        paired = []
        for peer in peers if str(one.subject) not in red else ():
            # Envelope and floor of the two alone.
            pair = [one.subject, peer]
            against = engine.compared(pair, None, only=one.subject, scored=False)
            if _any_against(finding for _, finding in against):
                paired.append(peer.case.environment)
        by_score = bool(peers) and _any_against(
            finding
            for finding in _comparing(one.subject, peers, baseline)
            if finding.criterion in RELATIVE and finding.where not in red
        )
        judged = bool(members) and str(one.subject) not in red
        elsewhere = judged and _open_elsewhere(one.subject, peers)
        if paired or by_score or elsewhere:
            beside = dataclasses.replace(one, peers=peers, paired=tuple(sorted(paired)))
            beside = dataclasses.replace(beside, baseline=baseline, by_score=by_score)
            found.append(dataclasses.replace(beside, elsewhere=elsewhere))
    return found


def netpipe_sweeps(
    findings: Sequence[Finding],
    settings: ConfirmSettings,
    closer: Sequence[Sequence[int]] = (),
) -> tuple[SizeSweep, ...]:
    """The calls of NetPIPE that measure what several flags of one case need, and closer sizes.

    NetPIPE takes no list of sizes. From a power of two on, with a perturbation of 1, it goes
    through its usual sizes and both neighbours of each; a size that this leaves out, as it does
    below 8 bytes, has a call of its own. ``closer``: the sizes of each region that is measured
    closer, a call without perturbation for each, and one for each size that this leaves out.
    """
    needs = [needed_sizes(finding, settings) for finding in findings]
    sweeps: list[SizeSweep] = []
    if needs:
        first = min(window[0] for window, _ in needs)
        last = max(window[-1] for window, _ in needs)
        sweeps.append(SizeSweep(_doubled(first), last, 1))
    for sizes in closer:
        sweep = SizeSweep(_doubled(min(sizes)), max(sizes), 0)
        # A step is named by where its sweep begins.
        if sweep.lower not in {one.lower for one in sweeps}:
            sweeps.append(sweep)
    covered = {size for sweep in sweeps for size in sweep.sizes()}
    alone = {size for sizes in closer for size in sizes} - covered
    for finding, (window, needed) in zip(findings, needs, strict=True):
        alone |= needed - covered
        wanted = min(settings.sizes, len(window))
        for size in dense_sizes(finding, settings):
            if len([s for s in covered | alone if s in window]) >= wanted:
                break
            alone |= {size} - covered
    return (*sweeps, *(SizeSweep(size, size, 0) for size in sorted(alone)))


def _doubled(size: int) -> int:
    """The largest power of two up to a size."""
    return 1 << (max(size, 1).bit_length() - 1)


def read_again(
    folder: Path,
    case: Case,
    parts: Sequence[tuple[str, tuple[int, ...]]],
    launches: Iterable[int],
    *,
    jobid: str,
) -> tuple[Launch, ...]:
    """Read what a job measured again of a case.

    ``parts``: the subjects of the steps that make one launch together, each with its sizes;
    where two have a size, the first one counts. ``launches``: their numbers. ``folder``: of the
    job ``jobid``; one that does not say which nodes it had has measured nothing.
    """
    found: list[Launch] = []
    try:
        node_facts.nodes_of_job(folder, jobid)
        job = JobFolder(folder)
    except NetproofError as error:
        return (Launch(1, 0, 0.0, 0.0, (), (), said=str(error), steps=0),)
    for number in launches:
        names = {f"{subject}.{number}": sizes for subject, sizes in parts}
        one = Launch(
            *(number, 0, 0.0, 0.0, (), ()),
            crashes=tuple(crash for name in names for crash in job.crashes(name)),
            steps=sum(name in job.recorded for name in names),
        )
        try:
            several = [job.launch(name, case, sizes) for name, sizes in names.items()]
            curves = (_merged([step.curve for step in several]),)
            loads = max((step.loads for step in several), key=others_share)
            found.append(dataclasses.replace(one, curves=curves, loads=loads))
        except (NetproofError, OSError) as error:
            found.append(dataclasses.replace(one, said=str(error)))
    return tuple(found)


def _merged(curves: Sequence[Curve]) -> Curve:
    """All points of the curves, each as the first curve has it that has its size."""
    first = {size: (curve, at) for curve in reversed(curves) for at, size in enumerate(curve.sizes)}
    points = [first[size] for size in sorted(first)]
    several = [
        [(values := getattr(curve, name)) and values[at] for curve, at in points]
        for name in ("time_us", "bandwidth_mb_s", "time_min_us", "time_avg_us")
    ]
    times, *others = (None if None in values else tuple(values) for values in several)
    return Curve(tuple(sorted(first)), times or (), *others)
