"""Figures of earlier studies, a file of ``reference-values/literature`` each, and a session's own.

They are figures as printed there, with their source. Losses and shares of the line rate are not
stored but computed here, by the code that judges a run.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from netproof.criteria.rate import loss
from netproof.errors import NetproofError, shortened
from netproof.intake import disk, yaml_reading
from netproof.intake.models import Maybe, Positive, PositiveWhole, Several, Text, Written, YesOrNo
from netproof.measurement.case import MEBI, Case, Curve, bandwidth_mb_s, line_rate_share, mb_s, us
from netproof.measurement.landmarks import Landmarks, landmarks, peaks_in_words
from netproof.measurement.links import Link
from netproof.site import folders

if TYPE_CHECKING:
    from netproof.session.session import CheckResult, Session

DIRECTORY = folders.shipped("reference-values") / "literature"
MBPS_BITS = {1_000_000: (1_000_000,), MEBI: (MEBI,), "unstated": (1_000_000, MEBI)}
"""Possible meanings of a study's Mbps in bit/s."""
RATE_KIB = (64, 16, 4, 1)
RELATIONS = {"equal": "", "below": "< ", "about": "≈ "}


class StudySide(Written):
    """Largest bandwidth of MPI or TCP as printed, its size as printed, and the latency in µs."""

    peak: Positive
    size_printed: PositiveWhole
    latency_us: Positive


class Peaks(Written):
    """MPI alongside TCP on one network.

    ``link_mbit_s`` and ``mtu``, assumed by netproof, are None where no Ethernet carries it.
    """

    where: Text
    network: Text
    link_mbit_s: Maybe[Positive] = None
    mtu: Maybe[PositiveWhole] = Field(None, alias="mtu_assumed")
    mpi: StudySide
    tcp: StudySide

    @property
    def loss(self) -> float:
        """MPI's loss of TCP's largest bandwidth."""
        return loss(self.mpi.peak, self.tcp.peak)

    def shares(self, side: StudySide, mbps: tuple[int, ...]) -> tuple[float, ...]:
        """Return the shares of the line rate, one for each meaning in bit/s that Mbps may have."""
        return _of_line(_mb_s(side.peak, mbps), self.link_mbit_s, self.mtu)


class Adapter(Written):
    """One column of a bidirectional comparison: rates in MB/s each way, latency in µs."""

    name: Text
    card: Text
    driver: Text
    mtu: Maybe[PositiveWhole] = None
    mpi: Text
    over_tcp: YesOrNo
    switch: Text
    latency_us: Positive
    peak: Positive
    peak_size_printed: Text
    rates: dict[int, Positive]


class Adapters(Written):
    """Adapters compared over links of one rate in Mbit/s."""

    link_mbit_s: Positive
    columns: Several[Adapter]

    def line_rate_share(self, adapter: Adapter) -> float | None:
        """Return the peak over TCP's line rate; None for other transports or without an MTU."""
        mtu = adapter.mtu if adapter.over_tcp else None
        return next(iter(_of_line([adapter.peak], self.link_mbit_s, mtu)), None)


class StudyRow(Written):
    """One line of NetPIPE's output: bytes, repetitions, Mbps and seconds as printed."""

    size: PositiveWhole = Field(alias="bytes")
    repetitions: PositiveWhole
    mbps: Positive
    seconds: Positive


class StudyRun(Written):
    """NetPIPE's output of one run; ``latency_printed_s`` is its own first line."""

    latency_printed_s: Positive
    rows: Several[StudyRow]

    def curve(self) -> Curve:
        """Return the rows as a curve, with bandwidth from bytes and time."""
        sizes = tuple(row.size for row in self.rows)
        times = tuple(us(row.seconds) for row in self.rows)
        return Curve(sizes, times, tuple(map(bandwidth_mb_s, sizes, times)))

    def landmarks(self) -> Landmarks:
        """Return the landmarks of the rows, by the code that judges a run."""
        return landmarks(self.curve(), None)


class StudyFigure(Written):
    """A single figure from a study's text.

    ``relation``: equal, below or about; ``unit``: µs as ``us``, MB/s, Mbps or %. A bandwidth
    may have the link it was measured on, and the MTU if it is TCP.
    """

    what: Text
    relation: Literal["equal", "below", "about"] = Field(alias="is")
    value: Positive
    unit: Literal["us", "MB/s", "Mbps", "%"]
    link_mbit_s: Maybe[Positive] = None
    mtu: Maybe[PositiveWhole] = None

    def link_shares(self, mbps: tuple[int, ...]) -> tuple[float, ...]:
        """Return shares of the signalling rate, one per meaning of Mbps; none without a link."""
        if self.link_mbit_s is None:
            return ()
        return tuple(line_rate_share(r, mb_s(self.link_mbit_s)) for r in self._rates(mbps))

    def shares(self, mbps: tuple[int, ...]) -> tuple[float, ...]:
        """Return shares of TCP's line rate, one per meaning of Mbps; none without an MTU."""
        return _of_line(self._rates(mbps), self.link_mbit_s, self.mtu)

    def _rates(self, mbps: tuple[int, ...]) -> list[float]:
        return [self.value] if self.unit == "MB/s" else _mb_s(self.value, mbps)


class NetpipeCharts(Written):
    """NetPIPE curves that a part of a page draws, over TCP and MPI together."""

    path: Literal["inter-node", "intra-node"]
    direction: Literal["oneway", "bidirectional"]


class StudyPart(Written):
    """A part of the page on a study redone, in the study's order.

    ``text``: what the study did there; ``tables``: its own figures, and the session's in the same
    columns; ``functions``: whose times are drawn; ``scores``: functions whose scores are compared;
    ``sweeps``: settings that it varied; ``not_measured``: why something of it is not redone.
    """

    heading: Text
    text: Maybe[Text] = None
    tables: YesOrNo = False
    netpipe: Maybe[NetpipeCharts] = None
    functions: Several[Text] = ()
    scores: Several[Text] = ()
    sweeps: Several[Text] = ()
    not_measured: Maybe[Text] = None


class Study(Written):
    """One study's figures; those that it does not have are empty or None.

    ``page``: what is measured to redo it, and shown in this order.
    """

    name: Text = Field(alias="study")
    title: Text
    source: Text
    mbps_means: Maybe[Literal[1000000, 1048576, "unstated"]] = Field(None, alias="mbps")
    notes: Several[Text] = ()
    peaks: Several[Peaks] = ()
    adapters: Maybe[Adapters] = None
    run: Maybe[StudyRun] = None
    figures: Several[StudyFigure] = ()
    page: Several[StudyPart] = ()

    @property
    def sweeps(self) -> tuple[str, ...]:
        """The settings that it varied, each once."""
        return tuple(dict.fromkeys(name for part in self.page for name in part.sweeps))

    @property
    def mbps(self) -> tuple[int, ...]:
        """Its Mbps in bit/s: two values if it does not say which, none if it has none."""
        return MBPS_BITS[self.mbps_means] if self.mbps_means is not None else ()


def _of_line(rates: list[float], link_mbit_s: float | None, mtu: int | None) -> tuple[float, ...]:
    """Return shares of TCP's line rate; none where link or MTU are not known."""
    if link_mbit_s is None or mtu is None:
        return ()
    line_rate = Link(link_mbit_s, mtu).line_rate_mb_s()
    return tuple(line_rate_share(rate, line_rate) for rate in rates)


def _mb_s(value: float, mbps: tuple[int, ...]) -> list[float]:
    return [mb_s(value * bits / 1e6) for bits in mbps]


def names(directory: Path = DIRECTORY) -> tuple[str, ...]:
    """Return the names of the studies, as ``load`` takes them. Raises NetproofError without any."""
    found = tuple(sorted(path.stem for path in directory.glob("*.yaml")))
    if not found:
        raise NetproofError(
            f"{directory}: no study is there; run netproof from its checkout, installed by pip -e"
        )
    return found


def load(name: str, directory: Path = DIRECTORY) -> Study:
    """Return a study's figures; NetproofError naming file and key, and for an unknown name."""
    if name not in names(directory):
        raise NetproofError(
            f"{name!r} is no study: there are {', '.join(names(directory))} in {directory}"
        )
    path = directory / f"{name}.yaml"
    try:
        values = yaml_reading.yaml_value(disk.read_text(path), path)
        if not isinstance(values, dict):
            raise NetproofError(f"expected a study's keys, found {shortened(repr(values))}")
        return Study.of_site(values)
    except (OSError, UnicodeDecodeError, NetproofError) as error:
        raise NetproofError(f"{path}: cannot be read: {error}") from error


ABSENT = "absent"
"""Cell of a figure that a session lacks; the reason is below the table."""


class SessionInStudy:
    """A session's landmarks for the studies' tables, with the reasons for those it lacks.

    ``configurations``: partition and environment of each case, in the session's order. Raises
    NetproofError for a session without a case on two ranks.
    """

    def __init__(self, stored: Session) -> None:
        self.path = stored.path
        self._results: dict[tuple[str, ...], CheckResult] = {}
        for result in stored.results:
            case = result.case
            if case is not None and case.ranks == 2:
                # A case that ReFrame repeated has its last result.
                what = (case.benchmark, case.function, case.path, case.direction)
                self._results[case.partition, case.environment, *what] = result
        self.configurations = tuple(dict.fromkeys((key[0], key[1]) for key in self._results))
        if not self.configurations:
            raise NetproofError(
                f"{stored.path}: has no case on two ranks to show alongside a study"
            )
        self._reasons: list[str] = []

    def landmark(self, name: str, configuration: tuple[str, str], *what: str) -> float | None:
        """Return a case's landmark by name, or None where it is absent, and store the reason."""
        result = self._results.get((*configuration, *what))
        value: float | None = None
        if result is None:
            why = "the session does not have it"
        elif result.measured is None:
            why = f"{result.result} in {result.phase or 'an unknown phase'}"
        else:
            value = getattr(result.measured.landmarks, name)
            why = f"{name}: {result.measured.landmarks.why(name)}" if value is None else ""
        if value is None:
            self._reasons.append(f"{' '.join(configuration)} {named(*what)}: {why}")
        return value

    def peak_share(self, configuration: tuple[str, str], *what: str) -> float | None:
        """Return a case's peak over the line rate, as the studies do; None where one is absent."""
        peak = self.landmark("peak_mb_s", configuration, *what)
        result = self._results.get((*configuration, *what))
        rate = result.measured.line_rate_mb_s if result and result.measured else None
        return None if peak is None or rate is None else line_rate_share(peak, rate)

    def extras(self, configuration: tuple[str, str]) -> dict[str, Any]:
        """Return the site's keys of a configuration; empty if nothing of it was measured."""
        for key, result in self._results.items():
            if key[:2] == configuration and result.measured is not None:
                return {**result.extras["partition_extras"], **result.extras["environment_extras"]}
        return {}

    def least_peak(self, partition: str | None = None) -> str:
        """Return which messages cannot be the inter-node peak, to end a caption, or nothing."""
        return peaks_in_words(
            self.extras(one).get("line_rate_from_bytes", 0)
            for one in self.configurations
            if partition in (None, one[0])
        )

    def reasons(self) -> list[str]:
        """Return why figures were absent since the last call, each reason once."""
        found = list(dict.fromkeys(self._reasons))
        self._reasons.clear()
        return found


def named(benchmark: str, function: str, path: str, direction: str) -> str:
    """Return a case as sentences on studies name it."""
    from netproof.benchmarks import registry

    return registry.named(benchmark).words(
        Case("", "", "", benchmark, function, 2, 1, path, direction)
    )
