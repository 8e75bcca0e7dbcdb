"""Between two nights, what differs is named, and where; and what is not known."""

from __future__ import annotations

import json

import pytest
from made_nights import unchanged

from netproof.history import series
from netproof.history.culprits import Archive

pytestmark = pytest.mark.slow


def culprits(nights, change, before=unchanged, environment="mpich"):
    """Return the differences between a night as it was recorded and one with a change."""
    sessions = [nights.add(0, change=before), nights.add(1, change=change)]
    found = series.read(nights.store, "testbed", sessions)
    cases = list(
        dict.fromkeys(it.case for it in found.series if it.case.environment == environment)
    )
    return Archive(nights.store).culprits(*sessions, cases)


def said(found) -> list[str]:
    return [str(difference) for difference in found.differences]


def nodes(**values):
    def change(rows):
        for row in rows["nodes"]:
            row.update(values)

    return change


def test_between_nights_that_are_alike_nothing_differs_and_what_is_not_known_has_a_reason(nights):
    found = culprits(nights, unchanged)
    assert found.differences == ()
    assert found.unknown["firmware"] == "ethtool -i gives none"


def test_a_thing_of_nodes_is_named_with_the_nodes_that_have_it(nights):
    def two_of_four(rows):
        for row in rows["nodes"]:
            if row["node"] in ("gige-1", "gige-2"):
                row["mtu"] = 1400

    (difference,) = culprits(nights, two_of_four).differences
    assert str(difference) == "mtu: 1500 → 1400 (gige-1, gige-2)"
    assert difference.own


def test_drivers_kernels_sysctls_and_programs_are_compared(nights):
    other = {"driver_version": "2.0", "kernel": "6.2", "firmware": "22.1", "sysctls": {}}
    other["programs"] = {"NPmpi": f"{'0' * 64} /opt/NPmpi"}
    lines = said(culprits(nights, nodes(**other)))
    for expected in (
        "driver_version: 1.0 → 2.0",
        "kernel: ",
        "firmware: not known → 22.1",
        "sysctls net.ipv4.tcp_sack: 1 → not known",
        "programs NPmpi: ",
    ):
        assert any(one.startswith(expected) for one in lines)


def test_programs_that_moved_and_are_the_same_do_not_differ(nights):
    def moved(rows):
        for row in rows["nodes"]:
            row["programs"] = {
                name: "{} /elsewhere/{}".format(*(value.split(" ")[0], value.rpartition("/")[2]))
                for name, value in row["programs"].items()
            }

    assert culprits(nights, moved).differences == ()


def test_programs_of_another_environment_are_not_of_this_one(nights):
    def of_other(rows):
        for row in rows["nodes"]:
            if row["environment"] == "other":
                row["programs"] = {"NPmpi": f"{'0' * 64} /opt/NPmpi"}

    assert culprits(nights, of_other).differences == ()


def test_a_new_node_is_compared_with_all_that_were_there(nights):
    def replaced(rows):
        for row in rows["nodes"]:
            if row["node"] == "gige-2":
                row.update(node="gige-9", driver_version="0.9")
        for row in rows["launches"]:
            for used in row["ranks_used"]:
                used["node"] = used["node"].replace("gige-2", "gige-9")

    lines = said(culprits(nights, replaced))
    assert "driver_version: 1.0 → 0.9 (gige-9)" in lines
    (listed,) = [one for one in lines if one.startswith("nodes: ")]
    before, _, after = listed.partition(" → ")
    assert "gige-2" in before
    assert "gige-9" in after
    assert "gige-2" not in after


def test_cases_that_moved_to_other_nodes_of_the_same_are_told(nights):
    def swapped(rows):
        for row in rows["launches"]:
            if row["ranks"] == 2:
                for used in row["ranks_used"]:
                    used["node"] = {"gige-1": "gige-3", "gige-2": "gige-4"}[used["node"]]

    lines = said(culprits(nights, swapped))
    assert len(lines) == 1
    assert "gige-1, gige-2 → gige-3, gige-4" in lines[0]
    assert lines[0].startswith("nodes of ")


def test_what_the_site_says_of_switch_and_library_is_compared(nights):
    def moved(rows):
        for row in rows["cases"]:
            extras = json.loads(row["partition_extras"])
            row["partition_extras"] = json.dumps({**extras, "switch": "new", "criteria": {}})

    assert said(culprits(nights, moved)) == ["switch in the site's file: gige → new"]


def test_software_files_and_labels_are_of_the_whole_session(nights):
    def other(rows):
        (row,) = rows["sessions"]
        row.update(slurm="slurm 99", git_revision="abc", labels={"rack": "b"})
        row["files"][0]["sha256"] = "0" * 64

    found = culprits(nights, other)
    assert not any(one.own for one in found.differences)
    lines = " | ".join(said(found))
    for part in ("slurm: ", "git revision: ", "label rack: not known → b", "→ 000000000000"):
        assert part in lines


def test_nodes_without_a_record_are_not_taken_for_unchanged(nights):
    def lost(rows):
        rows["nodes"] = []
        rows["sessions"][0]["unknown"] = {"nodes of ImbJob %ranks=2": "the job left no record"}

    found = culprits(nights, lost)
    assert found.unknown["nodes after"] == "the job left no record"
