"""The curves that docs/criteria/ shows are judged as it says."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from made_cases import along, case, compared, only

from netproof.benchmarks import netpipe
from netproof.criteria import Level
from netproof.criteria.rate import MPI_LOSS
from netproof.criteria.score import score as score_of
from netproof.criteria.settings import ConfirmSettings
from netproof.criteria.shape import JUMP
from netproof.measurement.case import median_curve
from netproof.measurement.links import Link
from netproof.verdict import confirmations

CURVES = Path(__file__).parents[3] / "docs" / "criteria" / "curves"
FROM_BURSTS_UP = 65536
FLAGGED = (Level.WARN, Level.FAIL)
inversion, jump = partial(only, "inversion"), partial(only, "jump")
dropout = partial(along, "dropout")


def recorded(name):
    path = CURVES / f"{name}.np"
    return netpipe.read_file(path.read_text(), str(path), bidirectional=False).curve()


def launches(name):
    return [recorded(f"{name}-{number}") for number in (1, 2, 3)]


@pytest.mark.parametrize("launch", [1, 2, 3])
class TestEveryLaunch:
    def test_on_a_healthy_switch_passes(self, launch):
        curve = recorded(f"gige-tcp-{launch}")
        assert inversion(curve, where="gige").level is Level.PASS
        assert jump(curve, where="gige").level is Level.PASS
        assert [found.level for found in dropout(curve, where="gige")] == [Level.PASS]

    def test_on_a_switch_with_a_small_buffer_jumps_and_drops_out_at_48_kib(self, launch):
        curve = recorded(f"sick-tcp-{launch}")
        slow, step = inversion(curve, where="sick"), jump(curve, where="sick")
        assert (slow.size, slow.level in FLAGGED) == (49152, True)
        assert (step.size, step.level) == (49152, Level.FAIL)
        assert dropout(curve, where="sick")[0].level is Level.FAIL
        assert dropout(curve, where="sick")[0].size == 49152


def test_what_is_flagged_on_the_sick_switch_is_confirmed_there_and_not_on_the_healthy_one():
    flagged = jump(recorded("sick-tcp-1"), where="sick")
    sick, healthy = (
        confirmations.confirm(
            flagged, launches(f"{name}-tcp-again"), bounds=JUMP, settings=ConfirmSettings()
        )
        for name in ("sick", "gige")
    )
    assert (sick.repeated, sick.confirmed) == ((Level.FAIL, 3, 3), True)
    assert (healthy.repeated, healthy.confirmed) == ((Level.SHOWN, 0, 3), False)


def test_the_score_hides_a_collapse_at_one_size_and_the_envelope_shows_it():
    score = score_of(launches("sick-tcp"), launches("gige-tcp"), where="sick", baseline="gige")
    assert score.interval[0] < 1 < score.interval[1]
    healthy, *sick = compared(
        "envelope",
        {
            "gige": median_curve(launches("gige-tcp")),
            "sick": median_curve(launches("sick-tcp")),
        },
    )
    assert healthy.level is Level.PASS
    assert [(found.size, found.level) for found in sick] == [(49152, Level.FAIL)]


def test_mpi_keeps_the_bandwidth_of_tcp_until_its_socket_buffers_are_taken_away():
    settings = replace(MPI_LOSS, least_size=FROM_BURSTS_UP)
    tcp = median_curve(launches("gige-tcp"))
    for name, level in (("", Level.PASS), ("-least-buffers", Level.FAIL)):
        mpi = recorded(f"gige-open-mpi{name}-1")
        known = {"over_tcp": True, "others": {"tcp": case(tcp)}}
        peak = only("MPI loss at the peak", mpi, settings=settings, **known)
        assert peak.level is level


def test_only_what_never_left_the_node_is_above_the_line_rate():
    most = Link(1000, 1500).line_rate_mb_s()
    for name, level in (
        ("gige-tcp-1", Level.PASS),
        ("gige-open-mpi-1", Level.PASS),
        ("in-a-node-tcp", Level.FAIL),
    ):
        found = only("line rate", recorded(name), line_rate=most)
        assert found.level is level
