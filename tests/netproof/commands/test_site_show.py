"""The jobs that will run and how long they should take, or why that is not known."""

from __future__ import annotations

import functools
import json
import re
from pathlib import Path

import pytest
from made_calls import called

from netproof.present.wording import not_available
from netproof.site import site
from netproof.site.matrix import matrix

ROOT = Path(__file__).resolve().parents[3]
RECORDED = ROOT / "tests" / "data" / "sessions" / "netpipe-whole.json"


pytestmark = pytest.mark.usefixtures("project")


shown = functools.partial(called, "site", "show")


@pytest.mark.slow
def test_every_case_that_is_expected_is_in_a_job_and_every_absence_is_shown():
    document = json.loads(shown("testbed", "--format=json")[1])
    expected = matrix(site.gather(ROOT / "site-config"), "testbed")
    assert document["cases"] == len(expected.cases)
    assert sum(len(job["cases"]) for job in document["jobs"]) == len(expected.cases)
    assert len(document["absences"]) == len(expected.absences)
    _, said, _ = shown("testbed")
    assert said.startswith("testbed, of ")
    assert f": {len(expected.cases)} cases in {len(document['jobs'])} jobs" in said
    assert said.count("\nnot available: ") == len(not_available(expected.absences))
    for one in expected.absences:
        assert one.reason in said.replace("\n", " ")
    pairs_in = {one["partition"]: one["pairs_in"] for one in document["partitions"]}
    assert pairs_in == {"gige": ["mpich"], "fast-ethernet": ["mpich"]}
    assert "rounds of pairs on gige, fast-ethernet: in mpich\n" in said


@pytest.mark.slow
def test_a_partition_says_switch_card_link_and_ranks():
    _, said, _ = shown("example:nexus")
    (row,) = [line for line in said.splitlines() if line.startswith("nexus  ") and "i40e" in line]
    assert re.split(r"\s{2,}", row.strip()) == [
        *("nexus", "Nexus 9300", "Intel X710, i40e 6.1", "10000", "9000", "eno2", "64"),
        *("16, 32, 64", "2", "Nexus 9300"),
    ]
    assert "summit" not in said
    assert "rounds of pairs on nexus: in openmpi-gcc\n" in said


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "reason"),
    [((), "no store was named"), (("--store", "/nonexistent"), "/nonexistent: is no store")],
)
def test_without_past_sessions_the_time_is_not_known_and_why_is_said(arguments, reason):
    status, said, _ = shown("testbed", *arguments)
    assert status == 0
    assert "\nhow long it should take is not known: " in said
    assert reason in said
    document = json.loads(shown("testbed", "--format=json", *arguments)[1])
    assert document["expected_seconds"] is None
    assert reason in document["not_known"]


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> str:
    """A store with a session of all NetPIPE on gige with mpich."""
    folder = str(tmp_path_factory.mktemp("site") / "store")
    assert called("store", "add", RECORDED, "--store", folder)[0] == 0
    return folder


@pytest.mark.slow
def test_what_was_never_measured_is_expected_to_take_what_the_like_takes_and_said(store):
    status, said, _ = shown("testbed:gige", "--store", store)
    assert status == 0
    rows = {line.split()[1]: line for line in said.splitlines() if line.startswith("gige  ")}
    assert re.search(r"4, \d+ s +8, \? +7, \?$", rows["mpich"])
    assert re.search(r"4, ~\d+ s +8, \? +7, \?$", rows["intelmpi"])
    assert (
        "gige openmpi4 NetPIPE, gige openmpi5 NetPIPE, gige intelmpi NetPIPE: never measured whole:"
        " as others of gige mpich"
    ) in said
    assert "IMB on 4 ranks: not known: nothing like it was ever measured" in said
    assert re.search(r"how long it should take is not known; what is known of it takes \d", said)
    _, of_the_other, _ = shown("testbed:fast-ethernet", "--store", store)
    assert "how long it should take is not known" in of_the_other


@pytest.mark.slow
def test_a_job_that_would_outlast_its_limit_is_named(store, tmp_path, monkeypatch):
    for path in (ROOT / "site-config").glob("*.py"):
        text = path.read_text()
        (tmp_path / path.name).write_text(text.replace('"time_limit": "30m"', '"time_limit": "5s"'))
    monkeypatch.setenv("RFM_CONFIG_PATH", str(tmp_path))
    _, said, _ = shown("testbed:gige", "--store", store)
    assert re.search(
        r"\ngige NetPIPE should take \d+ s, and jobs of gige have 5 s: Slurm would end it",
        said,
    )
