"""Findings along each measured case's curve.

The same functions judge inside a run and over a stored session. ``along`` needs one case, and those
of the same job that it is compared with; ``group_rulings.across`` needs every configuration that
ran a function. ``rule`` gives a finding, with its confirmation, the verdict's level.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from netproof import criteria
from netproof.benchmarks import registry
from netproof.criteria import Bend, Bounds, Confirmation, Finding, Level, Region
from netproof.criteria.interface import CaseCurves, Companion, CountedLaunch
from netproof.criteria.registry import BY_FINDING, CONFIRMED_BY_MEASURING, CRITERIA
from netproof.criteria.settings import Settings
from netproof.measurement.case import Case
from netproof.measurement.counters import Counters
from netproof.measurement.cpu_use import cost_in_words
from netproof.measurement.disturbance import disturbed
from netproof.measurement.payload import Payload
from netproof.session.again import MeasuredAgain
from netproof.session.measured import Launch, Measured, Peer
from netproof.session.reference_findings import CRITERION
from netproof.verdict import limits
from netproof.verdict.limits import Limits
from netproof.verdict.subject import (
    FLAGS,
    Subject,
    disturbances,
    undisturbed,
    without_noise,
    worst_of,
)

Job = Mapping[tuple, Subject]
"""Complete cases measured together, by their keys."""


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
    job = job or {}
    others = {name: undisturbed(other) for name, other in companions(subject, job).items()}
    weighed = []
    for finding in _rates(undisturbed(subject), others):
        sides = (subject, *rests_on(subject, finding, job))
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
    criterion = BY_FINDING.get(finding.criterion)
    if criterion is None:
        return ()
    names = criterion.rests_on(registry.function_of(subject.case).operation, finding)
    compared = companions(subject, job)
    return tuple(compared[name] for name in names if name in compared)


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
    function = registry.function_of(case)
    used, seconds = _cpu_seconds(measured)

    def counted(launch: Launch, counters: Counters, payload: Payload) -> CountedLaunch:
        quiet = not disturbed(launch.loads, subject.settings.disturbance)
        return CountedLaunch(launch.number, counters, payload, quiet)

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
            counted(one, one.counters, one.payload or Payload(None, "it was not recorded"))
            for one in measured.launches
            if one.counters is not None
        ),
        counted_alongside=(
            *(
                counted(one, peer.counters, Payload(None, f"it is a launch of {peer.environment}"))
                for one in measured.launches
                for peer in one.peers
                if peer.counters is not None
            ),
            *(
                CountedLaunch(crash.launch, crash.counters, Payload(None, "it crashed"), False)
                for crash in measured.all_crashes()
                if crash.counters is not None
            ),
        ),
        rails=subject.rails,
        operation=function.operation,
        ranks=case.ranks,
        ranks_per_node=case.ranks_per_node,
        ping_pong=function.ping_pong,
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
    subjects: Iterable[Subject], repeats: Mapping[tuple, MeasuredAgain]
) -> tuple[LaunchCount, ...]:
    """Count launches and crashes for each configuration of ``subjects``, in their order.

    ``repeats``: around flagged sizes, by the case's key.
    """
    by_place: dict[tuple[str, str], list[Subject]] = defaultdict(list)
    peers: dict[tuple[str, str], list[Peer]] = defaultdict(list)
    for subject in subjects:
        by_place[subject.case.partition, subject.case.environment].append(subject)
        for peer in (peer for launch in subject.measured.launches for peer in launch.peers):
            peers[subject.case.partition, peer.environment].append(peer)
    found = []
    for place, several in by_place.items():
        again = [repeats[key] for one in several if (key := one.case.key()) in repeats]
        crashes = [crash for one in several for crash in one.measured.crashes]
        count = len(crashes) + sum(len(one.measured.launches) for one in several)
        count += sum(one.made for one in again)
        crashes += [crash for one in again for crash in one.crashes]
        of_peers = [crash for peer in peers[place] for crash in peer.crashes]
        count += len(peers[place]) + len(of_peers)
        crashes += of_peers
        finding = criteria.crash_share(
            len(crashes), count, where=" ".join(place), settings=several[0].settings.crash
        )
        if finding.level in FLAGS:
            words = " | ".join(dict.fromkeys(crash.said for crash in crashes))
            finding = dataclasses.replace(finding, reason=f"{finding.reason}: {words}")
        found.append(LaunchCount(*place, count, len(crashes), finding))
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


def rule(subject: Subject, finding: Finding, confirmation: Confirmation | None = None) -> Finding:
    """Return a finding with the verdict's level, by its confirmation by measuring again.

    A flag that should have been measured again and was not counts as it is. An undefined finding
    fails where a bound is asserted. The share of the line rate is then shown with the reason, and
    a reference that asks for it fails. A flaw that the site knows of is shown with the site's
    reason, unless it is an error of measurement.
    """
    ruled = _rule(subject, finding, confirmation)
    flaw = subject.known_flaw()
    excused = ruled.level in FLAGS or ruled.level is Level.INCONCLUSIVE
    if flaw is None or not excused or _of_measurement(finding):
        return ruled
    if finding.level is Level.UNDEFINED:
        return ruled
    return ruled.ruled(Level.SHOWN, f"; known: {flaw}", known=flaw)


def _of_measurement(finding: Finding) -> bool:
    criterion = BY_FINDING.get(finding.criterion)
    return criterion is not None and criterion.of_measurement


def _rule(subject: Subject, finding: Finding, confirmation: Confirmation | None) -> Finding:
    if finding.level is Level.UNDEFINED:
        if finding.criterion == CRITERION:
            return finding.ruled(Level.FAIL)
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
        return finding.ruled(Level.FAIL if asserted else Level.SHOWN)
    if finding not in flagged([finding]):
        return finding
    if confirmation is None:
        return finding.ruled(finding.level, "; it was not measured again")
    level, more = finding.level, f"; {confirmation.reason}"
    if confirmation.level is Level.UNDEFINED:
        more = f"; {finding.where}: {confirmation.reason}"
    elif confirmation.level is Level.INCONCLUSIVE:
        level = Level.INCONCLUSIVE if finding.level is Level.FAIL else Level.SHOWN
    elif not confirmation.confirmed:
        level = Level.SHOWN
    elif confirmation.level is Level.WARN:
        # Closer steps may show worse than the flag; only the flag was to be confirmed.
        level = Level.WARN
    return finding.ruled(level, more, confirmation=confirmation)


REFINEMENT = "refinement"
"""Name of the finding that closer sizes could not be judged."""


def places(subject: Subject) -> tuple[Bend, ...]:
    """Return where neighbouring slopes of a case's first launches disagree and nothing is flagged.

    None where the site refines nothing, below the sizes that criteria judge, and from half to twice
    a flagged size, where it is measured closer anyway.
    """
    settings = subject.settings.refine
    if settings.slopes is None or subject.measured.curve.sizes == (0,):
        return ()
    held = _held(subject)
    if not held:
        return ()
    judged_from = min(bounds.least_size for bounds in held.values())
    settings = dataclasses.replace(settings, least_size=max(settings.least_size, judged_from))
    first = [launch.curve for launch in subject.measured.first().launches]
    found = criteria.kinks(first, dataclasses.replace(settings, most=len(first[0].sizes)))
    flags = flagged(smoothness(subject))
    free = [one for one in found if not any(_near_flag(one, flag) for flag in flags)]
    return tuple(free[: settings.most])


def closer_sizes(subject: Subject) -> tuple[tuple[int, ...], ...]:
    """Return the sizes in bytes of a launch at closer sizes, increasing, by region."""
    element, settings = subject.confirm_settings().element_bytes, subject.settings.refine
    found = []
    for region in criteria.regions(places(subject)):
        several = [criteria.closer_sizes(place, settings, element) for place in region.places]
        found.append(tuple(sorted({size for sizes in several for size in sizes})))
    return tuple(found)


def closer_findings(subject: Subject, again: MeasuredAgain | None) -> tuple[Finding, ...]:
    """Return the findings at closer sizes, one for each region at most.

    A region that was not measured at closer sizes is shown; one with too few complete launches is
    inconclusive.
    """
    found = (_closer(subject, region, again) for region in criteria.regions(places(subject)))
    return tuple(finding for finding in found if finding is not None)


def closer_settled(subject: Subject, again: MeasuredAgain | None, most: int) -> bool:
    """Check whether launches at closer sizes have decided, ``most`` at most.

    As many as confirming takes are enough. More are needed where some are not complete, or only
    disturbed ones show a failure.
    """
    if not places(subject):
        return True
    if again is None:
        return False
    made = len(again.launches) + len(again.faults)
    if made >= most:
        return True
    if made < subject.settings.confirm.launches:
        return False
    undisturbed = again.calm(subject.settings.disturbance)
    return not undisturbed or all(
        finding.level is not Level.INCONCLUSIVE for finding in closer_findings(subject, again)
    )


def _held(subject: Subject) -> dict[str, criteria.Bounds]:
    """Return the bounds that criteria on single sizes assert."""
    several = {name: bounds_of(name, subject.settings) for name in CONFIRMED_BY_MEASURING}
    return {
        name: bounds
        for name, bounds in several.items()
        if (bounds.warn, bounds.fail) != (None, None)
    }


def _near_flag(place: Bend, flag: Finding) -> bool:
    return flag.size is not None and flag.size / 2 <= place.size <= 2 * flag.size


def _closer(subject: Subject, region: Region, again: MeasuredAgain | None) -> Finding | None:
    grid, settings = subject.measured.first().curve.sizes, subject.settings
    strongest = max(region.places, key=lambda place: place.disagreement)
    looked_for = f"looked for since {strongest.why}"

    def unknown(level: Level, why: str, *more: str) -> Finding:
        span = f"from {region.below} to {region.above} bytes {why}"
        reason, size = "; ".join((span, looked_for, *more)), region.places[0].size
        return rule(subject, Finding(REFINEMENT, level, str(subject), reason, size))

    not_measured = "it was not measured at closer sizes"
    if again is None:
        return unknown(Level.SHOWN, not_measured)
    loads = again.loads or ((),) * len(again.launches)
    usable = [
        (curve, load)
        for curve, load in zip(again.launches, loads, strict=True)
        if criteria.measured_closer(region, grid, curve)
    ]
    if not usable and (again.launches or not again.faults):
        return unknown(Level.SHOWN, not_measured)
    where = f" on {', '.join(again.nodes)}, job {again.jobid}"
    wanted = settings.confirm.launches
    if len(usable) < wanted:
        counted = f"{len(usable)} launches at closer sizes{where}, and this takes {wanted}"
        return unknown(Level.INCONCLUSIVE, counted, *again.faults)
    quiet = [curve for curve, load in usable if not disturbed(load, settings.disturbance)]
    enough = len(quiet) >= wanted
    curves = quiet if enough else [curve for curve, _ in usable]
    shown = criteria.found_closer(region, grid, curves, _held(subject), where=str(subject))
    if shown is None:
        return None
    level, confirmed = shown.level, shown.confirmation
    why = [
        f"{confirmed.flagged} of {confirmed.launches} launches at closer sizes show it{where}",
        looked_for,
        *again.faults,
    ]
    if not enough and len(quiet) < len(usable):
        noise = worst_of([load for _, load in usable], settings.disturbance)
        why.append(f"the machine was disturbed: {'; '.join(noise)}")
        if level is Level.FAIL:
            level = Level.INCONCLUSIVE
    return rule(subject, shown, dataclasses.replace(confirmed, level=level, reason="; ".join(why)))


def settled(
    subject: Subject, flags: Sequence[Finding], again: MeasuredAgain | None, most: int
) -> bool:
    """Check whether launches around flagged sizes have decided, ``most`` at most.

    Each flag was seen again by all of enough launches, by none, or by so many that the launches to
    come cannot change the majority. A flag is settled too if every launch was disturbed.
    """
    if again is None:
        return False
    to_come = most - len(again.launches) - len(again.faults)
    return to_come <= 0 or all(_settled(subject, flag, again, to_come) for flag in flags)


def _settled(subject: Subject, flag: Finding, again: MeasuredAgain, to_come: int) -> bool:
    confirmed = confirmation(subject, flag, again)
    if confirmed.level is Level.UNDEFINED:
        return False
    if confirmed.level is Level.INCONCLUSIVE:
        return not again.calm(subject.settings.disturbance)
    shown, launches = confirmed.flagged, confirmed.launches
    sure = 2 * shown > launches + to_come or 2 * (shown + to_come) <= launches
    return sure or shown in (0, launches)


def failed(
    subject: Subject, flags: Sequence[Finding], again: MeasuredAgain | None, most: int
) -> bool:
    """Check whether a flag or a place at closer sizes is settled, and fails its case."""
    to_come = 0 if again is None else max(most - len(again.launches) - len(again.faults), 0)
    ruled = [
        rule(subject, flag, confirmation(subject, flag, again))
        for flag in flags
        if again is not None and _settled(subject, flag, again, to_come)
    ]
    if closer_settled(subject, again, most):
        ruled += closer_findings(subject, again)
    return any(finding.level is Level.FAIL for finding in ruled)


def confirmation(
    subject: Subject, finding: Finding, again: MeasuredAgain | None
) -> Confirmation | None:
    """Return the confirmation of a flag; None where nothing was measured again.

    Undisturbed launches decide if they are enough; else a failure that all confirm is inconclusive.
    """
    if again is None:
        return None
    settings = subject.confirm_settings()
    undisturbed = again.calm(subject.settings.disturbance)
    enough = len(undisturbed) >= settings.launches
    confirmed = criteria.confirm(
        finding,
        undisturbed if enough else again.launches,
        bounds=bounds_of(finding.criterion, subject.settings),
        settings=settings,
    )
    where = f" on {', '.join(again.nodes)}, job {again.jobid}"
    why = [confirmed.reason + where, *again.faults]
    level = confirmed.level
    if not enough and len(undisturbed) < len(again.launches):
        noise = worst_of(again.loads, subject.settings.disturbance)
        why.append(f"the machine was disturbed: {'; '.join(noise)}")
        if level in (Level.FAIL, Level.UNDEFINED):
            level = Level.INCONCLUSIVE
    return dataclasses.replace(confirmed, level=level, reason="; ".join(why))


def rule_all(
    subject: Subject, findings: Sequence[Finding], again: MeasuredAgain | None
) -> tuple[Finding, ...]:
    """Return findings along a curve with the verdict's levels, by what was measured again.

    Findings at sizes between those of the curve follow, see ``closer_findings``.
    """
    flags = flagged(findings)
    ruled = tuple(
        rule(subject, finding, confirmation(subject, finding, again) if finding in flags else None)
        for finding in findings
    )
    ruled += closer_findings(subject, again)
    if again is None or not again.crashes:
        return ruled
    where = str(subject)
    why = f"around flagged sizes {'; '.join(map(str, again.crashes))}"
    crashes = Finding("crashes", Level.WARN, where, why, value=len(again.crashes))
    return (*ruled, rule(subject, crashes))


def findings_along(
    subjects: Sequence[Subject], repeats: Mapping[tuple, MeasuredAgain]
) -> dict[tuple, tuple[Finding, ...]]:
    """Return the findings along the curves of cases, each compared with the others, by their keys.

    ``repeats``: around flagged sizes and at closer ones, by the case's key.
    """
    job = {subject.case.key(): subject for subject in subjects}
    return {key: rule_all(one, along(one, job), repeats.get(key)) for key, one in job.items()}
