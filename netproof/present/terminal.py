"""The terminal: sentences and progress; loading it loads no results."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from rich.console import Console
from rich.text import Text

from netproof.present.wording import visible

_WIDTH_OFF_TERMINAL = 140

T = TypeVar("T")


def console(*, stderr: bool = False) -> Console:
    """Return a console as wide as the terminal, or without one wide enough for the tables."""
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
    out = out or console(stderr=stderr)
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
