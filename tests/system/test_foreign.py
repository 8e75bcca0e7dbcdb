"""An ordinary user of a cluster that knows nothing of netproof: ``ci/foreign``."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytestmark = [pytest.mark.testbed, pytest.mark.nightly]

ROOT = Path(__file__).resolve().parents[2]
CLUSTER = str(ROOT / "ci" / "foreign" / "cluster")
PROGRAMS = ROOT / ".venv" / "bin"
SMALL = "-S launches=1 -n NetpipeTcp -p openmpi"

Shell = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    """Bring the cluster up, if it is not; take it down after."""
    was_up = subprocess.run([CLUSTER, "status"], capture_output=True).returncode == 0
    subprocess.run([CLUSTER, "up"], check=True)
    yield
    if not was_up:
        subprocess.run([CLUSTER, "down"], check=True)


def as_user(script: str) -> subprocess.CompletedProcess[str]:
    command = [CLUSTER, "login", "bash", "-c", script]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.fixture
def site(cluster) -> Iterator[Shell]:
    """A shell of the user in a folder of a site, made under the user's umask."""
    # The example's own partitions have bounds that are not kestrel's.
    others = "/^ ? ?[^ ]/ {skip = /kestrel:(summit|nexus):/} !skip"
    made = as_user(
        f"umask; rm -rf ~/site; export PYTHONPATH={ROOT};"
        f" {PROGRAMS}/netproof site init kestrel ~/site && cd ~/site &&"
        f" cat {ROOT}/ci/foreign/site.py >site-config/kestrel.py &&"
        f" awk '{others}' reference-values/kestrel.yaml >~/references &&"
        " cat ~/references >reference-values/kestrel.yaml"
    )
    assert made.returncode == 0, made.stdout + made.stderr
    assert made.stdout.startswith("0002")
    yield lambda script: as_user(
        f"cd ~/site && export PYTHONPATH={ROOT} && . ./activate && {script}"
    )
    as_user("rm -rf ~/site")


def test_the_site_is_ready_with_a_hidden_partition_and_under_the_users_umask(site):
    checked = site("netproof site check kestrel")
    assert checked.returncode == 0, checked.stdout
    assert "kestrel: ready" in checked.stdout
    assert "since a job of rounds of pairs has 4 of 7 usable nodes: " in checked.stdout


def test_where_a_job_has_four_of_seven_nodes_pairs_take_turns_until_all_are_measured(site):
    drain = [CLUSTER, "exec", "cn003", "scontrol", "update", "nodename=r2n05"]
    subprocess.run([*drain, "state=drain", "reason=without"], check=True)
    try:
        site("netproof run kestrel:batch -- -n Pairs")
    finally:
        subprocess.run([*drain, "state=resume"], check=True)
    said = json.loads(site("netproof verdict newest kestrel:batch --format=json").stdout)
    (covered,) = said["coverage"]
    assert covered["measured"] == ["cn003", "cn004", "cn007", "cn012", "r2n01", "r2n02"]
    assert covered["drained"] == ["r2n05"]


def test_nodes_with_a_domain_and_a_greeting_are_measured(site):
    site(f"netproof run kestrel:debug -- {SMALL}")
    said = site("netproof verdict newest kestrel:debug --format=json")
    verdict = json.loads(said.stdout)
    measured = [one for one in verdict["cases"] if one["measured"]]
    assert [one["benchmark"] for one in measured] == ["netpipe"] * 4
    assert not [one for one in verdict["faults"] if "header" in one or "was to run on" in one]


def test_nodes_that_a_partition_shares_are_measured(site):
    site(f"netproof run kestrel:shared -- {SMALL}")
    said = site("netproof verdict newest kestrel:shared --format=json")
    assert len([one for one in json.loads(said.stdout)["cases"] if one["measured"]]) == 4


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ("s#openmpi/4.1.4#openmpi/4.9#", "openmpi/4.9"),
        ("s#--account=net#--account=none#", "Invalid account"),
        ('s#"--account=net"#"--account=net", "--qos=closed"#', "Invalid qos"),
        ('s#"--account=net", ##', "name the project that pays"),
        ('s#\\["--oversubscribe"\\]#\\[\\]#', "submit without --exclusive"),
    ],
    ids=["module", "account", "qos", "no account", "exclusive"],
)
def test_a_job_that_is_refused_is_no_network_that_failed(site, wrong, reason):
    where = "shared" if "exclusive" in reason else "debug"
    edited = f"sed -i '{wrong}' site-config/kestrel.py"
    ran = site(f"{edited} && netproof run kestrel:{where} -- {SMALL}")
    assert ran.returncode == 3, ran.stdout
    said = site(f"netproof verdict newest kestrel:{where} --all")
    assert reason in " ".join(said.stdout.split())


def test_what_discovery_writes_is_ready_and_one_node_is_measured_inside(cluster):
    found = as_user(
        f"rm -rf ~/found; export PYTHONPATH={ROOT};"
        f" {PROGRAMS}/netproof site discover kestrel ~/found --partition gpu && cd ~/found &&"
        " . ./activate && netproof site check --job kestrel"
    )
    assert found.returncode == 0, found.stdout + found.stderr
    assert "a job has one node, so NetPIPE is measured inside it" in found.stdout
    as_user(
        f"cd ~/found && export PYTHONPATH={ROOT} && . ./activate &&"
        f" netproof run kestrel -- {SMALL.replace('openmpi', 'openmpi-gcc')}"
    )
    said = as_user(
        f"cd ~/found && export PYTHONPATH={ROOT} && . ./activate &&"
        " netproof verdict newest kestrel --format=json; rm -rf ~/found"
    )
    measured = [one for one in json.loads(said.stdout)["cases"] if one["measured"]]
    assert [one["path"] for one in measured] == ["intra-node"] * len(measured)
    assert len(measured) >= 2
