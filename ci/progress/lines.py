"""ReFrame's lines on tests: which began, and how they ended."""

from __future__ import annotations

import re
from dataclasses import dataclass

from netproof.benchmarks import registry
from netproof.site.jobs import PlannedJob

COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_TEST = re.compile(
    r"\[ *(?P<word>RUN|OK|FAIL|ERROR|ABORT|SKIP|XFAIL|XPASS) *\] "
    r"(?:\( *(?P<done>\d+)/(?P<all>\d+)\) )?"
    r"(?P<name>\w+)(?P<parameters>.*?) /[0-9a-f]+ @[^:\s]+:(?P<partition>[^+\s]+)\+(?P<environ>\S+)"
)
_RANKS = re.compile(r"%ranks=(\d+)")
BAD = ("FAIL", "ERROR", "ABORT", "XPASS")
_FURTHER = "Further"
"""How the names of tests end that launch on: as long as what they find undecided."""

Test = tuple[str, str, str]
"""A test by its name as ReFrame displays it, its partition and its environment."""


@dataclass(frozen=True)
class Line:
    """A line of ReFrame's on one test: RUN, or how it ended.

    ``done`` of ``tests`` had ended by then, 0 where it does not tell; ``job``: None for a test
    that is no job of launches.
    """

    word: str
    done: int
    tests: int
    test: Test
    job: PlannedJob | None


def parse(text: str) -> Line | None:
    """What a line of ReFrame's output says of a test; None for any other line."""
    match = _TEST.match(COLOUR.sub("", text))
    if match is None:
        return None
    job, ranks = None, _RANKS.search(match["parameters"])
    where = (match["partition"], match["environ"])
    found = registry.whose_job(match["name"])
    if found is not None:
        benchmark, default = found
        if benchmark.by_protocol:
            job = PlannedJob(*where, benchmark.name, 2)
        elif ranks:
            job = PlannedJob(*where, benchmark.name, int(ranks[1]), default)
    test = (match["name"] + match["parameters"], *where)
    return Line(match["word"], int(match["done"] or 0), int(match["all"] or 0), test, job)


def launches_on(test: Test) -> bool:
    """Whether a test launches on what others find undecided."""
    return test[0].split(" ", 1)[0].endswith(_FURTHER)
