"""The tables of docs/validation/pair-rounds.md."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

from scipy.special import betaincinv

from ci.pair_power.portions import NODES, SLOWER, Portion
from ci.pair_power.rounds import HEALTHY, Fault


def clopper_pearson(hits: int, runs: int) -> tuple[float, float]:
    """Return the exact 95 % interval of a share (Clopper and Pearson, Biometrika 26, 1934)."""
    low = 0.0 if not hits else float(betaincinv(hits, runs - hits + 1, 0.025))
    high = 1.0 if hits == runs else float(betaincinv(hits + 1, runs - hits, 0.975))
    return low, high


def needed(rounds: Sequence[int | None], share: float = 0.99) -> int | None:
    """Return the rounds after which a share of the runs were there; None: never."""
    ordered = sorted(math.inf if number is None else number for number in rounds)
    last = ordered[math.ceil(share * len(ordered)) - 1]
    return None if math.isinf(last) else int(last)


def tables(found: dict[str, dict[str, Any]]) -> Iterator[str]:
    """Yield the lines of the tables of docs/validation/pair-rounds.md."""
    yield from _of_detection(found)
    yield from _of_false(found)
    yield from _of_pairs(found)


def _row(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def _head(*cells: str) -> Iterator[str]:
    yield ""
    yield _row(*cells)
    yield _row(*["---"] * len(cells))


def cell(result: dict[str, Any] | None) -> str:
    """Return the rounds until 99 % are found and until 99 % are right, or the share ever so."""
    if result is None:
        return "not simulated"
    parts = []
    for what in ("found", "right"):
        rounds = needed(result[what])
        share = sum(number is not None for number in result[what]) / len(result[what])
        parts.append(f"never ({100 * share:.0f} %)" if rounds is None else str(rounds))
    return parts[0] if parts[0] == parts[1] else " / ".join(parts)


def _of_detection(found: dict[str, dict[str, Any]]) -> Iterator[str]:
    slower = [f"slower by {100 * share:.0f} %" for share in SLOWER]
    yield from _head("noise", "slow", "nodes", *slower, "runs", "runs that accused others", "seeds")
    faults = [("node", 1), ("node", 2), ("node", 5), ("uplink", 1)]
    for which, (kind, count), nodes in itertools.product(("normal", "recorded"), faults, NODES):
        several = [
            found.get(Portion("random", nodes, Fault(kind, count, share), which, 0).name)
            for share in SLOWER
        ]
        there = [result for result in several if result is not None]
        if there:
            yield _row(
                which,
                Fault(kind, count, 0.5).words,
                f"{nodes:,}",
                *map(cell, several),
                ", ".join(str(len(result["found"])) for result in there),
                sum(result["wrong"] for result in there),
                _seeds(there),
            )


def _seeds(several: Sequence[dict[str, Any]]) -> str:
    """Return the common parts of the runs' seeds; a star where they differ."""
    columns = zip(*(result["seed"] for result in several), strict=True)
    return " ".join(str(column[0]) if len({*column}) == 1 else "*" for column in columns)


def _of_false(found: dict[str, dict[str, Any]]) -> Iterator[str]:
    yield from _head(
        "noise",
        "nodes",
        "healthy runs",
        "that accused anyone",
        "share, 95 %",
        "all cleared after",
        "never",
        "seeds",
    )
    for which, nodes in itertools.product(("normal", "disturbed", "recorded"), NODES):
        result = found.get(Portion("random", nodes, HEALTHY, which, 0).name)
        if result is not None:
            runs = len(result["cleared"])
            low, high = clopper_pearson(result["wrong"], runs)
            cleared = sorted(number for number in result["cleared"] if number is not None)
            middle = f"{cleared[len(cleared) // 2]} rounds" if cleared else "-"
            yield _row(
                which,
                f"{nodes:,}",
                f"{runs:,}",
                result["wrong"],
                f"{100 * low:.3f} to {100 * high:.3f} %",
                middle,
                f"{100 * (1 - len(cleared) / runs):.0f} %",
                _seeds([result]),
            )


def _of_pairs(found: dict[str, dict[str, Any]]) -> Iterator[str]:
    slower = [f"slower by {100 * share:.0f} %" for share in SLOWER]
    yield from _head("noise", "nodes", *slower, "runs", "runs that accused others", "seeds")
    for which, nodes in itertools.product(("normal", "recorded"), NODES):
        several = [
            found.get(Portion("quick", nodes, Fault("pair", 1, share), which, 0).name)
            for share in SLOWER
        ]
        there = [result for result in several if result is not None]
        if there:
            yield _row(
                which,
                f"{nodes:,}",
                *map(cell, several),
                ", ".join(str(len(result["found"])) for result in there),
                sum(result["wrong"] for result in there),
                _seeds(there),
            )
