"""The terminal: sentences, progress and tables; loading it loads no results."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from rich.console import Console
from rich.segment import Segment, Segments
from rich.text import Text

from netproof.present.wording import visible

_WIDTH_OFF_TERMINAL = 140
_BETWEEN_COLUMNS = 2

T = TypeVar("T")


def console(*, stderr: bool = False) -> Console:
    """Return a console as wide as the terminal, or without one wide enough for the tables."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else _WIDTH_OFF_TERMINAL
    # Text in brackets, or between colons, is not markup: a card's name for instance.
    return Console(
        file=stream, width=width, highlight=False, soft_wrap=False, markup=False, emoji=False
    )


def say(out: Console, sentence: str, style: str = "") -> None:
    """Print a sentence on a line of its own, which the terminal may wrap.

    Output of a job may be part of it, so control characters are shown by their code.
    """
    out.print(Text(visible(sentence), style), soft_wrap=True)


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show on the terminal what is being done, until it is done; do nothing without a terminal."""
    err = console(stderr=True)
    if not err.is_terminal:
        yield
        return
    with err.status(Text(what)):
        yield


def tracked(items: Sequence[T], what: str) -> Iterable[T]:
    """Return the items, with a progress bar on the terminal, if there is one."""
    from rich.progress import track

    err = console(stderr=True)
    if not err.is_terminal:
        return items
    return track(items, what, console=err, transient=True)


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


def parts(
    alongside: Sequence[TableColumn], columns: Sequence[TableColumn], width: int
) -> list[list[TableColumn]]:
    """Return the columns of as many tables as they take, those of ``alongside`` in each."""
    left, found = width - width_of(alongside), []
    while columns:
        taken = 1
        while taken < len(columns) and width_of(columns[: taken + 1]) <= left:
            taken += 1
        found.append([*alongside, *columns[:taken]])
        columns = columns[taken:]
    return found
