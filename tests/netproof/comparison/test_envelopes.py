"""The envelope of the cases that measured the same, and whether their links differ."""

from __future__ import annotations

import dataclasses

import pytest

from netproof.comparison import compared_case


@pytest.fixture
def cases(judge):
    """``cases(function, path)``: those of two switches, by configuration."""
    verdict = judge("two-switches.json").verdict

    def of(function: str, ranks: int = 2, path: str = "between"):
        return {
            f"{one.case.partition} {one.case.environment}": one
            for one in verdict.cases
            if (one.case.function, one.case.ranks, one.case.path) == (function, ranks, path)
            and one.case.direction == "oneway"
        }

    return of


@pytest.mark.slow
def test_it_has_the_least_time_at_each_size_and_whose_it_is(cases, judge):
    matrix = judge("two-switches.json").matrix
    found, _ = compared_case.envelope_of_cases(cases("tcp"), matrix)
    measured = {label: one.measured for label, one in cases("tcp").items() if one.measured}
    for size, time, label in zip(
        found.curve.sizes,
        found.curve.time_us,
        found.fastest,
        strict=True,
    ):
        at = {
            name: dict(zip(one.curve.sizes, one.curve.time_us, strict=True))
            for name, one in measured.items()
        }
        assert time == at[label][size] == min(one[size] for one in at.values() if size in one)


def test_links_of_two_switches_differ_and_those_inside_a_node_are_none(cases, judge):
    matrix = judge("two-switches.json").matrix
    both = cases("tcp")
    assert compared_case.envelope_of_cases(both, matrix)[1]
    one_switch = {label: one for label, one in both.items() if label.startswith("gige")}
    assert not compared_case.envelope_of_cases(one_switch, matrix)[1]
    assert not compared_case.envelope_of_cases(cases("tcp", path="inside"), matrix)[1]


def test_a_case_alone_has_none(cases, judge):
    matrix = judge("two-switches.json").matrix
    alone = {"gige mpich": cases("tcp")["gige mpich"]}
    assert compared_case.envelope_of_cases(alone, matrix)[0] is None
    never = {"gige mpich": dataclasses.replace(alone["gige mpich"], measured=None)}
    assert compared_case.envelope_of_cases(never, matrix)[0] is None
