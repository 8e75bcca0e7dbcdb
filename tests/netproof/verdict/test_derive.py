"""``netproof references derive``: from at least three sessions, and never looser unasked."""

from __future__ import annotations

import dataclasses
import json
import math
import re
import shutil
import types
from pathlib import Path

import numpy as np
import pytest
import yaml  # what ReFrame reads references with
from reframe.core.pipeline import RegressionTestDict, RegressionTestPlugin
from scipy.stats import binomtest
from typer.testing import CliRunner

from netproof import codec
from netproof.commands.cli import app
from netproof.errors import NetproofError
from netproof.measurement.case import Curve
from netproof.session.measured import Measured
from netproof.verdict.derive import (
    derive,
    half_widths,
    tightened,
)
from netproof.verdict.limits import Limits

ROOT = Path(__file__).resolve().parents[3]
RECORDED = [ROOT / "tests" / "data" / "sessions" / f"repeated-{n}.json" for n in (1, 2, 3)]
PINGPONG = "ImbPingPong"
SIMULATED = 200


NARROW = 0.01
"""A half width, in logarithms, that is below every floor."""

DERIVED = [100, -0.1, 0.1, "MB/s"]


class TestDerive:
    @pytest.mark.parametrize(
        ("values", "variable", "width", "made"),
        [
            ([100, 101, 102], "peak_mb_s", NARROW, [101, -0.1, 0.1, "MB/s"]),
            # Beyond the floor as wide in logarithms.
            ([95, 100, 105], "latency_us", math.log(1.25), [100, -0.2, 0.25, "us"]),
            # A size has an octave to each side, and is whole.
            ([65536, 65536, 65536, 65537], "peak_size", NARROW, [65536, -0.5, 1.0, "B"]),
        ],
    )
    def test_the_value_is_the_median_with_bounds_to_both_sides(self, values, variable, width, made):
        assert derive(values, variable, width) == made
        assert type(derive(values, variable, width)[0]) is type(made[0])

    def test_a_spread_above_the_limit_makes_none(self):
        with pytest.raises(NetproofError, match=r"spread by 14\.8 % \(90, 100, 110 us\).* 10 %"):
            derive([90, 100, 110], "latency_us", NARROW)
        assert derive([90, 100, 110], "latency_us", NARROW, spread_limit=0.2)

    def test_bounds_that_a_session_they_come_from_would_fail_are_none(self):
        with pytest.raises(NetproofError, match=r"bounds of 90 to 110 us, and 70 lies outside"):
            derive([100, 100, 70], "latency_us", NARROW)

    @pytest.mark.parametrize("values", [[0, 0, 0], [-1, -1, -1], [float("inf")] * 3, [1, 0, 1]])
    def test_what_takes_no_relative_bounds_makes_none(self, values):
        with pytest.raises(NetproofError, match="take no relative bounds"):
            derive(values, "latency_us", NARROW)

    def test_no_share_of_the_line_rate_above_102_per_cent_passes(self):
        made = derive([97.0, 97.5, 98.0], "line_rate_share", NARROW)
        highest = Limits.of_entry(made).high
        assert highest <= 102
        assert highest == pytest.approx(102, abs=0.02)
        with pytest.raises(NetproofError, match="103 % of the line rate is an error"):
            derive([103, 103, 103], "line_rate_share", NARROW)


class TestHalfWidths:
    def test_of_one_variable_it_is_students_prediction_around_a_median(self):
        values = [95.0, 100.0, 105.0]
        (made,) = half_widths([{"latency_us": values}], 0.05)
        spread = np.std(np.log(values), ddof=1)
        # Student's quantile of two degrees of freedom.
        assert made["latency_us"] == pytest.approx(
            4.3027 * spread * math.sqrt(1 + math.pi / 2 / 3), rel=1e-4
        )

    def test_a_value_without_a_logarithm_has_none(self):
        assert half_widths([{"latency_us": [0.0, 1.0, 1.0]}], 0.05) == [{}]

    @pytest.mark.slow
    @pytest.mark.parametrize("sessions", [3, 10])
    def test_an_unchanged_network_crosses_any_of_all_bounds_in_one_of_twenty_sessions(
        self, sessions
    ):
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
        assert binomtest(crossed, SIMULATED, 0.05, alternative="greater").pvalue > 0.01
        assert crossed > 0


class TestTightened:
    @pytest.mark.parametrize(
        ("stands", "bounds"),
        [
            ((0, None, None), (90, 110)),
            ((100, -0.3, 0.3), (90, 110)),
            ((100, -0.05, 0.3), (95, 110)),
            ((100, None, 0.02), (90, 102)),
            ((110, -0.1, 0.0), (99, 110)),
            ((0, 80, 105), (90, 105)),
        ],
    )
    def test_the_tighter_bound_stays_on_each_side(self, stands, bounds):
        made, kept = tightened(DERIVED, [*stands, "MB/s"])
        limits = Limits.of_entry(made)
        assert (limits.low, limits.high) == pytest.approx(bounds, abs=1e-9)
        assert bool(kept) == (bounds != (90, 110))

    @pytest.mark.parametrize("edge", [99.99417, 100.00713, 103.33333, 96.66667])
    def test_rounding_never_loosens(self, edge):
        stands = [edge, 0.0 if edge < 100 else -0.05, 0.0 if edge > 100 else 0.05, "us"]
        before = Limits.of_entry(stands)
        after = Limits.of_entry(tightened(DERIVED, stands)[0])
        assert before.low - 1e-9 <= after.low
        assert after.high <= before.high + 1e-9

    @pytest.mark.parametrize("value", [80, 130])
    def test_a_median_outside_of_what_stands_is_no_reference(self, value):
        with pytest.raises(NetproofError, match="median 100 MB/s lies outside what stands"):
            tightened(DERIVED, [value, -0.1, 0.1, "MB/s"])


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


def changed(folder: Path, change) -> list[Path]:
    """The recorded sessions, ``change(number, testcases)`` applied to each."""
    paths = []
    for number, recorded in enumerate(RECORDED, 1):
        document = json.loads(recorded.read_text())
        testcases = document["runs"][0]["testcases"]
        change(number, testcases)
        document["runs"][0]["num_cases"] = len(testcases)
        paths.append(folder / f"run-{number}.json")
        paths[-1].write_text(json.dumps(document))
    return paths


def on_gige(testcases) -> dict:
    return next(
        t for t in testcases if t["partition"] == "gige" and t["display_name"].startswith(PINGPONG)
    )


def found(
    path: Path, partition="gige", environment="mpich", check=PINGPONG, ranks=2
) -> dict[str, list]:
    """Return the result of ReFrame's own lookup for a case of the check."""
    plugin = object.__new__(types.new_class(check, (RegressionTestPlugin,)))
    plugin.current_partition = types.SimpleNamespace(fullname=f"testbed:{partition}")
    plugin.current_environ = types.SimpleNamespace(name=environment)
    plugin.ranks, plugin.path, plugin.direction = ranks, "inter-node", "oneway"
    return RegressionTestDict(yaml.safe_load(path.read_text())[check])[plugin]


class TestCommand:
    @pytest.mark.slow
    def test_shows_a_diff_and_changes_nothing(self, here):
        before = (here / "testbed.yaml").read_bytes()
        status, out, err = baseline(*RECORDED)
        assert status == 0
        assert out.startswith("--- testbed.yaml\n+++ testbed.yaml\n@@ ")
        assert "+        peak_mb_s: [115.13, -0.229, 0.297, MB/s]\n" in out
        assert not [line for line in out.splitlines() if re.match(r"-(?!--)", line)]
        assert "nothing is written; --write changes testbed.yaml" in err
        assert (here / "testbed.yaml").read_bytes() == before

    @pytest.mark.slow
    def test_writes_what_reframe_then_finds_for_that_case_and_no_other(self, here):
        file = here / "testbed.yaml"
        before = {
            place: found(file, *place)
            for place in (("gige", "intelmpi"), ("gige", "mpich", "ImbBcast"), ("ib", "mpich"))
        }
        status, _, err = baseline(*RECORDED, "--write")
        assert status == 0
        assert "testbed.yaml is written" in err
        assert "10 cases have fewer than 3 launches in a session" in err
        now = found(file)
        assert now["peak_mb_s"] == [115.13, -0.229, 0.297, "MB/s"]
        assert now["peak_size"] == [131072, -0.5, 1.0, "B"]
        assert now["line_rate_share"] == [0, None, None, "%"]
        assert {place: found(file, *place) for place in before} == before
        assert found(file, check="NetpipeTcp")["peak_mb_s"] == [114.13, -0.1, 0.1, "MB/s"]

    @pytest.mark.slow
    def test_the_same_sessions_again_change_nothing_more(self, here):
        baseline(*RECORDED, "--write")
        status, out, err = baseline(*RECORDED, "--write")
        assert (status, out) == (0, "")
        assert "0 entries change" in err
        assert "testbed.yaml stays as it is" in err

    @pytest.mark.slow
    def test_a_spread_above_the_limit_is_said_and_its_entry_stays(self, here):
        _, _, err = baseline(*RECORDED, "--write")
        assert (
            "testbed:gige mpich NetPIPE tcp inter-node oneway:\n  latency_us: left as it is: the"
            " sessions spread by 23.5 % (30.55, 37.11, 25.7 us), and the limit is 10 %" in err
        )
        entries = found(here / "testbed.yaml", check="NetpipeTcp")
        assert entries["latency_us"] == [0, None, None, "us"]
        _, _, err = baseline(*RECORDED, "--write", "--spread-limit", "0.24")
        entries = found(here / "testbed.yaml", check="NetpipeTcp")
        assert entries["latency_us"] == [0, None, None, "us"]
        assert "spread like this (30.55, 37.11, 25.7 us) would allow" in err

    @pytest.mark.slow
    def test_a_floor_is_the_least_tolerance(self, here):
        baseline(*RECORDED, "--write", "--floor", "0.3")
        assert found(here / "testbed.yaml")["peak_mb_s"] == [115.13, -0.3, 0.3, "MB/s"]

    @pytest.mark.slow
    def test_the_time_at_each_size_only_if_asked_for(self, here):
        assert "time_us_" not in baseline(*RECORDED)[1]
        assert "time_us_65536: [" in baseline(*RECORDED, "--per-size")[1]

    def test_a_partition_can_be_named(self, here):
        _, out, _ = baseline(*RECORDED, "testbed:gige")
        assert "testbed:gige:" in out
        assert "fast-ethernet" not in out


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
    def test_a_tighter_one_is_kept_and_said(self, standing):
        file = standing("[115, -0.05, null, MB/s]")
        status, _, err = baseline(*RECORDED, "--write", "testbed:gige")
        assert status == 0
        assert "peak_mb_s: at least 109.25 MB/s stands, tighter than the sessions'" in err
        value, lower, upper, _ = found(file)["peak_mb_s"]
        assert value == 115.13
        assert 109.25 <= value * (1 + lower) < 109.26
        assert upper > 0.1

    @pytest.mark.slow
    @pytest.mark.parametrize("stands", [115, 200])
    def test_it_gets_looser_and_a_median_outside_is_taken_only_if_allowed(self, standing, stands):
        file = standing(f"[{stands}, -0.05, null, MB/s]")
        assert baseline(*RECORDED, "--write", "testbed:gige", "--allow-looser")[0] == 0
        value, lower, _, _ = found(file)["peak_mb_s"]
        assert value == 115.13
        assert lower < -0.1

    @pytest.mark.slow
    def test_a_median_outside_leaves_it_and_ends_with_3(self, standing):
        file = standing("[200, -0.05, null, MB/s]")
        status, _, err = baseline(*RECORDED, "--write", "testbed:gige")
        assert status == 3
        assert (
            "peak_mb_s: left as it is: the sessions' median 115.13 MB/s lies outside what stands,"
            " 190 to inf MB/s" in err
        )
        assert found(file)["peak_mb_s"] == [200, -0.05, None, "MB/s"]
        assert found(file)["peak_size"] == [131072, -0.5, 1.0, "B"]

    @pytest.mark.slow
    def test_an_expected_failure_stays_whatever_is_allowed(self, standing):
        file = standing("[$xfail, ticket 4711, [200, -0.05, null, MB/s]]")
        arguments = ("--write", "testbed:gige", "--allow-looser")
        status, _, err = baseline(*RECORDED, *arguments)
        assert status == 0
        assert "peak_mb_s: left as it is: $xfail, ticket 4711" in err
        assert found(file)["peak_mb_s"] == ["$xfail", "ticket 4711", [200, -0.05, None, "MB/s"]]

    def test_another_unit_is_an_error(self, standing):
        standing("[115, -0.05, null, ms]")
        status, out, err = baseline(*RECORDED, "--write")
        assert (status, out) == (2, "")
        assert "the unit is 'ms', and the check reports 'MB/s'" in err


class TestCasesThatMakeNone:
    @pytest.mark.slow
    def test_a_case_that_failed_in_one_session(self, here):
        def fail(number, testcases):
            if number == 2:
                on_gige(testcases).update(result="fail", fail_phase="performance")

        status, _, err = baseline(*changed(here, fail), "--write")
        assert status == 0
        assert (
            "testbed:gige mpich IMB PingPong 2 ranks: no references: fail in performance in"
            " run-2.json" in err
        )
        assert found(here / "testbed.yaml")["peak_mb_s"] == [0, None, None, "MB/s"]
        assert found(here / "testbed.yaml", "fast-ethernet")["peak_mb_s"][0] == 11.645

    @pytest.mark.slow
    def test_a_case_that_one_session_does_not_have(self, here):
        def lose(number, testcases):
            if number == 3:
                testcases.remove(on_gige(testcases))

        _, out, err = baseline(*changed(here, lose))
        assert "IMB PingPong 2 ranks: no references: run-3.json does not have it" in err
        assert "115.13" not in out
        assert "10 cases, 1 of them without references" in err

    @pytest.mark.slow
    def test_a_case_that_was_measured_in_another_configuration(self, here):
        def renew(number, testcases):
            if number == 2:
                on_gige(testcases)["netproof_measured"]["partition_extras"]["nic"] = "card"

        _, _, err = baseline(*changed(here, renew))
        assert "no references: nic was 'veth' in run-1.json and 'card' in run-2.json" in err

    @pytest.mark.slow
    def test_a_variable_that_one_session_does_not_define(self, here):
        def lose(number, testcases):
            if number == 2:
                values = on_gige(testcases)["netproof_measured"]
                found = codec.decode_part(Measured, values, "a case")
                (launch,) = found.launches
                curve = launch.curve
                columns = zip(curve.sizes, curve.time_us, curve.bandwidth_mb_s, strict=True)
                left = Curve(*zip(*(one for one in columns if one[0] != 65536), strict=True))
                launch = dataclasses.replace(launch, curves=(left,))
                values |= codec.encode(found.with_launches([launch]))

        _, _, err = baseline(*changed(here, lose))
        assert "rate_64_kib_mb_s: left as it is: 2 of 3 sessions define it" in err

    @pytest.mark.slow
    def test_a_case_that_the_file_does_not_have(self, here):
        file = here / "testbed.yaml"
        file.write_text(file.read_text().replace("ImbPingPong:", "ImbPongPing:"))
        status, _, err = baseline(*RECORDED)
        assert status == 3
        assert "no references: " in err
        assert "testbed.yaml: has no ImbPingPong; add it with null for bounds" in err


class TestWhatCannotBeDerived:
    def refused(self, *arguments) -> str:
        status, out, err = baseline(*arguments)
        assert (status, out) == (2, "")
        assert err.startswith("netproof: cannot derive references: ")
        return err

    def test_fewer_than_three_sessions(self, here):
        assert "2 of at least 3 sessions: fewer tell no spread" in self.refused(*RECORDED[:2])

    def test_a_session_given_twice(self, here):
        copy = shutil.copy(RECORDED[0], here / "copy.json")
        said = self.refused(*RECORDED[:2], copy)
        assert re.search(r"copy\.json: is the session of .*repeated-1\.json once more", said)

    def test_what_is_no_session(self, here):
        (here / "run.json").write_text("[]")
        assert "is no report of ReFrame's" in self.refused(*RECORDED[:2], here / "run.json")
        assert "nowhere.json: is not there" in self.refused(*RECORDED[:2], "nowhere.json")

    @pytest.mark.slow
    def test_sessions_of_different_systems(self, here):
        def move(number, testcases):
            if number == 2:
                for test in testcases:
                    test["system"] = "elsewhere"
                    if test["netproof_measured"]:
                        test["netproof_measured"]["case"]["system"] = "elsewhere"

        sessions = changed(here, move)
        assert "results of 2 systems (elsewhere, testbed); name one" in self.refused(*sessions)
        said = self.refused(*sessions, "testbed")
        assert "run-2.json: has no case of testbed" in said

    def test_a_partition_that_no_session_has_and_a_file_of_references_that_is_missing_or_broken(
        self, here
    ):
        said = self.refused(*RECORDED, "testbed:ib")
        assert "repeated-1.json: has no case of testbed:ib" in said
        (here / "testbed.yaml").write_text("ImbPingPong:\n  $index: [ranks\n")
        assert re.search(r"testbed\.yaml:\d: is no YAML: ", self.refused(*RECORDED))
        (here / "testbed.yaml").unlink()
        assert "testbed.yaml: is not there; copy" in self.refused(*RECORDED)

    def test_no_folder_of_references(self, here, monkeypatch):
        monkeypatch.delenv("RFM_REFERENCE_PREFIX")
        assert "RFM_REFERENCE_PREFIX is not set; source the site's activate" in self.refused(
            *RECORDED
        )
