"""The matrix: the score of every case, by function and switch, for terminal and pages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from netproof.benchmarks import registry
from netproof.present.document import EVERY, Block, Cell, DataTable, Links
from netproof.present.html.content import CaseState, state_of, switch
from netproof.present.tables import benchmark_name
from netproof.site.partition import ScoreBaseline
from netproof.verdict.verdict import CaseVerdict, StoredResult

Row = Sequence[CaseVerdict | StoredResult]
"""Cases that measured the same in every configuration."""


def blocks(
    rows: Sequence[Row],
    baseline: ScoreBaseline | None,
    links: Links | None = None,
) -> Iterator[Block]:
    """Yield what a score is, and a table: a row for each switch and function, a column a library.

    ``links``: to cases' charts, by the cases' keys.
    """
    against = f"against {baseline}" if baseline else "undefined without a score baseline"
    signs = ", ".join(f"{one.sign} {one.word}" for one in CaseState if one is not CaseState.PASSED)
    yield Cell(
        f"Score {against}: the geometric mean over message sizes of its time over the time here;"
        f" above 1 is faster, ~ of disturbed launches. Signs: {signs}. none: not measured whole;"
        " blank: not available; grey, with a day: measured by another session, not judged.",
        "faint",
    )
    environments = list(dict.fromkeys(one.case.environment for row in rows for one in row))
    found: dict[str, list[tuple[Row, dict[str, CaseVerdict | StoredResult]]]] = {}
    for row in rows:
        by_switch: dict[str, dict[str, CaseVerdict | StoredResult]] = {}
        for one in row:
            by_switch.setdefault(switch(one), {})[one.case.environment] = one
        for name, cells in by_switch.items():
            found.setdefault(name, []).append((row, cells))
    yield DataTable(
        ("function", "ranks", *environments),
        [
            (
                Cell(benchmark_name(row[0].case), link=(links or {}).get(row[0].case.key(), "")),
                str(row[0].case.ranks),
                *(_cell(cells.get(name), links or {}) for name in environments),
            )
            for several in found.values()
            for row, cells in several
        ],
        EVERY[1:],
        _sizes_compared(rows),
        groups={name: len(several) for name, several in found.items()},
        heads=2,
    )


def _cell(one: CaseVerdict | StoredResult | None, links: Links) -> str | Cell:
    """Return a case's state and score, with the score's interval below it."""
    if one is None:
        return ""
    score, measured = one.score(), one.measured
    text, below = "no score", []
    if score is not None:
        text, interval = f"{score.value:.2f}", "no interval"
        if score.interval is not None:
            interval = f"{score.interval[0]:.2f}–{score.interval[1]:.2f}"
        below = [interval, *(["disturbed"] if score.disturbed else [])]
        text = f"~{text}" if score.disturbed else text
    elif measured is None:
        text = "none"
    elif measured.curve.sizes == (0,):
        # Of a function without sizes, the time of a call.
        text, below = f"{measured.curve.time_us[0]:.3g} µs", ["no sizes"]
    if isinstance(one, StoredResult):
        why = "; ".join([f"not judged: of session {one.session}, {one.date}", *one.marks])
        return Cell(text, "stored", below, why)
    state = state_of(one)
    why = "; ".join(one.faults if measured is None and one.faults else [state.word])
    signed = text if state is CaseState.PASSED else f"{state.sign} {text}"
    return Cell(signed, state.look, below, why, links.get(one.case.key(), ""))


def _sizes_compared(rows: Sequence[Row]) -> str:
    """Return over which sizes the functions' scores are."""
    found: dict[str, dict[str, None]] = {}
    for one in (one for row in rows for one in row if isinstance(one, CaseVerdict)):
        score = one.score()
        if score is not None and score.common is not None:
            where = f"{one.case.partition} {registry.of(one.case).label}"
            found.setdefault(f"Scores {score.common}", {})[where] = None
    if len(found) == 1:
        return f"{next(iter(found))}."
    return " ".join(f"{sizes} ({', '.join(names)})." for sizes, names in found.items())
