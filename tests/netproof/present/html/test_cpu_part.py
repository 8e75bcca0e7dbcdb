"""The part of a report on CPUs has a row for each case, and why others have none."""

from __future__ import annotations

import re
from types import SimpleNamespace

from netproof.measurement.case import Case
from netproof.measurement.cpu_use import NO_STARTS, NodeCost
from netproof.present import cpu
from netproof.present.html.html import render
from netproof.verdict.explain import cpu_rows

COST = NodeCost("gige-1", 1, 1, seconds=2.0, cpu_s=1.0, start_s=0.1, cores=0.5, s_per_gb=2.0)
UNKNOWN = NodeCost("gige-1", 1, 1, absent=(("cpu_s", NO_STARTS),))


def verdict(**costs: NodeCost) -> SimpleNamespace:
    """A verdict on NetPIPE between nodes, as far as the part looks at it."""
    cases = [
        SimpleNamespace(
            case=Case("testbed", "gige", "mpich", "netpipe", protocol, 2, 1, "between", "oneway"),
            measured=SimpleNamespace(cpu_costs=(cost,)),
        )
        for protocol, cost in costs.items()
    ]
    return SimpleNamespace(cases=cases)


def text(page: str) -> str:
    return " ".join(re.sub("<[^>]*>", " ", page).split())


def test_each_case_has_its_row_and_the_node_that_it_cost_most():
    view = cpu.view(cpu_rows(verdict(tcp=COST, mpi=COST)))
    assert [row[:5] for row in view["table"].rows] == [
        ("NetPIPE TCP between oneway", "gige", "mpich", "2", "gige-1"),
        ("NetPIPE MPI between oneway", "gige", "mpich", "2", "gige-1"),
    ]
    said = text(render("cpu.html", view=view))
    assert said.startswith("Of the node that it cost most, less starting and ending")
    assert NO_STARTS not in said


def test_why_others_are_not_known_stands_below():
    said = text(render("cpu.html", view=cpu.view(cpu_rows(verdict(tcp=COST, mpi=UNKNOWN)))))
    assert said.endswith(f"not known of 1 case: {NO_STARTS}")


def test_there_is_no_part_where_nothing_is_known():
    assert not cpu_rows(verdict(tcp=UNKNOWN)).rows
