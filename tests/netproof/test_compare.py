"""``netproof compare``: exit 0 shown, 2 cannot be; nothing that one side lacks is left out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from netproof.cli import app

RECORDED = Path(__file__).resolve().parents[1] / "data" / "sessions"
HEALTHY, SICK = str(RECORDED / "healthy.json"), str(RECORDED / "sick.json")


def compared(*arguments: str) -> tuple[int, str, str]:
    ran = CliRunner().invoke(app, ["compare", *arguments])
    return ran.exit_code, ran.stdout, ran.stderr


def test_two_sessions_are_shown_with_ratios_and_where_they_lie():
    status, said, _ = compared(HEALTHY, SICK)
    assert status == 0
    assert "sick against healthy, 4 cases: slower in 1, no difference overall in 3" in said
    assert "slower from 32768 to 524288 bytes" in said
    assert "only healthy has gige mpich IMB PingPong 2 ranks" in said


def test_two_partitions_of_a_session_have_a_table_for_each_environment():
    status, said, _ = compared(HEALTHY, "--partition", "gige", "fast-ethernet")
    assert status == 0
    lines = said.splitlines()
    assert {"mpich", "intelmpi"} < set(lines)
    assert "configuration: link_mbit_s 1000 and 100" in lines
    assert any(line.startswith("▼  NetPIPE MPI between oneway") for line in lines)


def test_two_environments_of_one_partition_can_be_chosen():
    _, said, _ = compared(
        HEALTHY, "--environment", "mpich", "intelmpi", "--partition", "gige", "gige"
    )
    assert "intelmpi against mpich, 4 cases" in said
    assert "fast-ethernet" not in said


def test_json_has_the_figures_that_are_shown():
    status, text, _ = compared(HEALTHY, SICK, "--json")
    assert status == 0
    document = json.loads(text)
    _, said, _ = compared(HEALTHY, SICK)
    assert document["summary"] in said
    assert len(document["not_compared"]) == 12
    for case in document["cases"]:
        assert case["sentence"] in said
        low, high = case["interval"]
        assert f"{case['ratio']:.2f}  {low:.2f}–{high:.2f}" in said
        assert len(case["sizes_bytes"]) == len(case["ratios"]) == case["common"]["count"]


def test_a_stored_session_is_compared_by_its_name(tmp_path):
    # The cut report has not all that a store wants; sick.json is whole.
    store = str(tmp_path / "store")
    assert CliRunner().invoke(app, ["ingest", SICK, "--store", store]).exit_code == 0
    status, said, _ = compared(HEALTHY, "newest", "--store", store)
    assert status == 0
    assert "20261121T012240-34933804 against healthy, 4 cases" in said


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ((HEALTHY,), "both sides are the same"),
        ((HEALTHY, "nowhere.json"), "nowhere.json: is not there"),
        ((HEALTHY, "--partition", "gige", "ib"), "has no case of partition 'ib'"),
    ],
)
def test_what_cannot_be_compared_exits_2_with_the_reason_and_no_json(arguments, reason):
    for more in ((), ("--json",)):
        status, said, why = compared(*arguments, *more)
        assert (status, said) == (2, "")
        assert "netproof: cannot compare: " in why
        assert reason in why
