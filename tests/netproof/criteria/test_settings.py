"""Settings of criteria that a site may change, and the errors where it may not."""

from __future__ import annotations

import math

import pytest

from netproof.criteria.settings import Settings
from netproof.errors import NetproofError


def test_what_a_site_does_not_change_stays_at_its_default():
    changed = Settings.of_site({"jump": {"warn": 3, "fail": 6.5}}, 0)
    assert (changed.jump.warn, changed.jump.fail, changed.jump.least_size) == (3, 6.5, 4)
    assert changed.inversion == Settings().inversion


def test_none_asserts_nothing():
    settings = Settings.of_site({"mpi_loss": {"warn": None, "fail": None}}, 0)
    assert (settings.mpi_loss.warn, settings.mpi_loss.fail) == (None, None)


def test_bursts_of_an_emulated_link_are_left_out_of_the_loss_of_mpi():
    assert Settings.of_site({}, 131072).mpi_loss.least_size == 131072
    settings = Settings.of_site({"mpi_loss": {"least_size": 65536}}, 131072)
    assert settings.mpi_loss.least_size == 65536
    assert settings.inversion.least_size == 4


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"jumps": {"fail": 6}}, "'jumps' is no criterion; those are envelope, score, inversion"),
        ({"jump": 6}, "'jump' is 6, and has to be a dictionary of settings"),
        (
            {"jump": {"fails": 6}},
            "'jump': 'fails': unknown here; did you mean 'fail'? the keys are warn",
        ),
        ({"jump": {"fail": "6"}}, "'jump': 'fail': found '6', expected a number or None"),
        ({"jump": {"fail": True}}, "'jump': 'fail': found True, expected a number or None"),
        ({"jump": {"fail": math.nan}}, "'jump': 'fail': found nan, expected a number or None"),
        ({"jump": {"warn": math.inf}}, "'jump': 'warn': found inf, expected a number or None"),
        ({"jump": {"least_size": None}}, "'least_size': found None, expected a whole number"),
        ({"jump": {"least_size": 4.5}}, "'least_size': found 4.5, expected a whole number"),
        ({"jump": {"fail": 2}}, "fail=2 is milder than warn=4.0: exchange them"),
        ({"confirm": {"launches": 1}}, "confirming takes at least 3 launches"),
        ({"score": {"resamples": 10}}, "an interval takes 100 resamples or more"),
    ],
)
def test_a_setting_that_cannot_be_is_refused_by_name(changes, reason):
    with pytest.raises(NetproofError) as caught:
        Settings.of_site(changes, 0)
    assert reason in str(caught.value)
