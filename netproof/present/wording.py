"""Parts of sentences, cells and lines of characters that several presenters share."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, TypeVar

from netproof.errors import counted as counted
from netproof.errors import grouped

if TYPE_CHECKING:
    from netproof.measurement.case import Case
    from netproof.site.matrix import Absence

T = TypeVar("T")
K = TypeVar("K")

_TURNING = (0x061C, 0x200E, 0x200F, 0x2028, 0x2029, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
"""Characters that reverse the text that follows them on a screen, or end its line."""
_VISIBLE = {
    **{code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if chr(code) != "\n"},
    **{code: f"\\u{code:04x}" for code in _TURNING},
}
"""Control characters, each with the text that is printed for it."""


def visible(text: str) -> str:
    """Return the text with its control characters shown by their code."""
    return text.translate(_VISIBLE)


def with_time_unit(time_us: float) -> str:
    """Return a time with three significant digits, in µs, ms or s."""
    value, unit = time_us, "µs"
    for larger in ("ms", "s"):
        if value >= 1000:
            value, unit = value / 1000, larger
    return f"{value:.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}"


def duration(seconds: float) -> str:
    """Return a time as people write it: ``40 s``, ``12 min``, ``2 h 5 min``."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    whole = round(seconds / 60)
    return f"{whole} min" if whole < 120 else f"{whole // 60} h {whole % 60} min"


def number(value: float | None, form: str, unit: str = "", none: str = "-") -> str:
    """Return a figure in a format with its unit, or what stands for a missing one."""
    return none if value is None else f"{value:{form}}{unit}"


def size_in_words(size: int) -> str:
    """Return a size in bytes as people write it: ``64 KiB``."""
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size and size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size:,} B"


def not_available(absences: Sequence[Absence]) -> list[str]:
    """Return the absences, a sentence for each partition, benchmark and reason."""
    # The registry loads every parser.
    from netproof.benchmarks.registry import FEATURES

    together = grouped(((one.partition, one.benchmark, one.reason), one) for one in absences)
    return [
        f"{partition} {', '.join(one.environment for one in several)}"
        f" {FEATURES.get(benchmark, benchmark)}: {reason}"
        for (partition, benchmark, reason), several in together.items()
    ]


def first(several: Sequence[T], most: int, rest: str) -> list[T | str]:
    """Return at most so many, and in the words of ``rest`` how many more there are."""
    more = len(several) - most
    return [*several[:most], *([rest.format(more)] if more > 0 else [])]


CASE = ("partition", "environment", "benchmark", "ranks")
"""Headings of a case's own cells."""


def case_cells(case: Case) -> tuple[str, str, str, str]:
    """Return partition, environment, benchmark and ranks of a case."""
    return case.partition, case.environment, benchmark_name(case), str(case.ranks)


def benchmark_name(case: Case) -> str:
    """Return a case without its configuration: ``NetPIPE TCP inter-node oneway``."""
    # The registry loads every parser.
    from netproof.benchmarks import registry

    return registry.of(case).words(case)


BLOCKS = "▁▂▃▄▅▆▇█"


def columns(sizes: Iterable[int], width: int) -> tuple[tuple[int, ...], ...]:
    """Spread message sizes in bytes over at most ``width`` columns, as evenly as possible."""
    ordered = sorted(set(sizes))
    count = min(width, len(ordered))
    edges = [round(number * len(ordered) / count) for number in range(count + 1)] if count else []
    return tuple(tuple(ordered[a:b]) for a, b in pairwise(edges))


def readable(values: Iterable[float]) -> list[float]:
    """Return the values that have a logarithm to draw; a printed 0 does not."""
    from netproof.criteria.findings import READABLE

    return [value for value in values if READABLE[0] <= value <= READABLE[1]]


def sparkline(
    at: Mapping[int, float],
    over: Sequence[Collection[int]],
    scale: tuple[float, float],
    worst: Callable[[list[float]], float],
) -> str:
    """Return a block for each column of sizes, a blank where the curve has none of them.

    ``at``: size in bytes to value; ``over``: from ``columns``; ``scale``: values above 0 of the
    lowest and the highest block, between which heights go by the logarithm; ``worst``: which of
    several stands for a column, ``max`` for times, ``min`` for bandwidths: no dropout is lost.
    """
    low, high = map(math.log, scale)
    line = []
    for sizes in over:
        values = readable(at[size] for size in sizes if size in at)
        if not values:
            line.append(" ")
            continue
        share = (math.log(worst(values)) - low) / (high - low) if high > low else 0.5
        step = min(max(int(share * len(BLOCKS)), 0), len(BLOCKS) - 1)
        line.append(BLOCKS[step])
    return "".join(line)


def file_name(*parts: object) -> str:
    """Return a name for a file or an anchor: lower-case ASCII letters, digits and hyphens."""
    name = re.sub(r"[^a-z0-9]+", "-", " ".join(map(str, parts)).lower()).strip("-")
    return name or "unnamed"
