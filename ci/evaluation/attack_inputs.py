"""Mutated inputs: recorded ones with faults drawn by a seed, and judges of what is read of them."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from ci.evaluation.testbed import ROOT
from netproof.benchmarks import outputs
from netproof.benchmarks.interface import GUESS, Output, Table
from netproof.errors import NetproofError
from netproof.intake import models

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


_ODD = ("\x00", "\x1b[31m", "é", "?", "\r", "\t", "9" * 400)
_WORDS = ("nan", "inf", "-1", "1e999", "0", "0.00", "99999999999999999999", "-", "null", "[]", "{}")


_MUTATIONS = (
    *("character", "character", "digit", "digit", "digit", "token", "token", "lines", "lines"),
    *("lines", "cut", "without", "odd", "spliced", "nested"),
)


def mutated(text: str, others: Sequence[str], draw: random.Random) -> str:
    """Put one to three faults into a text: in characters, lines, numbers, or from another text."""
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        kind = draw.choice(_MUTATIONS)
        if kind == "lines":
            text = _with_lines(text, draw)[:LARGEST]
            continue
        other = draw.choice(others) if kind == "spliced" else ""
        at = draw.randrange(len(text)) if text else 0
        text = _mutated_at(at, kind, text, other, draw)[:LARGEST]
    return text


def _mutated_at(at: int, kind: str, text: str, other: str, draw: random.Random) -> str:
    begin, rest = text[:at], text[at:]
    if kind == "character":
        return begin + draw.choice("0123456789 .-#:,{}[]\"'\n*&!|>%@x") + rest[1:]
    if kind == "odd":
        return begin + draw.choice(_ODD) + rest
    if kind == "without":
        return begin + rest[draw.randint(1, draw.choice((40, 4000))) :]
    if kind == "digit":
        where = next((place for place, one in enumerate(rest) if one.isdigit()), None)
        if where is None:
            return text
        return begin + rest[:where] + draw.choice("0123456789") + rest[where + 1 :]
    if kind == "token":
        first = max(begin.rfind(mark) for mark in " \n,") + 1
        end = min((found for mark in " \n," if (found := text.find(mark, first)) >= 0), default=at)
        return text[:first] + draw.choice(_WORDS) + text[max(end, first) :]
    if kind == "nested":
        return begin + draw.choice("[{(") * draw.choice((30, 2000, 50_000)) + rest
    return begin + (other[draw.randrange(len(other)) :] if other else "")


def _with_lines(text: str, draw: random.Random) -> str:
    """Remove, copy, swap or multiply a line."""
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


def of_texts(texts: dict[str, str], special: Callable[..., Input | None] | None = None) -> Any:
    """Return a maker of inputs from texts by origin; ``special`` makes some to refuse."""

    def make(draw: random.Random) -> Input:
        origin = draw.choice(list(texts))
        if special is not None and draw.random() < 0.2:
            made = special(texts[origin], origin, draw)
            if made is not None:
                return made
        return Input(mutated(texts[origin], list(texts.values()), draw), origin)

    return make


def _ways_round(origin: str) -> bool:
    return "both-ways" in origin


_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:e[-+]?[0-9]+)?")


def _believed(text: str, origin: str) -> list[tuple[bool, tuple, Table]]:
    """Return each table read: whether its program's last line is there, its kind, and itself."""
    log = outputs.read(outputs.shown(text), origin, bidirectional=_ways_round(origin))
    return [
        (
            output.ended and not _is_bare(output),
            (output.of.name, one.function, one.ranks, one.groups, one.group),
            one,
        )
        for output in log.outputs
        for one in output.tables
    ]


def _is_bare(output: Output) -> bool:
    """Check for tables of IMB without its banner."""
    return output.of.name == "imb" and output.version is None


def _points(table: Table) -> tuple:
    return tuple((row.size, row.time_us, row.failure) for row in table.rows)


def of_reader(given: Input, origins: Sequence[str]) -> str:
    """Judge what all readers together make of an input, with parts of any of ``origins``."""
    known = [one for origin in origins for one in _truth(origin)]
    found = _believed(given.text, given.origin)
    if not found:
        return REFUSED
    lines, outcome = outputs.shown(given.text).split("\n"), RIGHT
    for ended, kind, table in found:
        points, guessed = _points(table), GUESS in table.remark
        same = [one for other, one in known if guessed or other == kind]
        # A failed size makes no curve.
        if points in same or any(failure for *_, failure in points):
            continue
        # Only programs without a last line have beginnings that nothing tells from a whole.
        if not ended and any(points == one[: len(points)] for one in same):
            continue
        sizes = [point[0] for point in points]
        for other, one in _truth(given.origin):
            # One of another text has nothing to do with it.
            if other != kind or set(points).isdisjoint(one):
                continue
            there = [point[0] for point in one]
            within = [size for size in there if sizes[0] <= size <= sizes[-1]]
            # Of sizes from a file of lengths only that file knows how many there are, and without
            # its banner nothing says at which size IMB began, or what followed 0.
            listed = "lengths were user defined" in given.text
            if not ended and len(sizes) > 1:
                within = [size for size in within if size in sizes or size > sizes[1]]
            if set(sizes) < set(there) and (ended or sizes != within) and not listed:
                return f"{kind} lacks sizes: {sorted({*there} - {*sizes})}"
        for row in table.rows:
            # JSON has no lines.
            words = set(
                map(float, _NUMBER.findall(lines[row.line - 1] if row.line else given.text))
            )
            stated = [one for one in row.values.values() if isinstance(one, float)]
            derived = kind[0] in ("mpigraph", "linktest", "iperf3")
            if "3.7.2" in given.origin:
                # Files of NetPIPE 3 have seconds, and both directions together.
                stated.append(row.size * (2 if _ways_round(given.origin) else 1))
                words |= {round(1e6 * word, 9) for word in words}
            if not row.failure and not derived and not set(stated) <= words:
                return f"line {row.line} says {sorted(words)[:20]}, and read was {row}"
        outcome = WRITTEN
    return outcome


@cache
def _truth(origin: str) -> list[tuple[tuple, tuple]]:
    text = outputs.text_of(Path(origin))
    return [(kind, _points(table)) for _, kind, table in _believed(text, origin)]


def _is_read(path: Path) -> bool:
    try:
        _believed(path.read_text(), str(path))
    except NetproofError:
        return False
    return True


def _pattern(draw: random.Random) -> Input:
    def part(depth: int) -> str:
        kind = draw.randrange(7 if depth else 3)
        if kind < 3:
            return draw.choice(("a", "[a-z]", ".", "\\w", "gige", "x|y", "[a-zA-Z0-9 ]", "\\d"))
        if kind == 3:
            return f"({part(depth - 1)}|{part(depth - 1)})"
        if kind == 4:
            return part(depth - 1) + part(depth - 1)
        return f"({part(depth - 1)}){draw.choice(('*', '+', '?', '{2,9}', '{40}', '*?', '{1,}'))}"

    return Input(part(draw.randint(1, 6)) + draw.choice(("", "!", "$", "z")), "made")


def _matched(given: Input) -> str:
    for search in (False, True):
        taken = models.expression(given.text, search=search)
        for text in ("a" * 60, "gige openmpi-5.0 IMB Alltoallv 64 ranks", "ab" * 30 + "?"):
            taken.search(text) if search else taken.fullmatch(text)
    return RIGHT


def of_outputs() -> tuple[Attack, ...]:
    """Return the attacks on the parsers of benchmarks' outputs, and on a site's patterns."""
    return (*map(_of_program, READERS), Attack("patterns", _pattern, _matched))


SMALL = 8000
"""Bytes of a recorded output that is mutated."""

READERS = {
    "NetPIPE file": ("netpipe/3.7.2/*.out",),
    "NetPIPE print": ("netpipe/3.7.2/*.stderr",),
    "IMB output": ("imb/*/*.txt", "formats/imb-*"),
    "OMB output": ("osu/*/*.out",),
    "NetPIPE 5 print": ("netpipe/5.x/*.stdout", "formats/netpipe-5*"),
    **{
        name: (f"formats/{name.split('-', maxsplit=1)[0].lower()}-*",)
        for name in ("nccl-tests", "perftest", "iperf3", "GPCNeT")
    },
    "mpiGraph": ("formats/mpigraph*",),
    "LinkTest": ("formats/linktest*",),
}
"""Recorded outputs, by the name of the attack on their reader."""


@cache
def origins_of(name: str) -> list[str]:
    """Return the recorded outputs of a program that are read whole."""
    found = [path for one in READERS[name] for path in sorted(DATA.glob(one))]
    # Many small inputs try more than few large ones.
    small = [path for path in found if path.stat().st_size < SMALL]
    return [str(path) for path in small if _is_read(path)]


def _of_program(name: str) -> Attack:
    origins = origins_of(name)
    texts = {origin: Path(origin).read_text() for origin in origins}
    return Attack(name, of_texts(texts), partial(of_reader, origins=origins))
