"""Findings of the criteria along each measured case's curve.

The same functions judge inside a run and over a stored session. ``along`` needs one case, and those
of the same job that it is compared with; ``comparing.across`` needs every configuration that ran a
function. ``rule`` turns a finding, with its confirmation, into a ruling of the verdict.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from netproof import criteria
from netproof.benchmarks import registry
from netproof.criteria import Bounds, Confirmation, Finding, Level
from netproof.criteria.interface import CaseCurves, Companion, CountedLaunch
from netproof.criteria.registry import BY_FINDING, CONFIRMED_BY_MEASURING, CRITERIA
from netproof.criteria.settings import Settings
from netproof.measurement.case import Case
from netproof.measurement.cpu_use import cost_in_words
from netproof.measurement.disturbance import disturbed
from netproof.measurement.payload import Payload
from netproof.session.measured import Crash, Measured, Peer
from netproof.session.reference_findings import CRITERION
from netproof.verdict import limits
from netproof.verdict.disturbing import disturbances, undisturbed, without_noise
from netproof.verdict.limits import Limits
from netproof.verdict.subject import FLAGS, Ruling, Subject

Job = Mapping[tuple, Subject]
"""The complete cases that were measured together, by their keys."""


def along(subject: Subject, job: Job | None = None) -> tuple[Finding, ...]:
    """Return the findings of the criteria on one case and on its nodes' counters, and crashes.

    ``job``: the cases that it may be compared with: for NetPIPE over MPI that over TCP, for a
    collective other functions. A function without message sizes has no curve, and an intra-node
    path no line rate.
    """
    return (*smoothness(subject), *rates(subject, job), *counted(subject))


def smoothness(subject: Subject) -> tuple[Finding, ...]:
    """Return findings on single sizes of a curve's first launches: 3 to 6 of docs/criteria.md.

    Flagged sizes are measured again, so later launches of the whole curve do not count.
    """
    case = dataclasses.replace(_curves(subject), first=subject.measured.first().curve)
    return _judged(case, subject, of_launches=False)


def rates(subject: Subject, job: Job | None = None) -> tuple[Finding, ...]:
    """Return the findings on a case as a whole, by its intervals: 8, 9, 11, 13 and 17.

    ``job``: as in ``along``. Disturbed launches do not count if enough others are left; else a
    failure is inconclusive.
    """
    alongside = companions(subject, job or {})
    others = {operation: undisturbed(other) for operation, other in alongside.items()}
    findings = _rates(undisturbed(subject), others)
    weighed = []
    for finding in findings:
        sides = (
            subject,
            *(alongside[one] for one in _rests_on(subject, finding) if one in alongside),
        )
        noise = dict.fromkeys(text for side in sides for text in disturbances(side))
        weighed.append(without_noise(finding, tuple(noise)))
    return tuple(weighed)


def companion_keys(case: Case) -> dict[tuple, str]:
    """Return the operations that criteria compare a case with, by the keys of their cases."""
    own = registry.function_of(case).operation
    wanted = {one for criterion in CRITERIA for one in criterion.others(own)}
    functions = registry.of(case).functions if wanted else ()
    return {
        dataclasses.replace(case, function=function.name).key(): function.operation
        for function in functions
        if function.operation in wanted
    }


def companions(subject: Subject, job: Job) -> dict[str, Subject]:
    """Return the cases of a job that criteria compare this one with, by operation."""
    keys = companion_keys(subject.case)
    return {operation: job[key] for key, operation in keys.items() if key in job}


def rests_on(subject: Subject, finding: Finding, job: Job) -> tuple[Subject, ...]:
    """Return the other cases of a job that a finding on this one rests on."""
    alongside = companions(subject, job)
    return tuple(alongside[one] for one in _rests_on(subject, finding) if one in alongside)


def _rests_on(subject: Subject, finding: Finding) -> tuple[str, ...]:
    criterion = BY_FINDING.get(finding.criterion)
    if criterion is None:
        return ()
    return tuple(criterion.rests_on(registry.function_of(subject.case).operation, finding))


def counted(subject: Subject) -> tuple[Finding, ...]:
    """Return the findings on the nodes' counters in all launches: 15 and 16 of docs/criteria.md.

    Disturbed launches count too: a lost carrier is no noise.
    """
    return _judged(_curves(subject), subject, of_counters=True)


def references(subject: Subject, bounds: Mapping[str, Limits]) -> dict[str, Finding]:
    """Return a finding for each variable with a reference, with noise treated as in ``rates``."""
    findings = limits.judge(undisturbed(subject).measured, bounds, str(subject))
    noise = disturbances(subject)
    found = {}
    for name, finding in findings.items():
        if noise and finding.level is Level.UNDEFINED:
            # Without the noise the curve may have an r∞.
            finding = dataclasses.replace(finding, level=Level.INCONCLUSIVE)
        found[name] = without_noise(finding, noise)
    return found


def _rates(subject: Subject, alongside: Mapping[str, Subject]) -> tuple[Finding, ...]:
    others = {operation: companion(other) for operation, other in alongside.items()}
    case = dataclasses.replace(_curves(subject), others=others)
    findings = _judged(case, subject, of_launches=True)
    crashes = [str(crash) for crash in subject.measured.crashes]
    crashes += [
        f"{peer.environment}, interleaved: {crash}"
        for launch in subject.measured.launches
        for peer in launch.peers
        for crash in peer.crashes
    ]
    if not crashes:
        return findings
    reason = "; ".join(crashes)
    return (*findings, Finding("crashes", Level.WARN, str(subject), reason, value=len(crashes)))


def companion(subject: Subject) -> Companion:
    """Return a case in the form that others of its job are compared with."""
    launches = tuple(launch.curve for launch in subject.measured.launches)
    return Companion(subject.measured.curve, launches)


def _judged(
    case: CaseCurves, subject: Subject, *, of_launches: bool = False, of_counters: bool = False
) -> tuple[Finding, ...]:
    """Return the findings on one case: of all launches, of the first ones, or of counters."""
    return tuple(
        finding
        for criterion in CRITERIA
        if criterion.judge is not None
        and (criterion.of_launches, criterion.of_counters) == (of_launches, of_counters)
        for finding in criterion.judge(case, subject.settings)
    )


def _curves(subject: Subject) -> CaseCurves:
    """Return the data of a case for the criteria, all its launches taken as first ones."""
    measured, case = subject.measured, subject.case
    used, seconds = _cpu_seconds(measured)
    return CaseCurves(
        str(subject),
        measured.curve,
        measured.curve,
        tuple(launch.curve for launch in measured.launches),
        measured.landmarks,
        measured.line_rate_mb_s,
        inside=case.path == "inside",
        over_tcp=subject.over_tcp,
        cpu_seconds=used,
        seconds=seconds,
        cpu_notes={cost.node: cost_in_words(cost) for cost in measured.cpu_costs},
        counted=tuple(
            CountedLaunch(
                launch.number,
                launch.counters,
                launch.payload or Payload(None, "it was not recorded"),
                not disturbed(launch.loads, subject.settings.disturbance),
            )
            for launch in measured.launches
            if launch.counters is not None
        ),
        counted_alongside=tuple(
            CountedLaunch(
                launch.number,
                peer.counters,
                Payload(None, f"it is a launch of {peer.environment}"),
                not disturbed(launch.loads, subject.settings.disturbance),
            )
            for launch in measured.launches
            for peer in launch.peers
            if peer.counters is not None
        )
        + tuple(
            CountedLaunch(
                crash.launch, crash.counters, Payload(None, "it crashed"), undisturbed=False
            )
            for crash in measured.all_crashes()
            if crash.counters is not None
        ),
        rails=subject.rails,
        operation=registry.function_of(case).operation,
        ranks=case.ranks,
        ranks_per_node=case.ranks_per_node,
        ping_pong=registry.function_of(case).ping_pong,
    )


def _cpu_seconds(measured: Measured) -> tuple[dict[str, float], float]:
    """Return CPU seconds by node, and in how many seconds; without startup where known."""
    costs = measured.cpu_costs
    if costs and all(cost.cpu_s is not None for cost in costs):
        return {cost.node: cost.cpu_s for cost in costs}, max(cost.seconds for cost in costs)
    seconds, used = 0.0, defaultdict(float)
    for launch in measured.launches:
        seconds += max(use.wall_s for use in launch.ranks)
        for use in launch.ranks:
            used[use.node] += use.cpu_s
    return used, seconds


def along_all(subjects: Sequence[Subject]) -> dict[Subject, tuple[Finding, ...]]:
    """Return the findings of ``along`` on each case, compared with the other ones."""
    job = {subject.case.key(): subject for subject in subjects}
    return {subject: along(subject, job) for subject in subjects}


@dataclass(frozen=True)
class LaunchCount:
    """Launches of a configuration's complete cases, and how many of them crashed.

    ``launches``: with crashed launches, those around flagged sizes, and those paired with another
    configuration; ``finding``: on their share, see ``criteria.crash_share``.
    """

    partition: str
    environment: str
    launches: int
    crashed: int
    finding: Finding


def launched(
    subjects: Iterable[Subject], around: Mapping[tuple, tuple[int, tuple[Crash, ...]]]
) -> tuple[LaunchCount, ...]:
    """Count launches and crashes for each configuration of ``subjects``, in their order.

    ``around``: launches around flagged sizes by the case's key, from ``again.starts``.
    """
    by_place: dict[tuple[str, str], list[Subject]] = defaultdict(list)
    peers: dict[tuple[str, str], list[Peer]] = defaultdict(list)
    for subject in subjects:
        by_place[subject.case.partition, subject.case.environment].append(subject)
        for peer in (peer for launch in subject.measured.launches for peer in launch.peers):
            peers[subject.case.partition, peer.environment].append(peer)
    found = []
    for (partition, environment), several in by_place.items():
        again = [around[key] for one in several if (key := one.case.key()) in around]
        crashes = [crash for one in several for crash in one.measured.crashes]
        count = len(crashes) + sum(len(one.measured.launches) for one in several)
        count += sum(made for made, _ in again)
        crashes += [crash for _, these in again for crash in these]
        paired = [crash for peer in peers[partition, environment] for crash in peer.crashes]
        count += len(peers[partition, environment]) + len(paired)
        crashes += paired
        crashed = len(crashes)
        settings, where = several[0].settings.crash, f"{partition} {environment}"
        finding = criteria.crash_share(crashed, count, where=where, settings=settings)
        words = " | ".join(dict.fromkeys(crash.said for crash in crashes))
        if finding.level in FLAGS:
            finding = dataclasses.replace(finding, reason=f"{finding.reason}: {words}")
        found.append(LaunchCount(partition, environment, count, crashed, finding))
    return tuple(found)


def flagged(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the findings whose sizes are to be measured again."""
    return tuple(
        finding
        for finding in findings
        if finding.criterion in CONFIRMED_BY_MEASURING and finding.level in FLAGS
    )


def dense_sizes(subject: Subject, findings: Sequence[Finding]) -> tuple[int, ...]:
    """Return the sizes in bytes to measure again for several flags of one case, increasing."""
    settings = subject.confirm_settings()
    sizes = {size for finding in findings for size in criteria.dense_sizes(finding, settings)}
    return tuple(sorted(sizes))


def bounds_of(criterion: str, settings: Settings, *, inside: bool = False) -> Bounds:
    """Return the bounds that a finding of that criterion was compared with."""
    key = BY_FINDING[criterion].findings[criterion]
    if key is None:
        return Bounds()
    if inside and hasattr(settings, f"{key}_inside"):
        key = f"{key}_inside"
    return getattr(settings, key)


def rule(subject: Subject, finding: Finding, confirmation: Confirmation | None) -> Ruling:
    """Return the ruling on a finding, with its confirmation by measuring again.

    A flag that should have been measured again and was not counts as it is. An undefined finding
    fails where a bound is asserted. The share of the line rate is then shown with the reason, and
    a reference that asks for it fails. A flaw that the site knows of is shown with the site's
    reason, unless it is an error of measurement.
    """
    ruling = _rule(subject, finding, confirmation)
    flaw = subject.known_flaw()
    excused = ruling.level in FLAGS or ruling.level is Level.INCONCLUSIVE
    if flaw is None or not excused or _of_measurement(finding):
        return ruling
    if finding.level is Level.UNDEFINED:
        return ruling
    reason = f"{ruling.reason}; known: {flaw}"
    return dataclasses.replace(ruling, level=Level.SHOWN, reason=reason, known=flaw)


def _of_measurement(finding: Finding) -> bool:
    criterion = BY_FINDING.get(finding.criterion)
    return criterion is not None and criterion.of_measurement


def _rule(subject: Subject, finding: Finding, confirmation: Confirmation | None) -> Ruling:
    if finding.level is Level.UNDEFINED:
        if finding.criterion == CRITERION:
            return Ruling(finding, Level.FAIL, finding.reason)
        bounds = bounds_of(
            finding.criterion, subject.settings, inside=subject.case.path == "inside"
        )
        asserted = bounds.warn is not None or bounds.fail is not None
        if _of_measurement(finding):
            # The end of a healthy network's curve may be no line, where a library changes its
            # protocol; a site that needs the share asks for it by a reference.
            asserted = False
        if BY_FINDING[finding.criterion].of_counters:
            asserted = bool(bounds.not_known)
        return Ruling(finding, Level.FAIL if asserted else Level.SHOWN, finding.reason)
    if finding not in flagged([finding]):
        return Ruling(finding, finding.level, finding.reason)
    if confirmation is None:
        return Ruling(finding, finding.level, f"{finding.reason}; it was not measured again")
    if confirmation.level is Level.UNDEFINED:
        reason = f"{finding.reason}; {confirmation.why}"
        return Ruling(finding, finding.level, reason, confirmation)
    reason = f"{finding.reason}; {confirmation.reason}"
    if confirmation.level is Level.INCONCLUSIVE:
        level = Level.INCONCLUSIVE if finding.level is Level.FAIL else Level.SHOWN
        return Ruling(finding, level, reason, confirmation)
    # Closer steps may show worse than the flag; only the flag was to be confirmed.
    milder = Level.WARN if Level.WARN in (finding.level, confirmation.level) else finding.level
    level = milder if confirmation.confirmed else Level.SHOWN
    return Ruling(finding, level, reason, confirmation)
