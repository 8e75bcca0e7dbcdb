"""NetPIPE over TCP and over MPI: its functions, sizes, names, and payload."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import Field, field_validator

from netproof.benchmarks.interface import (
    BOTH_WAYS,
    ONE_WAY,
    Benchmark,
    Function,
    KindOfCurve,
)
from netproof.benchmarks.message_sizes import ITS_OWN, MessageSizes
from netproof.benchmarks.netpipe_reading import (
    COLUMNS,
    LOOP_5,
    PRINTED_ROW,
    NetpipeOutput,
    read_file,
    read_print,
)
from netproof.benchmarks.netpipe_reading import sizes as sizes_of
from netproof.errors import NetproofError, ParseError
from netproof.measurement.case import Case
from netproof.measurement.curve import Curve
from netproof.measurement.units import MEBI

PROTOCOLS = ("tcp", "mpi")

PATHS = ("between", "inside")
"""Between two nodes, and between two ranks of one node."""

DIRECTIONS = (ONE_WAY, BOTH_WAYS)

VARIANTS = tuple(itertools.product(PROTOCOLS, PATHS, DIRECTIONS))
"""Protocol, path and direction of everything that a job measures."""

LEAST_TRIALS = 3
"""Trials per size of NetPIPE 3.7.2; 7 where it was built with FINAL (netpipe.h)."""

_FEWEST = shlex.split("-l 1 -u 8 -p 0 -n 1 -o /dev/null")
"""Options of its least run."""

FIGURES = r"^ *[0-9]+ +[0-9]+\.[0-9]+ "
"""Beginning of a row of the ``-o`` file, for ``grep -E``: the run came at least that far."""


def subject(protocol: str, path: str, direction: str) -> str:
    """Return the stem of the names of a variant's steps, such as ``tcp-between-oneway``."""
    return f"{protocol}-{path}-{direction}"


def variants(subjects: Collection[str]) -> tuple[tuple[str, str, str], ...]:
    """Return the variants of these ``subject``s, in the order of all.

    Raise NetproofError for an unknown one.
    """
    known = {subject(*variant): variant for variant in VARIANTS}
    unknown = sorted(set(subjects) - set(known))
    if unknown:
        raise NetproofError(
            f"NetPIPE has no variant {', '.join(map(repr, unknown))}; it has {', '.join(known)}"
        )
    return tuple(variant for name, variant in known.items() if name in subjects)


class PerturbedSizes(MessageSizes):
    """Settings by which ``perturbation`` bytes below and above each size are measured too."""

    perturbation: Annotated[int, Field(ge=0)] = Field(
        0, description="bytes below and above each size that are measured too (-p)"
    )

    @field_validator("perturbation")
    @classmethod
    def _is_measured(cls, value: int) -> int:
        try:
            sizes_of(1, MEBI, value)
        except NetproofError:
            raise ValueError(
                f"with {value} NetPIPE's sizes would not increase from 1 byte on; they do with 3"
            ) from None
        return value


def perturbation_of(settings: MessageSizes) -> int:
    """Return the bytes below and above each size that a site has measured too, 0 for none."""
    return settings.perturbation if isinstance(settings, PerturbedSizes) else 0


class Netpipe(Benchmark):
    """NetPIPE over TCP (NPtcp) and over MPI (NPmpi)."""

    number = 1
    name = "netpipe"
    label = "NetPIPE"
    output_of = "NetPIPE"
    features: ClassVar[Mapping[str, str]] = {
        "netpipe-tcp": "NetPIPE over TCP (NPtcp)",
        "netpipe-mpi": "NetPIPE over MPI (NPmpi)",
    }
    figures = FIGURES
    suffix = "np"
    sizes = PerturbedSizes
    by_protocol = True
    functions = tuple(
        Function(
            "netpipe",
            protocol,
            pair=True,
            default=True,
            rated=True,
            single=True,
            ping_pong=protocol == "mpi",
        )
        for protocol in PROTOCOLS
    )

    def feature(self, function: str) -> str:
        """Return the feature of its protocol."""
        return f"{self.name}-{function}"

    def cases(
        self,
        where: tuple[str, str, str],
        rank_counts: Sequence[int],
        ranks_per_node: int,
        *,
        all_functions: bool,
    ) -> list[Case]:
        """Return each protocol on each path in each direction."""
        return [
            Case(*where, self.name, protocol, 2, 1 if path == "between" else 2, path, direction)
            for protocol, path, direction in VARIANTS
        ]

    def job_what(self, ranks: int, *, default: bool) -> str:
        """Return the name of the one job for all."""
        return self.label

    def title(self, function: str) -> str:
        """Return ``NetPIPE TCP``."""
        return f"NetPIPE {function.upper()}"

    def words(self, case: Case) -> str:
        """Return ``NetPIPE TCP between oneway``."""
        return f"{self.title(case.function)} {case.path} {case.direction}"

    def what(self, case: Case) -> str:
        """Return ``NetPIPE tcp between oneway``."""
        return f"NetPIPE {case.function} {case.path} {case.direction}"

    def variant(self, case: Case) -> str:
        """Return its path and direction."""
        direction = {"oneway": "one way", "bidirectional": "both ways at once"}
        return f"{case.path}, {direction.get(case.direction, case.direction)}"

    def kind(self, printed: KindOfCurve, named: str) -> str:
        """Return ``NetPIPE tcp oneway``."""
        return " ".join(filter(None, ("NetPIPE", named, printed.direction)))

    def program(self, function: str) -> str:
        """Return the protocol's program."""
        return f"NP{function}"

    def subject(self, case: Case) -> str:
        """Return ``tcp-between-oneway``."""
        return subject(case.function, case.path, case.direction)

    def asked(
        self, case: Case, most_bytes: int, settings: MessageSizes = ITS_OWN
    ) -> tuple[int, ...]:
        """Return NetPIPE's own sizes, and those that a perturbation adds."""
        return sizes_of(1, most_bytes, perturbation_of(settings))

    def read_launch(self, text: str, path: Path, case: Case) -> Curve:
        """Read the file that ``-o`` wrote."""
        bidirectional = case.direction == "bidirectional"
        return read_file(text, str(path), bidirectional=bidirectional).curve()

    def least_run(self) -> list[str]:
        """Return the command of one round trip of a few sizes."""
        return ["NPmpi", *_FEWEST]

    def start(self, function: str, ranks: int) -> list[str]:
        """Return the command of one round trip of a few sizes."""
        return [self.program(function), *_FEWEST]

    def sent(
        self, case: Case, printed: str, said: str, nodes: Sequence[str]
    ) -> Mapping[int, int] | str:
        """Return each size's repetitions in every trial, there and back."""
        if len(set(nodes)) == 1:
            return {}
        rows = [PRINTED_ROW.fullmatch(line) for line in said.splitlines()]
        sent = {int(row[2]): 2 * LEAST_TRIALS * int(row[3]) for row in rows if row is not None}
        return sent or "NetPIPE printed no row that says how often it sent"

    def is_one(self, text: str) -> bool:
        """Check for its main loop, or for columns of figures from the first line on."""
        if "Now starting the main loop" in text or LOOP_5.search(text):
            return True
        first = next((line for line in text.split("\n") if line.strip()), "")
        return COLUMNS.fullmatch(first) is not None

    def read(self, text: str, path: str, *, bidirectional: bool) -> NetpipeOutput:
        """Read what 3.7.2 printed, or what ``-o`` wrote; ParseError for what 5.x printed."""
        if found := LOOP_5.search(text):
            raise ParseError(
                path,
                text.count("\n", 0, found.start()) + 1,
                found[0],
                "is what NetPIPE 5.x prints, where sizes and rates are rounded: give the file that"
                " it wrote, np.out unless -o names another",
            )
        if "Now starting the main loop" in text:
            return read_print(text, path, bidirectional=bidirectional)
        return read_file(text, path, bidirectional=bidirectional)

    def compared_over_tcp(self, function: str) -> str | None:
        """Return TCP for MPI, to show what MPI loses."""
        return "tcp" if function == "mpi" else None


BENCHMARK = Netpipe()
