"""The engine: cases, and the findings of all criteria on them.

The same functions judge in a job, over a session, and cases that are planted or read from files.
``along`` needs one case and those of its job, ``compared`` every configuration that ran a function.
``rule`` gives a finding, with its confirmation, the verdict's level.
"""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

from netproof.benchmarks import registry
from netproof.criteria import Finding, Level
from netproof.criteria.counters import CountedSettings
from netproof.criteria.findings import AGAINST, FLAGGED, REFERENCE, folded, then
from netproof.criteria.interface import (
    CaseCurves,
    ComparedCases,
    CountedLaunch,
    Criterion,
    Layer,
    Pairs,
)
from netproof.criteria.registry import BY_FINDING, CONFIRMED_BY_MEASURING, CRITERIA
from netproof.criteria.settings import ConfirmSettings, Settings
from netproof.errors import grouped
from netproof.intake.models import expression
from netproof.measurement.case import Case, Curve
from netproof.measurement.disturbance import (
    NodeLoad,
    Paces,
    disturbed,
    others_share,
    unlike,
)
from netproof.measurement.interval import FEWEST_RANKED
from netproof.measurement.links import Link, link_of

if TYPE_CHECKING:
    # Files are judged without a session.
    from netproof.session.measured import Measured
    from netproof.site.partition import ScoreBaseline
    from netproof.verdict.limits import Limits

Key = tuple[Any, ...]
"""The key of a case within a session."""

Found = TypeVar("Found")


@dataclass(frozen=True, eq=False)
class Subject:
    """A complete case with its site's settings, compared by identity.

    ``known``: flaws of the environment, from an expression for the words of ``what`` to the reason;
    ``absent``: benchmarks that it lacks, with the reason; ``measured_on``: the day, if another
    session measured it; ``link``: of each node, None where not known; ``rails``: interfaces that
    should carry its traffic.
    """

    measured: Measured
    switch: str
    settings: Settings
    known: Mapping[str, str]
    absent: Mapping[str, str] = field(default_factory=dict)
    measured_on: str = ""
    link: Link | None = None
    rails: tuple[str, ...] = ()

    @classmethod
    def of_extras(
        cls,
        measured: Measured,
        extras: Mapping[str, Any],
        environment: Mapping[str, Any],
        measured_on: str = "",
    ) -> Subject:
        """Return a case with the ``extras`` of its partition and of its environment in a report."""
        settings = Settings.of_site(extras.get("criteria", {}), extras["line_rate_from_bytes"])
        rails = tuple(extras.get("rails") or filter(None, [extras.get("interface")]))
        # A stream of TCP has one of them.
        stream = measured.case.function == "tcp"
        link = link_of(
            extras,
            over_tcp=stream or environment.get("mpi_over_tcp", True),
            rails=1 if stream else max(1, len(rails)),
        )
        flaws = environment.get("known", {}), environment.get("absent", {})
        return cls(measured, extras["switch"], settings, *flaws, measured_on, link, rails)

    @property
    def case(self) -> Case:
        """Measured case."""
        return self.measured.case

    def __str__(self) -> str:
        day = f", of {self.measured_on}" if self.measured_on else ""
        return f"{self.case} (switch {self.switch}{day})"

    def confirm_settings(self) -> ConfirmSettings:
        """Return how its flagged sizes are measured again; reductions have elements of 4 bytes."""
        function = registry.function_of(self.case)
        confirm: ConfirmSettings = self.settings.confirm
        return dataclasses.replace(
            confirm,
            element_bytes=function.least_bytes or 1,
            least_bytes=max(1, function.least_for(self.case.ranks)),
            most_bytes=max(*self.measured.curve.sizes, 8),
        )

    @cached_property
    def noise(self) -> Sequence[tuple[str, ...]]:
        """Disturbances of each launch."""
        settings = self.settings.disturbance
        return [disturbed(one.loads, settings) for one in self.measured.launches]

    @cached_property
    def undisturbed(self) -> Subject:
        """The case with its undisturbed launches alone if they are enough; else as it is."""
        launches = self.measured.launches
        quiet = [one for one, noise in zip(launches, self.noise, strict=True) if not noise]
        if len(quiet) == len(launches) or len(quiet) < self.settings.confirm.launches:
            return self
        return dataclasses.replace(self, measured=self.measured.with_launches(quiet))

    @cached_property
    def disturbances(self) -> tuple[str, ...]:
        """Worst disturbance of the launches that ``undisturbed`` has."""
        one = self.undisturbed
        loads = (launch.loads for launch in one.measured.launches)
        return worst_of(zip(loads, one.noise, strict=True))

    @cached_property
    def data(self) -> CaseCurves:
        """Return the part that criteria may use."""
        measured, case = self.measured, self.case
        benchmark, function = registry.of(case), registry.function_of(case)
        inside, over_tcp = case.path == "intra-node", benchmark.over_tcp.get(case.function)
        least, most = function.messages_on_link(case.ranks, case.ranks_per_node)
        counted: list[CountedLaunch] = []
        alongside: list[CountedLaunch] = []
        crashes = [*map(str, measured.crashes)]
        for one, noise in zip(measured.launches, self.noise, strict=True):
            if one.counters:
                counted.append(CountedLaunch(one.number, one.counters, one.payload, not noise))
            for peer in one.peers:
                crashes += [f"{peer.environment}, interleaved: {crash}" for crash in peer.crashes]
                why = f"it is a launch of {peer.environment}"
                if peer.counters:
                    alongside.append(CountedLaunch(one.number, peer.counters, why, not noise))
        for crash in measured.all_crashes():
            if crash.counters:
                of_crash = (crash.number, crash.counters, "it crashed")
                alongside.append(CountedLaunch(*of_crash, False))
        layer = Layer.COLLECTIVE if function.collective else Layer.NETWORK
        return CaseCurves(
            str(self),
            measured.curve,
            # Undisturbed launches may all be repeats.
            measured.curve
            if all(it.further for it in measured.launches)
            else measured.first().curve,
            tuple(launch.curve for launch in measured.launches),
            measured.landmarks,
            measured.line_rate_mb_s,
            inside=inside,
            over_tcp=over_tcp is not None and benchmark.feature(over_tcp) not in self.absent,
            counted=tuple(counted),
            counted_alongside=tuple(alongside),
            rails=self.rails,
            operation=function.operation,
            ranks=case.ranks,
            ranks_per_node=case.ranks_per_node,
            ping_pong=function.ping_pong,
            layer=Layer.INSIDE if inside else layer,
            crashes=tuple(crashes),
            settings=self.settings,
            name=f"{case}{f' of {self.measured_on}' if self.measured_on else ''}",
            function=group(case),
            configuration=(case.system, case.partition, case.environment, self.measured_on),
            place=(case.system, case.partition, self.link, measured.line_rate_mb_s is None),
            crossing=None
            if self.link is None or inside
            else dataclasses.replace(self.link, least=least, most=most),
            on_link=most if function.collective else 0,
            disturbances=self.disturbances,
        )


Job = Mapping[Key, Subject]
"""Complete cases measured together, by their keys."""


def worst_of(launches: Iterable[tuple[Sequence[NodeLoad], tuple[str, ...]]]) -> tuple[str, ...]:
    """Return the disturbances of the most disturbed launch; nothing where none was.

    A hypervisor may disturb a launch during which other programs did least.
    """
    several = [one for one in launches if one[1]]
    return max(several, key=lambda one: others_share(one[0]))[1] if several else ()


_ALONG = tuple(one for one in CRITERIA if one.compare is None)
_OF_COUNTERS = tuple(one for one in _ALONG if one.of_counters)
_OF_LAUNCHES = tuple(one for one in _ALONG if one.of_launches)
_OF_SIZES = tuple(one for one in _ALONG if not one.of_launches and not one.of_counters)


def findings_of(case: CaseCurves, criteria: Iterable[Criterion] = _ALONG) -> tuple[Finding, ...]:
    """Return the findings of criteria along one curve, and of counts."""
    return tuple(chain.from_iterable(one.on(case, case.settings) for one in criteria))


def along(subject: Subject, job: Job | None = None) -> tuple[Finding, ...]:
    """Return all findings on one case, ``job`` being the cases that it may be compared with.

    These are for NetPIPE over MPI that over TCP, for a collective other functions.
    """
    return (*smoothness(subject), *rates(subject, job), *counted(subject))


def smoothness(subject: Subject) -> tuple[Finding, ...]:
    """Return findings on single sizes of a curve's first launches.

    Flagged sizes are measured again, so later launches of the whole curve do not count.
    """
    return findings_of(subject.data, _OF_SIZES)


def rates(subject: Subject, job: Job | None = None) -> tuple[Finding, ...]:
    """Return the findings on a case as a whole, by its intervals, and on crashes.

    ``job``: as in ``along``. Disturbed launches do not count if enough others are left; else a
    failure is inconclusive.
    """
    job = job or {}
    others = {name: it.undisturbed.data for name, it in companions(subject, job).items()}
    case = subject.undisturbed.data
    case = dataclasses.replace(case, others=others) if others else case
    weighed = []
    for finding in findings_of(case, _OF_LAUNCHES):
        if finding.level in AGAINST:
            sides = (subject, *rests_on(subject, finding, job))
            noise = dict.fromkeys(text for side in sides for text in side.disturbances)
            finding = finding.without_noise(tuple(noise))
        weighed.append(finding)
    return tuple(weighed)


def by_place(found: Mapping[Key, Found]) -> dict[Key, Found]:
    """Return what is known by cases' keys also by those without the environment.

    One environment of a partition measures TCP for all of them.
    """
    return {key[:2] + key[3:]: one for key, one in found.items()} | dict(found)


def companion_keys(case: Case, there: Collection[Key]) -> dict[Key, str]:
    """Return the operations that criteria compare a case with, by the keys of their cases.

    ``there``: as ``by_place`` has them.
    """
    own, benchmark, own_key = registry.function_of(case).operation, registry.of(case), case.key()
    wanted = {one for criterion in CRITERIA for one in criterion.others(own)}
    found = {}
    for function in benchmark.functions if wanted else ():
        if function.operation not in wanted:
            continue
        key: Key = (*own_key[:4], function.name, *own_key[5:])
        if key not in there and function.name in benchmark.over_tcp.values():
            key = key[:2] + key[3:]
        found[key] = function.operation
    return found


def companions(subject: Subject, job: Job) -> dict[str, Subject]:
    """Return the cases of a job that criteria compare this one with, by operation."""
    keys = companion_keys(subject.case, job)
    return {operation: job[key] for key, operation in keys.items() if key in job}


def rests_on(subject: Subject, finding: Finding, job: Job) -> tuple[Subject, ...]:
    """Return the other cases of a job that a finding on this one rests on."""
    criterion = BY_FINDING.get(finding.criterion)
    if criterion is None:
        return ()
    names = [*criterion.rests_on(registry.function_of(subject.case).operation, finding)]
    compared = companions(subject, job) if names else {}
    return tuple(compared[name] for name in names if name in compared)


def counted(subject: Subject) -> tuple[Finding, ...]:
    """Return the findings on the nodes' counters in all launches.

    Disturbed launches count too: a lost carrier is no noise.
    """
    return findings_of(subject.data, _OF_COUNTERS)


def references(subject: Subject, bounds: Mapping[str, Limits]) -> dict[str, Finding]:
    """Return a finding for each variable with a reference, with noise treated as in ``rates``."""
    from netproof.verdict import limits

    findings = limits.judge(subject.undisturbed.measured, bounds, str(subject))
    noise = subject.disturbances
    for name, finding in findings.items():
        if noise and finding.level is Level.UNDEFINED:
            # Without the noise the curve may have an r∞.
            finding = dataclasses.replace(finding, level=Level.INCONCLUSIVE)
        findings[name] = finding.without_noise(noise)
    return findings


def group(case: Case) -> Key:
    """Return what compared configurations have in common: function, ranks, path, direction."""
    return (case.benchmark, case.function, case.ranks, case.path, case.direction)


def compare(
    cases: Iterable[CaseCurves],
    baseline: Collection[str] | None = None,
    *,
    baseline_name: str = "",
    pairs: Mapping[tuple[str, str], Pairs] | None = None,
    only: str | None = None,
    scored: bool = True,
    ruled: Callable[[Finding], Finding] = lambda finding: finding,
) -> Iterator[Finding]:
    """Yield the findings of the criteria that compare cases; ``where`` is the label of one.

    ``baseline``: labels of the cases that scores are relative to, and its name; None where it is no
    part of what was to run; ``pairs``: interleaved launches, by both labels; ``only``: the case
    whose findings are asked for; ``scored``: whether scores are; ``ruled``: gives a finding the
    verdict's level.
    """
    known = [*cases]
    red: dict[str, list[int]] = defaultdict(list)
    for criterion in CRITERIA:
        if criterion.compare is None or (criterion.of_baseline and not scored):
            continue
        groups: dict[Hashable, dict[str, CaseCurves]] = defaultdict(dict)
        for case in known:
            if (key := criterion.group(case)) is not None:
                groups[key][case.where] = case
        for members in groups.values():
            if only is not None and only not in members:
                continue
            base = None if baseline is None else tuple(one for one in members if one in baseline)
            several = ComparedCases(members, pairs or {}, base, baseline_name, red)
            for case in [*members.values()] if only is None else [members[only]]:
                for finding in map(ruled, criterion.on(case, case.settings, several)):
                    if finding.level is Level.FAIL and finding.size is not None:
                        red[finding.where].append(finding.size)
                    yield finding


MOST_REASONS = 2
"""Reasons in a sentence on interleaved launches that do not count."""

NOT_TOGETHER = "they were not interleaved"


InterleavedLaunch = tuple[Curve, Mapping[str, Paces], tuple[str, ...]]
"""A launch of one of two configurations, its nodes' paces by environment, and what else they did.
"""

Rounds = Sequence[Sequence[InterleavedLaunch]]
"""Rounds of interleaved launches, a launch of each of two configurations in each."""

Pair = tuple[Curve, Curve, tuple[str, ...]]
"""A launch of each of two configurations, and why they cannot be compared."""


def pairs_needed(subject: Subject) -> int:
    """Return how many pairs of interleaved launches a failure takes.

    Where a machine has two paces, two or three ratios can agree by chance and lie far off. From six
    on an interval holds for any distribution. A site that allows fewer launches has fewer.
    """
    confirm: ConfirmSettings = subject.settings.confirm
    apart = sum(not launch.peers for launch in subject.measured.launches)
    possible = max(confirm.most_launches - apart, confirm.launches)
    return min(max(confirm.launches, FEWEST_RANKED), possible)


def paired(rounds: Rounds, most: float) -> list[Pair]:
    """Return one pair per round, first those that count.

    A launch is paired with that of its round, since both had one pace of the machine. If the CPUs
    were moved in between, and their distance is known, it is paired with the nearest launch with
    the same distance. ``most``: as in ``unlike``.
    """

    def why(number: int, other: int) -> tuple[str, ...]:
        (_, own, noise), (_, its, its_noise) = rounds[number][0], rounds[other][1]
        paces = {**own, **its}
        reason = unlike(paces, most)
        if not reason and number != other and not all(paces.values()):
            reason = NOT_TOGETHER
        return (*dict.fromkeys((*noise, *its_noise)), *([reason] if reason else []))

    own, others = list(range(len(rounds))), list(range(len(rounds)))
    found: list[tuple[int, int]] = []
    for apart in range(len(rounds)):
        for number in tuple(own):
            for other in dict.fromkeys((number - apart, number + apart)):
                if other in others and not why(number, other):
                    found.append((number, other))
                    own.remove(number)
                    others.remove(other)
                    break
    pairs: list[tuple[int, int, tuple[str, ...]]] = [(*it, ()) for it in sorted(found)]
    left = zip(own, others, strict=True)
    pairs += [(one, other, why(one, one) or why(one, other)) for one, other in left]
    return [(rounds[one][0][0], rounds[other][1][0], it) for one, other, it in pairs]


def _chosen(pairs: Sequence[Pair], needed: int) -> Pairs:
    """Choose the undisturbed pairs if they are ``needed`` or more; else all of them."""
    good = [(own, other) for own, other, why in pairs if not why]
    if len(good) >= needed:
        return good, ""
    reasons = list(dict.fromkeys(text for _, _, why in pairs for text in why))
    shown = "; ".join(reasons[:MOST_REASONS])
    more = f", and {len(reasons) - MOST_REASONS} more reasons" if reasons[MOST_REASONS:] else ""
    short = (
        f"{len(good)} of {len(pairs)} pairs were undisturbed, and a failure takes {needed}"
        f"{': ' if shown else ''}{shown}{more}"
    )
    return [(own, other) for own, other, _ in pairs], short


def _pairs_of(subjects: Iterable[Subject]) -> dict[tuple[str, str], Pairs]:
    """Return the interleaved launches of each two cases, by both labels."""
    places = {(group(it.case), it.case.partition, it.case.environment): it for it in subjects}
    several: dict[tuple[str, str], list[Pair]] = defaultdict(list)
    needed: Counter[tuple[str, str]] = Counter()
    for (function, partition, environment), member in places.items():
        rounds: dict[str, list[list[InterleavedLaunch]]] = defaultdict(list)
        for launch, noise in zip(member.measured.launches, member.noise, strict=True):
            for peer in launch.peers:
                both = (environment, launch), (peer.environment, peer)
                rounds[peer.environment].append(
                    [(one.curve, {name: one.paces}, noise) for name, one in both]
                )
        for environment_of_peer, of_peer in rounds.items():
            other = places.get((function, partition, environment_of_peer))
            if other is None:
                continue
            pairs = paired(of_peer, member.settings.disturbance.pace)
            there, back = (str(member), str(other)), (str(other), str(member))
            several[there] += pairs
            several[back] += [(its, own, why) for own, its, why in pairs]
            for sides in (there, back):
                needed[sides] = max(needed[sides], pairs_needed(member))
    return {sides: _chosen(pairs, needed[sides]) for sides, pairs in several.items()}


def compared(
    subjects: Iterable[Subject],
    baseline: ScoreBaseline | None,
    *,
    only: Subject | None = None,
    scored: bool = True,
) -> Iterator[tuple[Subject, Finding]]:
    """Yield the verdict's findings from comparing cases, each with its case, as ``compare``.

    A lone configuration has no envelope: that is undefined, and red only if another one was
    expected and did not run, which is for the matrix to tell.
    """
    by_label = {str(one): one for one in subjects}
    by_function = grouped((group(one.case), one) for one in by_label.values())
    of_baseline = {
        str(one) for several in by_function.values() for one in _of_baseline(several, baseline)
    }
    found = compare(
        (one.undisturbed.data for one in by_label.values()),
        None if baseline is None else of_baseline,
        baseline_name=str(baseline),
        pairs=_pairs_of(by_label.values()),
        only=None if only is None else str(only),
        scored=scored,
        ruled=lambda finding: rule(by_label[finding.where], finding),
    )
    for finding in found:
        yield by_label[finding.where], finding


def _of_baseline(members: Sequence[Subject], baseline: ScoreBaseline | None) -> list[Subject]:
    """Return the baseline's cases of one function; of TCP the only one of its partition."""
    here = [one for one in members if baseline and one.case.partition == baseline.partition]
    own = [one for one in here if baseline and one.case.environment == baseline.environment]
    tcp = registry.of(members[0].case).over_tcp.values()
    return own or (here if len(here) == 1 and here[0].case.function in tcp else [])


def across(
    subjects: Iterable[Subject], baseline: ScoreBaseline | None, *, scored: bool = True
) -> dict[Key, tuple[Finding, ...]]:
    """Return the findings from comparing cases, by the keys of these, one for each level.

    ``baseline``, ``scored``: as in ``compare``.
    """
    found = compared(subjects, baseline, scored=scored)
    several = grouped((subject.case.key(), finding) for subject, finding in found)
    return {key: tuple(folded(found)) for key, found in several.items()}


def flagged(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the findings whose sizes are to be measured again."""
    return tuple(
        finding
        for finding in findings
        if finding.criterion in CONFIRMED_BY_MEASURING and finding.level in FLAGGED
    )


def rule(subject: Subject, finding: Finding, shown: Finding | None = None) -> Finding:
    """Return a finding with the verdict's level, by what repeats have ``shown`` of it.

    A flag that should have been measured again and was not counts as it is. An undefined finding
    fails where a bound is asserted. The share of the line rate is then shown with the reason, and
    a reference that asks for it fails. A flaw that the site knows of is shown with the site's
    reason, unless it is an error of measurement.
    """
    criterion = BY_FINDING.get(finding.criterion)
    of_measurement = criterion is not None and criterion.of_measurement
    if finding.level is Level.UNDEFINED:
        if finding.criterion == REFERENCE or criterion is None:
            return finding.ruled(Level.FAIL)
        bounds = criterion.bounds_in(subject.settings, inside=subject.case.path == "intra-node")
        # The end of a healthy network's curve may be no line, where a library changes its
        # protocol; a site that needs the share asks for it by a reference.
        asserted = bounds.asserted and not of_measurement
        if isinstance(bounds, CountedSettings):
            asserted = bool(bounds.not_known)
        return finding.ruled(Level.FAIL if asserted else Level.SHOWN)
    ruled = _confirmed(finding, shown)
    if of_measurement or ruled.level not in (*FLAGGED, Level.INCONCLUSIVE):
        return ruled
    what = subject.case.what()
    flaws = (why for text, why in subject.known.items() if expression(text).fullmatch(what))
    flaw = next(flaws, None)
    return ruled if flaw is None else ruled.ruled(Level.SHOWN, f". Known: {flaw}", known=flaw)


def _confirmed(finding: Finding, shown: Finding | None) -> Finding:
    """Return a finding with its level by its repeats, if it is one to measure again."""
    if not flagged([finding]):
        return finding
    if shown is None:
        return finding.ruled(finding.level, ". It was not measured again")
    level, more = finding.level, then(shown.reason)
    if shown.level is Level.UNDEFINED:
        more = f". {finding.where}: {shown.reason}"
    elif shown.level is Level.INCONCLUSIVE:
        level = Level.INCONCLUSIVE if finding.level is Level.FAIL else Level.SHOWN
    elif shown.level is not Level.FAIL:
        # Closer steps may show worse than the flag; only the flag was to be confirmed.
        level = shown.level
    return finding.ruled(level, more, repeated=shown.repeated)
