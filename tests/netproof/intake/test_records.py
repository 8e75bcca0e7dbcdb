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

from netproof.errors import NetproofError
from netproof.intake import records


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
    text = json.dumps(records.as_json(WHOLE), allow_nan=False)
    read = records.from_json(Outer, json.loads(text), "it")
    assert read == WHOLE
    assert type(read.value) is int


def test_defaults_are_left_out():
    assert records.as_json(Inner(1)) == {"size": 1}
    assert records.from_json(Inner, {"size": 1}, "it") == Inner(1)


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"name": 1}, "it.name"),
        ({"value": "1"}, "it.value"),
        ({"value": True}, "it.value"),
        ({"interval": [1]}, "it.interval"),
        ({"inner": {"size": 1}}, "it.inner"),
        ({"inner": [{"size": 1.0}]}, "it.inner[0].size"),
        ({"inner": [{"size": 1, "colour": "blue"}]}, "it.inner[0].colour"),
        ({"inner": [{}]}, "it.inner[0]"),
        ({"names": [["a"]]}, "it.names[0]"),
        ({"by_name": []}, "it.by_name"),
        ({"path": 1}, "it.path"),
        ({"seen": 0}, "it.seen"),
        ({"more": 1}, "it"),
    ],
)
def test_what_is_of_another_type_is_refused_with_its_place(change, place):
    with pytest.raises(NetproofError, match=f"^{place.replace('[', '.')}".replace(".", r".")):
        records.from_json(Outer, {**records.as_json(WHOLE), **change}, "it")


class Site(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)

    switch: str
    rails: tuple[str, ...] = Field((), strict=False)


def test_a_model_comes_back_the_same_though_it_ignores_what_it_does_not_know():
    site = Site(switch="a", rails=("eth1",))
    values = json.loads(json.dumps(records.as_json(site)))
    assert values == {"switch": "a", "rails": ["eth1"]}
    assert records.from_json(Site, values, "it") == site
    with pytest.raises(NetproofError, match=r"^it: has 'more', which is no key of it"):
        records.from_json(Site, {**values, "more": 1}, "it")
    with pytest.raises(NetproofError, match=r"^it\.switch: "):
        records.from_json(Site, {**values, "switch": 1}, "it")


@pytest.mark.parametrize("value", [math.nan, object(), {1, 2}])
def test_what_json_does_not_have_is_no_record(value):
    with pytest.raises(TypeError):
        records.as_json(value)
