"""A partition as checks see it."""

from __future__ import annotations

from made_sites import CONFIGURATION

from netproof.site.partition import Partition, time_limit_s


def test_a_time_limit_is_of_reframes_form():
    assert time_limit_s({}) is None
    assert time_limit_s({"time_limit": None}) is None
    assert time_limit_s({"time_limit": "1h"}) == 3600
    assert time_limit_s({"time_limit": "1d2h30m5s"}) == 26 * 3600 + 30 * 60 + 5


def test_what_a_site_lists_is_kept_as_a_tuple_and_what_is_not_said_has_its_default():
    extras = CONFIGURATION["systems"][0]["partitions"][0]["extras"]
    partition = Partition.model_validate({**extras, "scheduler": "slurm", "twin": ("np", "to")})
    assert (partition.rank_counts, partition.twin) == ((4, 8), ("np", "to"))
    assert partition.arguments == dict.fromkeys(partition.arguments, ())
    assert (partition.crash_retries, partition.first_figure_s) == (3, 300)
