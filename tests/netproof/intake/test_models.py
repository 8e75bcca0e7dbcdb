"""Models check strictly what people write; each fault names its place and the remedy."""

from __future__ import annotations

import math
from typing import Literal

import pytest
from pydantic import Field, ValidationError

from netproof.intake.models import (
    MOST_QUOTED,
    Maybe,
    Positive,
    PositiveWhole,
    Several,
    Text,
    Written,
    YesOrNo,
    faults,
)


class Port(Written):
    name: Text
    rate: Positive


class Box(Written):
    model: Text
    ports: Several[Port]
    size: PositiveWhole = Field(alias="bytes")
    colour: Literal["red", "blue"] = Field("red", title="one of red, blue")
    on: YesOrNo = True
    spare: Maybe[Port] = None
    link: Maybe[Positive] = None
    jobs: int = Field(1, description="jobs at a time")


KEYS = "the keys are model, ports, bytes, colour, on, spare, link, jobs"
SOUND = {"model": "x", "ports": [{"name": "a", "rate": 1}], "bytes": 3}


def found(**changes) -> list[tuple]:
    try:
        Box.model_validate({**SOUND, **changes})
    except ValidationError as error:
        return list(faults(Box, error))
    return []


def test_what_is_right_becomes_a_frozen_record_of_its_fields():
    box = Box.model_validate(SOUND)
    assert (box.size, box.ports[0].rate, box.spare) == (3, 1.0, None)
    with pytest.raises(ValidationError):
        box.size = 4


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("bytes", "1", "found '1', expected a positive whole number"),
        ("bytes", 1.0, "found 1.0, expected a positive whole number"),
        ("bytes", True, "found True, expected a positive whole number"),
        ("link", "1", "found '1', expected a positive number"),
        ("link", math.nan, "found nan, expected a positive number"),
        ("link", math.inf, "found inf, expected a positive number"),
        ("link", False, "found False, expected a positive number"),
        ("link", None, "found nothing; give a value or remove the key"),
        ("on", 1, "found 1, expected true or false"),
        ("on", "yes", "found 'yes', expected true or false"),
        ("model", " ", "found ' ', expected text"),
        ("model", b"x", "found b'x', expected text"),
        ("colour", "green", "found 'green', expected one of red, blue"),
        ("ports", [], "found [], expected a list that is not empty"),
        ("ports", {"name": "a"}, "found {'name': 'a'}, expected a list that is not empty"),
        ("ports", "ab", "found 'ab', expected a list that is not empty"),
        ("jobs", "1", "found '1', expected jobs at a time (a whole number)"),
        ("spare", 3, "found 3, expected a mapping"),
        ("lin", 3, "unknown here; did you mean 'link'? " + KEYS),
        ("\x1b[31m", 3, "unknown here; " + KEYS),
    ],
)
def test_nothing_is_coerced_and_each_fault_says_what_is_right(key, value, reason):
    assert found(**{key: value}) == [((key,), reason)]


def test_a_fault_further_in_has_each_step_to_it():
    ports = [{"name": "a", "rate": 1}, {"name": "b", "rat": "1"}]
    assert found(ports=ports) == [
        (("ports", 1, "rate"), "missing, expected a positive number"),
        (("ports", 1, "rat"), "unknown here; did you mean 'rate'? the keys are name, rate"),
    ]
    assert found(spare={"name": "a", "rate": -1}) == [
        (("spare", "rate"), "found -1, expected a positive number")
    ]


def test_what_is_quoted_is_cut():
    ((_, reason),) = found(colour="x" * 100_000)
    assert len(reason) < 2 * MOST_QUOTED + 50
    assert "characters more" in reason
    ((_, reason),) = found(**{"x" * 100_000: 1})
    assert len(reason) < 2 * MOST_QUOTED
