"""The second part of a report: the scores of the whole matrix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from netproof.present.html import content
from netproof.present.html.content import CaseState, Group, state_of
from netproof.present.html.html import Markup, element, joined, table
from netproof.present.html.material import Report
from netproof.verdict.verdict import Borrowed, Judged


def part(report: Report, by_page: Mapping[str, Sequence[Group]]) -> Markup:
    """Scores by switch and ranks against libraries, for each function."""
    baseline = report.judged.matrix.baseline
    explained = (
        "Score: geometric mean over message sizes of the baseline's time over the time here, so"
        f" above 1 is faster than the baseline {baseline}; below it, the 95 % interval over"
        " launches."
        if baseline is not None
        else "There are no scores: the baseline's partition is no part of what was asked for."
    )
    legend = ", ".join(
        f"{state.sign} {state.word}" for state in CaseState if state is not CaseState.PASSED
    )
    functions: dict[str, list[Group]] = {}
    for groups in by_page.values():
        for group in groups:
            functions.setdefault(group.function, []).append(group)
    return joined(
        element("p", explained),
        element("p", f"Signs: {legend}. Each cell leads to its curves.", class_="faint"),
        element("p", "Grey, with a day: measured by another session, not judged.", class_="faint")
        if report.looks.stored
        else None,
        element(
            "div",
            [_function_matrix(report, name, groups) for name, groups in functions.items()],
            class_="matrices",
        ),
    )


def _function_matrix(report: Report, function: str, groups: Sequence[Group]) -> Markup:
    cells = {
        (one.case.environment, content.switch(one), group.name): (one, group)
        for group in groups
        for one in (*group.members, *group.stored)
    }
    partitions = [name for name in report.looks.partitions if any(key[1] == name for key in cells)]
    environments = [
        name for name in report.looks.environments if any(key[0] == name for key in cells)
    ]
    head = element(
        "tr",
        element("th", "switch", scope="col"),
        element("th", "path" if groups[0].case.benchmark == "netpipe" else "ranks", scope="col"),
        [element("th", name, scope="col") for name in environments],
    )
    # Paper and telephones are narrow, and there are more switches and ranks than libraries.
    rows = []
    for partition in partitions:
        there = [
            group for group in groups if any(key[1:] == (partition, group.name) for key in cells)
        ]
        rows += [
            element(
                "tr",
                element(
                    "th",
                    partition,
                    scope="rowgroup",
                    rowspan=len(there),
                    class_="stored" if partition in report.looks.stored else None,
                )
                if group is there[0]
                else None,
                element("th", element("a", group.variant, href=group.link), scope="row"),
                [
                    _cell(*cells.get((environment, partition, group.name), (None, None)))
                    for environment in environments
                ],
            )
            for group in there
        ]
    return element(
        "section",
        element("h3", function),
        table([head], rows, caption=_sizes_compared(groups), class_="matrix"),
    )


def _cell(judged: Judged | Borrowed | None, group: Group | None) -> Markup:
    if judged is None or group is None:
        return element("td", "–", class_="no-case", title="not in the configuration")
    if isinstance(judged, Borrowed):
        return _stored_cell(judged, group)
    state, score = state_of(judged), judged.score()
    sign = (
        element("span", f"{state.sign} ", class_="sign") if state is not CaseState.PASSED else None
    )
    below: object = None
    title = state.word
    if score is not None and score.value is not None:
        shown = f"{score.value:.2f}"
        if score.interval is not None:
            below = element("small", f"{score.interval[0]:.2f}–{score.interval[1]:.2f}")
        else:
            below = element("small", "no interval")
        if score.disturbed:
            below = joined(below, element("small", "disturbed"))
        title = f"{state.word}; {score.why}"
    elif judged.measured is None:
        shown = state.word if state is CaseState.ABSENT else "no curve"
        title = "; ".join(judged.faults) or title
    elif judged.measured.curve.sizes == (0,):
        shown = f"{judged.measured.curve.time_us[0]:.3g} µs"
        below = element("small", "no sizes")
    else:
        shown = "no score"
    link = element("a", sign, shown, href=group.link)
    return element("td", link, below, class_=state.look, title=title)


def _stored_cell(borrowed: Borrowed, group: Group) -> Markup:
    score = borrowed.score()
    title = "; ".join(
        [
            f"not judged: of session {borrowed.session}, {borrowed.date}",
            *borrowed.marks,
            *([score.why] if score is not None else []),
        ]
    )
    shown, below = "no score", None
    if score is not None:
        shown = f"{score.value:.2f}"
        if score.interval is not None:
            below = element("small", f"{score.interval[0]:.2f}–{score.interval[1]:.2f}")
        if score.disturbed:
            below = joined(below, element("small", "disturbed"))
    elif borrowed.measured.curve.sizes == (0,):
        shown = f"{borrowed.measured.curve.time_us[0]:.3g} µs"
    link = element("a", shown, href=group.link)
    return element("td", link, below, class_="stored", title=title)


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
    return " ".join(f"{told} ({', '.join(names)})." for told, names in found.items())
