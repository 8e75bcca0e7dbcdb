"""Documents: an answer is made once, of blocks, and the terminal and pages render the same ones.

A block is a sentence, facts by their names, an outcome, sentences of a kind, a table, or a chart,
which the terminal leaves out. What renders them computes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Union

from rich.console import Console
from rich.text import Text

from netproof.present.terminal import EVERY, TableColumn, fitting, parts, print_table, say, width_of

if TYPE_CHECKING:
    from netproof.present.html.charts import ChartFigure

__all__ = ["EVERY", "Block", "Cell", "DataTable", "Headline", "Links", "Part", "Sentences", "show"]

STYLES = {
    **{"failed": "red", "inconclusive": "yellow", "warned": "yellow", "absent": "yellow"},
    **{"passed": "green", "faint": "dim", "stored": "dim", "strong": "bold"},
}
"""Styles of the terminal by the looks of pages, which are the style sheet's classes."""

_LEAST_LINE, _LONGEST_LINE = 10, 60
"""Columns of the terminal that a drawn line takes."""

DRAWN_ON_PAGES = 24
"""Blocks of a drawn line on a page."""


@dataclass(frozen=True)
class Cell:
    """A text with a look of ``STYLES``; ``heading`` and ``code`` are looks too.

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


@dataclass(frozen=True)
class DataTable:
    """A table by rows; the first cell heads its row.

    ``numbers``: the columns that hold numbers, from 0; ``caption``: below it, or empty; ``ranks``:
    of columns that a narrow terminal may lack, as ``TableColumn`` has them, by their headings;
    ``groups``: headings of consecutive rows, with how many each has; ``drawn``: heading of a last
    column, and how its lines are drawn in a room; ``heads``: columns that each part of a table has
    which a narrow terminal splits, 0 to split none; ``fold``: on a page it opens on request by
    this, and a terminal lacks it.
    """

    head: Sequence[str]
    rows: Sequence[Sequence[str | Cell]]
    numbers: Container[int] = ()
    caption: str = ""
    ranks: Mapping[str, int] = field(default_factory=dict)
    groups: Mapping[str, int] = field(default_factory=dict)
    drawn: tuple[str, Callable[[int], Sequence[str | Text]]] | None = None
    heads: int = 0
    fold: str = ""

    @property
    def titles(self) -> list[str]:
        """Headings of all columns, a drawn one too."""
        return [*self.head, *([self.drawn[0]] if self.drawn else [])]

    @property
    def figures(self) -> bool:
        """Whether all columns but the first hold numbers."""
        return len(self.head) > 1 and all(at in self.numbers for at in range(1, len(self.head)))

    def columns(self) -> list[TableColumn]:
        """Return the same by columns."""
        columns = zip(*self.rows, strict=True) if self.rows else [()] * len(self.head)
        return [
            TableColumn(
                title, list(map(_styled, cells)), self.ranks.get(title, 0), at in self.numbers
            )
            for at, (title, cells) in enumerate(zip(self.head, columns, strict=True))
        ]

    def for_page(self) -> list[tuple[str, list[Sequence[str | Cell]]]]:
        """Return the headings of groups, each with its rows; a drawn line is their last cell."""
        rows: list[Sequence[str | Cell]] = list(self.rows)
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

    ``title``: above them; ``mark``: before each on the terminal; ``name``: the title's anchor;
    ``folded``: on a page they open on request by their title, and a terminal lacks them.
    """

    sentences: Sequence[object]
    title: str = ""
    look: str = ""
    mark: str = ""
    name: str = ""
    folded: bool = False


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


def _styled(cell: str | Cell) -> str | Text:
    look = STYLES.get(cell.look, "") if isinstance(cell, Cell) else ""
    return Text(str(cell), look) if look else str(cell)


def show(blocks: Iterable[Block], out: Console) -> None:
    """Print blocks on the terminal."""
    for one in blocks:
        match one:
            case Cell(look="heading"):
                out.print()
                say(out, one.text, "bold")
            case str() | Cell():
                say(out, str(one), STYLES.get(getattr(one, "look", ""), ""))
            case Mapping():
                for name, value in one.items():
                    say(out, f"{name}: {value}")
            case Headline():
                say(out, f"{one.word.upper()}: {one.sentence}", f"bold {STYLES.get(one.look, '')}")
            case Sentences(folded=False) if one.sentences:
                if one.title:
                    out.print()
                    say(out, one.title, "bold")
                for sentence in one.sentences:
                    look = getattr(sentence, "look", "") or one.look
                    say(out, f"{one.mark}{sentence}", STYLES.get(look, ""))
            case DataTable(fold="") if one.rows:
                _show_table(one, out)


def _show_table(table: DataTable, out: Console) -> None:
    columns = fitting(table.columns(), out.width - (_LEAST_LINE if table.drawn else 0))
    if table.drawn is not None:
        heading, draw = table.drawn
        room = min(max(out.width - width_of(columns), _LEAST_LINE), _LONGEST_LINE)
        columns.append(TableColumn(heading, draw(room), right=False))
    tables = [columns]
    if table.heads and width_of(columns) > out.width:
        tables = parts(columns[: table.heads], columns[table.heads :], out.width)
    for shown in tables:
        begin = 0
        for heading, count in (table.groups or {"": len(table.rows)}).items():
            if table.groups or len(tables) > 1:
                out.print()
            if heading:
                say(out, heading, "bold")
            print_table(shown, out, range(begin, begin + count))
            begin += count
    if table.caption:
        say(out, table.caption, "dim")
