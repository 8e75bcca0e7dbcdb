"""The page on a study redone: its parts in their order, and why one is missing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from netproof.experiments import literature, parameters
from netproof.experiments.sweep import Sweep, turns
from netproof.measurement.case import Case, Curve
from netproof.present import studies
from netproof.present.html.report import Report
from netproof.session.measured import Launch
from netproof.site import site

ROOT = Path(__file__).resolve().parents[4]
EXTRAS = site.load(ROOT / "site-config" / "testbed.py")["systems"][0]["partitions"][0]["extras"]

CASE = Case("testbed", "gige", "mpich", "netpipe", "tcp", 2, 1, "inter-node", "oneway")


@pytest.fixture(scope="module")
def gathered(judge):
    """The material of a report on the session of two switches."""
    return Report(judge("two-switches.json"))


def swept() -> Sweep:
    several = turns(("65536", "131072"), 3, 1)
    launches = tuple(
        Launch(turn.launch, order, 0.0, 1.0, (), (Curve((1, 1024, 131072), (25.0, 40.0, 1200.0)),))
        for order, turn in enumerate(several, 1)
    )
    how = parameters.found("socket-buffer", ()).assignment("tcp", "MPICH")
    return Sweep(CASE, "socket-buffer", "socket buffer", how, "7", 1, EXTRAS, several, launches)


def page(gathered, name, sweeps=(), **not_swept):
    study = literature.load(name)
    why = {one: f"no sweep of {one}" for one in study.sweeps} | not_swept
    return study, studies.page(gathered, study, sweeps, why)


@pytest.mark.slow
@pytest.mark.parametrize("name", literature.names())
def test_every_study_has_a_page_with_its_parts_in_their_order(gathered, name):
    study, made = page(gathered, name)
    headings = [one.strip() for one in re.findall(r"<h2>(.*?)</h2>", made)]
    assert headings == [part.heading.replace("'", "&#39;") for part in study.page]
    for part in study.page:
        for sweep in part.sweeps:
            assert f"no sweep of {sweep}" in made
        if part.not_measured is not None:
            assert part.not_measured[:20] in made


@pytest.mark.slow
def test_what_a_study_compares_by_scores_is_drawn_with_its_intervals(gathered, charts_of):
    _, made = page(gathered, "gige-synthetic")
    scores = next(one for one in charts_of(made) if "times as fast" in one["description"])
    rows = [
        {key: one[0] if isinstance(one, list) else one for key, one in row.items()}
        for row in scores["datasets"]["points"]
    ]
    assert {"gige mpich", "gige intelmpi"} <= {
        row["configuration"].partition(",")[0] for row in rows
    }
    baseline = [row for row in rows if row["configuration"].startswith("gige mpich")]
    assert {row["value"] for row in baseline} == {1.0}
    assert all(row["low"] <= row["value"] <= row["high"] for row in rows)


@pytest.mark.slow
def test_a_sweep_that_was_measured_stands_in_its_part(gathered):
    _, made = page(gathered, "e325-opteron", [swept()])
    part = made[made.index("<h2>Socket buffers</h2>") : made.index("<h2>Interrupt coalescing</h2>")]
    assert "128 KiB" in part
    assert "no sweep of socket-buffer" not in made
