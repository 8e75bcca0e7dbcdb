"""Levels, findings and figures of recorded data are those of the golden files."""

from __future__ import annotations

import golden_facts
import golden_files
import pytest

SHOWN = 60
"""Differences in a failure's message."""


@pytest.mark.parametrize(
    "part",
    [
        pytest.param(part, marks=() if made in golden_facts.QUICK else pytest.mark.slow)
        for part, made in golden_facts.PARTS.items()
    ],
)
def test_levels_findings_and_figures_are_those_of_the_golden_file(part):
    found = list(golden_files.differences(part, golden_files.read(part), *golden_files.today(part)))
    if found:
        lines = [
            *found[:SHOWN],
            f"{len(found)} differences; if they are meant, 'tests/golden/make {part}'",
        ]
        pytest.fail("\n".join(lines), pytrace=False)


def test_each_golden_file_is_compared():
    there = {path.stem for path in golden_files.path("x").parent.glob("*.txt")}
    assert there == {*golden_facts.PARTS}


def test_a_number_is_the_same_up_to_half_of_its_fourth_digit():
    assert golden_files.same("fail 1.234 at 64", "fail 1.2344999999999999 at 64")
    assert not golden_files.same("fail 1.234 at 64", "fail 1.2359999999999999 at 64")
    assert not golden_files.same("fail 1.234 at 64", "fail 1.234 at 96")
    assert not golden_files.same("fail 1.234", "fail 1.234 at 64")
    assert not golden_files.same("fail 1.234", "warn 1.234")
    assert not golden_files.same("gige-1", "gige-2")


def test_a_difference_has_file_section_name_and_both_values():
    was, now = {("s", "level"): "pass", ("s", "gone"): "1"}, {("s", "level"): "fail"}
    assert list(golden_files.differences("verdicts", was, now, now)) == [
        "verdicts.txt: s: gone: was 1, is not there",
        "verdicts.txt: s: level: was pass, is fail",
    ]
