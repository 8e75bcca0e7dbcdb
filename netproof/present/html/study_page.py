"""The page on a study redone: its measurements, in its order, on the system at hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from netproof.present.html import curves, score_chart, studies, tuning
from netproof.present.html.charts import ChartFigure
from netproof.present.html.content import Group
from netproof.present.html.curves import FigureView
from netproof.present.html.html import file_name, render
from netproof.present.html.material import Report
from netproof.present.html.studies import StudyView
from netproof.present.html.tuning import SweepView
from netproof.studies.session_figures import SessionAlongsideStudy
from netproof.studies.study import NetpipeCharts, Study, StudyPart
from netproof.tuning.gains import Tuned
from netproof.tuning.sweep import Sweep


@dataclass(frozen=True)
class StudyPartView:
    """A part of the page; ``missing``: what is not there, and why, a sentence each."""

    name: str
    title: str
    text: str
    tables: StudyView | None
    figures: tuple[FigureView, ...]
    sweeps: tuple[SweepView, ...]
    missing: tuple[str, ...]


def page(
    report: Report,
    study: Study,
    sweeps: Sequence[tuple[Sweep, Tuned]],
    not_swept: Mapping[str, str],
    scripts: Sequence[str],
) -> str:
    """Return the page on a study that has one, with a session's figures alongside its own.

    ``sweeps``: of the settings that the study varied; ``not_swept``: why a setting has none, by its
    name.
    """
    return render(
        "study.html",
        title=f"{study.title}, redone on {report.system}",
        scripts=scripts,
        study=study.title,
        source=study.source,
        system=report.system,
        session=str(report.judged.session.path),
        parts=[_part(part, report, study, sweeps, not_swept) for part in study.page],
    )


def _part(
    part: StudyPart,
    report: Report,
    study: Study,
    sweeps: Sequence[tuple[Sweep, Tuned]],
    not_swept: Mapping[str, str],
) -> StudyPartView:
    missing = [] if part.not_measured is None else [part.not_measured]
    figures: list[FigureView] = []
    if part.netpipe is not None:
        figures += _netpipe(part.netpipe, report, missing)
    for function in part.functions:
        for group in _groups(function, report, missing):
            figures += _drawn([report.figures[group.name]], report, missing)
    for function in part.scores:
        groups = _groups(function, report, missing)
        if groups:
            scores = score_chart.of_groups(groups[0].function, groups, report.looks)
            if scores.specification is None:
                missing.append(f"{scores.title}: the session has no score of it")
            else:
                figures.append(scores)
    shown = [tuning.view(*one) for one in sweeps if one[0].parameter in part.sweeps]
    swept = {one[0].parameter for one in sweeps}
    missing += [not_swept[name] for name in part.sweeps if name not in swept]
    return StudyPartView(
        name=file_name(part.heading),
        title=part.heading,
        text=part.text or "",
        tables=_tables(study, report) if part.tables else None,
        figures=tuple(figures),
        sweeps=tuple(shown),
        missing=tuple(missing),
    )


def _tables(study: Study, report: Report) -> StudyView:
    return studies.of_study(study, SessionAlongsideStudy(report.judged.session))


def _netpipe(asked: NetpipeCharts, report: Report, missing: list[str]) -> list[FigureView]:
    pairs = [
        pair
        for (path, direction, _), pair in report.netpipe.items()
        if (path, direction) == (asked.path, asked.direction)
    ]
    if not pairs:
        missing.append(f"NetPIPE {asked.path} {asked.direction}: the session was not to measure it")
    return [one for pair in pairs for one in _drawn(pair, report, missing)]


def _drawn(figures: Sequence[ChartFigure], report: Report, missing: list[str]) -> list[FigureView]:
    """Return the charts with a curve; name only the first without, since all lack the same."""
    found = [curves.figure(one, report.looks, ()) for one in figures if one.rows]
    if figures and not found:
        missing.append(f"{figures[0].title}: the session has no curve of it")
    return found


def _groups(function: str, report: Report, missing: list[str]) -> list[Group]:
    found = [one for one in report.groups if one.case.function == function]
    if not found:
        missing.append(f"{function}: the session was not to measure it")
    return found
