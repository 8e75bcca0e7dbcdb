"""A sweep is graded by the planted setting, and a campaign makes such sweeps."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from ci.campaigns import keeping
from ci.testbed import topology_reading
from ci.tune_campaign import command, judging, making, records, table
from ci.tune_campaign.kinds import ALLREDUCE, KINDS
from ci.tune_campaign.records import Campaign, Found, Judged, Result, Run, Settings
from netproof.experiments import algorithms, parameters
from netproof.site import site

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = Settings(3, 0.05, 0.05, 0.1, 60.0)


def run_of(kind: str, number: int = 1, environment: str = "") -> Run:
    return Run(number, kind, 11, (environment or KINDS[kind].environments[0],))


def document(kind: str, **values: object) -> str:
    """A document of ``netproof measure tune --format json``, as far as it is judged."""
    sweep = {"parameter": KINDS[kind].parameter, "recommended": None, "eager_steps": None}
    return json.dumps({"sweeps": [sweep | values]})


def recommended(value: str) -> dict:
    return {"recommended": {"value": value, "sentence": f"{value}: +31 % (+24 to +38)"}}


@pytest.mark.parametrize(
    ("kind", "values", "found"),
    [
        ("mtu", recommended("1500"), Found.RIGHT),
        ("mtu", recommended("700"), Found.WRONG),
        ("mtu", {}, Found.MISSED),
        ("nothing", {}, Found.RIGHT),
        ("nothing", recommended("2"), Found.WRONG),
        ("socket-buffer", recommended("131072"), Found.RIGHT),
    ],
)
def test_what_is_recommended_is_compared_with_what_is_planted(kind, values, found):
    judged = judging.judge(run_of(kind), 0, document(kind, **values), "")
    assert judged.found is found
    assert judged.said


def test_a_sweep_that_cannot_tell_says_why():
    why = "netproof: cannot tune: 1 of the launches ended with 1"
    found = judging.judge(run_of("mtu"), 2, "", f"[ReFrame]\n{why}\n")
    assert (found.found, found.said) == (Found.CANNOT, (why,))


@pytest.mark.parametrize(
    ("status", "text"),
    [(2, ""), (1, ""), (0, ""), (0, "[]"), (0, '{"sweeps": []}'), (0, document("mtu"))],
)
def test_what_is_no_answer_is_not_judged(status, text):
    assert judging.judge(run_of("nothing"), status, text, "").found is Found.NOT_JUDGED


def rows(*winners: str | None) -> dict:
    sizes = [{"bytes": 4 << place, "winner": winner} for place, winner in enumerate(winners)]
    return {"sizes": sizes, "conclusion": "Allreduce on 2 ranks: as it is"}


@pytest.mark.parametrize(
    ("kind", "winners", "found"),
    [
        ("algorithm-preset", ("2", "2"), Found.RIGHT),
        ("algorithm-preset", ("2", None), Found.MISSED),
        ("algorithm-preset", (None, None), Found.MISSED),
        ("algorithm-preset", ("2", "3"), Found.WRONG),
        ("algorithm-preset", (), Found.MISSED),
        ("algorithm-alike", (None, None), Found.RIGHT),
        ("algorithm-alike", (None, "auto"), Found.WRONG),
        ("algorithm-alike", (), Found.MISSED),
    ],
)
def test_an_algorithm_has_to_win_at_every_size_or_none_anywhere(kind, winners, found):
    judged = judging.judge(run_of(kind), 0, document(kind, **rows(*winners)), "")
    assert judged.found is found


SIZES = [512, 768, 1024, 1536, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768]


@pytest.mark.parametrize(
    ("seen", "steps"),
    [
        (([1024, 1536], [4096, 6144], [8192, 12288], [16384, 24576]), 4),
        (([768, 1024], [4096, 6144], [12288, 16384], [16384, 24576]), 4),
        (([512, 768], [4096, 6144], None, [16384, 24576]), 2),
        (([3072, 4096], [1024, 1536], [16384, 24576], [4096, 6144]), 0),
    ],
)
def test_a_limit_is_seen_where_it_is_or_at_the_next_size(seen, steps):
    kind = KINDS["eager-steps"]
    text = document(
        "eager-steps",
        values=[{"by_size": [[size, 1.0] for size in SIZES]}],
        eager_steps=[
            {"value": value, "sizes": sizes}
            for value, sizes in zip((None, *kind.values), (None, *seen), strict=True)
        ],
    )
    judged = judging.judge(run_of("eager-steps"), 0, text, "")
    assert judged.steps == (steps, 4)
    assert judged.found is (Found.RIGHT if steps == 4 else Found.MISSED)


def test_order_is_drawn_by_the_seed_and_environments_take_turns():
    runs = records.planned(list(KINDS), 6, 5)
    assert runs == records.planned(list(KINDS), 6, 5)
    assert runs != records.planned(list(KINDS), 6, 6)
    assert Counter(run.kind for run in runs) == dict.fromkeys(KINDS, 6)
    of_steps = Counter(run.environments[0] for run in runs if run.kind == "eager-steps")
    assert of_steps == dict.fromkeys(KINDS["eager-steps"].environments, 2)


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_a_kind_is_one_that_the_testbed_can_be_asked_for(name, tmp_path):
    kind = KINDS[name]
    switches = {one.name: one for one in topology_reading.load(making.topology(kind)).switches}
    assert kind.partition in switches
    library = tmp_path / "libslow_mpi.so"
    for environment in kind.environments:
        folder = tmp_path / environment
        folder.mkdir()
        run = run_of(name, environment=environment)
        variables = making.site_settings(run, folder, library)
        there = site.gather(Path(variables["RFM_CONFIG_PATH"]))["environments"]
        (found,) = (one for one in there if one["name"] == environment)
        for setting in kind.variables_in(environment, str(library)).items():
            assert list(setting) in found["env_vars"]
        mpi = found["extras"]["mpi"]
        if kind.function:
            names = algorithms.choice(mpi, kind.function, kind.values)
            told = algorithms.library_of(mpi).setting(kind.function)
            assert set(kind.best) <= set(names)
            assert ALLREDUCE[environment] in told.variables
        else:
            asked = parameters.found(kind.parameter, kind.values)
            assert set(kind.best) <= set(kind.values or asked.values_on(["eth1", "eth2"]))
            asked.told(kind.protocol, mpi)


def results(kind: str, *found: Found) -> list[Result]:
    seen = {Found.RIGHT: (4, 4), Found.MISSED: (3, 4)}
    return [
        Result(
            run_of(kind, number),
            Judged(one, ("none",), seen.get(one, (0, 4)) if KINDS[kind].steps else (0, 0)),
            *("2026-11-25T09:00:00+00:00", 30.0 + number, (0.5, 0.4, 0.3), (1.5, 1.0, 0.8)),
        )
        for number, one in enumerate(found, 1)
    ]


def campaign(made: list[Result]) -> Campaign:
    machine = {"cpus": 2, "kernel": "6.18", "autogroup": True}
    runs = tuple(one.run for one in made)
    return Campaign(SETTINGS, runs, keeping.code_digest(), machine)


def test_aims_are_nine_of_ten_and_all_where_nothing_differs_and_15_of_16_steps():
    made = []
    for name, kind in KINDS.items():
        worst = Found.MISSED if kind.best or kind.steps else Found.RIGHT
        made += results(name, *[Found.RIGHT] * 9, worst)
    assert table.missed(campaign(made), made) == []
    text = table.table(campaign(made), made)
    assert text.endswith("Aims met.")
    assert "39 of 40 seen there or at the next size." in text
    assert "| an MTU of 576 bytes | mtu over TCP | 10 | 9 | 0 | 1 | 0 | 0 |" in text


def test_one_recommendation_of_what_changes_nothing_is_one_too_many():
    made = results("nothing", *[Found.RIGHT] * 9, Found.WRONG)
    made += results("eager-steps", *[Found.RIGHT] * 5, *[Found.MISSED] * 5)
    sentences = table.missed(campaign(made), made)
    assert "a variable that no library reads: 9 of 10 right" in sentences
    assert any("35 of 40 seen where they are" in one for one in sentences)
    assert "an MTU of 576 bytes: 0 of the 10 runs that it takes" in sentences


def test_no_run_is_no_campaign(tmp_path, capsys):
    assert command.main(["--out", str(tmp_path / "campaign"), "--runs", "0"]) == 2
    assert "no run was asked for" in capsys.readouterr().err


@pytest.mark.slow
def test_the_script_prints_what_was_found_so_far(tmp_path):
    keeping.begin(tmp_path, campaign(results("mtu", Found.RIGHT)))
    command_line = [ROOT / "ci" / "tune-campaign", "--table", tmp_path]
    ran = subprocess.run(command_line, capture_output=True, text=True, check=False)
    assert ran.returncode == 1, ran.stderr
    assert "MISSED: 0 of 1 runs were made." in ran.stdout
