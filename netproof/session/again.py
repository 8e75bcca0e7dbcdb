"""Measuring flagged sizes again: what to run, and what came of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from netproof.criteria import Finding, confirming
from netproof.criteria.confirming import ConfirmSettings
from netproof.errors import NetproofError
from netproof.measurement.case import Case
from netproof.measurement.curve import Curve
from netproof.measurement.disturbance import DisturbanceSettings, NodeLoad, disturbed, others_share
from netproof.session import job_files, node_facts
from netproof.session.job_files import Incomplete
from netproof.session.measured import Crash
from netproof.session.node_facts import ProvenanceError
from netproof.session.plan import SizeSweep


@dataclass(frozen=True)
class MeasuredAgain:
    """A case measured again around its flagged sizes.

    ``launches``: the curves that are complete; ``faults``: why others are not, a sentence each;
    ``nodes``: the nodes of the job ``jobid``, by its own word; ``loads``: of each launch, what
    else its nodes did, none where that was not recorded; ``made``: how often the benchmark was
    started for it, ``crashes`` among them.
    """

    case: Case
    launches: tuple[Curve, ...]
    faults: tuple[str, ...]
    nodes: tuple[str, ...]
    jobid: str
    loads: tuple[tuple[NodeLoad, ...], ...] = ()
    made: int = 0
    crashes: tuple[Crash, ...] = ()

    def __post_init__(self) -> None:
        if self.loads and len(self.loads) != len(self.launches):
            raise NetproofError(f"{len(self.launches)} launches, and loads of {len(self.loads)}")
        if len(self.crashes) > self.made:
            raise NetproofError(f"{len(self.crashes)} crashes of {self.made} starts")

    def undisturbed(self, settings: DisturbanceSettings) -> list[Curve]:
        """The launches that nothing disturbed."""
        loads = self.loads or ((),) * len(self.launches)
        return [
            curve
            for curve, load in zip(self.launches, loads, strict=True)
            if not disturbed(load, settings)
        ]


def netpipe_sweeps(
    findings: Sequence[Finding],
    settings: ConfirmSettings,
    closer: Sequence[Sequence[int]] = (),
) -> tuple[SizeSweep, ...]:
    """The calls of NetPIPE that measure what several flags of one case need, and closer sizes.

    NetPIPE takes no list of sizes. From a power of two on, with a perturbation of 1, it goes
    through its usual sizes and both neighbours of each; a size that this leaves out, as it does
    below 8 bytes, has a call of its own. ``closer``: the sizes of each region that is measured
    closer, a call without perturbation for each, and one for each size that this leaves out.
    """
    needs = [confirming.needed_sizes(finding, settings) for finding in findings]
    sweeps: list[SizeSweep] = []
    if needs:
        first = min(window[0] for window, _ in needs)
        last = max(window[-1] for window, _ in needs)
        sweeps.append(SizeSweep(_doubled(first), last, 1))
    for sizes in closer:
        sweep = SizeSweep(_doubled(min(sizes)), max(sizes), 0)
        # A step is named by where its sweep begins.
        if sweep.lower not in {one.lower for one in sweeps}:
            sweeps.append(sweep)
    covered = {size for sweep in sweeps for size in sweep.sizes()}
    alone = {size for sizes in closer for size in sizes} - covered
    for finding, (window, needed) in zip(findings, needs, strict=True):
        alone |= needed - covered
        wanted = min(settings.sizes, len(window))
        for size in confirming.dense_sizes(finding, settings):
            if len([s for s in covered | alone if s in window]) >= wanted:
                break
            alone |= {size} - covered
    return (*sweeps, *(SizeSweep(size, size, 0) for size in sorted(alone)))


def _doubled(size: int) -> int:
    """The largest power of two up to a size."""
    return 1 << (max(size, 1).bit_length() - 1)


def read(
    folder: Path,
    case: Case,
    parts: Sequence[tuple[str, tuple[int, ...]]],
    launches: Iterable[int],
    reader: Callable[[str], Curve],
    *,
    jobid: str,
) -> MeasuredAgain:
    """Read what a job measured again of a case.

    ``parts``: the subjects of the steps that make one launch together, each with its sizes;
    where two have a size, the first one counts. ``launches``: their numbers. ``folder``: of the
    job ``jobid``; one that does not say which nodes it had has measured nothing.
    """
    done: list[Curve] = []
    faults: list[str] = []
    loads: list[tuple[NodeLoad, ...]] = []
    made = 0
    crashed: list[Crash] = []
    nodes: tuple[str, ...] = ()
    try:
        nodes = node_facts.nodes_of_job(folder, jobid)
        recorded = job_files.records(folder)
    except Incomplete as error:
        return MeasuredAgain(case, (), error.reasons, nodes, jobid)
    except ProvenanceError as error:
        return MeasuredAgain(case, (), (str(error),), (), jobid)
    for number in launches:
        for step in (f"{subject}.{number}" for subject, _ in parts):
            before = job_files.crashes(folder, step, number, recorded)
            crashed += before
            made += len(before) + (step in recorded)
        try:
            several = [
                job_files.read_launch(
                    folder, f"{subject}.{number}", number, recorded, case, sizes, reader
                )
                for subject, sizes in parts
            ]
            done.append(_merged([one.curve for one in several]))
            loads.append(max((one.loads for one in several), key=others_share))
        except Incomplete as error:
            faults += error.reasons
        except (NetproofError, OSError) as error:
            faults.append(str(error))
    return MeasuredAgain(
        case, tuple(done), tuple(faults), nodes, jobid, tuple(loads), made, tuple(crashed)
    )


def _merged(curves: Sequence[Curve]) -> Curve:
    """All points of the curves, each as the first curve has it that has its size."""
    first = {size: (curve, at) for curve in reversed(curves) for at, size in enumerate(curve.sizes)}
    points = [first[size] for size in sorted(first)]

    def column(name: str) -> tuple[float, ...] | None:
        several = [(getattr(curve, name), at) for curve, at in points]
        known = tuple(values[at] for values, at in several if values is not None)
        return known if len(known) == len(several) else None

    return Curve(
        tuple(sorted(first)),
        tuple(curve.time_us[at] for curve, at in points),
        column("bandwidth_mb_s"),
        column("time_min_us"),
        column("time_avg_us"),
    )


def by_case(several: Iterable[MeasuredAgain]) -> dict[tuple[Any, ...], MeasuredAgain]:
    """Return repeat measurements by the case's key."""
    return {again.case.key(): again for again in several}
