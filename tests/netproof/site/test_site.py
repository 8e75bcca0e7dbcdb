"""A site's file is read whole or refused with file, place, key and remedy."""

from __future__ import annotations

import copy
import pprint
from pathlib import Path

import pytest

from netproof.site import site

ROOT = Path(__file__).resolve().parents[3]

CONFIGURATION = {
    "systems": [
        {
            "name": "cluster",
            "hostnames": ["login"],
            "partitions": [
                {
                    "name": "gige",
                    "scheduler": "slurm",
                    "launcher": "srun",
                    "environs": ["mpich"],
                    "processor": {"num_cpus": 4},
                    "extras": {
                        "switch": "Summit",
                        "nic": "BCM5720",
                        "driver": "tg3",
                        "link_mbit_s": 1000,
                        "mtu": 1500,
                        "interface": "eno1",
                        "nodes": 4,
                        "ranks_per_node": 2,
                        "rank_counts": [4, 8],
                        "baseline": "mpich",
                    },
                }
            ],
        }
    ],
    "environments": [
        {
            "name": "mpich",
            "features": ["netpipe-tcp", "netpipe-mpi"],
            "extras": {"mpi": "MPICH 4.2", "pmi": "pmi2", "absent": {"imb": "not built"}},
        }
    ],
}


@pytest.fixture
def configuration() -> dict:
    return copy.deepcopy(CONFIGURATION)


def written(folder: Path, configuration: dict, name: str = "cluster.py") -> Path:
    path = folder / name
    path.write_text(f"site_configuration = {pprint.pformat(configuration)}\n")
    return path


def refusal(folder: Path, configuration: dict) -> str:
    path = written(folder, configuration)
    with pytest.raises(site.SiteError) as caught:
        site.gather(folder)
    assert str(caught.value).startswith(f"{path}: ")
    return str(caught.value).removeprefix(f"{path}: ")


def test_defaults_are_filled_in_and_rank_counts_become_features(tmp_path, configuration):
    written(tmp_path, configuration)
    gathered = site.gather(tmp_path)
    partition = gathered["systems"][0]["partitions"][0]
    assert partition["extras"]["max_message_bytes"] == 4194304
    assert partition["extras"]["contention_domain"] == "Summit"
    assert partition["features"] == ["ranks-4", "ranks-8", "fewest-ranks-4"]
    assert gathered["environments"][0]["target_systems"] == ["cluster"]
    assert site.Partition.from_extras(partition["extras"]).rank_counts == (4, 8)


def test_an_unknown_key_of_a_partition_is_refused(tmp_path, configuration):
    configuration["systems"][0]["partitions"][0]["extras"]["mut"] = 1500
    said = refusal(tmp_path, configuration)
    assert said.startswith(
        "partition cluster:gige: extras['mut']: is unknown; did you mean 'mtu'? the keys are switch"
    )


@pytest.mark.parametrize(
    "key", [key for key, of in site.PARTITION_KEYS.items() if of.default is None]
)
def test_a_missing_key_of_a_partition_is_refused(tmp_path, configuration, key):
    del configuration["systems"][0]["partitions"][0]["extras"][key]
    said = refusal(tmp_path, configuration)
    assert said.startswith(f"partition cluster:gige: extras[{key!r}]: is missing; give ")


@pytest.mark.parametrize(
    ("key", "value", "remedy"),
    [
        ("mtu", 100, "576 to 65535"),
        ("mtu", "1500", "of type int"),
        ("link_mbit_s", 0, "not above 0"),
        ("link_mbit_s", True, "of type int"),
        ("switch", " ", "give a name"),
        ("max_message_bytes", 1000000, "no power of two"),
        ("rank_counts", [], "[16, 32, 64] for instance"),
        ("rank_counts", [8, 4], "has to increase"),
        ("rank_counts", [4, 4], "has to increase"),
        ("rank_counts", [4, 5], "5 is no multiple of ranks_per_node, which is 2"),
        ("rank_counts", [2, 4], "stay on one node and cross no switch; take 4 or more"),
        ("rank_counts", [4, 16], "need 8 nodes, and nodes is 4"),
        ("nodes", 1, "between 2 nodes at least"),
        ("ranks_per_node", 8, "processor.num_cpus only 4"),
        ("netpipe_repeats", -1, "is below 0"),
        ("imb_arguments", ["-time", 3], "no list of strings"),
        ("step_limit_s", 0, "not above 0"),
    ],
)
def test_a_bad_value_is_refused_with_its_remedy(tmp_path, configuration, key, value, remedy):
    configuration["systems"][0]["partitions"][0]["extras"][key] = value
    said = refusal(tmp_path, configuration)
    assert said.startswith("partition cluster:gige: ")
    assert remedy in said


def test_a_benchmark_neither_there_nor_absent_is_refused(tmp_path, configuration):
    configuration["environments"][0]["extras"]["absent"] = {}
    said = refusal(tmp_path, configuration)
    assert said.startswith("environment mpich: features: name 'imb'")


def test_a_benchmark_both_there_and_absent_is_refused(tmp_path, configuration):
    configuration["environments"][0]["features"].append("imb")
    assert "not in both" in refusal(tmp_path, configuration)


@pytest.mark.parametrize(
    ("absent", "remedy"), [({"omb": "no"}, "is no benchmark"), ({"imb": ""}, "say why")]
)
def test_an_absence_needs_a_known_benchmark_and_a_reason(tmp_path, configuration, absent, remedy):
    configuration["environments"][0]["extras"]["absent"] = absent
    assert remedy in refusal(tmp_path, configuration)


def test_another_scheduler_or_launcher_is_refused(tmp_path, configuration):
    configuration["systems"][0]["partitions"][0]["launcher"] = "mpirun"
    said = refusal(tmp_path, configuration)
    assert said == "partition cluster:gige: launcher: is 'mpirun'; the checks need 'srun'"


def test_an_environment_that_is_not_defined_is_refused(tmp_path, configuration):
    configuration["systems"][0]["partitions"][0]["environs"].append("openmpi")
    said = refusal(tmp_path, configuration)
    assert said == (
        "partition cluster:gige: environs: 'openmpi' is not defined in this file; it has mpich"
    )


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
    found = site.survey(tmp_path)
    assert [(fault.path, fault.place, fault.key) for fault in found.faults] == [
        (str(path), "environment lam", "extras"),
        (str(path), "environment lam", "extras['mpi']"),
        (str(path), "environment lam", "extras['pmi']"),
        *[(str(path), "environment lam", "features")] * 3,
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
    (system,) = found.configuration["systems"]
    assert [partition["name"] for partition in system["partitions"]] == ["gige"]
    assert [environment["name"] for environment in found.configuration["environments"]] == ["mpich"]
    with pytest.raises(site.SiteError, match=r"; and 14 more faults, which 'netproof site check'"):
        site.gather(tmp_path)


def test_two_partitions_of_one_name_are_refused(tmp_path, configuration):
    partitions = configuration["systems"][0]["partitions"]
    partitions.append(copy.deepcopy(partitions[0]))
    del partitions[1]["extras"]["baseline"]
    said = refusal(tmp_path, configuration)
    assert said == "partition cluster:gige: name: is there twice; names are unique in a system"


@pytest.mark.parametrize("place", ["systems", "partitions", "environments"])
@pytest.mark.parametrize("entry", [None, "gige", ["gige"], {}, {"name": 1}])
def test_an_entry_that_is_none_is_refused(tmp_path, configuration, place, entry):
    holder = configuration["systems"][0] if place == "partitions" else configuration
    holder[place].append(entry)
    assert "name: is missing" in refusal(tmp_path, configuration)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("time_limit", "30 min"),
        ("time_limit", ""),
        ("time_limit", 30),
        ("environs", [["mpich"]]),
        ("extras", None),
        ("extras", []),
        ("environs", 3),
    ],
)
def test_a_value_of_another_type_is_refused(tmp_path, configuration, key, value):
    configuration["systems"][0]["partitions"][0][key] = value
    assert f"partition cluster:gige: {key}: " in refusal(tmp_path, configuration)


def test_a_time_limit_is_of_reframes_form():
    assert site.time_limit_s({}) is None
    assert site.time_limit_s({"time_limit": None}) is None
    assert site.time_limit_s({"time_limit": "1h"}) == 3600
    assert site.time_limit_s({"time_limit": "1d2h30m5s"}) == 26 * 3600 + 30 * 60 + 5


def test_a_file_that_does_not_run_is_refused(tmp_path):
    (tmp_path / "cluster.py").write_text("site_configuration = {'systems': [}\n")
    with pytest.raises(site.SiteError, match=r"cluster\.py: the file: Python: SyntaxError"):
        site.gather(tmp_path)


def test_a_file_without_a_configuration_is_refused(tmp_path):
    (tmp_path / "cluster.py").write_text("configuration = {}\n")
    with pytest.raises(site.SiteError, match="site_configuration: is missing"):
        site.gather(tmp_path)


def test_an_empty_folder_is_refused(tmp_path):
    with pytest.raises(site.SiteError, match="holds no system"):
        site.gather(tmp_path)


def test_two_files_with_one_system_are_refused(tmp_path, configuration):
    written(tmp_path, configuration, "a.py")
    written(tmp_path, configuration, "b.py")
    with pytest.raises(site.SiteError, match=r"b\.py: system cluster: name: .*a\.py has a system"):
        site.gather(tmp_path)


def test_one_file_with_a_system_twice_is_refused(tmp_path, configuration):
    configuration["systems"].append(copy.deepcopy(configuration["systems"][0]))
    assert "has a system of that name too" in refusal(tmp_path, configuration)


def test_the_sites_that_come_with_the_project_are_valid():
    gathered = site.gather(ROOT / "site-config")
    assert {system["name"] for system in gathered["systems"]} >= {"example", "testbed"}


def test_the_documentation_names_every_key():
    text = (ROOT / "docs" / "site.md").read_text()
    for key in (*site.PARTITION_KEYS, *site.ENVIRONMENT_KEYS):
        assert f"`{key}`" in text


@pytest.mark.parametrize(
    ("extras", "reason"),
    [
        ({"baseline": "openmpi"}, "extras['baseline']: 'openmpi' is none of its environs, mpich"),
        ({"baseline": ""}, "one partition names the environment that scores are relative to"),
        ({"criteria": {"jumps": {}}}, "extras['criteria']: 'jumps' is no criterion; those are"),
        ({"retired": {"lam": " "}}, "extras['retired']: say why 'lam' is gone, in a sentence"),
        ({"retired": {"mpich": "old"}}, "extras['retired']: 'mpich' is among its environs"),
    ],
)
def test_what_the_verdict_needs_of_a_partition_is_checked(tmp_path, configuration, extras, reason):
    configuration["systems"][0]["partitions"][0]["extras"] |= extras
    with pytest.raises(site.SiteError) as caught:
        site.load(written(tmp_path, configuration))
    assert reason in str(caught.value)


def test_only_one_partition_of_a_system_has_the_baseline(tmp_path, configuration):
    partitions = configuration["systems"][0]["partitions"]
    partitions.append(copy.deepcopy(partitions[0]) | {"name": "nexus"})
    with pytest.raises(site.SiteError, match="scores are relative to, and gige, nexus"):
        site.load(written(tmp_path, configuration))


@pytest.mark.parametrize(
    ("known", "reason"),
    [
        ({"NetPIPE (": "why"}, "'NetPIPE (' is no regular expression"),
        ({"NetPIPE .*": ""}, "say what is known of 'NetPIPE .*', in a sentence"),
    ],
)
def test_a_known_flaw_is_an_expression_and_a_reason(tmp_path, configuration, known, reason):
    configuration["environments"][0]["extras"]["known"] = known
    with pytest.raises(site.SiteError) as caught:
        site.load(written(tmp_path, configuration))
    assert f"environment mpich: extras['known']: {reason}" in str(caught.value)


@pytest.mark.parametrize("key", ["swi" + "{" * 50_000, "switch"])
def test_what_a_file_says_at_length_is_quoted_by_its_beginning_and_end(
    tmp_path, configuration, key
):
    extras = configuration["systems"][0]["partitions"][0]["extras"]
    extras[key] = 0 if key != "switch" else "x" * 50_000 + "\n"
    said = refusal(tmp_path, configuration)
    assert "characters more) …" in said
    assert len(said) < 3000
