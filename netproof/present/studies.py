"""Earlier studies as tables for terminal and page, and a session alongside them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from netproof.criteria.rate import loss
from netproof.experiments.literature import (
    ABSENT,
    RATE_KIB,
    RELATIONS,
    Adapters,
    SessionInStudy,
    Study,
    StudyRun,
    named,
)
from netproof.measurement.units import line_rate_share, mb_s, mbit_s
from netproof.present.document import EVERY, Block, Cell, DataTable, Sentences


def blocks(study: Study, alongside: SessionInStudy | None) -> Iterator[Block]:
    """Yield a study's tables, and the landmarks of a session alongside them."""
    yield Cell(f"{study.name}: {study.title}", "heading")
    yield study.source
    yield from _apart(study_tables(study))
    yield Sentences(study_notes(study))
    if alongside:
        yield Cell(f"alongside it, {alongside.path}", "heading")
        yield from _apart(tables_alongside(study, alongside))
        yield Sentences(alongside.reasons(), mark=f"{ABSENT}: ")


def _apart(tables: Sequence[DataTable]) -> Iterator[Block]:
    for table in tables:
        yield ""
        yield table


def study_tables(study: Study) -> list[DataTable]:
    """Return a study's tables, as printed there but for losses and shares, which are computed."""
    found = []
    if study.peaks:
        found.append(_peaks_table(study))
    if study.adapters:
        columns = study.adapters.columns
        cards = [
            (one.name, one.card, one.driver, str(one.mtu or "-"), one.mpi, one.switch)
            for one in columns
        ]
        found += [DataTable(_HARDWARE, cards), _adapters_table(study.adapters)]
    if study.run:
        found.append(_run_table(study.run, study.mbps[0]))
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
        found.append(DataTable(_HARDWARE, rows))
        partitions = dict.fromkeys(partition for partition, _ in alongside.configurations)
        found += [_adapters_alongside(alongside, partition) for partition in partitions]
    elif study.figures:
        found.append(_figures_alongside(study, alongside))
    return found


_PEAKS = (
    *("where", "network", "MPI Mbps", "bytes", "TCP Mbps", "bytes", "MPI loss"),
    *("MPI of\nline rate", "TCP of\nline rate", "MPI µs", "TCP µs"),
)
_HARDWARE = ("", "card", "driver", "MTU", "MPI", "switch")
_FIGURES = ("figure", "value", "of link", "of line rate")


def _peaks_table(study: Study) -> DataTable:
    rows = [
        (
            row.where,
            row.network,
            f"{row.mpi.peak:g}",
            str(row.mpi.size_printed),
            f"{row.tcp.peak:g}",
            str(row.tcp.size_printed),
            f"{row.loss:.1%}",
            _shares(row.shares(row.mpi, study.mbps), assumed=True),
            _shares(row.shares(row.tcp, study.mbps), assumed=True),
            f"{row.mpi.latency_us:.2f}",
            f"{row.tcp.latency_us:.2f}",
        )
        for row in study.peaks
    ]
    assumed = any(row.mtu for row in study.peaks)
    return DataTable(_PEAKS, rows, EVERY[2:], "* for an assumed MTU" if assumed else "")


def _peaks_alongside(alongside: SessionInStudy) -> DataTable:
    """Return each configuration as the e325 table has its networks: NetPIPE, one way."""
    rows = []
    for path, where in (("inter-node", "between nodes"), ("intra-node", "in a node")):
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
            shares = ["-", "-"]
            if path == "inter-node":
                shares = [
                    _cell(alongside.peak_share(one, "netpipe", protocol, path, "oneway"), ".1%")
                    for protocol in ("mpi", "tcp")
                ]
            peaks = [
                cell
                for by in (mpi, tcp)
                for cell in (_mbps_cell(by["peak_mb_s"]), _cell(by["peak_size"], "d"))
            ]
            times = (_cell(by["latency_us"], ".2f") for by in (mpi, tcp))
            rows.append((where, " ".join(one), *peaks, _cell(lost, ".1%"), *shares, *times))
    caption = f"NetPIPE, one way; Mbps of 10⁶ bit/s{alongside.least_peak()}"
    return DataTable(_PEAKS, rows, EVERY[2:], caption)


def _adapters_alongside(alongside: SessionInStudy, partition: str) -> DataTable:
    """Return a partition's environments as the adapter page has its cards.

    NetPIPE over MPI, bidirectional.
    """
    several = [one for one in alongside.configurations if one[0] == partition]
    what = ("netpipe", "mpi", "inter-node", "bidirectional")

    def row(title: str, name: str, form: str) -> tuple[str, ...]:
        return title, *(_cell(alongside.landmark(name, one, *what), form) for one in several)

    rows = [
        row("latency µs", "latency_us", ".1f"),
        row("peak", "peak_mb_s", ".1f"),
        row("peak at", "peak_size", "d"),
        *(row(f"at {kib} KB", f"rate_{kib}_kib_mb_s", ".1f") for kib in RATE_KIB),
    ]
    of_link = []
    for one in several:
        peak, link = alongside.landmark("peak_mb_s", one, *what), alongside.extras(one)
        of_link.append(_cell(_of_link(peak, link.get("link_mbit_s")), ".1%"))
    of_rate = (_cell(alongside.peak_share(one, *what), ".1%") for one in several)
    rows += [("peak of link", *of_link), ("peak of line rate", *of_rate)]
    head = (f"{partition}, each way, MB/s", *(environment for _, environment in several))
    caption = f"NetPIPE MPI, bidirectional; 1 KB = 1024 bytes{alongside.least_peak(partition)}"
    return DataTable(head, rows, EVERY[1:], caption)


def _figures_alongside(study: Study, alongside: SessionInStudy) -> DataTable:
    """Return latency and largest bandwidth of each configuration, in the study's units.

    A study that prints NetPIPE's own Mbps measured TCP, one in MB/s measured MPI.
    """
    over_tcp = [("netpipe", "tcp", "inter-node", "oneway")]
    over_mpi = [
        ("imb", "PingPong", "inter-node", "oneway"),
        ("netpipe", "mpi", "inter-node", "oneway"),
    ]
    rows = []
    for one in alongside.configurations:
        for what in over_tcp if study.run else over_mpi:
            subject = f"{' '.join(one)}, {named(*what)}"
            latency = _cell(alongside.landmark("latency_us", one, *what), ".2f", " µs")
            rows.append((f"{subject}: latency", latency, "-", "-"))
            peak = alongside.landmark("peak_mb_s", one, *what)
            share = alongside.peak_share(one, *what)
            link = alongside.extras(one).get("link_mbit_s")
            of_link = _of_link(peak, link)
            rate = _cell(peak, ".1f", " MB/s")
            if study.run:
                rate = _mbps_cell(peak, study.mbps[0], " Mbps")
            shares = (_cell(of_link, ".1%"), _cell(share, ".1%"))
            rows.append((f"{subject}: largest bandwidth", rate, *shares))
    unit = f"Mbps of {study.mbps[0]} bit/s" if study.run else "MB/s of 10⁶ bytes"
    return DataTable(_FIGURES, rows, EVERY[1:], f"{unit}{alongside.least_peak()}")


def _of_link(peak_mb_s: float | None, link_mbit_s: float | None) -> float | None:
    if peak_mb_s is None or link_mbit_s is None:
        return None
    return line_rate_share(peak_mb_s, mb_s(link_mbit_s))


def _cell(value: float | None, form: str, unit: str = "") -> str:
    return ABSENT if value is None else f"{value:{form}}{unit}"


def _mbps_cell(rate_mb_s: float | None, bits: int = 1_000_000, unit: str = "") -> str:
    return _cell(None if rate_mb_s is None else mbit_s(rate_mb_s) * 1e6 / bits, ".0f", unit)


def _adapters_table(adapters: Adapters) -> DataTable:
    several = adapters.columns
    shares = [adapters.line_rate_share(one) for one in several]
    rows = [
        ("latency µs", *(f"{one.latency_us:g}" for one in several)),
        ("peak", *(f"{one.peak:g}" for one in several)),
        ("peak at", *(one.peak_size_printed for one in several)),
        *((f"at {kib} KB", *(f"{one.rates[kib]:g}" for one in several)) for kib in RATE_KIB),
        ("peak of link", *(f"{adapters.link_share(one):.1%}" for one in several)),
        ("peak of line rate", *("-" if share is None else f"{share:.1%}" for share in shares)),
    ]
    return DataTable(("each way, MB/s", *(one.name for one in several)), rows, EVERY[1:])


def _run_table(run: StudyRun, mbps_bits: int) -> DataTable:
    rows = [
        (
            str(row.size),
            str(row.repetitions),
            f"{row.mbps:.2f}",
            f"{row.seconds:.6f}",
            f"{rate:.3f}",
            f"{mbit_s(rate):.2f}",
        )
        for row, rate in zip(run.rows, run.curve().bandwidth_mb_s or (), strict=True)
    ]
    head = ("bytes", "repetitions", "Mbps printed", "seconds", "MB/s", "Mbit/s")
    caption = (
        f"Mbps of {mbps_bits} bit/s; latency {run.landmarks().latency_us:g} µs by the rows, "
        f"{run.latency_printed_us:g} µs printed"
    )
    return DataTable(head, rows, EVERY, caption)


def _shares(shares: tuple[float, ...], *, assumed: bool = False) -> str:
    if not shares:
        return "-"
    return " or ".join(f"{share:.1%}" for share in shares) + ("*" if assumed else "")
