"""From a job's files to the curves of a case: complete, or failed with every reason."""

from __future__ import annotations

import dataclasses
import itertools
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from netproof.benchmarks import imb, netpipe
from netproof.benchmarks.catalogue import ImbFunction, imb_function, imb_sizes, link_factor
from netproof.benchmarks.outputs import text_of
from netproof.errors import NetproofError, ParseError, shortened
from netproof.intake.shapes import NUMBER, TEXT, WHOLE, YES_OR_NO, Each, Keys, OrNone, RowOf, insist
from netproof.measurement import disturbance, twin, units
from netproof.measurement.case import Case
from netproof.measurement.curve import Curve
from netproof.measurement.disturbance import NodeLoad, Scheduled
from netproof.measurement.landmarks import (
    ASYMPTOTIC,
    LANDMARK_NAMES,
    EagerLimit,
    Landmarks,
    LandmarkSettings,
    landmarks,
)
from netproof.measurement.launches import median_curve, spread
from netproof.session import plan
from netproof.site.site import Partition

LAUNCHES_FILE = "launches.tsv"
JOB_ERRORS = "rfm_job.err"
LAUNCHES_HEADER = "step\tstart\tend\tstatus\tlimit_s"
TIMED_OUT_STATUS = (124, 137)
"""Exit statuses of ``timeout``: ended in time, or only by SIGKILL.

A rank that the kernel killed leaves 137 as well, so the step has to have lasted its limit too.
"""

RANGE = ("time_min_us", "time_avg_us")
"""A curve's columns that the report has only of benchmarks which print them."""

NOT_ALWAYS = (*RANGE, "scheduled", "loads", "twin")
"""And other fields that are left out where nothing is known."""

_NUMBERS = Each(NUMBER)
_REASONS = Each(RowOf((TEXT, TEXT)))
CURVE_SHAPE = Keys(
    {"sizes": Each(WHOLE), "time_us": _NUMBERS, "bandwidth_mb_s": OrNone(_NUMBERS)},
    dict.fromkeys(RANGE, _NUMBERS),
)
CASE_SHAPE = Keys(
    {
        **dict.fromkeys(("system", "partition", "environment", "benchmark", "function"), TEXT),
        **dict.fromkeys(("ranks", "ranks_per_node"), WHOLE),
        **dict.fromkeys(("path", "direction"), TEXT),
    }
)
_SCHEDULED_SHAPE = Keys(
    {
        **dict.fromkeys(("voluntary", "involuntary"), OrNone(WHOLE)),
        "waited_s": OrNone(NUMBER),
        "absent": _REASONS,
    }
)
_LOAD_SHAPE = Keys(
    {
        **dict.fromkeys((field.name for field in dataclasses.fields(NodeLoad)), OrNone(NUMBER)),
        "node": TEXT,
        "machine": OrNone(TEXT),
        "cpus": OrNone(WHOLE),
        "absent": _REASONS,
    }
)
_RANK_SHAPE = Keys(
    {"rank": WHOLE, "node": TEXT, "wall_s": NUMBER, "cpu_s": NUMBER},
    {"scheduled": OrNone(_SCHEDULED_SHAPE)},
)
LAUNCH_SHAPE = Keys(
    {
        **dict.fromkeys(("number", "order"), WHOLE),
        **dict.fromkeys(("start", "wall_s"), NUMBER),
        "ranks": Each(_RANK_SHAPE),
        "curve": CURVE_SHAPE,
    },
    {"loads": Each(_LOAD_SHAPE), "further": YES_OR_NO, "twin": CURVE_SHAPE},
)
CRASH_SHAPE = Keys(
    {
        **dict.fromkeys(("launch", "attempt", "order", "status"), WHOLE),
        "nodes": Each(TEXT),
        "said": TEXT,
    }
)
_SIZES = ("peak_size", "half_power_size")
_EAGER_SHAPE = Keys(
    {
        field.name: OrNone(NUMBER) if field.name.startswith("rate") else NUMBER
        for field in dataclasses.fields(EagerLimit)
    }
)
_LANDMARKS = {
    **{name: OrNone(WHOLE if name in _SIZES else NUMBER) for name in LANDMARK_NAMES},
    "eager_limit": OrNone(_EAGER_SHAPE),
    "undefined": _REASONS,
    "intervals": Each(RowOf((TEXT, NUMBER, OrNone(NUMBER)))),
}
_SINCE_FORMAT_3 = ("asymptotic_mb_s", "half_performance_bytes", "intervals")
"""Landmarks' keys that earlier formats do not have; see ``with_landmarks``."""
_WITH_TWIN = {name: _LANDMARKS.pop(name) for name in twin.NAMES}
"""And those that a session has only from when twins were measured on."""
_LANDMARKS_SHAPE = Keys(
    {name: shape for name, shape in _LANDMARKS.items() if name not in _SINCE_FORMAT_3},
    {**{name: _LANDMARKS[name] for name in _SINCE_FORMAT_3}, **_WITH_TWIN},
)
SHAPE = Keys(
    {
        "case": CASE_SHAPE,
        "launches": Each(LAUNCH_SHAPE),
        "curve": CURVE_SHAPE,
        "mad_us": _NUMBERS,
        "line_rate_mb_s": OrNone(NUMBER),
        "landmarks": _LANDMARKS_SHAPE,
    },
    {
        "peak_from": WHOLE,
        "crashes": Each(CRASH_SHAPE),
        "partition_extras": Keys(others={"line_rate_from_bytes": WHOLE}),
    },
)
"""Of what kind each value of ``Measured.as_json`` is, of this format and of those before."""
AGAIN_SHAPE = Keys(
    {
        "case": CASE_SHAPE,
        "launches": Each(CURVE_SHAPE),
        "faults": Each(TEXT),
        "nodes": Each(TEXT),
        "jobid": OrNone(TEXT),
    },
    {"loads": Each(Each(_LOAD_SHAPE)), "made": WHOLE, "crashes": Each(CRASH_SHAPE)},
)
"""And each of ``again.MeasuredAgain.as_json``."""

_RANK_LINE = re.compile(
    r"netproof rank (\d+) on (\S+): ([\d.]+) s wall, ([\d.]+) s user, ([\d.]+) s system"
)

_RECORD = re.compile(r"netproof (rank \d+ on|scheduled|load on) ")
"""Beginnings of what the job's own scripts say on a step's standard error."""

_DIED = re.compile(r"srun: error: (\S+): tasks? [\d,-]+: ")
"""srun on ranks that ended badly, and the node."""

_AFTERMATH = re.compile(
    r"_step_signal: Terminating|\*\*\* STEP \S+ ON \S+ CANCELLED"
    r"|task \S+: Terminated|Force Terminated"
)
"""What Slurm says while it ends the other ranks of a step, which are not the cause."""


class Incomplete(NetproofError):
    """A case that was not measured as asked; ``reasons`` has a sentence for each fault."""

    def __init__(self, reasons: Sequence[str]) -> None:
        self.reasons = tuple(reasons)
        super().__init__("; ".join(self.reasons))


@dataclass(frozen=True)
class RankUse:
    """Where a rank ran and the CPU seconds it took, from its own report.

    ``scheduled``: its context switches, None of sessions before they were recorded.
    """

    rank: int
    node: str
    wall_s: float
    cpu_s: float
    scheduled: Scheduled | None = None

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> RankUse:
        """The rank of plain values with its fields' names; TypeError where one is missing."""
        told = values.get("scheduled")
        scheduled = None if told is None else Scheduled.from_json(told)
        return cls(**{**values, "scheduled": scheduled})


@dataclass(frozen=True)
class Launch:
    """One launch as it went: its place in the job's order (from 1), when, where, and its curve.

    ``start`` in seconds since the epoch, ``wall_s`` with starting and ending the job step.
    ``loads``: what else its nodes did, none of sessions before that was recorded; ``further``:
    made since the first launches left a judged quantity undecided; ``twin``: the largest sizes over
    the link's healthy twin, next to the launch, where the partition has one.
    """

    number: int
    order: int
    start: float
    wall_s: float
    ranks: tuple[RankUse, ...]
    curve: Curve
    loads: tuple[NodeLoad, ...] = ()
    further: bool = False
    twin: Curve | None = None

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Launch:
        """The launch of plain values with its fields' names; KeyError where one is missing."""
        return cls(
            values["number"],
            values["order"],
            values["start"],
            values["wall_s"],
            tuple(map(RankUse.from_json, values["ranks"])),
            curve_from_json(values["curve"]),
            tuple(map(NodeLoad.from_json, values.get("loads", ()))),
            values.get("further", False),
            curve_from_json(values["twin"]) if "twin" in values else None,
        )

    def nodes(self) -> tuple[str, ...]:
        """The nodes it ran on, in rank order, each once."""
        return tuple(dict.fromkeys(use.node for use in self.ranks))


@dataclass(frozen=True)
class Crash:
    """An attempt at a launch that died before its first figure, and after which came another.

    ``launch``, ``attempt``: which, from 1; ``order``: its place in the job's order; ``status``:
    exit status; ``nodes``: on which ranks died first, as srun names them; ``said``: last words.
    """

    launch: int
    attempt: int
    order: int
    status: int
    nodes: tuple[str, ...]
    said: str

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Crash:
        """The crash of plain values with its fields' names; TypeError where one is missing."""
        return cls(**{**values, "nodes": tuple(values["nodes"])})

    def __str__(self) -> str:
        """As it stands in a sentence."""
        on = f" on {', '.join(self.nodes)}" if self.nodes else ""
        said = f"; it said: {self.said}" if self.said else ""
        return (
            f"launch {self.launch} crashed{on} before its first figure (attempt {self.attempt},"
            f" status {self.status}) and was launched again{said}"
        )


@dataclass(frozen=True)
class Measured:
    """A complete case: its launches, their median and spread, and the landmarks.

    ``mad_us``: per-size MAD of the launches' times in µs; ``line_rate_mb_s``: the most that the
    benchmark's bandwidth can be, both ways where it counts both, None where the messages cross no
    link; ``peak_from``: the least message in bytes that can be the peak; ``crashes``: attempts at
    the launches that crashed.
    """

    case: Case
    launches: tuple[Launch, ...]
    curve: Curve
    mad_us: tuple[float, ...]
    line_rate_mb_s: float | None
    landmarks: Landmarks
    peak_from: int = 0
    crashes: tuple[Crash, ...] = ()

    def with_launches(self, launches: Sequence[Launch], crashes: Sequence[Crash] = ()) -> Measured:
        """The same case of these launches, which have its sizes: NetproofError where they do not.

        Launches are numbered anew, from 1. ``crashes``: those that are to be added.
        """
        numbered = tuple(
            dataclasses.replace(launch, number=number) for number, launch in enumerate(launches, 1)
        )
        crashed = (*self.crashes, *crashes)
        return made(self.case, numbered, self.line_rate_mb_s, self.peak_from, crashed)

    def first(self) -> Measured:
        """The case without the launches that were made since these left something undecided."""
        first = [launch for launch in self.launches if not launch.further]
        return self if len(first) == len(self.launches) else self.with_launches(first)

    def as_json(self) -> dict[str, Any]:
        """Plain values for ``json``; sizes in bytes, times in µs, bandwidths in MB/s."""
        return dataclasses.asdict(self, dict_factory=plain)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Measured:
        """The case of plain values that ``as_json`` gave; other keys beside them are left.

        Raises NetproofError where something is missing or is no curve.
        """
        insist(values, SHAPE, "what was measured cannot be read")
        try:
            return cls(
                Case(**values["case"]),
                tuple(Launch.from_json(launch) for launch in values["launches"]),
                curve_from_json(values["curve"]),
                tuple(values["mad_us"]),
                values["line_rate_mb_s"],
                Landmarks.from_json(with_landmarks(values)["landmarks"]),
                _peak_from(values),
                # Sessions of before format 3 launched nothing again.
                tuple(Crash.from_json(crash) for crash in values.get("crashes", ())),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise NetproofError(f"what was measured cannot be read: {error!r}") from error


def with_landmarks(values: dict[str, Any]) -> dict[str, Any]:
    """The plain values of a case, with the landmarks that its format had not yet.

    Formats before 3 have no r∞, n½ and intervals, and their share of the line rate is the peak's:
    they come of the curve, and of the launches where they are there. KeyError and TypeError where
    something is missing, NetproofError where it is no curve. Nor had any format a twin at first.
    """
    stored = values["landmarks"]
    if "twin_share" not in stored:
        missing = [[name, twin.WITHOUT] for name in twin.NAMES]
        undefined = [*stored["undefined"], *missing]
        stored = {**stored, **dict.fromkeys(twin.NAMES), "undefined": undefined}
        values = {**values, "landmarks": stored}
    if "intervals" in stored or values.get("format", 0) >= 3:
        insist(stored, Keys(_LANDMARKS, _WITH_TWIN), "landmarks")
        return values
    line_rate = values["line_rate_mb_s"]
    found = landmarks(
        curve_from_json(values["curve"]),
        line_rate,
        LandmarkSettings(peak_from=_peak_from(values)),
        launches=[curve_from_json(launch["curve"]) for launch in values.get("launches", ())],
    )
    undefined = [list(one) for one in stored["undefined"] if one[0] not in ASYMPTOTIC]
    undefined += [list(one) for one in found.undefined if one[0] in ASYMPTOTIC]
    added = {
        **{name: getattr(found, name) for name in ASYMPTOTIC},
        "undefined": undefined,
        "intervals": list(map(list, found.intervals)),
    }
    return {**values, "landmarks": {**stored, **added}}


SAME = 1e-9
"""Relative difference up to which a figure that is computed again is the one that was stored."""


def insist_on_whole(case: Case, values: Mapping[str, Any]) -> Measured:
    """What was measured of a case, from plain values, all of which is computed again.

    Raises NetproofError, naming the case, where something is missing or is not what comes of the
    rest: it is of another case, has no launches, or they are numbered otherwise; its curve and
    spread are not those of its launches; its line rate is not that of the link, its landmarks not
    those of its curves.
    """
    try:
        measured = Measured.from_json(dict(values))
        if measured.case != case:
            raise NetproofError(f"what was measured is of {measured.case}")
        numbers = [launch.number for launch in measured.launches]
        if numbers != list(range(1, len(numbers) + 1)):
            raise NetproofError(f"its launches are numbered {numbers}")
        again = made(
            case, measured.launches, measured.line_rate_mb_s, measured.peak_from, measured.crashes
        )
        if (again.curve, again.mad_us) != (measured.curve, measured.mad_us):
            raise NetproofError("its curve is not the median of its launches")
        _insist_on_link(measured, values)
        for name in LANDMARK_NAMES:
            stored, found = getattr(measured.landmarks, name), getattr(again.landmarks, name)
            if not _same(stored, found):
                raise NetproofError(f"its {name} is {stored}, and its curves have {found}")
            if not _same(measured.landmarks.interval(name), again.landmarks.interval(name)):
                raise NetproofError(f"the interval of its {name} is not that of its launches")
    except NetproofError as error:
        raise NetproofError(f"{case}: {error}") from error
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise NetproofError(f"{case}: what was measured cannot be read: {error!r}") from error
    return measured


def _insist_on_link(measured: Measured, values: Mapping[str, Any]) -> None:
    """The line rate is that of the partition's link, as far as the report has it."""
    extras, environment = values["partition_extras"], values["environment_extras"]
    stored, case = measured.line_rate_mb_s, measured.case
    # Reports of before an MPI could do without TCP do not say so.
    over_tcp = environment.get("mpi_over_tcp", stored is not None)
    found = _line_rate(extras["link_mbit_s"], extras["mtu"], case, mpi_over_tcp=over_tcp)
    if not _same(stored, found):
        raise NetproofError(f"its line rate is {stored} MB/s, and its link has {found}")
    from_bytes = extras["line_rate_from_bytes"] if stored else 0
    if measured.peak_from != from_bytes:
        raise NetproofError(
            f"its peak is looked for from {measured.peak_from} bytes, and not from {from_bytes}"
        )


def _same(stored: Any, found: Any) -> bool:
    """Whether a figure, or several, are what was computed again, but for rounding."""
    if isinstance(stored, EagerLimit) and isinstance(found, EagerLimit):
        return _same(dataclasses.astuple(stored), dataclasses.astuple(found))
    if isinstance(stored, tuple) and isinstance(found, tuple):
        return len(stored) == len(found) and all(map(_same, stored, found))
    if isinstance(stored, int | float) and isinstance(found, int | float):
        return math.isclose(stored, found, rel_tol=SAME)
    return stored is None and found is None


def plain(fields: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """A dataclass's fields for ``json``; those of ``NOT_ALWAYS`` only where it has them."""
    return {
        name: value
        for name, value in fields
        if name not in NOT_ALWAYS or (value is not None and value != ())
    }


def curve_from_json(values: dict[str, Any]) -> Curve:
    """The curve of plain values with its fields' names; KeyError where one is missing."""
    bandwidth = values["bandwidth_mb_s"]
    return Curve(
        tuple(values["sizes"]),
        tuple(values["time_us"]),
        None if bandwidth is None else tuple(bandwidth),
        **{name: tuple(values[name]) for name in RANGE if name in values},
    )


@dataclass(frozen=True)
class StepRecord:
    """What a job noted of one step: its place (from 1), start, seconds, exit status, limit."""

    order: int
    start: float
    wall_s: float
    status: int
    limit_s: int


def line_rate_mb_s(partition: Partition, case: Case, *, mpi_over_tcp: bool) -> float | None:
    """The most that a case's bandwidth can be in MB/s.

    None inside a node, where there is no link, and for an MPI that does not go over TCP.
    """
    return _line_rate(partition.link_mbit_s, partition.mtu, case, mpi_over_tcp=mpi_over_tcp)


def _line_rate(link_mbit_s: float, mtu: int, case: Case, *, mpi_over_tcp: bool) -> float | None:
    if case.path == "inside" or not (mpi_over_tcp or case.function == "tcp"):
        return None
    factor = 1.0
    if case.benchmark == "imb":
        factor = link_factor(imb_function(case.function), case.ranks, case.ranks_per_node)
    return factor * units.line_rate_mb_s(link_mbit_s, mtu)


def imb_reader(folder: Path, case: Case) -> Callable[[str], Curve]:
    """Reads the curve that a step of an IMB function left in ``folder``, of this case only."""

    def read(step: str) -> Curve:
        path = folder / f"{step}.out"
        output = imb.read(text_of(path), str(path))
        if len(output.tables) != 1:
            found = ", ".join(f"{table.function} on {table.ranks}" for table in output.tables)
            raise ParseError(
                str(path), 0, "", f"one table was asked for, and there are: {found or 'none'}"
            )
        table = output.tables[0]
        if (table.function, table.ranks) != (case.function, case.ranks):
            raise ParseError(
                str(path),
                table.first_line,
                f"{table.function} on {table.ranks} ranks",
                f"{case.function} on {case.ranks} ranks was asked for",
            )
        return table.curve()

    return read


def netpipe_reader(folder: Path, case: Case) -> Callable[[str], Curve]:
    """Reads the curve that a step of a NetPIPE variant left in ``folder``."""
    bidirectional = case.direction == "bidirectional"

    def read(step: str) -> Curve:
        path = folder / f"{step}.np"
        return netpipe.read_file(text_of(path), str(path), bidirectional=bidirectional).curve()

    return read


def imb_case(
    folder: Path,
    case: Case,
    function: ImbFunction,
    partition: Partition,
    launches: int,
    *,
    mpi_over_tcp: bool,
) -> Measured:
    """Read the launches of an IMB function from a job's folder.

    Raises Incomplete where a launch, a size or a value is missing or wrong.
    """
    asked = imb_sizes(function, partition.max_message_bytes)
    line_rate = line_rate_mb_s(partition, case, mpi_over_tcp=mpi_over_tcp)
    read = imb_reader(folder, case)
    return _measured(folder, case, case.function, partition, launches, asked, read, line_rate)


def netpipe_case(
    folder: Path,
    case: Case,
    subject: str,
    partition: Partition,
    launches: int,
    *,
    mpi_over_tcp: bool,
) -> Measured:
    """Read the launches of a NetPIPE variant from a job's folder.

    Raises Incomplete where a launch, a size or a value is missing or wrong.
    """
    asked = netpipe.sizes(1, partition.max_message_bytes, 0)
    line_rate = line_rate_mb_s(partition, case, mpi_over_tcp=mpi_over_tcp)
    read = netpipe_reader(folder, case)
    return _measured(folder, case, subject, partition, launches, asked, read, line_rate)


def with_twin(
    launch: Launch, folder: Path, step: str, case: Case, partition: Partition, recorded: Mapping
) -> Launch:
    """A launch, read of ``step``, with the twin's that was made next to it, where one had to be.

    Raises Incomplete where it is missing or did not end well, ParseError and OSError.
    """
    if not plan.has_twin(partition, case.benchmark, case.path):
        return launch
    sweep = plan.twin_sweep(partition)
    name = plan.twin_name(step)
    entry, errors = recorded.get(name), folder / f"{name}.err"
    if entry is None:
        raise Incomplete([f"{folder / LAUNCHES_FILE}: {name}, over the healthy twin, did not run"])
    if entry.status != 0:
        raise Incomplete(
            [
                f"{errors}: {name}, over the healthy twin, ended with status {entry.status}"
                f"{_last_words(errors)}"
            ]
        )
    curve = netpipe_reader(folder, case)(name)
    faults = _faults(name, curve, sweep.sizes())
    if faults:
        raise Incomplete(faults)
    return dataclasses.replace(launch, twin=curve)


def _measured(
    folder: Path,
    case: Case,
    subject: str,
    partition: Partition,
    launches: int,
    asked: tuple[int, ...],
    read: Callable[[str], Curve],
    line_rate: float | None,
) -> Measured:
    recorded = records(folder)
    done, crashed, reasons = [], [], []
    for number in range(1, launches + 1):
        step = f"{subject}.{number}"
        crashed += crashes(folder, step, number, recorded)
        try:
            launch = read_launch(folder, step, number, recorded, case, asked, read)
            done.append(with_twin(launch, folder, step, case, partition, recorded))
        except Incomplete as error:
            reasons += error.reasons
        except (NetproofError, OSError) as error:
            reasons.append(str(error))
    if reasons:
        raise Incomplete(reasons)
    # Short bursts over an emulated link are no peak.
    peak_from = partition.line_rate_from_bytes if line_rate else 0
    return made(case, done, line_rate, peak_from, crashed)


def made(
    case: Case,
    launches: Sequence[Launch],
    line_rate: float | None,
    peak_from: int,
    crashed: Sequence[Crash] = (),
) -> Measured:
    """A case of complete launches over the same sizes; the last arguments as ``Measured``'s."""
    curves = [launch.curve for launch in launches]
    median = median_curve(curves)
    settings = LandmarkSettings(peak_from=peak_from)
    found = landmarks(median, line_rate, settings, launches=curves)
    beside = twin.compared([(launch.curve, launch.twin) for launch in launches])
    if beside is not None:
        found = found.with_twin(beside)
    return Measured(
        case,
        tuple(launches),
        median,
        spread(curves),
        line_rate,
        found,
        peak_from,
        tuple(crashed),
    )


def extended(
    values: dict[str, Any],
    further: Sequence[dict[str, Any]],
    crashes: Sequence[dict[str, Any]] = (),
) -> dict[str, Any]:
    """What a check kept of a case, with launches that were made later, all plain values.

    ``crashes``: of those launches. Keys that are no part of what was measured stay. Raises
    NetproofError where one cannot be read, or the launches have other sizes.
    """
    first = Measured.from_json(values)
    try:
        more = [Launch.from_json(launch) for launch in further]
        crashed = [Crash.from_json(crash) for crash in crashes]
    except (KeyError, TypeError) as error:
        raise NetproofError(f"{first.case}: a further launch cannot be read: {error!r}") from error
    return {**values, **first.with_launches([*first.launches, *more], crashed).as_json()}


def _peak_from(values: dict[str, Any]) -> int:
    """The least message that can be the peak; earlier reports have it in the partition's extras."""
    if "peak_from" in values or values["line_rate_mb_s"] is None:
        return values.get("peak_from", 0)
    return values.get("partition_extras", {}).get("line_rate_from_bytes", 0)


def crashes(
    folder: Path, step: str, number: int, recorded: Mapping[str, StepRecord]
) -> tuple[Crash, ...]:
    """The attempts at launch ``number``, whose last one is ``step``, that crashed before it.

    ``run/shell/steps.sh`` has their records and files under the step's name with ~1, ~2, … behind.
    """
    found = []
    for attempt in itertools.count(1):
        entry = recorded.get(f"{step}~{attempt}")
        if entry is None:
            return tuple(found)
        errors = folder / f"{step}~{attempt}.err"
        said = _said(errors)
        died = dict.fromkeys(
            found[1] for line in said for found in [_DIED.search(line)] if found is not None
        )
        said += _printed(folder / f"{step}~{attempt}.out") if not said else []
        words = " | ".join(said)
        found.append(Crash(number, attempt, entry.order, entry.status, tuple(died), words))
    raise AssertionError("the count has no end")


def read_launch(
    folder: Path,
    step: str,
    number: int,
    recorded: dict[str, StepRecord],
    case: Case,
    asked: tuple[int, ...],
    read: Callable[[str], Curve],
) -> Launch:
    """One step of a job as launch ``number``: it ended well, where it should, with all sizes.

    ``recorded``: what ``records`` says of the job; ``asked``: the sizes in bytes that it has to
    have, and no others. Raises Incomplete with every reason, ParseError and OSError.
    """
    entry = recorded.get(step)
    if entry is None:
        raise Incomplete(
            [
                f"{folder / LAUNCHES_FILE}: {step} did not run; the job ended before it"
                f"{_last_words(folder / JOB_ERRORS)}"
            ]
        )
    errors = folder / f"{step}.err"
    before = len(crashes(folder, step, number, recorded))
    tried = f", in the last of {before + 1} attempts of which each crashed" if before else ""
    if entry.status in TIMED_OUT_STATUS and entry.wall_s >= entry.limit_s:
        raise Incomplete(
            [
                f"{errors}: {step} was ended at its limit of {entry.limit_s} s (the partition's"
                f" step_limit_s){_last_words(errors)}"
            ]
        )
    if entry.status != 0:
        raise Incomplete(
            [
                f"{errors}: {step} ended with status {entry.status}{tried}{_last_words(errors)}"
                f"{_last_line(folder / f'{step}.out')}"
            ]
        )
    curve = read(step)
    faults = _faults(step, curve, asked)
    said = errors.read_text(errors="replace")
    ranks = _rank_uses(errors, said)
    if len(ranks) != case.ranks:
        faults.append(f"{errors}: {len(ranks)} of {case.ranks} ranks reported their end")
    nodes = len({use.node for use in ranks})
    if nodes != case.ranks // case.ranks_per_node:
        faults.append(
            f"{errors}: {step} ran on {nodes} nodes and not on {case.ranks // case.ranks_per_node}"
        )
    if faults:
        raise Incomplete(faults)
    loads = disturbance.loads(errors, said, cpu_by_node(said))
    return Launch(number, entry.order, entry.start, entry.wall_s, ranks, curve, loads)


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


def _last_words(errors: Path) -> str:
    said = _said(errors)
    return f"; it said: {' | '.join(said)}" if said else ""


def _said(errors: Path) -> list[str]:
    """What a step said at its end, without what Slurm says while it ends the other ranks."""
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


def _last_line(output: Path) -> str:
    """What a program printed last: NetPIPE tells its troubles on its standard output."""
    return "".join(f"; {output.name} ends: {line}" for line in _printed(output))


def _printed(output: Path) -> list[str]:
    """The last line that a program printed, if any."""
    try:
        lines = [line for line in output.read_text(errors="replace").splitlines() if line.strip()]
    except OSError:
        return []
    return [line.strip()[:200] for line in lines[-1:]]


def _rank_uses(errors: Path, said: str) -> tuple[RankUse, ...]:
    told = disturbance.scheduled(errors, said)
    uses = [
        RankUse(
            int(found[1]),
            found[2],
            float(found[3]),
            float(found[4]) + float(found[5]),
            told.get(int(found[1])),
        )
        for found in _RANK_LINE.finditer(said)
    ]
    if told and sorted(told) != sorted(use.rank for use in uses):
        raise ParseError(
            str(errors), 0, "", "the ranks that reported their end are not those that were watched"
        )
    return tuple(sorted(uses, key=lambda use: use.rank))


def cpu_by_node(said: str) -> dict[str, tuple[float, float]]:
    """User and system CPU seconds of the ranks by node."""
    taken: dict[str, tuple[float, float]] = {}
    for found in _RANK_LINE.finditer(said):
        user_s, system_s = taken.get(found[2], (0.0, 0.0))
        taken[found[2]] = (user_s + float(found[4]), system_s + float(found[5]))
    return taken


def records(folder: Path) -> dict[str, StepRecord]:
    """The steps that a job ran, by name, from its ``launches.tsv``.

    Raises Incomplete where the record is missing or a line of it is none.
    """
    path = folder / LAUNCHES_FILE
    try:
        lines = path.read_text().splitlines()
    except OSError as error:
        raise Incomplete([f"{path}: the job left no record of its launches: {error}"]) from error
    if not lines or lines[0] != LAUNCHES_HEADER:
        raise Incomplete([f"{path}:1: the header {LAUNCHES_HEADER!r} is missing"])
    recorded = {}
    for number, line in enumerate(lines[1:], 2):
        try:
            step, start, end, status, limit = line.split("\t")
            recorded[step] = StepRecord(
                number - 1, float(start), float(end) - float(start), int(status), int(limit)
            )
        except ValueError as error:
            raise Incomplete(
                [f"{path}:{number}: {shortened(repr(line))} is no launch: {shortened(str(error))}"]
            ) from error
    return recorded
