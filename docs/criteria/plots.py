"""Draw the plots of docs/criteria/ from the curves and sessions recorded beside it.

    . ci/activate
    python docs/criteria/plots.py

The criteria themselves judge what is drawn: marks, bounds and subtitles are their findings.
"""

from __future__ import annotations

from dataclasses import replace

import session_plots
from dips import planted
from drawing import (
    FAILS,
    HERE,
    OTHER,
    PASSES,
    SHADES,
    compared,
    found,
    launches,
    level_line,
    lines,
    marks,
    panel,
    recorded,
    save,
)

from netproof.benchmarks import netpipe
from netproof.criteria import Finding, Level
from netproof.criteria import score as scores
from netproof.criteria.interface import CaseCurves
from netproof.criteria.rate import MPI_LOSS
from netproof.criteria.settings import ConfirmSettings
from netproof.criteria.shape import JUMP
from netproof.measurement.case import median_curve
from netproof.measurement.landmarks import landmarks
from netproof.measurement.links import Link
from netproof.verdict import confirmations

GIGE_MB_S = Link(1000, 1500).line_rate_mb_s()
FROM_BURSTS_UP = 65536
"""Below this size the testbed's token buckets let messages pass above the line rate."""


def along(name: str, *, rate: bool = False) -> None:
    """A criterion on one curve: the healthy switch beside the sick one."""
    sides = []
    for label, case, colour in (
        ("gige", "gige-tcp-1", PASSES),
        ("sick gige", "sick-tcp-2", FAILS),
    ):
        curve = recorded(case)
        findings = found(name, [curve], f"{label}, NetPIPE TCP")
        chart = lines({label: curve}, [colour], rate=rate) + marks(curve, findings, rate=rate)
        level = max(findings, key=lambda f: ["pass", "shown", "warn", "fail"].index(f.level)).level
        sides.append(panel(chart, f"{name}: {level.value}", (f.why for f in findings)))
    save(name, *sides)


def envelope() -> None:
    """Each switch compared with the better of both at every size."""
    curves = {
        "gige": median_curve(launches("gige-tcp")),
        "sick gige": median_curve(launches("sick-tcp")),
    }
    cases = (CaseCurves.of_launches(label, [curve]) for label, curve in curves.items())
    by_label = compared("envelope", cases)
    sides = []
    for label, colour in zip(curves, (PASSES, FAILS), strict=True):
        own = by_label[label]
        others = {name: curve for name, curve in curves.items() if name != label}
        chart = lines({label: curves[label], **others}, [colour, OTHER], rate=False)
        chart += marks(curves[label], own, rate=False)
        worst = max(own, key=lambda f: f.value or 0)
        red = sum(f.level is Level.FAIL for f in own)
        title = f"envelope: {worst.level.value}, red sizes: {red}"
        sides.append(panel(chart, title, [worst.why]))
    save("envelope", *sides)


def score() -> None:
    """Both switches against fast-ethernet as the baseline."""
    base = launches("fast-ethernet-tcp")
    other = scores.ScoredSide(base, "fast-ethernet", scores.SCORE)
    sides = []
    for label, case, colour in (("gige", "gige-tcp", PASSES), ("sick gige", "sick-tcp", FAILS)):
        one = scores.score(scores.ScoredSide(launches(case), label, scores.SCORE), other)
        curves = {label: median_curve(launches(case)), "fast-ethernet": median_curve(base)}
        chart = lines(curves, [colour, OTHER], rate=False)
        sides.append(panel(chart, f"score: {one.value:.3g}", [f"{label}: {one.reason}"]))
    save("score", *sides)


def confirm() -> None:
    """The jump of the sick switch measured again there, and on the healthy one."""
    (flagged,) = found("jump", [recorded("sick-tcp-1")], "flagged on sick gige")
    sides = []
    for label, case, colour in (("gige", "gige-tcp", PASSES), ("sick gige", "sick-tcp", FAILS)):
        again = launches(f"{case}-again")
        said = confirmations.confirm(flagged, again, bounds=JUMP, settings=ConfirmSettings())
        curves = {f"launch {number}": curve for number, curve in enumerate(again, 1)}
        chart = lines(curves, SHADES[colour], rate=False)
        sides.append(panel(chart, f"measured again on {label}", [said.reason]))
    save("confirm", *sides)


def dip() -> None:
    """Three launches on the healthy switch, and the same with a dip of 40 % planted at 128 KiB."""
    sides, healthy = [], launches("gige-tcp")
    for label, several, colour in (
        ("gige", healthy, PASSES),
        ("gige, a dip planted", planted(healthy, 131072, 0.4), FAILS),
    ):
        dips = found("dip", several, label)
        curves = {f"launch {number}": curve for number, curve in enumerate(several, 1)}
        chart = lines(curves, SHADES[colour], rate=False)
        chart += marks(median_curve(several), dips, rate=False)
        level = max((one.level.value for one in dips), default="nothing found")
        said = (one.why for one in dips) if dips else ["no size is below what both let expect"]
        sides.append(panel(chart, f"dip: {level}", said))
    save("dip", *sides)


def line_rate() -> None:
    """TCP over the switch, and in a node where it should have gone over the switch."""
    sides = []
    for label, case, colour in (
        ("between nodes", "gige-tcp-1", PASSES),
        ("in a node", "in-a-node-tcp", FAILS),
    ):
        curve = recorded(case)
        (one,) = found("line rate", CaseCurves.of_launches(label, [curve], GIGE_MB_S), label)
        chart = lines({label: curve}, [colour], rate=True) + level_line(GIGE_MB_S)
        chart += marks(curve, [one], rate=True)
        sides.append(panel(chart, f"line rate: {one.level.value}", [one.why]))
    save("line-rate", *sides)


def mpi_loss() -> None:
    """Open MPI beside TCP, with default socket buffers, and with the least of the kernel."""
    settings = replace(MPI_LOSS, least_size=FROM_BURSTS_UP)
    tcp = median_curve(launches("gige-tcp"))
    sides = []
    for label, case, colour in (
        ("buffers as they come", "gige-open-mpi", PASSES),
        ("the least buffers", "gige-open-mpi-least-buffers", FAILS),
    ):
        mpi = median_curve(launches(case))
        own = CaseCurves.of_launches(
            label, [mpi], over_tcp=True, others={"tcp": CaseCurves.of_launches("TCP", [tcp])}
        )
        (peak,) = found("MPI loss at the peak", own, label, settings)
        chart = lines({f"Open MPI, {label}": mpi, "TCP": tcp}, [colour, OTHER], rate=True)
        chart += marks(mpi, [peak], rate=True)
        sides.append(panel(chart, f"MPI loss: {peak.level.value}", [peak.why]))
    save("mpi-loss", *sides)


def landmark() -> None:
    """The landmarks of a curve, its eager limit marked, and one without a limit."""
    sides = []
    loopback = HERE.parents[1] / "tests" / "data" / "curves" / "open-mpi-4.1-tcp-loopback.np"
    eager = (
        netpipe.read_file(loopback.read_text(), str(loopback), bidirectional=False)
        .tables[0]
        .curve()
    )
    for label, curve in (("Open MPI in a node", eager), ("gige, TCP", recorded("gige-tcp-1"))):
        known = landmarks(curve, None)
        limit = known.eager_limit
        sentences = [
            f"latency {known.latency_us:.1f} µs, half of the peak at {known.half_power_size} bytes"
        ]
        if limit:
            between = f"between {limit.size_below} and {limit.size_above} bytes"
            sentences.append(f"eager limit {between}, a step of {limit.step_us:.3g} µs")
        else:
            sentences.append(f"no eager limit: {known.why('eager_limit')}")
        chart = lines({label: curve}, [PASSES], rate=False)
        if limit:
            for size in (limit.size_below, limit.size_above):
                ring = Finding("landmarks", Level.SHOWN, label, "", size=size)
                chart += marks(curve, [ring], rate=False)
        sides.append(panel(chart, f"landmarks: {label}", sentences))
    save("landmarks", *sides)


def main() -> None:
    """Draw them all."""
    for name in ("inversion", "jump", "roughness"):
        along(name)
    along("dropout", rate=True)
    for plot in (envelope, score, confirm, dip, line_rate, mpi_loss, landmark):
        plot()
    session_plots.draw()


if __name__ == "__main__":
    main()
