"""The two sides, and combinations that are refused."""

from __future__ import annotations

import pytest
from made_sides import with_results

from netproof.comparison.comparison import compare, sides
from netproof.errors import NetproofError


def test_environments_may_be_of_one_partition_alone(healthy):
    compared = compare(*sides(healthy, None, ("gige", "gige"), ("mpich", "intelmpi")))
    assert (compared.first.name, compared.second.name) == ("mpich", "intelmpi")
    assert {case.second.case.partition for case in compared.cases} == {"gige"}
    assert len(compared.cases) == 4


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({}, "both sides are the same"),
        ({"partitions": ("gige", "gige")}, "both sides are the same"),
        ({"partitions": ("gige", "ib")}, "no case of partition 'ib'; it has gige, fast-ethernet"),
        (
            {"environments": ("mpich", "lam")},
            "no case of environment 'lam'; it has mpich, intelmpi",
        ),
    ],
)
def test_what_cannot_be_compared_says_why(healthy, arguments, reason):
    with pytest.raises(NetproofError, match=reason):
        compare(*sides(healthy, **arguments))


def test_sessions_of_the_same_name_are_told_apart_by_their_paths(healthy):
    other = with_results(healthy, lambda result: result, "later/healthy.json")
    first, second = sides(healthy, other)
    assert (first.name, second.name) == (str(healthy.path), "later/healthy.json")
