"""What the criteria say of measured cases: along each curve, and across configurations.

The same functions judge inside a run and over a stored session. ``along`` needs one case, and
for the loss of MPI its twin over TCP; ``across`` needs every configuration that ran a function.
``rule`` turns a finding, and what measuring again said of it, into what the verdict makes of it.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from netproof import criteria
from netproof.benchmarks.catalogue import imb_function, messages_on_link
from netproof.criteria import Bounds, Confirmation, ConfirmSettings, Finding, Level
from netproof.criteria.interface import CaseCurves
from netproof.criteria.registry import BY_FINDING, CONFIRMED_BY_MEASURING, CRITERIA
from netproof.criteria.settings import Settings
from netproof.intake.loading import expression
from netproof.measurement.case import Case
from netproof.measurement.disturbance import disturbed, others_share
from netproof.measurement.links import Crossing, Link
from netproof.session.measured import Crash, Measured
from netproof.session.reference_findings import CRITERION
from netproof.site.site import ScoreBaseline
from netproof.verdict import limits
from netproof.verdict.limits import Limits

FLAGS = (Level.WARN, Level.FAIL)


@dataclass(frozen=True, eq=False)
class Subject:
    """A complete case with what its site says of it.

    ``switch``: its name; ``settings``: of the criteria; ``known``: flaws of the environment, from
    an expression for whole cases as ``what`` has them to the reason; ``measured_on``: the day, of
    a case that another session measured; ``link``: of each of its nodes, None where it is not
    known. Compared by identity.
    """

    measured: Measured
    switch: str
    settings: Settings
    known: Mapping[str, str]
    measured_on: str = ""
    link: Link | None = None

    @classmethod
    def of_extras(
        cls,
        measured: Measured,
        extras: Mapping[str, Any],
        known: Mapping[str, str],
        measured_on: str = "",
    ) -> Subject:
        """A case with what a report keeps of its partition, ``extras``."""
        settings = Settings.of_site(extras.get("criteria", {}), extras["line_rate_from_bytes"])
        link = Link(extras["link_mbit_s"], extras["mtu"])
        return cls(measured, extras["switch"], settings, known, measured_on, link)

    @property
    def case(self) -> Case:
        """The case that was measured."""
        return self.measured.case

    def __str__(self) -> str:
        """The case and the switch, as they stand at the head of every sentence."""
        day = f", of {self.measured_on}" if self.measured_on else ""
        return f"{self.case} (switch {self.switch}{day})"

    def known_flaw(self) -> str | None:
        """The reason why flags of this case are expected, None where they are not."""
        what = self.case.what()
        return next(
            (why for text, why in self.known.items() if expression(text).fullmatch(what)), None
        )

    def crossing(self) -> Crossing | None:
        """What its messages cross: None inside a node, and where its link is not known.

        An MPI that does not go over TCP has the same link, with fewer bytes of headers.
        """
        case = self.case
        if self.link is None or case.path == "inside":
            return None
        if case.benchmark != "imb":
            return Crossing(self.link, 1, 1)
        function = imb_function(case.function)
        least, most = messages_on_link(function, case.ranks, case.ranks_per_node)
        return Crossing(self.link, least, most)

    def confirm_settings(self) -> ConfirmSettings:
        """How its flagged sizes are measured again; reductions go by elements of 4 bytes."""
        most = max(self.measured.curve.sizes)
        settings = dataclasses.replace(self.settings.confirm, most_bytes=max(most, 8))
        if self.case.benchmark != "imb":
            return settings
        least = imb_function(self.case.function).least_bytes or 1
        return dataclasses.replace(settings, element_bytes=least)


@dataclass(frozen=True)
class Ruling:
    """What the verdict makes of one finding.

    ``level``: fail makes the case red, warn orange; shown and pass leave it as it is. ``why``:
    the sentence to print. ``others``: the sizes in bytes at which the like was found and that
    have no ruling of their own.
    """

    finding: Finding
    level: Level
    why: str
    confirmation: Confirmation | None = None
    others: tuple[int, ...] = ()

    def sizes(self) -> tuple[int, ...]:
        """All sizes in bytes that it speaks of, increasing."""
        own = () if self.finding.size is None else (self.finding.size,)
        return tuple(sorted({*own, *self.others}))


def along(subject: Subject, tcp: Subject | None = None) -> tuple[Finding, ...]:
    """What the criteria along a curve find, 3 to 6, 8, 9 and 11 of docs/criteria.md, and crashes.

    ``tcp``: for NetPIPE over MPI, the case over TCP of the same job, path and direction; None
    where it was not complete. A function without message sizes has no curve to follow, and a
    path inside a node no line rate.
    """
    return (*smoothness(subject), *rates(subject, tcp))


def smoothness(subject: Subject) -> tuple[Finding, ...]:
    """What flags single sizes of a curve: 3 to 6 of docs/criteria.md, over its first launches.

    What it flags is measured again around those sizes, so later launches of the whole curve
    have no part in it.
    """
    case = dataclasses.replace(_curves(subject), first=subject.measured.first().curve)
    return _judged(case, subject, of_launches=False)


def rates(subject: Subject, tcp: Subject | None = None) -> tuple[Finding, ...]:
    """What is judged of a case as a whole, by its intervals: 8, 9 and 11 of docs/criteria.md.

    ``tcp`` as ``along`` has it. Disturbed launches have no part in it where enough others are
    there; else what fails is inconclusive.
    """
    calm, calm_tcp = undisturbed(subject), None if tcp is None else undisturbed(tcp)
    findings = _rates(calm, calm_tcp)
    noise = (*disturbances(subject), *(() if tcp is None else disturbances(tcp)))
    return tuple(without_noise(finding, noise) for finding in findings)


def undisturbed(subject: Subject) -> Subject:
    """The case of its undisturbed launches, if it has enough of them; else as it is."""
    launches, settings = subject.measured.launches, subject.settings.disturbance
    calm = [one for one in launches if not disturbed(one.loads, settings)]
    if len(calm) == len(launches) or len(calm) < subject.settings.confirm.launches:
        return subject
    return dataclasses.replace(subject, measured=subject.measured.with_launches(calm))


def never_calm(subject: Subject) -> bool:
    """Whether something else ran on the nodes in every one of its launches."""
    settings = subject.settings.disturbance
    return all(disturbed(one.loads, settings) for one in subject.measured.launches)


def disturbances(subject: Subject) -> tuple[str, ...]:
    """What else the nodes did in the launches that ``undisturbed`` had to keep, of the worst."""
    settings = subject.settings.disturbance
    kept = [one.loads for one in undisturbed(subject).measured.launches]
    several = [loads for loads in kept if disturbed(loads, settings)]
    return disturbed(max(several, key=others_share), settings) if several else ()


def without_noise(finding: Finding, noise: Sequence[str]) -> Finding:
    """A finding that rests on disturbed launches: what fails by them has not been shown to."""
    if not noise or finding.level not in (Level.FAIL, Level.INCONCLUSIVE):
        return finding
    why = f"{finding.why}; the machine was disturbed: {'; '.join(noise)}"
    return dataclasses.replace(finding, level=Level.INCONCLUSIVE, why=why)


def references(subject: Subject, bounds: Mapping[str, Limits]) -> dict[str, Finding]:
    """A finding for each variable that has a reference, with disturbed launches as in ``rates``."""
    findings = limits.judge(undisturbed(subject).measured, bounds, str(subject))
    noise = disturbances(subject)
    found = {}
    for name, finding in findings.items():
        if noise and finding.level is Level.UNDEFINED:
            # What noise bent may be a line without it.
            finding = dataclasses.replace(finding, level=Level.INCONCLUSIVE)
        found[name] = without_noise(finding, noise)
    return found


def _rates(subject: Subject, tcp: Subject | None) -> tuple[Finding, ...]:
    case = dataclasses.replace(_curves(subject), tcp=None if tcp is None else _curves(tcp))
    findings = _judged(case, subject, of_launches=True)
    crashes = subject.measured.crashes
    if not crashes:
        return findings
    why = f"{subject}: {'; '.join(map(str, crashes))}"
    return (*findings, Finding("crashes", Level.WARN, str(subject), why, value=len(crashes)))


def _judged(case: CaseCurves, subject: Subject, *, of_launches: bool) -> tuple[Finding, ...]:
    """What the criteria on one case find, those of all launches or those of the first ones."""
    return tuple(
        finding
        for criterion in CRITERIA
        if criterion.judge is not None and criterion.of_launches is of_launches
        for finding in criterion.judge(case, subject.settings)
    )


def _curves(subject: Subject) -> CaseCurves:
    """What the criteria may look at of a case, all its launches taken for the first ones."""
    measured, case = subject.measured, subject.case
    seconds, used = 0.0, defaultdict(float)
    for launch in measured.launches:
        seconds += max(use.wall_s for use in launch.ranks)
        for use in launch.ranks:
            used[use.node] += use.cpu_s
    return CaseCurves(
        str(subject),
        measured.curve,
        measured.curve,
        tuple(launch.curve for launch in measured.launches),
        measured.landmarks,
        measured.line_rate_mb_s,
        inside=case.path == "inside",
        over_tcp=(case.benchmark, case.function) == ("netpipe", "mpi"),
        cpu_seconds=used,
        seconds=seconds,
    )


def along_all(subjects: Sequence[Subject]) -> dict[Subject, tuple[Finding, ...]]:
    """What ``along`` finds of each case, those over TCP being the twins of those over MPI."""
    by_key = {subject.case.key(): subject for subject in subjects}
    return {
        subject: along(subject, by_key.get(other_protocol(subject.case))) for subject in subjects
    }


@dataclass(frozen=True)
class LaunchCount:
    """Launches of a configuration's complete cases, and how many of them crashed.

    ``launches``: with those that crashed, and those around flagged sizes; ``finding``: of their
    share, see ``criteria.crash_share``.
    """

    partition: str
    environment: str
    launches: int
    crashed: int
    finding: Finding


def launched(
    subjects: Iterable[Subject], around: Mapping[tuple, tuple[int, tuple[Crash, ...]]]
) -> tuple[LaunchCount, ...]:
    """For each configuration of ``subjects``, in their order, how many launches crashed.

    ``around``: by the case's key, as ``again.starts`` has them, those around flagged sizes.
    """
    by_place: dict[tuple[str, str], list[Subject]] = defaultdict(list)
    for subject in subjects:
        by_place[subject.case.partition, subject.case.environment].append(subject)
    found = []
    for (partition, environment), several in by_place.items():
        again = [around[key] for one in several if (key := one.case.key()) in around]
        crashes = [crash for one in several for crash in one.measured.crashes]
        count = len(crashes) + sum(len(one.measured.launches) for one in several)
        count += sum(made for made, _ in again)
        crashes += [crash for _, these in again for crash in these]
        crashed = len(crashes)
        settings, where = several[0].settings.crash, f"{partition} {environment}"
        finding = criteria.crash_share(crashed, count, where=where, settings=settings)
        words = " | ".join(dict.fromkeys(crash.said for crash in crashes))
        if finding.level in FLAGS:
            finding = dataclasses.replace(finding, why=f"{finding.why}: {words}")
        found.append(LaunchCount(partition, environment, count, crashed, finding))
    return tuple(found)


def other_protocol(case: Case) -> tuple:
    """The key of the case over TCP that a NetPIPE case over MPI is held against."""
    return dataclasses.replace(case, function="tcp").key()


def flagged(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Those findings whose sizes are to be measured again."""
    return tuple(
        finding
        for finding in findings
        if finding.criterion in CONFIRMED_BY_MEASURING and finding.level in FLAGS
    )


def dense_sizes(subject: Subject, findings: Sequence[Finding]) -> tuple[int, ...]:
    """The sizes in bytes to measure again for several flags of one case, increasing."""
    settings = subject.confirm_settings()
    sizes = {size for finding in findings for size in criteria.dense_sizes(finding, settings)}
    return tuple(sorted(sizes))


def bounds_of(criterion: str, settings: Settings, *, inside: bool = False) -> Bounds:
    """The bounds that a finding of that criterion was held against; none that assert nothing."""
    key = BY_FINDING[criterion].findings[criterion]
    if key is None:
        return Bounds()
    if inside and hasattr(settings, f"{key}_inside"):
        key = f"{key}_inside"
    return getattr(settings, key)


def rule(subject: Subject, finding: Finding, confirmation: Confirmation | None) -> Ruling:
    """What a finding means once it is known whether measuring again showed it too.

    A flag that was to be measured again and was not counts as it stands: it is not forgiven.
    What could not be judged fails where a bound was to be held, but for the share of the line
    rate: that is shown with the reason, and a reference that asks for it fails. A flaw that the
    site knows of is shown with the site's reason, unless it is an error of measurement.
    """
    ruling = _rule(subject, finding, confirmation)
    flaw = subject.known_flaw()
    excused = ruling.level in FLAGS or ruling.level is Level.INCONCLUSIVE
    if flaw is None or not excused or finding.criterion == "line rate":
        return ruling
    if finding.level is Level.UNDEFINED:
        return ruling
    why = f"{ruling.why}; known: {flaw}"
    return dataclasses.replace(ruling, level=Level.SHOWN, why=why)


def _rule(subject: Subject, finding: Finding, confirmation: Confirmation | None) -> Ruling:
    if finding.level is Level.UNDEFINED:
        if finding.criterion == CRITERION:
            return Ruling(finding, Level.FAIL, finding.why)
        bounds = bounds_of(
            finding.criterion, subject.settings, inside=subject.case.path == "inside"
        )
        asserted = bounds.warn is not None or bounds.fail is not None
        if finding.criterion == "line rate":
            # The top of a healthy network's curve may be no line, where a library changes its
            # protocol; whoever needs the share asks for it by a reference.
            asserted = False
        return Ruling(finding, Level.FAIL if asserted else Level.SHOWN, finding.why)
    if finding not in flagged([finding]):
        return Ruling(finding, finding.level, finding.why)
    if confirmation is None:
        return Ruling(finding, finding.level, f"{finding.why}; it was not measured again")
    if confirmation.level is Level.UNDEFINED:
        return Ruling(finding, finding.level, f"{finding.why}; {confirmation.why}", confirmation)
    if confirmation.level is Level.INCONCLUSIVE:
        level = Level.INCONCLUSIVE if finding.level is Level.FAIL else Level.SHOWN
        why = f"{finding.why}; {_without(confirmation.why, finding.where)}"
        return Ruling(finding, level, why, confirmation)
    why = f"{finding.why}; {_without(confirmation.why, finding.where)}"
    # Closer steps may show worse than what was flagged; that is not what was to be confirmed.
    milder = Level.WARN if Level.WARN in (finding.level, confirmation.level) else finding.level
    level = milder if confirmation.confirmed else Level.SHOWN
    return Ruling(finding, level, why, confirmation)


def _without(sentence: str, where: str) -> str:
    return sentence.removeprefix(f"{where}: ")


def group(case: Case) -> tuple:
    """What configurations have in common whose curves are compared: function, ranks, path."""
    return (case.benchmark, case.function, case.ranks, case.path, case.direction)


def across(
    subjects: Sequence[Subject], baseline: ScoreBaseline | None
) -> dict[tuple, tuple[Ruling, ...]]:
    """What the criteria across configurations make of each case, by its key: 1 and 2.

    ``baseline``: None where it is no part of what was to run; then there is no score. A lone
    configuration has no envelope: that is undefined, and red only if another one was owed and
    did not run, which is for the matrix to tell.
    """
    by_group: dict[tuple, list[Subject]] = defaultdict(list)
    for subject in subjects:
        if subject.measured.curve.sizes != (0,):
            by_group[group(subject.case)].append(subject)
    rulings: dict[tuple, tuple[Ruling, ...]] = {}
    for members in by_group.values():
        for subject, found in envelopes(members).items():
            red = [
                ruling.finding.size
                for ruling in found
                if ruling.level is Level.FAIL and ruling.finding.size is not None
            ]
            score = _score(subject, members, baseline, red)
            rulings[subject.case.key()] = (*_folded(found), score)
    return rulings


def envelopes(members: Sequence[Subject]) -> dict[Subject, list[Ruling]]:
    """Of cases of one group, the rulings on each size that the envelope flags."""
    calm = {str(member): undisturbed(member).measured for member in members}
    noise = {str(member): disturbances(member) for member in members}
    curves = {label: measured.curve for label, measured in calm.items()}
    launches = {
        label: [launch.curve for launch in measured.launches] for label, measured in calm.items()
    }
    crossings = {
        str(member): crossing for member in members if (crossing := member.crossing()) is not None
    }
    # Partitions may have bounds of their own; mostly they have the same.
    found = {
        settings: criteria.above_envelope(curves, settings, launches=launches, crossings=crossings)
        for settings in {member.settings.envelope for member in members}
    }

    def ruled(member: Subject, finding: Finding) -> Ruling:
        if len(members) == 1 and finding.level is Level.UNDEFINED:
            return Ruling(finding, Level.SHOWN, finding.why)
        both = (*noise[finding.where], *noise.get(finding.against or "", ()))
        return rule(member, without_noise(finding, tuple(dict.fromkeys(both))), None)

    rulings: dict[Subject, list[Ruling]] = {}
    for member in members:
        rulings[member] = [
            ruled(member, finding)
            for finding in found[member.settings.envelope]
            if finding.where == str(member)
        ]
    return rulings


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
        sizes = ", ".join(str(ruling.finding.size) for ruling in several)
        more = f"; so it is at {len(several)} sizes: {sizes} bytes" if len(several) > 1 else ""
        folded.append(dataclasses.replace(worst, why=worst.why + more, others=others))
    return folded


def _score(
    subject: Subject, members: Sequence[Subject], baseline: ScoreBaseline | None, red: Sequence[int]
) -> Ruling:
    settings, where = subject.settings.score, str(subject)
    if baseline is None:
        finding = Finding(
            "score",
            Level.UNDEFINED,
            where,
            f"{where}: score undefined: the baseline is no part of this run",
        )
        return rule(subject, finding, None)
    of_baseline = [
        member
        for member in members
        if (member.case.partition, member.case.environment)
        == (baseline.partition, baseline.environment)
    ]
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
            score, why=f"{score.why}; the machine was disturbed: {'; '.join(noise)}"
        )
    return dataclasses.replace(told, disturbed=noise)


def _baseline_name(subject: Subject) -> str:
    day = f" of {subject.measured_on}" if subject.measured_on else ""
    return f"{subject.case}{day}"
