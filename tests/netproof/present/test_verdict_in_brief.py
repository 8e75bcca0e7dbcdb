"""The verdict in about ten lines: state first, then what is worst, with its limit and place."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest
from made_calls import called
from made_text import printed

from netproof.criteria import Finding, Level
from netproof.present import verdict as shown
from netproof.present.html.report import Report
from netproof.present.session import verdict_blocks

ROOT = Path(__file__).resolve().parents[3]


def brief(judged) -> list[str]:
    return printed(shown.brief(judged), 300).splitlines()


@pytest.mark.slow
def test_the_state_is_first_then_the_culprit_and_each_failure_with_figure_limit_and_place(judge):
    lines = brief(judge("sick.json", "testbed:gige"))
    assert lines[0] == "FAILED: 0 of 52 cases passed, 4 failed, 48 did not run"
    assert lines[1].startswith("nodes: 2 of 4 on gige; session ")
    assert lines[2] == (
        "culprit: gige-1 or gige-2 or what is between them, or the whole switch:"
        " no other nodes were measured"
    )
    case, nodes = "gige mpich NetPIPE tcp inter-node oneway", "gige-1, gige-2"
    assert f"FAIL {case}: jump 16.5 at 48 KiB, limit 10, {nodes}" in lines[3:8]
    assert "6 inconclusive findings, " in lines[-3]
    assert lines[-3].startswith("besides: ")
    assert lines[-2].startswith("next: measure the red cases")
    assert len(lines) <= 12
    assert lines[-2].endswith("swap cables and ports one at a time")
    # Only the session's path and what to do may be longer.
    assert max(len(line) for line in [lines[0], *lines[2:-2], lines[-1]]) <= 120


@pytest.mark.slow
def test_the_readme_shows_what_its_commands_print(project, monkeypatch):
    monkeypatch.chdir(ROOT)
    shown = r"netproof verdict ([^`]*)`[^`]*```\n(.*?)```"
    blocks = re.findall(shown, (ROOT / "README.md").read_text(), re.DOTALL)
    assert len(blocks) == 2
    for arguments, block in blocks:
        assert called("verdict", *arguments.split())[1] == block


@pytest.mark.slow
def test_where_a_whole_partition_was_not_measured_the_command_for_the_others_is_there(judge):
    alone = "the session measured only gige: 'netproof verdict {} testbed:gige' judges gige alone"
    path = ROOT / "tests" / "data" / "smoke" / "green.json"
    assert brief(judge(path))[-2] == alone.format(path)
    for whole in (judge(path, "testbed:gige"), judge("two-switches.json")):
        assert not [line for line in brief(whole) if " only " in line]


@pytest.mark.slow
def test_what_nothing_explains_is_no_culprit_and_a_line_that_is_cut_has_what_srun_said(judge):
    lines = brief(judge("faulty.json"))
    assert not [line for line in lines if line.startswith("culprit: ")]
    assert lines[2].startswith("unexplained: gige: 3 red cases; crashes of tasks on gige-2: 2 of 2")
    (bcast,) = (line for line in lines if "IMB Bcast" in line)
    assert ": Bcast.1 said: srun: error: gige-2: task 1: Exited" in bcast
    assert len(bcast) <= 120
    last = "read the reasons under 'What failed or did not run'"
    text = printed(verdict_blocks(Report(judge("faulty.json"))), 300)
    assert f"Next: {last}." in text
    assert "netproof verdict --all" not in text


@pytest.mark.slow
def test_what_is_inconclusive_has_its_interval_and_a_pass_no_more_than_ten_lines(judge):
    judged = judge("healthy.json")
    ran = tuple(one for one in judged.verdict.cases if one.measured)
    verdict = dataclasses.replace(judged.verdict, cases=ran, faults=(), skipped=())
    lines = brief(dataclasses.replace(judged, verdict=verdict))
    assert lines[0].startswith("INCONCLUSIVE: 15 of 16 cases passed")
    assert any("limit 10, " in line and " to " in line for line in lines)
    passed = dataclasses.replace(verdict, cases=tuple(one for one in ran if one.passed))
    lines = brief(dataclasses.replace(judged, verdict=passed))
    assert lines[0] == "PASSED: 15 of 15 cases passed"
    assert len(lines) <= 10
    # What has no figure is said by its sentence, and one that its limit does not explain by both.
    bare = Finding("envelope", Level.INCONCLUSIVE, "there", "nothing to compare with", size=4)
    share = Finding("reference", Level.FAIL, "there", "", value=31.6, bound=2.0, variable="share")
    for finding, line in (
        (bare, "there: nothing to compare with"),
        (share.without_noise(["a"], "its twin was "), "share 31.6, limit 2, but its twin was a, "),
    ):
        cases = (dataclasses.replace(passed.cases[0], findings=(finding,)), *passed.cases[1:])
        unsure = dataclasses.replace(passed, cases=cases)
        lines = brief(dataclasses.replace(judged, verdict=unsure))
        assert [one for one in lines if one.startswith("INCONCLUSIVE ") and line in one]
