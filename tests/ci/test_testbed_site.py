"""The libraries are as site-config/testbed.py describes them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from netproof.site import site

ROOT = Path(__file__).resolve().parents[2]
TOPOLOGY = ROOT / "ci" / "testbed" / "topology.yaml"


@pytest.fixture
def environments(tmp_path, monkeypatch):
    """The environments of a copy of the file next to other wheels, as ``said`` by ompi_info."""

    def load(said: str, *wheels: str) -> dict:
        (tmp_path / "site-config").mkdir(exist_ok=True)
        copy = shutil.copy(ROOT / "site-config" / "testbed.py", tmp_path / "site-config")
        monkeypatch.setenv("NETPROOF_TOPOLOGY", str(TOPOLOGY))
        for wheel in wheels:
            place = tmp_path / ".opt" / wheel
            place.parent.mkdir(parents=True)
            place.touch()

        def run(command, **options):
            assert command == ["/usr/bin/ompi_info", "--version"]
            if not said:
                raise FileNotFoundError(command[0])
            return subprocess.CompletedProcess(command, 0, said, "")

        monkeypatch.setattr(subprocess, "run", run)
        found = site.load(Path(copy))["environments"]
        return {environment["name"]: environment for environment in found}

    return load


def library(environment):
    return environment["extras"]["mpi"], dict(environment["env_vars"]).get("OMPI_MCA_btl")


@pytest.mark.slow
def test_a_library_s_version_is_that_of_the_one_installed(environments):
    said = "Open MPI v4.1.4\n\nhttp://www.open-mpi.org/community/help/\n"
    assert library(environments(said)["openmpi4"]) == ("Open MPI 4.1.4", "tcp,vader,self")
    # Debian 13's may write lines of UCX before its own.
    said = "[1795285899.196376] [vm:15130:0] sys.c:306 UCX ERROR\nOpen MPI v5.0.7\n"
    assert library(environments(said)["openmpi4"]) == ("Open MPI 5.0.7", "tcp,sm,self")
    found = environments("", "intelmpi/impi-rt==2021.19.0")
    assert library(found["intelmpi"])[0] == "Intel MPI 2021.19.0"
    assert library(found["openmpi4"])[0] == "Open MPI (not installed)"
    assert library(found["mpich"])[0] == "MPICH (not installed)"


def partitions(text: str, tmp_path: Path, monkeypatch) -> list[dict]:
    (tmp_path / "topology.yaml").write_text(text)
    monkeypatch.setenv("NETPROOF_TOPOLOGY", str(tmp_path / "topology.yaml"))
    return site.load(ROOT / "site-config" / "testbed.py")["systems"][0]["partitions"]


@pytest.mark.slow
def test_a_switch_is_one_entry_of_the_topology_and_a_partition_of_it(tmp_path, monkeypatch):
    before = partitions(TOPOLOGY.read_text(), tmp_path, monkeypatch)
    entry = "{link_mbps: 10000, mtu: 9000, buffer: 2000000, nodes: 3, cpus: 8}"
    *same, new = partitions(TOPOLOGY.read_text() + f"  ten-gige: {entry}\n", tmp_path, monkeypatch)
    assert same == before
    extras = new["extras"]
    assert (new["name"], new["access"]) == ("ten-gige", ["--partition=ten-gige"])
    assert (extras["link_mbit_s"], extras["mtu"], extras["nodes"]) == (10000, 9000, 3)
    assert (extras["rank_counts"], new["processor"]) == ([2], {"num_cpus": 8})
    assert [one["extras"].get("baseline") for one in (*same, new)] == ["mpich", "", ""]


@pytest.mark.parametrize("link_mbps", [1, 100, 100000])
def test_a_message_takes_12_ms_at_most_and_every_criterion_has_three_powers_of_two_on_any_link(
    link_mbps, tmp_path, monkeypatch
):
    entry = f"{{link_mbps: {link_mbps}, mtu: 1500, buffer: 20000, nodes: 2, cpus: 1}}"
    (one,) = partitions(f"switches:\n  one: {entry}\n", tmp_path, monkeypatch)
    largest = one["extras"]["max_message_bytes"]
    assert largest * 8 / link_mbps <= 12500
    assert largest == 524288 or largest * 16 / link_mbps > 12500
    assert one["extras"]["line_rate_from_bytes"] <= largest
    least = {
        name: bounds["least_size"]
        for name, bounds in one["extras"]["criteria"].items()
        if "least_size" in bounds
    }
    assert {"dropout", "guideline", "curves"} == set(least)
    assert max(least.values()) <= largest // 4


def test_a_partition_with_two_rails_says_so_and_has_no_twin(tmp_path, monkeypatch):
    text = (TOPOLOGY.parent / "rails.yaml").read_text()
    (one,) = partitions(text, tmp_path, monkeypatch)
    assert (one["extras"]["rails"], one["extras"]["twin"]) == (["eth1", "eth2"], [])
    assert ["OMPI_MCA_btl_tcp_if_include", "eth1,eth2"] in one["env_vars"]
    (usual, *_) = partitions(TOPOLOGY.read_text(), tmp_path, monkeypatch)
    assert (usual["extras"]["rails"], bool(usual["extras"]["twin"])) == ([], True)


@pytest.mark.parametrize("switch", ["fast-ethernet", "wide"])
def test_a_pair_on_a_slow_link_sends_for_more_than_a_second(monkeypatch, switch):
    """Both ways, so often as IMB is asked to, at the rate of the link."""
    topology = ROOT / "ci" / "testbed" / ("wide.yaml" if switch == "wide" else "topology.yaml")
    monkeypatch.setenv("NETPROOF_TOPOLOGY", str(topology))
    found = site.load(ROOT / "site-config" / "testbed.py")["systems"][0]["partitions"]
    extras = next(one["extras"] for one in found if one["name"] == switch)
    _, calls, _, most_s = extras["pairs"]["arguments"]
    repetitions, megabytes = map(int, calls.split(","))
    size = extras["max_message_bytes"]
    assert repetitions * size <= megabytes * 2**20
    assert 1 < 2 * repetitions * size * 8 / (extras["link_mbit_s"] * 1e6) < float(most_s)
