"""Tables for the terminal."""

from __future__ import annotations

import sys
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from rich.console import Console
from rich.segment import Segment, Segments
from rich.text import Text

from netproof.measurement.case import Case
from netproof.present.characters import visible
from netproof.present.terminal import say

_BETWEEN_COLUMNS = 2

T = TypeVar("T")


@dataclass(frozen=True)
class TableColumn:
    """A column of a table that has to fit: its heading, and its cells as plain text or styled.

    ``rank``: if columns do not fit together the one with the highest goes first; 0 stays.
    """

    heading: str
    cells: Sequence[str | Text]
    rank: int = 0
    right: bool = True

    @property
    def width(self) -> int:
        """Columns of the terminal for its widest line."""
        return max(
            len(line) for cell in (self.heading, *self.cells) for line in str(cell).split("\n")
        )


EVERY = range(sys.maxsize)
"""All columns of a table."""


@dataclass(frozen=True)
class DataTable:
    """A table of text, by rows; the first cell heads its row.

    ``numbers``: the columns that hold numbers, from 0; ``caption``: below it, or empty; ``ranks``:
    of columns that a narrow terminal may lack, as ``TableColumn`` has them, by their headings.
    """

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: Container[int] = ()
    caption: str = ""
    ranks: Mapping[str, int] = field(default_factory=dict)

    @property
    def figures(self) -> bool:
        """Whether all columns but the first hold numbers."""
        return len(self.head) > 1 and all(at in self.numbers for at in range(1, len(self.head)))

    def columns(self) -> list[TableColumn]:
        """Return the same by columns."""
        cells = zip(*self.rows, strict=True)
        return [
            TableColumn(title, column, self.ranks.get(title, 0), right=place in self.numbers)
            for place, (title, column) in enumerate(zip(self.head, cells, strict=True))
        ]


def width_of(columns: Sequence[TableColumn]) -> int:
    """Return how many columns of the terminal a table of these takes."""
    return sum(column.width + _BETWEEN_COLUMNS for column in columns)


def fitting(columns: Sequence[TableColumn], width: int) -> list[TableColumn]:
    """Return the columns that fit together into ``width``, but all that have to stay."""
    shown = list(columns)
    while width_of(shown) > width and any(column.rank for column in shown):
        shown.remove(max(reversed(shown), key=lambda column: column.rank))
    return shown


def print_table(columns: Sequence[TableColumn], out: Console, rows: range | None = None) -> None:
    """Print the columns, or these of their rows, as wide as all rows need.

    On a narrower terminal lines wrap, and nothing is cut.
    """
    # Rich's own tables take seconds to lay thousands of rows out, and cut cells where it is narrow.
    widths = [column.width for column in columns]
    heads = [column.heading.split("\n") for column in columns]
    lines: list[list[str | Text]] = [
        [Text(head[number] if number < len(head) else "", "bold") for head in heads]
        for number in range(max(map(len, heads)))
    ]
    for row in range(len(columns[0].cells)) if rows is None else rows:
        lines.append([column.cells[row] for column in columns])
    segments, plain = [], ""
    for line in lines:
        for column, wide, cell in zip(columns, widths, line, strict=True):
            text = visible(str(cell)).replace("\n", " ")
            before, after = " " * (wide - len(text)), " " * _BETWEEN_COLUMNS
            if not column.right:
                before, after = "", before + after
            if isinstance(cell, str):
                plain += before + text + after
                continue
            segments += [Segment(plain + before), *_styled(cell, text, out)]
            plain = after
        plain = plain.rstrip(" ") + "\n"
    out.print(Segments([*segments, Segment(plain)]), end="", crop=False)


def _styled(cell: Text, text: str, out: Console) -> Iterable[Segment]:
    """Return a cell in its style; one with parts of its own styles in these."""
    return cell.render(out) if cell.spans else [Segment(text, out.get_style(cell.style or "none"))]


def print_by_heading(
    columns: Sequence[TableColumn], counts: Mapping[str, int], out: Console
) -> None:
    """Print consecutive rows below headings, ``counts`` of them each, as wide as all need."""
    begin = 0
    for heading, count in counts.items():
        out.print()
        if heading:
            say(out, heading, "bold")
        print_table(columns, out, range(begin, begin + count))
        begin += count


def print_parts(
    alongside: Sequence[TableColumn],
    columns: Sequence[TableColumn],
    title: str | None,
    out: Console,
) -> None:
    """Print the columns in as many tables as they take, those of ``alongside`` in each."""
    left = out.width - width_of(alongside)
    while columns:
        taken = 1
        while taken < len(columns) and width_of(columns[: taken + 1]) <= left:
            taken += 1
        if title:
            say(out, title, "bold")
        print_table([*alongside, *columns[:taken]], out)
        out.print()
        columns = columns[taken:]


def print_answer(answer: Mapping[str, Any], out: Console) -> None:
    """Print the answer of an experiment: title, conclusion, settings, table and remarks."""
    say(out, answer["title"], "bold")
    for sentence in answer["conclusion"]:
        say(out, sentence, answer["style"])
    for name, how in answer["settings"].items():
        say(out, f"{name}: {how}")
    if answer["table"] is not None:
        print_table(fitting(answer["table"].columns(), out.width), out)
    for sentence in answer["remarks"]:
        say(out, sentence)


def case_columns(cases: Iterable[Case]) -> list[TableColumn]:
    """Return partition, environment, benchmark and ranks of cases."""
    named = [(one.partition, one.environment, benchmark_name(one), str(one.ranks)) for one in cases]
    head = ("partition", "environment", "benchmark", "ranks")
    return DataTable(head, named, (3,)).columns()


def benchmark_name(case: Case) -> str:
    """Return a case without its configuration: ``NetPIPE TCP inter-node oneway``."""
    # The registry loads every parser.
    from netproof.benchmarks import registry

    return registry.of(case).words(case)
