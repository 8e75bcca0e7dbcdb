"""CPU costs of cases: without starting and ending, and over those of TCP."""

from __future__ import annotations

from pathlib import Path
from statistics import median

import pytest
from made_starts import BYTES, START, with_starts

from netproof.measurement.cpu_use import NO_STARTS
from netproof.session import session
from netproof.verdict import judging
from netproof.verdict.explain import CpuRow, CpuRows, cpu_rows
from netproof.verdict.verdict import Judged, Verdict

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(autouse=True)
def settings(monkeypatch):
    """The project's sites."""
    monkeypatch.setenv("RFM_CONFIG_PATH", str(ROOT / "site-config"))


def judged(path: Path) -> Verdict:
    return judging.judge_session(session.load(path), system="testbed:gige").verdict


def of(rows: CpuRows, environment: str, function: str) -> CpuRow:
    (found,) = (
        row
        for row in rows.rows
        if (row.case.environment, row.case.function) == (environment, function)
    )
    return found


def case_of(verdict: Verdict, environment: str, function: str) -> Judged:
    (found,) = (
        one
        for one in verdict.cases
        if (one.case.environment, one.case.function) == (environment, function)
        and one.measured is not None
    )
    return found


@pytest.mark.slow
def test_mpi_stands_alongside_tcp_of_the_same_ranks(tmp_path):
    rows = cpu_rows(judged(with_starts("sick", tmp_path)))
    assert rows.unknown == {}
    tcp, mpi = (of(rows, "mpich", protocol) for protocol in ("tcp", "mpi"))
    assert tcp.of_tcp is None
    assert mpi.of_tcp == pytest.approx(mpi.cost.s_per_gb / tcp.cost.s_per_gb)


@pytest.mark.slow
def test_a_row_is_of_the_node_that_a_case_cost_most(tmp_path):
    verdict = judged(with_starts("sick", tmp_path))
    measured = case_of(verdict, "mpich", "tcp").measured
    by_node: dict[str, list[float]] = {}
    for launch in measured.launches:
        for use in launch.ranks:
            by_node.setdefault(use.node, []).append(use.cpu_s)
    most = max(by_node, key=lambda node: median(by_node[node]))
    cost = of(cpu_rows(verdict), "mpich", "tcp").cost
    assert cost.node == most
    assert cost.cpu_s == pytest.approx(median(by_node[most]) - START["cpu_s"])
    # Two nodes, and each byte leaves one and arrives at the other.
    assert cost.s_per_gb == pytest.approx(cost.cpu_s * 1e9 / BYTES)


@pytest.mark.slow
def test_what_is_not_known_is_counted_by_its_reason(tmp_path):
    rows = cpu_rows(judged(with_starts("sick", tmp_path, "mpi")))
    assert {row.case.function for row in rows.rows} == {"mpi"}
    assert {row.of_tcp for row in rows.rows} == {None}, "that of TCP is not known"
    (why,) = rows.unknown
    assert why == NO_STARTS


@pytest.mark.slow
def test_the_finding_says_whether_starting_and_ending_is_in_it(tmp_path):
    costs = {}
    for name, path in (
        ("with", with_starts("sick", tmp_path)),
        ("without", ROOT / "tests" / "data" / "sessions" / "sick.json"),
    ):
        rulings = case_of(judged(path), "mpich", "tcp").rulings
        costs[name] = [one.finding for one in rulings if one.finding.criterion == "CPU cost"]
    assert [len(findings) for findings in costs.values()] == [2, 2]
    for net, gross in zip(costs["with"], costs["without"], strict=True):
        assert "of a core; without 0.002 CPU s of starting and ending" in net.reason
        assert f"of a core; starting and ending included: {NO_STARTS}" in gross.reason
        assert 0 < net.value < 2
