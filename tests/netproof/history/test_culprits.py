"""Between two nights, what differs is named, and where; and what is not known."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from made_nights import unchanged

from netproof.history import series
from netproof.history.culprits import Archive

pytestmark = pytest.mark.slow


@pytest.fixture
def culprits(nights):
    """``culprits(change)``: differences between a night as it was recorded and a changed one."""

    def found(change):
        sessions = [nights.add(0), nights.add(1, change=change)]
        every = series.read(nights.store, "testbed", sessions).series
        cases = list(dict.fromkeys(it.case for it in every if it.case.environment == "mpich"))
        return Archive(nights.store).culprits(*sessions, cases)

    return found


def said(found) -> list[str]:
    return [str(difference) for difference in found.differences]


def each(table: str, change: Callable[[dict[str, Any]], object]):
    """Change every row of a table."""

    def changed(rows):
        for row in rows[table]:
            change(row)

    return changed


def moved(row: dict[str, Any]) -> None:
    """Put programs elsewhere."""
    row["programs"] = {
        name: f"{value.split(' ')[0]} /elsewhere/{value.rpartition('/')[2]}"
        for name, value in row["programs"].items()
    }


def of_other(row: dict[str, Any]) -> None:
    """Give the other environment other programs."""
    if row["environment"] == "other":
        row["programs"] = {"NPmpi": f"{'0' * 64} /opt/NPmpi"}


def new_switch(row: dict[str, Any]) -> None:
    """Have the cases run over another switch, with other criteria, which measure nothing."""
    extras = json.loads(row["partition_extras"])
    row["partition_extras"] = json.dumps({**extras, "switch": "new", "criteria": {}})


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (unchanged, []),
        (
            each("nodes", lambda row: row["node"] < "gige-3" and row.update(mtu=1400)),
            ["mtu: 1500 → 1400 (gige-1, gige-2)"],
        ),
        (each("nodes", moved), []),
        (each("nodes", of_other), []),
        (each("cases", new_switch), ["switch in the site's file: gige → new"]),
    ],
)
def test_what_differs_for_a_configuration_is_named_with_its_nodes_and_nothing_else(
    culprits, change, expected
):
    found = culprits(change)
    assert said(found) == expected
    assert all(difference.own for difference in found.differences)
    assert found.unknown["firmware"] == "ethtool -i gives none"


def test_drivers_kernels_sysctls_and_programs_are_compared(culprits):
    other = {"driver_version": "2.0", "kernel": "6.2", "firmware": "22.1", "sysctls": {}}
    other["programs"] = {"NPmpi": f"{'0' * 64} /opt/NPmpi"}
    lines = said(culprits(each("nodes", lambda row: row.update(other))))
    for expected in (
        "driver_version: 1.0 → 2.0",
        "kernel: ",
        "firmware: not known → 22.1",
        "sysctls net.ipv4.tcp_sack: 1 → not known",
        "programs NPmpi: ",
    ):
        assert any(one.startswith(expected) for one in lines)


def test_a_new_node_is_compared_with_all_that_were_there(culprits):
    def replaced(rows):
        for row in rows["nodes"]:
            if row["node"] == "gige-2":
                row.update(node="gige-9", driver_version="0.9")
        for row in rows["launches"]:
            for used in row["ranks_used"]:
                used["node"] = used["node"].replace("gige-2", "gige-9")

    lines = said(culprits(replaced))
    assert "driver_version: 1.0 → 0.9 (gige-9)" in lines
    (listed,) = [one for one in lines if one.startswith("nodes: ")]
    before, _, after = listed.partition(" → ")
    assert [name in before for name in ("gige-2", "gige-9")] == [True, False]
    assert [name in after for name in ("gige-2", "gige-9")] == [False, True]


def test_cases_that_moved_to_other_nodes_of_the_same_are_named(culprits):
    def swapped(row):
        for used in row["ranks_used"] if row["ranks"] == 2 else ():
            used["node"] = {"gige-1": "gige-3", "gige-2": "gige-4"}[used["node"]]

    (line,) = said(culprits(each("launches", swapped)))
    assert line.startswith("nodes of ")
    assert "gige-1, gige-2 → gige-3, gige-4" in line


def test_software_files_and_labels_are_of_the_whole_session(culprits):
    def other(row):
        row.update(slurm="slurm 99", git_revision="abc", labels={"rack": "b"})
        row["files"][0]["sha256"] = "0" * 64

    found = culprits(each("sessions", other))
    assert not any(one.own for one in found.differences)
    lines = " | ".join(said(found))
    for part in ("slurm: ", "git revision: ", "label rack: not known → b", "→ 000000000000"):
        assert part in lines


def test_nodes_without_a_record_are_not_taken_for_unchanged(culprits):
    def lost(rows):
        rows["nodes"] = []
        rows["sessions"][0]["unknown"] = {"nodes of ImbJob %ranks=2": "the job left no record"}

    assert culprits(lost).unknown["nodes after"] == "the job left no record"
