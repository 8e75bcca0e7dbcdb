"""Charts: few or many configurations, on a page and in a file, flags by marks."""

from __future__ import annotations

import pytest

from netproof.present.html import figures
from netproof.present.html.charts import MARKS, Looks
from netproof.present.html.content import CaseState
from netproof.present.html.report import Report


def _figure(judged, name):
    made = Report(judged)
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
    looks = Looks(("gige", "fast-ethernet"), ("mpich", "intelmpi"))
    many = figures.over_size("many", rows, looks)
    assert (few.hint, many.hint) == ("", figures.CROWDED_BAND)
    assert figures.BAND in few.sentences
    assert figures.BAND not in many.sentences
    single = [{**row, "launches": 1} for row in few.rows]
    assert figures.BAND not in figures.over_size("one launch", single, looks).sentences


@pytest.mark.slow
def test_a_file_says_what_its_page_says_below_the_chart(judge):
    two_switches = judge("two-switches.json")
    figure = _figure(two_switches, "netpipe-tcp-inter-node-one-way")
    below = " ".join(figure.for_file()["title"]["subtitle"])
    assert all(sentence in below for sentence in figure.sentences)
    assert "Not drawn: gige openmpi4; gige openmpi5; fast-ethernet openmpi4;" in below


@pytest.mark.slow
def test_what_is_inconclusive_has_a_mark_and_a_word_of_its_own(judge):
    sick = judge("sick.json", "testbed:gige")
    data = _figure(sick, "netpipe-tcp-inter-node-one-way").data
    marks = {row["mark"] for rows in data.values() for row in rows if "mark" in row}
    flag = data["inconclusive"][0]
    assert flag["criterion"] == "envelope"
    assert set(MARKS) >= marks
    assert len(set(MARKS.values())) == len(MARKS)
    assert len({(state.sign, state.word) for state in CaseState}) == len(CaseState)
    looks = {state.look: state for state in CaseState}
    assert looks["inconclusive"] is CaseState.INCONCLUSIVE
