"""Read lines and numbers exactly as C's printf writes them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, NoReturn

from netproof.errors import ParseError, shortened

_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")

ROUNDED_TO_ZERO = 0.005
"""Rate, in MB/s or messages per second, below which 0.00 is printed."""

ROW = re.compile(
    r" *[0-9]+ +(?:[0-9]+ +)?[0-9]+\.[0-9]{2}(?: .*)?"
    r"| *[0-9]+: +(?:[0-9]+ bytes|[0-9.]+ +[KMG]?B) +[0-9]+.*"
    r"| *[0-9]+ +[0-9]+ +(?:u?int|float|half|double|bfloat|fp8|f8)\w* +.*"
)
"""A row of a benchmark's table, wherever it stands."""

CUT_SHORT = "the last line has no end: the file is cut short"


BEGINS, ENDED = "netproof program begins\n", "netproof program ended\n"
"""Lines that ``rank.sh`` prints before a launch's program and after it."""


def of_program(text: str) -> tuple[str, bool]:
    """Return what a launch's program printed, and whether it is known to have ended by itself.

    Blank is what prologs, wrappers and modules printed before it; what they did after it is left
    out. A text without ``rank.sh``'s lines is all the program's.
    """
    before, begins, printed = text.rpartition(BEGINS)
    printed, ended, _ = printed.partition(ENDED)
    return re.sub(".", " ", before + begins) + printed, bool(ended)


class TableError(ParseError):
    """A fault of one table: the others of its file can be believed."""


class Lines:
    """Lines of one file, read one after the other; line numbers count from 1."""

    def __init__(self, text: str, path: str) -> None:
        """Split ``text``; ParseError where it is empty.

        Whoever takes the last line has a TableError if it has no end: the program was stopped while
        it printed.
        """
        self.path = path
        if not text.strip():
            raise ParseError(path, 0, "", "is empty: the benchmark printed nothing")
        self._lines = text.split("\n")
        self._whole = len(self._lines) - 1
        if not self._lines[-1]:
            del self._lines[-1]
        self._next = 0

    def __len__(self) -> int:
        """Return the number of lines."""
        return len(self._lines)

    @property
    def cut_short(self) -> bool:
        """Check whether the last line has no end."""
        return len(self._lines) > self._whole

    @property
    def number(self) -> int:
        """Return the number of the line taken last, 0 before the first."""
        return self._next

    def between(self, first: int, last: int) -> list[str]:
        """Return lines from one number to another, both included."""
        return self._lines[first - 1 : last]

    def go_to(self, number: int) -> None:
        """Make the line of that number the next."""
        self._next = number - 1

    def _take_one(self) -> None:
        self._next += 1
        if self._next > self._whole:
            self.refuse(CUT_SHORT, TableError)

    def peek(self) -> str | None:
        """Return the next line without taking it, None at the end."""
        return self._lines[self._next] if self._next < len(self._lines) else None

    def take(self, expected: str) -> str:
        """Take the next line; at the end, ParseError that ``expected`` is missing."""
        line = self.peek()
        if line is None:
            reason = f"the file ends here, cut short: {expected} is missing"
            raise TableError(self.path, self.number, "", reason)
        self._take_one()
        return line

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Take the next line if all of it matches ``pattern``, else leave it there."""
        line = self.peek()
        found = pattern.fullmatch(line) if line is not None else None
        if found:
            self._take_one()
        return found

    def expect(
        self, pattern: re.Pattern[str], what: str, fault: type[ParseError] = ParseError
    ) -> re.Match[str]:
        """Take the next line, which has to match whole; ``fault`` that names ``what``."""
        found = self.match(pattern)
        if not found:
            self.refuse_next(what, f"expected {what}", fault)
        return found

    def refuse_next(self, what: str, reason: str, fault: type[ParseError] = TableError) -> NoReturn:
        """Raise an error about the next line; at the end, that ``what`` is missing."""
        self.take(what)
        self.refuse(reason, fault)

    def skip_blank(self) -> int:
        """Take the empty lines that come next and return their number."""
        before = self._next
        while (line := self.peek()) is not None and not line.strip():
            self._take_one()
        return self._next - before

    def refuse(self, reason: str, fault: type[ParseError] = ParseError) -> NoReturn:
        """Raise an error about the line taken last."""
        text = self._lines[self._next - 1] if self._next else ""
        raise fault(self.path, self._next, text, reason)


def printed_lines(lines: Iterable[str]) -> tuple[str, ...]:
    """Return the lines that are neither blank nor rules."""
    return tuple(line for line in lines if re.search(r"\w", line))


Layout = tuple[tuple[str, str], ...]
"""Columns of a table: name, and format such as ``>13.2f``; that of a word has no point."""


@dataclass(frozen=True)
class Row:
    """A row: bytes of a message, 0 without, and its other figures by the names of their columns.

    ``time_us``: per call, or of one message of a rate; ``failure``: the benchmark's message in
    place of figures, or that the data arrived wrong.
    """

    line: int
    size: int
    values: Mapping[str, float]
    time_us: float = 0
    failure: str = ""


class Header(NamedTuple):
    """The layout of a table, and whether its blanks are ``exact``, or only its words are there."""

    layout: Layout
    exact: bool


def take_header(lines: Lines, layouts: Iterable[Layout], *, may_lack: bool) -> Header | None:
    """Take the header of a table, None where it has none of these ``layouts``.

    ``may_lack``: it may be missing, so that a row comes next, whose layout is the first with as
    many columns.
    """
    every, line = tuple(layouts), lines.peek() or ""
    if may_lack and re.match(r" *[0-9]", line):
        words = len(line.split())
        if fitting := [one for one in every if len(one) == words]:
            return Header(fitting[0], exact=False)
    lines.take("the header of a table")
    for exact in (True, False):
        for layout in every:
            header = "".join(f"{name:{form.partition('.')[0]}}" for name, form in layout)
            shown = line if layout[0][0].startswith("#") else line.removeprefix("# ")
            if shown.rstrip(" ") == header or (not exact and shown.split() == header.split()):
                return Header(layout, exact=exact)
    return None


def row_in(lines: Lines, header: Header, *, program: str) -> tuple[dict[str, float], str]:
    """Return the numbers of the row taken last, and its word, empty without one.

    ParseError unless ``program`` prints it like that. As its header was, the row is exact, or its
    words are.
    """
    line = lines.between(lines.number, lines.number)[0]
    tokens, word, printed = line.split(), "", ""
    _check_count(lines, tokens, [name for name, _ in header.layout])
    values: dict[str, float] = {}
    for (name, form), token in zip(header.layout, tokens, strict=True):
        if form.endswith("f"):
            values[name] = number(lines, token, name)
            printed += f"{values[name]:{form}}"
        else:
            word = token
            printed += f"{word:{form}}"
    if line.rstrip(" ") != printed and (header.exact or tokens != printed.split()):
        ends = " and ".join(str(found.end()) for found in re.finditer(r"\S+", printed))
        lines.refuse(
            f"is no row of columns as {program} prints them, which end at characters {ends}"
        )
    return values, word


def check_order(lines: Lines, before: int, size: int, doubles: str, *, again: bool = False) -> None:
    """Raise ParseError unless a size in bytes may follow another one.

    ``doubles``: the program whose sizes double, empty for any that increase; ``again``: the same
    size may follow.
    """
    if size < before or (size == before and not again):
        lines.refuse(f"{size} bytes after {before}: sizes must increase")
    if doubles and size != max(2 * before, 1):
        lines.refuse(f"{size} bytes after {before}: {doubles}'s sizes double, a row is missing")


def number(lines: Lines, token: str, name: str) -> float:
    """Return ``token`` as a finite, non-negative number; ParseError names the column."""
    if not _NUMBER.fullmatch(token) or math.isinf(value := float(token)):
        lines.refuse(f"{name} is {shortened(token)}, and not a finite number from 0 on")
    return value


def check_means(lines: Lines, values: Mapping[str, float], names: Sequence[str]) -> None:
    """Raise ParseError unless the mean lies between the fastest and the slowest rank's time.

    ``names``: columns of the least, most and mean; nothing is checked where one is missing.
    """
    if values.keys() >= {*names}:
        least, most, mean = (values[name] for name in names)
        # The mean is a sum of floats: it may round up where its terms do not.
        slack = 0.01 + 1e-9 * most
        if not least - slack <= mean <= most + slack or least > most:
            first, last, middle = (name.partition("[")[0].partition(" ")[0] for name in names)
            lines.refuse(f"expected {first} <= {middle} <= {last}".lower())


def half_a_unit(token: str) -> float:
    """Return half a unit of the last place of a printed number."""
    mantissa, _, exponent = token.partition("e")
    return 0.5 * 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))


def is_rate(rate: float, rate_error: float, amount: float, time: float, error: float) -> bool:
    """Check whether a rate follows from an amount and a time, both printed with these errors."""
    least = amount / (time + error) - rate_error
    most = amount / (time - error) + rate_error if time > error else math.inf
    return least * (1 - 1e-9) <= rate <= most * (1 + 1e-9)


def numbers(lines: Lines, tokens: Sequence[str], names: Sequence[str]) -> list[float]:
    """Return ``tokens`` as ``number`` does; ParseError unless there is one for each name."""
    _check_count(lines, tokens, names)
    return [number(lines, *one) for one in zip(tokens, names, strict=True)]


def _check_count(lines: Lines, tokens: Sequence[str], names: Sequence[str]) -> None:
    if len(tokens) != len(names):
        lines.refuse(f"expected the {len(names)} columns {' '.join(names)}")
