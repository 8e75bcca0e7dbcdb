"""The interface of benchmarks: functions, commands, output and names."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import Field

from netproof.benchmarks.collectives import DEALT_OUT, MOST_ON_LINK, OF_ONE_RANK
from netproof.benchmarks.fixed import (
    ROUNDED_TO_ZERO,
    ROW,
    Lines,
    Row,
    TableError,
    of_program,
    printed_lines,
)
from netproof.errors import NetproofError, ParseError
from netproof.intake.models import Written
from netproof.measurement.case import Case, Curve
from netproof.measurement.counters import Sent

ONE_WAY, BOTH_WAYS = "oneway", "bidirectional"
"""Directions of a case."""

Where = tuple[str, str, str]
"""A system, its partition and an environment."""

Sizes = tuple[int, ...]
"""Sizes of messages in bytes."""

Words = Sequence[str]
"""Words of a command."""

Nodes = Sequence[str]
"""The node of each rank, in order."""

BOTH_DIRECTIONS = 2.0
"""Link factor of a function whose rate counts both sent and received bytes."""


class MessageSizes(Written):
    """A site's settings of its message sizes; of a benchmark that measures its own, none."""

    def largest(self) -> int:
        """Return the largest size in bytes asked for by itself, 0 without any."""
        return 0


ITS_OWN = MessageSizes()
"""Settings where a site has none."""


class ListedSizes(MessageSizes):
    """Settings of a benchmark that takes a list of sizes."""

    per_octave: Annotated[int, Field(ge=1, le=16)] = Field(
        default=1, description="sizes from one power of two to the next, that one not counted"
    )
    also: Annotated[tuple[Annotated[int, Field(ge=1)], ...], Field(strict=False)] = Field(
        default=(), description="further sizes in bytes"
    )

    def largest(self) -> int:
        """Return the largest of ``also``."""
        return max(self.also, default=0)

    def sizes(self, least: int, most: int) -> tuple[int, ...]:
        """Return increasing sizes in bytes from ``least`` to ``most``, all multiples of ``least``.

        The powers of two times ``least`` are always among them, other sizes rounded down.
        """
        doubling = [least * 2**power for power in range((most // least).bit_length())]
        between = [
            round(size * 2 ** (part / self.per_octave))
            for size in doubling
            for part in range(1, self.per_octave)
        ]
        others = {size // least * least for size in (*between, *self.also)}
        every = sorted({*doubling, *others})
        return tuple(size for size in every if least <= size <= most)


@dataclass(frozen=True)
class Function:
    """A function of a benchmark.

    ``pair``: runs on two ranks, whatever the job has. ``pairs``: needs an even number of ranks, and
    adds up the rates of all pairs. ``least_bytes``: the smallest message that is asked for, 4 where
    the data are floats, None without messages. ``default``: part of a plain acceptance run.
    ``rated``: has a bandwidth, ``single`` where that is one message over its time. ``link_factor``:
    the bandwidth over what a link carries each way. ``in_turn``: messages that cross the link one
    after the other in its time. ``collective``: the MPI operation, as ``collectives.MOST_ON_LINK``
    names it. ``ping_pong``: one message there and one back between two ranks, so that all such
    functions measure the same.
    """

    name: str
    pair: bool = False
    pairs: bool = False
    least_bytes: int | None = 1
    default: bool = False
    rated: bool = False
    single: bool = False
    link_factor: float = 1.0
    in_turn: float = 1.0
    collective: str = ""
    ping_pong: bool = False

    @property
    def operation(self) -> str:
        """Return the operation by its common name in all benchmarks, else the function's name."""
        return self.collective or self.name

    @property
    def streams(self) -> bool:
        """Check whether messages go one way only, from the first rank or ranks to the others."""
        stream = self.rated and not self.single and self.link_factor == 1
        return stream and (self.pair or self.pairs)

    @property
    def direction(self) -> str:
        """Return ``oneway`` or ``bidirectional``: how messages between two ranks go at a time."""
        in_turns = self.ping_pong or self.streams or self.collective in OF_ONE_RANK
        return ONE_WAY if in_turns else BOTH_WAYS

    def least_for(self, ranks: int) -> int:
        """Return the least message in bytes that gives every rank a part; 0 where any message does.

        Ranks without a part need not wait: the time may show how fast others send, no message's.
        """
        return (self.least_bytes or 0) * ranks if self.collective in DEALT_OUT else 0

    def sizes(self, ranks: int, most_bytes: int, settings: MessageSizes = ITS_OWN) -> Sizes:
        """Return the message sizes in bytes on ``ranks``, up to ``most_bytes``; (0,) without any.

        They double, unless ``settings`` list others too, from the least that gives every rank a
        part; where all are smaller, they are taken as they are.
        """
        if self.least_bytes is None:
            return (0,)
        listed = settings if isinstance(settings, ListedSizes) else ListedSizes()
        every, least = listed.sizes(self.least_bytes, most_bytes), self.least_for(ranks)
        return tuple(size for size in every if size >= least) or every

    def over_link(self, ranks: int, ranks_per_node: int) -> float:
        """Return the reported bandwidth over what one node's link then carries each way.

        One or two messages leave a node; of a function that adds up all pairs, one for each rank.
        """
        share = (ranks // 2) / ranks_per_node if self.pairs else 1
        return self.link_factor * share

    def messages_on_link(self, ranks: int, ranks_per_node: int) -> tuple[float, float]:
        """Return the least and most message sizes that cross a node's link in sequence in its time.

        Between two ranks they are equal, also where the time is one message's share of all pairs'.
        """
        if self.collective:
            most = MOST_ON_LINK[self.collective](ranks, ranks_per_node)
            return 1.0, float(max(1, most))
        count = 1 / self.over_link(ranks, ranks_per_node) if self.pairs else self.in_turn
        return count, count


GUESS = "guessed"
"""Remark on a curve whose function is a guess."""


@dataclass(frozen=True)
class Table:
    """One table of an output, which is a curve.

    ``ranks``: None where the benchmark does not print them; ``rows``: also those that failed.
    ``messages``: a bandwidth is that of so many messages in a row's time, 0 without bandwidth.
    ``extremes``: the columns of the fastest rank's time and of the mean, none where a time is not
    the slowest rank's. ``direction``: as of a case. ``groups``: how many ran at once, of ``ranks``
    each; ``group``: the table's, None where it covers all; ``waiting``: ranks that took no part.
    ``remark``: what else distinguishes curves of the same function; ``at_least``: sizes whose time
    is a lower limit; ``facts``: further plain values for JSON.
    """

    path: str
    function: str
    ranks: int | None
    rows: tuple[Row, ...]
    first_line: int
    messages: float = 0
    extremes: tuple[str, str] | None = None
    direction: str = ONE_WAY
    groups: int = 1
    group: int | None = None
    waiting: int = 0
    remark: str = ""
    at_least: tuple[int, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)

    def _extreme(self, which: int) -> tuple[float, ...] | None:
        if self.extremes is None:
            return None
        return tuple(row.values[self.extremes[which]] for row in self.rows if row.values)

    def curve(self) -> Curve:
        """Return times in µs and bandwidths in MB/s (10⁶); ParseError for a size that failed."""
        for row in self.rows:
            if row.failure:
                what = "moved wrong data" if row.values else "failed"
                ranks = "" if self.ranks is None else f" at {self.ranks} ranks"
                reason = f"{self.function}{ranks} {what} at {row.size} bytes"
                raise ParseError(self.path, row.line, row.failure, reason)
        rates = (self.messages * row.size / row.time_us for row in self.rows if self.messages)
        bandwidth = tuple(rates) or None
        times = tuple(row.time_us for row in self.rows)
        sizes = tuple(row.size for row in self.rows)
        return Curve(sizes, times, bandwidth, self._extreme(0), self._extreme(1))

    def document(self, faults: list[str]) -> dict[str, Any]:
        """Return plain values for ``json``, with a sentence in ``faults`` where it failed."""
        bandwidth = None
        try:
            bandwidth = self.curve().bandwidth_mb_s
        except ParseError as fault:
            faults.append(str(fault))
        measured = [row for row in self.rows if row.values]
        return {
            "function": self.function,
            "ranks": self.ranks,
            "lines": [self.first_line, self.rows[-1].line],
            "sizes_bytes": [row.size for row in measured],
            "time_us": [row.time_us for row in measured],
            "time_min_us": self._extreme(0),
            "time_avg_us": self._extreme(1),
            "bandwidth_mb_s": bandwidth,
            "remark": self.remark,
            **self.facts,
        }


def up_to_fault(
    lines: Lines, tables: Iterable[Table]
) -> tuple[tuple[Table, ...], ParseError | None]:
    """Return the tables before a fault, and that; raise it where no table is before it.

    It is one of a table alone if nothing follows it.
    """
    found: list[Table] = []
    try:
        found.extend(tables)
    except ParseError as fault:
        if not found:
            raise
        if not any(map(str.strip, lines.between(fault.line + 1, len(lines)))):
            fault = TableError(fault.path, fault.line, fault.text, fault.reason)
        return tuple(found), fault
    return tuple(found), None


@dataclass(frozen=True)
class Output:
    """The output of one run of a benchmark, read and checked.

    ``program``: as JSON names it, empty for the benchmark's only name; ``version``: None where it
    is not printed; ``facts``: further plain values for JSON. ``ended``: its own last line is there;
    ``whole``: all sizes are there that it measures by itself. ``next_word``: first of a row that
    would have followed the last, empty where none would. ``note``: a sentence on what is guessed,
    or which pair is the slowest. ``preamble``, ``epilogue``: what was printed before and after.
    ``fault``: of the table at which the output breaks off; all others before it are whole.
    """

    of: Benchmark
    path: str
    tables: tuple[Table, ...]
    version: str | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    program: str = ""
    ended: bool = True
    whole: bool = False
    next_word: str = ""
    note: str = ""
    preamble: tuple[str, ...] = ()
    epilogue: tuple[str, ...] = ()
    fault: ParseError | None = None

    def table(self, function: str, ranks: int) -> Table:
        """Return the one table of ``function`` at ``ranks``; ParseError unless there is one."""
        found = [one for one in self.tables if (one.function, one.ranks) == (function, ranks)]
        if len(found) != 1:
            there = ", ".join(f"{one.function} at {one.ranks}" for one in self.tables)
            reason = f"holds {len(found)} tables of {function} at {ranks} ranks, not one ({there})"
            raise ParseError(self.path, found[1].first_line if found else 0, "", reason)
        return found[0]

    def curve(self) -> Curve:
        """Return the curve of the one table; ValueError where there are several."""
        (table,) = self.tables
        return table.curve()

    def document(self, faults: list[str]) -> dict[str, Any]:
        """Return plain values for ``json``, with a sentence in ``faults`` for each failure."""
        tables = [table.document(faults) for table in self.tables]
        return {
            "file": self.path,
            "benchmark": self.program or (self.of.output_of or self.of.label).removeprefix("the "),
            "version": self.version,
            **self.facts,
            "units": {"sizes": "bytes", "time": "us", "bandwidth": "MB/s of 10^6 bytes"},
            **({"tables": tables} if self.of.several_tables else tables[0]),
            "preamble": self.preamble,
            "epilogue": self.epilogue,
        }


class Benchmark:
    """A benchmark, which a module of this room declares as ``BENCHMARK``.

    ``number``: orders the benchmarks; ``name``: in cases, settings and stores; ``label``: for
    people; ``output_of``: its programs, if called otherwise; ``functions``: that runs measure,
    ``only_read``: that no run starts, and whose outputs are read and judged; ``features``: of an
    environment that has all of it, each with its meaning, empty where outputs are only read;
    ``probes``: programs that show that a node has it, each with the feature; ``programs_are``: the
    name of a function's program, which {} stands for; ``starting``: the command of a run that does
    little but start and end, for a function and ranks; ``over_tcp``: the TCP function that one over
    MPI is compared with, to show what MPI loses; ``suffix``: of a launch's file with its figures;
    ``figures``: beginning of a row of it, for ``grep -E``, from which a run came that far.
    ``heads``: beginning of the lines at which an output of it begins in a log, or a pasted table:
    the group ``program`` names a program, ``columns`` is below another head if there is one.
    ``chatter``: lines that any rank may print between those of an output, also with a prefix.
    ``several_tables``: an output can have more than one. ``sizes``: a site's settings of its
    message sizes. ``by_protocol``: its functions are protocols, measured between nodes and inside
    one in two directions, and all charts are on one page.
    """

    number: ClassVar[int]
    name: ClassVar[str]
    label: ClassVar[str]
    output_of: ClassVar[str] = ""
    features: ClassVar[Mapping[str, str]] = {}
    probes: ClassVar[Mapping[str, str]] = {}
    functions: ClassVar[tuple[Function, ...]] = ()
    only_read: ClassVar[tuple[Function, ...]] = ()
    figures: ClassVar[str]
    suffix: ClassVar[str] = "out"
    programs_are: ClassVar[str] = "{}"
    starting: ClassVar[str] = ""
    over_tcp: ClassVar[Mapping[str, str]] = {}
    sizes: ClassVar[type[MessageSizes]] = MessageSizes
    by_protocol: ClassVar[bool] = False
    several_tables: ClassVar[bool] = False
    heads: ClassVar[re.Pattern[str]]
    chatter: ClassVar[re.Pattern[str]] = re.compile("(?!)")

    def known(self, name: str) -> Function | None:
        """Return the function of that name, also one that is only read; None without."""
        every = (*self.functions, *self.only_read)
        return next((one for one in every if one.name == name), None)

    def function(self, name: str) -> Function:
        """Return the function of that name; NetproofError where it has none."""
        if (found := self.known(name)) is None:
            names = ", ".join(function.name for function in self.functions)
            raise NetproofError(f"{self.label} has no function {name!r}; it has {names}")
        return found

    def readable(self) -> Collection[str]:
        """Return the names of the functions that a table without a title may be of."""
        return [one.name for one in (*self.functions, *self.only_read)]

    def feature(self, function: str) -> str:
        """Return the feature of the environments that can run a function."""
        return f"{self.name}-{function}" if self.by_protocol else self.name

    def cases(
        self, where: Where, rank_counts: Sequence[int], ranks_per_node: int, *, all_functions: bool
    ) -> list[Case]:
        """Return the cases expected there."""
        return []

    def job_what(self, ranks: int, *, default: bool) -> str:
        """Return ``IMB on 16 ranks``; the functions beyond a plain run have a job of their own."""
        which = self.label if default else f"other functions of {self.label}"
        return f"{which} on {ranks} ranks"

    def title(self, function: str) -> str:
        """Return benchmark and function: ``IMB Alltoall``, ``NetPIPE TCP``."""
        return f"{self.label} {function}"

    def words(self, case: Case) -> str:
        """Return the name of what is measured for tables, which have a column of ranks."""
        return self.title(case.function)

    def what(self, case: Case) -> str:
        """Return the name of what is measured for sentences: ``IMB Alltoall 16 ranks``."""
        return f"{self.title(case.function)} {case.ranks} ranks"

    def program(self, function: str) -> str:
        """Return the program that measures a function, whose hash is stored."""
        return self.programs_are.format(function)

    def programs(self) -> Iterator[str]:
        """Return all programs, each once."""
        yield from dict.fromkeys(self.program(one.name) for one in self.functions)

    def subject(self, case: Case) -> str:
        """Return the stem of the names of the steps that measure a case."""
        return case.function

    def asked(self, case: Case, most_bytes: int, settings: MessageSizes = ITS_OWN) -> Sizes:
        """Return the message sizes in bytes of a launch of a case; ``settings``: the site's."""
        return self.function(case.function).sizes(case.ranks, most_bytes, settings)

    def read_launch(self, text: str, path: Path, case: Case) -> Curve:
        """Return the curve in a launch's file; ParseError where it is not the one of ``case``."""
        table, *others = tables = self.read(text, str(path)).tables
        found = "; ".join(
            f"{one.function} on {case.ranks if one.ranks is None else one.ranks} ranks"
            f"{one.remark and ', '}{one.remark}"
            for one in tables
        )
        asked = f"{case.function} on {case.ranks} ranks"
        if others or found != asked:
            reason = f"{asked} was asked for, and nothing else"
            raise ParseError(str(path), table.first_line, found, reason)
        for row in table.rows:
            if row.size in table.at_least:
                reason = (
                    f"the rate is below {ROUNDED_TO_ZERO}, so that its time is not known: look for"
                    " lost packets or a timer that small messages wait for"
                )
                raise ParseError(str(path), row.line, f"{row.size} bytes at 0.00", reason)
        return table.curve()

    def read_document(self, content: Any, path: str) -> Output | None:
        """Return the output in the value of a JSON text, None for another benchmark's.

        Raise ParseError where it is one that cannot be believed, and what Python raises where a
        value is missing or another than it should be.
        """
        return None

    def is_one(self, text: str) -> bool:
        """Check whether a text without any of ``heads`` is output of this benchmark."""
        return False

    def read(self, text: str, path: str, *, bidirectional: bool = False, **how: bool) -> Output:
        """Read the one output of a run, in which only lines of others may precede it.

        ``bidirectional``, ``how``: as for ``read_next``. Others may follow where the benchmark has
        a last line of its own, or ``rank.sh`` printed one, outside of whose lines all is others'.
        Raise ParseError, with the line, for anything else.
        """
        text, marked = of_program(text)
        lines = Lines(text, path)
        found = map(self.heads.match, lines.between(1, len(lines)))
        starts = (at for at, one in enumerate(found, 1) if one and one.lastgroup == "program")
        lines.go_to(next(starts, 1))
        before = lines.between(1, lines.number)
        for number, foreign in enumerate(before, 1):
            # Other ranks' prologs may print when rank 0's program has begun.
            if self._is_own(foreign) and not marked:
                reason = f"a part of another output stands before {self.label}'s name"
                raise ParseError(path, number, foreign, reason)
        lines.skip_blank()
        output = self.read_next(lines, before, bidirectional=bidirectional, **how)
        if output.fault is not None:
            raise output.fault
        lines.skip_blank()
        end = lines.number
        while (line := lines.peek()) is not None:
            lines.take("nothing")
            if not (output.ended or marked):
                reason = "it has no last line, so nothing may follow its rows"
                lines.refuse(f"is no row that {self.label} prints: {reason}")
            if self._is_own(line):
                lines.refuse("a second output follows the first, or a part of one")
        after = lines.between(end + 1, len(lines))
        return replace(output, preamble=printed_lines(before), epilogue=printed_lines(after))

    def guessed(
        self,
        lines: Lines,
        functions: Sequence[str],
        read: Callable[[str], Output],
    ) -> Output:
        """Return a table whose header comes next, of the first of ``functions`` that it can be."""
        start, faults = lines.number + 1, []
        for function in functions:
            lines.go_to(start)
            try:
                output = read(function)
            except ParseError as fault:
                faults.append(fault)
                continue
            note = self.guess_note(f"{lines.path}:{output.tables[0].first_line}", function)
            tables = tuple(replace(table, remark=GUESS) for table in output.tables)
            return replace(output, tables=tables, note=note)
        if further := [fault for fault in faults if fault.line > start]:
            raise further[0]
        lines.go_to(start)
        reason = "the line above it is missing that names the function: say it, as with"
        lines.refuse_next("the header", f"{reason} --from '{self.name} {functions[0]}'")

    def guess_note(self, place: str, function: str, by: str = "columns") -> str:
        """Return the sentence that a table's function is guessed, and how to say which it is."""
        return (
            f"{place}: no line names the test of this table of {self.label}; its {by} are those of"
            f" {function}, which is a guess: say --from '{self.name} {function}' if it is right"
        )

    def _is_own(self, line: str) -> bool:
        """Check for a line that an output has once in a run."""
        return self.heads.match(line) is not None or ROW.fullmatch(line) is not None

    def read_next(self, lines: Lines, before: Sequence[str], **how: Any) -> Output:
        """Read the output that begins at the next line, up to its last row or its own last line.

        ``before``: lines between it and the last output; ``how``: ``bidirectional``, as NetPIPE was
        run, and ``function``, that of a table which does not name its own. Raise TableError where
        other outputs of the file can be believed nevertheless, and ParseError where none can.
        """
        raise NotImplementedError

    def start(self, function: str, ranks: int) -> list[str]:
        """Return the command of a run on these ranks that does little but start and end."""
        return self.starting.format(function=function, ranks=ranks).split()

    def sent(self, case: Case, printed: str, said: str, nodes: Nodes) -> Mapping[int, int] | str:
        """Return the messages of each size in bytes that a launch must send between nodes.

        ``printed``, ``said``: its standard output and standard error. Where the benchmark does not
        report it, return the reason as a sentence.
        """
        return f"how much {self.label} sends is not known"

    def payload(self, case: Case, printed: str, said: str, nodes: Nodes = ()) -> Sent:
        """Return the payload that ``sent`` makes between ``nodes``; without, between the ranks."""
        apart = nodes or [f"rank {rank}" for rank in range(case.ranks)]
        sent = self.sent(case, printed, said, apart)
        if isinstance(sent, str):
            return sent
        return sum(size * count for size, count in sent.items()), sum(sent.values())


class MpiBenchmark(Benchmark):
    """A benchmark whose functions run between nodes on as many ranks as a job has.

    ``arguments_meaning``: of the partition's key with further arguments, ``<name>_arguments``;
    ``few_calls``: arguments for a few calls of each size, to test that it runs.
    """

    arguments_meaning: ClassVar[str]
    few_calls: ClassVar[tuple[str, ...]]

    @property
    def arguments_key(self) -> str:
        """Return the partition's key with further arguments of its programs."""
        return f"{self.name}_arguments"

    def command(
        self, function: Function, ranks: int, sizes: Sequence[int], size_file: str, arguments: Words
    ) -> list[str]:
        """Return the command of a launch, word by word.

        ``sizes``: of the messages in bytes, as ``parts`` returns them, (0,) without messages;
        ``size_file``: name of a file in its folder that lists them, one per line; ``arguments``:
        the site's.
        """
        raise NotImplementedError

    def parts(self, sizes: Sequence[int]) -> tuple[tuple[int, ...], ...]:
        """Split message sizes in bytes into calls that run one after the other."""
        return (tuple(sizes),)

    def case(self, where: Where, function: str, ranks: int, ranks_per_node: int) -> Case:
        """Return the case of a function in a job of ``ranks``, so many of them on a node."""
        on = (2, 1) if self.function(function).pair else (ranks, ranks_per_node)
        return Case(*where, self.name, function, *on)

    def cases(
        self, where: Where, rank_counts: Sequence[int], ranks_per_node: int, *, all_functions: bool
    ) -> list[Case]:
        """Return each function on each count of ranks; those for two ranks once, if any is."""
        return [
            self.case(where, function.name, ranks, ranks_per_node)
            for function in self.functions
            if function.default or all_functions
            for ranks in (rank_counts[:1] if function.pair else rank_counts)
            if not (function.pairs and ranks % 2)
        ]
