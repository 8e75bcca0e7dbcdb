"""The curves that docs/criteria/ shows are judged as it says."""

from functools import partial
from pathlib import Path

import pytest
from made_cases import along, only

from netproof.benchmarks import netpipe
from netproof.criteria import Level
from netproof.criteria.settings import ConfirmSettings
from netproof.criteria.shape import JUMP
from netproof.verdict import confirmations

CURVES = Path(__file__).parents[3] / "docs" / "criteria" / "curves"
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
