"""Material of a report's pages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from netproof.benchmarks import registry
from netproof.comparison.compared_case import envelope_of_cases
from netproof.comparison.comparison import Against
from netproof.diagnosis.diagnosis import Diagnosis
from netproof.experiments.literature import Study
from netproof.present.html import content, figures
from netproof.present.html.charts import ChartFigure, Looks
from netproof.present.html.content import Group
from netproof.present.html.html import file_name
from netproof.session.provenance import OfSession
from netproof.verdict import engine
from netproof.verdict.power import CasePower
from netproof.verdict.session_verdict import JudgedSession
from netproof.verdict.verdict import CaseVerdict

MAIN = "index.html"
"""File of the page to begin at."""
STUDIES = "studies.html"
"""File of the page on earlier studies, where each partition has a page of its own."""


@dataclass(frozen=True)
class Report:
    """Material of all pages.

    ``scripts``: files of ``assets`` to load; ``files``: the suffixes that every chart has a file
    of; ``command``: that made the report; ``not_there``: why there are no ``studies``, or no
    ``provenance``, under these words; ``against``: one switch against the others, None where the
    report is not on one; ``diagnoses`` and ``maps`` of pairs: by partition; ``powers``: the change
    that would have failed each case, none where not requested.
    """

    judged: JudgedSession
    groups: tuple[Group, ...]
    looks: Looks
    studies: tuple[Study, ...]
    provenance: OfSession | None
    scripts: tuple[str, ...]
    files: tuple[str, ...] = ()
    command: str = ""
    not_there: Mapping[str, str] = field(default_factory=dict)
    against: Against | None = None
    diagnoses: tuple[Diagnosis, ...] = ()
    maps: Mapping[str, Sequence[ChartFigure]] = field(default_factory=dict)
    powers: tuple[CasePower, ...] = ()

    @property
    def against_page(self) -> str:
        """File of the page on the switch that is compared with the others."""
        return f"{file_name('switch', self.against.partition)}.html"

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
    def links(self) -> dict[tuple, str]:
        """Links to the cases' charts, by the cases' keys."""
        return {one.case.key(): group.link for group in self.groups for one in group.members}

    @cached_property
    def _envelopes(self) -> dict[tuple, tuple[dict[int, tuple[float, str]], bool]]:
        several: dict[tuple, dict[str, Any]] = {}
        for group in self.groups:
            cases = several.setdefault(engine.group(group.case), {})
            cases |= {content.label(one): one for one in (*group.members, *group.stored)}
        return {key: envelope_of_cases(cases, self.judged.matrix) for key, cases in several.items()}

    def figure(self, group: Group) -> ChartFigure:
        """Return time over size of a group."""
        least, unlike_links = self._envelopes[engine.group(group.case)]
        return figures.of_time(group, least, unlike_links=unlike_links)

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
        return figures.of_netpipe(key, self.netpipe[key], self.judged.matrix)

    def all_figures(self) -> Iterator[ChartFigure]:
        """Yield every figure once."""
        yield from map(self.figure, self.groups)
        for key in self.netpipe:
            yield from self.pair(key)
        for several in self.maps.values():
            yield from several


def stated(info: Mapping[str, Any], key: str) -> str:
    """Return ReFrame's value of the session under a key, or that it has none."""
    value = info.get(key)
    return f"(the session does not state {key})" if value in (None, "") else str(value)
