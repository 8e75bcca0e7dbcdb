"""The terminal: what is printed, before anything is loaded that has results to print."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.text import Text

from netproof.present.characters import visible

_WIDTH_OFF_TERMINAL = 140


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
