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

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from netproof.criteria import loss
from netproof.errors import NetproofError, shortened
from netproof.intake import loading
from netproof.measurement.curve import Curve
from netproof.measurement.landmarks import Landmarks, landmarks, line_rate_share
from netproof.measurement.units import MEBI, bandwidth_mb_s, line_rate_mb_s, mb_s, us
from netproof.session.session import CheckResult, Session
from netproof.site import shipped

DIRECTORY = shipped.folder("reference-values") / "literature"
MBPS_BITS = {1_000_000: (1_000_000,), MEBI: (MEBI,), "unstated": (1_000_000, MEBI)}
"""What a study's Mbps may mean in bit/s."""
RATE_KIB = (64, 16, 4, 1)
UNITS = ("us", "MB/s", "Mbps", "%")
RELATIONS = {"equal": "", "below": "< ", "about": "≈ "}
ABSENT = "absent"
"""What stands where a session has no figure; why it has none stands below the table."""

T = TypeVar("T")


@dataclass(frozen=True)
class StudySide:
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
    mpi: StudySide
    tcp: StudySide
    link_mbit_s: float | None
    mtu: int | None
    mtu_stated: bool

    @property
    def loss(self) -> float:
        """What MPI loses of TCP's largest bandwidth."""
        return loss(self.mpi.peak, self.tcp.peak)

    def shares(self, side: StudySide, mbps: tuple[int, ...]) -> tuple[float, ...]:
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
class StudyRow:
    """One line of NetPIPE's print: bytes, repetitions, Mbps and seconds as printed."""

    size: int
    repetitions: int
    mbps: float
    seconds: float


@dataclass(frozen=True)
class Run:
    """What NetPIPE printed of one run; ``latency_printed_us`` is its own first line."""

    latency_printed_us: float
    rows: tuple[StudyRow, ...]

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
class StudyFigure:
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
    figures: tuple[StudyFigure, ...]


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


def _side(m: _Mapping) -> StudySide:
    return StudySide(m.number("peak"), m.whole("size_printed"), m.number("latency_us"))


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


def _row(m: _Mapping) -> StudyRow:
    return StudyRow(m.whole("bytes"), m.whole("repetitions"), m.number("mbps"), m.number("seconds"))


def _figure(m: _Mapping) -> StudyFigure:
    figure = StudyFigure(
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


class SessionBesideStudy:
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
        subject = f"{' '.join(configuration)} {named(*what)}"
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


def named(benchmark: str, function: str, path: str, direction: str) -> str:
    """A case as sentences on studies name it."""
    if benchmark == "imb":
        return f"IMB {function}"
    return f"NetPIPE {function.upper()} {path} {direction}"
