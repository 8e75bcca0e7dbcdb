"""The matrix that is expected of a run follows from the site alone."""

from __future__ import annotations

import copy
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from made_sites import CONFIGURATION, written

from netproof.errors import NetproofError
from netproof.site import site
from netproof.site.matrix import jobs, matrix, nodes_of
from netproof.site.partition import pair_environments

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def small() -> dict:
    """The content of a small site's file, to be changed."""
    return copy.deepcopy(CONFIGURATION)


@pytest.fixture(scope="module")
def configuration() -> dict:
    return site.gather(ROOT / "site-config")


def test_netpipe_over_mpi_is_expected_of_every_environment_and_over_tcp_of_the_first_usable_one(
    configuration,
):
    def functions() -> dict[str, Counter[str]]:
        found = defaultdict(Counter)
        for case in matrix(configuration, "testbed", ["gige"]).cases:
            if case.benchmark == "netpipe":
                found[case.environment][case.function] += 1
        return found

    known = functions()
    assert known.pop("openmpi4") == {"tcp": 4, "mpi": 4}
    assert [*known.values()] == [{"mpi": 4}] * 3
    configuration = copy.deepcopy(configuration)
    (first,) = (one for one in configuration["environments"] if one["name"] == "openmpi4")
    first["extras"]["unusable"] = "not built"
    known = functions()
    assert [known[name]["tcp"] for name in ("openmpi4", "openmpi5", "mpich")] == [0, 4, 0]


@pytest.mark.parametrize("protocol", ["tcp", "mpi"])
def test_netpipe_is_expected_over_the_one_protocol_that_an_environment_has(
    tmp_path, small, protocol
):
    (environment,) = small["environments"]
    (other,) = {"tcp", "mpi"} - {protocol}
    environment["features"] = [f"netpipe-{protocol}"]
    environment["extras"]["absent"][f"netpipe-{other}"] = "not built"
    written(tmp_path, small)
    expected = matrix(site.gather(tmp_path), "cluster")
    assert [case.function for case in expected.cases] == 4 * [protocol]


def test_all_functions_are_expected_when_asked_for(configuration):
    plain = matrix(configuration, "testbed").cases
    full = matrix(configuration, "testbed", all_functions=True).cases
    assert set(plain) < set(full)
    assert len({case.function for case in full if case.benchmark == "imb"}) == 20
    assert len({case.function for case in plain if case.benchmark == "imb"}) == 8


def test_an_unknown_system_or_partition_is_an_error_that_lists_the_known(configuration):
    with pytest.raises(NetproofError, match=r"no system 'nowhere'; it has .*testbed"):
        matrix(configuration, "nowhere")
    with pytest.raises(NetproofError, match="no partition 'ib'; it has gige, fast-ethernet"):
        matrix(configuration, "testbed", ["ib"])


def test_one_node_is_measured_inside_and_by_netpipe_alone(tmp_path, small):
    (partition,) = small["systems"][0]["partitions"]
    partition["extras"] |= {"nodes": 1, "rank_counts": []}
    written(tmp_path, small)
    gathered = site.gather(tmp_path)
    expected = matrix(gathered, "cluster")
    assert {(case.benchmark, case.path) for case in expected.cases} == {("netpipe", "intra-node")}
    assert {nodes_of(job, expected) for job in jobs(expected)} == {1}
    (one,) = expected.partitions.values()
    assert pair_environments(one.pair_settings(), [("mpich", ["imb"], {"unusable": ""})]) == ()
