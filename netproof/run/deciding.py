"""Decide which cases need repeat launches, alone or compared with those of other jobs."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field

from netproof.criteria import Level
from netproof.measurement.disturbance import disturbed
from netproof.run.further_cases import Done, FurtherCase
from netproof.site.partition import ScoreBaseline
from netproof.verdict import case_rulings, group_rulings, limits
from netproof.verdict.case_rulings import Job
from netproof.verdict.group_rulings import pairs_needed
from netproof.verdict.subject import Ruling, Subject, never_calm

AGAINST = (Level.FAIL, Level.INCONCLUSIVE)
"""Levels of rulings whose cases are measured again."""


@dataclass(frozen=True)
class Undecided:
    """Reasons for repeat launches by case key: of whole curves, and around flagged sizes."""

    whole: dict[tuple, tuple[str, ...]] = field(default_factory=dict)
    around: dict[tuple, tuple[str, ...]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.whole or self.around)


def undecided(several: Sequence[Done]) -> Undecided:
    """Return the undecided cases of one job.

    A quantity is decided when its interval over undisturbed launches lies within its bounds, or
    wholly outside; a repeated case needs at least as many repeat launches as confirming takes. It
    stays inconclusive if by then every launch was disturbed, or a healthy twin was too slow for a
    comparison. A case that failed by one quantity is decided as a whole. One that failed by its
    nodes' counters is too, and only its flagged sizes are repeated. Comparisons with such a case
    need nothing. Once a case of the job has failed, the others are repeated no more often than
    confirming takes: the job is red, however certain they are. In cases that have not failed,
    ``case_rulings.settled`` decides flagged sizes, and ``case_rulings.closer_settled`` places
    between sizes. A case compared with others of the job, such as TCP's or other functions', is
    repeated with them.

    To compare configurations of a partition, their launches are interleaved until their ratio is
    decided, or most were disturbed. A comparison with another partition, or by score, needs every
    round, since another job makes the other side's launches.
    """
    subjects = {done.asked.case.key(): done.subject() for done in several}
    alone = [done for done in several if not done.asked.peers]
    counted = {key for done in alone if _fails_by_counters(subjects[key := done.asked.case.key()])}
    red = counted | {done.asked.case.key() for done in alone if failed(done, subjects)}
    found = Undecided()
    for done in several:
        key = done.asked.case.key()
        subject = subjects[key]
        confirm = subject.settings.confirm
        enough = len(done.launches) >= confirm.launches
        if done.asked.peers:
            if done.asked.paired:
                enough = len(done.launches) >= pairs_needed(done.asked.subject)
            in_vain = enough and (never_calm(subject) or _mostly_disturbed(done))
            made = len(done.launches) >= done.asked.rounds()
            if not made and not in_vain:
                rulings = _comparing(subject, done.asked.peers, done.asked.baseline)
                whys = _against(rulings)
                if done.launches and (done.asked.elsewhere or not enough):
                    # The results of the other job's launches are not known here.
                    whys = (f"{len(done.launches)} further launches of {subject} are made",)
                elif done.launches:
                    own = [one for one in rulings if one.finding.where == str(subject)]
                    levels = {one.level for one in own}
                    whys = _against(own) if Level.FAIL not in levels else ()
                if whys:
                    found.whole[key] = whys
            continue
        flags = done.asked.flags()
        if key in red - counted:
            continue
        most = confirm.launches if red else done.asked.rounds()
        if flags and not case_rulings.settled(subject, flags, done.again, most):
            found.around[key] = tuple(flag.why for flag in flags)
        elif key not in red and not case_rulings.closer_settled(subject, done.again, most):
            found.around[key] = tuple(f"{subject}: {place.why}" for place in done.asked.places())
        if key in red or len(done.launches) >= most:
            continue
        if done.launches and not enough:
            found.whole[key] = (
                *found.whole.get(key, ()),
                f"{len(done.launches)} further launches of {subject} are made",
            )
            continue
        for name, ruling in _of_whole(done, subjects):
            if ruling.level not in AGAINST:
                continue
            sides = (subject, *case_rulings.rests_on(subject, ruling.finding, subjects))
            in_vain = any(map(never_calm, sides)) or (
                name == "twin_share" and limits.twin_too_slow(subject.measured)
            )
            if (enough and in_vain) or any(one.case.key() in red for one in sides):
                continue
            for one in sides:
                of_one = one.case.key()
                found.whole[of_one] = (*found.whole.get(of_one, ()), ruling.why)
    return found


def _mostly_disturbed(done: Done) -> bool:
    """Check whether most launches were disturbed, once as many were made as a case alone may have.

    Interleaved cases may have more because a hypervisor moves CPUs, not because of other work.
    """
    if len(done.launches) < done.asked.rounds_alone():
        return False
    settings = done.asked.subject.settings.disturbance
    busy = sum(bool(disturbed(one.loads, settings)) for one in done.launches)
    return 2 * busy > len(done.launches)


def _fails_by_counters(subject: Subject) -> bool:
    """Check whether a case fails by its nodes' counters, which more launches do not change."""
    return any(finding.level is Level.FAIL for finding in case_rulings.counted(subject))


def failed(done: Done, job: Job, *, ended: bool = False) -> bool:
    """Check whether a case has failed by its own job's results, whatever more launches would show.

    ``job``: the cases of the job, some for comparison; ``ended``: all its launches are made.
    """
    subject = done.subject()
    most = 0 if ended else done.asked.rounds()
    if case_rulings.failed(subject, done.asked.flags(), done.again, most):
        return True
    if case_rulings.closer_failed(subject, done.again, most):
        return True
    further = sum(launch.further for launch in subject.measured.launches)
    # More launches may define an undefined value.
    return further >= subject.settings.confirm.launches and any(
        ruling.level is Level.FAIL and ruling.finding.level is Level.FAIL
        for _, ruling in _of_whole(done, job)
    )


def _of_whole(done: Done, job: Job) -> list[tuple[str, Ruling]]:
    """Return the rulings by all launches of whole curves, each with its reference's name or ''."""
    subject = done.subject()
    findings = [("", finding) for finding in case_rulings.rates(subject, job)]
    findings += case_rulings.references(subject, done.asked.limits).items()
    return [(name, case_rulings.rule(subject, finding, None)) for name, finding in findings]


def _against(rulings: Sequence[Ruling]) -> tuple[str, ...]:
    return tuple(ruling.why for ruling in rulings if ruling.level in AGAINST)


def _comparing(
    subject: Subject, peers: Sequence[Subject], baseline: ScoreBaseline | None
) -> list[Ruling]:
    """Return the rulings of envelope, floor and score with the case on either side."""
    label, members = str(subject), [subject, *peers]
    rulings = [
        ruling for several in group_rulings.envelopes(members).values() for ruling in several
    ]
    rulings += group_rulings.floors(members).values()
    if baseline is not None:
        rulings += [
            ruling
            for several in group_rulings.across(members, baseline).values()
            for ruling in several
            if ruling.finding.criterion == "score"
        ]
    return [ruling for ruling in rulings if label in (ruling.finding.where, ruling.finding.against)]


def compared(
    everyone: Sequence[Done], own: Sequence[FurtherCase], baseline: ScoreBaseline | None
) -> list[FurtherCase]:
    """Return those of a job's ``own`` cases that comparing configurations leaves undecided.

    Flagged cases are interleaved with the environments of their partition that they are flagged
    against. Cases compared with another partition, or by a score, are repeated by their own jobs.
    Each comes with the cases of ``everyone`` that it is compared with. A case that failed by itself
    needs nothing. ``baseline``: the configuration that scores are relative to.
    """
    by_key = {done.asked.case.key(): done.asked.subject for done in everyone}
    red = {
        str(done.asked.subject)
        for done in everyone
        if _fails_by_counters(done.asked.subject) or failed(done, by_key, ended=True)
    }
    groups: dict[tuple, list[Subject]] = {}
    for subject in by_key.values():
        if subject.measured.curve.sizes != (0,):
            groups.setdefault(group_rulings.group(subject.case), []).append(subject)
    found = []
    for one in own:
        key = one.case.key()
        members = groups.get(group_rulings.group(one.case), [])
        peers = tuple(member for member in members if member.case.key() != key)
        if not peers:
            continue
        flagged = []
        if str(one.subject) not in red:
            flagged = [peer for peer in peers if _above(one.subject, peer)]
        here = [peer for peer in flagged if peer.case.partition == one.case.partition]
        against = [
            peer
            for peer in peers
            if peer.case.partition != one.case.partition
            and str(peer) not in red
            and _above(peer, one.subject)
        ]
        scores = [
            ruling
            for ruling in _comparing(one.subject, peers, baseline)
            if ruling.finding.criterion == "score"
            and ruling.level in AGAINST
            and ruling.finding.where not in red
        ]
        if flagged or against or scores:
            asked = dataclasses.replace(
                one,
                peers=peers,
                baseline=baseline,
                paired=tuple(sorted(peer.case.environment for peer in here)),
                elsewhere=len(here) < len(flagged) or bool(against or scores),
            )
            found.append(asked)
    return found


def _above(subject: Subject, peer: Subject) -> bool:
    """Check whether envelope or floor of the two alone rules against ``subject``."""
    both = [subject, peer]
    floor = group_rulings.floors(both).get(subject)
    rulings = [*group_rulings.envelopes(both)[subject], *([] if floor is None else [floor])]
    return bool(_against(rulings))
