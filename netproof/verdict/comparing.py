"""What the criteria say across configurations: envelope, score, floor, and what has to agree."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from netproof import criteria
from netproof.benchmarks import registry
from netproof.criteria import Bounds, Finding, Level
from netproof.criteria.findings import at_sizes
from netproof.measurement.case import Case
from netproof.site.partition import ScoreBaseline
from netproof.verdict.disturbing import disturbances, undisturbed, without_noise
from netproof.verdict.judgement import companion, rule
from netproof.verdict.next_to_each_other import Pair, Pairs, chosen, pairs_needed, pairs_with
from netproof.verdict.subject import Ruling, Subject


def group(case: Case) -> tuple:
    """What configurations have in common whose curves are compared: function, ranks, path."""
    return (case.benchmark, case.function, case.ranks, case.path, case.direction)


def across(
    subjects: Sequence[Subject], baseline: ScoreBaseline | None
) -> dict[tuple, tuple[Ruling, ...]]:
    """What the criteria across configurations make of each case, by its key: 1, 2 and 18 to 20.

    ``baseline``: None where it is no part of what was to run; then there is no score. A lone
    configuration has no envelope: that is undefined, and red only if another one was expected and
    did not run, which is for the matrix to tell.
    """
    by_group: dict[tuple, list[Subject]] = defaultdict(list)
    for subject in subjects:
        if subject.measured.curve.sizes != (0,):
            by_group[group(subject.case)].append(subject)
    rulings: dict[tuple, tuple[Ruling, ...]] = {}
    for members in by_group.values():
        floor = floors(members)
        of_baseline = [one for one in members if baseline is not None and _is(one, baseline)]
        for subject, found in envelopes(members).items():
            red = [
                ruling.finding.size
                for ruling in found
                if ruling.level is Level.FAIL and ruling.finding.size is not None
            ]
            score = _score(subject, of_baseline, baseline, red)
            of_floor = [floor[subject]] if subject in floor else []
            rulings[subject.case.key()] = (*_folded(found), *of_floor, score)
    for told in (agreements(subjects), growths(subjects), monotonies(subjects)):
        for subject, finding in told.items():
            key = subject.case.key()
            rulings[key] = (*rulings.get(key, ()), rule(subject, finding, None))
    return rulings


def agreements(subjects: Iterable[Subject]) -> dict[Subject, Finding]:
    """Of cases that send one message there and back, whether those of one configuration agree."""
    by_configuration: dict[tuple, list[Subject]] = defaultdict(list)
    for subject in subjects:
        case = subject.case
        where = (case.system, case.partition, case.environment, subject.measured_on)
        one_way = (case.path, case.direction) == ("between", "oneway")
        if registry.function_of(case).ping_pong and one_way:
            by_configuration[where].append(subject)
    found = {}
    for several in by_configuration.values():
        calm = {str(one): undisturbed(one) for one in several}
        sides = {label: companion(one) for label, one in calm.items()}
        for subject in several:
            label = str(subject)
            finding = criteria.agreement(
                sides[label],
                {other: side for other, side in sides.items() if other != label},
                where=label,
                settings=subject.settings.agreement,
            )
            if finding is None:
                continue
            both = [one for one in several if str(one) in (label, finding.against)]
            noise = dict.fromkeys(text for one in both for text in disturbances(one))
            found[subject] = without_noise(finding, tuple(noise))
    return found


def growths(subjects: Iterable[Subject]) -> dict[Subject, Finding]:
    """Of collectives, how each grew from the next fewer ranks of its configuration."""
    found = {}
    for fewer, subject in _by_ranks(subjects):
        finding = criteria.growth(
            companion(undisturbed(subject)),
            companion(undisturbed(fewer)),
            where=str(subject),
            against=str(fewer),
            explained=_explained(fewer.case, subject.case),
            settings=subject.settings.growth,
        )
        noise = dict.fromkeys((*disturbances(fewer), *disturbances(subject)))
        found[subject] = without_noise(finding, tuple(noise))
    return found


def monotonies(subjects: Iterable[Subject]) -> dict[Subject, Finding]:
    """Of collectives, how many times as long as on the next more ranks each took."""
    found = {}
    for subject, more in _by_ranks(subjects):
        finding = criteria.monotony(
            companion(undisturbed(subject)),
            companion(undisturbed(more)),
            where=str(subject),
            against=str(more),
            settings=subject.settings.monotony,
        )
        noise = dict.fromkeys((*disturbances(subject), *disturbances(more)))
        found[subject] = without_noise(finding, tuple(noise))
    return found


def _by_ranks(subjects: Iterable[Subject]) -> Iterator[tuple[Subject, Subject]]:
    """Each collective of a configuration with the same on the next more ranks."""
    by_function: dict[tuple, list[Subject]] = defaultdict(list)
    for subject in subjects:
        case = subject.case
        where = (case.system, case.partition, case.environment, subject.measured_on)
        if registry.function_of(case).collective and subject.measured.curve.sizes != (0,):
            by_function[(*where, case.benchmark, case.function)].append(subject)
    for several in by_function.values():
        yield from pairwise(sorted(several, key=lambda one: one.case.ranks))


def _explained(fewer: Case, more: Case) -> float:
    """By how much the work of a collective grows: on a link, or of a rank to all others."""
    function = registry.function_of(more)
    on_link = [
        function.messages_on_link(case.ranks, case.ranks_per_node)[1] for case in (fewer, more)
    ]
    return max(1.0, on_link[1] / on_link[0], (more.ranks - 1) / (fewer.ranks - 1))


def envelopes(members: Sequence[Subject], of: Subject | None = None) -> dict[Subject, list[Ruling]]:
    """Of cases of one group, the rulings on each size that the envelope flags.

    ``of``: the one of them that is asked for, None for all.
    """
    asked = members if of is None else [of]
    calm = {str(member): undisturbed(member).measured for member in members}
    noise = {str(member): disturbances(member) for member in members}
    curves = {label: measured.curve for label, measured in calm.items()}
    launches = {
        label: [launch.curve for launch in measured.launches] for label, measured in calm.items()
    }
    crossings = {
        str(member): crossing for member in members if (crossing := member.crossing()) is not None
    }
    pairs = _pairs(members)
    # Partitions may have bounds of their own; mostly they have the same.
    found = {
        settings: criteria.above_envelope(
            curves,
            settings,
            launches=launches,
            crossings=crossings,
            pairs={sides: one.launches for sides, one in pairs.items()},
            only=None if of is None else str(of),
        )
        for settings in {member.settings.envelope for member in asked}
    }

    def ruled(member: Subject, finding: Finding) -> Ruling:
        if len(members) == 1 and finding.level is Level.UNDEFINED:
            return Ruling(finding, Level.SHOWN, finding.reason)
        sides = (finding.where, finding.against or "")
        if sides in pairs:
            return rule(member, _of_pairs(finding, pairs[sides]), None)
        both = [text for side in sides for text in noise.get(side, ())]
        return rule(member, without_noise(finding, tuple(dict.fromkeys(both))), None)

    by_label: dict[Bounds, dict[str, list[Finding]]] = {}
    for settings, several in found.items():
        by_label[settings] = defaultdict(list)
        for finding in several:
            by_label[settings][finding.where].append(finding)
    return {
        member: [ruled(member, one) for one in by_label[member.settings.envelope][str(member)]]
        for member in asked
    }


def floors(members: Sequence[Subject], of: Subject | None = None) -> dict[Subject, Ruling]:
    """Of cases of one group, how each scores against the other environments of its partition.

    What does not go over TCP is compared with what does not either. A case without another
    environment has none. ``of`` as in ``envelopes``.
    """
    by_label = {str(member): member for member in members}
    calm = {label: undisturbed(member).measured.launches for label, member in by_label.items()}
    noise = {
        label: (place, disturbances(member))
        for place, (label, member) in enumerate(by_label.items())
    }
    pairs = _pairs(members)

    def weighed(finding: Finding) -> Finding:
        sides = (finding.where, finding.against or "")
        if sides in pairs:
            return _of_pairs(finding, pairs[sides])
        both = [text for _, told in sorted(noise[label] for label in sides) for text in told]
        return without_noise(finding, tuple(dict.fromkeys(both)))

    alongside: dict[tuple, list[Subject]] = defaultdict(list)
    for member in members:
        alongside[_place(member)].append(member)
    rulings = {}
    for member in members if of is None else [of]:
        where, settings, environment = str(member), member.settings, member.case.environment
        alike = [
            str(one) for one in alongside[_place(member)] if one.case.environment != environment
        ]
        finding = criteria.floor(
            [launch.curve for launch in calm[where]],
            {label: [launch.curve for launch in calm[label]] for label in alike},
            where=where,
            settings=settings.floor_inside if member.case.path == "inside" else settings.floor,
            pairs={
                label: pairs[where, label].launches for label in alike if (where, label) in pairs
            },
            weighed=weighed,
        )
        if finding is not None:
            rulings[member] = rule(member, finding, None)
    return rulings


def _place(one: Subject) -> tuple:
    """Partition and link of a case, by which environments are compared."""
    case = one.case
    return case.system, case.partition, one.link, one.measured.line_rate_mb_s is None


def _of_pairs(finding: Finding, pairs: Pairs) -> Finding:
    """A finding that rests on launches next to each other: too few of them show no failure."""
    if not pairs.short or finding.level not in (Level.FAIL, Level.INCONCLUSIVE):
        return finding
    reason = f"{finding.reason}; {pairs.short}"
    return dataclasses.replace(finding, level=Level.INCONCLUSIVE, reason=reason)


def _pairs(members: Sequence[Subject]) -> dict[tuple[str, str], Pairs]:
    """Launches of each two cases next to each other, both ways round."""
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


def _folded(rulings: Sequence[Ruling]) -> list[Ruling]:
    """One ruling a level: that on the size that is furthest off, with the other sizes named."""
    folded = []
    for level in dict.fromkeys(ruling.level for ruling in rulings):
        several = [ruling for ruling in rulings if ruling.level is level]
        worst = max(several, key=lambda ruling: ruling.finding.value or 0)
        others = tuple(
            ruling.finding.size
            for ruling in several
            if ruling is not worst and ruling.finding.size is not None
        )
        more = at_sizes([ruling.finding for ruling in several])
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
) -> Ruling:
    settings, where = subject.settings.score, str(subject)
    if baseline is None:
        finding = Finding(
            "score",
            Level.UNDEFINED,
            where,
            "score undefined: the baseline is no part of this run",
        )
        return rule(subject, finding, None)
    calm = [undisturbed(member).measured for member in of_baseline]
    finding = criteria.score(
        [launch.curve for launch in undisturbed(subject).measured.launches],
        [launch.curve for measured in calm for launch in measured.launches],
        where=where,
        baseline=_baseline_name(of_baseline[0]) if of_baseline else str(baseline),
        red_sizes=red,
        settings=settings,
    )
    if of_baseline:
        finding = dataclasses.replace(finding, against=str(of_baseline[0]))
    noise = [text for member in (subject, *of_baseline) for text in disturbances(member)]
    finding = _marked(finding, tuple(dict.fromkeys(noise)))
    return rule(subject, finding, None)


def _marked(score: Finding, noise: tuple[str, ...]) -> Finding:
    """A score that rests on disturbed launches, its own or the baseline's: it says so, always."""
    if not noise or score.value is None:
        return score
    told = without_noise(score, noise)
    if told is score:
        told = dataclasses.replace(
            score, reason=f"{score.reason}; the machine was disturbed: {'; '.join(noise)}"
        )
    return dataclasses.replace(told, disturbed=noise)


def _baseline_name(subject: Subject) -> str:
    day = f" of {subject.measured_on}" if subject.measured_on else ""
    return f"{subject.case}{day}"
