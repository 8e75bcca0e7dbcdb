"""Consistency: guidelines, agreement of benchmarks, growth and monotony over ranks.

Guidelines are those of Träff, Gropp and Thakur, "Self-consistent MPI performance guidelines", IEEE
TPDS 21 (2010): a collective takes no longer than calls of the same library that do its work. No
reference is needed: the library is compared with itself, in one job.

NetPIPE over MPI, PingPong of IMB and latency of OMB send one message there and back, so that they
agree. On twice the ranks the messages on a node's link, or in a row from a rank, grow at most as
with the worst algorithm in use, and the time does not shrink: fewer ranks have less to do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from statistics import median
from typing import NamedTuple

from netproof.criteria.findings import (
    Above,
    CannotJudgeError,
    Finding,
    Level,
    in_common,
    over_common,
    then,
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


def _at_sizes(
    own: CaseCurves,
    other: CaseCurves,
    label: str,
    settings: Above,
    words: str,
    advice: str,
    explained: float = 1.0,
) -> tuple[dict[int, float], Callable[[int], Finding]]:
    """Return the ratio of times at each common size, and what words the finding on it.

    The ratio is divided by what is ``explained`` of it. An interval that contains a bound is shown,
    since no repeats would decide it. ``words``: a sentence's pattern. Raises
    CannotJudgeError where a curve cannot be read.
    """
    mine, theirs = settings.times(own.curve), settings.times(other.curve, of=f"of {label}, ")
    sizes = in_common((mine, theirs))
    values = {size: mine[size] / theirs[size] / explained for size in sizes}

    def of_size(size: int) -> Finding:
        value = values[size]
        level, bound, interval = Level.SHOWN, None, None
        times = own.times_at[size], other.times_at[size]
        if min(map(len, times)) >= LAUNCHES:
            interval = intervals.of_ratio(*times)
        if interval is not None:
            interval = (interval[0] / explained, interval[1] / explained)
            level, bound = settings.level(value, interval)
        if level is Level.INCONCLUSIVE:
            level = Level.SHOWN if value > (bound or 0) else settings.level(value)[0]
        reason = words.format(
            size=size,
            own=mine[size],
            theirs=theirs[size],
            label=label,
            value=value,
            times=mine[size] / theirs[size],
            explained=explained,
        )
        if interval is None:
            reason += f" (no interval, which takes {LAUNCHES} launches of both)"
        return settings.finding(
            value,
            reason,
            advice,
            interval=interval,
            decided=(level, bound),
            size=size,
            common=sizes,
            against=label,
        )

    return values, of_size


def agreement(case: CaseCurves, compared: ComparedCases, settings: Above) -> Finding | None:
    """Return the largest ratio of a benchmark's time to another's for the same message.

    A size fails where the whole interval is above the bound; all sizes together by the median of
    their ratios, which is inconclusive with too few launches. None without another benchmark.
    """
    others = {label: one for label, one in compared.cases.items() if one is not case}
    if not others:
        return None
    words = (
        "a message of {size} bytes took {own:.4g} µs, {value:.3g} times the"
        " {theirs:.4g} µs of {label}, which sends the same"
    )
    of_all: list[Finding] = []
    together: list[Finding] = []
    for label, other in others.items():
        values, of_size = _at_sizes(case, other, label, settings, words, _DISAGREE)
        of_all += map(of_size, values)
        together += _over_sizes(case, other, label, [*values], settings)
    if not of_all:
        raise CannotJudgeError("no other benchmark has a size in common with it")
    flagged = [one for one in together if one.level is Level.FAIL]
    if not flagged and not any(one.level is Level.FAIL for one in of_all):
        flagged = together
    worst = max(flagged or of_all, key=lambda one: (one.level is Level.FAIL, one.value or 0))
    if not flagged:
        worst = worst.but(common=tuple(sorted({one.size or 0 for one in of_all})))
    return compared.weighed(case, worst)


def _over_sizes(
    own: CaseCurves, other: CaseCurves, label: str, sizes: Sequence[int], settings: Above
) -> Iterator[Finding]:
    """Yield the finding on the median ratio of two benchmarks over all sizes, if it is flagged.

    Where a side has few launches, its interval is over sizes, and it is inconclusive.
    """
    if not sizes:
        return
    interval = None
    mine, theirs = settings.times(own.curve), settings.times(other.curve)
    if min(len(own.launches), len(other.launches)) < LAUNCHES:
        values = [mine[size] / theirs[size] for size in sizes]
        ratio = median(values)
        if len(values) >= intervals.FEWEST_RANKED:
            interval = intervals.of_median(values)
        level, over = Level.INCONCLUSIVE, "sizes"
        advice = f"measure it again: to be sure takes {LAUNCHES} launches of both"
    else:
        # Each launch's median ratio to the other side's median curve.
        of_launches = [
            [
                median(
                    time / theirs[size]
                    for size, time in zip(launch.sizes, launch.time_us, strict=True)
                    if size in sizes
                )
                for launch in side.launches
            ]
            for side in (own, other)
        ]
        ratio = median(of_launches[0]) / median(of_launches[1])
        interval = intervals.of_ratio(*of_launches)
        level, over, advice = Level.FAIL, "launches", _DISAGREE
    if interval is None or settings.level(ratio, interval)[0] is not Level.FAIL:
        return
    bound = settings.fail
    reason = (
        f"{over_common(sizes)} a message took {ratio:.3g} times what it took by {label}, which"
        f" sends the same (flagged above {bound:g}). 95% interval over {over} {interval[0]:.3g} to"
        f" {interval[1]:.3g}{then(advice)}"
    )
    found = Finding("", level, "", reason, value=ratio, bound=bound, interval=interval)
    yield replace(found, common=tuple(sizes), against=label)


def growth(case: CaseCurves, compared: ComparedCases, settings: Above) -> Finding | None:
    """Return how much a collective's time grows from the next fewer ranks, over what these explain.

    A size fails where the whole interval is above the bound. None on the fewest ranks, and where it
    is not known where ranks ran: out of a node, times grow by any factor.
    """
    if not case.ranks_per_node:
        return None
    return _on_other_ranks(
        case,
        compared,
        -1,
        settings,
        "{times:.3g} times the {theirs:.4g} µs of {label}. Its ranks explain {explained:.3g} times,"
        " which leaves {value:.3g} times",
        "look at congestion, at which algorithm the library takes on so many ranks, and at whether"
        " there are as many CPUs as ranks",
    )


def monotony(case: CaseCurves, compared: ComparedCases, settings: Above) -> Finding | None:
    """Return the largest ratio of a collective's time to that on the next more ranks.

    At most 1 where time does not fall when ranks are added. A size fails as in ``growth``. None on
    the most ranks.
    """
    return _on_other_ranks(
        case,
        compared,
        1,
        settings,
        "{value:.3g} times the {theirs:.4g} µs of {label}, which has more to do",
        "look at the nodes of that job, and at which algorithm the library takes on few ranks",
    )


def _on_other_ranks(
    own: CaseCurves, compared: ComparedCases, step: int, settings: Above, words: str, advice: str
) -> Finding | None:
    """Compare a case with that which comes a ``step`` later in the order of ranks, if there is."""
    by_ranks = sorted(compared.cases.values(), key=lambda one: one.ranks)
    place = step + next(place for place, one in enumerate(by_ranks) if one is own)
    if not 0 <= place < len(by_ranks):
        return None
    other, explained = by_ranks[place], 1.0
    if step < 0:
        # Of its work on a link, or of a rank to all others.
        work = own.on_link / other.on_link, (own.ranks - 1) / (other.ranks - 1)
        explained = max(1.0, *work)
    words = f"{{size}} bytes took {{own:.4g}} µs, {words}"
    values, of_size = _at_sizes(own, other, other.where, settings, words, advice, explained)
    if not values:
        raise CannotJudgeError(f"it has no size in common with {other.where}")
    return compared.weighed(own, settings.worst(values, of_size))


def _of_all(size: int, ranks: int) -> int:
    return size * ranks


def _part(size: int, ranks: int) -> int | None:
    return size // ranks if size % ranks == 0 else None


class Call(NamedTuple):
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
    operation, placed = case.operation, (case.ranks, case.ranks_per_node)
    sides = {
        name: calls
        for name, calls in GUIDELINES.get(operation, {}).items()
        if all(call.operation in case.others for call in calls)
        and messages == all(call.operation == _MESSAGE for call in calls)
    }
    if not sides:
        return None
    several = {**case.others, operation: case}
    needed = {operation, *(call.operation for each in sides.values() for call in each)}
    medians = {name: settings.times(several[name].curve, of=f"of {name}, ") for name in needed}
    by_launch = {
        name: [settings.times_or_reason(one)[0] for one in several[name].launches]
        for name in needed
    }
    times = medians[operation]
    expected = {
        (name, size): us
        for name, calls in sides.items()
        for size in times
        if (us := _time(calls, medians, size, placed)) is not None
    }
    if not expected:
        raise CannotJudgeError("it has no size in common with what does its work")
    values = {(name, size): times[size] / us for (name, size), us in expected.items()}

    def of_size(at: tuple[str, int]) -> Finding:
        name, size = at
        used = list(dict.fromkeys(call.operation for call in sides[name]))
        # The first launches of all operations together, the second ones, and so on.
        rows = zip(*(by_launch[one] for one in used), strict=False)
        each = (dict(zip(used, row, strict=True)) for row in rows)
        spent = [_time(sides[name], one, size, placed) or 0.0 for one in each]
        # None where a launch lacks a size, which took no time.
        interval = intervals.of_ratio([one.get(size, 0.0) for one in by_launch[operation]], spent)
        return settings.finding(
            values[at],
            f"{operation} of {size} bytes took {times[size]:.4g} µs, {values[at]:.3g}"
            f" times the {expected[at]:.4g} µs of {name}, which does its work",
            "look at which algorithm the library takes at that size, and at what its pattern meets",
            interval=interval,
            size=size,
            common=tuple(sorted({size for _, size in values})),
            against=name,
        )

    return settings.worst(values, of_size)


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


_of_calls = partial(
    Criterion,
    of_launches=True,
    others=others,
    rests_on=lambda operation, finding: [
        call.operation for call in GUIDELINES.get(operation, {}).get(finding.against or "", ())
    ],
)
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
