"""The smallest changes that fail a case, in words."""

from __future__ import annotations

import pytest
from made_text import printed

from netproof.measurement.case import Case
from netproof.present import verdict as present
from netproof.verdict.power import Degradation, Sensitivity, Smallest

CASE = Case("testbed", "gige", "mpich", "netpipe", "tcp", 2, 1, "inter-node", "oneway")


@pytest.mark.parametrize(
    ("one", "said"),
    [
        (None, "-"),
        (Smallest(Degradation.BANDWIDTH, None), "nothing fails"),
        (Smallest(Degradation.BANDWIDTH, 1.2, "reference", 1.25), "20% less"),
        (Smallest(Degradation.LATENCY, 1.3, "reference", 1.34), "34% more"),
        (Smallest(Degradation.LATENCY, 12.0, "envelope"), "about 12 times"),
        (Smallest(Degradation.SPIKE, 100.0, "jump", 101.0, 3072), "101 times at 3072 bytes"),
    ],
)
def test_a_change_in_a_few_words(one, said):
    assert present.said(one) == said


def test_how_many_cases_a_stated_change_would_have_failed_is_a_sentence():
    assert present.sensitivity(Sensitivity(50, 30, 12, 8)) == (
        "Would have failed: twice the latency in 30 of the 50 cases that passed, 20 % less"
        " bandwidth in 12. 8 would have passed with 100 times the latency, and with 1 % of the"
        " bandwidth."
    )


def test_each_case_that_passed_has_a_line_and_what_finds_nothing_is_counted():
    found = (
        CASE,
        1,
        (Smallest(Degradation.LATENCY, None), Smallest(Degradation.BANDWIDTH, 1.25, "reference")),
    )
    text = printed(present.power_blocks([found, (CASE, 3, ())]))
    assert text.count("NetPIPE tcp inter-node oneway") == len(Degradation)
    assert text.count("The smallest change that would have failed") == len(Degradation)
    assert text.count("criterion that fails it") == len(Degradation)
    assert "about 20% less" in text
    assert "1 case has a single launch" in text
    assert "nothing fails: 1 case has no bound" in text
    assert "no case passed" in printed(present.power_blocks([(CASE, 3, ())]))
