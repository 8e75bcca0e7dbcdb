"""Read files of outputs: of benchmarks, recognised by their content, and logs with several."""

from __future__ import annotations

import bisect
import codecs
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from netproof.benchmarks import logs, registry
from netproof.benchmarks.fixed import (
    BEGINS,
    CUT_SHORT,
    ROW,
    Lines,
    TableError,
    of_program,
    printed_lines,
)
from netproof.benchmarks.interface import Benchmark, Output, Table
from netproof.errors import NetproofError, ParseError, counted, shortened
from netproof.intake import disk

_LINE_END = re.compile(r"\r+\n|\r(?=#)")
"""Line ends of Windows, and a carriage return that only moved a terminal's cursor to a header."""
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")

_NEAR = 8
"""Lines after a fault in which the last words of a program that broke off are looked for."""


@dataclass(frozen=True)
class Log:
    """All outputs of a file.

    ``faults``: tables that cannot be believed; ``notes``: what was left out or guessed; a sentence
    each.
    """

    outputs: tuple[Output, ...]
    faults: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def printed(self) -> list[tuple[str, Table]]:
        """Return the benchmark and the curve of every table; those of one kind are numbered."""
        curves = [(output.of.name, one) for output in self.outputs for one in output.tables]
        kinds = [
            (name, one.function, one.ranks, one.direction, one.groups, one.group, one.remark)
            for name, one in curves
        ]
        there, so_far = Counter(kinds), Counter[tuple[object, ...]]()
        for place, (kind, (name, one)) in enumerate(zip(kinds, curves, strict=True)):
            so_far[kind] += 1
            if there[kind] > 1:
                number = f"{so_far[kind]} of {there[kind]} in its file"
                remark = ", ".join(filter(None, (one.remark, number)))
                curves[place] = (name, replace(one, remark=remark))
        return curves


_COMPRESSED = {
    b"\x1f\x8b": "gunzip",
    b"BZh": "bunzip2",
    b"\xfd7zXZ": "unxz",
    b"\x28\xb5\x2f\xfd": "unzstd",
    b"PK\x03\x04": "unzip",
}
"""Programs that unpack a file, by its first bytes."""


def text_of(path: Path) -> str:
    """Return an output file's content as ``shown``; ParseError where nothing can be read."""
    try:
        content = disk.read_bytes(path)
    except OSError as fault:
        raise ParseError(str(path), 0, "", f"cannot be read: {fault.strerror}") from fault
    for mark, unpack in _COMPRESSED.items():
        if content.startswith(mark):
            raise ParseError(str(path), 0, "", f"is compressed: unpack it first, with {unpack}")
    wide = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return shown(content.decode("utf-16" if wide else "utf-8-sig", "backslashreplace"))


def shown(text: str) -> str:
    """Return a text as a terminal shows it, without colours and blanks at ends of lines."""
    # A Markdown page has a backslash before the sign.
    text = text.replace("\ufeff#", "#").replace("\\#", "#")
    # The patterns begin with no letter to look for, and are slow.
    for sign, pattern, shown in (("\x1b", _COLOUR, ""), ("\r", _LINE_END, "\n")):
        if sign in text:
            text = pattern.sub(shown, text)
    return "\n".join(line.rstrip(" ") for line in text.expandtabs().split("\n"))


Form = tuple[Benchmark, str | None]
"""The benchmark, and its function if known, of tables that do not name them: ``--from``."""


def form(text: str) -> Form:
    """Return the form that ``osu allreduce`` names; NetproofError for an unknown one."""
    name, _, function = " ".join(text.replace(":", " ").split()).partition(" ")
    benchmark = registry.named(name.lower())
    if not function or benchmark.by_protocol:
        return benchmark, None
    known = {one.lower(): one for one in benchmark.readable()}
    if function.lower() not in known:
        names = ", ".join(sorted(known.values()))
        raise NetproofError(f"--from {text}: {benchmark.label} has {names}")
    return benchmark, known[function.lower()]


def read(text: str, path: str, *, bidirectional: bool = False, form: Form | None = None) -> Log:
    """Read the outputs of benchmarks in a file; ``bidirectional``: how NetPIPE was run.

    ``form``: of tables that do not name their benchmark or function.
    Lines of other programs (MPI library, launcher, shell) around outputs are stored, but those
    around the program of one launch of a job; within a table nothing foreign is accepted. Raise
    ParseError where no output is there, and where rows are that belong to no table: outputs may be
    mixed, so that none can be believed.
    """
    if text.count(BEGINS) == 1:
        text, _ = of_program(text)
    alone = "{" not in text or not any(map(_HEADS.match, text.split("\n")))
    documents, text = _documents(text, path, alone=alone)
    if documents and alone:
        return Log(documents)
    unmarked, tags = logs.without_prefixes(text, _HEADS)
    lines = Lines(unmarked, path)
    heads = _heads(lines)
    if not heads and form is not None:
        numbers = enumerate(lines.between(1, len(lines)), 1)
        heads = [(number, form[0], False) for number, line in numbers if ROW.fullmatch(line)][:1]
    if not heads or (form is not None and form[0].by_protocol):
        return Log((_file_of_figures(lines, text, bidirectional=bidirectional),))
    reading = _Reading(lines, tags, heads, bidirectional, form)
    for number, benchmark, program in heads:
        if number > lines.number:
            reading.read_at(number, benchmark, program=program)
    log = reading.log()
    return replace(log, outputs=(*documents, *log.outputs))


_Head = tuple[int, Benchmark, bool]
"""A line at which an output of a benchmark begins; True: with the name of the program."""

_HEADS = re.compile(
    "|".join(
        re.sub(r"\?P<(\w+)>", rf"?P<{one.name}__\1>", one.heads.pattern)
        for one in registry.BENCHMARKS
    )
)
"""The beginning of any output, by the name of its benchmark and of the kind of line."""


_JSON = re.compile(r'^\{(?:$|\s*".*\}$)', re.MULTILINE)
"""The first line of a JSON object, or all of it in one line."""


def _documents(text: str, path: str, *, alone: bool) -> tuple[tuple[Output, ...], str]:
    """Return the outputs in a JSON text, or in JSON objects between lines, and the text without.

    An object begins and ends at the beginning of a line. Raise ParseError for another's if it is
    ``alone``, without tables in lines of their own.
    """
    found: list[Output] = []
    end, rest = 0, ""
    for start in _JSON.finditer(text):
        if start.start() < end:
            continue
        before, end = text[end : start.start()], start.end()
        if start[0] == "{":
            end = text.find("\n}", end) + 2
            if end < 2:
                line = text.count("\n", 0, start.start()) + 1
                raise ParseError(path, line, "{", "has no end: the file is cut short or damaged")
        content = text[start.start() : end]
        if (one := _document(content, path, alone=alone)) is not None:
            found.append(replace(one, preamble=printed_lines(before.split("\n") * alone)))
            content = re.sub(".", " ", content)
        rest += before + content
    rest += text[end:]
    if found and alone:
        found[-1] = replace(found[-1], epilogue=printed_lines(text[end:].split("\n")))
    elif alone and text.lstrip().startswith(("{", "[")):
        found = list(filter(None, [_document(text, path, alone=True)]))
    return tuple(found), rest


def _document(text: str, path: str, *, alone: bool) -> Output | None:
    """Return the output in a JSON text, None where it is not JSON, or another's and not alone."""
    try:
        content = disk.json_value(text, path)
    except disk.MalformedError as fault:
        if not re.match(r'\s*\{\s*"', text):
            return None
        reason = f"{fault.reason}: the file is cut short or damaged"
        raise ParseError(path, fault.line, "", reason) from fault
    except NetproofError as fault:
        raise ParseError(path, 0, "", str(fault)) from fault
    for benchmark in registry.BENCHMARKS:
        try:
            output = benchmark.read_document(content, path)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            what = f"is no result of {benchmark.label} that is read"
            raise ParseError(path, 0, "", f"{what}: {type(error).__name__} {error}") from error
        if output is not None:
            return output
    if alone:
        raise ParseError(path, 1, text[:80], "is JSON of no benchmark that is known here")
    return None


def _heads(lines: Lines) -> list[_Head]:
    heads: list[_Head] = []
    rows_may_follow = False
    for number, line in enumerate(lines.between(1, len(lines)), 1):
        found = _HEADS.match(line)
        if found is None:
            rows_may_follow = rows_may_follow and not ROW.fullmatch(line)
            continue
        name, _, kind = str(found.lastgroup).partition("__")
        benchmark = registry.named(name)
        # Of a title and the header of its columns, the first begins the output.
        same = rows_may_follow and heads[-1][1] is benchmark
        if not same or kind != "columns":
            heads.append((number, benchmark, kind == "program"))
        rows_may_follow = True
    return heads


def _file_of_figures(lines: Lines, text: str, *, bidirectional: bool) -> Output:
    """Return the output of a file without any header; ParseError where it is no benchmark's."""
    found = next((one for one in registry.BENCHMARKS if one.is_one(text)), None)
    if found is None:
        known = ", of ".join(one.output_of or one.label for one in registry.BENCHMARKS)
        lines.skip_blank()
        number = lines.number + 1
        (first,) = lines.between(number, number)
        reason = f"expected the output of {known}; a table without its header needs --from"
        raise ParseError(lines.path, number, first, reason)
    return found.read(text, lines.path, bidirectional=bidirectional)


def _goes_on(line: str, outputs: Sequence[Output]) -> bool:
    """Check whether a line is a row that would have followed the last one of one of these."""
    return line.split()[:1] in [[one.next_word] for one in outputs if one.next_word]


class _Reading:
    """Outputs of a file, read one after the other."""

    def __init__(
        self,
        lines: Lines,
        tags: list[str | None],
        heads: list[_Head],
        bidirectional: bool,
        form: Form | None,
    ) -> None:
        self._lines, self._tags = lines, tags
        self._bounds = [*(number for number, *_ in heads), len(lines) + 1]
        self._bidirectional, self._form = bidirectional, form
        self._outputs: list[Output] = []
        self._faults: list[ParseError] = []
        self._left_out: list[int] = []
        self._end = 0
        self._torn: dict[Benchmark, int] = {}
        """The first table of a benchmark with a refused program, 0 without one."""

    def read_at(self, start: int, benchmark: Benchmark, *, program: bool) -> None:
        """Read one output, and check the lines after it."""
        if benchmark in self._torn and not program:
            # It may be a table of the program whose output was refused.
            self._torn[benchmark] = self._torn[benchmark] or start
            self._refuse_interrupted(start, start)
            return
        lines, first = self._lines, self._lines.number + 1
        before = lines.between(first, start - 1)
        output = None
        try:
            if not self._outputs and not self._faults:
                for number, line in enumerate(before, first):
                    if ROW.fullmatch(line):
                        reason = "a row stands before the first table, and is of none"
                        raise ParseError(lines.path, number, line, reason)
            lines.go_to(start)
            of, function = self._form or (None, None)
            function = function if of is benchmark else None
            how: dict[str, Any] = {"bidirectional": self._bidirectional, "function": function}
            output = benchmark.read_next(lines, before, **how)
            output = replace(output, preamble=printed_lines(before))
            self._check_prefixes(start, benchmark)
            if output.fault is not None:
                raise output.fault
            end = lines.number
            output = self._with_epilogue(output)
        except ParseError as fault:
            self._faults.append(self._of_table(fault))
            self._refuse_interrupted(start, fault.line)
            if program:
                self._torn.setdefault(benchmark, 0)
            lines.go_to(max(fault.line, start) + 1)
            # Its whole tables are judged without the one at which it breaks off.
            if output is not None and output.fault is fault:
                self._outputs.append(output)
            return
        self._outputs.append(output)
        self._end = end

    def log(self) -> Log:
        """Return what was read; ParseError where that is one fault and nothing else."""
        if not self._outputs and len(self._faults) == 1:
            raise self._faults[0]
        path = self._lines.path
        notes = [
            f"{path}: {tag!r} before {count} lines was left out"
            for tag, count in Counter(filter(None, self._tags)).items()
        ]
        if self._left_out:
            first = self._left_out[0]
            many = counted(len(self._left_out), "line")
            shown = shortened(repr(self._text(first).strip()), 80)
            notes.append(f"{path}:{first}: {many} after the tables were left out, first {shown}")
        notes += [
            f"{path}:{number}: tables of {of.label} from here on that do not name their program may"
            " be of the one that was refused, and were left out"
            for of, number in self._torn.items()
            if number
        ]
        notes += [output.note for output in self._outputs if output.note]
        return Log(tuple(self._outputs), tuple(map(str, self._faults)), tuple(notes))

    def _text(self, number: int) -> str:
        return self._lines.between(number, number)[0]

    def _next_head(self, number: int) -> int:
        """Return the first line after ``number`` at which an output begins, or the one past all."""
        return self._bounds[bisect.bisect_right(self._bounds, number)]

    def _of_table(self, fault: ParseError) -> ParseError:
        """Return the fault if it is one of a table alone; raise it if it is one of the file."""
        start = max(fault.line, 1)
        end = min(self._next_head(start) - 1, start + _NEAR)
        following = self._lines.between(start, end)
        goes_on = any(map(ROW.fullmatch, following[1:]))
        for number, line in enumerate(following, start):
            if logs.failed(line) and not goes_on:
                reason = "the run broke off here, so that the table above it may not be whole"
                return TableError(fault.path, number, line, reason)
            if number > start and ROW.fullmatch(line):
                break
        if isinstance(fault, TableError):
            return fault
        if not self._outputs:
            raise fault
        reason = f"{fault.reason}; two outputs may be mixed, so none here is believed"
        raise ParseError(fault.path, fault.line, fault.text, reason) from fault

    def _refuse_interrupted(self, start: int, fault_line: int) -> None:
        """Raise ParseError where rows of an output go on in one that begins later and is refused.

        Its first row and those from the fault on may be another's.
        """
        torn = [output for output in self._outputs if not output.ended]
        several = self._lines.between(start, self._next_head(start) - 1)
        rows = 0
        for number, line in enumerate(several, start):
            if not ROW.fullmatch(line):
                continue
            rows += 1
            may_be_another = rows == 1 or number >= fault_line
            if may_be_another and _goes_on(line, torn):
                reason = "a row of a table above, which another output interrupts"
                raise ParseError(self._lines.path, number, line, reason)
        if rows and torn and torn[-1] is self._outputs[-1] and not torn[-1].whole:
            between = self._lines.between(self._end + 1, start - 1)
            if not any(line.strip() for line in between):
                del self._outputs[-1]
                reason = (
                    "follows the last row of a table at once and is refused, so both may be mixed"
                )
                fault = TableError(self._lines.path, start, self._text(start), reason)
                self._faults.append(fault)

    def _check_prefixes(self, first: int, of: Benchmark) -> None:
        """Raise TableError unless all lines read from ``first`` on have the same prefix."""
        expected = self._tags[first - 1]
        for number in range(first, self._lines.number + 1):
            line = self._text(number)
            if of.chatter.fullmatch(line):
                continue
            if line.strip() and self._tags[number - 1] != expected:
                reason = f"lacks the prefix {expected!r} that the lines before it have"
                if expected is None:
                    reason = "has a prefix that the lines before it do not have"
                raise TableError(self._lines.path, number, line, reason)

    def _with_epilogue(self, output: Output) -> Output:
        """Return the output with the lines that follow it, unless they cast doubt on it."""
        lines, first = self._lines, self._lines.number + 1
        end = self._next_head(lines.number)
        last = end > len(lines)
        after = lines.between(first, end - 1)
        printed = [number for number, line in enumerate(after, first) if line.strip()]
        if last and lines.cut_short and not output.ended and not logs.is_ending(after[-1]):
            raise TableError(lines.path, len(lines), after[-1], CUT_SHORT)
        for number in printed:
            if not ROW.fullmatch(line := self._text(number)):
                continue
            if output.ended or not _goes_on(line, [output]):
                reason = "a row follows that is of no table"
                if number > printed[0]:
                    above = shortened(repr(self._text(printed[0]).strip()), 40)
                    reason += f"; line {printed[0]} ended the one above: {above}"
                raise ParseError(lines.path, number, line, reason)
            reason = f"stands within a table, whose rows go on in line {number}"
            raise TableError(lines.path, first, self._text(first), reason)
        if not output.ended:
            texts = [self._text(number) for number in printed]
            doubt = logs.first_doubt(texts, last=last, whole=output.whole)
            if doubt is not None:
                reason = (
                    f"may be of a run that broke off: {output.of.label} prints no last line, so"
                    " only known words may follow; if it ended well, delete what follows the table"
                )
                raise TableError(lines.path, printed[doubt], texts[doubt], reason)
        if not last:
            return output
        lines.go_to(len(lines) + 1)
        self._left_out += printed
        return replace(output, epilogue=tuple(self._text(number) for number in printed))
