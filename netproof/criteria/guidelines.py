"""Criterion 17: whether a collective takes longer than calls of the same library that do its work.

After Träff, Gropp and Thakur, "Self-consistent MPI performance guidelines", IEEE TPDS 21 (2010). No
reference is needed, and no other configuration: the library is compared with itself, in one job.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from netproof.criteria.findings import (
    AtSize,
    Bounds,
    Finding,
    Level,
    common_sizes,
    finding_at,
    undefined,
)
from netproof.criteria.interface import CaseCurves, Companion, Criterion
from netproof.criteria.points import times_of
from netproof.measurement import interval as intervals
from netproof.measurement.curve import Curve


@dataclass(frozen=True)
class GuidelineSettings(Bounds):
    """``warn`` and ``fail`` above this multiple of what the library's other calls take.

    Libraries break guidelines by small factors in many places, since they choose an algorithm by
    tables. An order of magnitude is no choice any more.
    """

    warn: float | None = 4.0
    fail: float | None = 10.0
    reached: ClassVar[Callable[[float, float], bool]] = operator.gt


def _same(size: int, _: int) -> int:
    return size


def _of_all(size: int, ranks: int) -> int:
    return size * ranks


def _part(size: int, ranks: int) -> int | None:
    return size // ranks if size % ranks == 0 else None


def _steps(ranks: int, _: int) -> int:
    """Return the steps of an exchange that doubles what each rank has."""
    return (ranks - 1).bit_length()


@dataclass(frozen=True)
class Call:
    """A call that does a part of the work.

    ``size``: its message in bytes, from the judged operation's message and the ranks; None where no
    such message exists. ``times``: how many follow each other, from the ranks and the ranks on a
    node.
    """

    operation: str
    size: Callable[[int, int], int | None] = _same
    times: Callable[[int, int], int] = lambda ranks, a_node: 1


def _to_each(ranks: int, a_node: int) -> int:
    """Return the messages of a rank to all others, or of a node's ranks over its link, if more.

    In Sendrecv one message leaves a node, however many ranks it has.
    """
    return max(ranks - 1, a_node * (ranks - a_node))


# Messages as IMB and OMB count them: Allgather, Gather, Scatter and Alltoall by the part of a rank.
_MESSAGE = "Sendrecv"
_RING = Call(_MESSAGE, times=lambda ranks, a_node: ranks - 1)
_EACH = Call(_MESSAGE, times=_to_each)
_DOUBLING = Call(_MESSAGE, times=_steps)
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


BY_CALLS, BY_MESSAGES = "guideline", "guideline of messages"
"""Names of findings: a collective compared with others, and with single messages."""


def others(function: str) -> tuple[str, ...]:
    """Return the operations that a guideline on this one needs measured in the same job."""
    sides = GUIDELINES.get(function, {}).values()
    return tuple(dict.fromkeys(call.operation for calls in sides for call in calls))


def guidelines(
    curve: Curve,
    launches: Sequence[Curve],
    alongside: Mapping[str, Companion],
    *,
    operation: str,
    ranks: int,
    where: str,
    ranks_per_node: int = 1,
    settings: GuidelineSettings = GuidelineSettings(),
    messages: bool = False,
) -> Finding | None:
    """Return the largest ratio of a collective's time to that of calls that do its work.

    A pure number; at most 1 where the library meets the guideline. ``curve``, ``launches``: of the
    ``operation`` on so many ``ranks``, of whom ``ranks_per_node`` share a node's link;
    ``alongside``: other operations of the same configuration and ranks, by name; ``messages``:
    compare with single messages, which no choice of algorithm slows down, and else with other
    collectives. A size fails where the whole interval of its ratio is above the bound. None where
    no guideline has all of its calls measured.
    """
    placed = (ranks, ranks_per_node)
    sides = {
        name: calls
        for name, calls in GUIDELINES.get(operation, {}).items()
        if all(call.operation in alongside for call in calls)
        and messages == all(call.operation == _MESSAGE for call in calls)
    }
    if not sides:
        return None
    criterion = BY_MESSAGES if messages else BY_CALLS
    read = {operation: times_of(curve, settings)}
    read |= {call: times_of(one.curve, settings) for call, one in alongside.items()}
    for calls in sides.values():
        for name in (operation, *(call.operation for call in calls)):
            if read[name].fault is not None:
                return undefined(criterion, where, f"of {name}, {read[name].fault}")
    own = [times_of(one, settings).at for one in launches]
    theirs = {
        name: [times_of(one, settings).at for one in each.launches]
        for name, each in alongside.items()
    }
    medians = {name: points.at for name, points in read.items()}
    compared = []
    for name, calls in sides.items():
        launched = _side_by_side({call.operation: theirs[call.operation] for call in calls})
        for size, time in read[operation].at.items():
            expected = _time(calls, medians, size, placed)
            if expected is None:
                continue
            spent = [_time(calls, at, size, placed) for at in launched]
            taken = [at.get(size) for at in own]
            interval = None
            if None not in spent and None not in taken:
                interval = intervals.of_ratio(taken, spent)
            ratio = AtSize(size, time / expected)
            compared.append(_Compared(ratio, name, time, expected, interval))
    if not compared:
        return undefined(criterion, where, "it has no size in common with what does its work")
    failing = [
        one for one in compared if settings.level(one.at.value, one.interval)[0] is Level.FAIL
    ]
    worst = max(failing or compared, key=lambda one: one.at.value)
    level, bound = settings.level(worst.at.value, worst.interval)
    spoken = ""
    if worst.interval is not None:
        spoken = f" (95% interval {worst.interval[0]:.3g} to {worst.interval[1]:.3g})"
    found = finding_at(
        criterion,
        level,
        bound,
        where,
        worst.at,
        f"{operation} of {worst.at.size} bytes took {worst.time_us:.4g} µs,"
        f" {worst.at.value:.3g} times{spoken} the {worst.expected_us:.4g} µs of {worst.by}, which"
        " does its work",
        "look at which algorithm the library takes at that size, and at what its pattern meets",
    )
    sizes = sorted({one.at.size for one in compared})
    return replace(found, against=worst.by, interval=worst.interval, common=common_sizes(sizes))


@dataclass(frozen=True)
class _Compared:
    """An operation compared with one side of a guideline, ``by``, at a size; times in µs."""

    at: AtSize
    by: str
    time_us: float
    expected_us: float
    interval: tuple[float, float] | None


def _side_by_side(
    several: Mapping[str, Sequence[Mapping[int, float]]],
) -> list[dict[str, Mapping[int, float]]]:
    """Return the first launches of all operations together, the second ones, and so on."""
    rows = zip(*several.values(), strict=False)
    return [dict(zip(several, row, strict=True)) for row in rows]


def _time(
    calls: Sequence[Call], at: Mapping[str, Mapping[int, float]], size: int, placed: tuple[int, int]
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


def _judge(case: CaseCurves, settings: Any) -> tuple[Finding, ...]:
    several = (
        guidelines(
            case.curve,
            case.launches,
            case.others,
            operation=case.operation,
            ranks=case.ranks,
            where=case.where,
            ranks_per_node=case.ranks_per_node,
            settings=bounds,
            messages=messages,
        )
        for bounds, messages in ((settings.guideline, False), (settings.guideline_messages, True))
    )
    return tuple(found for found in several if found is not None)


def _rests_on(operation: str, finding: Finding) -> tuple[str, ...]:
    calls = GUIDELINES.get(operation, {}).get(finding.against or "", ())
    return tuple(call.operation for call in calls)


CRITERION = Criterion(
    17,
    {"guideline": GuidelineSettings(), "guideline_messages": GuidelineSettings()},
    {BY_CALLS: "guideline", BY_MESSAGES: "guideline_messages"},
    _judge,
    of_launches=True,
    others=others,
    rests_on=_rests_on,
)
