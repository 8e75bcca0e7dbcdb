"""iperf3's JSON (``-J``): the rate that arrived, of blocks of one size, read into a curve.

A block's time is its share of the rate; its size is what each write had, not what a packet has. The
bytes and seconds check the rate, and the duration that was asked for shows a test that broke off.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from netproof.benchmarks.fixed import Row
from netproof.benchmarks.interface import Benchmark, Function, Output, Table
from netproof.errors import ParseError
from netproof.measurement.case import BITS_PER_BYTE

_FROM_OTHER = "_bidir_reverse"
"""End of the keys of the second direction."""


class Iperf3(Benchmark):
    """TCP and UDP streams of iperf3, which no check starts."""

    number = 6
    name = "iperf3"
    label = "iperf3"
    output_of = "iperf3 (-J)"
    only_read = tuple(Function(name, pair=True, rated=True) for name in ("tcp", "udp", "sctp"))
    heads = re.compile(r"(?P<program>(?!))")
    several_tables = True

    def read_document(self, content: Any, path: str) -> Output | None:
        """Return what ``-J`` wrote, a table for each direction."""
        if not isinstance(content, dict) or not {"start", "end"} <= content.keys():
            return None
        if said := content.get("error"):
            raise ParseError(path, 0, str(said), "the test broke off")
        asked = content["start"]["test_start"]
        endings = ("", _FROM_OTHER) if asked.get("bidir") else ("",)
        tables = tuple(_table(path, content, asked, ending) for ending in endings)
        version = str(content["start"].get("version", "")).removeprefix("iperf ") or None
        return Output(self, path, tables, version, program="iperf3")


def _table(path: str, content: Mapping[str, Any], asked: Mapping[str, Any], ending: str) -> Table:
    end, protocol = content["end"], str(asked["protocol"]).lower()
    summary = end.get(f"sum_received{ending}") or end[f"sum{ending}"]
    seconds, moved = float(summary["seconds"]), float(summary["bytes"])
    rate, size = float(summary["bits_per_second"]) / BITS_PER_BYTE, int(asked["blksize"])
    if not seconds > 0:
        raise ParseError(path, 0, "", "took no time")
    if protocol == "udp" and summary.get("lost_percent") and "sum_received" not in end:
        rate *= 1 - float(summary["lost_percent"]) / 100
    elif not math.isclose(rate * seconds, moved, rel_tol=1e-3):
        reason = "bits_per_second does not follow from bytes and seconds"
        found = str(summary["bits_per_second"])
        raise ParseError(path, 0, found, f"{reason}: {moved / seconds:.6g} B/s")
    if not rate > 0 or size < 1:
        raise ParseError(path, 0, "", "nothing arrived, or in blocks of no size")
    duration = float(asked.get("duration") or 0)
    if seconds < duration - 1.0 - 0.02 * duration:
        raise ParseError(path, 0, "", f"broke off after {seconds:.3g} of {duration:.3g} s")
    streams = int(asked["num_streams"])
    intervals = [one["sum"] for one in content.get("intervals", ()) if f"sum{ending}" in one]
    interval = max((float(one["seconds"]) for one in intervals), default=math.inf)
    if sum(not one.get("omitted") for one in intervals) + 1.5 < duration / interval:
        raise ParseError(path, 0, "", f"{len(intervals)} intervals are not the {duration:.3g} s")
    remark = [f"{streams} streams"] if streams > 1 else []
    if ending:
        remark.append("from the server" if not asked.get("reverse") else "from the client")
    if asked.get("bidir"):
        remark.append("bidirectional")
    facts = {
        "seconds": seconds,
        "streams": streams,
        "retransmits": end.get(f"sum_sent{ending}", {}).get("retransmits"),
        "intervals_mb_s": [one["bits_per_second"] / 8e6 for one in intervals],
    }
    row = Row(0, size, {"rate": rate / 1e6}, size / rate * 1e6)
    return Table(path, protocol, 2, (row,), 0, 1, remark=", ".join(remark), facts=facts)


BENCHMARK = Iperf3()
