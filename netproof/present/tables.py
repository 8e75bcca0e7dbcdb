"""Tables for the terminal."""

from __future__ import annotations

import sys
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from netproof.measurement.case import Case
from netproof.present.characters import visible
from netproof.present.terminal import say

MOST_DIFFERENCES = 10
"""Differences between nodes that are printed; the store and the report have all of them."""

_BETWEEN_COLUMNS = 2


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

    ``numbers``: the columns that hold numbers, from 0; ``caption``: below it, or empty.
    """

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: Container[int] = ()
    caption: str = ""

    def columns(self) -> list[TableColumn]:
        """Return the same by columns."""
        cells = zip(*self.rows, strict=True)
        return [
            TableColumn(title, column, right=place in self.numbers)
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
    table = Table(box=None, pad_edge=False, padding=(0, _BETWEEN_COLUMNS, 0, 0))
    for column in columns:
        table.add_column(
            Text(column.heading, "bold"),
            justify="right" if column.right else "left",
            no_wrap=True,
            min_width=column.width,
        )
    for row in range(len(columns[0].cells)) if rows is None else rows:
        table.add_row(*(_cell(column.cells[row]) for column in columns))
    width, out.width = out.width, max(out.width, width_of(columns))
    out.print(table, crop=False, no_wrap=True)
    out.width = width


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


def print_answer(title: str, answer: Mapping[str, Any], out: Console) -> None:
    """Print the answer of an experiment: conclusion, settings, table and remarks."""
    say(out, title, "bold")
    for sentence in answer["conclusion"]:
        say(out, sentence, answer["style"])
    for name, how in answer["settings"].items():
        say(out, f"{name}: {how}")
    if answer["table"] is not None:
        print_table(answer["table"].columns(), out)
    for sentence in answer["remarks"]:
        say(out, sentence)


def case_columns(cases: Iterable[Case]) -> list[TableColumn]:
    """Return partition, environment, benchmark and ranks of cases."""
    named = [(one.partition, one.environment, benchmark_name(one), str(one.ranks)) for one in cases]
    head = ("partition", "environment", "benchmark", "ranks")
    return DataTable(head, named, (3,)).columns()


def _cell(cell: str | Text) -> Text:
    return Text(visible(cell)) if isinstance(cell, str) else cell


def benchmark_name(case: Case) -> str:
    """Return a case without its configuration: ``NetPIPE TCP between oneway``."""
    # The registry loads every parser.
    from netproof.benchmarks import registry

    return registry.of(case).words(case)
