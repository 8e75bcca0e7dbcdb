"""Material of a report's pages: a judged session, and what is drawn of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from netproof.benchmarks import registry
from netproof.comparison.comparison import Against, alone, envelope_of_cases
from netproof.errors import NetproofError
from netproof.history.series import Nights
from netproof.measurement.case import Case
from netproof.present.html import content, figures, pair_map
from netproof.present.html.charts import ChartFigure, Looks
from netproof.present.html.content import Group
from netproof.present.html.html import file_name
from netproof.verdict import engine, session_verdict
from netproof.verdict.limits import TIME_AT, Limits
from netproof.verdict.references import Entries
from netproof.verdict.session_verdict import JudgedSession
from netproof.verdict.verdict import CaseVerdict

MAIN = "index.html"
"""File of the page to begin at."""
STUDIES = "studies.html"
"""File of the page on earlier studies, where each partition has a page of its own."""
HTML, CSV = "html", "csv"
FORMATS = (HTML, "png", "svg", "pdf", CSV)


@dataclass(frozen=True)
class Report:
    """A judged session and what its pages take of it.

    ``formats``: of ``FORMATS``; ``command``: that made the report; ``switch``: the partition
    that has a page against the others, else the only measured one, alongside stored others;
    ``power``: with changes that would have failed; ``nights``: series of its system's stored
    sessions, None without a store. Raises NetproofError where two charts would have
    one name, and for a switch that is missing or the only one.
    """

    judged: JudgedSession
    formats: Sequence[str] = (HTML,)
    command: str = ""
    switch: str | None = None
    power: bool = False
    nights: Nights | None = None

    def __post_init__(self) -> None:
        """Refuse what has no report before anything is written."""
        _ = self.groups, self.against

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """All groups of cases, in the order in which the verdict first has them."""
        return content.groups(self.judged.verdict)

    @cached_property
    def against(self) -> Against | None:
        """One switch against the others, None where the report is not on one."""
        return alone(self.judged.session, self.judged.verdict, self.switch)

    @property
    def files(self) -> list[str]:
        """Suffixes that every chart has a file of."""
        return [name for name in self.formats if name != HTML]

    @property
    def against_page(self) -> str:
        """File of the page on the switch that is compared with the others; empty without one."""
        return f"{file_name('switch', self.against.partition)}.html" if self.against else ""

    @property
    def system(self) -> str:
        """The system that was judged."""
        return self.judged.matrix.cases[0].system

    @cached_property
    def partition_pages(self) -> dict[str, str]:
        """Files of the partitions' pages; none where one page has all of them."""
        names = dict.fromkeys(group.partition for group in self.groups if group.partition)
        return {name: f"{file_name('partition', name)}.html" for name in names}

    @cached_property
    def links(self) -> dict[tuple[object, ...], str]:
        """Links to the cases' charts, by the cases' keys."""
        return {one.case.key(): group.link for group in self.groups for one in group.members}

    @cached_property
    def looks(self) -> Looks:
        """Looks of all partitions and environments, those of stored results last."""
        verdict = self.judged.verdict
        stored = () if verdict.compared_with is None else verdict.compared_with.cases
        cases = [one.case for one in verdict.cases]
        places = tuple(dict.fromkeys(map(content.switch, stored)))
        environments = dict.fromkeys(one.environment for one in [*cases, *(s.case for s in stored)])
        partitions = dict.fromkeys([*(case.partition for case in cases), *places])
        return Looks(tuple(partitions), tuple(environments), places)

    @cached_property
    def _envelopes(self) -> dict[tuple[object, ...], tuple[dict[int, tuple[float, str]], bool]]:
        several: dict[tuple[object, ...], dict[str, Any]] = {}
        for group in self.groups:
            cases = several.setdefault(engine.group(group.case), {})
            cases |= {content.label(one): one for one in group.members}
            cases |= {content.label(one): one for one in group.stored}
        return {key: envelope_of_cases(cases, self.judged.matrix) for key, cases in several.items()}

    @cached_property
    def _entries(self) -> Entries | None:
        try:
            return session_verdict.references_of(self.judged.matrix)
        except NetproofError:
            return None

    def limits(self, case: Case) -> dict[str, Limits]:
        """Return today's references of a case that bound something, by their variables."""
        try:
            entries = self._entries(case) if self._entries else {}
        except NetproofError:
            # The verdict says what is wrong with them.
            return {}
        found = {name: Limits.of_entry(entry) for name, entry in entries.items()}
        return {name: limits for name, limits in found.items() if limits.asserted}

    def figure(self, group: Group) -> ChartFigure:
        """Return time over size of a group."""
        least, unlike_links = self._envelopes[engine.group(group.case)]
        bounds = {
            (content.configuration(one.case), int(name.removeprefix(TIME_AT))): limits
            for one in group.members
            for name, limits in self.limits(one.case).items()
            if name.startswith(TIME_AT)
        }
        return figures.of_time(group, least, self.looks, bounds, unlike_links=unlike_links)

    @cached_property
    def netpipe(self) -> dict[tuple[str, str, str], list[CaseVerdict]]:
        """NetPIPE's cases by path, direction and partition."""
        several: dict[tuple[str, str, str], list[CaseVerdict]] = {}
        for judged in self.judged.verdict.cases:
            case = judged.case
            if registry.of(case).by_protocol:
                key = (case.path, case.direction, case.partition)
                several.setdefault(key, []).append(judged)
        return several

    def pair(self, key: tuple[str, str, str]) -> list[ChartFigure]:
        """Return NetPIPE's throughput and signature of a path, direction and partition."""
        several = self.netpipe[key]
        found = (self.limits(one.case).get("asymptotic_mb_s") for one in several)
        bounds = {one for one in found if one is not None}
        return figures.of_netpipe(key, several, self.judged.matrix, self.looks, bounds)

    @cached_property
    def maps(self) -> Mapping[str, list[ChartFigure]]:
        """Maps of pairs by partition."""
        found: dict[str, list[ChartFigure]] = {}
        for one in self.judged.verdict.pairs:
            found.setdefault(one.rounds.partition, []).extend(pair_map.of_rounds(one.rounds))
        return found

    def all_figures(self) -> Iterator[ChartFigure]:
        """Yield every figure once."""
        yield from map(self.figure, self.groups)
        for key in self.netpipe:
            yield from self.pair(key)
        for several in self.maps.values():
            yield from several
