"""LinkTest 1.2 (``mpilinktest``): ping-pongs between all pairs of ranks, read into one size.

The time of a message is that of the slowest pair; those of the fastest and the mean stand beside
it. Its MB are 10⁶ or 2²⁰ bytes, whichever makes one size of all its times and rates.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from netproof.benchmarks.fixed import Lines, Row, TableError, numbers
from netproof.benchmarks.interface import Benchmark, Function, Output, Table
from netproof.measurement.case import MEBI

_STEP = re.compile(
    r" *(Serial|Parallel) +PingPong for step +([0-9]{1,9}): +avg= *(\S+)us \( *(\S+) MB/s\)"
    r" +min= *(\S+)us \( *(\S+) MB/s\) +max= *(\S+)us \( *(\S+) MB/s\)(?: \[ alltoall .* \])? *"
)
_SUMMARY = re.compile(r"(?:analyse|timing) summary: .*| *")
_WORK = re.compile(r"timings\[000\] \[work\] +t= *(\S+)s *")
_RESULT = re.compile(r"RESULT: (Min|Max|Avg) Time: +(\S+)us \( *(\S+) MB/s\) \[iter +1 \] *")
_ALL = re.compile(r"timings\[000\] \[all\] +t= *(\S+)s *")
_AFTER = re.compile(
    r" *[0-9]{3}: starting collect for stride +[0-9]+| *[0-9]+: PINGPONG +[0-9]+ +<-> +[0-9]+: .*"
    r"|RESULT: (?:Min|Max|Avg) Time Stest: .*|timings\[000\] \[\w+\] +t= *\S+s *| *"
)
MOST_BYTES = 2**30


class LinkTest(Benchmark):
    """LinkTest of Jülich, which no check starts."""

    number = 9
    name = "linktest"
    label = "LinkTest"
    only_read = (Function("pingpong", rated=True, single=True, ping_pong=True),)
    heads = re.compile(r"(?P<program> *(?:Serial|Parallel) +PingPong for step +1: )")

    def read_next(self, lines: Lines, before: Sequence[str], **_: Any) -> Output:
        """Return the slowest pair of a run from its first step to its last line."""
        first, steps = lines.number + 1, 0
        bounds: list[tuple[float, ...]] = []
        pairs: list[tuple[float, float]] = []
        while not (work := lines.match(_WORK)):
            if lines.match(_SUMMARY):
                continue
            found = lines.expect(_STEP, "a step, or `timings[000] [work]`")
            steps += 1
            if int(found[2]) != steps:
                lines.refuse(f"expected step {steps}")
            names = ("avg", "MB/s", "min", "MB/s", "max", "MB/s")
            figures = numbers(lines, found.groups()[2:], names)
            mean, least, most = times = figures[::2]
            if not 0 < least <= mean + 0.001 <= most + 0.002:
                lines.refuse("expected 0 < min <= avg <= max")
            bounds.append((least, most, mean))
            pairs += zip(times, figures[1::2], strict=True)
        if not bounds or work is None:
            lines.refuse("has no step", TableError)
        lines.skip_blank()
        every, result = [*zip(*bounds, strict=True)], {}
        made = (min(every[0]), max(every[1]), sum(every[2]) / steps)
        for name in ("Min", "Max", "Avg"):
            found = lines.expect(_RESULT, f"`RESULT: {name} Time` of one iteration")
            if found[1] != name:
                lines.refuse(f"expected `RESULT: {name} Time`")
            result[name], rate = numbers(lines, found.groups()[1:], (f"{name} Time", "MB/s"))
            pairs.append((result[name], rate))
        for (name, time), of_steps in zip(result.items(), made, strict=True):
            if abs(time - of_steps) > 0.002:
                lines.refuse(f"the {name} Time of its steps is {of_steps:.3f}")
        size = _size(lines, pairs)
        while not lines.match(_ALL):
            lines.expect(_AFTER, "`timings[000] [all]`, its last line")
        values = {"fastest": result["Min"], "mean": result["Avg"]}
        row = Row(first + len(bounds) - 1, size, values, result["Max"])
        table = Table(lines.path, "pingpong", steps + 1, (row,), first, 1, ("fastest", "mean"))
        return Output(self, lines.path, (table,))


def _size(lines: Lines, pairs: Sequence[tuple[float, float]]) -> int:
    """Return the bytes of a message that makes each rate of its time."""
    found = []
    for unit in (MEBI, 10**6):
        least, most = 0.0, float(MOST_BYTES)
        for time, rate in pairs:
            least = max(least, (time - 0.0006) * (rate - 0.0051) * unit / 1e6)
            most = min(most, (time + 0.0006) * (rate + 0.0051) * unit / 1e6)
        # Sizes are whole KiB, or else powers of two.
        for step in (1024, 1):
            sizes = [step * one for one in range(-int(-least // step), int(most // step) + 1)[:9]]
            whole = [one for one in sizes if one and (step > 1 or one & (one - 1) == 0)]
            if whole:
                found += whole
                break
    if len(set(found)) != 1:
        why = "no" if not found else "more than one"
        lines.refuse(f"times and rates are of {why} size of messages", TableError)
    return found[0]


BENCHMARK = LinkTest()
