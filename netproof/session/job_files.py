"""From the files that a job left to the launches of a case: complete, or every reason why not."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from netproof import codec
from netproof.benchmarks import netpipe, registry
from netproof.benchmarks.fixed import of_program
from netproof.benchmarks.outputs import text_of
from netproof.errors import NetproofError, ParseError, shortened
from netproof.intake import disk
from netproof.measurement import counters, disturbance, twin
from netproof.measurement.case import Case, Curve
from netproof.measurement.counters import Sent
from netproof.session import plan
from netproof.session.measured import Launch, Measured, line_rate_of_case
from netproof.site.partition import Partition
from netproof.site.slurm import unfold

T = TypeVar("T")

LAUNCHES_FILE = "launches.tsv"

JOB_ERRORS = "rfm_job.err"

LAUNCHES_HEADER = "step\tstart\tend\tstatus\tlimit_s"

TIMED_OUT_STATUS = (124, 137)
"""Exit statuses of ``timeout``: ended in time, or only by SIGKILL.

A rank that the kernel killed leaves 137 as well, so the step has to have lasted its limit too.
"""


JOB_FILE = "job.json"
"""File that the job's program leaves at its end."""


@dataclass(frozen=True)
class JobReport:
    """The end of a job's program: its own cost, and what it decided.

    ``in_steps_s``: of ``wall_s``, in launches; ``cpu_s``: of the program itself, without what it
    started; ``closed``: labels that were decided; ``faults``: why something was not; ``ended``: the
    reason if it did not come to its end.
    """

    python: str
    wall_s: float
    in_steps_s: float
    cpu_s: float
    closed: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    ended: str = ""

    def write(self, folder: Path) -> None:
        """Write it to the job's folder."""
        note(folder / JOB_FILE, self)

    @classmethod
    def read(cls, folder: Path) -> JobReport:
        """Return the report of a job's folder; NetproofError where it is damaged, and OSError."""
        return noted(folder / JOB_FILE, cls)


def note(path: Path, value: object) -> None:
    """Note a value in a file of the job's folder."""
    disk.replace(path, json.dumps(codec.encode(value)) + "\n")


def noted(path: Path, kind: type[T]) -> T:
    """Return what the job's program noted; NetproofError where it is damaged, and OSError."""
    return codec.decode(kind, disk.json_file(path), f"{path}: cannot be read")


class Incomplete(NetproofError):
    """A case that was not measured as asked; its text has each fault."""


@dataclass(frozen=True)
class StepRecord:
    """A job's note on one step: its place (from 1), start, seconds, exit status, limit."""

    order: int
    start: float
    wall_s: float
    status: int
    limit_s: int


def of_job(
    folder: Path, case: Case, partition: Partition, launches: int, *, mpi_over_tcp: bool
) -> Measured:
    """Read a case's launches from its job's folder; Incomplete where one is missing or wrong."""
    job = JobFolder(folder)
    asked = plan.sizes_asked(case, partition)
    line_rate = line_rate_of_case(vars(partition), case, mpi_over_tcp=mpi_over_tcp)
    subject = registry.of(case).subject(case)
    done: list[Launch] = []
    crashed: list[Launch] = []
    reasons: list[str] = []
    for number in range(1, launches + 1):
        step = f"{subject}.{number}"
        crashed += job.crashes(step)
        try:
            done.append(job.whole_launch(step, case, partition, asked, with_twin=True))
        except (NetproofError, OSError) as error:
            reasons.append(str(error))
    if reasons:
        raise Incomplete("; ".join(reasons))
    # Short bursts over an emulated link are no peak.
    peak_from = partition.line_rate_from_bytes if line_rate else 0
    return Measured(case, tuple(done), line_rate, peak_from, tuple(crashed), job.starts(case))


class JobFolder:
    """The launches that a job left in ``folder``; Incomplete without a whole record of its steps.

    The steps of a launch are called SUBJECT.NUMBER.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.recorded = folder, records(folder)

    def reader(self, case: Case) -> Callable[[str], Curve]:
        """Return what reads the curve that a step left, of this case only."""
        benchmark = registry.of(case)

        def read(step: str) -> Curve:
            path = self.folder / f"{step}.{benchmark.suffix}"
            return benchmark.read_launch(text_of(path), path, case)

        return read

    def whole_launch(
        self,
        step: str,
        case: Case,
        partition: Partition,
        sizes: tuple[int, ...],
        *,
        with_twin: bool,
    ) -> Launch:
        """Return a launch of a case's curve, with its twin's; Incomplete, ParseError, OSError."""
        launch = self.launch(step, case, sizes)
        inside, paced = case.ranks == case.ranks_per_node, len(launch.paces)
        if partition.pace and inside and paced != disturbance.HALVES:
            times = f"{step} reported its node's pace {paced} times"
            raise Incomplete(f"{self.folder / step}.err: {times} and not for both of its halves")
        return self._with_twin(launch, step, case, partition) if with_twin else launch

    def _with_twin(self, launch: Launch, step: str, case: Case, partition: Partition) -> Launch:
        """Add the twin's launch, if one had to be made; Incomplete, ParseError, OSError."""
        if not plan.has_twin(partition, case.ranks_per_node):
            return launch
        name = plan.twin_name(step)
        reason = self.failure(name, ", over the healthy twin,")
        if reason:
            raise Incomplete(reason)
        over_tcp = case
        if not registry.of(case).by_protocol:
            direction = registry.function_of(case).direction
            where = (case.system, case.partition, case.environment)
            over_tcp = Case(*where, netpipe.BENCHMARK.name, "tcp", 2, 1, "inter-node", direction)
        curve = self.reader(over_tcp)(name)
        faults = _faults(name, curve, plan.twin_sweep(partition).sizes())
        if faults:
            raise Incomplete("; ".join(faults))
        if over_tcp is not case:
            function = registry.function_of(case)
            messages = 1.0
            if function.rated:
                messages, _ = function.messages_on_link(case.ranks, case.ranks_per_node)
            curve = twin.alike(curve, launch.curve, messages)
        return dataclasses.replace(launch, twin=curve)

    def crashes(self, step: str) -> tuple[Launch, ...]:
        """Return the attempts at a launch that crashed before it: files with ~1, ~2, …"""
        found: list[Launch] = []
        while entry := self.recorded.get(name := f"{step}~{len(found) + 1}"):
            errors, output = (self.folder / f"{name}.{kind}" for kind in ("err", "out"))
            words = " | ".join(said_at_end(errors) or last_printed(output))
            found.append(
                Launch(
                    *(_number(step), entry.order, entry.start, entry.wall_s, (), ()),
                    counters=counters.of_crash(errors),
                    attempt=len(found) + 1,
                    status=entry.status,
                    died_on=died_first(errors),
                    said=words,
                )
            )
        return tuple(found)

    def launch(
        self,
        step: str,
        case: Case,
        asked: tuple[int, ...],
        read: Callable[[str], tuple[tuple[Curve, ...], int | None]] | None = None,
    ) -> Launch:
        """Return one step as a launch: it ended well, where it should, with all sizes.

        ``asked``: the sizes in bytes that it has to have, and no others; ``read``: of
        several curves and the bytes that had to be sent between nodes, by default the case's
        ``reader``. Raise Incomplete with every reason, ParseError and OSError.
        """
        entry, errors = self.recorded.get(step), self.folder / f"{step}.err"
        before = len(self.crashes(step))
        tried = f", in the last of {before + 1} attempts of which each crashed" if before else ""
        reason = self.failure(step, tried=tried)
        if reason or entry is None:
            raise Incomplete(reason)
        curves, payload = read(step) if read else ((self.reader(case)(step),), None)
        faults = [fault for curve in curves for fault in _faults(step, curve, asked)]
        said = errors.read_text(errors="replace")
        ranks, used = rank_uses(errors, said)
        if len(ranks) != case.ranks:
            faults.append(f"{errors}: {len(ranks)} of {case.ranks} ranks reported their end")
        nodes, wanted = len({*ranks}), case.ranks // case.ranks_per_node
        if nodes != wanted:
            faults.append(f"{errors}: {step} ran on {nodes} nodes and not on {wanted}")
        if faults:
            raise Incomplete("; ".join(faults))
        counted = counters.counters(errors, said, {*ranks})
        sent: dict[str, Any] = {"payload": payload}
        if payload is None:
            try:
                sent = {"exchanged": self._payload(step, case)}
            except (NetproofError, OSError) as error:
                # The curve is whole without it.
                sent = {"exchanged": str(error)}
            if counted:
                between = self._payload(step, case, ranks)
                sent["payload"] = between if isinstance(between, str) else between[0]
        return Launch(
            _number(step),
            entry.order,
            entry.start,
            entry.wall_s,
            ranks,
            curves,
            disturbance.loads(errors, said, cpu_by_node(said)),
            used,
            counters=counted,
            paces=disturbance.paces(errors, said),
            **sent,
        )

    def _payload(self, step: str, case: Case, nodes: Sequence[str] = ()) -> Sent:
        """Return what a step had to send between its nodes; without, its ranks."""
        printed, said = (text_of(self.folder / f"{step}.{kind}") for kind in ("out", "err"))
        return registry.of(case).payload(case, printed, said, nodes)

    def starts(self, case: Case) -> tuple[Launch | str, ...]:
        """Return the launches on the ranks of a case that only start and end."""
        stem = f"{plan.start_subject(case)}."
        found: list[Launch | str] = []
        for step, entry in self.recorded.items():
            errors = self.folder / f"{step}.err"
            if not step.startswith(stem) or "~" in step:
                continue
            if entry.status != 0:
                found.append(f"{errors}: {step} ended with status {entry.status}")
                continue
            try:
                when = _number(step), entry.order, entry.start, entry.wall_s
                one = reported(errors, case.ranks)
                found.append(Launch(*when, curves=(), **one))
            except (NetproofError, OSError) as error:
                found.append(str(error))
        return tuple(found)

    def failure(self, step: str, what: str = "", tried: str = "") -> str:
        """Return why a step did not end well, or ''; ``what``, ``tried``: behind its name."""
        entry, errors = self.recorded.get(step), self.folder / f"{step}.err"
        if entry is None:
            why, path = _ended(self.folder), self.folder / LAUNCHES_FILE
            return f"{path}: {step}{what} did not run; the job ended before it{why}"
        if entry.status == 0:
            return ""
        # NetPIPE reports its troubles on its standard output.
        output = self.folder / f"{step}.out"
        printed = [f"; {output.name} ends: {line}" for line in last_printed(output)]
        words = "".join((last_words(errors), *printed))
        if entry.status in TIMED_OUT_STATUS and entry.wall_s >= entry.limit_s:
            limit = f"its limit of {entry.limit_s} s (the partition's step_limit_s)"
            return f"{errors}: {step}{what} was ended at {limit}{words}"
        return f"{errors}: {step}{what} ended with status {entry.status}{tried}{words}"


def _number(step: str) -> int:
    """Return the number of a launch by the name of its step."""
    return int(step.rpartition(".")[2])


def _ended(folder: Path) -> str:
    """Return why a job ended early, by its program's report, or else by its last words."""
    with contextlib.suppress(NetproofError, OSError):
        if reason := JobReport.read(folder).ended:
            return f": {reason}"
    return last_words(folder / JOB_ERRORS) or last_words(folder.parent / JOB_ERRORS)


def _faults(step: str, curve: Curve, asked: tuple[int, ...]) -> list[str]:
    faults = []
    missing = sorted(set(asked) - set(curve.sizes))
    extra = sorted(set(curve.sizes) - set(asked))
    if missing:
        faults.append(f"{step}: sizes {_listed(missing)} bytes were asked for and are missing")
    if extra:
        faults.append(f"{step}: sizes {_listed(extra)} bytes were not asked for")
    if curve.bandwidth_mb_s is not None:
        faults += [
            f"{step}: a bandwidth of 0 at {size} bytes"
            for size, bandwidth in zip(curve.sizes, curve.bandwidth_mb_s, strict=True)
            if size > 0 and bandwidth == 0
        ]
    return faults


def _listed(sizes: Sequence[int]) -> str:
    shown = ", ".join(map(str, sizes[:5]))
    return shown if len(sizes) <= 5 else f"{shown} and {len(sizes) - 5} more"


def records(folder: Path) -> dict[str, StepRecord]:
    """The steps of a job by name, from ``launches.tsv``; Incomplete where it is damaged."""
    path = folder / LAUNCHES_FILE
    try:
        lines = path.read_text().splitlines()
    except OSError as error:
        raise Incomplete(f"{path}: the job left no record of its launches: {error}") from error
    if not lines or lines[0] != LAUNCHES_HEADER:
        raise Incomplete(f"{path}:1: the header {LAUNCHES_HEADER!r} is missing")
    recorded = {}
    for number, line in enumerate(lines[1:], 2):
        try:
            step, start, end, status, limit = line.split("\t")
            recorded[step] = StepRecord(
                number - 1, float(start), float(end) - float(start), int(status), int(limit)
            )
        except ValueError as error:
            raise Incomplete(
                f"{path}:{number}: {shortened(repr(line))} is no launch: {shortened(str(error))}"
            ) from error
    return recorded


_RANK_LINE = re.compile(
    r"netproof rank (\d+) on (\S+): ([\d.]+) s wall, ([\d.]+) s user, ([\d.]+) s system"
)

_RECORD = re.compile(r"netproof (rank \d+ on|scheduled|load on|counters on|pace on) ")
"""Beginnings of what the job's own scripts say on a step's standard error."""

_DIED = re.compile(r"srun: error: (\S+): tasks? [\d,-]+: ")
"""srun on ranks that ended badly, and the node."""

_ENDING = "_step_signal: Terminating"
"""Message of srun when it begins to end the other ranks of a step."""

_AFTERMATH = re.compile(
    rf"{_ENDING}|\*\*\* STEP \S+ ON \S+ CANCELLED"
    r"|task \S+: Terminated|Force Terminated"
)
"""Messages of Slurm while it ends the other ranks of a step, which are not the cause."""


def reported(errors: Path, count: int) -> dict[str, Any]:
    """Return where the ranks of a step ran and what they used, and the load of their nodes.

    ``errors``: its standard error; ``count``: how many ranks it has. Raises NetproofError where
    not all of them reported their end, and OSError.
    """
    said = errors.read_text(errors="replace")
    ranks, used = rank_uses(errors, said)
    if len(ranks) != count:
        raise NetproofError(f"{errors}: {len(ranks)} of {count} ranks reported their end")
    loads = disturbance.loads(errors, said, cpu_by_node(said))
    return {"ranks": ranks, "used": used, "loads": loads}


def last_words(errors: Path) -> str:
    """Return the end of a sentence on a step that went wrong."""
    said = said_at_end(errors)
    return f"; it said: {' | '.join(said)}" if said else ""


def died_first(errors: Path) -> tuple[str, ...]:
    """The nodes on which ranks ended badly before Slurm began to end the others."""
    try:
        return first_to_die(errors.read_text(errors="replace").splitlines())
    except OSError:
        return ()


def first_to_die(lines: Sequence[str]) -> tuple[str, ...]:
    """Return the nodes on which ranks ended badly first, by the messages of a step."""
    began = next((place for place, line in enumerate(lines) if _ENDING in line), len(lines))
    for several in (lines[:began], lines):
        nodes: list[str] = []
        for line in several:
            found = None if _AFTERMATH.search(line) else _DIED.search(line)
            with contextlib.suppress(NetproofError):
                nodes += unfold(found[1]) if found else ()
        if nodes:
            return tuple(dict.fromkeys(nodes))
    return ()


def said_at_end(errors: Path) -> list[str]:
    """Return the last messages of a step, without Slurm's on ending the other ranks."""
    try:
        lines = [line for line in errors.read_text(errors="replace").splitlines() if line.strip()]
    except OSError:
        return []
    said = [line.strip()[:200] for line in lines if not _RECORD.search(line)]
    said = [line for line in said if not _AFTERMATH.search(line)] or said
    if len(said) > 5:
        # An error stack has its cause at the end, and srun then names the node.
        said = [*said[:2], "…", *said[-3:]]
    return said


def last_printed(output: Path) -> list[str]:
    """The last line that a program printed, if any."""
    try:
        printed, _ = of_program(output.read_text(errors="replace"))
    except OSError:
        return []
    lines = [line for line in printed.splitlines() if line.strip()]
    return [line.strip()[:200] for line in lines[-1:]]


def rank_uses(
    errors: Path, said: str
) -> tuple[tuple[str, ...], dict[str, tuple[float | str, ...]]]:
    """Return each rank's node and use from a step's standard error, as a ``Launch`` has them.

    ParseError where a watched rank lacks.
    """
    scheduled = disturbance.scheduled(errors, said)
    found = sorted(_RANK_LINE.findall(said), key=lambda one: int(one[0]))
    if scheduled and sorted(scheduled) != [int(rank) for rank, *_ in found]:
        raise ParseError(
            str(errors), 0, "", "the ranks that reported their end are not those that were watched"
        )
    used = [
        {
            "wall_s": float(wall),
            "cpu_s": float(user) + float(system),
            "system_s": float(system),
            **scheduled.get(int(rank), {}),
        }
        for rank, _, wall, user, system in found
    ]
    columns = {name: tuple(one[name] for one in used) for name in (used[0] if used else ())}
    return tuple(node for _, node, *_ in found), columns


def cpu_by_node(said: str) -> dict[str, tuple[float, float]]:
    """User and system CPU seconds of the ranks by node."""
    taken: dict[str, tuple[float, float]] = {}
    for found in _RANK_LINE.finditer(said):
        user_s, system_s = taken.get(found[2], (0.0, 0.0))
        taken[found[2]] = (user_s + float(found[4]), system_s + float(found[5]))
    return taken
