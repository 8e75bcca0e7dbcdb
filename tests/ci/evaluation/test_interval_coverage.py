"""How often stated intervals hold the truth, of launches whose noise is known."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import numpy as np
import pytest

from ci.evaluation import interval_coverage
from netproof.measurement.curve import Curve
from netproof.session.measured import Measured

SESSIONS = Path(__file__).resolve().parents[2] / "data" / "sessions"
SIZES = tuple(2**exponent for exponent in range(20))


def launches(count: int, spread: float) -> list[Curve]:
    """Curves of a gigabit link, each slower or faster by a factor of its own."""
    drawn = np.random.default_rng(8)
    return [
        Curve(SIZES, times, tuple(size / time for size, time in zip(SIZES, times, strict=True)))
        for factor in np.exp(drawn.normal(0, spread, count))
        for times in [tuple(float(factor * (30 + 0.0085 * size)) for size in SIZES)]
    ]


@pytest.mark.slow
def test_intervals_of_normal_noise_hold_in_about_95_of_100():
    found = interval_coverage.shares(launches(200, 0.1), 150, random.Random(1))
    assert {name for name, _ in found} >= {"latency_us", "peak_mb_s", "asymptotic_mb_s"}
    assert {count for _, count in found} == set(interval_coverage.GROUPS)
    # Four standard errors of 150 tries.
    assert all(0.88 <= share <= 1 for share in found.values())


def test_a_report_without_many_launches_is_refused(capsys):
    assert interval_coverage.main([str(SESSIONS / "healthy.json")]) == 2
    assert "no case has 60 launches or more" in capsys.readouterr().err


def test_a_report_that_is_not_there_is_refused(capsys):
    assert interval_coverage.main(["/nowhere.json"]) == 2
    assert "/nowhere.json: is not there" in capsys.readouterr().err


@pytest.mark.slow
def test_a_report_with_many_launches_has_its_table(tmp_path, capsys):
    path = shutil.copy(SESSIONS / "healthy.json", tmp_path / "many.json")
    document = json.loads(Path(path).read_text())
    for test in document["runs"][0]["testcases"]:
        measured = test.get("netproof_measured")
        if measured and test["netproof_case"]["function"] == "PingPong":
            found = Measured.from_json(measured)
            measured |= found.with_launches(20 * found.launches).as_json()
    Path(path).write_text(json.dumps(document))
    interval_coverage.main([str(path), "--tries", "20", "--seed", "3"])
    out = capsys.readouterr().out
    assert "20 groups of each size, seed 3" in out
    rows = [line for line in out.splitlines() if line.startswith("|")]
    assert rows[0] == "| 95 % interval of | 3 launches | 6 launches | 9 launches | 12 launches |"
    assert rows[-1].startswith("| all | ")
