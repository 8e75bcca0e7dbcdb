"""GPCNeT's congestion impact factors, in words, as a table, and as plain values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from netproof.benchmarks.gpcnet import TIME
from netproof.experiments.gpcnet import GpcnetRuns
from netproof.experiments.load import LoadFindings, Statistic
from netproof.present.document import Block, Cell, DataTable, Sentences
from netproof.present.documents import some
from netproof.present.load import factor_document, factor_in_words, look_of, worst
from netproof.present.wording import counted


def answer(runs: GpcnetRuns, found: LoadFindings) -> tuple[str, list[Block]]:
    """Return the title, the worst factor of a mean, a row for each test, and remarks."""
    means = [
        (value, f"{one.victim} is {value:.3g} times worse alongside the congestors")
        for one in found.impacts
        if (value := one.factors[Statistic.MEAN].value) is not None
    ]
    remarks = []
    outputs = [one.output for one in runs.rounds if one.output is not None]
    if outputs:
        rounds = counted(len(runs.rounds), "round")
        remarks.append(
            f"GPCNeT {outputs[0].version} on {len(runs.nodes)} nodes, {outputs[0].nodes_of_tests}"
            f" of them for its tests; {rounds}, {_usable(found)} of them"
            " usable. A factor is the median over rounds, with its 95 % interval."
        )
    whys = [
        f"{one.victim}: {factor.why}"
        for one in found.impacts
        for factor in one.factors.values()
        if factor.why
    ]
    remarks += [f"Not known: {why}." for why in dict.fromkeys(whys)]
    remarks += [f"Does not count: {why}." for why in found.refused]
    rows = []
    for one in found.impacts:
        mean = one.factors[Statistic.MEAN]
        means_of_test = f"{mean.alone:.4g} → {mean.loaded:.4g}"
        unit = "µs" if one.unit == TIME else one.unit
        factors = map(factor_in_words, one.factors.values())
        rows.append((one.victim, *factors, f"{means_of_test} {unit}"))
    head = ("test", "mean", "99th percentile", "mean, alone → alongside")
    return f"{runs.system}:{runs.partition} {runs.environment}, GPCNeT", [
        Cell(worst(found, means), look_of(found.beyond, found.undecided)),
        DataTable(head, rows),
        Sentences(remarks),
    ]


def _usable(found: LoadFindings) -> int:
    return found.impacts[0].rounds if found.impacts else 0


def document(several: Sequence[tuple[GpcnetRuns, LoadFindings]]) -> dict[str, Any]:
    """Return plain values for ``json``: each session with its factors."""
    return {
        "gpcnet": [
            {
                **some(runs, "system", "partition", "environment", "nodes"),
                "rounds": _usable(found),
                **some(found, "refused", "beyond", "undecided"),
                "tests": [
                    {
                        "name": one.victim,
                        "unit": one.unit,
                        "alone": one.factors[Statistic.MEAN].alone,
                        "congested": one.factors[Statistic.MEAN].loaded,
                        "mean": factor_document(one.factors[Statistic.MEAN]),
                        "tail": factor_document(one.factors[Statistic.TAIL]),
                    }
                    for one in found.impacts
                ],
            }
            for runs, found in several
        ]
    }
