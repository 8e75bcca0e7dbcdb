"""Dataclasses become JSON and the same again; whatever is not of its type is refused by name."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, Field

from netproof import codec
from netproof.errors import NetproofError


class Colour(StrEnum):
    RED = "red"


@dataclass(frozen=True)
class Inner:
    size: int
    colour: Colour = Colour.RED


@dataclass(frozen=True)
class Outer:
    name: str
    value: float | None
    interval: tuple[float, float] | None = None
    inner: tuple[Inner, ...] = ()
    names: frozenset[tuple[str, str]] = frozenset()
    by_name: Mapping[str, Inner] = field(default_factory=dict)
    anything: dict[str, Any] = field(default_factory=dict)
    path: Path = Path("x")
    seen: bool = False


WHOLE = Outer(
    "a",
    2,
    (0.5, math.inf),
    (Inner(1), Inner(2)),
    frozenset({("a", "b"), ("c", "d")}),
    {"one": Inner(3)},
    {"fail": None, "warn": 2},
    Path("/a/b"),
    True,
)


def test_what_becomes_json_comes_back_the_same():
    text = json.dumps(codec.encode(WHOLE), allow_nan=False)
    read = codec.decode(Outer, json.loads(text), "it")
    assert read == WHOLE
    assert type(read.value) is int


def test_defaults_are_left_out():
    assert codec.encode(Inner(1)) == {"size": 1}
    assert codec.decode(Inner, {"size": 1}, "it") == Inner(1)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"name": 1}, "name: found 1, expected text"),
        ({"value": "1"}, "value: found '1', expected a number"),
        ({"value": True}, "value: found True, expected a number"),
        ({"value": math.nan}, "value: found nan, expected a number"),
        ({"interval": [1]}, "interval: found [1], expected more of them"),
        ({"interval": [1, 2, 3]}, "interval: found [1, 2, 3], expected a list of 2"),
        ({"inner": {"size": 1}}, "inner: found {'size': 1}, expected a list"),
        ({"inner": [{"size": 1.0}]}, "inner[0].size: found 1.0, expected a whole number"),
        (
            {"inner": [{"size": 1, "colour": "blue"}]},
            "inner[0].colour: found 'blue', expected 'red",
        ),
        ({"inner": [{}]}, "inner[0]: 'size' is missing"),
        ({"inner": [[]]}, "inner[0]: found [], expected a mapping"),
        ({"names": [["a"]]}, "names[0]"),
        ({"by_name": []}, "by_name: found [], expected a mapping"),
        ({"path": 1}, "path: found 1, expected text"),
        ({"seen": 0}, "seen: found 0, expected true or false"),
        ({"more": 1}, "has 'more', which is no key of it"),
    ],
)
def test_nothing_is_coerced_and_what_is_wrong_is_named_with_its_place(change, reason):
    with pytest.raises(NetproofError) as caught:
        codec.decode(Outer, {**codec.encode(WHOLE), **change}, "it")
    assert str(caught.value).startswith(f"it: {reason}")


@pytest.mark.parametrize("change", [{"inner": ["y" * 1000] * 1_000_000}, {"y" * 1000: 1}])
def test_what_is_quoted_is_cut_and_a_million_faults_are_one(change):
    with pytest.raises(NetproofError) as caught:
        codec.decode(Outer, {**codec.encode(WHOLE), **change}, "it")
    assert len(str(caught.value)) < 200


class Site(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)

    switch: str
    rails: tuple[str, ...] = Field((), strict=False)


def test_a_model_comes_back_the_same_though_it_ignores_what_it_does_not_know():
    site = Site(switch="a", rails=("eth1",))
    values = json.loads(json.dumps(codec.encode(site)))
    assert values == {"switch": "a", "rails": ["eth1"]}
    assert codec.decode(Site, values, "it") == site
    with pytest.raises(NetproofError, match=r"^it: has 'more', which is no key of it"):
        codec.decode(Site, {**values, "more": 1}, "it")
    with pytest.raises(NetproofError, match=r"^it: switch: found 1, expected text"):
        codec.decode(Site, {**values, "switch": 1}, "it")


@pytest.mark.parametrize("value", [math.nan, object(), {1, 2}])
def test_what_json_does_not_have_is_no_record(value):
    with pytest.raises(TypeError):
        codec.encode(value)
