"""The interface of benchmarks: functions, commands, output and names."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from netproof.benchmarks import logs
from netproof.benchmarks.collectives import DEALT_OUT, MOST_ON_LINK, OF_ONE_RANK
from netproof.benchmarks.fixed import UNITS, Lines, Row, printed_lines
from netproof.benchmarks.message_sizes import ITS_OWN, ListedSizes, MessageSizes
from netproof.errors import NetproofError, ParseError
from netproof.measurement.case import Case
from netproof.measurement.counters import Payload
from netproof.measurement.curve import Curve
from netproof.measurement.units import bandwidth_mb_s

ONE_WAY, BOTH_WAYS = "oneway", "bidirectional"
"""Directions of a case."""

BOTH_DIRECTIONS = 2.0
"""Link factor of a function whose rate counts both sent and received bytes."""


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
    functions measure the same. ``benchmark``: its name.
    """

    benchmark: str
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
        return (
            self.rated and not self.single and (self.pair or self.pairs) and self.link_factor == 1
        )

    @property
    def direction(self) -> str:
        """Return ``oneway`` or ``bidirectional``: how messages between two ranks go at a time."""
        in_turns = self.ping_pong or self.streams or self.collective in OF_ONE_RANK
        return ONE_WAY if in_turns else BOTH_WAYS

    @property
    def element_bytes(self) -> int:
        """Return the number of bytes that message sizes are multiples of."""
        return self.least_bytes or 1

    def least_for(self, ranks: int) -> int:
        """Return the least message in bytes that gives every rank a part; 0 where any message does.

        When a smaller one is dealt out, some ranks get nothing and need not wait for the others.
        With a library that lets them go on, the time shows how fast they send, and not how long a
        message takes.
        """
        return (self.least_bytes or 0) * ranks if self.collective in DEALT_OUT else 0

    def sizes(
        self, ranks: int, most_bytes: int, settings: MessageSizes = ITS_OWN
    ) -> tuple[int, ...]:
        """Return the message sizes in bytes on ``ranks``, up to ``most_bytes``; (0,) without any.

        They double, unless ``settings`` list others too, and begin at the least that gives every
        rank a part; where all are smaller, they are taken as they are.
        """
        if self.least_bytes is None:
            return (0,)
        listed = settings if isinstance(settings, ListedSizes) else ListedSizes()
        every, least = listed.sizes(self.least_bytes, most_bytes), self.least_for(ranks)
        return tuple(size for size in every if size >= least) or every

    def over_link(self, ranks: int, ranks_per_node: int) -> float:
        """Return the reported bandwidth over what one node's link then carries each way.

        Whatever the ranks per node, one or two messages leave it; a function that adds up all pairs
        has one on the link per rank of the node.
        """
        if self.pairs:
            return self.link_factor * (ranks // 2) / ranks_per_node
        return self.link_factor

    def messages_on_link(self, ranks: int, ranks_per_node: int) -> tuple[float, float]:
        """Return the least and most message sizes that cross a node's link in sequence in its time.

        Between two ranks they are equal. Where the time is one message's share among all pairs,
        both are as ``over_link`` returns. For a collective the least is one, the most as
        ``collectives`` has it.
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
        bandwidth = None
        if self.messages:
            bandwidth = tuple(
                bandwidth_mb_s(self.messages * row.size, row.time_us) for row in self.rows
            )
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


@dataclass(frozen=True)
class Output:
    """The output of one run of a benchmark, read and checked.

    ``program``: as JSON names it; ``version``: None where it is not printed; ``facts``: further
    plain values for JSON. ``several``: the program can print more than one table. ``ended``: its
    own last line is there; ``whole``: all sizes are there that it measures by itself.
    ``next_word``: first of a row that would have followed the last, empty where none would.
    ``note``: a sentence on what is guessed, or which pair is the slowest, empty without.
    ``preamble``, ``epilogue``: lines of others before and after.
    """

    benchmark: str
    program: str
    path: str
    version: str | None
    tables: tuple[Table, ...]
    facts: Mapping[str, Any] = field(default_factory=dict)
    several: bool = False
    ended: bool = False
    whole: bool = False
    next_word: str = ""
    note: str = ""
    preamble: tuple[str, ...] = ()
    epilogue: tuple[str, ...] = ()

    def goes_on_with(self, line: str) -> bool:
        """Check whether a line is a row that would have followed the last one."""
        return bool(self.next_word) and line.split()[:1] == [self.next_word]

    def table(self, function: str, ranks: int) -> Table:
        """Return the one table of ``function`` at ``ranks``; ParseError unless there is one."""
        found = [one for one in self.tables if (one.function, one.ranks) == (function, ranks)]
        if len(found) != 1:
            there = ", ".join(f"{one.function} at {one.ranks}" for one in self.tables)
            reason = f"holds {len(found)} tables of {function} at {ranks} ranks, not one ({there})"
            line = found[1].first_line if found else 0
            raise ParseError(self.path, line, "", reason)
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
            "benchmark": self.program,
            "version": self.version,
            **self.facts,
            "units": UNITS,
            **({"tables": tables} if self.several else tables[0]),
            "preamble": self.preamble,
            "epilogue": self.epilogue,
        }


class Benchmark:
    """A benchmark, which a module of this room declares as ``BENCHMARK``.

    ``number``: orders the benchmarks; ``name``: in cases, settings and stores; ``label``: for
    people; ``output_of``: the source of its output in errors; ``functions``: that runs measure,
    ``only_read``: that no run starts, and whose outputs are read and judged; ``features``: of an
    environment that has all of it, each with its meaning, empty where outputs are only read;
    ``probes``: programs that show that a node has it, each with the feature; ``suffix``: of a
    launch's file with its figures; ``figures``: beginning of a row of it, for
    ``grep -E``. ``heads``: beginning of the lines at which an output of it begins in a log, or a
    pasted table: the group ``program`` names a program, ``columns`` is below another head if there
    is one. ``sizes``: a site's settings of its message sizes. ``by_protocol``: its functions are
    protocols, measured between nodes and inside one in two directions, and all charts are on one
    page.
    """

    number: ClassVar[int]
    name: ClassVar[str]
    label: ClassVar[str]
    output_of: ClassVar[str]
    features: ClassVar[Mapping[str, str]] = {}
    probes: ClassVar[Mapping[str, str]] = {}
    functions: ClassVar[tuple[Function, ...]] = ()
    only_read: ClassVar[tuple[Function, ...]] = ()
    figures: ClassVar[str]
    suffix: ClassVar[str] = "out"
    sizes: ClassVar[type[MessageSizes]] = MessageSizes
    by_protocol: ClassVar[bool] = False
    heads: ClassVar[re.Pattern[str]]

    def function(self, name: str) -> Function:
        """Return the function of that name; NetproofError where it has none."""
        for function in (*self.functions, *self.only_read):
            if function.name == name:
                return function
        names = ", ".join(function.name for function in self.functions)
        raise NetproofError(f"{self.label} has no function {name!r}; it has {names}")

    def readable(self) -> Collection[str]:
        """Return the names of the functions that a table without a title may be of."""
        return [one.name for one in (*self.functions, *self.only_read)]

    def feature(self, function: str) -> str:
        """Return the feature of the environments that can run a function."""
        (only,) = self.features
        return only

    def names(self, *, default: bool) -> list[str]:
        """Return the names of the functions of a plain acceptance run, or of those beyond it."""
        return [one.name for one in self.functions if one.default is default]

    def cases(
        self,
        where: tuple[str, str, str],
        rank_counts: Sequence[int],
        ranks_per_node: int,
        *,
        all_functions: bool,
    ) -> list[Case]:
        """Return the cases expected on ``where``, a system, partition and environment."""
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
        return f"{self.title(case.function)} {self.variant(case)}"

    def variant(self, case: Case) -> str:
        """Return what distinguishes the cases of one function."""
        return f"{case.ranks} ranks"

    def kind(self, printed: Table, named: str) -> str:
        """Return a curve's name in a sentence; ``named``: the user's name of the benchmark.

        ``IMB Alltoall 16 ranks in 2 groups, group 1``.
        """
        ranks = "" if printed.ranks is None else f" {printed.ranks} ranks"
        several = "" if printed.groups == 1 else f" in {printed.groups} groups"
        which = "" if printed.group is None else f", group {printed.group}"
        remark = f", {printed.remark}" if printed.remark else ""
        called = f" ({named})" if named else ""
        return f"{self.title(printed.function)}{ranks}{several}{which}{remark}{called}"

    def program(self, function: str) -> str:
        """Return the program that measures a function, whose hash is stored."""
        return function

    def programs(self) -> Iterator[str]:
        """Return all programs, each once."""
        yield from dict.fromkeys(self.program(one.name) for one in self.functions)

    def subject(self, case: Case) -> str:
        """Return the stem of the names of the steps that measure a case."""
        return case.function

    def asked(
        self, case: Case, most_bytes: int, settings: MessageSizes = ITS_OWN
    ) -> tuple[int, ...]:
        """Return the message sizes in bytes of a launch of a case; ``settings``: the site's."""
        return self.function(case.function).sizes(case.ranks, most_bytes, settings)

    def read_launch(self, text: str, path: Path, case: Case) -> Curve:
        """Return the curve in a launch's file; ParseError where it is not of ``case``."""
        raise NotImplementedError

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
        a last line of its own. Raise ParseError, with the line, for anything else.
        """
        lines = Lines(text, path)
        every = lines.between(1, len(lines))
        found = map(self.heads.match, every)
        starts = (at for at, one in enumerate(found, 1) if one and one.lastgroup == "program")
        lines.go_to(next(starts, 1))
        before = lines.between(1, lines.number)
        for number, foreign in enumerate(before, 1):
            if self._is_own(foreign):
                reason = f"a part of another output stands before {self.label}'s name"
                raise ParseError(path, number, foreign, reason)
        lines.skip_blank()
        output = self.read_next(lines, before, bidirectional=bidirectional, **how)
        lines.skip_blank()
        end = lines.number
        while (line := lines.peek()) is not None:
            lines.take("nothing")
            if not output.ended:
                lines.refuse(
                    f"is no row that {self.label} prints: it has no last line, so nothing may"
                    " follow its rows"
                )
            if self._is_own(line):
                lines.refuse("a second output follows the first, or a part of one")
        return replace(output, epilogue=printed_lines(lines.between(end + 1, len(lines))))

    def _is_own(self, line: str) -> bool:
        """Check for a line that an output has once in a run."""
        return self.heads.match(line) is not None or logs.ROW.fullmatch(line) is not None

    def read_next(self, lines: Lines, before: Sequence[str], **how: Any) -> Output:
        """Read the output that begins at the next line, up to its last row or its own last line.

        ``before``: lines between it and the last output; ``how``: ``bidirectional``, as NetPIPE was
        run, and ``function``, that of a table which does not name its own. Raise TableError where
        other outputs of the file can be believed nevertheless, and ParseError where none can.
        """
        raise NotImplementedError

    def least_run(self) -> list[str]:
        """Return the command of its least run over MPI on two ranks, empty without one."""
        return []

    def start(self, function: str, ranks: int) -> list[str]:
        """Return the command of a run on these ranks that does little but start and end.

        Empty where a benchmark has none.
        """
        return []

    def sent(
        self, case: Case, printed: str, said: str, nodes: Sequence[str]
    ) -> Mapping[int, int] | str:
        """Return the messages of each size in bytes that a launch must send between nodes.

        ``printed``, ``said``: its standard output and standard error; ``nodes``: of each rank, in
        order. Where the benchmark does not report it, return the reason as a sentence.
        """
        return f"how much {self.label} sends is not known"

    def payload(self, case: Case, printed: str, said: str, nodes: Sequence[str]) -> Payload:
        """Return the payload that a launch must send between nodes; arguments as for ``sent``."""
        sent = self.sent(case, printed, said, nodes)
        if isinstance(sent, str):
            return Payload(None, sent)
        return Payload(sum(size * count for size, count in sent.items()))

    def exchanged(self, case: Case, printed: str, said: str) -> Payload:
        """Return the payload between a launch's ranks, as if each had its own node."""
        sent = self.sent(case, printed, said, [f"rank {rank}" for rank in range(case.ranks)])
        if isinstance(sent, str):
            return Payload(None, sent)
        return Payload(
            sum(size * count for size, count in sent.items()), messages=sum(sent.values())
        )

    def compared_over_tcp(self, function: str) -> str | None:
        """Return the TCP function to compare one over MPI with, None without."""
        return None


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
        self,
        function: Function,
        ranks: int,
        sizes: Sequence[int],
        size_file: str,
        arguments: Sequence[str],
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

    def on(self, case_ranks: int, ranks_per_node: int, function: str) -> tuple[int, int]:
        """Return the ranks, and ranks per node, of a function in a job of ``case_ranks``."""
        return (2, 1) if self.function(function).pair else (case_ranks, ranks_per_node)

    def cases(
        self,
        where: tuple[str, str, str],
        rank_counts: Sequence[int],
        ranks_per_node: int,
        *,
        all_functions: bool,
    ) -> list[Case]:
        """Return each function on each count of ranks; those for two ranks once, if any is."""
        cases = []
        for function in self.functions:
            if not (function.default or all_functions):
                continue
            if function.pair:
                cases += [Case(*where, self.name, function.name, 2, 1)] * bool(rank_counts)
                continue
            cases += [
                Case(*where, self.name, function.name, ranks, ranks_per_node)
                for ranks in rank_counts
                if not (function.pairs and ranks % 2)
            ]
        return cases
