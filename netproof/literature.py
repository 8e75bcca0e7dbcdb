"""The figures of earlier studies, kept as data, and what the criteria make of them.

Each file of ``reference-values/literature`` holds one study: figures as printed there, with
their source. Losses and shares of the line rate are never stored but computed here, by the
code that judges a run. Beside each study a session's own landmarks can stand, in its columns.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from netproof import loading, session, tables
from netproof.criteria import loss
from netproof.curve import Curve
from netproof.errors import NetproofError, shortened
from netproof.landmarks import Landmarks, landmarks, line_rate_share
from netproof.session import CheckResult, Session
from netproof.units import MEBI, bandwidth_mb_s, line_rate_mb_s, mb_s, mbit_s, us
from netproof.verdict import CANNOT_JUDGE

DIRECTORY = Path(__file__).resolve().parents[1] / "reference-values" / "literature"
MBPS_BITS = {1_000_000: (1_000_000,), MEBI: (MEBI,), "unstated": (1_000_000, MEBI)}
"""What a study's Mbps may mean in bit/s."""
RATE_KIB = (64, 16, 4, 1)
UNITS = ("us", "MB/s", "Mbps", "%")
RELATIONS = {"equal": "", "below": "< ", "about": "≈ "}
TABLES_WIDTH = 132
"""Columns that the widest table takes; on a narrower terminal lines wrap, and no number is cut."""
ABSENT = "absent"
"""What stands where a session has no figure; why it has none stands below the table."""

T = TypeVar("T")


@dataclass(frozen=True)
class Side:
    """The largest bandwidth of MPI or TCP as printed, its size as printed, the latency in µs."""

    peak: float
    size_printed: int
    latency_us: float


@dataclass(frozen=True)
class Peaks:
    """MPI beside TCP on one network.

    ``link_mbit_s`` and ``mtu`` are None where no Ethernet carries it; ``mtu_stated`` is False
    for an MTU that the study does not give.
    """

    where: str
    network: str
    mpi: Side
    tcp: Side
    link_mbit_s: float | None
    mtu: int | None
    mtu_stated: bool

    @property
    def loss(self) -> float:
        """What MPI loses of TCP's largest bandwidth."""
        return loss(self.mpi.peak, self.tcp.peak)

    def shares(self, side: Side, mbps: tuple[int, ...]) -> tuple[float, ...]:
        """Shares of the line rate, one for each meaning in bit/s that Mbps may have."""
        if self.link_mbit_s is None or self.mtu is None:
            return ()
        line_rate = line_rate_mb_s(self.link_mbit_s, self.mtu)
        return tuple(line_rate_share(rate, line_rate) for rate in _mb_s(side.peak, mbps))


@dataclass(frozen=True)
class Adapter:
    """One column of a bidirectional comparison: rates in MB/s each way, latency in µs."""

    name: str
    card: str
    driver: str
    mtu: int | None
    mpi: str
    over_tcp: bool
    switch: str
    latency_us: float
    peak: float
    peak_size_printed: str
    rates: dict[int, float]


@dataclass(frozen=True)
class Adapters:
    """Adapters compared over links of one rate in Mbit/s."""

    link_mbit_s: float
    columns: tuple[Adapter, ...]

    def link_share(self, adapter: Adapter) -> float:
        """The peak over what the link signals, framing and headers included."""
        return line_rate_share(adapter.peak, mb_s(self.link_mbit_s))

    def line_rate_share(self, adapter: Adapter) -> float | None:
        """The peak over the line rate of TCP; None for what is no TCP or has no MTU."""
        if not adapter.over_tcp or adapter.mtu is None:
            return None
        return line_rate_share(adapter.peak, line_rate_mb_s(self.link_mbit_s, adapter.mtu))


@dataclass(frozen=True)
class Row:
    """One line of NetPIPE's print: bytes, repetitions, Mbps and seconds as printed."""

    size: int
    repetitions: int
    mbps: float
    seconds: float


@dataclass(frozen=True)
class Run:
    """What NetPIPE printed of one run; ``latency_printed_us`` is its own first line."""

    latency_printed_us: float
    rows: tuple[Row, ...]

    def curve(self) -> Curve:
        """The rows as a curve, bandwidth from bytes and time."""
        times = [us(row.seconds) for row in self.rows]
        return Curve(
            tuple(row.size for row in self.rows),
            tuple(times),
            tuple(bandwidth_mb_s(r.size, t) for r, t in zip(self.rows, times, strict=True)),
        )

    def landmarks(self) -> Landmarks:
        """The landmarks of the rows, by the code that judges a run."""
        return landmarks(self.curve(), None)


@dataclass(frozen=True)
class Figure:
    """A single figure from a study's text.

    ``relation``: equal, below or about; ``unit``: µs as ``us``, MB/s, Mbps or %. A bandwidth
    may have the link it was measured on, and the MTU if it is TCP.
    """

    what: str
    relation: str
    value: float
    unit: str
    link_mbit_s: float | None
    mtu: int | None

    def link_shares(self, mbps: tuple[int, ...]) -> tuple[float, ...]:
        """Shares of what the link signals, one for each meaning of Mbps; none without a link."""
        if self.link_mbit_s is None:
            return ()
        return tuple(line_rate_share(r, mb_s(self.link_mbit_s)) for r in self._rates(mbps))

    def shares(self, mbps: tuple[int, ...]) -> tuple[float, ...]:
        """Shares of the line rate of TCP, one for each meaning of Mbps; none without an MTU."""
        if self.link_mbit_s is None or self.mtu is None:
            return ()
        line_rate = line_rate_mb_s(self.link_mbit_s, self.mtu)
        return tuple(line_rate_share(rate, line_rate) for rate in self._rates(mbps))

    def _rates(self, mbps: tuple[int, ...]) -> list[float]:
        return [self.value] if self.unit == "MB/s" else _mb_s(self.value, mbps)


@dataclass(frozen=True)
class Study:
    """One study's figures; what it does not have is empty or None.

    ``mbps``: what its Mbps means in bit/s, two values where it does not say, none where it
    prints none.
    """

    path: Path
    name: str
    title: str
    source: str
    mbps: tuple[int, ...]
    notes: tuple[str, ...]
    peaks: tuple[Peaks, ...]
    adapters: Adapters | None
    run: Run | None
    figures: tuple[Figure, ...]


def names(directory: Path = DIRECTORY) -> tuple[str, ...]:
    """The names of the studies, as ``load`` takes them. Raises NetproofError if there is none."""
    found = tuple(sorted(path.stem for path in directory.glob("*.yaml")))
    if not found:
        raise NetproofError(
            f"{directory}: no study is there; run netproof from its checkout, installed by pip -e"
        )
    return found


def load(name: str, directory: Path = DIRECTORY) -> Study:
    """Read a study's figures.

    Raises NetproofError naming file, line and key for whatever is missing, unknown or of
    another kind, and for a name that no study has.
    """
    if name not in names(directory):
        raise NetproofError(
            f"{name!r} is no study: there are {', '.join(names(directory))} in {directory}"
        )
    path = directory / f"{name}.yaml"
    study = _study(_document(path))
    if study.name != name:
        raise NetproofError(f"{path}:1: key 'study': found {study.name!r}, expected {name!r}")
    return study


def show(
    study: str | None,
    console: Console,
    directory: Path = DIRECTORY,
    stored: Session | None = None,
) -> None:
    """Print one study's tables, or all, with losses and shares of the line rate computed.

    ``stored``: a session whose landmarks stand beside them. Raises NetproofError as ``load``
    does, and for a session without a case.
    """
    beside = Beside(stored) if stored else None
    for name in [study] if study else names(directory):
        _print(load(name, directory), console, beside)


def run(study: str | None, report: Path | None = None) -> int:
    """The body of ``netproof literature``: prints, and returns the exit status.

    ``report``: of a session to show beside the studies.
    """
    try:
        out = tables.console()
        out.width = max(out.width, TABLES_WIDTH)
        stored = None
        if report is not None:
            with tables.working(f"reading {report}"):
                stored = session.load(report)
        show(study, out, stored=stored)
    except NetproofError as error:
        tables.say(tables.console(stderr=True), f"netproof: {error}", "red")
        return CANNOT_JUDGE
    return 0


class _Mapping:
    """A YAML mapping that is read key by key and refuses what nobody read."""

    def __init__(self, path: Path, data: CommentedMap) -> None:
        self.path, self.data = path, data
        self.unread = set(data)

    def fault(self, key: Any, reason: str) -> NetproofError:
        line = (self.data.lc.key(key)[0] if key in self.data else self.data.lc.line) + 1
        return NetproofError(f"{self.path}:{line}: key {shortened(repr(key))}: {shortened(reason)}")

    def has(self, key: Any) -> bool:
        return key in self.data

    def raw(self, key: Any, expected: str) -> Any:
        if key not in self.data:
            raise self.fault(key, f"missing, expected {expected}")
        self.unread.discard(key)
        return self.data[key]

    def text(self, key: str) -> str:
        value = self.raw(key, "text")
        if not isinstance(value, str) or not value.strip():
            raise self.fault(key, f"found {value!r}, expected text")
        return str(value)

    def number(self, key: Any) -> float:
        value = self.raw(key, "a positive number")
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not (math.isfinite(value) and value > 0):
            raise self.fault(key, f"found {value!r}, expected a positive number")
        return float(value)

    def whole(self, key: str) -> int:
        value = self.raw(key, "a positive whole number")
        if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
            raise self.fault(key, f"found {value!r}, expected a positive whole number")
        return int(value)

    def yes_or_no(self, key: str) -> bool:
        value = self.raw(key, "true or false")
        if not isinstance(value, bool):
            raise self.fault(key, f"found {value!r}, expected true or false")
        return value

    def one_of(self, key: str, choices: Any) -> Any:
        expected = f"one of {', '.join(map(str, choices))}"
        value = self.raw(key, expected)
        if isinstance(value, bool) or value not in choices:
            raise self.fault(key, f"found {value!r}, expected {expected}")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        several = self._sequence(key)
        for value in several:
            if not isinstance(value, str) or not value.strip():
                raise self.fault(key, f"found {value!r}, expected texts")
        return tuple(str(value) for value in several)

    def mapping(self, key: str, read: Callable[[_Mapping], T]) -> T:
        value = self.raw(key, "a mapping")
        if not isinstance(value, CommentedMap):
            raise self.fault(key, f"found {value!r}, expected a mapping")
        return _read(_Mapping(self.path, value), read)

    def mappings(self, key: str, read: Callable[[_Mapping], T]) -> tuple[T, ...]:
        several = self._sequence(key)
        for value in several:
            if not isinstance(value, CommentedMap):
                raise self.fault(key, f"found {value!r}, expected mappings")
        return tuple(_read(_Mapping(self.path, value), read) for value in several)

    def _sequence(self, key: str) -> CommentedSeq:
        value = self.raw(key, "a list")
        if not isinstance(value, CommentedSeq) or not value:
            raise self.fault(key, f"found {value!r}, expected a list that is not empty")
        return value


def _document(path: Path) -> _Mapping:
    try:
        text = loading.read_text(path)
        loading.check_yaml(text, path)
        data = YAML().load(text)
    except MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise NetproofError(f"{path}:{line}: no YAML: {error.problem}") from error
    except (OSError, UnicodeDecodeError, YAMLError) as error:
        raise NetproofError(f"{path}: cannot be read: {error}") from error
    if not isinstance(data, CommentedMap):
        raise NetproofError(f"{path}:1: expected a study's keys, found {shortened(repr(data))}")
    return _Mapping(path, data)


def _read(mapping: _Mapping, read: Callable[[_Mapping], T]) -> T:
    value = read(mapping)
    for key in mapping.data:
        if key in mapping.unread:
            raise mapping.fault(key, "unknown here; remove it or correct its spelling")
    return value


def _study(document: _Mapping) -> Study:
    def read(m: _Mapping) -> Study:
        study = Study(
            path=m.path,
            name=m.text("study"),
            title=m.text("title"),
            source=m.text("source"),
            mbps=MBPS_BITS[m.one_of("mbps", MBPS_BITS)] if m.has("mbps") else (),
            notes=m.texts("notes") if m.has("notes") else (),
            peaks=m.mappings("peaks", _peaks) if m.has("peaks") else (),
            adapters=m.mapping("adapters", _adapters) if m.has("adapters") else None,
            run=m.mapping("run", _run) if m.has("run") else None,
            figures=m.mappings("figures", _figure) if m.has("figures") else (),
        )
        in_mbps = study.peaks or study.run or any(f.unit == "Mbps" for f in study.figures)
        if in_mbps and not study.mbps:
            raise m.fault("mbps", f"missing, expected one of {', '.join(map(str, MBPS_BITS))}")
        if not (study.peaks or study.adapters or study.run or study.figures):
            raise m.fault("figures", "missing, a study has peaks, adapters, a run or figures")
        return study

    return _read(document, read)


def _peaks(m: _Mapping) -> Peaks:
    link = m.number("link_mbit_s") if m.has("link_mbit_s") else None
    mtu = next((m.whole(key) for key in ("mtu", "mtu_assumed") if m.has(key)), None)
    if (link is None) != (mtu is None):
        raise m.fault("link_mbit_s", "a share of the line rate takes link_mbit_s and an mtu")
    return Peaks(
        where=m.text("where"),
        network=m.text("network"),
        mpi=m.mapping("mpi", _side),
        tcp=m.mapping("tcp", _side),
        link_mbit_s=link,
        mtu=mtu,
        mtu_stated=m.has("mtu"),
    )


def _side(m: _Mapping) -> Side:
    return Side(m.number("peak"), m.whole("size_printed"), m.number("latency_us"))


def _adapters(m: _Mapping) -> Adapters:
    return Adapters(m.number("link_mbit_s"), m.mappings("columns", _adapter))


def _adapter(m: _Mapping) -> Adapter:
    return Adapter(
        name=m.text("name"),
        card=m.text("card"),
        driver=m.text("driver"),
        mtu=m.whole("mtu") if m.has("mtu") else None,
        mpi=m.text("mpi"),
        over_tcp=m.yes_or_no("over_tcp"),
        switch=m.text("switch"),
        latency_us=m.number("latency_us"),
        peak=m.number("peak"),
        peak_size_printed=m.text("peak_size_printed"),
        rates=m.mapping("rates", lambda rates: {kib: rates.number(kib) for kib in RATE_KIB}),
    )


def _run(m: _Mapping) -> Run:
    run = Run(us(m.number("latency_printed_s")), m.mappings("rows", _row))
    sizes = [row.size for row in run.rows]
    if sizes != sorted(set(sizes)):
        raise m.fault("rows", f"found the bytes {sizes}, expected increasing ones")
    return run


def _row(m: _Mapping) -> Row:
    return Row(m.whole("bytes"), m.whole("repetitions"), m.number("mbps"), m.number("seconds"))


def _figure(m: _Mapping) -> Figure:
    figure = Figure(
        what=m.text("what"),
        relation=m.one_of("is", RELATIONS),
        value=m.number("value"),
        unit=m.one_of("unit", UNITS),
        link_mbit_s=m.number("link_mbit_s") if m.has("link_mbit_s") else None,
        mtu=m.whole("mtu") if m.has("mtu") else None,
    )
    if figure.link_mbit_s is not None and figure.unit not in ("MB/s", "Mbps"):
        raise m.fault("link_mbit_s", f"a value in {figure.unit} has no share of a link")
    if figure.mtu is not None and figure.link_mbit_s is None:
        raise m.fault("mtu", "a share of the line rate takes link_mbit_s too")
    return figure


def _mb_s(value: float, mbps: tuple[int, ...]) -> list[float]:
    return [mb_s(value * bits / 1e6) for bits in mbps]


class Beside:
    """A session's landmarks for the studies' tables, with the reasons for those it lacks.

    ``configurations``: partition and environment of each case, in the session's order.
    Raises NetproofError for a session without a case on two ranks.
    """

    def __init__(self, stored: Session) -> None:
        self.path = stored.path
        self._results: dict[tuple[str, ...], CheckResult] = {}
        for result in stored.results:
            case = result.case
            if case is not None and case.ranks == 2:
                # A case that ReFrame ran again stands as it ended.
                self._results[
                    case.partition,
                    case.environment,
                    case.benchmark,
                    case.function,
                    case.path,
                    case.direction,
                ] = result
        self.configurations = tuple(dict.fromkeys(key[:2] for key in self._results))
        if not self.configurations:
            raise NetproofError(f"{stored.path}: has no case on two ranks to show beside a study")
        self._reasons: list[str] = []

    def landmark(self, name: str, configuration: tuple[str, str], *what: str) -> float | None:
        """A case's landmark by its name; None where it is absent, and the reason is kept."""
        result = self._results.get((*configuration, *what))
        subject = f"{' '.join(configuration)} {_benchmark(*what)}"
        if result is None:
            self._reasons.append(f"{subject}: the session does not have it")
            return None
        if result.measured is None:
            self._reasons.append(
                f"{subject}: {result.result} in {result.phase or 'an unknown phase'}"
            )
            return None
        found = result.measured["landmarks"]
        if found[name] is None:
            why = dict(found["undefined"])[name]
            self._reasons.append(f"{subject}: {name}: {why}")
        return found[name]

    def peak_share(self, configuration: tuple[str, str], *what: str) -> float | None:
        """A case's peak over the line rate, as the studies have it; None where one is absent."""
        peak = self.landmark("peak_mb_s", configuration, *what)
        result = self._results.get((*configuration, *what))
        rate = result.measured["line_rate_mb_s"] if peak is not None else None
        return None if rate is None else line_rate_share(peak, rate)

    def extras(self, configuration: tuple[str, str]) -> dict[str, Any]:
        """What the site says of a partition and an environment; empty if nothing was measured."""
        for key, result in self._results.items():
            if key[:2] == configuration and result.measured is not None:
                return result.measured["partition_extras"] | result.measured["environment_extras"]
        return {}

    def least_peak(self, partition: str | None = None) -> str:
        """Which messages cannot be the peak between nodes, for the end of a caption, or nothing."""
        stated = {
            self.extras(one).get("line_rate_from_bytes", 0)
            for one in self.configurations
            if partition in (None, one[0])
        } - {0}
        if not stated:
            return ""
        return (
            f"; over a link, peaks are of {' or '.join(map(str, sorted(stated)))} bytes and more,"
            " since shorter bursts pass above its rate"
        )

    def reasons(self) -> list[str]:
        """Why figures were absent since the last call, each reason once."""
        found = list(dict.fromkeys(self._reasons))
        self._reasons.clear()
        return found


def _print(study: Study, console: Console, beside: Beside | None) -> None:
    console.print(Text(f"{study.name}: {study.title}", "bold"))
    console.print(Text(study.source))
    for table in study_tables(study):
        console.print(table)
    for note in study_notes(study):
        console.print(Text(note))
    if beside:
        console.print()
        tables.say(console, f"beside it, {beside.path}", "bold")
        for table in tables_beside(study, beside):
            console.print(table)
        for reason in beside.reasons():
            tables.say(console, f"{ABSENT}: {reason}")
    console.print()


def study_tables(study: Study) -> list[Table]:
    """A study's tables, as printed there but for losses and shares, which are computed."""
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
    """What has to be said of a study's figures, a sentence each."""
    if len(study.mbps) < 2:
        return list(study.notes)
    low, high = study.mbps
    return [f"Mbps is {low} or {high} bit/s there: shares are given for both.", *study.notes]


def tables_beside(study: Study, beside: Beside) -> list[Table]:
    """A session's landmarks in the columns of a study."""
    found = []
    if study.peaks:
        found.append(_peaks_beside(beside))
    if study.adapters:
        found.append(_hardware_beside(beside))
        partitions = dict.fromkeys(partition for partition, _ in beside.configurations)
        found += [_adapters_beside(beside, partition) for partition in partitions]
    elif study.figures:
        found.append(_figures_beside(study, beside))
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


def _peaks_beside(beside: Beside) -> Table:
    """Each configuration as the e325 table has its networks: NetPIPE, one way."""
    table = _peaks_columns()
    for path, where in (("between", "between nodes"), ("inside", "in a node")):
        for one in beside.configurations:
            mpi, tcp = (
                {
                    name: beside.landmark(name, one, "netpipe", protocol, path, "oneway")
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
                    beside.peak_share(one, "netpipe", protocol, path, "oneway")
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
    table.caption = f"NetPIPE, one way; Mbps of 10⁶ bit/s{beside.least_peak()}"
    return table


def _hardware_beside(beside: Beside) -> Table:
    table = _hardware_columns()
    for one in beside.configurations:
        extras = beside.extras(one)
        cells = (extras.get(key, ABSENT) for key in ("nic", "driver", "mtu", "mpi", "switch"))
        table.add_row(" ".join(one), *(tables.visible(str(cell)) for cell in cells))
    return table


def _adapters_beside(beside: Beside, partition: str) -> Table:
    """A partition's environments as the adapter page has its cards: NetPIPE over MPI, both ways."""
    several = [one for one in beside.configurations if one[0] == partition]
    table = _table(f"{partition}, each way, MB/s", *(environment for _, environment in several))

    def values(name: str) -> list[float | None]:
        what = ("netpipe", "mpi", "between", "bidirectional")
        return [beside.landmark(name, one, *what) for one in several]

    table.add_row("latency µs", *(_cell(value, ".1f") for value in values("latency_us")))
    peaks = values("peak_mb_s")
    table.add_row("peak", *(_cell(value, ".1f") for value in peaks))
    table.add_row("peak at", *(_cell(value, "d") for value in values("peak_size")))
    for kib in RATE_KIB:
        rates = values(f"rate_{kib}_kib_mb_s")
        table.add_row(f"at {kib} KB", *(_cell(value, ".1f") for value in rates))
    links = [beside.extras(one).get("link_mbit_s") for one in several]
    table.add_row(
        "peak of link",
        *(
            _cell(None if peak is None else line_rate_share(peak, mb_s(link)), ".1%")
            for peak, link in zip(peaks, links, strict=True)
        ),
    )
    shares = [
        beside.peak_share(one, "netpipe", "mpi", "between", "bidirectional") for one in several
    ]
    table.add_row("peak of line rate", *(_cell(share, ".1%") for share in shares))
    table.caption = f"NetPIPE MPI, bidirectional; 1 KB = 1024 bytes{beside.least_peak(partition)}"
    return table


def _figures_beside(study: Study, beside: Beside) -> Table:
    """Latency and largest bandwidth of each configuration, in the study's units.

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
    for one in beside.configurations:
        for what in subjects:
            subject = f"{' '.join(one)}, {_benchmark(*what)}"
            latency = _cell(beside.landmark("latency_us", one, *what), ".2f", " µs")
            table.add_row(f"{subject}: latency", latency, "-", "-")
            peak = beside.landmark("peak_mb_s", one, *what)
            share = beside.peak_share(one, *what)
            link = beside.extras(one).get("link_mbit_s")
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
    table.caption = f"{unit}{beside.least_peak()}"
    return table


def _benchmark(benchmark: str, function: str, path: str, direction: str) -> str:
    if benchmark == "imb":
        return f"IMB {function}"
    return f"NetPIPE {function.upper()} {path} {direction}"


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


def _run_table(run: Run, mbps_bits: int) -> Table:
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
