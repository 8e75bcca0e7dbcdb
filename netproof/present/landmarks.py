"""A judged session in full: its matrix, landmarks and costs, then the verdict."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from rich.console import Console
from rich.text import Text

from netproof.comparison.comparison import alone
from netproof.criteria import Level
from netproof.present import cpu, matrix, traffic
from netproof.present.compared import summary
from netproof.present.document import EVERY, STYLES, Block, Cell, DataTable, Sentences, show
from netproof.present.sparkline import columns, readable, sparkline
from netproof.present.tables import benchmark_name
from netproof.present.terminal import say
from netproof.present.verdict import print_verdict, state
from netproof.verdict.engine import group
from netproof.verdict.explain import cpu_rows, crossovers
from netproof.verdict.session_verdict import JudgedSession
from netproof.verdict.verdict import CaseVerdict, StoredResult, Verdict

_WORDS = {Level.FAIL: "FAIL", Level.INCONCLUSIVE: "INCONCLUSIVE", Level.WARN: "WARN"}
_LOOKS = {Level.FAIL: "failed", Level.INCONCLUSIVE: "inconclusive", Level.WARN: "warned"}

_LEGEND = (
    "lat: latency; MB/s: peak bandwidth, reached at B bytes; half: bytes with half of it; r∞: MB/s"
    " that the largest messages tend to, n½: bytes with half of that; line: r∞ over the line rate;"
    " 64K: MB/s at 64 KiB; curve: over message sizes, both logarithmic"
)

Row = Sequence[CaseVerdict | StoredResult]
"""Cases that measured the same in every configuration."""


def print_whole(judged: JudgedSession, out: Console) -> None:
    """Print the state, scores, landmarks with curves, costs, and all sentences of the verdict."""
    verdict = judged.verdict
    several: dict[tuple[object, ...], list[CaseVerdict | StoredResult]] = defaultdict(list)
    every: list[CaseVerdict | StoredResult] = list(verdict.cases)
    every += () if verdict.compared_with is None else verdict.compared_with.cases
    for one in every:
        several[group(one.case)].append(one)
    rows: list[Row] = list(several.values())
    show([state(verdict)], out)
    labels = judged.session.labels()
    if labels:
        stated = ", ".join(f"{key}={value}" for key, value in labels.items())
        say(out, f"labels {' '.join(stated.split())}")
    show(matrix.blocks(rows, judged.matrix.baseline), out)
    show(_crossovers(verdict), out)
    show(_against(judged), out)
    show(traffic.blocks(verdict.traffic, judged.session.results), out)
    show(cpu.blocks(cpu_rows(verdict)), out)
    out.print()
    say(out, _legend(judged), "dim")
    show([_landmarks(rows)], out)
    out.print()
    print_verdict(judged, out)
    say(out, f"session {judged.session.path}")


def _crossovers(verdict: Verdict) -> Iterator[Block]:
    """Yield per configuration the rank count from which functions are red, and which are not."""
    alike: dict[tuple[str, str, bool], list[str]] = defaultdict(list)
    for one in crossovers(verdict):
        place = f"{one.case.partition} {one.case.environment}"
        alike[place, one.sentence(), bool(one.red)].append(benchmark_name(one.case))
    if any(red for _, _, red in alike):
        lines = [
            Cell(f"{place} {', '.join(names)}: {sentence}", "failed" if red else "")
            for (place, sentence, red), names in alike.items()
        ]
        yield Sentences(lines, "where functions break down")


def _against(judged: JudgedSession) -> Iterator[Block]:
    """Yield the comparisons of a switch that was measured alone with each stored one."""
    found = alone(judged.session, judged.verdict)
    if found is not None:
        lines = list(map(Cell, map(summary, found.comparisons)))
        lines += [Cell(f"not compared: {why}", "warned") for why in found.alone]
        yield Sentences(lines, f"{found.partition} compared with the other switches")


def _legend(judged: JudgedSession) -> str:
    """Return the meaning of the landmarks' headings, and which messages cannot be the peak."""
    least = {one.line_rate_from_bytes for one in judged.matrix.partitions.values()} - {0}
    if not least:
        return _LEGEND
    bytes_ = " or ".join(map(str, sorted(least)))
    return (
        f"{_LEGEND}; over a link, peaks are of {bytes_} bytes and more, since shorter bursts pass"
        " above its rate"
    )


def _landmarks(rows: Sequence[Row]) -> DataTable:
    """Return a line for each case, by function and rank count, its curves drawn to one scale."""
    every = [one for row in rows for one in row]
    paired = any(
        one.measured is not None and one.measured.landmarks.paired_share is not None
        for one in every
    )
    columns = _COLUMNS if paired else {k: v for k, v in _COLUMNS.items() if k != "paired"}
    groups = {}
    for row in rows:
        case, (_, scale) = row[0].case, _scale(row)
        groups[f"{benchmark_name(case)}, {case.ranks} ranks{scale}"] = len(row)

    def draw(room: int) -> list[Text]:
        return [line for row in rows for line in _curves(row, room)]

    return DataTable(
        ("verdict", "partition", "environment", *columns, "score"),
        [(*_named(one), *_figures(one, columns), _score(one)) for one in every],
        EVERY[3:],
        ranks={**{name: rank for name, (_, _, rank) in columns.items()}, "score": 4},
        groups=groups,
        drawn=("curve", draw),
    )


_COLUMNS = {
    "lat µs": ("latency_us", ".1f", 0),
    "MB/s": ("peak_mb_s", ".1f", 0),
    "at B": ("peak_size", "d", 0),
    "half B": ("half_power_size", "d", 4),
    "r∞": ("asymptotic_mb_s", ".1f", 1),
    "n½ B": ("half_performance_bytes", ".0f", 4),
    "line": ("line_rate_share", ".0%", 2),
    "paired": ("paired_share", ".0%", 3),
    **{f"{kib}K": (f"rate_{kib}_kib_mb_s", ".1f", 3) for kib in (64, 16, 4, 1)},
    "eager B": ("eager_limit", "", 5),
}
"""Columns of landmarks, their formats, and their ranks where not all fit."""


def _figures(
    one: CaseVerdict | StoredResult, columns: Mapping[str, tuple[str, str, int]]
) -> Iterator[str]:
    for name, form, _ in columns.values():
        value = None if one.measured is None else getattr(one.measured.landmarks, name)
        if value is not None and name == "eager_limit":
            value = value.size_below
        yield "-" if value is None else f"{value:{form}}"


def _score(one: CaseVerdict | StoredResult) -> str:
    score = one.score()
    if score is None or score.interval is None:
        return "-"
    low, high = score.interval
    return f"{score.value:.2f} ({low:.2f} to {high:.2f})"


def _named(one: CaseVerdict | StoredResult) -> tuple[Cell, str, Cell]:
    """Return a case's verdict, partition and environment."""
    case = one.case
    if isinstance(one, StoredResult):
        environment = Cell(f"{case.environment}, {one.date}", "stored")
        return Cell("stored", "stored"), case.partition, environment
    word = _WORDS.get(one.level, one.expected or "pass")
    return Cell(word, _LOOKS.get(one.level, "passed")), case.partition, Cell(case.environment)


def _at(one: CaseVerdict | StoredResult, *, rates: bool) -> dict[int, float]:
    """Return what is drawn of a case, by size."""
    curve = None if one.measured is None else one.measured.curve
    if curve is None or curve.sizes == (0,):
        return {}
    values = (curve.bandwidth_mb_s if rates else None) or curve.time_us
    return dict(zip(curve.sizes, values, strict=True))


def _rates(row: Row) -> bool:
    return all(one.measured is None or one.measured.curve.bandwidth_mb_s is not None for one in row)


def _scale(row: Row) -> tuple[tuple[float, float] | None, str]:
    """Return the least and the largest value that are drawn of a function, and that in words."""
    rates = _rates(row)
    ats = [_at(one, rates=rates) for one in row]
    values = readable(value for at in ats for value in at.values())
    if not values:
        return None, ""
    scale, sizes = (min(values), max(values)), sorted({size for at in ats for size in at})
    unit = "MB/s" if rates else "µs"
    return scale, (
        f"  curve: {scale[0]:.3g} to {scale[1]:.3g} {unit} over {sizes[0]} to {sizes[-1]} bytes"
    )


def _curves(row: Row, room: int) -> list[Text]:
    """Return the curves of one function over all configurations, flagged sizes in their colours."""
    scale, _ = _scale(row)
    if scale is None:
        return [Text("")] * len(row)
    rates = _rates(row)
    ats = [_at(one, rates=rates) for one in row]
    over = columns((size for at in ats for size in at), room)
    drawn = []
    for one, at in zip(row, ats, strict=True):
        line = Text(sparkline(at, over, scale, min if rates else max))
        drawn.append(line)
        if isinstance(one, StoredResult):
            line.style = "dim"
            continue
        for level in (Level.WARN, Level.FAIL):
            flagged = {found.size for found in one.findings if found.level is level} - {None}
            for number, sizes in enumerate(over):
                if flagged.intersection(sizes):
                    line.stylize(STYLES[_LOOKS[level]], number, number + 1)
    return drawn
