"""A folder of pages on a session, and the same charts as files; single pages of other verbs."""

from __future__ import annotations

import csv
import shutil
from collections.abc import Callable, Sequence
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

import vl_convert

from netproof.comparison.comparison import alone
from netproof.diagnosis import diagnosis
from netproof.errors import NetproofError
from netproof.experiments import literature
from netproof.experiments.literature import SessionAlongsideStudy, Study
from netproof.present import terminal
from netproof.present.export import csv_cell
from netproof.present.html import content, pair_map
from netproof.present.html.charts import VEGA_LITE, ChartFigure, Looks, templates
from netproof.present.html.folder import replacing
from netproof.present.html.html import file_name, script_json
from netproof.present.html.material import MAIN, Report
from netproof.present.html.page import pages
from netproof.session.provenance import OfSession
from netproof.verdict import session_verdict
from netproof.verdict.session_verdict import JudgedSession

HTML, CSV = "html", "csv"
FORMATS = (HTML, "png", "svg", "pdf", CSV)
_PIXELS = 2
"""Pixels of a PNG per pixel of the chart, for sharp prints and dense screens."""
_OWN_SCRIPTS = ("charts.js", "report.js")


def assemble(
    judged: JudgedSession,
    formats: Sequence[str] = (HTML,),
    command: str = "",
    switch: str | None = None,
    *,
    power: bool = False,
) -> Report:
    """Return all that the pages and files show of a judged session.

    ``switch``: the partition that has a page against the others, else the only measured one,
    alongside stored others; ``power``: with changes that would have failed. Missing studies and
    provenance are explained in their place. Raise NetproofError where two charts would have one
    name, and for a switch that is missing or the only one.
    """
    groups = content.groups(judged.verdict)
    cases = [one.case for one in judged.verdict.cases]
    alongside = () if judged.verdict.alongside is None else judged.verdict.alongside.cases
    stored = tuple(dict.fromkeys(content.switch(one) for one in alongside))
    not_there: dict[str, str] = {}
    studies: tuple[Study, ...] = ()
    found: OfSession | None = None
    try:
        SessionAlongsideStudy(judged.session)
        studies = tuple(literature.load(name) for name in literature.names())
    except NetproofError as error:
        not_there["studies"] = str(error)
    try:
        found = session_verdict.provenance_of(judged.session)
    except NetproofError as error:
        not_there["provenance"] = str(error)
    maps: dict[str, tuple[ChartFigure, ...]] = {}
    for one in judged.verdict.pairs:
        partition = one.rounds.partition
        maps[partition] = (*maps.get(partition, ()), *pair_map.of_rounds(one.rounds))
    return Report(
        judged=judged,
        groups=groups,
        looks=Looks(
            tuple(dict.fromkeys([*(case.partition for case in cases), *stored])),
            tuple(dict.fromkeys(one.environment for one in [*cases, *(b.case for b in alongside)])),
            stored,
        ),
        studies=studies,
        provenance=found,
        scripts=_scripts(),
        files=tuple(name for name in formats if name != HTML),
        command=command,
        not_there=not_there,
        against=alone(judged.session, judged.verdict, switch),
        diagnoses=diagnosis.diagnose(judged) if diagnosis.partitions_of(judged) else (),
        maps=maps,
        powers=tuple(session_verdict.power_of(judged)) if power else (),
    )


def write(report: Report, folder: Path, formats: Sequence[str]) -> None:
    """Write a report into a folder, replacing an earlier one: all of it or nothing.

    Raises NetproofError where the folder holds other things than a report, and OSError where it
    cannot be written.
    """
    with replacing(folder) as new:
        if HTML in formats:
            with terminal.working("writing the pages"):
                _write_assets(new / "assets", folder / "assets")
                for name, page in pages(report):
                    (new / name).write_text(page, encoding="utf-8")
        writers = [
            (name, writer) for name, writer in _writers(report.looks).items() if name in formats
        ]
        if not writers:
            return
        charts = new / "charts"
        charts.mkdir()
        for figure in terminal.tracked(list(report.all_figures()), "drawing the charts"):
            for suffix, write_one in writers if figure.rows else ():
                write_one(figure, charts / f"{figure.name}.{suffix}")


def write_page(folder: Path, page: Callable[[Sequence[str]], str]) -> Path:
    """Write one page into a folder, replacing an earlier one, and return its path.

    ``page``: makes it from the names of its scripts. Raises NetproofError where the folder holds
    other things, or cannot be written.
    """
    try:
        with replacing(folder) as new, terminal.working("writing the page"):
            _write_assets(new / "assets", folder / "assets")
            made = page(_scripts())
            (new / MAIN).write_text(made, encoding="utf-8")
    except OSError as error:
        raise NetproofError(f"{error.filename}: cannot be written: {error.strerror}") from error
    return folder / MAIN


def alongside(session: Path, word: str) -> Path:
    """Return the folder for output on a session: beside its report, or here if stored."""
    if session.is_file():
        return session.with_name(f"{session.stem}-{word}")
    return Path(f"{file_name(session.name)}-{word}")


def _scripts() -> tuple[str, ...]:
    return _bundle_name(), *_OWN_SCRIPTS


def _bundle_name() -> str:
    return f"vega-{VEGA_LITE}-{version('vl-convert-python')}.js"


def _write_assets(folder: Path, before: Path) -> None:
    """Write style and scripts; reuse the bundle of Vega, which takes seconds, from before."""
    folder.mkdir()
    for name in ("report.css", _OWN_SCRIPTS[1]):
        shutil.copyfile(str(files("netproof.present.html") / "assets" / name), folder / name)
    made = script_json(templates())
    (folder / _OWN_SCRIPTS[0]).write_text(f"const netproofCharts = {made};\n", encoding="utf-8")
    bundle = _bundle_name()
    if (before / bundle).exists():
        shutil.copyfile(before / bundle, folder / bundle)
        return
    made = vl_convert.javascript_bundle(vl_version=VEGA_LITE)
    # As a module, since a plain script would share its names with the page.
    (folder / bundle).write_text(f"(() => {{\n{made}\n}})();\n", encoding="utf-8")


def _writers(looks: Looks) -> dict[str, Callable[[ChartFigure, Path], None]]:
    def drawn(draw: Callable[..., bytes | str], **options: int) -> Callable[..., None]:
        def write_one(figure: ChartFigure, path: Path) -> None:
            made = draw(figure.for_file(looks), vl_version=VEGA_LITE, **options)
            path.write_bytes(made.encode() if isinstance(made, str) else made)

        return write_one

    return {
        "png": drawn(vl_convert.vegalite_to_png, scale=_PIXELS),
        "svg": drawn(vl_convert.vegalite_to_svg),
        "pdf": drawn(vl_convert.vegalite_to_pdf),
        CSV: _write_csv,
    }


def _write_csv(figure: ChartFigure, path: Path) -> None:
    """Write the chart's points, with the flags at each, and the envelope as further columns.

    Repeated measurements are in a file of their own.
    """
    marks: dict[tuple[str, int], list[str]] = {}
    for flag in figure.flags:
        place = (flag["configuration"], flag["size_bytes"])
        marks.setdefault(place, []).append(f"{flag['criterion']} {flag['mark']}")
    least = {one["size_bytes"]: one["time_us"] for one in figure.envelope}
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow([*figure.rows[0], "envelope_us", "flags"])
        for one in figure.rows:
            size = one["size_bytes"]
            flagged = "; ".join(marks.get((one["configuration"], size), []))
            row = [*one.values(), least.get(size), flagged]
            writer.writerow(list(map(csv_cell, row)))
    if figure.again:
        with path.with_stem(f"{path.stem}-again").open("w", encoding="utf-8", newline="") as stream:
            rows = csv.DictWriter(stream, figure.again[0])
            rows.writeheader()
            rows.writerows(
                {key: csv_cell(value) for key, value in one.items()} for one in figure.again
            )
