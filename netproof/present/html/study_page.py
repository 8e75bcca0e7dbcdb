"""Earlier studies: a part of a report, and the page on a study redone on the system at hand."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

from netproof.errors import NetproofError
from netproof.experiments import literature
from netproof.experiments.gains import SweepTable
from netproof.experiments.literature import SessionInStudy, Study, StudyPart
from netproof.experiments.sweep import Sweep
from netproof.present import studies as tables_of_studies
from netproof.present import sweeps as presenter
from netproof.present.document import Block, Cell, DataTable, Part, Sentences
from netproof.present.html import content, experiments
from netproof.present.html.charts import (
    MARKS,
    STROKE_SIZE,
    ChartFigure,
    Looks,
    Rows,
    dots,
    present,
    tips,
    word,
)
from netproof.present.html.content import Group
from netproof.present.html.html import file_name, page_of
from netproof.present.html.report import Report

_SMOOTH, _RED = "no size is red", "red at some size"
"""Meanings of a configuration's mark: a score alone hides what a few sizes do."""


def blocks(report: Report) -> Iterator[Block]:
    """Yield every study, with the session in its columns; or why studies are missing."""
    try:
        alongside = SessionInStudy(report.judged.session)
        studies = [literature.load(name) for name in literature.names()]
    except NetproofError as error:
        yield f"The studies' tables are not available: {error}"
        return
    yield "This session's landmarks in the columns of each study, and the study's own figures."
    for one in studies:
        yield Cell(one.title, "heading")
        yield from _here(one, alongside)
        own = [f"{one.source}", *tables_of_studies.study_notes(one)]
        yield Sentences(own, "What the study has", folded=True)
        for number, table in enumerate(tables_of_studies.study_tables(one), 1):
            yield dataclasses.replace(table, fold=f"The study's table {number}")


def _here(study: Study, alongside: SessionInStudy) -> list[Block]:
    """Return a session in the columns of a study, and why figures are missing."""
    tables = tables_of_studies.tables_alongside(study, alongside)
    none = "This study's figures have no counterpart in a session."
    # Only of the figures that the tables above requested.
    reasons = alongside.reasons()
    why = f"Why figures are not available: {len(reasons)}"
    return [*tables, *([] if tables else [none]), Sentences(reasons, why, folded=True)]


def page(
    report: Report,
    study: Study,
    sweeps: Sequence[tuple[Sweep, SweepTable]],
    not_swept: Mapping[str, str],
) -> str:
    """Return the page on a study that has one, with a session's figures alongside its own.

    ``sweeps``: of the settings that the study varied; ``not_swept``: why a setting has none, by its
    name.
    """
    parts: list[Part] = [
        (file_name(one.heading), one.heading, list(_part(one, report, study, sweeps, not_swept)))
        for one in study.page
    ]
    session = report.judged.session.path
    when = f"Redone on {report.system}, from the session {session}. The study: {study.source}."
    title = f"{study.title}, redone on {report.system}"
    return page_of(title, parts, heading=study.title, when=when)


def _part(
    part: StudyPart,
    report: Report,
    study: Study,
    sweeps: Sequence[tuple[Sweep, SweepTable]],
    not_swept: Mapping[str, str],
) -> Iterator[Block]:
    """Yield a part of the page, and what is not there and why, a sentence each."""
    missing = [] if part.not_measured is None else [part.not_measured]
    figures: list[ChartFigure] = []

    def draw(several: Sequence[ChartFigure], what: str = "curve") -> None:
        drawn = [one for one in several if one.rows]
        figures.extend(drawn)
        if several and not drawn:
            # All lack the same: the first stands for them.
            missing.append(f"{several[0].title}: the session has no {what} of it")

    def groups(function: str) -> list[Group]:
        found = [one for one in report.groups if one.case.function == function]
        if not found:
            missing.append(f"{function}: the session was not to measure it")
        return found

    if part.netpipe is not None:
        asked = (part.netpipe.path, part.netpipe.direction)
        pairs = [key for key in report.netpipe if key[:2] == asked]
        for key in pairs:
            draw(report.pair(key))
        if not pairs:
            missing.append(f"NetPIPE {' '.join(asked)}: the session was not to measure it")
    for function in part.functions:
        for group in groups(function):
            draw([report.figure(group)])
    for function in part.scores:
        several = groups(function)
        if several:
            draw([_scores(several, report.looks)], "score")
    swept = {one.parameter for one, _ in sweeps}
    missing += [not_swept[name] for name in part.sweeps if name not in swept]
    if part.text:
        yield part.text
    if part.tables:
        yield Cell("Here", "heading")
        yield from _here(study, SessionInStudy(report.judged.session))
        yield Cell("There", "heading")
        yield from tables_of_studies.study_tables(study)
        yield Sentences(tables_of_studies.study_notes(study))
    if figures:
        yield figures
    for one, table in sweeps:
        if one.parameter in part.sweeps:
            title, answer = presenter.answer(one, table)
            yield Cell(title, "heading", name=file_name(title))
            yield from [*answer, *experiments.charts(one, table)]
    yield Sentences(missing, "Not shown")


def _scores(groups: Sequence[Group], looks: Looks) -> ChartFigure:
    """Return the chart of a function's scores at each count of ranks; empty without scores.

    A score is the geometric mean over the sizes of the baseline's time over the configuration's,
    with its 95 % interval; after the GigE synthetic-benchmark report.
    """
    missing: dict[str, str] = {}
    rows: Rows = []
    against = ""
    for judged, variant in ((one, group.variant) for group in groups for one in group.members):
        name = f"{content.configuration(judged.case)}, {variant}"
        found = judged.score()
        if found is None:
            missing[name] = "no score"
            continue
        against = found.against or against
        low, high = found.interval or (found.value, found.value)
        state = _RED if judged.failed else _SMOOTH
        row = {"configuration": name, "environment": judged.case.environment, "value": found.value}
        rows.append({**row, "low": low, "high": high, "state": state})
    environments = present(rows, "environment")
    colours = looks.colours(environments, of="environment")
    channels = {
        "y": word("configuration", sort=present(rows, "configuration"), axis={"labelLimit": 320}),
        "color": word(
            "environment",
            looks.legend,
            scale={"domain": environments, "range": colours},
            legend={"symbolType": "stroke", "symbolSize": STROKE_SIZE},
        ),
    }
    number = ",.3~r"
    tooltip = tips(
        configuration="configuration",
        value=("score", number),
        low=("from", number),
        high=("to", number),
        state="criteria",
    )
    shapes = {"domain": [_SMOOTH, _RED], "range": ["circle", MARKS["failed"]]}
    cells = [
        (
            row["configuration"],
            f"{row['value']:.3g}",
            f"{row['low']:.3g} to {row['high']:.3g}",
            row["state"],
        )
        for row in rows
    ]
    return dots(
        f"{groups[0].function}: times as fast as {against or 'the score baseline'}",
        rows,
        "times as fast as the baseline",
        tooltip,
        channels,
        word("state", "criteria", scale=shapes),
        sentences=[
            "The geometric mean over all common sizes, and its 95 % interval over launches."
        ],
        missing=missing,
        table=DataTable(("configuration", "score", "95 % interval", "criteria"), cells, (1, 2)),
    )
