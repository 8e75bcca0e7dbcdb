"""Each value of a document is of its kind, or is named with its place."""

from __future__ import annotations

import math

import pytest

from netproof.errors import NetproofError
from netproof.intake.shapes import (
    MAPPING,
    NUMBER,
    TEXT,
    TEXTS_BY_NAME,
    WHOLE,
    YES_OR_NO,
    Each,
    Keys,
    OrEmpty,
    OrNone,
    RowOf,
    insist,
)

CASE = Keys({"name": TEXT, "times": Each(NUMBER)}, {"ranks": WHOLE, "row": RowOf((TEXT, NUMBER))})


def said(value, shape) -> str:
    with pytest.raises(NetproofError) as caught:
        insist(value, shape, "here")
    return str(caught.value)


@pytest.mark.parametrize(
    ("value", "shape", "reason"),
    [
        ("1", WHOLE, "found '1', expected a whole number"),
        (1.0, WHOLE, "found 1.0, expected a whole number"),
        (True, WHOLE, "found True, expected a whole number"),
        ("1", NUMBER, "found '1', expected a number"),
        (True, NUMBER, "found True, expected a number"),
        (math.nan, NUMBER, "found nan, expected a number"),
        (math.inf, NUMBER, "found inf, expected a number"),
        (1, YES_OR_NO, "found 1, expected true or false"),
        (b"a", TEXT, "found b'a', expected text"),
        (None, TEXT, "found None, expected text"),
        ("ab", Each(TEXT), "found 'ab', expected a list"),
        ({"a": 1}, Each(TEXT), "found {'a': 1}, expected a list"),
        (["a"], RowOf((TEXT, TEXT)), "found ['a'], expected a list of 2"),
        (["a", "b", "c"], RowOf((TEXT, TEXT)), "found ['a', 'b', 'c'], expected a list of 2"),
        ([], MAPPING, "found [], expected a mapping"),
        ({"a": 1}, TEXTS_BY_NAME, "found {'a': 1}, expected a mapping of texts"),
        ({"a": 1}, OrEmpty(CASE), "'name' is missing"),
        ("", OrNone(WHOLE), "found '', expected a whole number"),
    ],
)
def test_nothing_is_coerced(value, shape, reason):
    assert said(value, shape) == f"here: {reason}"


@pytest.mark.parametrize(
    ("value", "shape"),
    [
        (3, NUMBER),
        (None, OrNone(NUMBER)),
        ({}, OrEmpty(CASE)),
        (None, OrEmpty(CASE)),
        (("a", 1), RowOf((TEXT, NUMBER))),
        ((1, 2), Each(WHOLE)),
        ({"name": "a", "times": [], "later": object()}, CASE),
        ({"later": 1}, CASE.any_of()),
    ],
)
def test_what_is_right_passes_and_keys_that_are_not_known_are_passed_over(value, shape):
    insist(value, shape, "here")


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({"name": "a", "times": [1, 2, "3"]}, "[1].times[2]: found '3', expected a number"),
        ({"name": "a", "times": [], "row": ["x", None]}, "[1].row[1]: found None, expected a num"),
        ({"name": "a"}, "[1]: 'times' is missing"),
    ],
)
def test_the_first_that_is_wrong_is_named_with_each_step_to_it(value, reason):
    sound = {"name": "a", "times": []}
    assert said([sound, value, value], Each(CASE)).startswith(f"here: {reason}")
    found = said({"cases": [sound, value]}, Keys({"cases": Each(CASE)}))
    assert found.startswith(f"here: cases{reason}")


def test_what_is_quoted_is_cut_and_a_million_faults_are_one():
    found = said({"name": "x", "times": ["y" * 1000] * 1_000_000}, CASE)
    assert found.startswith("here: times[0]: found 'yyy")
    assert len(found) < 200
