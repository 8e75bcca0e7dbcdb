"""GPCNeT's congestion impact factors, in words, as a table, and as plain values."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from rich.console import Console

from netproof.congestion.gpcnet import GpcnetImpact, GpcnetImpacts, GpcnetRuns
from netproof.congestion.gpcnet_output import TIME
from netproof.present.load import factor_in_words
from netproof.present.tables import TableColumn, print_table, say
from netproof.present.wording import counted


def name_of(runs: GpcnetRuns) -> str:
    """Return where it was run, and with what."""
    return f"{runs.system}:{runs.partition} {runs.environment}"


def conclusion(found: GpcnetImpacts) -> str:
    """Return the worst factor of a mean, and the result of the bounds."""
    known = [(one.mean.value, one.name) for one in found.impacts if one.mean.value is not None]
    if not known:
        return "nothing is known: too few rounds count"
    value, name = max(known)
    said = f"{name} is {value:.3g} times worse alongside the congestors"
    if found.beyond():
        return f"above the bound: {said}"
    return f"undecided: {said}" if found.undecided() else f"at worst {said}"


def head() -> tuple[str, ...]:
    """Return the titles of the columns of ``rows``."""
    return ("test", "mean", "99th percentile", "mean, alone → alongside")


def rows(found: GpcnetImpacts) -> list[tuple[str, ...]]:
    """Return a row for each test, as text."""
    return [
        (one.name, factor_in_words(one.mean), factor_in_words(one.tail), _means(one))
        for one in found.impacts
    ]


def _means(one: GpcnetImpact) -> str:
    unit = "µs" if one.unit == TIME else one.unit
    return f"{one.alone:.4g} → {one.alongside:.4g} {unit}"


def sentences(runs: GpcnetRuns, found: GpcnetImpacts) -> tuple[str, ...]:
    """Return how it was measured, what is not known, and which rounds do not count."""
    outputs = [one.output for one in runs.rounds if one.output is not None]
    lines = [
        f"GPCNeT {outputs[0].version} on {len(runs.nodes)} nodes, {outputs[0].nodes_of_tests} of"
        f" them for its tests; {counted(len(runs.rounds), 'round')}, {found.rounds} of them"
        " usable. A factor is the median over rounds, with its 95 % interval."
        for _ in outputs[:1]
    ]
    whys = [
        f"{one.name}: {factor.why}"
        for one in found.impacts
        for factor in (one.mean, one.tail)
        if factor.why
    ]
    lines += [f"Not known: {why}." for why in dict.fromkeys(whys)]
    return (*lines, *(f"Does not count: {why}." for why in found.refused))


def print_gpcnet(runs: GpcnetRuns, found: GpcnetImpacts, out: Console) -> None:
    """Print the conclusion, and a line for each test."""
    say(out, f"{name_of(runs)}, GPCNeT", "bold")
    say(out, conclusion(found), "red" if found.beyond() else "yellow" if found.undecided() else "")
    if found.impacts:
        columns = zip(head(), zip(*rows(found), strict=True), strict=True)
        print_table([TableColumn(title, list(cells), right=False) for title, cells in columns], out)
    for sentence in sentences(runs, found):
        say(out, sentence)


def document(several: Sequence[tuple[GpcnetRuns, GpcnetImpacts]]) -> dict[str, Any]:
    """Return plain values for ``json``: each session with its factors."""
    return {
        "gpcnet": [
            {
                "system": runs.system,
                "partition": runs.partition,
                "environment": runs.environment,
                "nodes": list(runs.nodes),
                "rounds": found.rounds,
                "refused": list(found.refused),
                "beyond": found.beyond(),
                "undecided": found.undecided(),
                "tests": [dataclasses.asdict(one) for one in found.impacts],
            }
            for runs, found in several
        ]
    }
