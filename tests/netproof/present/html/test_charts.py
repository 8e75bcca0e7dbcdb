"""Charts: few or many configurations, on a page and in a file, flags by marks."""

from __future__ import annotations

import dataclasses

import pytest

from netproof.present.html import figures
from netproof.present.html.charts import MARKS, Looks
from netproof.present.html.content import CaseState
from netproof.present.html.report import assemble


def _figure(judged, name):
    made = assemble(judged)
    return made.figure(next(group for group in made.groups if group.name == name))


@pytest.mark.slow
def test_bands_that_would_hide_each_other_are_shown_one_at_a_time(judge):
    judged = judge("two-switches.json")
    few = _figure(judged, "imb-sendrecv-2-ranks")
    rows = [
        {**row, "configuration": f"{n} {row['configuration']}"}
        for n in range(3)
        for row in few.rows
    ]
    many = dataclasses.replace(few, rows=rows)
    assert (few.crowded, many.crowded) == (False, True)
    assert figures.BAND in few.sentences
    single = [{**row, "launches": 1} for row in few.rows]
    assert figures.BAND not in figures.over_size("one launch", single).sentences


@pytest.mark.slow
def test_a_file_says_what_its_page_says_below_the_chart(judge):
    two_switches = judge("two-switches.json")
    figure = _figure(two_switches, "netpipe-tcp-inter-node-one-way")
    looks = Looks(("gige", "fast-ethernet"), ("mpich", "intelmpi"))
    below = " ".join(figure.for_file(looks)["title"]["subtitle"])
    assert all(sentence in below for sentence in figure.sentences)
    assert "Not drawn: gige openmpi4; gige openmpi5; fast-ethernet openmpi4;" in below


@pytest.mark.slow
def test_what_is_inconclusive_has_a_mark_and_a_word_of_its_own(judge):
    sick = judge("sick.json", "testbed:gige")
    flags = _figure(sick, "netpipe-tcp-inter-node-one-way").flags
    marks = {row["mark"] for row in flags}
    assert "inconclusive" in marks
    flag = next(row for row in flags if row["mark"] == "inconclusive")
    assert flag["criterion"] == "envelope"
    assert set(MARKS) >= marks
    assert len(set(MARKS.values())) == len(MARKS)
    assert len({(state.sign, state.word) for state in CaseState}) == len(CaseState)
    looks = {state.look: state for state in CaseState}
    assert looks["inconclusive"] is CaseState.INCONCLUSIVE
