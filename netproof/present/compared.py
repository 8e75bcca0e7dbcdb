"""A comparison of two sides, in words."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from netproof.benchmarks import registry
from netproof.comparison import comparison
from netproof.comparison.compared_case import Outcome
from netproof.comparison.comparison import ComparedSide, Comparison
from netproof.errors import NetproofError
from netproof.measurement.case import Case
from netproof.present.tables import benchmark_name

MARKS = {
    Outcome.FASTER: "▲",
    Outcome.SLOWER: "▼",
    Outcome.ALIKE: "=",
    Outcome.UNDECIDED: "?",
    Outcome.UNDEFINED: "-",
}

_MOST_OF_NODES = 12
"""Differences of nodes that are printed; another driver has dozens of settings of its own."""


def node_diffs(compared: Comparison) -> list[str]:
    """Return the differences of nodes, which show whether anything else changed."""
    try:
        found = comparison.differing(compared)
    except NetproofError as error:
        return [f"nodes: {error}"]
    sentences = [
        f"nodes: {what} {', '.join(first)} and {', '.join(second)}"
        for what, (first, second) in list(found.items())[:_MOST_OF_NODES]
    ]
    if len(found) > _MOST_OF_NODES:
        sentences.append(f"nodes: and {len(found) - _MOST_OF_NODES} more, which --json has")
    return sentences


def differences(compared: Comparison) -> list[str]:
    """Return the differences between both sides in the site's file."""
    return [
        f"{one.what} {_plain(one.first)} and {_plain(one.second)}"
        + ("" if one.cases == len(compared.cases) else f" ({one.cases} cases)")
        for one in compared.differences
    ]


def summary(compared: Comparison) -> str:
    """Return the overall result, in a sentence or two."""
    first, second = compared.first.name, compared.second.name
    counts = [
        f"{word} in {compared.count(outcome)}"
        for outcome, word in (
            (Outcome.FASTER, "faster"),
            (Outcome.SLOWER, "slower"),
            (Outcome.ALIKE, "no difference overall"),
            (Outcome.UNDECIDED, "no interval, of one launch,"),
            (Outcome.UNDEFINED, "no ratio"),
        )
        if compared.count(outcome)
    ]
    mean = compared.mean()
    over = "" if mean is None else f"; {mean:.3g} times as fast by the geometric mean"
    missing = len(compared.uncompared)
    others = f"; {missing} more are not in both" if missing else ""
    where = "".join(
        f". {name}: in most cases {', '.join(map(_span, mostly))}"
        for name, mostly in ((one.label, compared.mostly(one.name)) for one in registry.BENCHMARKS)
        if mostly
    )
    return (
        f"{second} against {first}, {len(compared.cases)} cases: {', '.join(counts)}{over}{others}"
        f"{where}{_latencies(compared)}"
    )


def _latencies(compared: Comparison) -> str:
    """Return what the second partition adds to NetPIPE's latency between two nodes."""
    first, second = compared.first, compared.second
    if first.partition == second.partition:
        return ""
    by_benchmark: dict[str, list[str]] = defaultdict(list)
    for one in compared.cases:
        case = one.first.case
        by_protocol = registry.of(case).by_protocol
        if not by_protocol or (case.path, case.direction) != ("between", "oneway"):
            continue
        sentence = one.latency(first.name, second.name)
        if sentence is not None:
            where = place(compared, case)
            by_benchmark[benchmark_name(case)].append(f"{where}: {sentence}" if where else sentence)
    return "".join(
        f". Latency of {name}: {'; '.join(sentences)}" for name, sentences in by_benchmark.items()
    )


def _span(mostly: tuple[int, int, bool]) -> str:
    least, largest, faster = mostly
    return f"{'faster' if faster else 'slower'} from {least} to {largest} bytes"


def whence(side: ComparedSide) -> str:
    """Return the origin of a side's figures: configuration, session, labels, start."""
    system = side.session.results[0].system
    where = " ".join(
        part
        for part in (
            f"{system}:{side.partition}" if side.partition else system,
            side.environment,
        )
        if part
    )
    labels = "".join(f", {key}={value}" for key, value in side.session.labels().items())
    started = side.session.info.get("time_start", "undated")
    return f"{where} of {side.session.path}, {started}{labels}"


def _plain(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(map(_plain, value))
    return "not said" if value is None else str(value)


def place(compared: Comparison, case: Case) -> str:
    """Return the part of the configuration that both sides have in common."""
    parts = (
        None if compared.first.partition else case.partition,
        None if compared.first.environment else case.environment,
    )
    return " ".join(part for part in parts if part)


def named(compared: Comparison, case: Case) -> str:
    """Return a case by what both sides have in common."""
    return f"{place(compared, case)} {case.what()}".strip()
