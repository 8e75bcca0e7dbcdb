"""The table of CPU costs of cases: every figure, and what is not known."""

from __future__ import annotations

from types import SimpleNamespace

from made_text import printed

from netproof.measurement.case import Case
from netproof.measurement.disturbance import NO_STARTS, NodeCost
from netproof.present.session import cpu_blocks as blocks
from netproof.present.session import cpu_figures
from netproof.verdict.verdict import cpu_rows

TCP = Case("testbed", "gige", "mpich", "netpipe", "tcp", 2, 2, "intra-node", "oneway")
COST = NodeCost(
    "gige-1",
    ranks=2,
    sharing=2,
    seconds=2.0,
    cpu_s=1.0,
    user_s=0.25,
    system_s=0.75,
    start_s=0.1,
    cores=0.5,
    interrupts_s=0.5,
    asleep_share=0.4,
    slept_per_message=0.5,
    s_per_gb=2.0,
    us_per_message=30.0,
)


def test_every_figure_is_in_its_column():
    said = printed(blocks((((TCP, COST, 3.5),), {})))
    (row,) = (line.split() for line in said.splitlines() if line.startswith("gige"))
    assert row[:7] == ["gige", "mpich", "NetPIPE", "tcp", "intra-node", "oneway", "2"]
    assert row[7:] == ["gige-1", "0.50", "25%", "0.25*", "40%", "2", "30", "3.50", "times"]


def test_what_is_not_known_is_a_dash_and_its_reason_is_counted():
    bare = NodeCost("n1", 1, 1, seconds=1.0, cpu_s=0.5, start_s=0.1, cores=0.5)
    assert set(cpu_figures(bare).values()) == {"0.50", "-"}
    said = printed(blocks((((TCP, bare, None),), {"nobody looked": 3})))
    assert "not known of 3 cases: nobody looked" in said


UNKNOWN = NodeCost("gige-1", 1, 1, absent={"cpu_s": NO_STARTS})


def verdict(**costs: NodeCost) -> SimpleNamespace:
    """A verdict on NetPIPE between nodes, as far as the part looks at it."""
    place = (2, 1, "inter-node", "oneway")
    cases = [
        SimpleNamespace(
            case=Case("testbed", "gige", "mpich", "netpipe", protocol, *place),
            measured=SimpleNamespace(cpu_costs=(cost,)),
        )
        for protocol, cost in costs.items()
    ]
    return SimpleNamespace(cases=cases)


def test_each_case_has_its_row_with_the_node_that_it_cost_most_and_why_others_have_none():
    table, remarks = blocks(cpu_rows(verdict(tcp=COST, mpi=COST)))
    assert [row[:5] for row in table.rows] == [
        ("gige", "mpich", f"NetPIPE {name} inter-node oneway", "2", "gige-1")
        for name in ("tcp", "mpi")
    ]
    (said,) = remarks.sentences
    assert said.startswith("Of the node that it cost most, less starting and ending")
    *_, remarks = blocks(cpu_rows(verdict(tcp=COST, mpi=UNKNOWN)))
    assert f"not known of 1 case: {NO_STARTS}" in remarks.sentences
    assert not cpu_rows(verdict(tcp=UNKNOWN))[0]
