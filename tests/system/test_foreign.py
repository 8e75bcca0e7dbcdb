"""An ordinary user of a cluster that knows nothing of netproof: ``ci/foreign``."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.testbed, pytest.mark.nightly]

ROOT = Path(__file__).resolve().parents[2]
CLUSTER = str(ROOT / "ci" / "foreign" / "cluster")
PROGRAMS = ROOT / ".venv" / "bin"
STATE = Path(os.environ.get("KESTREL", "/var/tmp/kestrel"))
MODULES = STATE / "srv" / "modules" / "gcc-12.2"
SMALL = "-S launches=1 -n NetpipeTcp -p openmpi"

ACCESS = '"--account=net"'
LIMIT = '"max_jobs": 4'
PATIENCE_S = 90

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
        (covered,) = measured(site, "batch", "-n Pairs")["coverage"]
    finally:
        subprocess.run([*drain, "state=resume"], check=True)
    assert covered["measured"] == ["cn003", "cn004", "cn007", "cn012", "r2n01", "r2n02"]
    assert covered["drained"] == ["r2n05"]


def measured(site: Shell, where: str, asked: str = SMALL, before: str = "") -> dict[str, Any]:
    """The verdict on a run of NetPIPE's four cases over one library."""
    site(f"{before} netproof run kestrel:{where} -- {asked}")
    said = site(f"netproof verdict newest kestrel:{where} --format=json")
    verdict: dict[str, Any] = json.loads(said.stdout)
    return verdict


def netpipe_is_whole(verdict: dict[str, Any]) -> None:
    found = [one["benchmark"] for one in verdict["cases"] if one["measured"]]
    assert found == ["netpipe"] * 4


def edit(old: str, new: str) -> None:
    """Change the site's file."""
    path = STATE / "home/nina/site/site-config/kestrel.py"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


def test_nodes_with_a_domain_and_a_greeting_are_measured_from_a_shell_with_labels(site):
    edit(ACCESS, f'{ACCESS}, "--export=NONE"')
    edit(LIMIT, f'{LIMIT}, "prepare_cmds": [". /etc/profile.d/modules.sh"]')
    verdict = measured(site, "debug", before="export SLURM_LABELIO=1 PMIX_RANK=7;")
    netpipe_is_whole(verdict)
    assert not [one for one in verdict["faults"] if "header" in one or "was to run on" in one]


def as_root(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [CLUSTER, "exec", "cn003", *command], capture_output=True, text=True, check=False
    )


def measured_after(site: Shell, where: str, disturb: Callable[[str], None]) -> str:
    """Disturb the first job of a run by its last node; return the verdict once it ended."""
    with ThreadPoolExecutor() as beside:
        ran = beside.submit(site, f"netproof run kestrel:{where} -- {SMALL}")
        end = time.monotonic() + PATIENCE_S
        queued = ("squeue", "--noheader", f"--partition={where}", "--user=nina")
        running = (*queued, "--states=RUNNING", "--format=%A %N %Z")
        while not (
            (found := as_root(*running).stdout.split())
            and (STATE / found[2].lstrip("/") / "openmpi/launches.tsv").exists()
        ):
            assert time.monotonic() < end, "no job began"
            time.sleep(0.2)
        job, nodes, _ = found
        disturb(as_root("scontrol", "show", "hostnames", nodes).stdout.split()[-1])
        end = time.monotonic() + PATIENCE_S
        # Slurm would wait for two minutes.
        while as_root("scontrol", "update", f"JobId={job}", "StartTime=now").returncode:
            assert time.monotonic() < end, "the job was not requeued"
            time.sleep(0.5)
        ran.result()
    verdict = f"netproof verdict newest kestrel:{where}"
    netpipe_is_whole(json.loads(site(f"{verdict} --format=json").stdout))
    return site(f"{verdict} --all").stdout


def test_a_job_that_an_urgent_one_preempts_is_measured_again_and_named(site):
    edit(ACCESS, f'{ACCESS}, "--qos=scavenger"')
    urgent = "--account=net --qos=urgent --partition=debug --nodes=2 --exclusive --time=1"
    said = measured_after(
        site, "debug", lambda node: as_user(f"sbatch {urgent} --output=/dev/null --wrap=true")
    )
    assert "no node of it is down now: preempted" in " ".join(said.split())


def test_a_node_that_loses_its_power_is_named_and_others_are_measured(site):
    gone = []
    # On which no Python starts.
    edit(ACCESS, f'{ACCESS}, "--exclude=r2n05"')

    def off(node: str) -> None:
        gone.append(node)
        subprocess.run([CLUSTER, "off", node], check=True)

    try:
        said = measured_after(site, "batch", off)
    finally:
        for node in gone:
            subprocess.run([CLUSTER, "on", node], check=True)
    assert f"{gone[0]} is down" in " ".join(said.split())


def test_nodes_that_a_partition_shares_are_measured(site):
    netpipe_is_whole(measured(site, "shared"))


FABRIC = '"FI_TCP_IFACE", "ens1f0"'

MISTAKES = {
    "account": (ACCESS, '"--account=none"', "name an account of yours"),
    "no account": (f"{ACCESS}, ", "", "name the project that pays"),
    "QOS": (ACCESS, f'{ACCESS}, "--qos=closed"', "name a QOS of yours"),
    "constraint": (ACCESS, f'{ACCESS}, "--constraint=none"', "'sinfo -o %f' lists"),
    "reservation": (ACCESS, f'{ACCESS}, "--reservation=none"', "'scontrol show reservation'"),
    "memory": (ACCESS, f'{ACCESS}, "--mem=900G"', "memory, CPUs, GPUs"),
    "node list": (ACCESS, f'{ACCESS}, "--nodelist=gpu01"', "that is in another partition"),
    "PMI plugin": ('"pmi2"', '"pmi3"', "is 'pmi3', and srun has"),
    "module": ("openmpi/4.1.4", "openmpi/4.9", "'module -t avail' lists"),
    "an interface": (FABRIC, FABRIC.replace("ens1f0", "eno1"), "debug's interface is ens1f0"),
    "Lmod": ('"envmod"', '"lmod"', "modules_system is to be what this shell has: 'tmod4'"),
}

MISTAKES_OF_NODES = {
    "PMI of another library": ('"pmix"', '"pmi2"', "did not meet by pmi2"),
    "interface": ('"ens1f0"', '"ib0"', "ib0 is not there or down"),
    "MTU": ('"mtu": 9000', '"mtu": 1500', "ens1f0 has 9000, not 1500"),
    "link rate": ('mbit_s": 1000', 'mbit_s": 10000', "is 10000, and TCP carried"),
    "benchmark": ('["openmpi/4.1.4"]', '["openmpi/4.1.4"], "imb"', "there is no IMB-MPI1"),
    "prepare_cmds": (LIMIT, f'{LIMIT}, "prepare_cmds": [". /none"]', ". /none: status 1: "),
    "a shell that ends": (LIMIT, f'{LIMIT}, "prepare_cmds": ["exit 1"]', "it ended the shell"),
    "another network": (FABRIC, FABRIC.replace("ens1f0", "${A:-eno1}"), "over eno1 and none over"),
    "no RDMA": ('"mtu": 9000', '"mtu": 9000, "rdma": "roce"', "no RDMA device is there"),
    "a module that exits": ('"mpich/5', '"odd/1", "mpich/5', "odd/1: status 1: no license"),
}


@pytest.mark.parametrize("mistake", [*MISTAKES, *MISTAKES_OF_NODES])
def test_a_mistake_is_named_with_its_remedy_before_anything_is_measured(site, mistake):
    (MODULES / "odd").mkdir(exist_ok=True)
    (MODULES / "odd/1").write_text("#%Module1.0\nputs stderr {no license}\nexit 1\n")
    old, new, named = (MISTAKES | MISTAKES_OF_NODES)[mistake]
    edit(old, new)
    job = "--job" if mistake in MISTAKES_OF_NODES else ""
    checked = site(f"netproof site check {job} kestrel:debug")
    assert checked.returncode == 1
    wrong = [line for line in checked.stdout.splitlines() if line.startswith("WRONG ")]
    assert any(named in line for line in wrong), checked.stdout
    assert not (STATE / "home/nina/site/stage").exists()


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ("s#openmpi/4.1.4#openmpi/4.9#", "openmpi/4.9"),
        ("s#--account=net#--account=none#", "Invalid account"),
        ('s#\\["--oversubscribe"\\]#\\[\\]#', "submit without --exclusive"),
    ],
    ids=["module", "account", "exclusive"],
)
def test_a_job_that_is_refused_is_no_network_that_failed(site, wrong, reason):
    where = "shared" if "exclusive" in reason else "debug"
    edited = f"sed -i '{wrong}' site-config/kestrel.py"
    ran = site(f"{edited} && netproof run kestrel:{where} -- {SMALL}")
    assert ran.returncode == 3, ran.stdout
    said = site(f"netproof verdict newest kestrel:{where} --all")
    assert reason in " ".join(said.stdout.split())


def test_what_discovery_writes_is_ready_and_one_node_is_measured_inside(cluster):
    enter = f"cd ~/found && export PYTHONPATH={ROOT} && . ./activate &&"
    found = as_user(
        f"rm -rf ~/found; export PYTHONPATH={ROOT};"
        f" {PROGRAMS}/netproof site discover kestrel ~/found --partition gpu &&"
        f" {enter} netproof site check --job kestrel"
    )
    assert found.returncode == 0, found.stdout + found.stderr
    assert "a job has one node, so NetPIPE is measured inside it" in found.stdout
    as_user(f"{enter} netproof run kestrel -- {SMALL.replace('openmpi', 'openmpi-gcc')}")
    said = as_user(f"{enter} netproof verdict newest kestrel --format=json; rm -rf ~/found")
    paths = [one["path"] for one in json.loads(said.stdout)["cases"] if one["measured"]]
    assert len(paths) >= 2
    assert {*paths} == {"intra-node"}
