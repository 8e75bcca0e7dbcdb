"""``netproof references derive``: from at least three sessions, and never looser unasked."""

from __future__ import annotations

import dataclasses
import math
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import yaml  # what ReFrame reads references with
from made_measured import recorded, slower
from made_references import looked_up
from made_reports import altered, busy, cases_in
from scipy.stats import binomtest
from typer.testing import CliRunner

from netproof.commands.cli import app
from netproof.errors import NetproofError
from netproof.measurement.case import Case
from netproof.measurement.interval import Side
from netproof.session.session import CheckResult, Session
from netproof.verdict import derive as derivation
from netproof.verdict.derive import (
    Scatter,
    derive,
    half_widths,
    tightened,
)
from netproof.verdict.limits import Limits
from netproof.verdict.references import ReferenceFile

ROOT = Path(__file__).resolve().parents[3]
RECORDED = [ROOT / "tests" / "data" / "sessions" / f"repeated-{n}.json" for n in (1, 2, 3)]
PINGPONG = "ImbPingPong"
SIMULATED = 200


NARROW = 0.01
"""A half width, in logarithms, that is below every floor."""

DERIVED = [100, -0.1, 0.1, "MB/s"]


@pytest.mark.parametrize(
    ("values", "variable", "said"),
    [
        ([100, 100, 70], "latency_us", "bounds of 90 to 110 us, and 70 lies outside"),
        ([103, 103, 103], "line_rate_share", "103 % of the line rate is an error"),
        *(
            (values, "latency_us", "take no relative bounds")
            for values in ([0, 0, 0], [-1, -1, -1], [float("inf")] * 3, [1, 0, 1])
        ),
    ],
)
def test_values_that_make_no_bounds_are_refused_with_the_reason(values, variable, said):
    with pytest.raises(NetproofError, match=said):
        derive(values, variable, NARROW)


def test_no_share_of_the_line_rate_above_102_per_cent_passes():
    highest = Limits.of_entry(derive([97.0, 97.5, 98.0], "line_rate_share", NARROW)).high
    assert 101.98 <= highest <= 102


@pytest.mark.slow
@pytest.mark.parametrize("sessions", [3, 10])
def test_an_unchanged_network_crosses_any_of_all_bounds_in_one_of_twenty_sessions(sessions):
    random = np.random.default_rng(20)
    crossed = 0
    for _ in range(SIMULATED):
        spreads = 0.01 * np.exp(0.5 * random.standard_normal((12, 8)))
        values = np.exp(spreads[..., None] * random.standard_normal((12, 8, sessions + 1)))
        before = [
            {f"rate_{place}": of.tolist() for place, of in enumerate(case)}
            for case in values[..., :-1]
        ]
        widths = half_widths(before, 0.05)
        crossed += any(
            abs(math.log(values[case, place, -1] / np.median(of))) > widths[case][name]
            for case, several in enumerate(before)
            for place, (name, of) in enumerate(several.items())
        )
    assert binomtest(crossed, SIMULATED, 0.05).pvalue > 0.01


@pytest.mark.parametrize(
    ("stands", "bounds"),
    [
        ((100, -0.3, None), (90, 110)),
        ((100, -0.05, 0.3), (95, 110)),
        ((110, -0.1, 0.0), (99, 110)),
        ((0, 80, 105), (90, 105)),
    ],
)
def test_the_tighter_bound_stays_on_each_side(stands, bounds):
    made, kept = tightened(DERIVED, [*stands, "MB/s"])
    limits = Limits.of_entry(made)
    assert (limits.low, limits.high) == pytest.approx(bounds, abs=1e-9)
    assert bool(kept) == (bounds != (90, 110))


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with the testbed's references; they and ReFrame's reports are looked for there."""
    shutil.copy(ROOT / "reference-values" / "testbed.yaml", tmp_path)
    monkeypatch.setenv("RFM_REFERENCE_PREFIX", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def baseline(*arguments: object) -> tuple[int, str, str]:
    """The command's exit status, standard output and standard error."""
    ran = CliRunner().invoke(app, ["references", "derive", *map(str, arguments)])
    return ran.exit_code, ran.stdout, ran.stderr


def found(
    path: Path, partition="gige", environment="mpich", check=PINGPONG, ranks=2
) -> dict[str, list]:
    """Return the result of ReFrame's own lookup for a case of the check."""
    case = Case("testbed", partition, environment, "", "", ranks, 1, "inter-node", "oneway")
    return looked_up(yaml.safe_load(path.read_text()), check, case)


class TestCommand:
    @pytest.mark.slow
    def test_writes_what_reframe_then_finds_for_that_case_and_no_other(self, here):
        file = here / "testbed.yaml"
        before = {
            place: found(file, *place)
            for place in (("gige", "intelmpi"), ("gige", "mpich", "ImbBcast"), ("ib", "mpich"))
        }
        text = file.read_bytes()
        status, out, err = baseline(*RECORDED)
        assert status == 0
        assert out.startswith("--- testbed.yaml\n+++ testbed.yaml\n@@ ")
        assert "+        peak_mb_s: [115.13, -0.229, 0.297, MB/s]\n" in out
        assert "nothing is written; --write changes testbed.yaml" in err
        assert file.read_bytes() == text
        status, _, err = baseline(*RECORDED, "--write")
        assert "testbed.yaml is written" in err
        assert "10 cases have fewer than 3 launches in a session" in err
        now = found(file)
        assert now["peak_mb_s"] == [115.13, -0.229, 0.297, "MB/s"]
        assert now["peak_size"] == [131072, -0.5, 1.0, "B"]
        assert now["line_rate_share"] == [0, None, None, "%"]
        assert {place: found(file, *place) for place in before} == before
        assert found(file, check="NetpipeTcp")["peak_mb_s"] == [114.13, -0.1, 0.1, "MB/s"]

    @pytest.mark.slow
    def test_options_say_how_wide_bounds_are_which_there_are_and_of_which_partition(self, here):
        options = ("--floor", "0.3", "--spread-limit", "0.24", "--per-size", "testbed:gige")
        _, out, _ = baseline(*RECORDED, *options)
        assert "peak_mb_s: [115.13, -0.3, " in out
        assert "time_us_65536: [" in out
        assert "fast-ethernet" not in out
        assert (
            "spread by 23.5 % (30.55, 37.11, 25.7 us), and the limit is 10 %"
            in (baseline(*RECORDED)[2])
        )


class TestBoundsThatStand:
    @pytest.fixture
    def standing(self, here):
        """``standing(entry)``: the latency's entry for all PingPong is that one."""

        def put(entry: str) -> Path:
            file = here / "testbed.yaml"
            text = file.read_text()
            old = f"{PINGPONG}:\n  $index: [$partition, $environ, ranks]\n  'testbed:.*': "
            assert old in text
            own = f"{{'.*': {{2: {{<<: *landmarks, peak_mb_s: {entry}}}}}}}\n  other:.*: "
            file.write_text(text.replace(old, old + own))
            return file

        return put

    @pytest.mark.slow
    @pytest.mark.parametrize("stands", [115, 200])
    def test_it_gets_looser_and_a_median_outside_is_taken_only_if_allowed(self, standing, stands):
        file = standing(f"[{stands}, -0.05, null, MB/s]")
        assert baseline(*RECORDED, "--write", "testbed:gige", "--allow-looser")[0] == 0
        value, lower, _, _ = found(file)["peak_mb_s"]
        assert (value, lower < -0.1) == (115.13, True)

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("entry", "more", "status", "why"),
        [
            (
                "[200, -0.05, null, MB/s]",
                (),
                3,
                "the sessions' median 115.13 MB/s lies outside what stands, 190 to inf MB/s",
            ),
            (
                "[$xfail, ticket 4711, [200, -0.05, null, MB/s]]",
                ("--allow-looser",),
                0,
                "$xfail, ticket 4711",
            ),
        ],
    )
    def test_a_median_outside_and_an_expected_failure_are_left(
        self, standing, entry, more, status, why
    ):
        file = standing(entry)
        ran, _, err = baseline(*RECORDED, "--write", "testbed:gige", *more)
        assert ran == status
        assert f"peak_mb_s: left as it is: {why}" in err
        assert found(file)["peak_mb_s"] == yaml.safe_load(entry)
        assert found(file)["peak_size"] == [131072, -0.5, 1.0, "B"]

    def test_another_unit_is_an_error(self, standing):
        standing("[115, -0.05, null, ms]")
        status, out, err = baseline(*RECORDED, "--write")
        assert (status, out) == (2, "")
        assert "the unit is 'ms', and the check reports 'MB/s'" in err


UNDECIDED = {
    **{"criterion": "reference", "level": "inconclusive", "where": "it", "value": 6.0},
    **{"reason": "latency_us is 6 us", "bound": 5.5, "interval": [5, 7], "variable": "latency_us"},
}


def disturbed(test):
    for launch in test["netproof_measured"]["launches"]:
        launch["loads"] = [busy(0.38, "gige-2")]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda test: test.update(result="fail", fail_phase="performance"), "fail in performance"),
        (
            lambda test: test.update(netproof_case=None, netproof_measured=None),
            "run-3.json does not have it",
        ),
        (
            lambda test: test["netproof_measured"]["partition_extras"].update(nic="card"),
            "nic was 'veth' in repeated-1.json and 'card' in run-3.json",
        ),
        # What a session leaves open.
        (
            lambda test: test.update(netproof_references=[UNDECIDED]),
            "inconclusive in run-3.json: latency_us is 6 us",
        ),
        (disturbed, "inconclusive in run-3.json: the machine was disturbed: gige-2: others used"),
    ],
)
def test_a_case_that_not_all_sessions_measured_alike_makes_none(here, change, why):
    def changed(document):
        (test,) = (
            one
            for one in cases_in(document)
            if one["partition"] == "gige" and one["display_name"].startswith(PINGPONG)
        )
        change(test)

    third = altered(here, changed, "repeated-3", "run-3.json")
    status, _, err = baseline(*RECORDED[:2], third, "--write")
    assert status == 0
    assert f"testbed:gige mpich IMB PingPong 2 ranks: no references: {why}" in err
    assert found(here / "testbed.yaml")["peak_mb_s"] == [0, None, None, "MB/s"]
    # Others of the same sessions do.
    assert found(here / "testbed.yaml", "fast-ethernet")["peak_mb_s"][0] == 11.645


@pytest.mark.slow
def test_a_case_that_the_file_does_not_have_makes_none(here):
    file = here / "testbed.yaml"
    file.write_text(file.read_text().replace("ImbPingPong:", "ImbPongPing:"))
    status, _, err = baseline(*RECORDED)
    assert status == 3
    assert "testbed.yaml: has no ImbPingPong; add it with null for bounds" in err


def refused(*arguments) -> str:
    status, out, err = baseline(*arguments)
    assert (status, out) == (2, "")
    assert err.startswith("netproof: cannot derive references: ")
    return err


def test_sessions_that_are_too_few_the_same_or_none_are_refused(here):
    assert "2 of at least 3 sessions: fewer tell no spread" in refused(*RECORDED[:2])
    copy = shutil.copy(RECORDED[0], here / "copy.json")
    said = refused(*RECORDED[:2], copy)
    assert re.search(r"copy\.json: is the session of .*repeated-1\.json once more", said)
    (here / "run.json").write_text("[]")
    assert "is no report of ReFrame's" in refused(*RECORDED[:2], here / "run.json")
    assert "nowhere.json: is not there" in refused(*RECORDED[:2], "nowhere.json")


def test_sessions_of_different_systems_are_refused(here):
    def move(document):
        for test in cases_in(document):
            test["system"] = "elsewhere"
            if test["netproof_measured"]:
                test["netproof_measured"]["case"]["system"] = "elsewhere"

    said = refused(*RECORDED[:2], altered(here, move, "repeated-3", "run-3.json"))
    assert "results of 2 systems (elsewhere, testbed); name one" in said


def test_a_partition_that_no_session_has_and_a_file_of_references_that_is_missing_or_broken(here):
    said = refused(*RECORDED, "testbed:ib")
    assert "repeated-1.json: has no case of testbed:ib" in said
    (here / "testbed.yaml").write_text("ImbPingPong:\n  $index: [ranks\n")
    assert re.search(r"testbed\.yaml:\d: is no YAML: ", refused(*RECORDED))
    (here / "testbed.yaml").unlink()
    assert "testbed.yaml: is not there; copy" in refused(*RECORDED)


def drawn(within: float, between: float, sessions: int, launches: int, seed: int) -> list:
    random = np.random.default_rng(seed)
    levels = between * random.standard_normal(sessions)
    return np.exp(levels[:, None] + within * random.standard_normal((sessions, launches))).tolist()


@pytest.mark.parametrize(("within", "between"), [(0.02, 0.1), (0.1, 0.0)])
def test_the_scatter_of_launches_and_that_of_sessions_are_separated(within, between):
    found = derivation.scatter(drawn(within, between, 400, 5, 1))
    assert found.within == pytest.approx(within, rel=0.1)
    # What launches explain is no scatter of sessions.
    assert found.between == pytest.approx(between, rel=0.15, abs=0.02)
    assert (found.sessions, found.launches) == (400, 2000)


def passing(plan, ratio: float, scattering: Scatter, *, acceptances: int = 1000, seed: int = 0):
    """The share of simulated acceptances that a network of ``ratio`` passes."""
    random = np.random.default_rng(seed)
    passed = 0
    for _ in range(acceptances):
        levels = math.log(ratio) + scattering.between * random.standard_normal(plan.sessions)
        noise = scattering.within * random.standard_normal((plan.sessions, plan.launches))
        level = np.median(levels[:, None] + noise, axis=1).mean()
        passed += level >= math.log(plan.bound) if plan.bound < 1 else level <= math.log(plan.bound)
    return passed / acceptances


@pytest.mark.parametrize("launches", [1, 3, 5])
@pytest.mark.parametrize("larger", [True, False])
@pytest.mark.parametrize(
    ("within", "between", "margin"), [(0.02, 0.03, 0.05), (0.1, 0.05, 0.1), (0.2, 0.2, 0.2)]
)
def test_a_thousand_acceptances_have_the_risks_that_a_plan_states(
    within, between, margin, launches, larger
):
    scattering = Scatter(within, between, 10, 30)
    plan = derivation.plan(scattering, margin, launches=launches, larger=larger)
    assert plan.risk <= derivation.RISK
    worse = 1 - margin if larger else 1 / (1 - margin)
    # Three standard errors of a share of 5 % of a thousand.
    most = derivation.RISK + 3 * math.sqrt(derivation.RISK * (1 - derivation.RISK) / 1000)
    assert 1 - passing(plan, 1.0, scattering, seed=1) <= most
    assert passing(plan, worse, scattering, seed=2) <= most


@pytest.mark.parametrize(
    ("scatter", "margin", "said"),
    [*((0.1, margin, "is no share") for margin in (0, 1, -0.1)), (1.0, 0.01, "more than 1000")],
)
def test_a_margin_that_is_no_share_or_takes_too_many_sessions_is_refused(scatter, margin, said):
    with pytest.raises(NetproofError, match=said):
        derivation.plan(Scatter(scatter, scatter, 3, 9), margin)


REFERENCES = """\
ImbPingPong:
  $index: [$partition, $environ, ranks]
  'testbed:.*':
    '.*':
      2:
        latency_us: [6, null, 0.5, us]
        peak_mb_s: [100, null, null, MB/s]
"""


def slowed(result: CheckResult, factor: float) -> CheckResult:
    measured = result.measured and slower(result.measured, factor)
    return dataclasses.replace(result, measured=measured)


@pytest.fixture(scope="module")
def several() -> list[Session]:
    """Three sessions: a recorded one, and the same three times as fast and as slow."""
    stored = recorded("healthy")
    return [
        dataclasses.replace(stored, results=tuple(slowed(one, factor) for one in stored.results))
        for factor in (1.0, 0.3, 3.0)
    ]


@pytest.fixture
def references(tmp_path) -> ReferenceFile:
    path = tmp_path / "testbed.yaml"
    path.write_text(REFERENCES)
    return ReferenceFile(path)


def of(several, references, margin=0.2):
    found, without = derivation.risks_of_sessions(
        several, references, "testbed", "gige", margin, tries=200
    )
    return {
        one.variable: one
        for one in found
        if (one.case.environment, one.case.function) == ("mpich", "PingPong")
    }, without


@pytest.mark.slow
def test_a_bound_has_a_curve_and_a_landmark_without_one_only_a_plan(several, references):
    found, _ = of(several, references)
    latency = found["latency_us"]
    assert latency.bound == pytest.approx(1.5)
    assert latency.agreed == 6
    assert latency.seller() == pytest.approx(1 - latency.curve[1.0][Side.WITHIN])
    assert latency.buyer(0.2) >= latency.buyer(0.5)
    assert (found["peak_mb_s"].bound, found["peak_mb_s"].curve) == (None, {})
    assert found["peak_mb_s"].plan is not None


@pytest.mark.slow
def test_a_case_that_a_session_lacks_has_a_reason(several, references):
    results = tuple(
        one for one in several[2].results if one.case and one.case.function != "PingPong"
    )
    lacking = dataclasses.replace(several[2], results=results)
    found, without = of([*several[:2], lacking], references)
    assert found == {}
    assert {case.function for case in without} == {"PingPong"}
    assert set(without.values()) == {"2 of 3 sessions have measured it"}
