"""A complete case with its site's settings, and its undisturbed launches."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from netproof.benchmarks import registry
from netproof.criteria import ConfirmSettings, Finding, Level
from netproof.criteria.settings import Settings
from netproof.intake.patterns import expression
from netproof.measurement.case import Case
from netproof.measurement.disturbance import (
    DisturbanceSettings,
    NodeLoad,
    disturbed,
    others_share,
)
from netproof.measurement.links import Crossing, Link, RailLinks
from netproof.session.measured import Measured

FLAGS = (Level.WARN, Level.FAIL)


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
        link = RailLinks.of_extras(extras).link_or_tcp(
            over_tcp=stream or environment.get("mpi_over_tcp", True),
            rails=1 if stream else max(1, len(rails)),
        )
        known, absent = environment.get("known", {}), environment.get("absent", {})
        return cls(measured, extras["switch"], settings, known, absent, measured_on, link, rails)

    @property
    def over_tcp(self) -> bool:
        """Whether it is compared with a case over TCP, which its environment has."""
        benchmark = registry.of(self.case)
        function = benchmark.compared_over_tcp(self.case.function)
        return function is not None and benchmark.feature(function) not in self.absent

    @property
    def case(self) -> Case:
        """Measured case."""
        return self.measured.case

    def __str__(self) -> str:
        """Return the case and the switch, the beginning of every sentence."""
        day = f", of {self.measured_on}" if self.measured_on else ""
        return f"{self.case} (switch {self.switch}{day})"

    def known_flaw(self) -> str | None:
        """Return why flags of this case are expected, None where they are not."""
        what = self.case.what()
        return next(
            (why for text, why in self.known.items() if expression(text).fullmatch(what)), None
        )

    def crossing(self) -> Crossing | None:
        """Return the link and messages on it: None intra-node, and where the link is not known."""
        case = self.case
        if self.link is None or case.path == "inside":
            return None
        function = registry.function_of(case)
        least, most = function.messages_on_link(case.ranks, case.ranks_per_node)
        return Crossing(self.link, least, most)

    def confirm_settings(self) -> ConfirmSettings:
        """Return how its flagged sizes are measured again; reductions have elements of 4 bytes."""
        most = max(self.measured.curve.sizes)
        settings = dataclasses.replace(self.settings.confirm, most_bytes=max(most, 8))
        function = registry.function_of(self.case)
        return dataclasses.replace(
            settings,
            element_bytes=function.element_bytes,
            least_bytes=max(1, function.least_for(self.case.ranks)),
        )


def undisturbed(subject: Subject) -> Subject:
    """Return the case with its undisturbed launches alone if they are enough; else as it is."""
    launches, settings = subject.measured.launches, subject.settings.disturbance
    quiet = [one for one in launches if not disturbed(one.loads, settings)]
    if len(quiet) == len(launches) or len(quiet) < subject.settings.confirm.launches:
        return subject
    return dataclasses.replace(subject, measured=subject.measured.with_launches(quiet))


def never_calm(subject: Subject) -> bool:
    """Check whether every launch of a case was disturbed."""
    settings = subject.settings.disturbance
    return all(disturbed(one.loads, settings) for one in subject.measured.launches)


def disturbances(subject: Subject) -> tuple[str, ...]:
    """Return the worst disturbance of the launches that ``undisturbed`` had to keep."""
    kept = [one.loads for one in undisturbed(subject).measured.launches]
    return worst_of(kept, subject.settings.disturbance)


def worst_of(
    launches: Sequence[Sequence[NodeLoad]], settings: DisturbanceSettings
) -> tuple[str, ...]:
    """Return the disturbances of the most disturbed launch; nothing where none was.

    A hypervisor may disturb a launch during which other programs did least.
    """
    several = [loads for loads in launches if disturbed(loads, settings)]
    return disturbed(max(several, key=others_share), settings) if several else ()


def without_noise(finding: Finding, noise: Sequence[str]) -> Finding:
    """Return a finding that rests on disturbed launches: a failure is inconclusive."""
    if not noise or finding.level not in (Level.FAIL, Level.INCONCLUSIVE):
        return finding
    reason = f"{finding.reason}; the machine was disturbed: {'; '.join(noise)}"
    return dataclasses.replace(finding, level=Level.INCONCLUSIVE, reason=reason)
