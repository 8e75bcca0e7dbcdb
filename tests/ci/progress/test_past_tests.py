"""How long tests took in sessions that are stored."""

from __future__ import annotations

import shlex

import pytest
from recorded_runs import RECORDED

from ci.progress import past_tests
from netproof.diagnosis.diagnosis import ingest
from netproof.session import session
from netproof.store import Store


@pytest.mark.slow
def test_the_store_has_how_long_the_tests_of_the_same_command_took(tmp_path):
    store = Store.create(tmp_path / "store")
    report = RECORDED.parents[1] / "sessions" / "sick.json"
    ingest(store, report)
    kept = session.load(report)
    command = shlex.split(kept.info["cmdline"])
    system = kept.results[0].system
    took = past_tests(system, store.folder, ["elsewhere/reframe", *command[1:]])
    assert took == {
        (one.name, one.partition, one.environment): one.seconds
        for one in kept.results
        if one.result != "skip"
    }
    assert past_tests(system, store.folder, [*command, "-S", "launches=1"]) == {}
    assert past_tests("other", store.folder, command) == {}
    assert past_tests(system, tmp_path / "none", command) == {}
