"""The record of changes that a sweep by a hook did not undo."""

from __future__ import annotations

from pathlib import Path

import pytest

from netproof.errors import NetproofError
from netproof.experiments import parameters


def test_reports_of_sweeps_and_the_record_are_in_a_folder_of_their_own(tmp_path):
    record = parameters.record_of(tmp_path, "cluster", "ib")
    assert record == tmp_path / "tuning" / "not-restored-cluster-ib.json"
    assert parameters.record_of(tmp_path / "tuning", "cluster", "ib") == record


def test_without_a_record_nothing_is_left(tmp_path):
    record = tmp_path / "none.json"
    assert parameters.read(record) == ()
    assert parameters.restore(record, [], []) == ()


def test_a_record_names_node_setting_and_value(tmp_path):
    record = tmp_path / "record.json"
    record.write_text('[["node1", "mtu", "1500"], ["node2", "mtu", "9000"]]')
    assert parameters.read(record) == (
        ("node1", "mtu", "1500"),
        ("node2", "mtu", "9000"),
    )


@pytest.mark.parametrize("text", ["node1", '[["node1", "mtu"]]', '{"node1": ["mtu", "1500"]}'])
def test_a_damaged_record_is_refused_and_stays(tmp_path, text):
    record = tmp_path / "record.json"
    record.write_text(text)
    with pytest.raises(NetproofError, match=r"record\.json.*; restore the nodes by hand"):
        parameters.restore(record, ["hook"], [])
    assert record.read_text() == text


def test_without_a_hook_what_is_left_is_for_a_person(tmp_path):
    record = tmp_path / "record.json"
    record.write_text('[["node1", "mtu", "1500"]]')
    with pytest.raises(NetproofError, match="has no tuning_hook any more"):
        parameters.restore(record, [], [])
    assert record.exists()


def test_a_node_that_does_not_answer_stays_in_the_record(tmp_path, monkeypatch):
    record = tmp_path / "record.json"
    record.write_text('[["node1", "mtu", "1500"]]')
    monkeypatch.setenv("PATH", str(Path("/nowhere")))
    with pytest.raises(NetproofError, match="cannot be restored: node1: srun is not in PATH"):
        parameters.restore(record, ["hook"], [])
    assert parameters.read(record) == (("node1", "mtu", "1500"),)
