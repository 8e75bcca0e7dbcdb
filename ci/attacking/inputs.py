"""Mutated inputs: recorded ones with faults drawn by a seed, and their outcomes."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data"


REFUSED, RIGHT, WRITTEN, WRONG = "refused", "right", "as written", "wrong"
LARGEST = 10_000_000
"""Largest input in characters, so that writing it does not take the memory."""


@dataclass(frozen=True)
class Input:
    """A mutated input: its text, its origin, and whether it has to be refused."""

    text: str
    origin: str
    must_refuse: bool = False


Judge = Callable[[Input], str]
"""Reads an input; returns RIGHT, WRITTEN or the fault. NetproofError is a refusal."""


@dataclass(frozen=True)
class Attack:
    """A kind of input, with its maker and its judge."""

    name: str
    make: Callable[[random.Random], Input]
    judge: Judge


_ODD = (
    "\x00",
    "\x1b[31m",
    "é",
    "\udcff".encode("utf-8", "replace").decode(),
    "\r",
    "\t",
    "9" * 400,
)
_WORDS = ("nan", "inf", "-1", "1e999", "0", "0.00", "99999999999999999999", "-", "null", "[]", "{}")


def mutated(text: str, others: Sequence[str], draw: random.Random) -> str:
    """Put one to three faults into a text: in characters, lines, numbers, or from another text."""
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        text = draw.choice(_MUTATIONS)(text, others, draw)[:LARGEST]
    return text


def _place(text: str, draw: random.Random) -> int:
    return draw.randrange(len(text)) if text else 0


def _character(text: str, others: Sequence[str], draw: random.Random) -> str:
    at = _place(text, draw)
    return text[:at] + draw.choice("0123456789 .-#:,{}[]\"'\n*&!|>%@x") + text[at + 1 :]


def _odd(text: str, others: Sequence[str], draw: random.Random) -> str:
    at = _place(text, draw)
    return text[:at] + draw.choice(_ODD) + text[at:]


def _cut(text: str, others: Sequence[str], draw: random.Random) -> str:
    return text[: _place(text, draw)]


def _without(text: str, others: Sequence[str], draw: random.Random) -> str:
    at = _place(text, draw)
    return text[:at] + text[at + draw.randint(1, 40) :]


def _lines(text: str, others: Sequence[str], draw: random.Random) -> str:
    lines = text.splitlines(keepends=True) or [""]
    one, other = draw.randrange(len(lines)), draw.randrange(len(lines))
    kind = draw.randrange(4)
    if kind == 0:
        del lines[one]
    elif kind == 1:
        lines.insert(other, lines[one])
    elif kind == 2:
        lines[one], lines[other] = lines[other], lines[one]
    else:
        lines[one] = lines[one].rstrip("\n") * draw.choice((2, 50)) + "\n"
    return "".join(lines)


def _token(text: str, others: Sequence[str], draw: random.Random) -> str:
    at = _place(text, draw)
    begin = max(text.rfind(" ", 0, at), text.rfind("\n", 0, at), text.rfind(",", 0, at)) + 1
    end = min((found for mark in " \n," if (found := text.find(mark, begin)) >= 0), default=at)
    return text[:begin] + draw.choice(_WORDS) + text[max(end, begin) :]


def _digit(text: str, others: Sequence[str], draw: random.Random) -> str:
    at = _place(text, draw)
    where = next((i for i in range(at, len(text)) if text[i].isdigit()), None)
    if where is None:
        return text
    return text[:where] + draw.choice("0123456789") + text[where + 1 :]


def _spliced(text: str, others: Sequence[str], draw: random.Random) -> str:
    other = draw.choice(others)
    return text[: _place(text, draw)] + other[_place(other, draw) :]


def _nested(text: str, others: Sequence[str], draw: random.Random) -> str:
    at = _place(text, draw)
    return text[:at] + draw.choice("[{(") * draw.choice((30, 2000, 50_000)) + text[at:]


_MUTATIONS = (
    *(_character, _character, _digit, _digit, _digit, _token, _token, _lines, _lines, _lines),
    *(_cut, _without, _odd, _spliced, _nested),
)


def of_files(paths: Sequence[Path], special: Callable[..., Input | None] | None = None) -> Any:
    """Return a maker of inputs from files; ``special`` makes some that have to be refused."""
    return of_texts({str(path): path.read_text() for path in paths}, special)


def of_texts(texts: dict[str, str], special: Callable[..., Input | None] | None = None) -> Any:
    """Return a maker of inputs from texts by origin; otherwise as ``of_files``."""

    def make(draw: random.Random) -> Input:
        origin = draw.choice(list(texts))
        if special is not None and draw.random() < 0.2:
            made = special(texts[origin], origin, draw)
            if made is not None:
                return made
        return Input(mutated(texts[origin], list(texts.values()), draw), origin)

    return make
