"""Material of a report's pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from netproof.comparison.comparison import Against
from netproof.diagnosis.diagnosis import Diagnosis
from netproof.experiments.literature import Study
from netproof.present.html.charts import ChartFigure
from netproof.present.html.content import Group
from netproof.present.html.html import file_name
from netproof.present.html.looks import Looks
from netproof.present.html.pair_map import PairMap
from netproof.session.provenance import OfSession
from netproof.verdict.judging import JudgedSession
from netproof.verdict.power import CasePower

MAIN = "index.html"
"""File of the page to begin at."""


@dataclass(frozen=True)
class Report:
    """Material of all pages.

    ``figures``: by group's name; ``netpipe``: by path, direction and partition; ``scripts``: files
    of ``assets`` to load; ``files``: the suffixes that every chart has a file of; ``command``: that
    made the report; ``not_there``: why there are no ``studies``, or no ``provenance``, under these
    words; ``against``: one switch against the others, None where the report is not on one;
    ``diagnoses`` and ``maps`` of pairs: by partition; ``powers``: the change that would have failed
    each case, none where not requested.
    """

    judged: JudgedSession
    groups: tuple[Group, ...]
    looks: Looks
    figures: Mapping[str, ChartFigure]
    netpipe: Mapping[tuple[str, str, str], Sequence[ChartFigure]]
    studies: tuple[Study, ...]
    provenance: OfSession | None
    scripts: tuple[str, ...]
    files: tuple[str, ...] = ()
    command: str = ""
    not_there: Mapping[str, str] = field(default_factory=dict)
    against: Against | None = None
    diagnoses: tuple[Diagnosis, ...] = ()
    maps: Mapping[str, Sequence[PairMap]] = field(default_factory=dict)
    powers: tuple[CasePower, ...] = ()

    @property
    def against_page(self) -> str:
        """File of the page on the switch that is compared with the others."""
        return f"{file_name('switch', self.against.partition)}.html"

    @property
    def system(self) -> str:
        """The system that was judged."""
        return self.judged.matrix.cases[0].system

    def all_figures(self) -> list[ChartFigure | PairMap]:
        """Return every figure once."""
        several = (*self.netpipe.values(), *self.maps.values())
        return [*self.figures.values(), *(one for each in several for one in each)]


def stated(info: Mapping[str, Any], key: str) -> str:
    """Return ReFrame's value of the session under a key, or that it has none."""
    value = info.get(key)
    return f"(the session does not state {key})" if value in (None, "") else str(value)
