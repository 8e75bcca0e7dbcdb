"""A comparison of sides for the terminal and as a page, and as plain values for ``json``."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from netproof.benchmarks import registry
from netproof.comparison import comparison
from netproof.comparison.comparison import ComparedCase, ComparedSide, Comparison, Outcome
from netproof.errors import NetproofError, grouped
from netproof.measurement.case import Case
from netproof.present.document import EVERY, Block, Cell, DataTable, Headline, Part, Sentences
from netproof.present.documents import plain, some
from netproof.present.html.charts import ChartFigure, Looks
from netproof.present.html.figures import over_size, points
from netproof.present.wording import benchmark_name, columns, first, number, sparkline
from netproof.verdict.engine import group

_DRAWN_RATIOS = (2.0, 10.0)
"""Limits of the upper end of a drawn scale: noise stays flat, outliers leave the rest visible."""

LOOKS = {Outcome.SLOWER: "failed", Outcome.FASTER: "passed"}
_IN_WORDS = {
    Outcome.FASTER: "faster",
    Outcome.SLOWER: "slower",
    Outcome.ALIKE: "no difference overall",
    Outcome.UNDECIDED: "no interval, of one launch,",
    Outcome.UNDEFINED: "no ratio",
}
MARKS = dict(zip(_IN_WORDS, "▲▼=?-", strict=True))

_MEANINGS = "; ".join(f"{mark} {outcome.value}" for outcome, mark in MARKS.items())
_NOT_COMPARED = "none"

_MOST_OF_NODES = 12
"""Differences of nodes that are printed; another driver has dozens of settings of its own."""


def _on_nodes(compared: Comparison) -> tuple[list[dict[str, Any]] | None, str | None]:
    """Return what differs between the nodes of both sides, or why it is not known."""
    try:
        found = comparison.differing(compared).items()
    except NetproofError as error:
        return None, str(error)
    return [{"what": what, "first": one, "second": other} for what, (one, other) in found], None


def node_diffs(compared: Comparison) -> list[str]:
    """Return the differences of nodes, which show whether anything else changed."""
    found, unknown = _on_nodes(compared)
    if found is None:
        return [f"nodes: {unknown}"]
    sentences = [
        f"nodes: {one['what']} {', '.join(one['first'])} and {', '.join(one['second'])}"
        for one in found
    ]
    return first(sentences, _MOST_OF_NODES, "nodes: and {} more, which --format json has")


def differences(compared: Comparison) -> list[str]:
    """Return the differences between both sides in the site's file."""
    return [
        f"{one['what']} {_plain(one['first'])} and {_plain(one['second'])}"
        + ("" if one["cases"] == len(compared.cases) else f" ({one['cases']} cases)")
        for one in compared.differences
    ]


def summary(compared: Comparison) -> str:
    """Return the overall result, in a sentence or two."""
    first, second = compared.first.name, compared.second.name
    counts = [
        f"{word} in {compared.count(of)}" for of, word in _IN_WORDS.items() if compared.count(of)
    ]
    text = f"{second} against {first}, {len(compared.cases)} cases: {', '.join(counts)}"
    if (mean := compared.mean()) is not None:
        text += f"; {mean:.3g} times as fast by the geometric mean"
    if compared.uncompared:
        text += f"; {len(compared.uncompared)} more are not in both"
    for benchmark in registry.BENCHMARKS:
        spans = [
            f"{'faster' if faster else 'slower'} from {least} to {largest} bytes"
            for least, largest, faster in compared.mostly(benchmark.name)
        ]
        if spans:
            text += f". {benchmark.label}: in most cases {', '.join(spans)}"
    return text + _latencies(compared)


def _latencies(compared: Comparison) -> str:
    """Return what the second partition adds to NetPIPE's latency between two nodes."""
    first, second = compared.first, compared.second
    if first.partition == second.partition:
        return ""
    by_benchmark: dict[str, list[str]] = defaultdict(list)
    for one in compared.cases:
        case = one.first.case
        one_way = (case.path, case.direction) == ("inter-node", "oneway")
        netpipe = one_way and registry.of(case).by_protocol
        sentence = one.latency(first.name, second.name) if netpipe else None
        if sentence is not None:
            where = filter(None, (place(compared, case), sentence))
            by_benchmark[benchmark_name(case)].append(": ".join(where))
    return "".join(
        f". Latency of {name}: {'; '.join(sentences)}" for name, sentences in by_benchmark.items()
    )


def whence(side: ComparedSide) -> str:
    """Return the origin of a side's figures: configuration, session, labels, start."""
    place = ":".join(filter(None, (side.session.results[0].system, side.partition)))
    where = " ".join(filter(None, (place, side.environment)))
    labels = "".join(f", {key}={value}" for key, value in side.session.labels().items())
    started = side.session.info.get("time_start", "undated")
    return f"{where} of {side.session.path}, {started}{labels}"


def _plain(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(map(_plain, value))
    return "not said" if value is None else str(value)


def place(compared: Comparison, case: Case) -> str:
    """Return the part of the configuration that both sides have in common."""
    partition = "" if compared.first.partition else case.partition
    environment = "" if compared.first.environment else case.environment
    return f"{partition} {environment}".strip()


def named(compared: Comparison, case: Case) -> str:
    """Return a case by what both sides have in common."""
    return f"{place(compared, case)} {case.what()}".strip()


def outcome(compared: Comparison) -> Headline:
    """Return what prevails, with the summary."""
    faster, slower = compared.count(Outcome.FASTER), compared.count(Outcome.SLOWER)
    if faster == slower:
        return Headline("warned", MARKS[Outcome.ALIKE], "Neither", summary(compared))
    of = Outcome.FASTER if faster > slower else Outcome.SLOWER
    return Headline(LOOKS[of], MARKS[of], _IN_WORDS[of].capitalize(), summary(compared))


def blocks(several: Sequence[Comparison], failed: Mapping[str, str]) -> Iterator[Block]:
    """Yield origin and differences of each side, then ratios, summary and what is missing.

    ``several``: with one first side, a single one in detail; ``failed``: others, and why.
    """
    sides = (several[0].first, *(one.second for one in several))
    yield Sentences([f"{side.name}: {whence(side)}" for side in sides])
    for one in several:
        of = f" of {one.second.name}" if len(several) > 1 else ""
        of_nodes = [f"{of.strip()}, {each}" if of else each for each in node_diffs(one)]
        yield Sentences([*(f"configuration{of}: {each}" for each in differences(one)), *of_nodes])
    yield Sentences(
        [f"{name} is not compared: {why}" for name, why in failed.items()], "", "warned"
    )
    if len(several) > 1:
        yield _ratios_of_sides(several)
    for one in several:
        yield outcome(one)
        yield from details(one, folded=len(several) > 1)


def details(compared: Comparison, *, folded: bool = False) -> Iterator[Block]:
    """Yield ratios, then what is slower, the worst on top, what is faster, and what is missing."""
    first, second = compared.first.name, compared.second.name
    table, most = _ratios(compared, f"Ratios of {second}" if folded else "")
    yield table
    if not folded:
        yield Sentences(
            [
                f"ratio: the time of {first} over that of {second}, with its 95 % interval over the"
                " launches; lat, MB/s, r∞, 64K…1K: latency, peak, asymptotic bandwidth, and rates"
                f" at so many bytes, above 1 {second} is better, faint where the interval has 1 in"
                f" it; added: what {second} adds to the latency; CPU/GB: of CPU seconds for 10⁹"
                f" bytes, above 1 {second} takes fewer; over sizes: the ratio from 1/{most:.3g} to"
                f" {most:.3g}, ▅ and above is faster; {_MEANINGS}"
            ],
            look="faint",
        )
    order = [*LOOKS, Outcome.ALIKE, Outcome.UNDECIDED, Outcome.UNDEFINED]

    def rank(case: ComparedCase) -> tuple[int, float]:
        ratio = case.score.value or 1
        return order.index(case.outcome), -ratio if case.outcome is Outcome.FASTER else ratio

    lines = [
        Cell(
            f"{MARKS[case.outcome]} {named(compared, case.first.case)}: {case.sentence()}",
            LOOKS.get(case.outcome, ""),
        )
        for case in sorted(compared.cases, key=rank)
        if case.outcome in (Outcome.FASTER, Outcome.SLOWER, Outcome.UNDEFINED) or case.ranges
    ]
    yield Sentences(lines, f"{second} against {first} is", folded=folded)
    yield Sentences(uncompared(compared), look="warned")


def _ratios_of_sides(several: Sequence[Comparison]) -> DataTable:
    """Return a row for each case, a column for each side."""
    cells: dict[str, dict[str, Cell]] = {}
    for one in several:
        cells[one.second.name] = {
            named(one, case.first.case): Cell(
                f"{number(case.score.value, '.2f')} {MARKS[case.outcome]}",
                LOOKS.get(case.outcome, ""),
                title=case.sentence(),
            )
            for case in one.cases
        }
    names = dict.fromkeys(name for column in cells.values() for name in column)
    rows = [
        (name, *(column.get(name, _NOT_COMPARED) for column in cells.values())) for name in names
    ]
    caption = f"How many times as fast as {several[0].first.name}; {_MEANINGS}"
    caption += f"; {_NOT_COMPARED}: not in both"
    return DataTable(("function", *cells), rows, EVERY[1:], caption, heads=1)


def _ratios(compared: Comparison, fold: str) -> tuple[DataTable, float]:
    """Return a row for each case, by what both sides have in common, and the drawn scale's end."""
    places = grouped((place(compared, one.first.case), one) for one in compared.cases)
    ordered = [case for cases in places.values() for case in cases]
    least, largest = _DRAWN_RATIOS
    furthest = max((abs(math.log(r)) for case in ordered for r in case.ratios.values()), default=0)
    most = min(max(math.exp(furthest), least), largest)

    def draw(room: int) -> list[str]:
        return [
            sparkline(
                *(case.ratios, columns(case.ratios, room), (1 / most, most)),
                lambda ratios: max(ratios, key=lambda ratio: abs(math.log(ratio))),
            )
            for case in ordered
        ]

    table = DataTable(
        ("", "function", "ratio", "95 %", "lat", "added µs, 95 %", *_LANDMARKS, "CPU/GB"),
        [tuple(_ratio_row(case)) for case in ordered],
        EVERY[2:],
        ranks={
            "added µs, 95 %": 1,
            "CPU/GB": 1,
            **{name: at for name, (_, at) in _LANDMARKS.items()},
        },
        groups={where: len(cases) for where, cases in places.items()},
        drawn=("over sizes", draw),
        fold=fold,
    )
    return table.filled(), most


_LANDMARKS = {
    "MB/s": ("peak_mb_s", 0),
    "r∞": ("asymptotic_mb_s", 1),
    "64K": ("rate_64_kib_mb_s", 2),
    "16K": ("rate_16_kib_mb_s", 2),
    "4K": ("rate_4_kib_mb_s", 2),
    "1K": ("rate_1_kib_mb_s", 2),
}
"""Columns of landmarks' ratios, with their ranks where columns do not fit."""


def _ratio_row(one: ComparedCase) -> Iterator[str | Cell]:
    def landmark(name: str) -> Cell:
        found = one.landmarks[name]
        undecided = found.interval is not None and found.interval[0] <= 1 <= found.interval[1]
        return Cell(number(found.ratio, ".2f"), "faint" if undecided else "")

    case, latency, interval = one.first.case, one.landmarks["latency_us"], one.score.interval
    added = number(latency.difference, "+.1f")
    if latency.difference is not None and latency.difference_interval is not None:
        low, high = latency.difference_interval
        added += f" ({low:+.1f} to {high:+.1f})"
    yield Cell(MARKS[one.outcome], LOOKS.get(one.outcome, ""))
    yield case.what()
    yield Cell(number(one.score.value, ".2f"), "strong", title=one.sentence())
    yield "-" if interval is None else f"{interval[0]:.2f}–{interval[1]:.2f}"
    yield landmark("latency_us")
    yield added
    yield from (landmark(name) for name, _ in _LANDMARKS.values())
    yield number(one.cpu_s_per_gb.ratio, ".2f")


def uncompared(compared: Comparison) -> list[str]:
    """Return the cases that are not in both, a sentence for each reason."""
    sentences = []
    alike = grouped(((measured_by, why), case) for case, measured_by, why in compared.uncompared)
    for (measured_by, why), several in alike.items():
        word = "not measured by either" if measured_by is None else f"only {measured_by} has"
        places = grouped((place(compared, case), case) for case in several)
        which = (
            f"{where} {', '.join(case.what() for case in cases)}".strip()
            for where, cases in places.items()
        )
        sentences.append(f"{word} {'; '.join(which)}: {why}")
    return sentences


def document(compared: Comparison) -> dict[str, Any]:
    """Return plain values for ``json``; sizes in bytes, times in µs, bandwidths in MB/s."""
    on_nodes, unknown = _on_nodes(compared)
    return {
        **some(compared, "first", "second", "differences", summary=summary),
        "geometric_mean": compared.mean(),
        **{"nodes": on_nodes, "nodes_not_known": unknown},
        "cases": plain(compared.cases),
        "not_compared": [
            {**plain(case), "measured_by": measured_by, "why": why}
            for case, measured_by, why in compared.uncompared
        ],
    }


def parts(
    several: Sequence[Comparison], failed: Mapping[str, str], *, every: bool, drawn: bool
) -> Iterator[Part]:
    """Yield what ``blocks`` have, then plots of where a side is slower.

    ``every``: plot also functions in which no side is slower; ``drawn``: with plots.
    """
    yield "comparison", "", list(blocks(several, failed))
    if drawn:
        slower = f"Plots of where {' or '.join(one.second.name for one in several)} is slower"
        plots = _plots(several, every=every)
        yield "plots", "Plots" if every else slower, plots or ["There are none."]


def _plots(comparisons: Sequence[Comparison], *, every: bool) -> list[ChartFigure]:
    """Return time against size of all sides, for functions in which one is slower, or all."""
    cases = [(compared, one) for compared in comparisons for one in compared.cases]
    sides = (side.case.environment for _, one in cases for side in (one.first, one.second))
    # A side's name stands for the switch.
    names = (comparisons[0].first.name, *(one.second.name for one in comparisons))
    looks, plots = Looks(names, tuple(dict.fromkeys(sides))), []
    for members in grouped((group(both[1].first.case), both) for both in cases).values():
        slower = any(
            one.outcome is Outcome.SLOWER or any(not found.faster for found in one.ranges)
            for _, one in members
        )
        if not (every or slower) or not any(one.ratios for _, one in members):
            continue
        # The first side is in every comparison, and drawn once.
        rows = {}
        for compared, one in members:
            where = place(compared, one.first.case)
            for side, measured in ((compared.first, one.first), (compared.second, one.second)):
                spread, launches = measured.mad_us, len(measured.launches)
                name = f"{side.name} {where}".strip()
                for row in points(measured.curve, spread, launches, name, side.name, measured.case):
                    rows[name, row["size_bytes"]] = row
        title = members[0][1].first.case.what()
        plots.append(over_size(title, list(rows.values()), looks))
    return plots
