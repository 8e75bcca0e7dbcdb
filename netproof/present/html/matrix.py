"""Second part of a report: the scores of the whole matrix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from netproof.benchmarks import registry
from netproof.criteria import Finding
from netproof.present.html import content
from netproof.present.html.content import CaseState, Group, state_of
from netproof.present.html.material import Report
from netproof.session.measured import Measured
from netproof.verdict.verdict import Borrowed, Judged


@dataclass(frozen=True)
class MatrixCell:
    """A case's state and score; ``below``: the score's interval and remarks."""

    look: str
    sign: str
    shown: str
    below: tuple[str, ...]
    title: str


@dataclass(frozen=True)
class MatrixRow:
    """A switch and count of ranks: a cell for each library, None without such a case.

    ``span``: how many rows the switch's name heads, 0 for all but the first of them.
    """

    partition: str
    stored: bool
    span: int
    variant: str
    link: str
    cells: tuple[MatrixCell | None, ...]


@dataclass(frozen=True)
class FunctionMatrix:
    """Scores of one function; ``by``: what its second column names."""

    function: str
    by: str
    environments: list[str]
    rows: tuple[MatrixRow, ...]
    caption: str


@dataclass(frozen=True)
class MatrixView:
    """Scores by switch and ranks against libraries, for each function.

    ``baseline``: of the scores, None where there are no scores; ``stored``: whether other sessions
    measured some.
    """

    baseline: str | None
    legend: str
    stored: bool
    functions: tuple[FunctionMatrix, ...]


def view(report: Report, by_page: Mapping[str, Sequence[Group]]) -> MatrixView:
    """Return all that the part shows."""
    functions: dict[str, list[Group]] = {}
    for groups in by_page.values():
        for group in groups:
            functions.setdefault(group.function, []).append(group)
    baseline = report.judged.matrix.baseline
    return MatrixView(
        baseline=None if baseline is None else str(baseline),
        legend=", ".join(
            f"{state.sign} {state.word}" for state in CaseState if state is not CaseState.PASSED
        ),
        stored=bool(report.looks.stored),
        functions=tuple(
            _function_matrix(report, name, groups) for name, groups in functions.items()
        ),
    )


def _function_matrix(report: Report, function: str, groups: Sequence[Group]) -> FunctionMatrix:
    cells = {
        (one.case.environment, content.switch(one), group.name): one
        for group in groups
        for one in (*group.members, *group.stored)
    }
    environments = [
        name for name in report.looks.environments if any(key[0] == name for key in cells)
    ]
    # Paper and telephones are narrow, and there are more switches and ranks than libraries.
    rows = []
    for partition in report.looks.partitions:
        there = [
            group for group in groups if any(key[1:] == (partition, group.name) for key in cells)
        ]
        rows += [
            MatrixRow(
                partition,
                partition in report.looks.stored,
                0 if place else len(there),
                group.variant,
                group.link,
                tuple(_cell(cells.get((name, partition, group.name))) for name in environments),
            )
            for place, group in enumerate(there)
        ]
    by = "path" if registry.of(groups[0].case).by_protocol else "ranks"
    return FunctionMatrix(function, by, environments, tuple(rows), _sizes_compared(groups))


def _cell(judged: Judged | Borrowed | None) -> MatrixCell | None:
    if judged is None:
        return None
    if isinstance(judged, Borrowed):
        return _stored_cell(judged)
    state, score = state_of(judged), judged.score()
    below: tuple[str, ...] = ()
    title = state.word
    if score is not None and score.value is not None:
        shown = f"{score.value:.2f}"
        below = _below(score, "no interval")
        title = f"{state.word}; {score.why}"
    elif judged.measured is None:
        shown = state.word if state is CaseState.ABSENT else "no curve"
        title = "; ".join(judged.faults) or title
    elif judged.measured.curve.sizes == (0,):
        shown, below = _call(judged.measured), ("no sizes",)
    else:
        shown = "no score"
    sign = "" if state is CaseState.PASSED else state.sign
    return MatrixCell(state.look, sign, shown, below, title)


def _stored_cell(borrowed: Borrowed) -> MatrixCell:
    score = borrowed.score()
    title = "; ".join(
        [
            f"not judged: of session {borrowed.session}, {borrowed.date}",
            *borrowed.marks,
            *([score.why] if score is not None else []),
        ]
    )
    shown = "no score"
    below: tuple[str, ...] = ()
    if score is not None:
        shown, below = f"{score.value:.2f}", _below(score)
    elif borrowed.measured.curve.sizes == (0,):
        shown = _call(borrowed.measured)
    return MatrixCell("stored", "", shown, below, title)


def _below(score: Finding, without: str = "") -> tuple[str, ...]:
    """Return a score's interval, or ``without`` one, and whether it is disturbed."""
    interval = without
    if score.interval is not None:
        interval = f"{score.interval[0]:.2f}–{score.interval[1]:.2f}"
    return tuple(filter(None, (interval, "disturbed" if score.disturbed else "")))


def _call(measured: Measured) -> str:
    """Return the time of a call of a function without message sizes."""
    return f"{measured.curve.time_us[0]:.3g} µs"


def _sizes_compared(groups: Sequence[Group]) -> str:
    found: dict[str, list[str]] = {}
    for group in groups:
        for one in group.members:
            score = one.score()
            if score is not None and score.common is not None:
                names = found.setdefault(f"Scores {score.common}", [])
                if one.case.partition not in names:
                    names.append(one.case.partition)
    if len(found) == 1:
        return f"{next(iter(found))}."
    return " ".join(f"{sizes} ({', '.join(names)})." for sizes, names in found.items())
