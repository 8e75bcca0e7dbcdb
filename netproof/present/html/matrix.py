"""Second part of a report: the scores of the whole matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from netproof.benchmarks import registry
from netproof.criteria import Finding
from netproof.present.html import content
from netproof.present.html.content import CaseState, Group, state_of
from netproof.present.html.report import Report
from netproof.verdict.verdict import CaseVerdict, StoredResult


def view(report: Report, groups: Sequence[Group]) -> dict[str, Any]:
    """Return scores by switch and ranks against libraries, for each function.

    ``baseline``: of the scores, None where there are no scores; ``stored``: whether other sessions
    measured some.
    """
    functions: dict[str, list[Group]] = {}
    for group in groups:
        functions.setdefault(group.function, []).append(group)
    return {
        "baseline": report.judged.matrix.baseline,
        "legend": ", ".join(
            f"{state.sign} {state.word}" for state in CaseState if state is not CaseState.PASSED
        ),
        "stored": report.looks.stored,
        "functions": [_function(report, name, several) for name, several in functions.items()],
    }


def _function(report: Report, function: str, groups: Sequence[Group]) -> dict[str, Any]:
    """Return the matrix of a function; ``by``: what its second column names.

    A switch's rows stand together: each a group with a cell for each library, None without a case.
    """
    # Paper and telephones are narrow, and there are more switches and ranks than libraries.
    switches: dict[str, list[tuple[Group, dict[str, CaseVerdict | StoredResult]]]] = {}
    present: set[str] = set()
    for group in groups:
        rows: dict[str, dict[str, CaseVerdict | StoredResult]] = {}
        for one in (*group.members, *group.stored):
            rows.setdefault(content.switch(one), {})[one.case.environment] = one
            present.add(one.case.environment)
        for partition, cells in rows.items():
            switches.setdefault(partition, []).append((group, cells))
    environments = [name for name in report.looks.environments if name in present]
    return {
        "function": function,
        "by": "path" if registry.of(groups[0].case).by_protocol else "ranks",
        "environments": environments,
        "switches": {
            partition: [
                (group, [_cell(cells.get(name)) for name in environments])
                for group, cells in switches[partition]
            ]
            for partition in report.looks.partitions
            if partition in switches
        },
        "caption": _sizes_compared(groups),
    }


def _cell(one: CaseVerdict | StoredResult | None) -> dict[str, Any] | None:
    """Return a case's state and score; ``below``: the score's interval and remarks."""
    if one is None:
        return None
    score, measured = one.score(), one.measured
    stored = isinstance(one, StoredResult)
    state = None if stored else state_of(one)
    shown, below = "no score", []
    if score is not None:
        shown, below = f"{score.value:.2f}", _below(score, "" if stored else "no interval")
    elif measured is not None and measured.curve.sizes == (0,):
        # Of a function without sizes, the time of a call.
        shown = f"{measured.curve.time_us[0]:.3g} µs"
        below = [] if stored else ["no sizes"]
    elif measured is None:
        shown = state.word if state is CaseState.ABSENT else "no curve"
    if stored:
        reasons = [f"not judged: of session {one.session}, {one.date}", *one.marks]
    elif measured is None and one.faults:
        reasons = list(one.faults)
    else:
        reasons = [state.word]
    return {
        "look": "stored" if stored else state.look,
        "sign": "" if stored or state is CaseState.PASSED else state.sign,
        "shown": shown,
        "below": below,
        "title": "; ".join(reasons),
    }


def _below(score: Finding, without: str) -> list[str]:
    """Return a score's interval, or ``without`` one, and whether it is disturbed."""
    interval = without
    if score.interval is not None:
        interval = f"{score.interval[0]:.2f}–{score.interval[1]:.2f}"
    return [one for one in (interval, "disturbed" if score.disturbed else "") if one]


def _sizes_compared(groups: Sequence[Group]) -> str:
    found: dict[str, dict[str, None]] = {}
    for group in groups:
        for one in group.members:
            score = one.score()
            if score is not None and score.common is not None:
                found.setdefault(f"Scores {score.common}", {})[one.case.partition] = None
    if len(found) == 1:
        return f"{next(iter(found))}."
    return " ".join(f"{sizes} ({', '.join(names)})." for sizes, names in found.items())
