"""The documents of ``--format json``: docs/reference/json.md describes every key."""

from __future__ import annotations

import io
import json
import re
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest
from typer.testing import CliRunner

from netproof.commands.cli import app
from netproof.measurement.landmarks import LANDMARK_NAMES
from netproof.present import documents
from netproof.site.partition import PARTITION_KEYS, PairSettings

ROOT = Path(__file__).resolve().parents[3]
RECORDED = ROOT / "tests" / "data" / "sessions"
HEALTHY, SICK = str(RECORDED / "healthy.json"), str(RECORDED / "sick.json")

LANDMARK_KEYS = {"size_below", "time_below_us", "rate_below_mb_s"} | {
    *("size_above", "time_above_us", "rate_above_mb_s", "step_us", *LANDMARK_NAMES)
}
"""Described by docs/method.md, and by name in the document itself."""


def keys_of(value) -> set[str]:
    if isinstance(value, dict):
        below = set().union(*map(keys_of, value.values()))
        return below | set(value)
    return set().union(*map(keys_of, value)) if isinstance(value, list) else set()


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        ("verdict", SICK, "testbed:gige"),
        ("compare", HEALTHY, SICK),
        ("compare", HEALTHY, "--partition", "gige", "fast-ethernet"),
        ("compare", HEALTHY, "--by", "partition"),
        ("site", "check", "testbed:gige"),
        ("site", "show", "testbed:gige"),
    ],
)
def test_every_key_is_documented(project, arguments):
    ran = CliRunner().invoke(app, [*arguments, "--format=json"])
    page = (ROOT / "docs" / "reference" / "json.md").read_text()
    described = set(re.findall(r"`(\w+)`", page))
    found = keys_of(json.loads(ran.stdout)) - LANDMARK_KEYS - set(PARTITION_KEYS)
    found -= set(PairSettings.model_fields)
    assert found
    assert found <= described


SCHEMA = jsonschema.Draft202012Validator(
    json.loads((files("netproof.present") / "verdict.schema.json").read_text())
)


def written(document: dict) -> dict:
    """What a verb prints."""
    out = io.StringIO()
    documents.write(document, out)
    return json.loads(out.getvalue())


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(path.name for path in RECORDED.glob("*.json")))
def test_a_verdict_is_as_the_schema_in_the_wheel_says(judge, name):
    document = written(documents.of_judged(judge(name)))
    assert [f"{one.json_path}: {one.message}" for one in SCHEMA.iter_errors(document)] == []


def test_the_schema_refuses_a_key_that_it_does_not_have_and_one_that_is_missing(judge):
    document = written(documents.of_judged(judge("sick.json", "testbed:gige")))
    document["cases"][0]["told"] = "x"
    del document["cases"][1]["findings"]
    wrong = {one.json_path for one in SCHEMA.iter_errors(document)}
    assert wrong == {"$.cases[0]", "$.cases[1]"}
