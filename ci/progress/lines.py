"""ReFrame's lines on tests that begin and end."""

from __future__ import annotations

import re
from dataclasses import dataclass

from netproof.benchmarks import registry
from netproof.site.matrix import PlannedJob

COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_TEST = re.compile(
    r"\[ *(?P<word>RUN|OK|FAIL|ERROR|ABORT|SKIP|XFAIL|XPASS) *\] "
    r"(?:\( *(?P<done>\d+)/(?P<all>\d+)\) )?"
    r"(?P<name>\w+)(?P<parameters>.*?) /[0-9a-f]+ @[^:\s]+:(?P<partition>[^+\s]+)\+(?P<environ>\S+)"
)
_RANKS = re.compile(r"%ranks=(\d+)")
BAD = ("FAIL", "ERROR", "ABORT", "XPASS")
_FURTHER = "Further"
"""End of the names of tests that repeat launches of undecided cases."""

Test = tuple[str, str, str]
"""ReFrame's display name of a test, its partition and its environment."""


@dataclass(frozen=True)
class Line:
    """A line of ReFrame on one test: RUN, or its result.

    ``done`` of ``tests`` had ended by then, 0 if not shown; ``job``: None for a test without
    launches.
    """

    word: str
    done: int
    tests: int
    test: Test
    job: PlannedJob | None


def parse(text: str) -> Line | None:
    """Parse a line of ReFrame's output on a test; return None for any other line."""
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


def repeats_launches(test: Test) -> bool:
    """Check whether a test repeats launches of undecided cases."""
    return test[0].split(" ", 1)[0].endswith(_FURTHER)
