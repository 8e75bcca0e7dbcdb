"""The terminal: documents, sentences and progress. Loading it loads neither results nor rich."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from netproof.present.document import (
    BETWEEN_COLUMNS,
    Block,
    Cell,
    DataTable,
    Headline,
    Row,
    Sentences,
)
from netproof.present.wording import visible

if TYPE_CHECKING:
    from rich.console import Console

STYLES = {
    **{"failed": "red", "inconclusive": "yellow", "warned": "yellow", "absent": "yellow"},
    **{"passed": "green", "faint": "dim", "stored": "dim", "strong": "bold"},
}
"""Styles by the looks of pages, which are the style sheet's classes."""

_WIDTH_OFF_TERMINAL = 140
_LEAST_LINE, _LONGEST_LINE = 10, 60
"""Columns that a drawn line takes."""

T = TypeVar("T")


def console(*, stderr: bool = False) -> Console:
    """Return a console as wide as the terminal, or without one wide enough for the tables."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else _WIDTH_OFF_TERMINAL
    # Text in brackets, or between colons, is not markup: a card's name for instance.
    return Console(
        file=stream, width=width, highlight=False, soft_wrap=False, markup=False, emoji=False
    )


def say(
    sentence: str, style: str = "", out: Console | None = None, *, stderr: bool = False
) -> None:
    """Print a sentence on a line of its own, which the terminal may wrap.

    Output of a job may be part of it, so control characters are shown by their code.
    """
    from rich.text import Text

    out = out or console(stderr=stderr)
    out.print(Text(visible(sentence), style), soft_wrap=True)


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show on the terminal what is being done, until it is done; do nothing without a terminal."""
    err = console(stderr=True)
    if not err.is_terminal:
        yield
        return
    from rich.text import Text

    with err.status(Text(what)):
        yield


def tracked(items: Sequence[T], what: str) -> Iterable[T]:
    """Return the items, with a progress bar on the terminal, if there is one."""
    from rich.progress import track

    err = console(stderr=True)
    if not err.is_terminal:
        return items
    return track(items, what, console=err, transient=True)


def show(blocks: Iterable[Block], out: Console | None = None) -> None:
    """Print blocks on the terminal."""
    out = out or console()
    for one in blocks:
        match one:
            case Cell(look="heading"):
                out.print()
                say(one.text, "bold", out)
            case str() | Cell():
                say(str(one), STYLES.get(getattr(one, "look", ""), ""), out)
            case Mapping():
                wide = max(map(len, one), default=0) + BETWEEN_COLUMNS
                for name, value in one.items():
                    for each in value if isinstance(value, list) else [value]:
                        _say_beside(name, str(each), wide, out)
                        name = ""
            case Headline():
                say(f"{one.word.upper()}: {one.sentence}", f"bold {STYLES.get(one.look, '')}", out)
            case Sentences() if one.sentences:
                if one.title:
                    out.print()
                    say(one.title, "bold", out)
                for sentence in one.sentences:
                    look = getattr(sentence, "look", "") or one.look
                    for line in replace(one, sentences=[sentence]).lines():
                        say(line, STYLES.get(look, ""), out)
            case DataTable() if one.rows:
                if one.fold:
                    out.print()
                    say(one.fold, "bold", out)
                _show_table(one, out)


def _say_beside(name: str, text: str, wide: int, out: Console) -> None:
    """Print a text beside its name, its further lines below its first."""
    import textwrap

    room = max(out.width - wide, _LONGEST_LINE)
    for line in textwrap.wrap(text, room, break_on_hyphens=False, break_long_words=False) or [""]:
        say(f"{name:{wide}}{line}", out=out)
        name = ""


def _show_table(table: DataTable, out: Console) -> None:
    ranks = [table.ranks.get(name, 0) for name in table.head]
    wanted = (wide for wide, rank in zip(table.widths, ranks, strict=True) if rank < max(ranks))
    if table.names and sum(wanted) > out.width:
        figures = table.only(range(table.names, len(table.head))).fitting(out.width)
        print_rows(figures, out, range(0))
        hidden = [one for one in table.head[table.names :] if one not in figures.head]
        for at, row in enumerate(table.rows):
            say("  ".join(map(str, row[: table.names])), out=out)
            print_rows(figures, out, range(at, at + 1), head=False)
        _say_hidden(hidden, out)
        return
    shown = table.fitting(out.width - (_LEAST_LINE if table.drawn else 0))
    if table.drawn is not None:
        room = min(max(out.width - sum(shown.widths), _LEAST_LINE), _LONGEST_LINE)
        rows = [[*row, line] for row, line in zip(shown.rows, table.drawn[1](room), strict=True)]
        shown = replace(shown, head=shown.titles, rows=rows)
    tables = shown.parts(out.width)
    for one in tables:
        begin = 0
        for heading, count in (table.groups or {"": len(table.rows)}).items():
            if table.groups or one is not tables[0]:
                out.print()
            if heading:
                say(heading, "bold", out)
            print_rows(one, out, range(begin, begin + count))
            begin += count
    _say_hidden([one for one in table.head if one not in shown.head], out)
    if table.caption:
        say(table.caption, "dim", out)


def _say_hidden(headings: list[str], out: Console) -> None:
    if headings:
        say(f"no room here for {', '.join(headings)}: a wider terminal shows them", "dim", out)


def print_rows(table: DataTable, out: Console, rows: range, *, head: bool = True) -> None:
    """Print these rows, as wide as all take; on a narrower terminal lines wrap, nothing is cut."""
    from rich.segment import Segment, Segments
    from rich.text import Text

    # Rich's own tables take seconds to lay thousands of rows out, and cut cells where it is narrow.
    heads = [heading.split("\n") for heading in table.head if head]
    lines: list[Row] = [
        [Cell(several[at] if at < len(several) else "", "strong") for several in heads]
        for at in range(max(map(len, heads), default=0))
    ]
    lines += [table.rows[row] for row in rows]
    segments, plain = [], ""
    for line in lines:
        for at, (wide, cell) in enumerate(zip(table.widths, line, strict=True)):
            text = visible(str(cell)).replace("\n", " ")
            before, after = " " * (wide - BETWEEN_COLUMNS - len(text)), " " * BETWEEN_COLUMNS
            if at not in table.numbers:
                before, after = "", before + after
            style = STYLES.get(cell.look, "") if isinstance(cell, Cell) else ""
            if not style and not isinstance(cell, Text):
                plain += before + text + after
                continue
            # A line with parts of its own styles is printed in these.
            spans = cell if isinstance(cell, Text) else Text(text, style)
            segments += [Segment(plain + before), *spans.render(out)]
            plain = after
        plain = plain.rstrip(" ") + "\n"
    out.print(Segments([*segments, Segment(plain)]), end="", crop=False)
