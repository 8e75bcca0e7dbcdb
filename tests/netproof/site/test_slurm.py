"""Slurm's output is read, or refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from made_sites import written

from netproof.errors import NetproofError
from netproof.site import site, slurm
from netproof.site.matrix import matrix
from netproof.site.module_path import missing
from netproof.site.slurm import SlurmPartition, fold, unfold


def test_a_time_limit_of_slurms_is_read_and_another_refused():
    printed = ("UNLIMITED", "1-02:30:05", "00:10:00", "10:00")
    assert [*map(slurm.seconds_of, printed)] == [None, 95405, 600, 600]
    with pytest.raises(NetproofError, match="'soon' is no time limit of Slurm's"):
        slurm.seconds_of("soon")


def test_a_slurmctld_that_is_down_is_named_without_slurms_frame(tmp_path, monkeypatch):
    conf = tmp_path / "slurm.conf"
    conf.write_text(
        "ClusterName=none\nSlurmctldHost=localhost\nSlurmctldPort=1\nAuthType=auth/none\n"
        "NodeName=localhost\nPartitionName=gige Nodes=localhost\nMessageTimeout=2\n"
    )
    monkeypatch.setenv("SLURM_CONF", str(conf))
    said = (
        r"slurmctld does not answer: Slurmctld\(primary\) at \S+ is DOWN"
        r" \| RESTORE SLURMCTLD DAEMON TO SERVICE"
    )
    with pytest.raises(NetproofError, match=f"^{said}$"):
        slurm.answers()


TOPOLOGIES = Path(__file__).parents[2] / "data" / "slurm"


def recorded(name: str) -> tuple[str, str]:
    """Output of scontrol on the configuration and on the topology."""
    return tuple((TOPOLOGIES / name / f"{what}.txt").read_text() for what in ("config", "topology"))


@pytest.fixture
def said(tmp_path, command):
    """``said(config, topology)``: what ``scontrol show`` prints of them."""

    def say(config: str, topology: str) -> None:
        (tmp_path / "config").write_text(config)
        (tmp_path / "topology").write_text(topology)
        command("scontrol", f'[ "$1" = show ] && cat {tmp_path}/"$2"')

    return say


def test_leaves_and_spines_of_a_recorded_tree(said):
    for release in ("22.05", "24.11"):
        said(*recorded(f"tree-{release}"))
        leaves, parents = slurm.topology()
        assert list(leaves) == [*(f"wide-leaf-{i}" for i in range(1, 9)), "gige"]
        assert leaves["wide-leaf-2"] == tuple(f"wide-{i}" for i in range(9, 17))
        assert parents == {f"wide-leaf-{i}": "wide-spine" for i in range(1, 9)}


def test_blocks_are_leaves_and_aggregated_ones_are_above_them(said):
    said(*recorded("block-24.11"))
    leaves, parents = slurm.topology()
    assert list(leaves) == ["b1", "b2", "b3", "b4"]
    assert "wide-17" in leaves["b2"]
    assert parents == {"b1": "b[1-2]", "b2": "b[1-2]", "b3": "b[3-4]", "b4": "b[3-4]"}


@pytest.mark.parametrize(
    "shown",
    [
        *map(recorded, ("none-22.05", "default-24.11")),
        ("TopologyPlugin = topology/3d_torus\n", ""),
    ],
)
def test_without_switches_there_is_no_topology(said, shown):
    said(*shown)
    assert slurm.topology() == ({}, {})


@pytest.mark.parametrize(
    ("config", "topology", "reason"),
    [
        (recorded("tree-22.05")[0], "", r"says nothing, and the plugin is topology/tree$"),
        ("ClusterName = rec\n", recorded("tree-22.05")[1], "names no TopologyPlugin"),
    ],
)
def test_a_tree_that_slurm_does_not_describe_is_refused(said, config, topology, reason):
    said(config, topology)
    with pytest.raises(NetproofError, match=reason):
        slurm.topology()


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("Level=0 LinkSpeed=1 Nodes=gige", "Level=x Nodes=gige", "is no line of a tree"),
        ("SwitchName=gige ", "SwitchName=wide-spine ", "lists wide-spine more than once"),
        ("wide-leaf-[1-8]", "wide-leaf-[1-9]", "has wide-leaf-9 below wide-spine, and no line"),
        ("=gige-[1-4]", "=wide-8,gige-[1-4]", "has wide-8 on wide-leaf-1 and on gige"),
        ("gige-[1-4]", "gige-[1-4", "is no list of Slurm's hosts"),
    ],
)
def test_what_contradicts_itself_is_refused(old, new, reason):
    _, text = recorded("tree-22.05")
    assert old in text
    with pytest.raises(NetproofError, match=re.escape(reason)):
        slurm.topology_of(text.replace(old, new))


@pytest.mark.parametrize(
    ("printed", "for_nodes", "queued"),
    [
        ("PENDING|Resources", True, True),
        ("PENDING|ReqNodeNotAvail, UnavailableNodes:gige-3", True, True),
        ("PENDING|Dependency", False, True),
        ("COMPLETING|None", None, True),
        ("NODE_FAIL|None", None, False),
        ("", None, False),
    ],
)
def test_a_job_that_waits_for_nodes_is_known_from_others(command, printed, for_nodes, queued):
    command("squeue", f"echo '{printed}'")
    reason = slurm.pending_reason("7")
    assert (reason and slurm.is_for_nodes(reason), slurm.is_queued("7")) == (for_nodes, queued)


NEVER = """QOSNotAllowed InvalidAccount PartitionNodeLimit AssocMaxNodePerJobLimit BadConstraints
QOSMaxCpuPerJobLimit JobHeldUser"""
AT_LAST = """Resources Priority Licenses AssocGrpNodeLimit QOSMaxJobsPerUserLimit BeginTime
Reservation"""


def test_reasons_that_no_end_of_another_job_ends_are_known():
    reasons = f"{NEVER} {AT_LAST}".split()
    assert [one for one in reasons if slurm.never_ends(one)] == NEVER.split()


@pytest.mark.parametrize("allowed", [0, 1, 8, 9])
def test_the_most_nodes_of_a_job_are_those_that_sbatch_would_take(command, allowed):
    refusing = f"""\
case "$*" in *"-p gige -q night"*) ;; *) exit 1 ;; esac
for word; do case $word in --nodes=*) [ "${{word#*=}}" -le {allowed} ] && exit 0 ;; esac; done
echo "allocation failure: Node count" >&2; exit 1"""
    command("sbatch", refusing)
    most, refusal = slurm.most_nodes(["-p gige", "-q night"], 9)
    assert most == allowed
    assert refusal.endswith("allocation failure: Node count") is (allowed < 9)


FREE = "idle planned idle~ idle#"
BUSY = "mixed- allocated completing allocated+ mixed# allocated~ idle% idle! mixed!"
FAULTY = """down* drained idle* drained~ draining@ idle^ idle$ maint reserved fail* failing* blocked
inval unknown future down~ idle@ error mixed*"""


def test_nodes_of_which_others_have_a_part_are_busy_and_those_that_save_power_are_free():
    states = f"{FREE} {BUSY} {FAULTY}".split()
    nodes = {f"n{state}": state for state in states}
    known = {"gige": SlurmPartition("gige", "UP", nodes)}
    free, busy = slurm.free_and_busy(["gige", "none"], known)
    assert {*free} == {f"n{state}" for state in FREE.split()}
    assert {*busy} == {f"n{state}" for state in BUSY.split()}
    assert [one for one in nodes.values() if not slurm.usable(one)] == FAULTY.split()


# As issues and pages of sites have them; numbers are of names.
@pytest.mark.parametrize(
    ("listed", "number", "last"),
    [
        ("t006-[007,009-010]", 3, "t006-010"),
        ("cn[9216-9217,9220-9221,9223-9273]", 55, "cn9273"),
        ("c5n-st-c5n18xlarge-[1-3],c5n-dy-c5n18xlarge-[1-2]", 5, "c5n-dy-c5n18xlarge-2"),
        ("r[1-2]i[0-1]n[08-10]", 12, "r2i1n10"),
        ("node[01-02].cluster.example.org", 2, "node02.cluster.example.org"),
    ],
)
def test_names_of_other_sites_are_unfolded(listed, number, last):
    names = slurm.unfold(listed)
    assert (len(names), names[-1]) == (number, last)
    assert {*slurm.unfold(slurm.fold(names))} == {*names}


def test_partitions_that_drain_or_are_down_run_nothing_and_say_so():
    shown = (
        "PartitionName=mi1008x Hidden=NO MaxTime=4-00:00:00 State=DRAIN TRES=gres/gpu:mi100=24\n"
    )
    shown += "PartitionName=long MaxTime=14-00:00:00 OverSubscribe=YES:4 State=DOWN\n"
    shown += "PartitionName=devel MaxTime=30:00 State=UP\n"
    reason = "Not responding | again [slurm@2024-05-01T10:00:00]"
    listed = f"mi1008x|t006-007|idle|none\ndevel|t004-010|down*|{reason}\n"
    found = slurm.partitions_of(shown, listed)
    assert [one.limit_s for one in found.values()] == [345600, 1209600, 1800]
    assert [one.cannot_run(1) for one in found.values()] == [
        "partition mi1008x is DRAIN",
        "partition long is DOWN",
        f"partition devel has 0 usable nodes of 1, and 1 are needed: t004-010 is down* ({reason})",
    ]


def test_a_job_is_asked_to_take_fewer_nodes_tasks_and_cpus(tmp_path, command):
    command("scontrol", f'echo "$@" >{tmp_path}/asked')
    slurm.take_fewer("7", 3)
    asked = (tmp_path / "asked").read_text()
    assert asked == "update JobId=7 NumNodes=3 NumTasks=3 NumCPUs=3\n"


def test_a_hidden_partition_is_one_too(command):
    hides = 'case "$*" in *--all*) echo "{}" ;; esac'
    shown = "PartitionName=wide AllowGroups=ALL MaxTime=04:00:00 State=UP"
    command("scontrol", hides.format(shown))
    command("sinfo", hides.format("wide|cn003|idle|none"))
    wide = slurm.partitions()["wide"]
    assert ([*wide.nodes], wide.limit_s) == (["cn003"], 4 * 3600)


@pytest.mark.parametrize("option", ["--oversubscribe", "-s", "--exclusive=user", "-A net -s"])
def test_a_site_says_in_its_access_that_jobs_share_nodes(option):
    access = ["--partition=shared", option, "--exclude=n1", "--share-of=1", "-sx"]
    assert slurm.options_in(access, slurm.SHARING) == [option]


# Names of nodes are abbreviated as Slurm does.


@pytest.mark.parametrize(
    ("names", "folded"),
    [
        ([], ""),
        (["node3", "node1", "node2", "node2", "node10"], "node[1-3,10]"),
        (["n08", "n09", "n10", "n011"], "n[08-10,011]"),
        (["rack1-n1", "rack1-n2", "rack2-n1"], "rack1-n[1-2],rack2-n1"),
        (["login", "node2", "node1"], "node[1-2],login"),
    ],
)
def test_names_that_differ_in_their_number_are_folded(names, folded):
    assert fold(names) == folded


@pytest.mark.parametrize(
    "text",
    [
        *("", "a,", "a,,b", "a b", "n[1-", "n[]", "n[2-1]", "n[1-2-3]", "n[x]", "n]", "(null)"),
        *("n[1-1000000]", "n[1-999][1-999]", "n[1-60000],m[1-60000]"),
    ],
)
def test_what_is_no_list_of_hosts_is_refused(text):
    with pytest.raises(NetproofError, match="is no list of Slurm's hosts"):
        unfold(text)


# A shell without a module system, such as cron's, is noticed before anything is measured.


@pytest.mark.parametrize(
    ("system", "modules", "more", "needed"),
    [
        ("tmod4", ["gcc/13", {"name": "mpich/4.2"}], {}, "gcc/13, mpich/4.2"),
        ("nomod", ["mpich/4.2"], {}, ""),
        ("spack", ["mpich/4.2"], {}, ""),
        ("tmod4", [], {}, ""),
        ("tmod4", [{"name": "mpich/4.2", "path": "/opt/modules"}], {}, ""),
        # The job loads them.
        ("tmod4", ["mpich/4.2"], {"general": [{"resolve_module_conflicts": False}]}, ""),
    ],
)
def test_without_modulepath_modules_cannot_be_loaded_and_a_login_shell_is_the_remedy(
    configuration, tmp_path, monkeypatch, system, modules, more, needed
):
    monkeypatch.delenv("MODULEPATH", raising=False)
    configuration["systems"][0]["modules_system"] = system
    configuration["environments"][0]["modules"] = modules
    written(tmp_path, configuration | more)
    gathered = site.gather(tmp_path)
    sentence = (
        f"modules {needed} cannot be loaded: MODULEPATH is not set, as in cron's shell;"
        " use a login shell: bash -lc '…'"
    )
    why = missing(gathered, "cluster", matrix(gathered, "cluster"))
    assert why == (sentence if needed else "")
