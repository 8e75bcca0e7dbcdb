"""Rate: the share of the line rate, what nothing carries, and what MPI loses of TCP's bandwidth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import median

from netproof.criteria.findings import (
    FLAGGED,
    Above,
    Bounds,
    CannotJudgeError,
    Finding,
    Level,
    figure,
    in_common,
    over_common,
    rate_in_words,
    undefined,
)
from netproof.criteria.interface import CaseCurves, Criterion
from netproof.errors import NetproofError
from netproof.measurement import interval as intervals
from netproof.measurement.case import MEBI, Curve, line_rate_share
from netproof.measurement.interval import Interval


class Losses(Bounds):
    """Shares of TCP's bandwidth that MPI loses."""

    percent = "%"


MPI_LOSS = Losses(0.2, 0.5)
"""Losses between the peaks.

The e325 Opteron NetPIPE report has 12 % on a tuned GigE, 22 % on an untuned one, and 44 to 51 %
where MPI copies every message once more.
"""

MPI_LOSS_AT_A_SIZE = Losses(None, 0.75)
"""Losses at one size: MPI may take four times as long as TCP; copies and latency explain less."""

TOO_FAST = Above(None, 100_000.0, least_size=65536)
"""MB/s of one message: 800 Gbit/s, the fastest link, and beyond what a core copies.

Memory of GPUs is faster, but takes longer for a message that is larger.
"""

SPAN, FLAT = 16, 1.1
"""How many times larger a message is that takes so many times as long, or less."""

LARGEST_FROM = MEBI
"""Bytes of a message whose own rate stands for that of the line: latency is little of its time."""

OF_LINE, OF_LINE_RATE = "line rate", "of line rate"
AT_THE_PEAK, AT_A_SIZE = "MPI loss at the peak", "MPI loss at a size"
"""Names of findings, and a heading."""

TCP, MPI = "tcp", "mpi"
"""NetPIPE's names of the two."""

_ADVICE = "look at the library's TCP buffers and at copies that it makes"


@dataclass(frozen=True)
class LineRateSettings(Above):
    """``fail``: a share of the line rate above this is an error of measurement.

    ``warn_below`` and ``fail_below``: a share below this is too small; by default nothing.
    """

    fail: float | None = 1.02
    warn_below: float | None = None
    fail_below: float | None = None
    percent = "%"

    def increasing(self) -> tuple[str, ...]:
        """Return both ends of what passes, from the lowest bound to the highest."""
        return ("fail_below", "warn_below", "warn", "fail")

    def allowed(self) -> str:
        """Return both ends of what is not flagged; a share may have no lower one."""
        least = self.fail_below if self.warn_below is None else self.warn_below
        below = "no least" if least is None else f"≥ {self.in_words(least)}"
        return ", ".join(filter(None, (below, super().allowed())))

    def of_interval(
        self, value: float, interval: Interval | None, *, warns_alone: bool
    ) -> tuple[Level, float | None, bool]:
        """Return the level of a share, the bound that decided it, and whether it is a lower bound.

        A bound is violated by the whole interval. It is inconclusive where only the value is
        beyond the bound, or the interval is missing; ``warns_alone``: a value warns by itself.
        """
        low, high = interval or (-math.inf, math.inf)
        by_value = Level.WARN if warns_alone else None
        sides = ((Level.FAIL, self.fail, self.fail_below), (Level.WARN, self.warn, self.warn_below))
        for level, above, below in sides:
            if above is not None and value > above:
                sure = low > above or level is by_value
                return (level if sure else Level.INCONCLUSIVE), above, False
            if below is not None and value < below:
                sure = high < below or level is by_value
                return (level if sure else Level.INCONCLUSIVE), below, True
        level, bound = self.level(value)
        if bound is None and (self.warn_below, self.fail_below) != (None, None):
            return Level.PASS, self.warn_below or self.fail_below, True
        return level, bound, False


def line_rate(case: CaseCurves, settings: LineRateSettings) -> Finding | None:
    """Return the asymptotic bandwidth's share of the line rate.

    A share above 1.02 is an error of measurement. Raises NetproofError for a line rate that is not
    positive.
    """
    found, line_rate_mb_s = case.landmarks, case.line_rate_mb_s
    if case.curve.bandwidth_mb_s is None or line_rate_mb_s is None:
        return None
    r_mb_s, interval = found.asymptotic_mb_s, found.intervals.get("asymptotic_mb_s")
    what = "an asymptotic bandwidth of {}"
    largest = case.launches[0].sizes[-1] if case.launches and case.of_files else 0
    if r_mb_s is None and largest >= case.of_files > 0:
        rates = [curve.bandwidth_mb_s[-1] for curve in case.launches if curve.bandwidth_mb_s]
        r_mb_s = median(rates)
        interval = intervals.of_median(rates) or (r_mb_s, r_mb_s)
        what = f"at {largest} bytes {{}}{' of one launch' if len(rates) == 1 else ''}"
    if r_mb_s is None:
        why, short = (
            found.why("asymptotic_mb_s", figures=figures) or "it has no r∞"
            for figures in (True, False)
        )
        return replace(undefined(OF_LINE, case.where, why), why_undefined=short)
    share = line_rate_share(r_mb_s, line_rate_mb_s)
    if interval is not None:
        interval = (interval[0] / line_rate_mb_s, interval[1] / line_rate_mb_s)
    level, bound, below = settings.of_interval(share, interval, warns_alone=case.of_files > 0)
    known = interval is not None and interval[0] < interval[1]
    spoken = "" if known else " (no interval)"
    beyond = ", too fast to be true" if level in FLAGGED and not below else ""
    return settings.finding(
        share,
        f"{what.format(rate_in_words(r_mb_s))} is {share:.1%} of the line"
        f" rate of {rate_in_words(line_rate_mb_s)}{spoken}{beyond}",
        "look at the transport that the library took, at the link's rate, duplex and errors, and at"
        " what else it carried"
        if below
        else "no link carries that, so the link rate given is wrong, or the messages took another"
        " network or shared memory",
        interval=interval,
        decided=(level, bound),
        below=below,
    )


def too_fast(case: CaseCurves, settings: Above) -> Finding | None:
    """Return the largest message if nothing can have moved it: an error of measurement.

    ``settings``: MB/s. Its time is also that of a message ``SPAN`` times smaller, or less, so that
    latency explains all of it.
    """
    if case.curve.sizes[-1] < settings.least_size:
        return None
    times = settings.times(case.curve)
    least, most = min(times), max(times)
    rate = most / times[most]
    grown = times[most] / times[least]
    if most < SPAN * least or grown > FLAT or settings.level(rate)[0] not in FLAGGED:
        return None
    return settings.finding(
        rate,
        f"{most} bytes took {figure(times[most])} µs, and {least} bytes no less,"
        f" {figure(times[least])} µs: {figure(rate)} MB/s, too fast to be true",
        "nothing was moved, or not all of it: let the benchmark check its data, and look at"
        " what the library does with this memory",
        size=most,
        compared_sizes=(least,),
    )


def loss(mpi_mb_s: float, tcp_mb_s: float) -> float:
    """Return 1 - bw_MPI / bw_TCP, the share of TCP's bandwidth that MPI loses; negative is a gain.

    After the e325 Opteron NetPIPE report. Raises NetproofError for what is no bandwidth.
    """
    if not (math.isfinite(tcp_mb_s) and tcp_mb_s > 0 and math.isfinite(mpi_mb_s) and mpi_mb_s >= 0):
        raise NetproofError(
            f"no loss of MPI at {mpi_mb_s} over TCP at {tcp_mb_s}: bandwidths are above 0"
        )
    return 1 - mpi_mb_s / tcp_mb_s


def losses(mpi: Curve, tcp: Curve, settings: Bounds) -> dict[int, float]:
    """Return the loss of MPI over TCP at each common size in bytes.

    Raises CannotJudgeError where one of them has no bandwidth to compare.
    """
    rates = [
        settings.rates(curve, of=f"no loss of MPI over TCP: of {label}, ")
        for label, curve in (("MPI", mpi), ("TCP", tcp))
    ]
    return {size: loss(rates[0][size], rates[1][size]) for size in in_common(rates)}


def loss_at_the_peak(case: CaseCurves, settings: Bounds) -> Finding | None:
    """Return MPI's loss of TCP's bandwidth between the peaks, which may lie at different sizes.

    Both are from the same two nodes in the same job.
    """
    if TCP not in case.others:
        if not case.over_tcp:
            return None
        raise CannotJudgeError("its run over TCP in the same job is not complete")
    tcp = case.others[TCP]
    losses(case.curve, tcp.curve, Bounds())
    (mpi_size, mpi_peak), (tcp_size, tcp_peak) = (
        max(
            settings.rates(curve, of=f"no peak of {label}: ").items(),
            key=lambda point: (point[1], -point[0]),
        )
        for label, curve in (("MPI", case.curve), ("TCP", tcp.curve))
    )
    of_mpi, of_tcp = (
        [max(settings.rates(curve).values()) for curve in side.launches] for side in (case, tcp)
    )
    value, interval = loss(mpi_peak, tcp_peak), _of_losses(of_mpi, of_tcp)
    return settings.finding(
        value,
        f"MPI peaks at {rate_in_words(mpi_peak)} ({mpi_size} bytes), TCP at"
        f" {rate_in_words(tcp_peak)} ({tcp_size} bytes), a loss of {value:.1%}",
        _ADVICE,
        interval=interval,
        size=mpi_size,
        compared_sizes=(tcp_size,),
    )


def loss_at_a_size(case: CaseCurves, settings: Bounds) -> Finding | None:
    """Return MPI's largest loss of TCP's bandwidth at a size, of those that fail if some do."""
    if TCP not in case.others:
        return None
    tcp = case.others[TCP]
    at_sizes = losses(case.curve, tcp.curve, settings)
    if not at_sizes:
        raise CannotJudgeError("MPI and TCP have no size in common")
    common = tuple(at_sizes)

    def of_size(size: int) -> Finding:
        # A ratio of bandwidths is that of the other one's time to its own.
        of_tcp, of_mpi, lost = tcp.times_at[size], case.times_at[size], at_sizes[size]
        whole = len(of_tcp) + len(of_mpi) == len(tcp.launches) + len(case.launches)
        interval = _of_losses(of_tcp, of_mpi) if whole else None
        return settings.finding(
            lost,
            f"at {size} bytes MPI loses {lost:.1%} of TCP's bandwidth, the"
            f" most {over_common(common)}",
            _ADVICE,
            interval=interval,
            size=size,
            common=common,
        )

    return settings.worst(at_sizes, of_size)


def _of_losses(mpi: Sequence[float], tcp: Sequence[float]) -> tuple[float, float] | None:
    """Return the interval of the loss between MPI's bandwidths and TCP's."""
    ratio = intervals.of_ratio(mpi, tcp)
    return None if ratio is None else (1 - ratio[1], 1 - ratio[0])


# Within a node MPI copies through shared memory and TCP through the kernel.
_over_tcp = partial(
    Criterion,
    asserts_inside=False,
    of_launches=True,
    others=lambda operation: (TCP,) if operation == MPI else (),
    rests_on=lambda operation, finding: (TCP,),
)

CRITERIA = (
    Criterion(
        OF_LINE,
        "line_rate",
        LineRateSettings(),
        line_rate,
        sets=("fail", "warn_below", "fail_below"),
        of_launches=True,
        of_measurement=True,
        key_figure=OF_LINE_RATE,
        note="{count} {have} no share of the line rate: {cases}: {why}",
    ),
    Criterion(
        "too fast",
        "too_fast",
        TOO_FAST,
        too_fast,
        sets=(),
        of_all_sizes=True,
        of_launches=True,
        of_measurement=True,
    ),
    _over_tcp(
        AT_THE_PEAK, "mpi_loss", MPI_LOSS, loss_at_the_peak, of_peaks=True, key_figure="MPI loss"
    ),
    _over_tcp(
        AT_A_SIZE,
        "mpi_loss_at_size",
        MPI_LOSS_AT_A_SIZE,
        loss_at_a_size,
        sets=("fail",),
        of_all_sizes=True,
    ),
)
