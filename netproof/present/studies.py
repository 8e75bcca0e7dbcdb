"""Earlier studies as tables for the terminal, and a session alongside them."""

from __future__ import annotations

from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from netproof.criteria import loss
from netproof.measurement.units import line_rate_share, mb_s, mbit_s
from netproof.present import tables
from netproof.session.session import Session
from netproof.studies.literature import DIRECTORY, load, names
from netproof.studies.session_figures import ABSENT, SessionAlongsideStudy, named
from netproof.studies.study import RATE_KIB, RELATIONS, Adapters, Study, StudyRun

TABLES_WIDTH = 132
"""Columns of the widest table; on a narrower terminal lines wrap, and no number is cut."""


def show(
    study: str | None,
    console: Console,
    directory: Path = DIRECTORY,
    stored: Session | None = None,
) -> None:
    """Print one study's tables, or all, with losses and shares of the line rate computed.

    ``stored``: a session whose landmarks stand alongside them. Raises NetproofError as ``load``
    does, and for a session without a case.
    """
    alongside = SessionAlongsideStudy(stored) if stored else None
    for name in [study] if study else names(directory):
        _print(load(name, directory), console, alongside)


def _print(study: Study, console: Console, alongside: SessionAlongsideStudy | None) -> None:
    console.print(Text(f"{study.name}: {study.title}", "bold"))
    console.print(Text(study.source))
    for table in study_tables(study):
        console.print(table)
    for note in study_notes(study):
        console.print(Text(note))
    if alongside:
        console.print()
        tables.say(console, f"alongside it, {alongside.path}", "bold")
        for table in tables_alongside(study, alongside):
            console.print(table)
        for reason in alongside.reasons():
            tables.say(console, f"{ABSENT}: {reason}")
    console.print()


def study_tables(study: Study) -> list[Table]:
    """Return a study's tables, as printed there but for losses and shares, which are computed."""
    found = []
    if study.peaks:
        found.append(_peaks_table(study))
    if study.adapters:
        found += [_hardware_table(study.adapters), _adapters_table(study.adapters)]
    if study.run:
        found.append(_run_table(study.run, study.mbps[0]))
    if study.figures:
        found.append(_figures_table(study))
    return found


def study_notes(study: Study) -> list[str]:
    """Return remarks on a study's figures, a sentence each."""
    if len(study.mbps) < 2:
        return list(study.notes)
    low, high = study.mbps
    return [f"Mbps is {low} or {high} bit/s there: shares are given for both.", *study.notes]


def tables_alongside(study: Study, alongside: SessionAlongsideStudy) -> list[Table]:
    """Return a session's landmarks in the columns of a study."""
    found = []
    if study.peaks:
        found.append(_peaks_alongside(alongside))
    if study.adapters:
        found.append(_hardware_alongside(alongside))
        partitions = dict.fromkeys(partition for partition, _ in alongside.configurations)
        found += [_adapters_alongside(alongside, partition) for partition in partitions]
    elif study.figures:
        found.append(_figures_alongside(study, alongside))
    return found


def _table(*columns: str, left: int = 1) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for number, column in enumerate(columns):
        justify = "left" if number < left else "right"
        table.add_column(column, justify=justify, overflow="fold")
    return table


def _peaks_columns() -> Table:
    return _table(
        "where",
        "network",
        "MPI Mbps",
        "bytes",
        "TCP Mbps",
        "bytes",
        "MPI loss",
        "MPI of\nline rate",
        "TCP of\nline rate",
        "MPI µs",
        "TCP µs",
        left=2,
    )


def _peaks_table(study: Study) -> Table:
    table = _peaks_columns()
    for row in study.peaks:
        table.add_row(
            row.where,
            row.network,
            f"{row.mpi.peak:g}",
            str(row.mpi.size_printed),
            f"{row.tcp.peak:g}",
            str(row.tcp.size_printed),
            f"{row.loss:.1%}",
            _shares(row.shares(row.mpi, study.mbps), assumed=not row.mtu_stated),
            _shares(row.shares(row.tcp, study.mbps), assumed=not row.mtu_stated),
            f"{row.mpi.latency_us:.2f}",
            f"{row.tcp.latency_us:.2f}",
        )
    if any(row.mtu and not row.mtu_stated for row in study.peaks):
        table.caption = "* for an assumed MTU"
    return table


def _peaks_alongside(alongside: SessionAlongsideStudy) -> Table:
    """Return each configuration as the e325 table has its networks: NetPIPE, one way."""
    table = _peaks_columns()
    for path, where in (("between", "between nodes"), ("inside", "in a node")):
        for one in alongside.configurations:
            mpi, tcp = (
                {
                    name: alongside.landmark(name, one, "netpipe", protocol, path, "oneway")
                    for name in ("peak_mb_s", "peak_size", "latency_us")
                }
                for protocol in ("mpi", "tcp")
            )
            lost = None
            if mpi["peak_mb_s"] is not None and tcp["peak_mb_s"] is not None:
                lost = loss(mpi["peak_mb_s"], tcp["peak_mb_s"])
            shares = ("-", "-")
            if path == "between":
                mpi_share, tcp_share = (
                    alongside.peak_share(one, "netpipe", protocol, path, "oneway")
                    for protocol in ("mpi", "tcp")
                )
                shares = (_cell(mpi_share, ".1%"), _cell(tcp_share, ".1%"))
            table.add_row(
                where,
                " ".join(one),
                _mbps_cell(mpi["peak_mb_s"]),
                _cell(mpi["peak_size"], "d"),
                _mbps_cell(tcp["peak_mb_s"]),
                _cell(tcp["peak_size"], "d"),
                _cell(lost, ".1%"),
                *shares,
                _cell(mpi["latency_us"], ".2f"),
                _cell(tcp["latency_us"], ".2f"),
            )
    table.caption = f"NetPIPE, one way; Mbps of 10⁶ bit/s{alongside.least_peak()}"
    return table


def _hardware_alongside(alongside: SessionAlongsideStudy) -> Table:
    table = _hardware_columns()
    for one in alongside.configurations:
        extras = alongside.extras(one)
        cells = (extras.get(key, ABSENT) for key in ("nic", "driver", "mtu", "mpi", "switch"))
        table.add_row(" ".join(one), *(tables.visible(str(cell)) for cell in cells))
    return table


def _adapters_alongside(alongside: SessionAlongsideStudy, partition: str) -> Table:
    """Return a partition's environments as the adapter page has its cards.

    NetPIPE over MPI, bidirectional.
    """
    several = [one for one in alongside.configurations if one[0] == partition]
    table = _table(f"{partition}, each way, MB/s", *(environment for _, environment in several))

    def values(name: str) -> list[float | None]:
        what = ("netpipe", "mpi", "between", "bidirectional")
        return [alongside.landmark(name, one, *what) for one in several]

    table.add_row("latency µs", *(_cell(value, ".1f") for value in values("latency_us")))
    peaks = values("peak_mb_s")
    table.add_row("peak", *(_cell(value, ".1f") for value in peaks))
    table.add_row("peak at", *(_cell(value, "d") for value in values("peak_size")))
    for kib in RATE_KIB:
        rates = values(f"rate_{kib}_kib_mb_s")
        table.add_row(f"at {kib} KB", *(_cell(value, ".1f") for value in rates))
    links = [alongside.extras(one).get("link_mbit_s") for one in several]
    table.add_row(
        "peak of link",
        *(
            _cell(None if peak is None else line_rate_share(peak, mb_s(link)), ".1%")
            for peak, link in zip(peaks, links, strict=True)
        ),
    )
    shares = [
        alongside.peak_share(one, "netpipe", "mpi", "between", "bidirectional") for one in several
    ]
    table.add_row("peak of line rate", *(_cell(share, ".1%") for share in shares))
    table.caption = (
        f"NetPIPE MPI, bidirectional; 1 KB = 1024 bytes{alongside.least_peak(partition)}"
    )
    return table


def _figures_alongside(study: Study, alongside: SessionAlongsideStudy) -> Table:
    """Return latency and largest bandwidth of each configuration, in the study's units.

    A study that prints NetPIPE's own Mbps measured TCP, one in MB/s measured MPI.
    """
    table = _figures_columns()
    subjects = (
        [("netpipe", "tcp", "between", "oneway")]
        if study.run
        else [
            ("imb", "PingPong", "between", "oneway"),
            ("netpipe", "mpi", "between", "oneway"),
        ]
    )
    for one in alongside.configurations:
        for what in subjects:
            subject = f"{' '.join(one)}, {named(*what)}"
            latency = _cell(alongside.landmark("latency_us", one, *what), ".2f", " µs")
            table.add_row(f"{subject}: latency", latency, "-", "-")
            peak = alongside.landmark("peak_mb_s", one, *what)
            share = alongside.peak_share(one, *what)
            link = alongside.extras(one).get("link_mbit_s")
            of_link = None if peak is None else line_rate_share(peak, mb_s(link))
            table.add_row(
                f"{subject}: largest bandwidth",
                _mbps_cell(peak, study.mbps[0], " Mbps")
                if study.run
                else _cell(peak, ".1f", " MB/s"),
                _cell(of_link, ".1%"),
                _cell(share, ".1%"),
            )
    unit = f"Mbps of {study.mbps[0]} bit/s" if study.run else "MB/s of 10⁶ bytes"
    table.caption = f"{unit}{alongside.least_peak()}"
    return table


def _cell(value: float | None, form: str, unit: str = "") -> str:
    return ABSENT if value is None else f"{value:{form}}{unit}"


def _mbps_cell(rate_mb_s: float | None, bits: int = 1_000_000, unit: str = "") -> str:
    return _cell(None if rate_mb_s is None else mbit_s(rate_mb_s) * 1e6 / bits, ".0f", unit)


def _hardware_columns() -> Table:
    return _table("", "card", "driver", "MTU", "MPI", "switch", left=6)


def _hardware_table(adapters: Adapters) -> Table:
    table = _hardware_columns()
    for one in adapters.columns:
        table.add_row(one.name, one.card, one.driver, str(one.mtu or "-"), one.mpi, one.switch)
    return table


def _adapters_table(adapters: Adapters) -> Table:
    several = adapters.columns
    table = _table("each way, MB/s", *(adapter.name for adapter in several))
    table.add_row("latency µs", *(f"{adapter.latency_us:g}" for adapter in several))
    table.add_row("peak", *(f"{adapter.peak:g}" for adapter in several))
    table.add_row("peak at", *(adapter.peak_size_printed for adapter in several))
    for kib in RATE_KIB:
        table.add_row(f"at {kib} KB", *(f"{adapter.rates[kib]:g}" for adapter in several))
    table.add_row("peak of link", *(f"{adapters.link_share(one):.1%}" for one in several))
    shares = [adapters.line_rate_share(adapter) for adapter in several]
    table.add_row(
        "peak of line rate", *("-" if share is None else f"{share:.1%}" for share in shares)
    )
    return table


def _run_table(run: StudyRun, mbps_bits: int) -> Table:
    table = _table("bytes", "repetitions", "Mbps printed", "seconds", "MB/s", "Mbit/s", left=0)
    curve = run.curve()
    for row, rate in zip(run.rows, curve.bandwidth_mb_s or (), strict=True):
        table.add_row(
            str(row.size),
            str(row.repetitions),
            f"{row.mbps:.2f}",
            f"{row.seconds:.6f}",
            f"{rate:.3f}",
            f"{mbit_s(rate):.2f}",
        )
    latency = run.landmarks().latency_us
    table.caption = (
        f"Mbps of {mbps_bits} bit/s; latency {latency:g} µs by the rows, "
        f"{run.latency_printed_us:g} µs printed"
    )
    return table


def _figures_columns() -> Table:
    return _table("figure", "value", "of link", "of line rate")


def _figures_table(study: Study) -> Table:
    table = _figures_columns()
    for figure in study.figures:
        unit = "µs" if figure.unit == "us" else figure.unit
        table.add_row(
            figure.what,
            f"{RELATIONS[figure.relation]}{figure.value:g} {unit}",
            _shares(figure.link_shares(study.mbps)),
            _shares(figure.shares(study.mbps)),
        )
    return table


def _shares(shares: tuple[float, ...], *, assumed: bool = False) -> str:
    if not shares:
        return "-"
    return " or ".join(f"{share:.1%}" for share in shares) + ("*" if assumed else "")
