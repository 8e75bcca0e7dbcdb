"""External input is read within limits, or refused at once and in words."""

from __future__ import annotations

import math
import os
import resource
import stat
import time
from typing import Literal

import pytest
from pydantic import Field, ValidationError

from netproof.errors import NetproofError
from netproof.intake import disk, models, yaml_reading
from netproof.intake.models import (
    Maybe,
    Positive,
    PositiveWhole,
    Several,
    Text,
    Written,
    YesOrNo,
    faults,
)

DEEP = 100_000


def bomb(*, merged: bool) -> str:
    """Twelve levels, each of ten aliases of the one before: 10¹² values."""
    lines = ["a0: &a0 {x: 1}"]
    for number in range(1, 13):
        several = f"[{', '.join([f'*a{number - 1}'] * 10)}]"
        value = f"{{<<: {several}, k{number}: 1}}" if merged else several
        lines.append(f"a{number}: &a{number} {value}")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"a": 1,\n "b": {"c": 1, "c": 2},\n "a": 1}', "^x: .*duplicate key 'c'; remove one"),
        ('{"a\\u0041": 1,\n "aA": 2}', "^x: .*duplicate key 'aA'"),
        ('["NaN",\n "\\"NaN", 1,\n NaN]', "^x: is no JSON: NaN is no number"),
        ("[\n1e999]", "^x: is no JSON: '1e999' is beyond all numbers"),
        ("[" + "9" * 400 + "]", "is beyond all numbers"),
        ("[" * DEEP, "^x: lists and mappings are nested deeper than is read"),
        ('["\\ud800"]', "has half a character"),
        ("[1,\n 2", "^x:2: is no JSON: .* at character"),
        ("[" + "[]," * 2_100_000 + "1]", "has more than 2000000 values"),
        ("", "is no JSON"),
    ],
)
def test_json_that_is_none_or_too_much_is_refused(text, said):
    with pytest.raises(NetproofError, match=said):
        disk.json_value(text, "x")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: 1\nb: 2\na: 1\n", "^x:3: duplicate key 'a'; remove one"),
        ("1: 1\n1.0: 2\n", "^x:2: duplicate key 1.0"),
        ("a: &a {b: 1}\nc:\n  <<: *a\n  <<: *a\n", "^x:4: duplicate key '<<'; give one a list"),
        ("a: [1, .NaN]\n", "^x:1: '.NaN' is no number"),
        ("a: 1.0e+999\n", "^x:1: '1.0e[+]999' is no number"),
        ("a: " + "9" * 5000, "^x: is no YAML"),
        ("[" * DEEP, "^x: lists and mappings are nested deeper than is read"),
        (bomb(merged=False), "has more than 2000000 values, those of aliases counted"),
        (bomb(merged=True), "has more than 2000000 values, those of aliases counted"),
        ("a: &a [*a]\n", r"^x:1: \*a is within what it names"),
        ("a: 2001-13-45\n", "^x: is no YAML: 'month must be in"),
        ("a: !!python/object/apply:os.system [id]\n", "^x:1: is no YAML: could not determine"),
        ("? [1]\n: 1\n", "^x:1: a list or a mapping is no key"),
        ("\x00", "^x: is no YAML"),
        ("a" * 20_000_001, "has more than 20000000 characters"),
    ],
)
def test_yaml_that_is_none_or_too_much_is_refused_at_once(text, said):
    began = time.process_time()
    with pytest.raises(NetproofError, match=said):
        yaml_reading.yaml_value(text, "x")
    assert time.process_time() - began < 30


def test_an_own_key_alongside_a_merge_that_has_it_too_is_taken():
    text = "a: &a {x: 1, y: 2}\nb: &b {y: 3}\nc:\n  <<: [*a, *b]\n  x: 4\n"
    assert yaml_reading.yaml_value(text, "x")["c"] == {"x": 4, "y": 2}


@pytest.mark.parametrize(
    "text",
    [
        *("(([a-zA-Z0-9 ]+)+)+!", "(a*)*b", "(a|a)+$", "(a?){40}a{40}", "(a|a)" * 40, "(x+x+)+y"),
        *(".*.*.*.*.*!", "(){999999999}", "(a{0,30}){0,30}", "(?=(a+)+b)a"),
        *("a" * 1001, "(" * 900, "[", 5),
    ],
)
def test_an_expression_that_never_ends_or_is_none_is_refused(text):
    began = time.process_time()
    with pytest.raises(NetproofError, match=r"expression|for ever"):
        models.expression(text)
    assert time.process_time() - began < 30


@pytest.mark.parametrize("search", [False, True])
@pytest.mark.parametrize(
    "text",
    ["gige", "open.*", "IMB (Bcast|Reduce) .*", "(gcc|intel)-.*", r"mpich-[\d.]+", ".*a.*b.*"],
)
def test_an_expression_as_sites_write_them_is_taken_and_ends(text, search):
    taken = models.expression(text, search=search)
    began = time.process_time()
    (taken.search if search else taken.fullmatch)("gige openmpi-5.0 IMB Alltoallv 64 ranks " * 3)
    assert time.process_time() - began < 30


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: os.symlink("/dev/zero", path)])
def test_what_is_no_file_is_refused_and_not_waited_for(tmp_path, make):
    make(tmp_path / "x")
    with pytest.raises(NetproofError, match=r"x: cannot be read: it is a .* and no file"):
        disk.read_bytes(tmp_path / "x")


def test_a_file_that_is_too_large_is_refused_unread_and_the_limit_can_be_set(tmp_path, monkeypatch):
    with (tmp_path / "x").open("wb") as file:
        file.truncate(10**12)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(NetproofError, match="larger than the 512 MB that are read"):
        disk.read_bytes(tmp_path / "x")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 10 * 1024
    (tmp_path / "x").write_bytes(b"12")
    monkeypatch.setenv(disk.VARIABLE, "0.000001")
    with pytest.raises(NetproofError, match="raises that"):
        disk.read_bytes(tmp_path / "x")
    monkeypatch.setenv(disk.VARIABLE, "0.000002")
    assert disk.read_bytes(tmp_path / "x") == b"12"
    monkeypatch.setenv(disk.VARIABLE, "much")
    with pytest.raises(NetproofError, match="NETPROOF_MOST_MB is 'much'"):
        disk.read_bytes(tmp_path / "x")


# Models check strictly what people write; each fault names its place and the remedy.


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


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("bytes", "1", "found '1', expected a positive whole number"),
        ("link", math.nan, "found nan, expected a positive number"),
        ("link", None, "found nothing; give a value or remove the key"),
        ("on", 1, "found 1, expected true or false"),
        ("model", " ", "found ' ', expected text"),
        ("colour", "green", "found 'green', expected one of red, blue"),
        ("ports", [], "found [], expected a list that is not empty"),
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


# A file is replaced at once or not at all.


def test_writing_replaces_the_file_behind_a_link_and_keeps_its_permissions(tmp_path):
    target, link = tmp_path / "target.yaml", tmp_path / "link.yaml"
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to(target)
    disk.replace(link, "new\r\n")
    assert target.read_bytes() == b"new\r\n"
    assert link.is_symlink()
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert sorted(os.listdir(tmp_path)) == ["link.yaml", "target.yaml"]


def test_a_write_that_fails_leaves_the_file_and_nothing_alongside_it(tmp_path, monkeypatch):
    path = tmp_path / "testbed.yaml"
    path.write_text("old")

    def refuse(*_):
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(OSError, match="no space left"):
        disk.replace(path, "new")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["testbed.yaml"]
