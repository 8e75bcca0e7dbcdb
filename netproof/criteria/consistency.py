"""Consistency: guidelines, agreement of benchmarks, growth and monotony over ranks.

Guidelines are those of Träff, Gropp and Thakur, "Self-consistent MPI performance guidelines", IEEE
TPDS 21 (2010): a collective takes no longer than calls of the same library that do its work. No
reference is needed, and no other configuration: the library is compared with itself, in one job.

NetPIPE over MPI, PingPong of IMB and latency of OMB send one message there and back, by one library
and over one link. If one of them takes twice as long as another, something was in the way of one of
them, or they did not measure the same.

On twice the ranks the messages on a node's link, or in a row from a rank, grow at most as with the
worst algorithm in use. If the time grows by far more, the network or the library has a problem that
only many ranks show. Nor may the time shrink: fewer ranks have less to do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median

from netproof.criteria.findings import (
    Above,
    CannotJudgeError,
    Finding,
    Level,
    common_sizes,
    in_brackets,
    interval_in_words,
    times_of,
    times_or_reason,
)
from netproof.criteria.interface import CaseCurves, ComparedCases, Criterion
from netproof.measurement import interval as intervals

GUIDELINE = Above(4.0, 10.0)
"""Multiples of what the library's other calls take.

Libraries break guidelines by small factors in many places, since they choose an algorithm by
tables. An order of magnitude is no choice any more.
"""

AGREEMENT = Above(None, 2.0)
"""Multiples of another benchmark's time."""

GROWTH = Above(4.0, 10.0)
"""Multiples of what the ranks explain, and of the time on more ranks."""

LAUNCHES = 3
"""Launches of both sides that agreement and growth take: they are of different jobs."""

BY_CALLS, BY_MESSAGES = "guideline", "guideline of messages"
"""Names of findings: a collective compared with others, and with single messages."""

_DISAGREE = "look at what else ran during that job, and at the arguments of both benchmarks"


@dataclass(frozen=True)
class Ratio:
    """Ratio of a case's time to that of another, ``label``, at a size, and both times in µs.

    ``interval``: of the ratio, None where a side has too few launches.
    """

    size: int
    value: float
    label: str
    times_us: tuple[float, float]
    interval: tuple[float, float] | None
    level: Level
    bound: float | None


def ratios(
    own: CaseCurves,
    other: CaseCurves,
    label: str,
    settings: Above,
    explained: float = 1.0,
) -> list[Ratio]:
    """Return the ratio of times at each common size, divided by what is ``explained`` of it.

    An interval that contains a bound is shown, since no repeats would decide it. Raises
    CannotJudgeError where a curve cannot be read.
    """
    mine, theirs = (
        times_of(own.curve, settings),
        times_of(other.curve, settings, of=f"of {label}, "),
    )
    found = []
    for size in sorted(mine.keys() & theirs.keys()):
        value = mine[size] / theirs[size] / explained
        level, bound, interval = Level.SHOWN, None, None
        times = [
            [one.time_us[one.sizes.index(size)] for one in side.launches if size in one.sizes]
            for side in (own, other)
        ]
        if min(map(len, times)) >= LAUNCHES:
            interval = intervals.of_ratio(*times)
        if interval is not None:
            interval = (interval[0] / explained, interval[1] / explained)
            level, bound = settings.level(value, interval)
        if level is Level.INCONCLUSIVE:
            level = Level.SHOWN if value > (bound or 0) else settings.level(value)[0]
        both = mine[size], theirs[size]
        found.append(Ratio(size, value, label, both, interval, level, bound))
    return found


def _finding(
    criterion: str,
    where: str,
    compared: Sequence[Ratio],
    settings: Above,
    words: Callable[[Ratio], str],
    advice: str,
) -> Finding:
    """Return the finding on the largest ratio, of those that fail if some do, in ``words``."""
    failing = [one for one in compared if one.level is Level.FAIL]
    worst = max(failing or compared, key=lambda one: one.value)
    return settings.finding(
        criterion,
        where,
        worst.value,
        words(worst),
        advice,
        interval=worst.interval,
        decided=(worst.level, worst.bound),
        size=worst.size,
        against=worst.label,
        common=common_sizes(one.size for one in compared),
    )


def _spoken(ratio: Ratio) -> str:
    missing = f"no interval, which takes {LAUNCHES} launches of both"
    return interval_in_words(ratio.interval) or missing


def agreement(case: CaseCurves, compared: ComparedCases, settings: Above) -> Finding | None:
    """Return the largest ratio of a benchmark's time to another's for the same message.

    A size fails where the whole interval is above the bound; all sizes together by the median of
    their ratios, which is inconclusive with too few launches. None without another benchmark.
    """
    others = {label: one for label, one in compared.cases.items() if one is not case}
    if not others:
        return None
    of_all: list[Ratio] = []
    together: list[Finding] = []
    for label, other in others.items():
        of_sizes = ratios(case, other, label, settings)
        if of_sizes:
            of_all += of_sizes
            together += _over_sizes(case, other, of_sizes, settings)
    if not of_all:
        raise CannotJudgeError("no other benchmark has a size in common with it")
    flagged = [one for one in together if one.level is Level.FAIL]
    if not flagged and not any(one.level is Level.FAIL for one in of_all):
        flagged = together
    if flagged:
        return compared.weighed(max(flagged, key=lambda one: one.value or 0))
    finding = _finding(
        "agreement",
        case.where,
        of_all,
        settings,
        lambda worst: (
            f"a message of {worst.size} bytes took {worst.times_us[0]:.4g} µs, {worst.value:.3g}"
            f" times ({_spoken(worst)}) the {worst.times_us[1]:.4g} µs of {worst.label},"
            " which sends the same"
        ),
        _DISAGREE,
    )
    return compared.weighed(finding)


def _over_sizes(
    own: CaseCurves, other: CaseCurves, compared: Sequence[Ratio], settings: Above
) -> Iterator[Finding]:
    """Yield the finding on the median ratio of two benchmarks over all sizes, if it is flagged.

    Where a side has few launches, its interval is over sizes, and it is inconclusive.
    """
    times_us = {one.size: one.times_us for one in compared}
    sizes, interval = common_sizes(times_us), None
    if min(len(own.launches), len(other.launches)) < LAUNCHES:
        values = [mine / theirs for mine, theirs in times_us.values()]
        ratio = median(values)
        if len(values) >= intervals.FEWEST_RANKED:
            interval = intervals.of_median(values)
        level, over = Level.INCONCLUSIVE, "sizes"
        advice = f"measure it again: to be sure takes {LAUNCHES} launches of both"
    else:
        # Each launch's median ratio to the other side's median curve.
        mine, theirs = (
            [
                median(
                    time / times_us[size][1]
                    for size, time in zip(launch.sizes, launch.time_us, strict=True)
                    if size in times_us
                )
                for launch in side.launches
            ]
            for side in (own, other)
        )
        ratio, interval = median(mine) / median(theirs), intervals.of_ratio(mine, theirs)
        level, over, advice = Level.FAIL, "launches", _DISAGREE
    if interval is None or settings.level(ratio, interval)[0] is not Level.FAIL:
        return
    label = compared[0].label
    yield Finding(
        "agreement",
        level,
        own.where,
        f"{sizes} a message took {ratio:.3g} times (95% interval over {over} {interval[0]:.3g} to"
        f" {interval[1]:.3g}) what it took by {label}, which sends the same ({level.value}: above"
        f" {settings.fail:g} is flagged); {advice}",
        value=ratio,
        bound=settings.fail,
        common=sizes,
        interval=interval,
        against=label,
    )


def growth(case: CaseCurves, compared: ComparedCases, settings: Above) -> Finding | None:
    """Return how much a collective's time grows from the next fewer ranks, over what these explain.

    A size fails where the whole interval is above the bound. None on the fewest ranks, and where it
    is not known where ranks ran: out of a node, times grow by any factor.
    """
    fewer = _next_to(case, compared, -1)
    if fewer is None or not case.ranks_per_node:
        return None
    # Of its work on a link, or of a rank to all others.
    work = case.on_link / fewer.on_link, (case.ranks - 1) / (fewer.ranks - 1)
    explained = max(1.0, *work)
    return _on_other_ranks(
        "growth",
        case,
        fewer,
        compared,
        settings,
        lambda one: (
            f"{one.times_us[0] / one.times_us[1]:.3g} times the {one.times_us[1]:.4g} µs of"
            f" {one.label}; its ranks explain {explained:.3g} times, which leaves {one.value:.3g}"
            f" times ({_spoken(one)})"
        ),
        "look at congestion, at which algorithm the library takes on so many ranks, and at whether"
        " there are as many CPUs as ranks",
        explained,
    )


def monotony(case: CaseCurves, compared: ComparedCases, settings: Above) -> Finding | None:
    """Return the largest ratio of a collective's time to that on the next more ranks.

    At most 1 where time does not fall when ranks are added. A size fails as in ``growth``. None on
    the most ranks.
    """
    more = _next_to(case, compared, 1)
    if more is None:
        return None
    return _on_other_ranks(
        "monotony",
        case,
        more,
        compared,
        settings,
        lambda one: (
            f"{one.value:.3g} times ({_spoken(one)}) the {one.times_us[1]:.4g} µs of {one.label},"
            " which has more to do"
        ),
        "look at the nodes of that job, and at which algorithm the library takes on few ranks",
    )


def _next_to(case: CaseCurves, compared: ComparedCases, step: int) -> CaseCurves | None:
    """Return the case that comes so many steps after one in the order of ranks, or None."""
    by_ranks = sorted(compared.cases.values(), key=lambda one: one.ranks)
    place = step + next(place for place, one in enumerate(by_ranks) if one is case)
    return by_ranks[place] if 0 <= place < len(by_ranks) else None


def _on_other_ranks(
    criterion: str,
    own: CaseCurves,
    other: CaseCurves,
    compared: ComparedCases,
    settings: Above,
    words: Callable[[Ratio], str],
    advice: str,
    explained: float = 1.0,
) -> Finding:
    several = ratios(own, other, other.where, settings, explained)
    if not several:
        raise CannotJudgeError(f"it has no size in common with {other.where}")

    def took(one: Ratio) -> str:
        return f"{one.size} bytes took {one.times_us[0]:.4g} µs, {words(one)}"

    return compared.weighed(_finding(criterion, own.where, several, settings, took, advice))


def _of_all(size: int, ranks: int) -> int:
    return size * ranks


def _part(size: int, ranks: int) -> int | None:
    return size // ranks if size % ranks == 0 else None


@dataclass(frozen=True)
class Call:
    """A call that does a part of the work.

    ``size``: its message in bytes, from the judged operation's message and the ranks, or None;
    ``times``: how many follow each other, from the ranks and the ranks on a node.
    """

    operation: str
    size: Callable[[int, int], int | None] = lambda size, ranks: size
    times: Callable[[int, int], int] = lambda ranks, a_node: 1


# Messages as IMB and OMB count them: Allgather, Gather, Scatter and Alltoall by the part of a rank.
_MESSAGE = "Sendrecv"
_RING = Call(_MESSAGE, times=lambda ranks, a_node: ranks - 1)
# To all others, or of a node's ranks over its link if more: in Sendrecv one leaves a node.
_EACH = Call(_MESSAGE, times=lambda ranks, a_node: max(ranks - 1, a_node * (ranks - a_node)))
# The steps of an exchange that doubles what each rank has.
_DOUBLING = Call(_MESSAGE, times=lambda ranks, a_node: (ranks - 1).bit_length())
GUIDELINES: dict[str, dict[str, tuple[Call, ...]]] = {
    "Allreduce": {
        "Reduce + Bcast": (Call("Reduce"), Call("Bcast")),
        "Reduce_scatter + Allgather": (Call("Reduce_scatter"), Call("Allgather", _part)),
    },
    "Allgather": {
        "Gather + Bcast": (Call("Gather"), Call("Bcast", _of_all)),
        "Alltoall": (Call("Alltoall"),),
        "a Sendrecv for each other rank": (_RING,),
    },
    "Alltoall": {"a Sendrecv for each message of a rank or a node": (_EACH,)},
    "Bcast": {
        "Scatter + Allgather": (Call("Scatter", _part), Call("Allgather", _part)),
        "a Sendrecv for each step of a tree": (_DOUBLING,),
    },
    "Gather": {"Allgather": (Call("Allgather"),)},
    "Reduce": {"Allreduce": (Call("Allreduce"),)},
    "Reduce_scatter": {
        "Reduce + Scatter": (Call("Reduce"), Call("Scatter", _part)),
        "Allreduce": (Call("Allreduce"),),
    },
    "Scatter": {"Bcast": (Call("Bcast", _of_all),)},
}
"""Calls that do an operation's work: by operation, a name for the other side, and its calls."""


def others(function: str) -> tuple[str, ...]:
    """Return the operations that a guideline on this one needs measured in the same job."""
    sides = GUIDELINES.get(function, {}).values()
    return tuple(dict.fromkeys(call.operation for calls in sides for call in calls))


def guidelines(case: CaseCurves, settings: Above, *, messages: bool) -> Finding | None:
    """Return the largest ratio of a collective's time to that of calls that do its work.

    ``messages``: compare with single messages, and else with other collectives. A size fails where
    the whole interval is above the bound. None where no guideline has all of its calls measured.
    """
    sides = {
        name: calls
        for name, calls in GUIDELINES.get(case.operation, {}).items()
        if all(call.operation in case.others for call in calls)
        and messages == all(call.operation == _MESSAGE for call in calls)
    }
    if not sides:
        return None
    compared = _met(case, sides, settings)
    if not compared:
        raise CannotJudgeError("it has no size in common with what does its work")
    return _finding(
        BY_MESSAGES if messages else BY_CALLS,
        case.where,
        compared,
        settings,
        lambda worst: (
            f"{case.operation} of {worst.size} bytes took {worst.times_us[0]:.4g} µs,"
            f" {worst.value:.3g} times{in_brackets(interval_in_words(worst.interval))} the"
            f" {worst.times_us[1]:.4g} µs of {worst.label}, which does its work"
        ),
        "look at which algorithm the library takes at that size, and at what its pattern meets",
    )


def _met(case: CaseCurves, sides: Mapping[str, Sequence[Call]], settings: Above) -> list[Ratio]:
    """Return the ratio of an operation to each side of its guidelines, at each common size."""
    operation, placed = case.operation, (case.ranks, case.ranks_per_node)
    several = {**case.others, operation: case}
    needed = dict.fromkeys(
        (operation, *(call.operation for each in sides.values() for call in each))
    )
    medians = {name: times_of(several[name].curve, settings, of=f"of {name}, ") for name in needed}
    by_launch = {
        name: [times_or_reason(one, settings)[0] for one in several[name].launches]
        for name in needed
    }
    compared = []
    for name, calls in sides.items():
        used = list(dict.fromkeys(call.operation for call in calls))
        # The first launches of all operations together, the second ones, and so on.
        rows = zip(*(by_launch[one] for one in used), strict=False)
        launched = [dict(zip(used, row, strict=True)) for row in rows]
        for size, time in medians[operation].items():
            expected = _time(calls, medians, size, placed)
            if expected is None:
                continue
            own = by_launch[operation]
            taken = [at[size] for at in own if size in at]
            spent = [us for at in launched if (us := _time(calls, at, size, placed)) is not None]
            whole = len(taken) == len(own) and len(spent) == len(launched)
            interval = intervals.of_ratio(taken, spent) if whole else None
            level, bound = settings.level(time / expected, interval)
            times = (time, expected)
            compared.append(Ratio(size, time / expected, name, times, interval, level, bound))
    return compared


def _time(
    calls: Iterable[Call], at: Mapping[str, Mapping[int, float]], size: int, placed: tuple[int, int]
) -> float | None:
    """Return the time of all calls, for a message of the operation; None where a size is missing.

    ``placed``: ranks, and ranks on a node.
    """
    total = 0.0
    for call in calls:
        message = call.size(size, placed[0])
        time = None if message is None else at[call.operation].get(message)
        if time is None:
            return None
        total += call.times(*placed) * time
    return total


def _rests_on(operation: str, finding: Finding) -> tuple[str, ...]:
    calls = GUIDELINES.get(operation, {}).get(finding.against or "", ())
    return tuple(call.operation for call in calls)


_of_calls = partial(Criterion, of_launches=True, others=others, rests_on=_rests_on)
_on_more_ranks = partial(
    Criterion,
    group=lambda case: (
        (*case.configuration, *case.function[:2]) if case.on_link and case.has_sizes else None
    ),
)

CRITERIA = (
    _of_calls(
        BY_CALLS,
        "guideline",
        GUIDELINE,
        partial(guidelines, messages=False),
        sets=("warn", "fail", "least_size"),
    ),
    _of_calls(
        BY_MESSAGES,
        "guideline_messages",
        GUIDELINE,
        partial(guidelines, messages=True),
        sizes_of="guideline",
    ),
    Criterion(
        "agreement",
        "agreement",
        AGREEMENT,
        compare=agreement,
        sets=("fail",),
        group=lambda case: (
            case.configuration
            if case.ping_pong and case.function[3:] == ("inter-node", "oneway")
            else None
        ),
    ),
    _on_more_ranks("growth", "growth", GROWTH, compare=growth),
    _on_more_ranks("monotony", "growth", GROWTH, compare=monotony),
)
