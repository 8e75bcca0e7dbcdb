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
    second["extras"]["mtu"], second["environs"] = 9, ["openmpi"]
    third = copy.deepcopy(partition) | {"environs": "mpich"}
    configuration["systems"][0]["partitions"] += [second, third]
    configuration["environments"].append({"name": "lam", "extras": []})
    path = written(tmp_path, configuration)
    (tmp_path / "other.py").write_text("raise RuntimeError('broken')\n")
    configuration, _, faults = site.survey(tmp_path)
    *own, other = map(str, faults)
    assert other.startswith(f"{tmp_path / 'other.py'}: the file: Python: RuntimeError: broken")
    expected = [
        "environment lam: extras: is [], and has to be a dictionary",
        "environment lam: extras['mpi']: missing, expected ",
        "environment lam: extras['pmi']: missing, expected ",
        "partition cluster:nexus: launcher: is 'mpirun'; the checks need 'srun'",
        "partition cluster:nexus: environs: 'openmpi' is not defined in this file; it has lam, mpi",
        "partition cluster:nexus: extras['switch']: missing, expected ",
        "partition cluster:nexus: extras['mtu']: found 9, expected ",
        "partition cluster:gige: name: is there twice; names are unique in a system",
        "partition cluster:gige: environs: is 'mpich', and has to be a list of names",
        "partition cluster:gige: environs: is missing or empty; name an environment of this file",
        "partition cluster:gige: extras['baseline']: 'mpich' is not among its environs: ",
        "system cluster: extras['baseline']: one partition names the environment that scores are",
    ]
    assert [fault[: len(f"{path}: {one}")] for fault, one in zip(own, expected, strict=True)] == [
        f"{path}: {one}" for one in expected
    ]
    # What nothing is wrong with can be used.
    (system,) = configuration["systems"]
    assert [partition["name"] for partition in system["partitions"]] == ["gige"]
    assert [environment["name"] for environment in configuration["environments"]] == ["mpich"]
    with pytest.raises(SiteError, match=r"; and 12 more faults, which 'netproof site check'"):
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
    assert time_limit_s({"time_limit": "1d2h30m5s"}) == 26 * 3600 + 30 * 60 + 5


def test_what_a_site_lists_is_kept_as_a_tuple_and_what_is_not_said_has_its_default():
    extras = CONFIGURATION["systems"][0]["partitions"][0]["extras"]
    partition = Partition.model_validate({**extras, "scheduler": "slurm", "twin": ("np", "to")})
    assert (partition.rank_counts, partition.twin) == ((4, 8), ("np", "to"))
    assert partition.arguments == dict.fromkeys(partition.arguments, ())
    assert (partition.crash_retries, partition.first_figure_s) == (3, 300)


# Settings of a site for a network under load, and for rounds of pairs.


def test_by_default_nothing_is_asserted():
    settings = LoadSettings.of_site({})
    assert settings.most is settings.most_99th is None
    assert settings.repetitions >= 100
    assert LoadSettings.of_site({"most": 1.5}).most == 1.5


@pytest.mark.parametrize(
    ("settings", "values", "said"),
    [
        (LoadSettings, {"mots": 2.0}, "mots: unknown here; did you mean 'most'"),
        (LoadSettings, {"most": 1.0}, "most: found 1.0, expected how many times"),
        (LoadSettings, {"repetitions": 1}, "repetitions: found 1, expected how often"),
        (LoadSettings, {"arguments": ["-sync off"]}, "arguments.0: found '-sync off', expected"),
        (PairSettings, {"slower": 1.5}, "slower: found 1.5, expected share"),
        (PairSettings, {"slower": "0.1"}, "slower: found '0.1', expected share"),
        (PairSettings, {"rounds": 1}, "rounds: found 1, expected 2 or more, or 0"),
        (PairSettings, {"quantities": ["speed"]}, "quantities.0: found 'speed', expected"),
        (PairSettings, {"quantities": ["rate both ways"]}, "quantities.0: found 'rate both ways',"),
        (PairSettings, {"quantities": []}, "quantities: found"),
        (PairSettings, {"environments": "mpich"}, "environments: found 'mpich', expected env"),
    ],
)
def test_what_cannot_be_is_refused_with_its_key(settings, values: dict, said: str):
    with pytest.raises(NetproofError) as error:
        settings.of_site(values)
    assert str(error.value).startswith(said)
