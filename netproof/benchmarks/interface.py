"""What every benchmark is: its functions, how it is started, how its output is read, its names."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

from netproof.benchmarks.collectives import DEALT_OUT, MOST_ON_LINK, OF_ONE_RANK
from netproof.benchmarks.message_sizes import ITS_OWN, ListedSizes, MessageSizes
from netproof.errors import NetproofError
from netproof.measurement.case import Case
from netproof.measurement.curve import Curve
from netproof.measurement.payload import Exchanged, Payload

ONE_WAY, BOTH_WAYS = "oneway", "bidirectional"
"""Directions of a case."""

BOTH_DIRECTIONS = 2.0
"""Link factor of a function whose rate counts what is sent and what is received."""


@dataclass(frozen=True)
class Function:
    """One function of a benchmark, as data.

    ``pair``: runs on two ranks, whatever the job has. ``pairs``: needs an even number of ranks,
    and adds the rates of all pairs up. ``least_bytes``: the smallest message that is asked for, 4
    where the data are floats, None where there is no message. ``default``: part of a plain
    acceptance run. ``rated``: has a bandwidth, ``single`` where that is one message over its time.
    ``link_factor``: the bandwidth over what a link carries each way; ``in_turn``: how many
    messages cross the link one after the other in its time; ``collective``: the MPI operation, as
    ``collectives.MOST_ON_LINK`` names it. ``ping_pong``: one message there and one back between
    two ranks, so that all such functions measure the same. ``benchmark``: whose it is.
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
        """What it calls, by the name that all benchmarks have in common where there is one."""
        return self.collective or self.name

    @property
    def streams(self) -> bool:
        """Whether messages go one way only, from the first rank or ranks to the others."""
        return (
            self.rated and not self.single and (self.pair or self.pairs) and self.link_factor == 1
        )

    @property
    def direction(self) -> str:
        """Whether messages between two ranks go ``oneway`` at any moment, or ``bidirectional``."""
        in_turns = self.ping_pong or self.streams or self.collective in OF_ONE_RANK
        return ONE_WAY if in_turns else BOTH_WAYS

    @property
    def element_bytes(self) -> int:
        """What its message sizes are multiples of."""
        return self.least_bytes or 1

    def least_for(self, ranks: int) -> int:
        """The least message in bytes of which every rank has a part; 0 where any message will do.

        Of a smaller one that is dealt out, some ranks get nothing and need not wait for the others.
        With a library that lets them go on, the time is how fast they send, and not how long a
        message takes.
        """
        return (self.least_bytes or 0) * ranks if self.collective in DEALT_OUT else 0

    def sizes(
        self, ranks: int, most_bytes: int, settings: MessageSizes = ITS_OWN
    ) -> tuple[int, ...]:
        """Message sizes in bytes asked for on ``ranks``, up to ``most_bytes``; (0,) without any.

        They double, unless ``settings`` list others too, from the least of which every rank has a
        part; where all are smaller, they are taken as they are.
        """
        if self.least_bytes is None:
            return (0,)
        listed = settings if isinstance(settings, ListedSizes) else ListedSizes()
        every, least = listed.sizes(self.least_bytes, most_bytes), self.least_for(ranks)
        return tuple(size for size in every if size >= least) or every

    def over_link(self, ranks: int, ranks_per_node: int) -> float:
        """The bandwidth that it reports over what one node's link then carries each way.

        Whatever the ranks a node, one or two messages leave it; but what adds all pairs up has one
        on the link for each rank of the node.
        """
        if self.pairs:
            return self.link_factor * (ranks // 2) / ranks_per_node
        return self.link_factor

    def messages_on_link(self, ranks: int, ranks_per_node: int) -> tuple[float, float]:
        """How many message sizes cross a node's link one after the other in its time.

        The least and the most. Between two ranks they are equal. Where the time is the share of
        one message among all pairs they are as many as ``over_link`` says. Of a collective the
        least is one, the most what ``collectives`` says.
        """
        if self.collective:
            most = MOST_ON_LINK[self.collective](ranks, ranks_per_node)
            return 1.0, float(max(1, most))
        count = 1 / self.over_link(ranks, ranks_per_node) if self.pairs else self.in_turn
        return count, count


class KindOfCurve(Protocol):
    """What tells curves of one benchmark apart, as ``Printed`` has it."""

    function: str
    ranks: int | None
    direction: str
    groups: int
    group: int | None
    remark: str


@dataclass(frozen=True)
class Printed:
    """A curve that an output holds, and what the output says of it.

    ``ranks``: None where the benchmark does not print them; ``groups``: how many ran at once, and
    ``group`` which of them this is; ``remark``: what else tells its curves from others of the
    same function. ``curve`` raises NetproofError for a measurement that failed.
    """

    function: str
    ranks: int | None
    curve: Callable[[], Curve]
    direction: str = ONE_WAY
    groups: int = 1
    group: int | None = None
    remark: str = ""
    at_least: tuple[int, ...] = ()


class Output(ABC):
    """What one run of a benchmark printed, read and checked."""

    benchmark: ClassVar[str]

    @abstractmethod
    def printed(self) -> list[Printed]:
        """The curves that it holds."""

    @abstractmethod
    def document(self, faults: list[str]) -> dict[str, Any]:
        """Plain values for ``json``; a measurement that failed is a sentence in ``faults``."""


class Benchmark(ABC):
    """A benchmark, which a module of this room declares as ``BENCHMARK``.

    ``number``: by which benchmarks are ordered; ``name``: in cases, settings and stores;
    ``label``: as people call it; ``output_of``: as an error calls what prints its output;
    ``features``: those of an environment that has all of it, each with what it means; none of a
    benchmark whose outputs are read and which no check starts; ``suffix``: of the
    file of a launch that holds its figures; ``figures``: how a row of it begins, for ``grep -E``.
    ``sizes``: what a site may set of its message sizes.
    ``by_protocol``: its functions are protocols, measured between nodes and inside one in two
    directions, and the charts of all stand on one page.
    """

    number: ClassVar[int]
    name: ClassVar[str]
    label: ClassVar[str]
    output_of: ClassVar[str]
    features: ClassVar[Mapping[str, str]]
    functions: ClassVar[tuple[Function, ...]]
    figures: ClassVar[str]
    suffix: ClassVar[str] = "out"
    sizes: ClassVar[type[MessageSizes]] = MessageSizes
    by_protocol: ClassVar[bool] = False

    def function(self, name: str) -> Function:
        """The function of that name; NetproofError where it has none."""
        for function in self.functions:
            if function.name == name:
                return function
        names = ", ".join(function.name for function in self.functions)
        raise NetproofError(f"{self.label} has no function {name!r}; it has {names}")

    def feature(self, function: str) -> str:
        """Return the feature of the environments that can run a function."""
        (only,) = self.features
        return only

    def names(self, *, default: bool) -> list[str]:
        """Names of the functions of a plain acceptance run, or of those beyond it."""
        return [one.name for one in self.functions if one.default is default]

    @abstractmethod
    def cases(
        self,
        where: tuple[str, str, str],
        rank_counts: Sequence[int],
        ranks_per_node: int,
        *,
        all_functions: bool,
    ) -> list[Case]:
        """What is expected of a run on ``where``, a system, partition and environment."""

    @abstractmethod
    def job_what(self, ranks: int, *, default: bool) -> str:
        """What a job of it measures, whatever the configuration."""

    @abstractmethod
    def title(self, function: str) -> str:
        """Benchmark and function: ``IMB Alltoall``, ``NetPIPE TCP``."""

    @abstractmethod
    def words(self, case: Case) -> str:
        """What is measured, as it stands in tables, without the configuration."""

    @abstractmethod
    def what(self, case: Case) -> str:
        """What is measured, as settings and sentences name it."""

    @abstractmethod
    def variant(self, case: Case) -> str:
        """What tells the cases of one function apart."""

    @abstractmethod
    def kind(self, printed: KindOfCurve, named: str) -> str:
        """A curve of an output in a sentence; ``named``: what the user calls the benchmark."""

    @abstractmethod
    def program(self, function: str) -> str:
        """The program that measures a function, whose hash is kept."""

    def programs(self) -> Iterator[str]:
        """All its programs, each once."""
        yield from dict.fromkeys(self.program(one.name) for one in self.functions)

    @abstractmethod
    def subject(self, case: Case) -> str:
        """Stem of the names of the steps that measure a case."""

    @abstractmethod
    def asked(
        self, case: Case, most_bytes: int, settings: MessageSizes = ITS_OWN
    ) -> tuple[int, ...]:
        """Message sizes in bytes that a launch of a case measures; ``settings``: the site's."""

    @abstractmethod
    def read_launch(self, text: str, path: Path, case: Case) -> Curve:
        """The curve in the file that a launch of ``case`` left; ParseError where it is another."""

    @abstractmethod
    def is_one(self, text: str) -> bool:
        """Whether a file's content is its output."""

    @abstractmethod
    def read(self, text: str, path: str, *, bidirectional: bool) -> Output:
        """Its output; ParseError where it is not what it prints. ``bidirectional``: how it ran."""

    def least_run(self) -> list[str]:
        """Program and arguments of its least run over MPI on two ranks, empty without one."""
        return []

    def start(self, function: str, ranks: int) -> list[str]:
        """Program and arguments of a run on so many ranks that does little but start and end.

        Empty where a benchmark has none.
        """
        return []

    def sent(
        self, case: Case, printed: str, said: str, nodes: Sequence[str]
    ) -> Mapping[int, int] | str:
        """How many messages of each size in bytes a launch of ``case`` had to send between nodes.

        ``printed``, ``said``: its standard output and its standard error; ``nodes``: of each rank,
        in their order. A sentence why, where that is not known: unless a benchmark says it.
        """
        return f"how much {self.label} sends is not known"

    def payload(self, case: Case, printed: str, said: str, nodes: Sequence[str]) -> Payload:
        """What a launch of ``case`` had to send between its nodes; arguments as ``sent``'s."""
        sent = self.sent(case, printed, said, nodes)
        if isinstance(sent, str):
            return Payload(None, sent)
        return Payload(sum(size * count for size, count in sent.items()))

    def exchanged(self, case: Case, printed: str, said: str) -> Exchanged:
        """What the ranks of a launch had to send to each other; arguments as ``sent``'s.

        As if each were on a node of its own.
        """
        sent = self.sent(case, printed, said, [f"rank {rank}" for rank in range(case.ranks)])
        if isinstance(sent, str):
            return Exchanged(None, None, sent)
        return Exchanged(sum(sent.values()), sum(size * count for size, count in sent.items()))

    def compared_over_tcp(self, function: str) -> str | None:
        """The function over TCP that one over MPI is compared with, None where there is none."""
        return None


class MpiBenchmark(Benchmark):
    """A benchmark whose functions run between nodes on as many ranks as a job has.

    ``arguments_meaning``: of the partition's key with further arguments, ``<name>_arguments``;
    ``few_calls``: arguments for a few calls of each size, where it is asked whether it runs.
    """

    arguments_meaning: ClassVar[str]
    few_calls: ClassVar[tuple[str, ...]]

    @property
    def arguments_key(self) -> str:
        """The key of a partition with further arguments of its programs."""
        return f"{self.name}_arguments"

    @abstractmethod
    def command(
        self,
        function: Function,
        ranks: int,
        sizes: Sequence[int],
        size_file: str,
        arguments: Sequence[str],
    ) -> list[str]:
        """Program and arguments of a launch, word by word.

        ``sizes``: of the messages in bytes, as ``parts`` makes them, (0,) without any, and
        ``size_file`` the name of a file in its folder with these, a line each; ``arguments``: the
        site's.
        """

    def parts(self, sizes: Sequence[int]) -> tuple[tuple[int, ...], ...]:
        """Message sizes in bytes, as calls of it can measure them one after the other."""
        return (tuple(sizes),)

    def on(self, case_ranks: int, ranks_per_node: int, function: str) -> tuple[int, int]:
        """Ranks, and ranks a node, that a function uses in a job of ``case_ranks``."""
        return (2, 1) if self.function(function).pair else (case_ranks, ranks_per_node)

    def cases(
        self,
        where: tuple[str, str, str],
        rank_counts: Sequence[int],
        ranks_per_node: int,
        *,
        all_functions: bool,
    ) -> list[Case]:
        """Each function on each count of ranks; those for two ranks once."""
        cases = []
        for function in self.functions:
            if not (function.default or all_functions):
                continue
            if function.pair:
                cases.append(Case(*where, self.name, function.name, 2, 1))
                continue
            cases += [
                Case(*where, self.name, function.name, ranks, ranks_per_node)
                for ranks in rank_counts
                if not (function.pairs and ranks % 2)
            ]
        return cases

    def job_what(self, ranks: int, *, default: bool) -> str:
        """``IMB on 16 ranks``; the functions beyond a plain run have a job of their own."""
        which = self.label if default else f"other functions of {self.label}"
        return f"{which} on {ranks} ranks"

    def title(self, function: str) -> str:
        """``IMB Alltoall``."""
        return f"{self.label} {function}"

    def words(self, case: Case) -> str:
        """``IMB Alltoall``: a table has the ranks in a column of their own."""
        return self.title(case.function)

    def what(self, case: Case) -> str:
        """``IMB Alltoall 16 ranks``."""
        return f"{self.title(case.function)} {self.variant(case)}"

    def variant(self, case: Case) -> str:
        """Its ranks."""
        return f"{case.ranks} ranks"

    def kind(self, printed: KindOfCurve, named: str) -> str:
        """``IMB Alltoall 16 ranks in 2 groups, group 1``."""
        ranks = "" if printed.ranks is None else f" {printed.ranks} ranks"
        several = "" if printed.groups == 1 else f" in {printed.groups} groups"
        which = "" if printed.group is None else f", group {printed.group}"
        remark = f", {printed.remark}" if printed.remark else ""
        called = f" ({named})" if named else ""
        return f"{self.title(printed.function)}{ranks}{several}{which}{remark}{called}"

    def subject(self, case: Case) -> str:
        """Its function."""
        return case.function

    def asked(
        self, case: Case, most_bytes: int, settings: MessageSizes = ITS_OWN
    ) -> tuple[int, ...]:
        """Those of its function."""
        return self.function(case.function).sizes(case.ranks, most_bytes, settings)
