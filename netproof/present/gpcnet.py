"""GPCNeT's congestion impact factors, in words, as a table, and as plain values."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from rich.console import Console

from netproof.congestion.gpcnet import TIME, GpcnetImpacts, GpcnetRuns
from netproof.present.load import factor_in_words, worst
from netproof.present.tables import DataTable, print_answer
from netproof.present.wording import counted


def print_gpcnet(runs: GpcnetRuns, found: GpcnetImpacts, out: Console) -> None:
    """Print the worst factor of a mean, a line for each test, and which rounds do not count."""
    means = [
        (value, f"{one.name} is {value:.3g} times worse alongside the congestors")
        for one in found.impacts
        if (value := one.mean.value) is not None
    ]
    remarks = []
    outputs = [one.output for one in runs.rounds if one.output is not None]
    if outputs:
        remarks.append(
            f"GPCNeT {outputs[0].version} on {len(runs.nodes)} nodes, {outputs[0].nodes_of_tests}"
            f" of them for its tests; {counted(len(runs.rounds), 'round')}, {found.rounds} of them"
            " usable. A factor is the median over rounds, with its 95 % interval."
        )
    whys = [
        f"{one.name}: {factor.why}"
        for one in found.impacts
        for factor in (one.mean, one.tail)
        if factor.why
    ]
    remarks += [f"Not known: {why}." for why in dict.fromkeys(whys)]
    remarks += [f"Does not count: {why}." for why in found.refused]
    rows = []
    for one in found.impacts:
        means_of_test = f"{one.alone:.4g} → {one.alongside:.4g}"
        unit = "µs" if one.unit == TIME else one.unit
        factors = (factor_in_words(one.mean), factor_in_words(one.tail))
        rows.append((one.name, *factors, f"{means_of_test} {unit}"))
    head = ("test", "mean", "99th percentile", "mean, alone → alongside")
    answer = {
        "conclusion": [worst(found, means)],
        "style": "red" if found.beyond() else "yellow" if found.undecided() else "",
        "settings": {},
        "table": DataTable(head, rows) if rows else None,
        "remarks": remarks,
    }
    print_answer(f"{runs.system}:{runs.partition} {runs.environment}, GPCNeT", answer, out)


def document(several: Sequence[tuple[GpcnetRuns, GpcnetImpacts]]) -> dict[str, Any]:
    """Return plain values for ``json``: each session with its factors."""
    return {
        "gpcnet": [
            {
                "system": runs.system,
                "partition": runs.partition,
                "environment": runs.environment,
                "nodes": runs.nodes,
                "rounds": found.rounds,
                "refused": found.refused,
                "beyond": found.beyond(),
                "undecided": found.undecided(),
                "tests": [dataclasses.asdict(one) for one in found.impacts],
            }
            for runs, found in several
        ]
    }
