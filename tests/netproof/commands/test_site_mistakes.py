"""Each mistake in a site's file is named with its remedy before anything is measured.

Slurm's answers are those that the cluster kestrel gave, which netproof had never seen.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from made_calls import in_words
from made_programs import program

from netproof.commands import site_check
from netproof.errors import NetproofError
from netproof.site import discover, look, module_path, site, slurm
from netproof.site.look import Interface, Looked, LookedEnvironment, LookedNode
from netproof.site.matrix import matrix

ROOT = Path(__file__).resolve().parents[3]
KESTREL = ROOT / "tests" / "data" / "clusters" / "kestrel"
MPICH = LookedEnvironment(
    {"NPtcp": "/usr/bin/NPtcp", "IMB-MPI1": "/srv/imb/bin/IMB-MPI1"},
    ("/srv/mpich/lib/libmpi.so.12", "MPICH Version:      5.0.2"),
    "pmi2",
    {"IMB-MPI1": 960.0},
)


def node(name="cn003", python="", mtu=9000, rate=1000) -> LookedNode:
    there = (
        Interface("eno1", 1500, 1000, "10.141.0.13", "tg3 3.137", "BCM5720"),
        Interface("ens1f0", mtu, rate, "10.142.0.13", "tg3 3.137", "BCM5720"),
    )
    return LookedNode(name, python, there, ())


def looked(*nodes: LookedNode, tcp=998.0, mpich=MPICH) -> Looked:
    rates = {"eno1": {1048576: 193.0}, "ens1f0": {1048576: tcp}}
    return Looked(nodes or (node(), node("cn004")), rates, {"mpich-gcc": mpich})


REFUSALS = {
    "--account=nope": "allocation failure: Invalid account or account/partition combination"
    " specified",
    "--qos=closed": "allocation failure: Invalid qos specification",
    "--constraint=nope": "allocation failure: Invalid feature specification",
    "--reservation=nope": "allocation failure: Requested reservation is invalid",
    "--mem=900G": "allocation failure: Requested node configuration is not available",
    "--nodelist=gpu01": "allocation failure: Requested node configuration is not available",
    "--partition=shared": "sbatch: error: kestrel: nodes of partition shared are shared: submit"
    " without --exclusive",
}


@pytest.fixture
def says(monkeypatch) -> dict[str, str]:
    """Errors of Slurm in place of its answers, by the command's first word."""
    said: dict[str, str] = {}

    def ask(*command: str, merged: bool = False) -> str:
        if command[0] in said:
            raise NetproofError(f"{command[0]}: {said[command[0]]}")
        match command:
            case ("scontrol", "ping"):
                return "Slurmctld(primary) at mgmt1 is UP"
            case ("scontrol", *_):
                return (KESTREL / "partitions.txt").read_text()
            case ("sinfo", *_):
                return (KESTREL / "sinfo.txt").read_text().replace("allocated", "idle")
            case ("sacctmgr", *_):
                return (KESTREL / "associations.txt").read_text()
            case ("srun", *_):
                return (KESTREL / "mpi.txt").read_text()
            case ("sbatch", *options):
                why = [refusal for option, refusal in REFUSALS.items() if option in options]
                if not any(one.startswith("--account") for one in options):
                    why = [REFUSALS["--account=nope"]]
                if "--nodes=5" in options or "--nodes=7" in options:
                    why.append("allocation failure: Requested node configuration is not available")
                if "--ntasks=4" in options and "--mem=2G" in options:
                    why.append("allocation failure: Job violates accounting/QOS policy")
                if why:
                    raise NetproofError(f"{' '.join(command)}: {why[0]}")
        return ""

    monkeypatch.setattr(slurm, "ask", ask)
    return said


@pytest.fixture
def checked(tmp_path, monkeypatch, says) -> Callable[..., list[str]]:
    """Check the site that discovery writes of kestrel, with changes; return the faults."""
    partition = discover.DiscoveredPartition(
        "batch", ["--partition=batch", "--account=chem"], 4, 7, "1h", looked()
    )
    candidate = {"modules": ["gcc/12.2", "mpich/5.0.2"]}
    found = discover.Discovered([partition], {"mpich-gcc": (candidate, MPICH)}, "tmod4", [], [])
    text = discover.site_text("kestrel", found)
    for folder in ("site-config", "reference-values"):
        (tmp_path / folder).mkdir()
    (tmp_path / "site-config" / "settings.py").write_text("")
    (tmp_path / "reference-values" / "kestrel.yaml").write_text(discover.references_text("kestrel"))
    program(tmp_path / "bin" / "sinfo")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("RFM_CONFIG_PATH", str(tmp_path / "site-config"))
    monkeypatch.setenv("RFM_REFERENCE_PREFIX", str(tmp_path / "reference-values"))
    monkeypatch.setenv("MODULEPATH", "/srv/modules/core")
    monkeypatch.setattr(site_check, "module_says", lambda *commands: "")
    for module in (discover, module_path):
        monkeypatch.setattr(module, "module_says", lambda *commands: "")

    def check(*changes: tuple[str, str], job: Looked | None = None) -> list[str]:
        changed = text
        for old, new in changes:
            assert old in changed
            changed = changed.replace(old, new)
        (tmp_path / "site-config" / "kestrel.py").write_text(changed)
        monkeypatch.setattr(site_check, "look", lambda *arguments: job)
        faults = site_check.CheckedSite(
            "kestrel", full=False, job=job is not None, wait_s=600
        ).faults
        return [f"{one.place}: {one.key}: {one.reason}" for one in faults]

    return check


def test_a_site_without_a_mistake_is_ready(checked):
    assert checked(job=looked()) == []


ACCESS, FABRIC, RATE = '"--account=chem"', '"FI_TCP_IFACE", "ens1f0"', '"link_mbit_s": 1000'


@pytest.mark.parametrize(
    ("old", "new", "place", "remedy"),
    [
        (ACCESS, '"--account=nope"', "partition kestrel:batch: access", "of yours, '--account=NA"),
        (f", {ACCESS}", "", "partition kestrel:batch: access", "of chem, net"),
        (ACCESS, f'{ACCESS}, "--qos=closed"', "batch: access", "of normal, scavenger, small"),
        (ACCESS, f'{ACCESS}, "--constraint=nope"', "batch: access", "'sinfo -o %f' lists"),
        (ACCESS, f'{ACCESS}, "--reservation=nope"', "batch: access", "scontrol show reservation"),
        (ACCESS, f'{ACCESS}, "--mem=900G"', "batch: access", "memory, CPUs, GPUs, or"),
        ("--partition=batch", "--partition=shared", "batch", "netproof takes whole nodes"),
        ("--partition=batch", "--partition=bach", "batch: access", "it has batch, debug, rack2"),
        (ACCESS, f'{ACCESS}, "--nodelist=gpu01"', "batch: access", "that is in another partition"),
        (ACCESS, f'{ACCESS}, "--time=5"', "batch: access", "has '--time=5', which each job has of"),
        (ACCESS, f'{ACCESS}, "-N 2"', "batch: access", "leave it out; 'time_limit', extras['node"),
        (RATE, '"link_mbit_s": 25', "batch: extras['link_mbit_s']", "25 Gbit/s is 25000"),
        (FABRIC, '"FI_TCP_IFACE", "eno1"', "batch: env_vars: FI_TCP_IFACE", "face is ens1f0: let"),
        (
            'ace": "ens1f0"',
            'ace": "ib0"',
            "batch: env_vars",
            "DEVICES and FI_TCP_IFACE: ens",
        ),
        ('"tmod4"', '"nomod"', "system kestrel: modules_system", "this shell has 'nomod'"),
        (
            ACCESS,
            f'{ACCESS}, "--mem=2G"',
            "batch: the job of IMB on 4 ranks",
            "violates accounting",
        ),
        ('"nodes": 4', '"nodes": 7', "batch: extras['nodes']", "lets a job have 4 of 7"),
        ('"1h"', '"2d"', "batch: time_limit", "allows 1440 minutes"),
        (
            '"nodes": 4',
            '"nodes": 4, "job_limit_s": 172800',
            "batch: extras['job_limit_s']",
            "allows 1440 minutes",
        ),
        ('"pmi2"', '"pmi3"', "environment mpich-gcc: extras['pmi']", "srun has pmix, pmi2"),
        ('"interface"', '"interfaces"', "batch: extras['interfaces']", "did you mean 'interface'"),
    ],
)
def test_slurm_alone_names_it(checked, old, new, place, remedy):
    more = [('"nodes": 4', '"nodes": 2'), ("[2, 4]", "[2]")] if "shared" in new else []
    faults = checked((old, new), *more)
    assert any(place in one and remedy in one for one in faults), faults


OF_MPICH = '"features": ["netpipe-tcp"'


@pytest.mark.parametrize(
    "changes",
    [
        # Fast Ethernet, and a link that is emulated.
        [(RATE, '"link_mbit_s": 100')],
        [(RATE, '"may_differ": {"link_mbit_s": "emulated"}, "link_mbit_s": 10')],
        # A rail, a network's address, an RDMA device.
        [(FABRIC, '"FI_TCP_IFACE", "ens2f0"'), (RATE, f'"rails": ["ens1f0", "ens2f0"], {RATE}')],
        [('if_include", "ens1f0"', 'if_include", "10.142.0.0/16"')],
        [('UCX_NET_DEVICES", "ens1f0"', 'UCX_NET_DEVICES", "mlx5_0:1"')],
        # The environment's is the last that a job sets.
        [(FABRIC, '"FI_TCP_IFACE", "eno1"'), (OF_MPICH, f'"env_vars": [[{FABRIC}]], {OF_MPICH}')],
    ],
)
def test_a_slow_link_and_another_device_are_no_mistake_where_they_are_right(checked, changes):
    assert checked(*changes) == []


def test_an_environment_that_names_another_interface_is_named(checked):
    (fault,) = checked((OF_MPICH, f'"env_vars": [["FI_TCP_IFACE", "eno3"]], {OF_MPICH}'))
    assert fault == (
        "environment mpich-gcc: env_vars: FI_TCP_IFACE: eno3, and batch's interface is ens1f0:"
        " let them agree"
    )


def test_accounting_that_does_not_answer_is_named(checked, says):
    says["sacct"] = "Unable to contact slurm database"
    (fault,) = checked()
    assert "slurmdbd has to run" in fault


def test_modules_that_reframe_cannot_load_are_named_with_those_of_this_shell(checked, tmp_path):
    why = "ERROR: failed to initialize runtime: could not find a sane Lmod installation"
    program(tmp_path / "bin" / "reframe", f"echo '{why}'\nexit 1")
    (fault,) = checked()
    assert fault.startswith(f"system kestrel: ReFrame: refuses it: {why}; modules_system is to be")


@pytest.mark.parametrize(
    "said",
    [
        "ERROR: Unable to locate a modulefile for 'mpich/5.0.2'",
        "Lmod has detected the following error: The following module(s) are unknown: mpich/5.0.2",
    ],
)
def test_a_module_that_is_not_there_is_named(checked, monkeypatch, said):
    monkeypatch.setattr(site_check, "module_says", lambda *commands: f"loading\n{said}\n")
    (fault,) = checked()
    assert fault.startswith("environment mpich-gcc: modules: gcc/12.2, mpich/5.0.2: ")
    assert "module -t avail" in fault


def test_a_module_that_prints_where_reframe_reads_python_is_named(checked, monkeypatch):
    printed = "netproof: modules\nimport os\n       262144           15       999.00\n"
    monkeypatch.setattr(
        module_path, "module_says", lambda one: printed if "modulecmd python load" in one else ""
    )
    (fault,) = checked()
    assert "one of them prints '262144           15       999.00' on standard output" in fault


NO_IMB = LookedEnvironment({"NPtcp": "/usr/bin/NPtcp"}, ("", ""), "", {}, {"setup": "gcc: no"})
FAILED = dataclasses.replace(
    MPICH, failed="module load mpich/5.0.2: status 1: license expired", said={"IMB-MPI1": "no"}
)
NO_MODULES = dataclasses.replace(
    MPICH, failed="module load gcc/12.2: status 127: line 9: module: command not found"
)
ENDED = LookedEnvironment(
    {}, ("", ""), "", {}, {"setup": "left nothing"}, "exit 1: it ended the shell: "
)
OVER_ENO1 = dataclasses.replace(MPICH, carried={"IMB-MPI1": {"eno1": 47284422, "ens1f0": 340}})
NOT_MET = LookedEnvironment(MPICH.programs, MPICH.library, "", {}, {"IMB-MPI1": "--mpi=pmix: die"})


@pytest.mark.parametrize(
    ("changes", "job", "said"),
    [
        (
            (),
            looked(node(), node("cn004", python="look.sh: line 75: python3: not found")),
            "Python: cn004 cannot start ",
        ),
        ((), looked(node(mtu=1500), node("cn004")), "extras['mtu']: on cn003 ens1f0 has 1500, not"),
        ((), looked(node(rate=100), node("cn004")), "on cn003 ens1f0 has 100 Mbit/s by ethtool"),
        ((('"ens1f0"', '"ib0"'),), looked(), "there are eno1, ens1f0"),
        ((("1000", "10000"),), looked(node(rate=10000)), "TCP carried 998 Mbit/s over ens1f0"),
        (
            (),
            looked(mpich=NO_IMB),
            "features: on batch there is no IMB-MPI1 in PATH for 'imb'",
        ),
        ((), looked(mpich=FAILED), "modules: on batch module load mpich/5.0.2: status 1: license"),
        ((), looked(mpich=NO_MODULES), "'. /etc/profile.d/modules.sh' in prepare_cmds may define"),
        ((), looked(mpich=ENDED), "prepare_cmds: on batch exit 1: it ended the shell; mend it, or"),
        ((), looked(mpich=OVER_ENO1), "env_vars: on batch two ranks of IMB-MPI1 sent 47 MB over e"),
        (
            (('"interface"', '"rdma": "roce", "interface"'),),
            looked(),
            "extras['rdma']: is roce, and on cn[003-004] no RDMA device is there and active",
        ),
        ((), looked(mpich=NOT_MET), "extras['pmi']: on batch two ranks of IMB-MPI1 did not meet"),
    ],
)
def test_a_job_names_it(checked, changes, job, said):
    faults = checked(*changes, job=job)
    assert any(said in one for one in faults), faults
    # On one node nothing has to leave it.
    extras = {"rails": (), "interface": "ens1f0", "rdma": None, "nodes": 1}
    assert [*look.lacking({}, OVER_ENO1, extras)] == []


def test_an_environment_is_set_up_as_reframe_does(checked):
    system = {"modules": ["base"]}
    partition = {"prepare_cmds": [look.OWN_ENVIRONMENT, ". x.sh"], "env_vars": [["A", "1"]]}
    environment = {"modules": [{"name": "mpich"}], "env_vars": [["PATH", "/opt/bin:$PATH"]]}
    assert look.setup_of(system, partition, environment) == [
        *(". x.sh", "module load base", 'export A="1"'),
        *("module load mpich", 'export PATH="/opt/bin:$PATH"'),
    ]


# ``netproof site init``: a new site's files, ready for ReFrame; existing files are not touched.


init = functools.partial(in_words, "site", "init", "mycluster")


def test_the_site_is_valid_and_has_the_name_and_references_of_its_own(tmp_path):
    status, said = init(tmp_path / "new")
    assert status == 0, said
    assert "netproof site check mycluster" in said
    configuration = site.load(tmp_path / "new" / "site-config" / "mycluster.py")
    (system,) = configuration["systems"]
    assert (system["name"], system["hostnames"]) == ("mycluster", [])
    assert matrix(configuration, "mycluster").cases
    references = (tmp_path / "new" / "reference-values" / "mycluster.yaml").read_text()
    assert "example:" not in references
    assert "mycluster:summit:" in references


def sourced(folder: Path, line: str, shell: str = "bash") -> subprocess.CompletedProcess[str]:
    """``line`` in a shell that knows no Python environment and no site."""
    return subprocess.run(
        [shell, "-c", line],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_after_activate_the_programs_are_found_and_each_folder_has_a_store_of_its_own(tmp_path):
    place = tmp_path / "a site"
    init(place)
    show = "command -v netproof reframe && echo $NETPROOF_STORE"
    ran = sourced(place, f". {ROOT}/ci/activate && . ./activate && {show}")
    programs = Path(sys.executable).parent
    own = [f"{programs}/netproof", f"{programs}/reframe", f"{place}/store"]
    assert (ran.stdout.splitlines(), ran.stderr) == (own, "")
    ran = sourced(place, f". ./activate && . {ROOT}/ci/activate && {show}")
    assert ran.stdout.splitlines()[2:] == [f"{ROOT}/store"]


@pytest.mark.parametrize("name", ["activate", "ci/activate", "ci/testbed/activate"])
def test_another_shell_than_bash_is_refused_and_nothing_is_set(tmp_path, name):
    init(tmp_path)
    place = tmp_path if name == "activate" else ROOT
    line = f". {place / name}; echo $? ${{RFM_CONFIG_PATH-unset}} ${{NETPROOF_STORE-unset}}"
    ran = sourced(tmp_path, line, shell="dash")
    assert ran.stdout == "2 unset unset\n"
    assert ran.stderr.startswith(f"{name}: source this in bash")


@pytest.mark.slow
def test_reframe_lists_its_checks_unless_the_python_environment_is_gone(tmp_path):
    init(tmp_path)
    site_file = tmp_path / "site-config" / "mycluster.py"
    # There is no Lmod here.
    text = re.sub(r'"modules": \[[^\]]*\],', "", site_file.read_text())
    site_file.write_text(text.replace('"lmod"', '"nomod"'))
    ran = sourced(tmp_path, ". ./activate && reframe --system mycluster -c checks -R -l")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "NetpipeTcp" in ran.stdout
    assert "ImbPingPong" in ran.stdout
    path = tmp_path / "activate"
    path.write_text(path.read_text().replace(str(Path(sys.executable).parent), "/gone/bin"))
    ran = sourced(tmp_path, ". ./activate; echo $? ${RFM_CONFIG_PATH-unset} $PATH")
    assert ran.stdout == "2 unset /usr/bin:/bin\n"
    assert f"{path}: there is no /gone/bin/python3; install netproof there again" in ran.stderr


def test_nothing_that_is_there_is_touched(tmp_path):
    (tmp_path / "checks").mkdir()
    (tmp_path / "checks" / "imb.py").write_text("mine\n")
    status, said = init(tmp_path)
    assert status == 2
    assert "checks: is there already, and nothing was written" in said
    assert [path.name for path in tmp_path.iterdir()] == ["checks"]


def test_a_group_cannot_write_what_is_run_whatever_the_umask(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    mask = os.umask(0o002)
    try:
        assert init(tmp_path / "new")[0] == 0
        # The first read leaves Python's own files.
        site.load(tmp_path / "new" / "site-config" / "mycluster.py")
    finally:
        assert os.umask(mask) == 0o002
    written = [one for one in (tmp_path / "new").rglob("*") if one.is_file()]
    assert any(one.suffix == ".pyc" for one in written)
    assert not [one for one in (tmp_path / "new").rglob("*") if one.stat().st_mode & 0o022]
