"""Settings of criteria that a site may change, and the errors where it may not."""

from __future__ import annotations

import dataclasses
import math

import pytest

from netproof.criteria.settings import Settings, own_bounds, set_by_sites
from netproof.errors import NetproofError


def test_bursts_of_an_emulated_link_are_left_out_of_the_loss_of_mpi():
    assert Settings.of_site({}, 131072).mpi_loss.least_size == 131072
    assert Settings.of_site({}, 131072).inversion.least_size == 4


def test_one_least_size_holds_for_all_criteria_along_curves_but_those_of_short_messages():
    settings = Settings.of_site({"curves": {"least_size": 8192}, "jump": {"warn": 3}}, 131072)
    several = (settings.envelope, settings.jump, settings.growth, settings.guideline)
    assert {one.least_size for one in several} == {8192}
    assert (settings.jump.warn, settings.mpi_loss.least_size) == (3, 131072)
    assert {settings.score.least_size, settings.early_rendezvous.least_size} == {4}


def test_one_setting_says_whether_counters_have_to_be_known():
    settings = Settings.of_site({"counters": {"not_known": 1}, "drop": {"fail": 0.1}}, 0)
    several = (settings.carrier_change, settings.drop, settings.retransmission, settings.path)
    assert [one.not_known for one in several] == [1] * 4
    assert settings.drop.fail == 0.1


def test_a_site_can_set_45_things_at_most():
    names = [field.name for field in dataclasses.fields(Settings)]
    known = [(name, key) for name in names for key in set_by_sites(name)]
    assert len(known) <= 45
    for name, key in known:
        assert hasattr(getattr(Settings(), name), key)


def test_a_site_s_own_bounds_are_named_with_the_defaults_and_those_alike_are_not():
    changes = {
        "floor": {"warn": None, "fail": 0.25},
        "inversion": {"warn": 4, "fail": 20},
        "mpi_loss": {"fail": 0.75},
        "line_rate": {"warn_below": 0.8},
        "curves": {"least_size": 4096},
        "counters": {"not_known": 1},
        "jump": {"warn": 4.0},
    }
    assert own_bounds(changes) == (
        "floor no warn (default 0.5); inversion warns at 4 (default 2), fails at 20 (default 10);"
        " mpi_loss fails at 75% (default 50%); line_rate warns below 80% (default none);"
        " curves from 4096 bytes (default 4); counters not_known 1 (default 0)"
    )
    assert own_bounds({}) == ""


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"jumps": {"fail": 6}}, "'jumps' is no criterion; those are envelope, floor"),
        ({"jump": 6}, "'jump' is 6, and has to be a dictionary of settings"),
        ({"jump": {"fails": 6}}, "'jump': fails: unknown here; did you mean 'fail'?"),
        ({"jump": {"fail": "6"}}, "'jump': fail: found '6', expected a number or None"),
        ({"jump": {"fail": math.nan}}, "'jump': fail: found nan, expected a number or None"),
        ({"curves": {"least_size": 4.5}}, "least_size: found 4.5, expected a whole number"),
        ({"jump": {"fail": 2}}, "warn=4.0, fail=2: they are numbers that increase"),
        ({"dropout": {"fail": 0.9}}, "fail=0.9, warn=0.5: they are numbers that increase"),
        ({"curves": {"least_size": 0}}, "1 byte or more"),
        ({"line_rate": {"fail_below": 0.8, "warn_below": 0.5}}, "increase in this order"),
        ({"refine": {"slopes": 0.0}}, "a number above 0, or None to refine nothing"),
        ({"counters": {"not_known": 2}}, "not_known: found 2, expected 0 or 1"),
        ({"confirm": {"most_launches": 1}}, "all launches, 3 or more"),
    ],
)
def test_a_setting_that_cannot_be_is_refused_by_name(changes, reason):
    with pytest.raises(NetproofError) as caught:
        Settings.of_site(changes, 0)
    assert reason in str(caught.value)
