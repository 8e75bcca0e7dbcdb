"""A sweep is graded by the planted setting, and a campaign makes such sweeps."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from ci.evaluation import engine, judges
from ci.evaluation.machine import ROOT, SITE
from ci.evaluation.plants import EVALUATIONS, Grade, Run
from ci.testbed import topology_reading
from netproof.experiments import parameters
from netproof.site import site

EVALUATION = EVALUATIONS["tune-campaign"]
KINDS = EVALUATION.faults


def run_of(kind: str, number: int = 1, environment: str = "") -> Run:
    environment = environment or KINDS[kind].environments[0]
    drawn = EVALUATION.drawn(number, kind, 11, {})
    return dataclasses.replace(drawn, environments=(environment,))


def document(kind: str, **values: object) -> str:
    """A document of ``netproof measure tune --format json``, as far as it is judged."""
    sweep = {"parameter": KINDS[kind].parameter, "recommended": None, "eager_steps": None}
    return json.dumps({"sweeps": [sweep | values]})


def recommended(value: str) -> dict:
    return {"recommended": {"value": value, "sentence": f"{value}: +31 % (+24 to +38)"}}


def winners(*of_sizes: str | None) -> dict:
    sizes = [{"bytes": 4 << place, "winner": winner} for place, winner in enumerate(of_sizes)]
    return {"sizes": sizes, "conclusion": "Allreduce on 2 ranks: as it is"}


@pytest.mark.parametrize(
    ("kind", "values", "found"),
    [
        ("mtu", recommended("1500"), Grade.RIGHT),
        ("mtu", recommended("700"), Grade.WRONG),
        ("mtu", {}, Grade.MISSED),
        ("nothing", {}, Grade.RIGHT),
        ("nothing", recommended("2"), Grade.WRONG),
        ("socket-buffer", recommended("131072"), Grade.RIGHT),
        # An algorithm has to win at every size, or none anywhere.
        ("algorithm-preset", winners("2", "2"), Grade.RIGHT),
        ("algorithm-preset", winners("2", None), Grade.MISSED),
        ("algorithm-preset", winners("2", "3"), Grade.WRONG),
        ("algorithm-preset", winners(), Grade.MISSED),
        ("algorithm-alike", winners(None, None), Grade.RIGHT),
        ("algorithm-alike", winners(None, "auto"), Grade.WRONG),
    ],
)
def test_what_is_recommended_is_compared_with_what_is_planted(kind, values, found):
    judged = judges.graded(EVALUATION, run_of(kind), 0, document(kind, **values), "")
    assert judged.found is found
    assert judged.said


def test_a_sweep_that_cannot_tell_says_why():
    why = "netproof: cannot tune: 1 of the launches ended with 1"
    found = judges.graded(EVALUATION, run_of("mtu"), 2, "", f"[ReFrame]\n{why}\n")
    assert (found.found, found.said) == (Grade.INCONCLUSIVE, (why,))


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
    judged = judges.graded(EVALUATION, run_of("eager-steps"), 0, text, "")
    assert judged.found is (Grade.RIGHT if steps == 4 else Grade.MISSED)


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_a_kind_is_one_that_the_testbed_can_be_asked_for(name, tmp_path):
    kind = KINDS[name]
    switches = {one.name: one for one in topology_reading.load(ROOT / kind.topology).switches}
    assert kind.switch in switches
    library = tmp_path / "libslow_mpi.so"
    for environment in kind.environments:
        folder = tmp_path / environment
        folder.mkdir()
        run = run_of(name, environment=environment)
        variables = engine.site(EVALUATION, run, folder)
        there = site.gather(Path(variables.get("RFM_CONFIG_PATH", SITE.parent)))["environments"]
        (found,) = (one for one in there if one["name"] == environment)
        for setting in kind.variables_in(environment, library).items():
            assert list(setting) in found["env_vars"]
        mpi = found["extras"]["mpi"]
        if kind.function:
            names = parameters.algorithms(mpi, kind.function, kind.values)
            assignment = parameters.library_of(mpi).setting(kind.function)
            assert set(kind.best) <= set(names)
            assert kind.unless in (*assignment.variables, "")
        else:
            asked = parameters.found(kind.parameter, kind.values)
            assert set(kind.best) <= set(kind.values or asked.values_on(["eth1", "eth2"]))
            asked.assignment(kind.protocol, mpi)
