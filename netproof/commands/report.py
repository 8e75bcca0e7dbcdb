"""The body of ``netproof report``: a folder of pages, and the same charts as files."""

from __future__ import annotations

import csv
import shlex
import shutil
from collections.abc import Callable, Sequence
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

import altair as alt
import vl_convert

from netproof.comparison.comparison import Comparison, alone
from netproof.diagnosis import diagnosis
from netproof.errors import NetproofError
from netproof.present import tables
from netproof.present.export import csv_cell
from netproof.present.html import content, figures, pair_map, sides
from netproof.present.html.charts import ChartFigure
from netproof.present.html.folder import replacing
from netproof.present.html.html import file_name
from netproof.present.html.looks import Looks
from netproof.present.html.material import MAIN, Report
from netproof.present.html.page import pages
from netproof.present.html.pair_map import PairMap
from netproof.session.provenance import OfSession
from netproof.studies import literature
from netproof.studies.session_figures import SessionAlongsideStudy
from netproof.studies.study import Study
from netproof.verdict import judging
from netproof.verdict.exit_status import CANNOT_JUDGE
from netproof.verdict.judging import JudgedSession
from netproof.verdict.options import AlongsideOptions

HTML, CSV = "html", "csv"
FORMATS = (HTML, "png", "svg", "pdf", CSV)
_VEGA_LITE = ".".join(alt.SCHEMA_VERSION.lstrip("v").split(".")[:2])
_PIXELS = 2
"""Pixels of a PNG per pixel of the chart, for sharp prints and dense screens."""
_OWN_FILES = ("report.css", "report.js")


def run(
    name: Path | None,
    *,
    store: Path | None,
    system: str | None,
    full: bool,
    folder: Path | None,
    formats: str,
    asked: AlongsideOptions | None = None,
    switch: str | None = None,
    power: bool = False,
) -> int:
    """Write the report on a session and return the exit status: 0 written, 2 not possible.

    ``name`` and ``store`` as ``judging.find`` takes them; ``system``, ``full`` and ``asked`` as for
    the verdict, which the report shows and its exit status does not; ``folder`` None writes beside
    the session's report, and for a stored session here; ``formats``: those of ``FORMATS``, with
    commas between; ``switch``: the partition that has a page against the others, else the only
    measured one, alongside stored others; ``power``: with changes that would have failed.
    """
    try:
        wanted = _formats(formats)
        with tables.working("judging the session"):
            judged = judging.judge_session(
                judging.find(name, store), system=system, full=full, asked=asked, store=store
            )
        target = folder or alongside(judged.session.path, "report")
        again = _command(name or judged.session.path, store, system, full, formats, asked, switch)
        if power:
            again += " --power"
        with tables.working("gathering what the report shows"):
            gathered = assemble(judged, wanted, again, switch, power=power)
        write(gathered, target, wanted)
    except NetproofError as error:
        return _refused(str(error))
    except OSError as error:
        return _refused(f"{error.filename}: cannot be written: {error.strerror}")
    shown = target / MAIN if HTML in wanted else target / "charts"
    tables.say(tables.console(), f"report {shown}")
    return 0


def assemble(
    judged: JudgedSession,
    formats: Sequence[str] = (HTML,),
    command: str = "",
    switch: str | None = None,
    *,
    power: bool = False,
) -> Report:
    """Return all that the pages and files show of a judged session.

    ``switch`` and ``power`` as in ``run``. Missing studies and provenance are explained in their
    place. Raises NetproofError where two charts would have one name, and for a switch that is
    missing or the only one.
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
        found = judging.provenance_of(judged.session)
    except NetproofError as error:
        not_there["provenance"] = str(error)
    maps: dict[str, tuple[PairMap, ...]] = {}
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
        figures={group.name: figures.of_time(group, judged.matrix) for group in groups},
        netpipe=figures.of_netpipe(judged.verdict, judged.matrix),
        studies=studies,
        provenance=found,
        scripts=(_bundle_name(), "report.js"),
        files=tuple(name for name in formats if name != HTML),
        command=command,
        not_there=not_there,
        against=alone(judged.session, judged.verdict, switch),
        diagnoses=diagnosis.diagnose(judged) if diagnosis.partitions_of(judged) else (),
        maps=maps,
        powers=tuple(judging.power_of(judged)) if power else (),
    )


def write(report: Report, folder: Path, formats: Sequence[str]) -> None:
    """Write a report into a folder, replacing an earlier one: all of it or nothing.

    Raises NetproofError where the folder holds other things than a report, and OSError where it
    cannot be written.
    """
    with replacing(folder) as new:
        if HTML in formats:
            with tables.working("writing the pages"):
                _write_assets(new / "assets", folder / "assets")
                for name, page in pages(report).items():
                    (new / name).write_text(page, encoding="utf-8")
        writers = [
            (name, writer) for name, writer in _writers(report.looks).items() if name in formats
        ]
        if not writers:
            return
        drawn = [one for one in report.all_figures() if one.rows]
        charts = new / "charts"
        charts.mkdir()
        for figure in tables.tracked(drawn, "drawing the charts"):
            for suffix, write_one in writers:
                write_one(figure, charts / f"{figure.name}.{suffix}")


def write_sides(
    title: str, comparisons: Sequence[Comparison], folder: Path, *, every: bool = False
) -> Path:
    """Write a page on compared sides into a folder, replacing an earlier one.

    ``comparisons`` and ``every`` as ``sides.page`` has them; returns the page's path. Raises
    NetproofError where the folder holds other things, or cannot be written.
    """
    return write_page(folder, lambda scripts: sides.page(title, comparisons, scripts, every=every))


def write_page(folder: Path, page: Callable[[Sequence[str]], str]) -> Path:
    """Write one page into a folder, replacing an earlier one, and return its path.

    ``page``: makes it from the names of its scripts. Raises NetproofError where the folder holds
    other things, or cannot be written.
    """
    try:
        with replacing(folder) as new, tables.working("writing the page"):
            _write_assets(new / "assets", folder / "assets")
            made = page((_bundle_name(), "report.js"))
            (new / MAIN).write_text(made, encoding="utf-8")
    except OSError as error:
        raise NetproofError(f"{error.filename}: cannot be written: {error.strerror}") from error
    return folder / MAIN


def _formats(stated: str) -> tuple[str, ...]:
    found = tuple(dict.fromkeys(name.strip().lower() for name in stated.split(",")))
    unknown = [name for name in found if name not in FORMATS]
    if unknown:
        raise NetproofError(
            f"--format {stated}: unknown format {', '.join(map(repr, unknown))}; choose"
            f" {', '.join(FORMATS)}, with commas between them"
        )
    return found


def alongside(session: Path, word: str) -> Path:
    """Return the folder for output on a session: beside its report, or here if stored."""
    if session.is_file():
        return session.with_name(f"{session.stem}-{word}")
    return Path(f"{file_name(session.name)}-{word}")


def _command(
    name: Path,
    store: Path | None,
    system: str | None,
    full: bool,
    formats: str,
    asked: AlongsideOptions | None,
    switch: str | None,
) -> str:
    parts = ["netproof", "report", str(name)]
    parts += ["--store", str(store)] if store and (asked or not name.is_file()) else []
    parts += ["--system", system] if system else []
    parts += ["--full"] if full else []
    if asked:
        parts += ["--alongside-stored"]
        parts += ["--max-age", f"{asked.max_age_days:g}"]
        parts += ["--leave-out-marked"] if asked.leave_out_marked else []
    parts += ["--switch", switch] if switch else []
    parts += ["--format", formats] if formats != HTML else []
    return shlex.join(parts)


def _refused(reason: str) -> int:
    tables.say(tables.console(stderr=True), f"netproof: no report: {reason}", "red")
    return CANNOT_JUDGE


def _bundle_name() -> str:
    return f"vega-{_VEGA_LITE}-{version('vl-convert-python')}.js"


def _write_assets(folder: Path, before: Path) -> None:
    """Write style and scripts; reuse the bundle of Vega, which takes seconds, from before."""
    folder.mkdir()
    for name in _OWN_FILES:
        shutil.copyfile(str(files("netproof.present.html") / "assets" / name), folder / name)
    bundle = _bundle_name()
    if (before / bundle).exists():
        shutil.copyfile(before / bundle, folder / bundle)
        return
    made = vl_convert.javascript_bundle(vl_version=_VEGA_LITE)
    # As a module, since a plain script would share its names with the page.
    (folder / bundle).write_text(f"(() => {{\n{made}\n}})();\n", encoding="utf-8")


def _writers(looks: Looks) -> dict[str, Callable[[ChartFigure | PairMap, Path], None]]:
    def png(figure: ChartFigure | PairMap, path: Path) -> None:
        made = vl_convert.vegalite_to_png(
            figure.for_file(looks), vl_version=_VEGA_LITE, scale=_PIXELS
        )
        path.write_bytes(made)

    def svg(figure: ChartFigure | PairMap, path: Path) -> None:
        made = vl_convert.vegalite_to_svg(figure.for_file(looks), vl_version=_VEGA_LITE)
        path.write_text(made, encoding="utf-8")

    def pdf(figure: ChartFigure | PairMap, path: Path) -> None:
        made = vl_convert.vegalite_to_pdf(figure.for_file(looks), vl_version=_VEGA_LITE)
        path.write_bytes(made)

    return {"png": png, "svg": svg, "pdf": pdf, CSV: _write_csv}


def _write_csv(figure: ChartFigure | PairMap, path: Path) -> None:
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
