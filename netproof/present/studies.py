"""Earlier studies as tables for terminal and page, a session alongside them, and a study redone."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from netproof.criteria.rate import loss
from netproof.errors import NetproofError, grouped
from netproof.experiments import literature
from netproof.experiments.literature import (
    ABSENT,
    RATE_KIB,
    RELATIONS,
    Adapters,
    SessionInStudy,
    Study,
    StudyPart,
    named,
)
from netproof.measurement.case import line_rate_share, mb_s, mbit_s, us
from netproof.present.document import EVERY, Block, Cell, DataTable, Part, Sentences
from netproof.present.html.charts import MARKS, ChartFigure, Looks, Rows, dots, present
from netproof.present.wording import file_name, number

if TYPE_CHECKING:
    from netproof.experiments.sweep import Sweep
    from netproof.present.html.content import Group
    from netproof.present.html.report import Report

_SMOOTH, _RED = "no size is red", "red at some size"
"""Meanings of a configuration's mark: a score alone hides what a few sizes do."""

_PEAKS = (
    *("where", "network", "MPI Mbps", "bytes", "TCP Mbps", "bytes", "MPI loss"),
    *("MPI of\nline rate", "TCP of\nline rate", "MPI µs", "TCP µs"),
)
_HARDWARE = ("", "card", "driver", "MTU", "MPI", "switch")
_FIGURES = ("figure", "value", "of link", "of line rate")
_ADAPTERS = (
    *("latency µs", "peak", "peak at"),
    *(f"at {kib} KB" for kib in RATE_KIB),
    *("peak of link", "peak of line rate"),
)
_RUN = ("bytes", "repetitions", "Mbps printed", "seconds", "MB/s", "Mbit/s")


def blocks(study: Study, alongside: SessionInStudy | None) -> Iterator[Block]:
    """Yield a study's own tables, then a session in their columns."""
    yield Cell(f"{study.name}: {study.title}", "heading")
    yield Sentences([study.source, *study_notes(study)], "What the study has", folded=True)
    for place, table in enumerate(study_tables(study), 1):
        yield dataclasses.replace(table, fold=f"The study's table {place}")
    if alongside is not None:
        yield Cell(f"alongside it, {alongside.path}", "strong")
        yield from _here(study, alongside)


def study_tables(study: Study) -> list[DataTable]:
    """Return a study's tables, as printed there but for losses and shares, which are computed."""
    found = []
    if study.peaks:
        rows: list[tuple[str, ...]] = []
        for one in study.peaks:
            sides = (one.mpi, one.tcp)
            peaks = (text for each in sides for text in (f"{each.peak:g}", str(each.size_printed)))
            shares = (_shares(one.shares(each, study.mbps), "*") for each in sides)
            times = (f"{each.latency_us:.2f}" for each in sides)
            rows.append((one.where, one.network, *peaks, f"{one.loss:.1%}", *shares, *times))
        assumed = any(one.mtu for one in study.peaks)
        caption = "* for an assumed MTU" if assumed else ""
        found.append(DataTable(_PEAKS, rows, EVERY[2:], caption, heads=2))
    if study.adapters:
        found += _adapter_tables(study.adapters)
    if study.run:
        rates = study.run.curve().bandwidth_mb_s or ()
        rows = [
            (
                *(str(row.size), str(row.repetitions), f"{row.mbps:.2f}", f"{row.seconds:.6f}"),
                *(f"{rate:.3f}", f"{mbit_s(rate):.2f}"),
            )
            for row, rate in zip(study.run.rows, rates, strict=True)
        ]
        caption = (
            f"Mbps of {study.mbps[0]} bit/s; latency {study.run.landmarks().latency_us:g} µs by the"
            f" rows, {us(study.run.latency_printed_s):g} µs printed"
        )
        found.append(DataTable(_RUN, rows, EVERY, caption))
    if study.figures:
        rows = [
            (
                figure.what,
                f"{RELATIONS[figure.relation]}{figure.value:g}"
                f" {'µs' if figure.unit == 'us' else figure.unit}",
                _shares(figure.link_shares(study.mbps)),
                _shares(figure.shares(study.mbps)),
            )
            for figure in study.figures
        ]
        found.append(DataTable(_FIGURES, rows, EVERY[1:]))
    return found


def _adapter_tables(adapters: Adapters) -> Iterator[DataTable]:
    cards = [
        (one.name, one.card, one.driver, str(one.mtu or "-"), one.mpi, one.switch)
        for one in adapters.columns
    ]
    yield DataTable(_HARDWARE, cards, heads=1)
    columns = []
    for one in adapters.columns:
        # Of the link's signalling rate, framing and headers included, and of the line rate.
        of_link = line_rate_share(one.peak, mb_s(adapters.link_mbit_s))
        share = adapters.line_rate_share(one)
        columns.append(
            (
                *(f"{one.latency_us:g}", f"{one.peak:g}", one.peak_size_printed),
                *(f"{one.rates[kib]:g}" for kib in RATE_KIB),
                *(f"{of_link:.1%}", number(share, ".1%")),
            )
        )
    head = ("each way, MB/s", *(one.name for one in adapters.columns))
    yield DataTable(head, list(zip(_ADAPTERS, *columns, strict=True)), EVERY[1:], heads=1)


def study_notes(study: Study) -> list[str]:
    """Return remarks on a study's figures, a sentence each."""
    if len(study.mbps) < 2:
        return list(study.notes)
    low, high = study.mbps
    return [f"Mbps is {low} or {high} bit/s there: shares are given for both.", *study.notes]


def tables_alongside(study: Study, alongside: SessionInStudy) -> list[DataTable]:
    """Return a session's landmarks in the columns of a study."""
    found = []
    if study.peaks:
        found.append(_peaks_alongside(alongside))
    if study.adapters:
        rows = []
        for one in alongside.configurations:
            extras = alongside.extras(one)
            keys = ("nic", "driver", "mtu", "mpi", "switch")
            rows.append((" ".join(one), *(str(extras.get(key, ABSENT)) for key in keys)))
        found.append(DataTable(_HARDWARE, rows, heads=1))
        partitions = dict.fromkeys(partition for partition, _ in alongside.configurations)
        found += [_adapters_alongside(alongside, partition) for partition in partitions]
    elif study.figures:
        found.append(_figures_alongside(study, alongside))
    return found


def _peaks_alongside(alongside: SessionInStudy) -> DataTable:
    """Return each configuration as the e325 table has its networks: NetPIPE, one way."""
    rows = []
    for path, where in (("inter-node", "between nodes"), ("intra-node", "in a node")):
        sides = [("netpipe", protocol, path, "oneway") for protocol in ("mpi", "tcp")]
        for one in alongside.configurations:
            rates = [alongside.landmark("peak_mb_s", one, *what) for what in sides]
            peaks: list[str] = []
            for rate, what in zip(rates, sides, strict=True):
                size = alongside.landmark("peak_size", one, *what)
                peaks += [_mbps(rate), _or_absent(size, "d")]
            mpi, tcp = rates
            lost = None if mpi is None or tcp is None else loss(mpi, tcp)
            shares = ["-", "-"]
            if path == "inter-node":
                of_line = (alongside.peak_share(one, *what) for what in sides)
                shares = [_or_absent(share, ".1%") for share in of_line]
            latencies = (alongside.landmark("latency_us", one, *what) for what in sides)
            times = (_or_absent(latency, ".2f") for latency in latencies)
            rows.append((where, " ".join(one), *peaks, _or_absent(lost, ".1%"), *shares, *times))
    caption = f"NetPIPE, one way; Mbps of 10⁶ bit/s{alongside.least_peak()}"
    return DataTable(_PEAKS, rows, EVERY[2:], caption, heads=2)


def _adapters_alongside(alongside: SessionInStudy, partition: str) -> DataTable:
    """Return environments as the adapter page has its cards: NetPIPE over MPI, bidirectional."""
    several = [one for one in alongside.configurations if one[0] == partition]
    what = ("netpipe", "mpi", "inter-node", "bidirectional")
    forms = {"latency_us": ".1f", "peak_mb_s": ".1f", "peak_size": "d"}
    forms |= {f"rate_{kib}_kib_mb_s": ".1f" for kib in RATE_KIB}
    columns = []
    for one in several:
        values = {name: alongside.landmark(name, one, *what) for name in forms}
        cells = (_or_absent(values[name], form) for name, form in forms.items())
        columns.append((*cells, *_peak_shares(alongside, one, what)))
    head = (f"{partition}, each way, MB/s", *(environment for _, environment in several))
    caption = f"NetPIPE MPI, bidirectional; 1 KB = 1024 bytes{alongside.least_peak(partition)}"
    rows = list(zip(_ADAPTERS, *columns, strict=True))
    return DataTable(head, rows, EVERY[1:], caption, heads=1)


def _peak_shares(
    alongside: SessionInStudy, one: tuple[str, str], what: Sequence[str]
) -> tuple[str, str]:
    """Return the shares of a peak in the link and in the line rate."""
    peak, link = alongside.landmark("peak_mb_s", one, *what), alongside.extras(one)
    mbit = link.get("link_mbit_s")
    of_link = None if peak is None or mbit is None else line_rate_share(peak, mb_s(mbit))
    of_line = alongside.peak_share(one, *what)
    return _or_absent(of_link, ".1%"), _or_absent(of_line, ".1%")


def _figures_alongside(study: Study, alongside: SessionInStudy) -> DataTable:
    """Return latency and largest bandwidth of each configuration, in the study's units.

    A study that prints NetPIPE's own Mbps measured TCP, one in MB/s measured MPI.
    """
    measured = [("netpipe", "tcp", "inter-node", "oneway")]
    if not study.run:
        netpipe = ("netpipe", "mpi", "inter-node", "oneway")
        measured = [("imb", "PingPong", "inter-node", "oneway"), netpipe]
    rows = []
    for one in alongside.configurations:
        for what in measured:
            subject = f"{' '.join(one)}, {named(*what)}"
            latency = _or_absent(alongside.landmark("latency_us", one, *what), ".2f", " µs")
            rows.append((f"{subject}: latency", latency, "-", "-"))
            peak = alongside.landmark("peak_mb_s", one, *what)
            rate = _or_absent(peak, ".1f", " MB/s")
            if study.run:
                rate = _mbps(peak, study.mbps[0], " Mbps")
            shares = _peak_shares(alongside, one, what)
            rows.append((f"{subject}: largest bandwidth", rate, *shares))
    unit = f"Mbps of {study.mbps[0]} bit/s" if study.run else "MB/s of 10⁶ bytes"
    return DataTable(_FIGURES, rows, EVERY[1:], f"{unit}{alongside.least_peak()}")


def _or_absent(value: float | None, form: str, unit: str = "") -> str:
    return number(value, form, unit, ABSENT)


def _mbps(rate_mb_s: float | None, bits: int = 1_000_000, unit: str = "") -> str:
    return _or_absent(None if rate_mb_s is None else mbit_s(rate_mb_s) * 1e6 / bits, ".0f", unit)


def _shares(shares: tuple[float, ...], mark: str = "") -> str:
    return " or ".join(f"{share:.1%}" for share in shares) + mark if shares else "-"


def report_blocks(report: Report) -> Iterator[Block]:
    """Yield every study, with the session in its columns; or why studies are missing."""
    try:
        alongside = SessionInStudy(report.judged.session)
        studies = [literature.load(name) for name in literature.names()]
    except NetproofError as error:
        yield f"The studies' tables are not available: {error}"
        return
    yield "This session's landmarks in the columns of each study, and the study's own figures."
    for one in studies:
        yield from blocks(one, alongside)


def _here(study: Study, alongside: SessionInStudy) -> list[Block]:
    """Return a session in the columns of a study, and why figures are missing."""
    tables: list[Block] = [*tables_alongside(study, alongside)]
    none = "This study's figures have no counterpart in a session."
    # Only of the figures that the tables above requested.
    reasons = alongside.reasons()
    why = f"Why figures are not available: {len(reasons)}"
    return [*(tables or [none]), Sentences(reasons, why, mark=f"{ABSENT}: ", folded=True)]


def page(
    report: Report,
    study: Study,
    sweeps: Sequence[Sweep],
    not_swept: Mapping[str, str],
) -> str:
    """Return the page on a study that has one, with a session's figures alongside its own.

    ``sweeps``: of settings that it varied; ``not_swept``: why one has none, by its name.
    """
    from netproof.present.html.folder import page_of

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
    sweeps: Sequence[Sweep],
    not_swept: Mapping[str, str],
) -> Iterator[Block]:
    """Yield a part of the page, and what is not there and why, a sentence each."""
    from netproof.present import sweeps as of_sweeps

    missing = [] if part.not_measured is None else [part.not_measured]
    figures: list[ChartFigure] = []
    groups = grouped((one.case.function, one) for one in report.groups)
    asked: list[tuple[str, str, list[list[ChartFigure]]]] = []
    if part.netpipe is not None:
        place = (part.netpipe.path, part.netpipe.direction)
        pairs = [report.pair(key) for key in report.netpipe if key[:2] == place]
        asked.append((f"NetPIPE {' '.join(place)}", "curve", pairs))
    for name in part.functions:
        asked.append((name, "curve", [[report.figure(one)] for one in groups.get(name, ())]))
    for name in part.scores:
        scores = [[_scores(groups[name], report.looks)]] if name in groups else []
        asked.append((name, "score", scores))
    for name, what, several in asked:
        if not several:
            missing.append(f"{name}: the session was not to measure it")
        for together in several:
            drawn = [one for one in together if one.rows]
            figures += drawn
            if not drawn:
                # All lack the same: the first stands for them.
                missing.append(f"{together[0].title}: the session has no {what} of it")
    swept = {one.parameter for one in sweeps}
    missing += [not_swept[name] for name in part.sweeps if name not in swept]
    if part.text:
        yield part.text
    if part.tables:
        yield Cell("Here", "heading")
        yield from _here(study, SessionInStudy(report.judged.session))
        yield Cell("There", "heading")
        yield from study_tables(study)
        yield Sentences(study_notes(study))
    if figures:
        yield figures
    for one in sweeps:
        if one.parameter in part.sweeps:
            title, answer = of_sweeps.answer(one)
            yield Cell(title, "heading", name=file_name(title))
            yield from answer
    yield Sentences(missing, "Not shown")


def _scores(groups: Sequence[Group], looks: Looks) -> ChartFigure:
    """Return the chart of a function's scores at each count of ranks; empty without scores.

    After the GigE synthetic-benchmark report.
    """
    from netproof.present.html import content

    missing: dict[str, str] = {}
    rows: Rows = []
    against = ""
    for judged in (one for group in groups for one in group.members):
        name = f"{content.configuration(judged.case)}, {judged.case.ranks} ranks"
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
    values = {
        "configurations": present(rows, "configuration"),
        **{"environments": environments, "legend": looks.legend},
        "colours": looks.of("environments", "colours", environments),
        **{"states": [_SMOOTH, _RED], "marks": ["circle", MARKS["failed"]["shape"]]},
    }
    cells = [
        (
            *(row["configuration"], f"{row['value']:.3g}"),
            *(f"{row['low']:.3g} to {row['high']:.3g}", row["state"]),
        )
        for row in rows
    ]
    function = content.function_name(groups[0].case)
    return dots(
        "scores",
        f"{function}: times as fast as {against or 'the score baseline'}",
        rows,
        "times as fast as the baseline",
        values,
        sentences=[
            "The geometric mean over all common sizes, and its 95 % interval over launches."
        ],
        missing=missing,
        table=DataTable(("configuration", "score", "95 % interval", "criteria"), cells, (1, 2)),
    )
