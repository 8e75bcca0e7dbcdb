"""A sweep: its launches in their order, the job's result, and the gains and costs of its values.

Each launch with a value runs between two with the default, in the same round. The gain at a size is
the default's time there, the geometric mean of both neighbours, over the value's time. When a
machine or network changes its pace meanwhile, both change and the drift cancels.

A table by sizes, its values times its sizes, has so many questions that with five rounds Student's
intervals are hardly ever narrow enough: there variances inform each other.
"""

from __future__ import annotations

import dataclasses
import math
import random
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from netproof.benchmarks.outputs import text_of
from netproof.errors import NetproofError, grouped
from netproof.experiments import parameters
from netproof.experiments.parameters import Assignment
from netproof.measurement.case import Case, Curve, median_curve
from netproof.measurement.disturbance import disturbed
from netproof.measurement.interval import Variance, in_common, moderated
from netproof.measurement.landmarks import EagerLimit, eager_limit, eager_limit_alongside
from netproof.session import job_files, plan
from netproof.session.job_files import Incomplete
from netproof.session.measured import Launch
from netproof.session.plan import Step
from netproof.session.session import JobRecord

Floats = NDArray[np.float64]

SHORT_UP_TO = 64
"""Bytes up to which a message's time is latency."""
LONG_SHARE = 8
"""Share of the largest message from which on messages are long: their time is that of the bytes."""
ERROR = 0.05
"""Largest share of recommendations among sweeps of a setting without effect."""
LEAST_GAIN = 0.02
"""Least gain that is worth a setting to maintain."""
LEAST_ROUNDS = 3
LEAST_VARIANCE = 1e-12
"""Least variance of logarithms: times within a millionth are equal."""


class MessageRange(StrEnum):
    """Range of message sizes."""

    SHORT = "short"
    MEDIUM = "medium"
    LONG = "long"


@dataclass(frozen=True)
class Made:
    """A launch of a sweep: its value (None: the default), its round from 1, and its curve.

    ``undisturbed``: no other load ran.
    """

    value: str | None
    round: int
    curve: Curve
    undisturbed: bool = True


@dataclass(frozen=True)
class Gain:
    """How much faster messages of a range are, as a factor: 1.1 is a tenth faster.

    ``interval``: at the confidence for the number of questions.
    """

    factor: float
    interval: tuple[float, float]

    @property
    def sure(self) -> bool:
        """Check whether the whole interval is a gain worth having."""
        return self.interval[0] > 1 + LEAST_GAIN

    @property
    def costs(self) -> bool:
        """Check whether the whole interval is a loss that counts."""
        return self.interval[1] < 1 / (1 + LEAST_GAIN)

    @property
    def none(self) -> bool:
        """Check whether the whole interval counts as no change."""
        return self.interval[0] >= 1 / (1 + LEAST_GAIN) and self.interval[1] <= 1 + LEAST_GAIN


@dataclass(frozen=True)
class SweepRow:
    """The values of a sweep at a size in bytes, or in a range of sizes: the best of them, if any.

    ``winner``: None without a certain gain; ``as_good``: statistically tied values, each with the
    largest share by which it may be behind; ``gains``: of all values.
    """

    at: int | MessageRange
    winner: str | None
    as_good: Mapping[str, float]
    gains: Mapping[str, Gain]

    @property
    def gain(self) -> Gain | None:
        """Return the winner's gain."""
        return None if self.winner is None else self.gains[self.winner]

    @property
    def none(self) -> bool:
        """Check whether all values are certainly as fast as the default."""
        return all(gain.none for gain in self.gains.values())

    @property
    def costly(self) -> bool:
        """Check whether all values are certainly slower than the default."""
        return all(gain.costs for gain in self.gains.values())


@dataclass(frozen=True)
class SweepTable:
    """Result of a sweep: a row for each size, or for each range of sizes.

    ``by_size``: for each value, how many times as fast as the default, by size in bytes;
    ``disturbed_values``: values with too few rounds that nothing disturbed, and how many these are;
    ``drift``: time of the last default over the first, median over sizes; ``rounds``: their number;
    ``disturbed``: number of launches with other load.
    """

    rows: tuple[SweepRow, ...]
    by_size: Mapping[str, Mapping[int, float]]
    disturbed_values: Mapping[str, int]
    drift: float
    rounds: int
    disturbed: int

    @property
    def values(self) -> tuple[str, ...]:
        """Return the values in their order."""
        return tuple(self.by_size)

    def gains_of(self, value: str) -> dict[int | MessageRange, Gain]:
        """Return the gains of a value, by size or range."""
        return {row.at: row.gains[value] for row in self.rows}

    @property
    def best(self) -> SweepRow | None:
        """Return the row with the largest certain gain; None without one."""
        won = [row for row in self.rows if row.winner is not None]
        return max(won, key=lambda row: row.gains[str(row.winner)].factor, default=None)


def range_of(size: int, largest: int) -> MessageRange:
    """Return the range of a size in bytes."""
    if size <= SHORT_UP_TO:
        return MessageRange.SHORT
    return MessageRange.LONG if size * LONG_SHARE >= largest else MessageRange.MEDIUM


def tuned(made: Sequence[Made], already: str | None = None, *, by_size: bool = False) -> SweepTable:
    """Return the result by ranges of sizes; a value must run between two defaults of its round.

    ``made``: in the order in which they ran.
    A disturbed launch, or one with a disturbed neighbour, is left out. ``already``: the value that
    all nodes have, which is the default and not recommended; ``by_size``: by sizes, without values
    that have fewer than ``LEAST_ROUNDS`` rounds left. Raise NetproofError where there are no such
    rounds, where a value has fewer and the result is by ranges, and where a neighbour or a size is
    missing.
    """
    rounds = len({one.round for one in made})
    if rounds < LEAST_ROUNDS:
        raise NetproofError(
            f"{rounds} of at least {LEAST_ROUNDS} rounds: fewer tell nothing of chance"
        )
    every = logs_by_value(made)
    few = {value: len(logs) for value, logs in every.items() if len(logs) < LEAST_ROUNDS}
    several = {value: logs for value, logs in every.items() if value not in few}
    nothing_disturbed = f"rounds that nothing disturbed, and it takes {LEAST_ROUNDS}"
    for value, count in few.items() if not by_size else ():
        raise NetproofError(f"{value} has {count} {nothing_disturbed}")
    if not several:
        raise NetproofError(f"no value has more than {max(few.values())} {nothing_disturbed}")
    sizes = made[0].curve.sizes
    places: Sequence[int | MessageRange] = sizes
    if not by_size:
        places = [range_of(size, sizes[-1]) for size in sizes]
    # A common variance without weight: each value's interval is Student's of its own.
    shared = common(several) if by_size else Variance(1.0, 0.0)
    questions, rows = len(several) * len(sizes if by_size else MessageRange), []
    for at in dict.fromkeys(places):
        # The mean: an eager limit moves few of a range's sizes, and a median misses them.
        members = [place == at for place in places]
        logs = {value: one[:, members].mean(axis=1) for value, one in several.items()}
        gains = {value: gain_with(one, shared, questions) for value, one in logs.items()}
        sure = [value for value, one in gains.items() if one.sure and value != already]
        if not sure:
            rows.append(SweepRow(at, None, {}, gains))
            continue
        best, as_good = max(sure, key=lambda value: gains[value].factor), {}
        for value, one in logs.items():
            # Welch's: their variances differ.
            difference = scipy.stats.ttest_ind(logs[best], one, equal_var=False)
            low, high = difference.confidence_interval(1 - ERROR)
            if low <= 0 and value not in (best, already):
                as_good[value] = max(0.0, math.exp(min(high, 700)) - 1)
        rows.append(SweepRow(at, best, as_good, gains))
    factors = {
        value: dict(zip(sizes, np.exp(logs.mean(axis=0)).tolist(), strict=True))
        for value, logs in several.items()
    }
    defaults = [one.curve.time_us for one in made if one.value is None]
    drift = float(np.median(np.divide(defaults[-1], defaults[0])))
    left_out = sum(not one.undisturbed for one in made)
    return SweepTable(tuple(rows), factors, few, drift, rounds, left_out)


def logs_by_value(made: Sequence[Made]) -> dict[str, Floats]:
    """Return the logarithms of each value's gains: launches x sizes; NetproofError."""
    found: dict[str, list[Floats]] = {}
    defaults = [place for place, one in enumerate(made) if one.value is None]
    for place, one in enumerate(made):
        if one.value is None:
            continue
        logs, after = found.setdefault(one.value, []), bisect_left(defaults, place)
        sides = [made[side] for side in defaults[max(after - 1, 0) : after + 1]]
        if [side.round for side in sides] != [one.round] * 2 or not after:
            raise NetproofError(
                f"{one.value} of round {one.round} does not stand between two launches of the"
                " default"
            )
        if all(each.undisturbed for each in (one, *sides)):
            if any(side.curve.sizes != one.curve.sizes for side in sides):
                raise NetproofError("launches of a sweep have different sizes")
            times = np.array([each.curve.time_us for each in (one, *sides)])
            for _, size in np.argwhere(times <= 0)[:1]:
                what = f"{times[:, size].min():g} µs at {one.curve.sizes[size]} bytes"
                raise NetproofError(f"a time of {what} is no reading")
            time, before, behind = np.log(times)
            logs.append((before + behind) / 2 - time)
    if not found:
        raise NetproofError("no value was measured alongside the default")
    # Numbers by their size, before words.
    by_size = sorted((int(one) if one.isdecimal() else math.inf, one) for one in found)
    return {value: np.array(found[value]) for _, value in by_size}


def common(logs: Mapping[str, Floats]) -> Variance:
    """Return the common variance of all values at all sizes.

    ``logs``: by value, the logarithms of its gains: launches x sizes. Sizes of a launch share its
    pace and are not independent: the common variance has at most the weight of the launches of all
    values but one, and none with one value.
    """
    own = [len(several) - 1 for several in logs.values()]
    spreads = [_variance(of_size) for several in logs.values() for of_size in several.T]
    return in_common(spreads, sum(own) - max(own))


def gain_with(logs: Floats, shared: Variance, questions: int) -> Gain:
    """Return a gain, its interval so wide that all questions together err as often as one would."""
    spread = moderated(_variance(logs), shared)
    middle, half = float(logs.mean()), spread.half_width(ERROR / questions, 1 / len(logs))
    return Gain(math.exp(middle), (math.exp(middle - half), math.exp(min(middle + half, 700))))


def _variance(logs: Floats) -> Variance:
    return Variance(max(float(logs.var(ddof=1)), LEAST_VARIANCE), len(logs) - 1)


ALGORITHM = "algorithm"
"""The command's name of the setting whose values are a collective's algorithms."""

BETWEEN_DEFAULTS = 2
"""Number of values between one launch of the default and the next."""


@dataclass(frozen=True)
class SweepTurn:
    """A launch to be made: the value (None: the default) and its round.

    ``subject`` and ``launch`` make the name of the step.
    """

    value: str | None
    round: int
    subject: str
    launch: int

    @property
    def step(self) -> str:
        """Return the name of the step."""
        return f"{self.subject}.{self.launch}"


def turns(values: Sequence[str], rounds: int, seed: int) -> tuple[SweepTurn, ...]:
    """Return a sweep's launches in order: values shuffled, the default around every two."""
    shuffle = random.Random(seed)
    made: Counter[str] = Counter()
    found: list[SweepTurn] = []

    def add(value: str | None, number: int) -> None:
        subject = "tuning-default" if value is None else f"tuning-{values.index(value) + 1}"
        made[subject] += 1
        found.append(SweepTurn(value, number, subject, made[subject]))

    for number in range(1, rounds + 1):
        shuffled = list(values)
        shuffle.shuffle(shuffled)
        add(None, number)
        for place, value in enumerate(shuffled, 1):
            add(value, number)
            if place % BETWEEN_DEFAULTS == 0 or place == len(shuffled):
                add(None, number)
    return tuple(found)


@dataclass(frozen=True)
class Sweep(JobRecord):
    """A sweep as it is planned, then with the measurements in the order of its launches.

    ``own``: the nodes' values when the job began, each once; () without a hook. Of a sweep of
    algorithms, ``library``: as the site names it; ``names``: of all values, empty where the value
    is the name; ``refused``: values that failed in a launch, or that the library ignored, with the
    reason; ``fell_back``: values that the library replaced by its own choice in some calls. Their
    launches are those of accepted algorithms and of the library's own choice.
    """

    KEY = "netproof_tuning"
    CALLED = "sweep"

    case: Case
    parameter: str
    title: str
    assignment: Assignment
    jobid: str
    seed: int
    partition_extras: Mapping[str, Any]
    turns: tuple[SweepTurn, ...]
    launches: tuple[Launch, ...] = ()
    own: tuple[str, ...] = ()
    library: str = ""
    names: Mapping[str, str] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    fell_back: Mapping[str, str] = field(default_factory=dict)

    @property
    def already(self) -> str | None:
        """Return the value that all nodes have already, None where they differ or it is unknown."""
        return self.own[0] if len(self.own) == 1 else None

    @cached_property
    def table(self) -> SweepTable:
        """Return its result; NetproofError, with what disturbed it, where it has none."""
        made = [
            Made(turn.value, turn.round, launch.curve, not self._disturbing(launch))
            for turn, launch in zip(self.turns, self.launches, strict=True)
        ]
        try:
            return tuned(made, self.already, by_size=bool(self.library))
        except NetproofError as error:
            why = f"{self.title}{f' on {self.case.ranks} ranks' if self.library else ''}: {error}"
            if several := [found for one in self.launches if (found := self._disturbing(one))]:
                why += (
                    f"; {len(several)} of {len(self.launches)} launches were disturbed, the first"
                    f" so: {'; '.join(several[0])}. Measure while nothing else runs there, or with"
                    " more rounds"
                )
            why += "".join(f"; {value}: {reason}" for value, reason in self.refused.items())
            raise NetproofError(why) from None

    def _disturbing(self, launch: Launch) -> tuple[str, ...]:
        """Return what disturbed a launch, by its partition's settings."""
        return disturbed(launch.loads, self.where.settings().disturbance)

    def eager_limits(self) -> dict[str | None, EagerLimit | None] | None:
        """Return the step from eager to rendezvous messages, by value (None: the default).

        The medians' curves decide, those of values together with the default's. A value without a
        step has None; the result is None unless the sweep changes the eager limit.
        """
        if not parameters.of(self.parameter).eager_limit:
            return None
        launched = zip(self.turns, self.launches, strict=True)
        several = grouped((turn.value, launch.curve) for turn, launch in launched)
        default = median_curve(several.pop(None))
        found: dict[str | None, EagerLimit | None] = {None: eager_limit(default)}
        for value, curves in several.items():
            found[value] = eager_limit_alongside(median_curve(curves), default)
        return found


def steps(sweep: Sweep, srun: Sequence[str]) -> tuple[Step, ...]:
    """Return the job steps of a sweep with their values; ``srun``: command and options."""
    case, partition, made = sweep.case, sweep.where, []
    heard = parameters.library_of(sweep.library).heard if sweep.library else {}
    for turn in sweep.turns:
        step = plan.step_of(case, turn.launch, partition, srun, turn.subject)
        if turn.value is not None:
            setting = sweep.assignment.of(turn.value)
            command = (*step.command, *setting.arguments)
            named = [f"{name}={text}" for name, text in {**setting.variables, **heard}.items()]
            if named:
                command = ("env", *named, *command)
            step = dataclasses.replace(step, command=command, label=turn.value)
        made.append(step)
    return tuple(made)


def of_job(folder: Path, jobid: str, planned: Sweep) -> Sweep:
    """Return a sweep with the launches that its job left in ``folder``.

    Raise Incomplete, with the reasons, where a launch of a setting failed, or of the default, where
    the job ended before its last launch, and where no algorithm is left.
    """
    job, case = job_files.JobFolder(folder), planned.case
    partition, several = planned.where, planned.turns
    asked = plan.sizes_asked(case, partition)
    made: dict[SweepTurn, Launch] = {}
    failed: dict[str | None, list[str]] = {}
    not_begun: dict[SweepTurn, str] = {}
    for turn in several:
        try:
            made[turn] = job.launch(turn.step, case, asked)
        except (NetproofError, OSError) as error:
            if turn.step in job.recorded:
                failed.setdefault(turn.value, []).append(str(error))
            else:
                not_begun[turn] = str(error)
    refused: dict[str, str] = {}
    if planned.library:
        own_choice = failed.pop(None, [])[:1]
        refused = {
            str(value): lacking[0].replace(f"{folder}/", "") for value, lacking in failed.items()
        }
        reasons = [f"the library's own choice: a launch failed: {why}" for why in own_choice]
    else:
        launches = Counter(turn.value for turn in several)
        reasons = [
            f"{'the default' if value is None else value}: {len(lacking)} of {launches[value]}"
            f" launches failed, the first so: {lacking[0]}"
            for value, lacking in failed.items()
        ]
    late = [why for turn, why in not_begun.items() if turn.value not in refused]
    if late:
        ran = len(several) - len(not_begun)
        reasons.append(f"the job ended after {ran} of {len(several)} launches: {late[0]}")
    if reasons:
        raise Incomplete("; ".join(reasons))
    found = dataclasses.replace(planned, jobid=jobid)
    if not planned.library:
        own = own_values(folder) if parameters.of(planned.parameter).by_hook else ()
        return dataclasses.replace(found, launches=tuple(made.values()), own=own)
    library = parameters.library_of(planned.library)
    refused = {**_lines_with(library.ignored, folder, made), **refused}
    if len(refused) == len(planned.names):
        raise Incomplete("; ".join(f"{value}: {reason}" for value, reason in refused.items()))
    accepted = {turn: launch for turn, launch in made.items() if turn.value not in refused}
    fell_back = _lines_with(library.fell_back, folder, accepted)
    return dataclasses.replace(
        found,
        turns=tuple(accepted),
        launches=tuple(accepted.values()),
        refused={value: refused[value] for value in planned.names if value in refused},
        fell_back={value: fell_back[value] for value in planned.names if value in fell_back},
    )


def _lines_with(pattern: str, folder: Path, turns: Iterable[SweepTurn]) -> dict[str, str]:
    """Return the values with a launch that printed the pattern, and their first such line."""
    found: dict[str, str] = {}
    for turn in turns if pattern else ():
        if turn.value is not None and turn.value not in found:
            text = "\n".join(text_of(folder / f"{turn.step}.{kind}") for kind in ("err", "out"))
            if line := next((one for one in text.splitlines() if re.search(pattern, one)), None):
                found[turn.value] = line.strip()
    return found


def own_values(folder: Path) -> tuple[str, ...]:
    """Return the nodes' values when a job began, each once; Incomplete and NetproofError."""
    file = folder / parameters.OWN_FILE
    found = parameters.read(file)
    if not found:
        raise Incomplete(f"{file}: is not there: the job did not note what its nodes had")
    return tuple(sorted({value for _, _, value in found}))


def results(report: Path) -> list[Sweep]:
    """Return the sweeps of a report, the fewest ranks first.

    Raise NetproofError, with the report's path, without one, and where one has no result.
    """
    several = sorted(Sweep.of_report(report), key=lambda sweep: sweep.case.ranks)
    try:
        return [sweep for sweep in several if sweep.table]
    except NetproofError as error:
        raise NetproofError(f"{report}: {error}") from None


def newest(
    folder: Path, system: str, settings: Collection[str]
) -> tuple[list[Sweep], dict[str, str]]:
    """Return the newest sweep with a result of each setting and case of a system.

    The second value is, by setting, why its newest report has no result. ``folder``: of reports of
    sweeps; may be missing.
    """
    found: dict[tuple[object, ...], Sweep] = {}
    faults: dict[str, str] = {}
    for name in settings:
        # Reports are named by setting and time, so the newest sorts last.
        for path in sorted(folder.glob(f"run-{name}-*.json")):
            try:
                several = results(path)
            except NetproofError as error:
                faults[name] = str(error)
                continue
            faults.pop(name, None)
            for one in several:
                if one.case.system == system and one.parameter == name:
                    found[(name, *one.case.key())] = one
    return list(found.values()), faults
