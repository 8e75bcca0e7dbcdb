"""The simulation makes its pair rounds, and netproof finds faults as soon as documented."""

from __future__ import annotations

import json

import numpy as np
import pytest

from ci.evaluation import pair_power
from ci.evaluation.pair_power import (
    HEALTHY,
    ROUNDS,
    Fault,
    Portion,
    follow,
    needed,
    quick,
)

HALF = Fault("node", 1, 0.5)


def test_a_fault_slows_what_it_is_of():
    one, other = np.array([0, 1, 2, 0]), np.array([5, 3, 3, 1])
    slowed = {
        kind: (Fault(kind, 1, 0.5).slowness(one, other, 2) > 0).tolist()
        for kind in ("node", "pair", "uplink")
    }
    assert slowed == {
        "node": [True, False, False, True],
        "pair": [False, False, False, True],
        "uplink": [True, True, False, False],
    }
    assert Fault("node", 2, 0.5).slowness(one, other, 2).tolist() == pytest.approx(
        [np.log(2), np.log(2), 0, np.log(2)]
    )


@pytest.mark.slow
def test_half_rate_is_found_where_it_is():
    runs = [follow(64, HALF, "normal", (1, number)) for number in range(10)]
    assert needed([run.right for run in runs], 0.9) <= 3
    assert not any(run.wrong for run in runs)


@pytest.mark.slow
def test_recorded_noise_accuses_nobody():
    runs = [follow(16, HEALTHY, "recorded", (2, number)) for number in range(6)]
    assert not any(run.wrong for run in runs)


def test_a_pair_is_found_by_measuring_it_again():
    run, rounds = quick(16, Fault("pair", 1, 0.5), "normal", (3, 1))
    assert run.right is not None
    assert run.right <= rounds <= ROUNDS
    assert not run.wrong


def test_99_percent_are_there_or_it_is_never():
    assert needed([2] * 99 + [None]) == 2
    assert needed([2] * 98 + [3, None]) == 3
    assert needed([2] * 98 + [None, None]) is None


@pytest.mark.slow
def test_tables_and_chart_are_of_what_was_simulated(tmp_path):
    for fault in (HALF, HEALTHY):
        portion = Portion("random", 16, fault, "normal", 2)
        (tmp_path / f"{portion.name}.json").write_text(json.dumps(portion.simulate(60)))
    found = pair_power.results(tmp_path)
    lines = list(pair_power.tables(found))
    assert any("| normal | 1 node | 16 |" in line for line in lines)
    assert any(line.startswith("| normal | 16 | 2 | 0 | 0.000 to 84.189 % |") for line in lines)
    pair_power.chart(found, tmp_path / "chart.svg")
    assert (tmp_path / "chart.svg").read_text().startswith("<svg")
