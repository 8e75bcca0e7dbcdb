"""Documents: an answer is made once, of blocks, which ``terminal`` and pages render.

A block is a sentence, facts by their names, an outcome, sentences of a kind, a table, or a chart,
which the terminal leaves out. What renders them computes nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Union

if TYPE_CHECKING:
    from rich.text import Text

    from netproof.present.html.charts import ChartFigure

EVERY = range(sys.maxsize)
"""All columns of a table."""

BETWEEN_COLUMNS = 2
"""Blanks of the terminal between two columns."""

NOTHING = {"", "-", "–"}
"""Texts of cells that have nothing."""

DRAWN_ON_PAGES = 24
"""Blocks of a drawn line on a page."""


@dataclass(frozen=True)
class Cell:
    """A text with a look: a class of the style sheet, or ``heading`` or ``code``.

    For pages alone: ``below``, which stands below it; ``title``, a hint; ``link``; ``more``, which
    opens on request; ``name``, a heading's anchor.
    """

    text: str
    look: str = ""
    below: Sequence[str | Cell] = ()
    title: str = ""
    link: str = ""
    more: Sequence[Cell] = ()
    name: str = ""

    def __str__(self) -> str:
        return self.text


Row = Sequence[Union[str, Cell, "Text"]]


@dataclass(frozen=True)
class DataTable:
    """A table by rows; the first cell heads its row.

    ``numbers``: the columns that hold numbers, from 0; ``caption``: below it, or empty; ``ranks``:
    of columns that a narrow terminal may lack, by their headings: the highest goes first;
    ``groups``: headings of consecutive rows, with how many each has; ``drawn``: heading of a last
    column, and how its lines are drawn in a room; ``heads``: columns that each part of a table has
    which a narrow terminal splits, 0 to split none; ``names``: columns that stand above the others
    of their row where a terminal is too narrow for all but those of the highest rank; ``fold``:
    heading, by which it opens on request on a page.
    """

    head: Sequence[str]
    rows: Sequence[Row]
    numbers: Container[int] = ()
    caption: str = ""
    ranks: Mapping[str, int] = field(default_factory=dict)
    groups: Mapping[str, int] = field(default_factory=dict)
    drawn: tuple[str, Callable[[int], Sequence[str | Text]]] | None = None
    heads: int = 0
    names: int = 0
    fold: str = ""

    @property
    def titles(self) -> list[str]:
        """Headings of all columns, a drawn one too."""
        return [*self.head, *([self.drawn[0]] if self.drawn else [])]

    @property
    def figures(self) -> bool:
        """Whether all columns but the first hold numbers."""
        return len(self.head) > 1 and all(at in self.numbers for at in range(1, len(self.head)))

    @cached_property
    def widths(self) -> list[int]:
        """Return how many columns of the terminal each takes."""
        return [
            max(len(line) for cell in cells for line in str(cell).split("\n")) + BETWEEN_COLUMNS
            for cells in zip(self.head, *self.rows, strict=True)
        ]

    def only(self, columns: Sequence[int]) -> DataTable:
        """Return a table of these columns."""
        rows = [[row[at] for at in columns] for row in self.rows]
        numbers = [number for number, at in enumerate(columns) if at in self.numbers]
        return replace(self, head=[self.head[at] for at in columns], rows=rows, numbers=numbers)

    def filled(self) -> DataTable:
        """Return the columns in which any row has a figure or a text."""
        columns = zip(*self.rows, strict=True)
        return self.only([at for at, cells in enumerate(columns) if {*map(str, cells)} - NOTHING])

    def fitting(self, width: int) -> DataTable:
        """Return the columns that fit together into ``width``, but all without a rank."""
        widths, shown = self.widths, list(range(len(self.head)))

        def rank(at: int) -> int:
            return self.ranks.get(self.head[at], 0)

        while sum(widths[at] for at in shown) > width and any(map(rank, shown)):
            shown.remove(max(reversed(shown), key=rank))
        return self.only(shown)

    def parts(self, width: int) -> list[DataTable]:
        """Return as many tables as its columns take, each with the first ``heads``."""
        widths, heads = self.widths, list(range(self.heads))
        if not heads or sum(widths) <= width:
            return [self]
        found = [list(heads)]
        for at in range(self.heads, len(widths)):
            if found[-1] != heads and sum(widths[one] for one in (*found[-1], at)) > width:
                found.append(list(heads))
            found[-1].append(at)
        return list(map(self.only, found))

    def for_page(self) -> list[tuple[str, list[Row]]]:
        """Return the headings of groups, each with its rows; a drawn line is their last cell."""
        rows = list(self.rows)
        if self.drawn is not None:
            lines = self.drawn[1](DRAWN_ON_PAGES)
            rows = [[*row, Cell(str(line), "drawn")] for row, line in zip(rows, lines, strict=True)]
        left = iter(rows)
        groups = self.groups or {"": len(rows)}
        return [(heading, [next(left) for _ in range(count)]) for heading, count in groups.items()]


@dataclass(frozen=True)
class Headline:
    """A result that leads the eye: look, sign, word and the sentence that they sum up."""

    look: str
    sign: str
    word: str
    sentence: str


@dataclass(frozen=True)
class Sentences:
    """Sentences of a kind: a line each on the terminal, a list on a page.

    A cell begins a sentence for each of those below it. ``title``: above them, ``name``: its
    anchor; ``mark``: before each on the terminal; ``folded``: on a page they open on request.
    """

    sentences: Sequence[object]
    title: str = ""
    look: str = ""
    mark: str = ""
    name: str = ""
    folded: bool = False

    def lines(self) -> Iterator[str]:
        """Yield each sentence with its mark, one for each of those below a cell."""
        for sentence in self.sentences:
            for each in getattr(sentence, "below", ()) or [""]:
                yield f"{self.mark}{sentence}: {each}" if each else f"{self.mark}{sentence}"


Block = Union[
    str,
    Cell,
    Mapping[str, object],
    Headline,
    Sentences,
    DataTable,
    "ChartFigure",
    Sequence["ChartFigure"],
    Sequence[Cell],
]
"""Charts of a sequence stand side by side; cells of one are links to parts of the page."""
Links = Mapping[tuple[object, ...], str]
"""Links to cases' charts, by the cases' keys."""
Part = tuple[str, "str | Cell", Sequence[Block]]
"""Anchor, title and blocks of a part of a page."""
