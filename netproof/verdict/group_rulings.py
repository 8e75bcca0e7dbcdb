"""Findings across configurations: envelope, score, floor, and what has to agree."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from netproof import criteria
from netproof.benchmarks import registry
from netproof.criteria import Bounds, Finding, Level
from netproof.criteria.findings import at_sizes
from netproof.measurement.case import Case
from netproof.measurement.curve import Curve
from netproof.measurement.disturbance import disturbed
from netproof.measurement.interval import FEWEST_RANKED
from netproof.measurement.pace import Pace, unlike
from netproof.site.partition import ScoreBaseline
from netproof.verdict.case_rulings import companion, rule
from netproof.verdict.subject import Subject, disturbances, undisturbed, without_noise

MOST_REASONS = 2
"""Reasons in a sentence on launches that do not count."""


NOT_TOGETHER = "they were not interleaved"


@dataclass(frozen=True)
class InterleavedLaunch:
    """A launch of one of two configurations.

    ``paces``: how far its node's CPUs were apart in both halves, empty where the site does not ask;
    ``noise``: what else the nodes did meanwhile.
    """

    curve: Curve
    paces: tuple[Pace, ...] = ()
    noise: tuple[str, ...] = ()


@dataclass(frozen=True)
class Pair:
    """A launch of each of two configurations; ``why`` they cannot be compared, or empty."""

    own: Curve
    other: Curve
    why: tuple[str, ...] = ()


Pairs = tuple[tuple[tuple[Curve, Curve], ...], str]
"""Launches that compare two configurations, and why they show no failure, or empty."""


def pairs_needed(subject: Subject) -> int:
    """Return how many pairs a failure takes.

    Where a machine has two paces, two or three ratios can agree by chance and lie far off. From six
    on an interval holds for any distribution. A site that allows fewer launches has fewer.
    """
    confirm = subject.settings.confirm
    apart = sum(not launch.peers for launch in subject.measured.launches)
    possible = max(confirm.most_launches - apart, confirm.launches)
    return min(max(confirm.launches, FEWEST_RANKED), possible)


def pairs_with(subject: Subject, environment: str) -> tuple[Pair, ...]:
    """Return a case's launches with those in ``environment`` that were interleaved with them."""
    settings, rounds = subject.settings.disturbance, []
    for launch in subject.measured.launches:
        noise = disturbed(launch.loads, settings)
        for peer in launch.peers:
            if peer.environment == environment:
                sides = ((subject.case.environment, launch.curve), (environment, peer.curve))
                rounds.append(
                    [
                        InterleavedLaunch(
                            curve,
                            tuple(pace for pace in launch.paces if pace.environment == name),
                            noise,
                        )
                        for name, curve in sides
                    ]
                )
    return paired(rounds, settings.pace)


def paired(rounds: Sequence[Sequence[InterleavedLaunch]], most: float) -> tuple[Pair, ...]:
    """Return one pair per round, first those that count; each round has a launch of both.

    A launch is paired with that of its round, since both had one pace of the machine. If the CPUs
    were moved in between, and their distance is known, it is paired with the nearest launch with
    the same distance. ``most``: as in ``unlike``.
    """
    own, others = list(range(len(rounds))), list(range(len(rounds)))
    found: list[tuple[int, int]] = []
    for apart in range(len(rounds)):
        for number in tuple(own):
            for other in dict.fromkeys((number - apart, number + apart)):
                if other in others and not _why(rounds, number, other, most):
                    found.append((number, other))
                    own.remove(number)
                    others.remove(other)
                    break
    pairs = [Pair(rounds[one][0].curve, rounds[other][1].curve) for one, other in sorted(found)]
    for one, other in zip(own, others, strict=True):
        why = _why(rounds, one, one, most) or _why(rounds, one, other, most)
        pairs.append(Pair(rounds[one][0].curve, rounds[other][1].curve, why))
    return tuple(pairs)


def _why(
    rounds: Sequence[Sequence[InterleavedLaunch]], number: int, other: int, most: float
) -> tuple[str, ...]:
    """Return why launches of two rounds, or of the same, do not count as a pair."""
    one, two = rounds[number][0], rounds[other][1]
    reason = unlike(one.paces, two.paces, most)
    if not reason and number != other and not (one.paces and two.paces):
        reason = NOT_TOGETHER
    return (*dict.fromkeys((*one.noise, *two.noise)), *([reason] if reason else []))


def chosen(pairs: Sequence[Pair], needed: int) -> Pairs:
    """Choose the undisturbed pairs if they are ``needed`` or more; else all of them."""
    good = [pair for pair in pairs if not pair.why]
    if len(good) >= needed:
        return tuple((pair.own, pair.other) for pair in good), ""
    reasons = list(dict.fromkeys(text for pair in pairs for text in pair.why))
    shown = "; ".join(reasons[:MOST_REASONS])
    more = f", and {len(reasons) - MOST_REASONS} more reasons" if reasons[MOST_REASONS:] else ""
    short = (
        f"{len(good)} of {len(pairs)} pairs were undisturbed, and a failure takes {needed}"
        f"{': ' if shown else ''}{shown}{more}"
    )
    return tuple((pair.own, pair.other) for pair in pairs), short


def group(case: Case) -> tuple:
    """Return what compared configurations have in common: function, ranks, path, direction."""
    return (case.benchmark, case.function, case.ranks, case.path, case.direction)


def across(
    subjects: Sequence[Subject], baseline: ScoreBaseline | None
) -> dict[tuple, tuple[Finding, ...]]:
    """Return the findings across configurations on each case, by its key: criteria 1, 2, 18 to 20.

    ``baseline``: None where it is no part of what was to run; then there is no score. A lone
    configuration has no envelope: that is undefined, and red only if another one was expected and
    did not run, which is for the matrix to tell.
    """
    by_group: dict[tuple, list[Subject]] = defaultdict(list)
    for subject in subjects:
        if subject.measured.curve.sizes != (0,):
            by_group[group(subject.case)].append(subject)
    several: dict[tuple, tuple[Finding, ...]] = {}
    for members in by_group.values():
        floor = floors(members)
        of_baseline = [one for one in members if baseline is not None and _is(one, baseline)]
        for subject, found in envelopes(members).items():
            red = [one.size for one in found if one.level is Level.FAIL and one.size is not None]
            score = _score(subject, of_baseline, baseline, red)
            of_floor = [floor[subject]] if subject in floor else []
            several[subject.case.key()] = (*_folded(found), *of_floor, score)
    for subject, finding in (*agreements(subjects), *over_ranks(subjects)):
        key = subject.case.key()
        several[key] = (*several.get(key, ()), rule(subject, finding))
    return several


def agreements(subjects: Iterable[Subject]) -> Iterator[tuple[Subject, Finding]]:
    """Yield whether cases that send one message there and back agree within a configuration."""
    by_configuration: dict[tuple, list[Subject]] = defaultdict(list)
    for subject in subjects:
        one_way = (subject.case.path, subject.case.direction) == ("between", "oneway")
        if registry.function_of(subject.case).ping_pong and one_way:
            by_configuration[_configuration(subject)].append(subject)
    for several in by_configuration.values():
        sides = {str(one): companion(undisturbed(one)) for one in several}
        for subject in several:
            label = str(subject)
            finding = criteria.agreement(
                sides[label],
                {other: side for other, side in sides.items() if other != label},
                where=label,
                settings=subject.settings.agreement,
            )
            if finding is not None:
                both = [one for one in several if str(one) in (label, finding.against)]
                yield subject, without_noise(finding, _disturbances(both))


def _configuration(subject: Subject) -> tuple:
    case = subject.case
    return case.system, case.partition, case.environment, subject.measured_on


def _disturbances(several: Iterable[Subject]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text for one in several for text in disturbances(one)))


def over_ranks(subjects: Iterable[Subject]) -> Iterator[tuple[Subject, Finding]]:
    """Yield how collectives grow from the next fewer ranks, and what takes longer on fewer."""
    by_function: dict[tuple, list[Subject]] = defaultdict(list)
    for subject in subjects:
        case = subject.case
        if registry.function_of(case).collective and subject.measured.curve.sizes != (0,):
            key = (*_configuration(subject), case.benchmark, case.function)
            by_function[key].append(subject)
    for several in by_function.values():
        for fewer, more in pairwise(sorted(several, key=lambda one: one.case.ranks)):
            few, many = companion(undisturbed(fewer)), companion(undisturbed(more))
            noise = _disturbances((fewer, more))
            growth = criteria.growth(
                many,
                few,
                where=str(more),
                against=str(fewer),
                explained=_explained(fewer.case, more.case),
                settings=more.settings.growth,
            )
            yield more, without_noise(growth, noise)
            monotony = criteria.monotony(
                few,
                many,
                where=str(fewer),
                against=str(more),
                settings=fewer.settings.growth,
            )
            yield fewer, without_noise(monotony, noise)


def _explained(fewer: Case, more: Case) -> float:
    """Return how many times a collective's work grows, on a link or of a rank to all others."""
    function = registry.function_of(more)
    on_link = [
        function.messages_on_link(case.ranks, case.ranks_per_node)[1] for case in (fewer, more)
    ]
    return max(1.0, on_link[1] / on_link[0], (more.ranks - 1) / (fewer.ranks - 1))


class _Members:
    """Cases of one group: undisturbed launches, disturbances, and pairs of interleaved launches."""

    def __init__(self, members: Sequence[Subject]) -> None:
        self.undisturbed = {str(one): undisturbed(one).measured for one in members}
        self.launches = {
            label: [launch.curve for launch in measured.launches]
            for label, measured in self.undisturbed.items()
        }
        self.pairs = _pairs(members)
        self._noise = {str(one): disturbances(one) for one in members}

    def weighed(self, finding: Finding) -> Finding:
        """Return a finding as far as its launches allow: disturbed ones show no failure."""
        sides = (finding.where, finding.against or "")
        if sides not in self.pairs:
            both = (text for label in sides for text in self._noise.get(label, ()))
            return without_noise(finding, tuple(dict.fromkeys(both)))
        _, short = self.pairs[sides]
        if not short or finding.level not in (Level.FAIL, Level.INCONCLUSIVE):
            return finding
        reason = f"{finding.reason}; {short}"
        return dataclasses.replace(finding, level=Level.INCONCLUSIVE, reason=reason)


def envelopes(
    members: Sequence[Subject], of: Subject | None = None
) -> dict[Subject, list[Finding]]:
    """Return the findings on each size that the envelope of one group's cases flags.

    ``of``: the one of them that is asked for, None for all.
    """
    known = _Members(members)
    crossings = {
        str(member): crossing for member in members if (crossing := member.crossing()) is not None
    }
    # Partitions may have bounds of their own; mostly they have the same.
    found: dict[Bounds, dict[str, list[Finding]]] = {}
    ruled: dict[Subject, list[Finding]] = {}
    for member in members if of is None else [of]:
        settings = member.settings.envelope
        if settings not in found:
            found[settings] = defaultdict(list)
            for finding in criteria.above_envelope(
                {label: measured.curve for label, measured in known.undisturbed.items()},
                settings,
                launches=known.launches,
                crossings=crossings,
                pairs={sides: launches for sides, (launches, _) in known.pairs.items()},
                only=None if of is None else str(of),
            ):
                found[settings][finding.where].append(finding)
        ruled[member] = [
            one.ruled(Level.SHOWN)
            if len(members) == 1 and one.level is Level.UNDEFINED
            else rule(member, known.weighed(one))
            for one in found[settings][str(member)]
        ]
    return ruled


def floors(members: Sequence[Subject], of: Subject | None = None) -> dict[Subject, Finding]:
    """Return how cases of one group score against other environments of their partition.

    What does not go over TCP is compared with what does not either. A case without another
    environment has none. ``of`` as in ``envelopes``.
    """
    known = _Members(members)
    by_place: dict[tuple, list[Subject]] = defaultdict(list)
    for member in members:
        by_place[_place(member)].append(member)
    ruled = {}
    for member in members if of is None else [of]:
        where, settings, environment = str(member), member.settings, member.case.environment
        others = [
            str(one) for one in by_place[_place(member)] if one.case.environment != environment
        ]
        finding = criteria.floor(
            known.launches[where],
            {label: known.launches[label] for label in others},
            where=where,
            settings=settings.floor_inside if member.case.path == "inside" else settings.floor,
            pairs={
                label: known.pairs[where, label][0]
                for label in others
                if (where, label) in known.pairs
            },
            weighed=known.weighed,
        )
        if finding is not None:
            ruled[member] = rule(member, finding)
    return ruled


def _place(one: Subject) -> tuple:
    """Partition and link of a case, by which environments are compared."""
    case = one.case
    return case.system, case.partition, one.link, one.measured.line_rate_mb_s is None


def _pairs(members: Sequence[Subject]) -> dict[tuple[str, str], Pairs]:
    """Return the interleaved launches of each two cases, in both orders."""
    places = {(one.case.partition, one.case.environment): one for one in members}
    made: dict[tuple[str, str], list[Pair]] = defaultdict(list)
    needed: dict[tuple[str, str], int] = {}
    for member in members:
        peers = (peer for launch in member.measured.launches for peer in launch.peers)
        for environment in dict.fromkeys(peer.environment for peer in peers):
            other = places.get((member.case.partition, environment))
            if other is None:
                continue
            pairs = pairs_with(member, environment)
            one_way = (str(member), str(other))
            made[one_way] += pairs
            made[one_way[::-1]] += [Pair(one.other, one.own, one.why) for one in pairs]
            for sides in (one_way, one_way[::-1]):
                needed[sides] = max(needed.get(sides, 0), pairs_needed(member))
    return {sides: chosen(several, needed[sides]) for sides, several in made.items()}


def _folded(findings: Sequence[Finding]) -> list[Finding]:
    """Return one finding per level, on the size that is furthest off, naming the other sizes."""
    folded = []
    for level in dict.fromkeys(finding.level for finding in findings):
        several = [finding for finding in findings if finding.level is level]
        worst = max(several, key=lambda finding: finding.value or 0)
        others = tuple(
            finding.size for finding in several if finding is not worst and finding.size is not None
        )
        more = at_sizes(several)
        folded.append(dataclasses.replace(worst, reason=worst.reason + more, others=others))
    return folded


def _is(subject: Subject, baseline: ScoreBaseline) -> bool:
    case = subject.case
    return (case.partition, case.environment) == (baseline.partition, baseline.environment)


def _score(
    subject: Subject,
    of_baseline: Sequence[Subject],
    baseline: ScoreBaseline | None,
    red: Sequence[int],
) -> Finding:
    settings, where = subject.settings.score, str(subject)
    if baseline is None:
        why = "score undefined: the baseline is no part of this run"
        return rule(subject, Finding("score", Level.UNDEFINED, where, why))
    base = [undisturbed(member).measured for member in of_baseline]
    finding = criteria.score(
        [launch.curve for launch in undisturbed(subject).measured.launches],
        [launch.curve for measured in base for launch in measured.launches],
        where=where,
        baseline=_baseline_name(of_baseline[0]) if of_baseline else str(baseline),
        red_sizes=red,
        settings=settings,
    )
    if of_baseline:
        finding = dataclasses.replace(finding, against=str(of_baseline[0]))
    noise = _disturbances((subject, *of_baseline))
    if noise and finding.value is not None:
        # Whatever its level: the value rests on disturbed launches.
        weighed = without_noise(finding, noise)
        if weighed is finding:
            reason = f"{finding.reason}; the machine was disturbed: {'; '.join(noise)}"
            weighed = dataclasses.replace(finding, reason=reason)
        finding = dataclasses.replace(weighed, disturbed=noise)
    return rule(subject, finding)


def _baseline_name(subject: Subject) -> str:
    day = f" of {subject.measured_on}" if subject.measured_on else ""
    return f"{subject.case}{day}"
