"""A site's file is read whole or refused with file, place, key and remedy."""

from __future__ import annotations

import copy

import pytest
from made_sites import ROOT, refusal, written

from netproof.site import site
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


def test_the_sites_that_come_with_the_project_are_valid():
    gathered = site.gather(ROOT / "site-config")
    assert {system["name"] for system in gathered["systems"]} >= {"example", "testbed"}
