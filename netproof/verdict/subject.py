"""A complete case with what its site says of it, and what a finding on it means for the verdict."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from netproof.benchmarks import registry
from netproof.criteria import Confirmation, ConfirmSettings, Finding, Level
from netproof.criteria.settings import Settings
from netproof.intake.patterns import expression
from netproof.measurement.case import Case
from netproof.measurement.links import Crossing, Link, RailLinks
from netproof.session.measured import Measured

FLAGS = (Level.WARN, Level.FAIL)


@dataclass(frozen=True, eq=False)
class Subject:
    """A complete case with what its site says of it.

    ``switch``: its name; ``settings``: of the criteria; ``known``: flaws of the environment, from
    an expression for whole cases as ``what`` has them to the reason; ``absent``: benchmarks that
    the environment lacks, each with the reason; ``measured_on``: the day, of
    a case that another session measured; ``link``: of each of its nodes, None where it is not
    known; ``rails``: the interfaces that are to carry what is sent. Compared by identity.
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
        """A case with what a report keeps of its partition, ``extras``, and of its environment."""
        settings = Settings.of_site(extras.get("criteria", {}), extras["line_rate_from_bytes"])
        # Extras of before there were rails may be of before interfaces were named.
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
        """What its messages cross: None inside a node, and where its link is not known."""
        case = self.case
        if self.link is None or case.path == "inside":
            return None
        function = registry.function_of(case)
        least, most = function.messages_on_link(case.ranks, case.ranks_per_node)
        return Crossing(self.link, least, most)

    def confirm_settings(self) -> ConfirmSettings:
        """How its flagged sizes are measured again; reductions go by elements of 4 bytes."""
        most = max(self.measured.curve.sizes)
        settings = dataclasses.replace(self.settings.confirm, most_bytes=max(most, 8))
        function = registry.function_of(self.case)
        return dataclasses.replace(
            settings,
            element_bytes=function.element_bytes,
            least_bytes=max(1, function.least_for(self.case.ranks)),
        )


@dataclass(frozen=True)
class Ruling:
    """What the verdict makes of one finding.

    ``level``: fail makes the case red, warn orange; shown and pass leave it as it is. ``reason``:
    the sentence without the case. ``others``: the sizes in bytes at which the like was found and
    that have no ruling of their own. ``known``: why the site expects it, or empty.
    """

    finding: Finding
    level: Level
    reason: str
    confirmation: Confirmation | None = None
    others: tuple[int, ...] = ()
    known: str = ""

    @property
    def why(self) -> str:
        """The sentence to print."""
        return f"{self.finding.where}: {self.reason}"

    @property
    def forgiven(self) -> bool:
        """Whether it was flagged and does not count: it was not confirmed, or is known of."""
        return self.level is Level.SHOWN and bool(self.confirmation or self.known)

    def sizes(self) -> tuple[int, ...]:
        """All sizes in bytes that it speaks of, increasing."""
        own = () if self.finding.size is None else (self.finding.size,)
        return tuple(sorted({*own, *self.others}))
