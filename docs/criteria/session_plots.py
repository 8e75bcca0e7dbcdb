"""Draw the plots of docs/criteria/ that rest on more than single curves.

``plots.py`` calls these: what several functions, environments and rank counts took in a recorded
session of a healthy and of a sick switch, and what their nodes counted.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import altair as alt
from drawing import (
    FAILS,
    HERE,
    OTHER,
    PASSES,
    SHADES,
    compared,
    found,
    launches,
    lines,
    marks,
    panel,
    save,
)

from netproof import codec
from netproof.benchmarks import registry
from netproof.criteria.consistency import AGREEMENT, GROWTH, GUIDELINE
from netproof.criteria.counters import sent_again, sent_over
from netproof.criteria.interface import CaseCurves, CountedLaunch
from netproof.criteria.slower import FLOOR
from netproof.measurement.case import Case, Curve, median_curve
from netproof.measurement.counters import Counters, counters

JOBS = HERE.parents[1] / "tests" / "data" / "jobs"
FROM_THE_LINK = 4096
"""Below it, times of the testbed are those of its two CPUs."""
RAIL = "eth1"
LEAST_AXIS = 0.01
"""Least upper end of an axis of shares."""
SWITCHES = (("gige", "healthy", PASSES), ("sick gige", "sick", FAILS))
"""Label, recorded session, colour."""


@dataclasses.dataclass(frozen=True)
class Recorded:
    """A case of a recorded session: its launches, and its counters if stored."""

    launches: tuple[Curve, ...]
    counted: tuple[CountedLaunch, ...]

    def case(self, where: str, **known: Any) -> CaseCurves:
        """Return the case as criteria take it."""
        return CaseCurves.of_launches(where, self.launches, **known)


def session(name: str) -> dict[tuple[str, str, int], Recorded]:
    """The cases of a recorded session by environment, function and ranks."""
    found = {}
    for one in json.loads((HERE / "sessions" / f"{name}.json").read_text()):
        curves = _curves(one)
        counted = tuple(
            CountedLaunch(number, codec.decode(Counters, values, name), "not kept")
            for number, values in enumerate(one.get("counters", ()), 1)
        )
        key = (one["environment"], one["function"], one["ranks"])
        found[key] = Recorded(curves, counted)
    return found


def _curves(one: Mapping[str, Any]) -> tuple[Curve, ...]:
    return tuple(
        Curve(*(tuple(launch[key]) for key in ("sizes", "time_us", "bandwidth_mb_s")))
        if launch["bandwidth_mb_s"]
        else Curve(tuple(launch["sizes"]), tuple(launch["time_us"]))
        for launch in one["launches"]
    )


def launch_spread() -> None:
    """Three launches of the same case on each switch."""
    sides = []
    for label, case, colour in (("gige", "gige-tcp", PASSES), ("sick gige", "sick-tcp", FAILS)):
        several = launches(case)
        (one,) = found("launch spread", several, label)
        curves = {f"{label}, launch {number}": one for number, one in enumerate(several, 1)}
        chart = lines(curves, SHADES[colour], rate=False)
        place = several[0].sizes.index(one.size)
        highest = max(several, key=lambda launch: launch.time_us[place])
        chart += marks(highest, [one], rate=False)
        sides.append(panel(chart, f"launch spread: {one.level.value}", [one.why]))
    save("launch-spread", *sides)


def early_rendezvous() -> None:
    """Open MPI with an eager limit of 64 bytes, header included, and as it comes."""
    recorded = json.loads((HERE / "sessions" / "eager-limit.json").read_text())
    sides = []
    for which, colour in (("as it comes", PASSES), ("limit of 64", FAILS)):
        read = next(case for case in recorded[which] if case["direction"] == "oneway")
        own = CaseCurves.of_launches(f"Open MPI, {which}", _curves(read), ping_pong=True)
        (one,) = found("early rendezvous", own, own.where)
        chart = lines({f"NetPIPE over Open MPI, {which}": own.curve}, [colour], rate=False)
        chart += marks(own.curve, [one], rate=False)
        sides.append(panel(chart, f"early rendezvous: {one.level.value}", [one.why]))
    save("early-rendezvous", *sides)


def guidelines() -> None:
    """Alltoall beside the messages that do its work, both of MPICH on 4 ranks."""
    bounds = replace(GUIDELINE, least_size=FROM_THE_LINK)
    sides = []
    for label, name, colour in SWITCHES:
        cases = session(name)
        alongside = {"Sendrecv": cases["mpich", "Sendrecv", 4].case("Sendrecv")}
        known = {"operation": "Alltoall", "ranks": 4, "others": alongside}
        own = cases["mpich", "Alltoall", 4].case(label, **known)
        (one,) = found("guideline of messages", own, label, bounds)
        message = alongside["Sendrecv"].curve
        work = dataclasses.replace(
            message, time_us=tuple(3 * time for time in message.time_us), bandwidth_mb_s=None
        )
        curves = {f"Alltoall, {label}": own.curve, "3 times Sendrecv": work}
        chart = lines(curves, [colour, OTHER], rate=False) + marks(own.curve, [one], rate=False)
        sides.append(panel(chart, f"guideline: {one.level.value}", [one.why]))
    save("guideline", *sides)


def agreement() -> None:
    """IMB's PingPong beside NetPIPE over the same library and the same two nodes."""
    bounds = replace(AGREEMENT, least_size=FROM_THE_LINK)
    sides = []
    for label, name, colour in SWITCHES:
        cases = session(name)
        own = cases["mpich", "PingPong", 2].case(label)
        other = cases["mpich", "mpi", 2].case("NetPIPE mpi")
        (one,) = compared("agreement", (own, other), bounds)[label]
        curves = {f"IMB PingPong, {label}": own.curve, "NetPIPE over MPI": other.curve}
        chart = lines(curves, [colour, OTHER], rate=False) + marks(own.curve, [one], rate=False)
        sides.append(panel(chart, f"agreement: {one.level.value}", [one.why]))
    save("agreement", *sides)


def growth() -> None:
    """Alltoall on 2 and on 4 ranks."""
    bounds = replace(GROWTH, least_size=FROM_THE_LINK)
    sides = []
    for label, name, colour in SWITCHES:
        cases = session(name)
        function = registry.function_of(Case("", "", "mpich", "imb", "Alltoall", 4, 1))
        fewer, more = (
            cases["mpich", "Alltoall", ranks].case(
                f"{label}, {ranks} ranks",
                ranks=ranks,
                on_link=function.messages_on_link(ranks, 1)[1],
            )
            for ranks in (2, 4)
        )
        (grown,) = compared("growth", (fewer, more), bounds)[more.where]
        (shrunk,) = compared("monotony", (fewer, more), bounds)[fewer.where]
        curves = {f"4 ranks, {label}": more.curve, "2 ranks": fewer.curve}
        chart = lines(curves, [colour, OTHER], rate=False) + marks(more.curve, [grown], rate=False)
        sentences = [grown.why, f"monotony: {shrunk.why}"]
        sides.append(panel(chart, f"growth: {grown.level.value}", sentences))
    save("growth", *sides)


def floor() -> None:
    """Open MPI with default socket buffers beside MPICH, and with the least beside the default."""
    bounds = replace(FLOOR, least_size=FROM_THE_LINK)
    cases = session("healthy")
    mpich, intel = (cases[name, "Alltoall", 4] for name in ("mpich", "intelmpi"))
    usual, least = launches("gige-open-mpi"), launches("gige-open-mpi-least-buffers")
    sides = []
    for title, (own, own_name), (other, other_name), colour in (
        ("Alltoall", (mpich.launches, "MPICH"), (intel.launches, "Intel MPI"), PASSES),
        ("NetPIPE", (least, "least buffers"), (usual, "buffers as they come"), FAILS),
    ):
        cases_of = (
            CaseCurves.of_launches(
                name, several, place=("gige",), configuration=("", "gige", name, "")
            )
            for name, several in ((own_name, own), (other_name, other))
        )
        (one,) = compared("floor", cases_of, bounds)[own_name]
        curves = {f"{title}, {own_name}": median_curve(own), other_name: median_curve(other)}
        chart = lines(curves, [colour, OTHER], rate=False)
        sides.append(panel(chart, f"floor: {one.level.value}", [one.why]))
    save("floor", *sides)


def bars(rows: Iterable[Mapping[str, str | float]], title: str, colour: str) -> alt.Chart:
    """A bar for each row's ``name``, as long as its share ``value``."""
    rows = list(rows)
    most = max(LEAST_AXIS, *(float(row["value"]) for row in rows))
    return (
        alt.Chart(alt.Data(values=rows))
        .mark_bar(size=24, color=colour)
        .encode(
            alt.Y("name:N", title=None, axis=alt.Axis(labelLimit=200)),
            alt.X(
                "value:Q",
                title=title,
                axis=alt.Axis(format="%"),
                scale=alt.Scale(domain=[0, most]),
            ),
        )
    )


def retransmissions() -> None:
    """Retransmissions per node during NetPIPE over TCP."""
    sides = []
    for label, name, colour in SWITCHES:
        counted = session(name)["mpich", "tcp", 2].counted
        case = CaseCurves(label, None, None, (), None, counted=counted, rails=(RAIL,))
        shares = [
            sent_again(launch.counters, node)
            for launch in counted
            for node in launch.counters.sources
        ]
        rows = [{"name": one.node, "value": one.value} for one in shares]
        worst = max(found("retransmissions", case, label), key=lambda one: one.value or 0)
        chart = bars(rows, "segments sent again", colour)
        sides.append(panel(chart, f"retransmissions: {worst.level.value}", [worst.why]))
    save("counters", *sides)


def ways() -> None:
    """Losses in each direction between the two nodes."""
    sides = []
    for label, name, colour in SWITCHES:
        counted = session(name)["mpich", "tcp", 2].counted
        case = CaseCurves(label, None, None, (), None, counted=counted, rails=(RAIL,))
        (one,) = found("directions", case, label)
        rows = [
            {"name": f"from {node}", "value": share.value}
            for launch in counted
            for node in launch.counters.sources
            for share in [sent_again(launch.counters, node)]
        ]
        chart = bars(rows, "segments sent again", colour)
        sides.append(panel(chart, f"directions: {one.level.value}", [one.why]))
    save("directions", *sides)


def path() -> None:
    """Which interfaces carried the payload: the one under test, and the management network."""
    sides = []
    for label, job, colour in (("gige", "healthy", PASSES), ("set wrongly", "management", FAILS)):
        launch = _recorded_step(JOBS / f"counters-{job}")
        case = CaseCurves(label, None, None, (), None, counted=(launch,), rails=(RAIL,))
        (one,) = found("path", case, label)
        on_rails, elsewhere = sent_over(launch, (RAIL,))
        sent = {RAIL: on_rails, **elsewhere}
        rows = [{"name": name, "value": count / launch.payload} for name, count in sent.items()]
        chart = bars(rows, "sent, as a share of the payload", colour)
        sides.append(panel(chart, f"path: {one.level.value}", [one.why]))
    save("path", *sides)


def _recorded_step(folder: Path) -> CountedLaunch:
    """The launch of NetPIPE between nodes that a recorded job has."""
    errors = folder / "mpi-inter-node-oneway.1.err"
    text, nodes = errors.read_text(), ("gige-1", "gige-2")
    case = Case("", "", "mpich", "netpipe", "mpi", 2, 1)
    payload, _ = registry.of(case).payload(case, "", text, nodes)
    return CountedLaunch(1, counters(errors, text, set(nodes)), payload)


def draw() -> None:
    """Draw them all."""
    for plot in (
        *(launch_spread, guidelines, agreement, growth, floor),
        *(retransmissions, path, ways, early_rendezvous),
    ):
        plot()
