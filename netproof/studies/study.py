"""Figures of an earlier study, from its file, and what the criteria make of them.

Losses and shares of the line rate are not stored but computed here, by the code that judges a run.
"""

from __future__ import annotations

from typing import Literal, Self, get_args

from pydantic import Field, field_validator, model_validator

from netproof.criteria import loss
from netproof.intake.models import (
    AtKey,
    Maybe,
    Positive,
    PositiveWhole,
    Several,
    Text,
    Written,
    YesOrNo,
)
from netproof.measurement.curve import Curve
from netproof.measurement.landmarks import Landmarks, landmarks
from netproof.measurement.units import (
    MEBI,
    bandwidth_mb_s,
    line_rate_mb_s,
    line_rate_share,
    mb_s,
    us,
)
from netproof.tuning.parameters import BY_NAME

MBPS_BITS = {1_000_000: (1_000_000,), MEBI: (MEBI,), "unstated": (1_000_000, MEBI)}
"""Possible meanings of a study's Mbps in bit/s."""
RATE_KIB = (64, 16, 4, 1)
RELATIONS = {"equal": "", "below": "< ", "about": "≈ "}

_Unit = Literal["us", "MB/s", "Mbps", "%"]


def _one_of(choices: object) -> str:
    return f"one of {', '.join(map(str, choices))}"


class StudySide(Written):
    """Largest bandwidth of MPI or TCP as printed, its size as printed, and the latency in µs."""

    peak: Positive
    size_printed: PositiveWhole
    latency_us: Positive


class Peaks(Written):
    """MPI alongside TCP on one network.

    ``link_mbit_s`` and ``mtu`` are None where no Ethernet carries it; ``mtu_stated`` is False for
    an MTU that the study does not give.
    """

    where: Text
    network: Text
    link_mbit_s: Maybe[Positive] = None
    stated_mtu: Maybe[PositiveWhole] = Field(None, alias="mtu")
    assumed_mtu: Maybe[PositiveWhole] = Field(None, alias="mtu_assumed")
    mpi: StudySide
    tcp: StudySide

    @model_validator(mode="after")
    def _takes_both(self) -> Self:
        if self.mtu_stated and self.assumed_mtu is not None:
            raise AtKey("mtu_assumed", "an MTU is stated: remove one of mtu and mtu_assumed")
        if (self.link_mbit_s is None) != (self.mtu is None):
            raise AtKey("link_mbit_s", "a share of the line rate takes link_mbit_s and an mtu")
        return self

    @property
    def mtu(self) -> int | None:
        """MTU in bytes, stated or assumed."""
        return self.assumed_mtu if self.stated_mtu is None else self.stated_mtu

    @property
    def mtu_stated(self) -> bool:
        """Whether the study gives the MTU."""
        return self.stated_mtu is not None

    @property
    def loss(self) -> float:
        """MPI's loss of TCP's largest bandwidth."""
        return loss(self.mpi.peak, self.tcp.peak)

    def shares(self, side: StudySide, mbps: tuple[int, ...]) -> tuple[float, ...]:
        """Return the shares of the line rate, one for each meaning in bit/s that Mbps may have."""
        if self.link_mbit_s is None or self.mtu is None:
            return ()
        line_rate = line_rate_mb_s(self.link_mbit_s, self.mtu)
        return tuple(line_rate_share(rate, line_rate) for rate in _mb_s(side.peak, mbps))


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

    @field_validator("rates")
    @classmethod
    def _at_each_size(cls, rates: dict[int, float]) -> dict[int, float]:
        if set(rates) != set(RATE_KIB):
            raise ValueError(
                f"found rates at {', '.join(map(str, rates))} KiB, expected those at"
                f" {', '.join(map(str, RATE_KIB))}"
            )
        return rates


class Adapters(Written):
    """Adapters compared over links of one rate in Mbit/s."""

    link_mbit_s: Positive
    columns: Several[Adapter]

    def link_share(self, adapter: Adapter) -> float:
        """Return the peak over the link's signalling rate, framing and headers included."""
        return line_rate_share(adapter.peak, mb_s(self.link_mbit_s))

    def line_rate_share(self, adapter: Adapter) -> float | None:
        """Return the peak over TCP's line rate; None for other transports or without an MTU."""
        if not adapter.over_tcp or adapter.mtu is None:
            return None
        return line_rate_share(adapter.peak, line_rate_mb_s(self.link_mbit_s, adapter.mtu))


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

    @field_validator("rows")
    @classmethod
    def _increasing(cls, rows: tuple[StudyRow, ...]) -> tuple[StudyRow, ...]:
        sizes = [row.size for row in rows]
        if sizes != sorted(set(sizes)):
            raise ValueError(f"found the bytes {sizes}, expected increasing ones")
        return rows

    @property
    def latency_printed_us(self) -> float:
        """The same in µs."""
        return us(self.latency_printed_s)

    def curve(self) -> Curve:
        """Return the rows as a curve, with bandwidth from bytes and time."""
        times = [us(row.seconds) for row in self.rows]
        return Curve(
            tuple(row.size for row in self.rows),
            tuple(times),
            tuple(bandwidth_mb_s(r.size, t) for r, t in zip(self.rows, times, strict=True)),
        )

    def landmarks(self) -> Landmarks:
        """Return the landmarks of the rows, by the code that judges a run."""
        return landmarks(self.curve(), None)


class StudyFigure(Written):
    """A single figure from a study's text.

    ``relation``: equal, below or about; ``unit``: µs as ``us``, MB/s, Mbps or %. A bandwidth
    may have the link it was measured on, and the MTU if it is TCP.
    """

    what: Text
    relation: Literal["equal", "below", "about"] = Field(alias="is", title=_one_of(RELATIONS))
    value: Positive
    unit: _Unit = Field(title=_one_of(get_args(_Unit)))
    link_mbit_s: Maybe[Positive] = None
    mtu: Maybe[PositiveWhole] = None

    @model_validator(mode="after")
    def _of_a_link(self) -> Self:
        if self.link_mbit_s is not None and self.unit not in ("MB/s", "Mbps"):
            raise AtKey("link_mbit_s", f"a value in {self.unit} has no share of a link")
        if self.mtu is not None and self.link_mbit_s is None:
            raise AtKey("mtu", "a share of the line rate takes link_mbit_s too")
        return self

    def link_shares(self, mbps: tuple[int, ...]) -> tuple[float, ...]:
        """Return shares of the signalling rate, one per meaning of Mbps; none without a link."""
        if self.link_mbit_s is None:
            return ()
        return tuple(line_rate_share(r, mb_s(self.link_mbit_s)) for r in self._rates(mbps))

    def shares(self, mbps: tuple[int, ...]) -> tuple[float, ...]:
        """Return shares of TCP's line rate, one per meaning of Mbps; none without an MTU."""
        if self.link_mbit_s is None or self.mtu is None:
            return ()
        line_rate = line_rate_mb_s(self.link_mbit_s, self.mtu)
        return tuple(line_rate_share(rate, line_rate) for rate in self._rates(mbps))

    def _rates(self, mbps: tuple[int, ...]) -> list[float]:
        return [self.value] if self.unit == "MB/s" else _mb_s(self.value, mbps)


class NetpipeCharts(Written):
    """NetPIPE curves that a part of a page draws, over TCP and MPI together."""

    path: Literal["between", "inside"] = Field(title="between or inside")
    direction: Literal["oneway", "bidirectional"] = Field(title="oneway or bidirectional")


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

    @model_validator(mode="after")
    def _shows_something(self) -> Self:
        shown = (self.tables, self.netpipe, self.functions, self.scores, self.sweeps)
        if not any(shown) and self.not_measured is None:
            raise AtKey("heading", "the part shows nothing: give tables, netpipe or another key")
        unknown = [name for name in self.sweeps if name not in BY_NAME]
        if unknown:
            raise AtKey("sweeps", f"{unknown[0]!r} is no parameter; those are {', '.join(BY_NAME)}")
        return self


class Study(Written):
    """One study's figures; those that it does not have are empty or None.

    ``page``: what is measured to redo it, and shown in this order.
    """

    name: Text = Field(alias="study")
    title: Text
    source: Text
    mbps_means: Maybe[Literal[1000000, 1048576, "unstated"]] = Field(
        None, alias="mbps", title=_one_of(MBPS_BITS)
    )
    notes: Several[Text] = ()
    peaks: Several[Peaks] = ()
    adapters: Maybe[Adapters] = None
    run: Maybe[StudyRun] = None
    figures: Several[StudyFigure] = ()
    page: Several[StudyPart] = ()

    @model_validator(mode="after")
    def _has_figures(self) -> Self:
        in_mbps = self.peaks or self.run or any(one.unit == "Mbps" for one in self.figures)
        if in_mbps and not self.mbps:
            raise AtKey("mbps", f"missing, expected {_one_of(MBPS_BITS)}")
        if not (self.peaks or self.adapters or self.run or self.figures):
            raise AtKey("figures", "missing, a study has peaks, adapters, a run or figures")
        return self

    @property
    def sweeps(self) -> tuple[str, ...]:
        """The settings that it varied, each once."""
        return tuple(dict.fromkeys(name for part in self.page for name in part.sweeps))

    @property
    def mbps(self) -> tuple[int, ...]:
        """Its Mbps in bit/s: two values if it does not say which, none if it has none."""
        return MBPS_BITS[self.mbps_means] if self.mbps_means is not None else ()


def _mb_s(value: float, mbps: tuple[int, ...]) -> list[float]:
    return [mb_s(value * bits / 1e6) for bits in mbps]
