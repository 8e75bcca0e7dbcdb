"""A site's file is read whole or refused with file, place, key and remedy."""

from __future__ import annotations

import copy
import os
import re
import subprocess

import pytest
from made_sites import CONFIGURATION, refusal, written

from netproof.site import site
from netproof.site.matrix import NO_REASON, matrix
from netproof.site.partition import (
    ENVIRONMENT_KEYS,
    PARTITION_KEYS,
    LoadSettings,
    PairSettings,
    Partition,
    pair_environments,
    time_limit_s,
)
from netproof.site.site import OWN_ENVIRONMENT, SiteError


def test_defaults_are_filled_in_and_rank_counts_become_features(tmp_path, configuration):
    path = written(tmp_path, configuration)
    gathered = site.gather(tmp_path)
    assert gathered == site.load(path)
    partition = gathered["systems"][0]["partitions"][0]
    assert partition["extras"]["max_message_bytes"] == 4194304
    assert partition["extras"]["contention_domain"] == "Summit"
    assert partition["features"] == ["ranks-4", "ranks-8", "fewest-ranks-4"]
    assert gathered["environments"][0]["target_systems"] == ["cluster"]
    assert Partition.model_validate(partition["extras"]).rank_counts == (4, 8)


@pytest.mark.parametrize(
    "fields",
    [PARTITION_KEYS, ENVIRONMENT_KEYS, LoadSettings.model_fields, PairSettings.model_fields],
)
def test_every_key_says_what_it_means(fields):
    assert [key for key, of in fields.items() if not of.description] == []


@pytest.mark.parametrize(
    ("key", "value", "remedy"),
    [
        ("mut", 1500, "unknown here; did you mean 'mtu'? the keys are switch, nic, driver, "),
        ("mtu", 100, "576 to 65535"),
        ("rdma", "ib", "found 'ib', expected what carries MPI"),
        ("rdma_mtu", 4096, "rdma does not say which"),
        ("link_mbit_s", 0, "(a whole number above 0)"),
        ("link_mbit_s", True, "found True, expected rate of a link in Mbit/s of 10⁶ bits (a whole"),
        ("switch", " ", "found ' ', expected the switch's name on site (text of one line"),
        ("max_message_bytes", 1000000, "no power of two"),
        ("rank_counts", [], "nodes is 4; give some, [4] for instance"),
        ("rank_counts", [8, 4], "has to increase"),
        ("rank_counts", [4, 5], "5 is no multiple of ranks_per_node, which is 2"),
        ("rank_counts", [2, 4], "stay on one node and cross no switch; take 4 or more"),
        ("rank_counts", [4, 16], "need 8 nodes, and nodes is 4"),
        ("nodes", 1, "NetPIPE alone is measured; give []"),
        ("ranks_per_node", 8, "processor.num_cpus only 4"),
        ("imb_arguments", ["-time", 3], "found 3, expected a line"),
        ("line_rate_from_bytes", 2**23, "8388608 bytes is above max_message_bytes, 4194304"),
        ("sizes", {"omb": {}}, "'omb' is no benchmark; those are netpipe, imb, osu"),
        ("sizes", {"imb": 3000}, "imb: give a dictionary of settings"),
        ("sizes", {"osu": {"also": [3000]}}, "osu: OSU measures sizes that double, and no others"),
        ("sizes", {"imb": {"per_octave": 17}}, "imb: per_octave: found 17"),
        ("sizes", {"netpipe": {"perturbation": 4}}, "would not increase from 1 byte on"),
        ("sizes", {"imb": {"also": [2**30]}}, "imb: 1073741824 bytes is above max_message_bytes"),
        ("interface", "eno1; touch pwned", "(an interface's name: 1 to 15 characters"),
        ("interface", "-h", "no '-' first"),
        ("interface", "../../x", "no '/'"),
        ("interface", "sixteen-letters-", "(an interface's name"),
        ("switch", "Summit\n#SBATCH --wrap=x", "no control characters"),
        ("imb_arguments", ["-x\n"], "a line, no control characters"),
        ("baseline", "openmpi", "'openmpi' is not among its environs: mpich"),
        ("criteria", {"jumps": {}}, "'jumps' is no criterion; those are"),
        ("criteria", {"jump": {"least_size": 64}}, "'jump': least_size: unknown here; the keys"),
        ("criteria", {"disturbance": {"others": 20}}, "found 20, expected a share of the CPUs"),
        ("retired", {"lam": " "}, "say why 'lam' is gone, in a sentence"),
        ("retired", {"mpich": "old"}, "'mpich' is among its environs"),
        ("load", {"most": 1.0}, "most: found 1.0, expected how many times"),
        ("load", {"repetitions": 1}, "repetitions: found 1, expected how often"),
        ("load", {"mots": 2.0}, "mots: unknown here; did you mean 'most'"),
        ("load", {"arguments": ["-sync off"]}, "arguments.0: found '-sync off', expected"),
        ("pairs", {"slower": 1.5}, "slower: found 1.5, expected share"),
        ("pairs", {"rounds": 1}, "rounds: found 1, expected 2 or more, or 0"),
        ("pairs", {"quantities": ["rate both ways"]}, "quantities.0: found 'rate both ways',"),
        ("pairs", {"environments": "mpich"}, "environments: found 'mpich', expected env"),
        ("pairs", {"environments": ["lam"]}, "'lam' is not among its environs: mpich"),
        ("pairs", {"environments": ["mpich"]}, "'mpich' has no IMB, which measures pairs; name"),
    ],
)
def test_a_bad_value_is_refused_with_its_remedy(tmp_path, configuration, key, value, remedy):
    configuration["systems"][0]["partitions"][0]["extras"][key] = value
    said = refusal(tmp_path, configuration)
    assert re.match(rf"partition cluster:gige: (extras\['{key}'\]|rank_counts): ", said)
    assert remedy in said


def test_a_benchmark_that_is_not_there_needs_no_reason(tmp_path, configuration):
    configuration["environments"][0]["extras"]["absent"] = {"osu": "not built"}
    written(tmp_path, configuration)
    absences = matrix(site.gather(tmp_path), "cluster").absences
    assert [(one.benchmark, one.reason) for one in absences] == [
        ("osu", "not built"),
        ("imb", NO_REASON),
    ]


def test_a_benchmark_both_there_and_absent_is_refused(tmp_path, configuration):
    configuration["environments"][0]["features"].append("imb")
    assert "take it out of one of the two" in refusal(tmp_path, configuration)


def test_a_mistyped_benchmark_is_refused(tmp_path, configuration):
    features = configuration["environments"][0]["features"]
    features[features.index("netpipe-mpi")] = "netpipe-mp"
    said = refusal(tmp_path, configuration)
    assert said.startswith("environment ")
    assert "features: has 'netpipe-mp'; did you mean 'netpipe-mpi'?" in said


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("absent", {"omb": "no"}, "'omb' is no benchmark"),
        ("absent", {"imb": ""}, "say why 'imb' is absent"),
        ("known", {"NetPIPE (": "why"}, "'NetPIPE (' is no regular expression"),
        ("known", {"NetPIPE .*": ""}, "say what is known of 'NetPIPE .*', in a sentence"),
        ("pmi", "pmi2 --x", "found 'pmi2 --x', expected srun's --mpi plugin for it (a word"),
        ("pmi", "pmi2\n", "found 'pmi2\\n', expected srun's"),
    ],
)
def test_a_bad_value_of_an_environment_is_refused(tmp_path, configuration, key, value, reason):
    configuration["environments"][0]["extras"][key] = value
    said = refusal(tmp_path, configuration)
    assert said.startswith(f"environment mpich: extras['{key}']: {reason}")


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
        ("environs", [["mpich"]]),
        ("extras", None),
        ("environs", 3),
        # It would go on in another line of the job's script.
        ("access", ["--partition=gige\ntouch pwned"]),
    ],
)
def test_a_value_of_another_type_is_refused(tmp_path, configuration, key, value):
    configuration["systems"][0]["partitions"][0][key] = value
    assert f"partition cluster:gige: {key}: " in refusal(tmp_path, configuration)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("site_configuration = {'systems': [}\n", r"cluster\.py: the file: Python: SyntaxError"),
        ("configuration = {}\n", "site_configuration: is missing"),
    ],
)
def test_a_file_that_does_not_run_or_has_no_configuration_is_refused(tmp_path, text, said):
    (tmp_path / "cluster.py").write_text(text)
    with pytest.raises(SiteError, match=said):
        site.gather(tmp_path)


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
def test_a_folder_or_a_pipe_is_no_file_of_a_site_and_is_not_waited_for(tmp_path, make):
    make(tmp_path / "cluster.py")
    with pytest.raises(SiteError, match=r"cluster\.py: the file: Python: is no regular file; move"):
        site.gather(tmp_path)


def test_scores_are_relative_to_the_first_environment_where_the_site_says_nothing(
    tmp_path, configuration
):
    del configuration["systems"][0]["partitions"][0]["extras"]["baseline"]
    written(tmp_path, configuration)
    assert str(matrix(site.gather(tmp_path), "cluster").baseline) == "gige mpich"


@pytest.mark.parametrize("key", ["swi" + "{" * 50_000, "switch"])
def test_what_a_file_says_at_length_is_quoted_by_its_beginning_and_end(
    tmp_path, configuration, key
):
    extras = configuration["systems"][0]["partitions"][0]["extras"]
    extras[key] = 0 if key != "switch" else "x" * 50_000 + "\n"
    said = refusal(tmp_path, configuration)
    assert re.search(r"characters more\)( …)?", said)
    assert len(said) < 3000


STALE = {"unusable": "its build is stale"}


@pytest.mark.parametrize(
    ("environments", "pairs", "measure"),
    [
        # The first that has IMB and can be used.
        ({"one": {}, "other": {}}, {}, ("one",)),
        ({"one": STALE, "other": {}, "third": {}}, {}, ("other",)),
        # Where none can be used, pairs fail in the first.
        ({"one": STALE}, {}, ("one",)),
        ({}, {}, ()),
        # What the site says.
        ({"one": {}}, {"rounds": 0}, ()),
        ({"one": {}, "two": {}, "three": {}}, {"environments": ["three", "two"]}, ("two", "three")),
    ],
)
def test_nodes_are_measured_in_pairs_in(environments, pairs, measure):
    several = [("mpich", ["netpipe-mpi"], {"unusable": ""})]
    several += [(name, ["imb"], {"unusable": ""} | extras) for name, extras in environments.items()]
    assert pair_environments(PairSettings.of_site(pairs), several) == measure


@pytest.mark.parametrize(("loaded", "stays"), [("", ""), ("mpich/5", "UCX_TLS OMPI_MCA_btl")])
def test_a_job_has_not_what_the_users_shell_sets_for_srun_and_mpi(loaded, stays):
    theirs = {"SLURM_LABELIO": "1", "PMIX_RANK": "7", "UCX_TLS": "all", "OMPI_MCA_btl": "self"}
    asked = f'{OWN_ENVIRONMENT}\necho "$SLURM_EXPORT_ENV" "${{!SLURM_L@}} ${{!PMIX_@}}"'
    ran = subprocess.run(
        ["bash", "-c", asked + ' "${!UCX_@} ${!OMPI_@}"'],
        env={**theirs, "LOADEDMODULES": loaded, "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
    )
    assert ran.stdout.split() == ["ALL", *stays.split()]
    assert ran.stderr == ""


# Hostile parts of a path, an option or an expression.


@pytest.mark.parametrize(
    "name",
    ["$(touch pwned)", "x\ny", "* ?", "-h", "é\x1b[31m", "../../x", "1x", "a:b"],
)
@pytest.mark.parametrize("what", ["a system", "a partition of system cluster", "an environment"])
def test_a_name_that_is_no_word(tmp_path, configuration, name, what):
    entry = {
        "a system": configuration["systems"][0],
        "a partition of system cluster": configuration["systems"][0]["partitions"][0],
        "an environment": configuration["environments"][0],
    }[what]
    entry["name"] = name
    assert refusal(tmp_path, configuration).startswith(
        f"{what}: name: is {name!r}; it takes letters, digits, - and _, no digit first"
    )


# Several files, and what a partition lists.


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
