"""Measuring flagged sizes again: what to run, what came of it, what it confirms (criterion 7)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from netproof import criteria, measured
from netproof.case import Case
from netproof.criteria import Confirmation, ConfirmSettings, Finding
from netproof.curve import Curve
from netproof.errors import NetproofError
from netproof.judgement import Ruling, Subject, bounds_of, flagged, rule
from netproof.measured import Incomplete, Record
from netproof.plan import Sweep
from netproof.shapes import insist


@dataclass(frozen=True)
class MeasuredAgain:
    """A case measured again around its flagged sizes.

    ``launches``: the curves that are complete; ``faults``: why others are not, a sentence each;
    ``nodes``: Slurm's names of the nodes of the job ``jobid``.
    """

    case: Case
    launches: tuple[Curve, ...]
    faults: tuple[str, ...]
    nodes: tuple[str, ...]
    jobid: str

    def as_json(self) -> dict[str, Any]:
        """Plain values for ``json``; sizes in bytes, times in µs, bandwidths in MB/s."""
        return dataclasses.asdict(self, dict_factory=measured.plain)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> MeasuredAgain:
        """The case of plain values that ``as_json`` gave; NetproofError where it is none."""
        insist(values, measured.AGAIN_SHAPE, "what was measured again cannot be read")
        try:
            return cls(
                Case(**values["case"]),
                tuple(measured.curve_from_json(curve) for curve in values["launches"]),
                tuple(values["faults"]),
                tuple(values["nodes"]),
                values["jobid"],
            )
        except (KeyError, TypeError) as error:
            raise NetproofError(f"what was measured again cannot be read: {error!r}") from error


def netpipe_sweeps(findings: Sequence[Finding], settings: ConfirmSettings) -> tuple[Sweep, ...]:
    """The calls of NetPIPE that measure what several flags of one case need.

    NetPIPE takes no list of sizes. From a power of two on, with a perturbation of 1, it goes
    through its usual sizes and both neighbours of each; a size that this leaves out, as it does
    below 8 bytes, has a call of its own.
    """
    needs = [criteria.needed_sizes(finding, settings) for finding in findings]
    first = min(window[0] for window, _ in needs)
    last = max(window[-1] for window, _ in needs)
    sweep = Sweep(1 << (max(first, 1).bit_length() - 1), last, 1)
    covered = set(sweep.sizes())
    alone: set[int] = set()
    for finding, (window, needed) in zip(findings, needs, strict=True):
        alone |= needed - covered
        wanted = min(settings.sizes, len(window))
        for size in criteria.dense_sizes(finding, settings):
            if len([s for s in covered | alone if s in window]) >= wanted:
                break
            alone |= {size} - covered
    return (sweep, *(Sweep(size, size, 0) for size in sorted(alone)))


def read(
    folder: Path,
    case: Case,
    parts: Sequence[tuple[str, tuple[int, ...]]],
    launches: int,
    reader: Callable[[str], Curve],
    *,
    nodes: Sequence[str],
    jobid: str,
) -> MeasuredAgain:
    """Read what a job measured again of a case.

    ``parts``: the subjects of the steps that make one launch together, each with its sizes;
    where two have a size, the first one counts.
    """
    done, faults = [], []
    try:
        recorded = measured.records(folder)
    except Incomplete as error:
        return MeasuredAgain(case, (), error.reasons, tuple(nodes), jobid)
    for number in range(1, launches + 1):
        try:
            done.append(_merged(_parts(folder, case, parts, number, recorded, reader)))
        except Incomplete as error:
            faults += error.reasons
        except (NetproofError, OSError) as error:
            faults.append(str(error))
    return MeasuredAgain(case, tuple(done), tuple(faults), tuple(nodes), jobid)


def _parts(
    folder: Path,
    case: Case,
    parts: Sequence[tuple[str, tuple[int, ...]]],
    number: int,
    recorded: Mapping[str, Record],
    reader: Callable[[str], Curve],
) -> list[Curve]:
    return [
        measured.read_launch(
            folder, f"{subject}.{number}", number, recorded, case, sizes, reader
        ).curve
        for subject, sizes in parts
    ]


def _merged(curves: Sequence[Curve]) -> Curve:
    """All points of the curves, each as the first curve has it that has its size."""
    points: dict[int, tuple[float | None, ...]] = {}
    for curve in curves:
        columns = [
            (None,) * len(curve.sizes) if column is None else column
            for column in (
                curve.time_us,
                curve.bandwidth_mb_s,
                curve.time_min_us,
                curve.time_avg_us,
            )
        ]
        for size, *values in zip(curve.sizes, *columns, strict=True):
            points.setdefault(size, tuple(values))
    sizes = tuple(sorted(points))
    merged = zip(*(points[size] for size in sizes), strict=True)
    return Curve(sizes, *(None if None in column else column for column in merged))


def confirmation(
    subject: Subject, finding: Finding, again: MeasuredAgain | None
) -> Confirmation | None:
    """What measuring again says of a flag; None where nothing was measured again for it."""
    if again is None:
        return None
    confirmed = criteria.confirm(
        finding,
        again.launches,
        bounds=bounds_of(finding.criterion, subject.settings),
        settings=subject.confirm_settings(),
    )
    where = f" on {', '.join(again.nodes)}, job {again.jobid}"
    why = "; ".join([confirmed.why + where, *again.faults])
    return dataclasses.replace(confirmed, why=why)


def rule_all(
    subject: Subject, findings: Sequence[Finding], again: MeasuredAgain | None
) -> tuple[Ruling, ...]:
    """What the verdict makes of the findings along a curve, with what was measured again."""
    flags = flagged(findings)
    return tuple(
        rule(subject, finding, confirmation(subject, finding, again) if finding in flags else None)
        for finding in findings
    )


def by_case(several: Iterable[MeasuredAgain]) -> dict[tuple, MeasuredAgain]:
    """What was measured again, by the case's key."""
    return {again.case.key(): again for again in several}
