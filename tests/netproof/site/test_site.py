"""A site's file is read whole or refused with file, place, key and remedy."""

from __future__ import annotations

import copy

import pytest
from made_sites import CONFIGURATION, refusal, written

from netproof.errors import NetproofError
from netproof.site import site
from netproof.site.partition import (
    LoadSettings,
    PairSettings,
    Partition,
    time_limit_s,
)
from netproof.site.site import SiteError


def test_every_fault_of_every_file_is_found_and_the_first_says_that_there_are_more(
    tmp_path, configuration
):
    partition = configuration["systems"][0]["partitions"][0]
    second = copy.deepcopy(partition) | {"name": "nexus", "launcher": "mpirun"}
    del second["extras"]["switch"], second["extras"]["baseline"]
    second["extras"]["mtu"] = 9
    third = copy.deepcopy(partition) | {"environs": "mpich"}
    configuration["systems"][0]["partitions"] += [second, third]
    configuration["environments"].append({"name": "lam", "extras": []})
    path = written(tmp_path, configuration)
    (tmp_path / "other.py").write_text("raise RuntimeError('broken')\n")
    configuration, _, faults = site.survey(tmp_path)
    assert [(fault.path, fault.place, fault.key) for fault in faults] == [
        (str(path), "environment lam", "extras"),
        (str(path), "environment lam", "extras['mpi']"),
        (str(path), "environment lam", "extras['pmi']"),
        (str(path), "partition cluster:nexus", "launcher"),
        (str(path), "partition cluster:nexus", "extras['switch']"),
        (str(path), "partition cluster:nexus", "extras['mtu']"),
        (str(path), "partition cluster:gige", "name"),
        (str(path), "partition cluster:gige", "environs"),
        (str(path), "partition cluster:gige", "environs"),
        (str(path), "partition cluster:gige", "extras['baseline']"),
        (str(path), "system cluster", "extras['baseline']"),
        (str(tmp_path / "other.py"), "the file", "Python"),
    ]
    # What nothing is wrong with can be used.
    (system,) = configuration["systems"]
    assert [partition["name"] for partition in system["partitions"]] == ["gige"]
    assert [environment["name"] for environment in configuration["environments"]] == ["mpich"]
    with pytest.raises(SiteError, match=r"; and 11 more faults, which 'netproof site check'"):
        site.gather(tmp_path)


def test_an_empty_folder_is_refused(tmp_path):
    with pytest.raises(SiteError, match="holds no system"):
        site.gather(tmp_path)


def test_two_files_with_one_system_are_refused(tmp_path, configuration):
    written(tmp_path, configuration, "a.py")
    written(tmp_path, configuration, "b.py")
    with pytest.raises(SiteError, match=r"b\.py: system cluster: name: .*a\.py has a system"):
        site.gather(tmp_path)


def test_one_file_with_a_system_twice_is_refused(tmp_path, configuration):
    configuration["systems"].append(copy.deepcopy(configuration["systems"][0]))
    assert "has a system of that name too" in refusal(tmp_path, configuration)


# A partition as checks see it.


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


# Settings of a site for a network under load.


def test_by_default_nothing_is_asserted():
    settings = LoadSettings.of_site({})
    assert settings.most is settings.most_99th is None
    assert settings.repetitions >= 100
    assert LoadSettings.of_site({"most": 1.5}).most == 1.5


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"mots": 2.0}, "mots: unknown here; did you mean 'most'"),
        ({"most": 1.0}, "most: found 1.0, expected how many times"),
        ({"most": "2"}, "most: found '2', expected how many times"),
        ({"repetitions": 1}, "repetitions: found 1, expected how often"),
        ({"bytes": 0}, "bytes: found 0, expected message of an aggressor"),
        ({"arguments": ["-sync off"]}, "arguments.0: found '-sync off', expected"),
    ],
)
def test_what_load_cannot_be_is_refused_with_its_key(values: dict, said: str):
    with pytest.raises(NetproofError) as error:
        LoadSettings.of_site(values)
    assert str(error.value).startswith(said)


# Settings of a site for rounds of pairs.


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"slow": 0.1}, "slow: unknown here; did you mean 'slower'"),
        ({"slower": 1.5}, "slower: found 1.5, expected share"),
        ({"slower": "0.1"}, "slower: found '0.1', expected share"),
        ({"rounds": 1}, "rounds: found 1, expected 2 or more, or 0"),
        ({"quantities": ["speed"]}, "quantities.0: found 'speed', expected"),
        ({"quantities": ["rate both ways"]}, "quantities.0: found 'rate both ways', expected"),
        ({"quantities": []}, "quantities: found"),
        ({"arguments": ["-iter 3"]}, "arguments.0: found '-iter 3', expected"),
        ({"environments": "mpich"}, "environments: found 'mpich', expected environments"),
        ({"environments": ["a b"]}, "environments.0: found 'a b', expected"),
    ],
)
def test_what_cannot_be_is_refused_with_its_key(values: dict, said: str):
    with pytest.raises(NetproofError) as error:
        PairSettings.of_site(values)
    assert str(error.value).startswith(said)
