"""Each verb with ``--format json`` has a schema in the wheel, and its answer is as that says."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from pathlib import Path

import pytest
from made_answers import faults, insist_on_keys, written
from made_calls import called
from typer.main import get_command

from docs import answers, from_code
from netproof.commands.cli import app
from netproof.present import documents

ROOT = Path(__file__).resolve().parents[3]
DATA = ROOT / "tests" / "data"
SESSIONS = DATA / "sessions"
HEALTHY, SICK = SESSIONS / "healthy.json", SESSIONS / "sick.json"
IMB = DATA / "imb" / "2021.11" / "all.txt"


def test_the_schemas_follow_from_the_code():
    folder = files("netproof.present") / "schemas"
    made = {one.name: one.read_text() for one in folder.iterdir()}
    assert made == answers.texts(), "run `python docs/answers.py`"


def test_every_verb_that_prints_json_has_a_schema():
    printing = {"history", "compare --by"}
    for name, command in get_command(app).commands.items():
        for below, verb in getattr(command, "commands", {"": command}).items():
            if any(
                one.name == "form" and "json" in [*one.type_descriptor.annotation]
                for one in verb.params
            ):
                printing.add(f"{name} {below}".strip())
    # That one writes tables of the store into files.
    assert printing - {"history show", "store export"} == set(answers.VERBS)


def test_the_page_has_every_key_of_every_answer():
    page = from_code.on_page_markdown((ROOT / "docs" / "reference" / "json.md").read_text())
    for verb in answers.VERBS:
        one = answers.Schema(verb)
        for name, record in {f"netproof {verb}": one.schema, **one.definitions}.items():
            section = page.split(f"\n### {name}\n")[1].split("\n### ")[0]
            assert re.findall(r"(?m)^\| `([^`]+)` \|", section) == [*record["properties"]]


def test_each_key_that_the_page_explains_is_one():
    page = (ROOT / "docs" / "reference" / "json.md").read_text()
    known = set(re.findall(r'"(\w+)":', "".join(answers.texts().values())))
    for row in re.findall(r"(?m)^\| (?:… )?((?:`\w+`(?:, )?)+) \|", page):
        assert set(re.findall(r"`(\w+)`", row)) <= known


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(path.name for path in SESSIONS.glob("*.json")))
def test_the_verdict_on_each_recorded_session_is_as_its_schema_says(judge, name):
    assert faults("verdict", written(documents.of_judged(judge(name)))) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        ("verdict", SICK, "testbed:gige"),
        ("verdict", SESSIONS / "passed.json", "testbed:gige", "--power"),
        ("diagnose", SICK),
        ("compare", HEALTHY, SICK),
        ("compare --by", "partition", HEALTHY),
        ("judge", IMB),
        ("site check", "testbed:gige"),
        ("site show", "testbed:gige"),
        ("references risk", *(SESSIONS / f"repeated-{number}.json" for number in (1, 2, 3))),
    ],
)
def test_no_answer_lacks_a_key_or_has_another_name_or_type_for_it(project, arguments):
    verb, *more = arguments
    _, out, error = called(*verb.split(), *more, "--format=json")
    assert out, error
    insist_on_keys(verb, json.loads(out))
