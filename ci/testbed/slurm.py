"""Configuration files of Slurm, its database daemon, and the nodes' names."""

from __future__ import annotations

from ci.testbed.network import CONTROLLER_ADDRESS
from ci.testbed.state import StateFolder
from ci.testbed.topology import Topology

CLUSTER = "testbed"
CONTROLLER_PORT = 16817
NODE_PORT = 16818
TASK_PROLOG = "task-prolog"
CGROUP_CONFIGURATION = "CgroupPlugin=cgroup/v1\n"
"""slurm.conf uses no control groups; only this plugin then needs neither them nor systemd."""
DATABASE_PORT = 16819
DATABASE = "slurm"
UNKILLABLE_SECONDS = 600
TOPOLOGY_CONF = "topology.conf"


def configuration(topology: Topology, state: StateFolder, host: str, memory_mb: int) -> str:
    """Return slurm.conf; ``host``: the machine's name; ``memory_mb``: MiB that each node claims."""
    lines = [
        f"ClusterName={CLUSTER}",
        f"SlurmctldHost={host}({CONTROLLER_ADDRESS})",
        f"SlurmctldPort={CONTROLLER_PORT}",
        f"SlurmdPort={NODE_PORT}",
        "SlurmUser=root",
        "SlurmdUser=root",
        "AuthType=auth/munge",
        f"AuthInfo=socket={state / 'munge/socket'}",
        f"StateSaveLocation={state / 'slurmctld'}",
        f"SlurmctldPidFile={state / 'slurmctld/pid'}",
        f"SlurmctldLogFile={state / 'log/slurmctld.log'}",
        f"SlurmdSpoolDir={state / 'nodes/%n/spool'}",
        f"SlurmdPidFile={state / 'nodes/%n/pid'}",
        f"SlurmdLogFile={state / 'log/slurmd-%n.log'}",
        # The PMIx plugins of two nodes cannot share a directory of one name.
        f"TmpFS={state / 'nodes/%n/tmp'}",
        f"TaskProlog={state / TASK_PROLOG}",
        # A node may claim more CPUs than the machine has.
        "SlurmdParameters=config_overrides",
        "ProctrackType=proctrack/linuxproc",
        "TaskPlugin=task/none",
        "JobAcctGatherType=jobacct_gather/linux",
        "JobAcctGatherFrequency=task=5",
        "SelectType=select/cons_tres",
        "SelectTypeParameters=CR_CPU",
        "SchedulerType=sched/backfill",
        "SchedulerParameters=bf_interval=1,sched_interval=1",
        "MpiDefault=none",
        "ReturnToService=2",
        "JobRequeue=0",
        "KillWait=5",
        # Steps of many ranks end slowly on few CPUs; beyond the limit, the node would be drained.
        f"UnkillableStepTimeout={UNKILLABLE_SECONDS}",
        "MessageTimeout=30",
        "MaxJobCount=20000",
        "MailProg=/bin/true",
        "AccountingStorageType=accounting_storage/slurmdbd",
        f"AccountingStorageHost={CONTROLLER_ADDRESS}",
        f"AccountingStoragePass={state / 'munge/socket'}",
        f"AccountingStoragePort={DATABASE_PORT}",
        # One of these is the whole machine: jobs that ask for it run one after another.
        "Licenses=machine:1",
    ]
    if has_tree(topology):
        lines.append("TopologyPlugin=topology/tree")
    for switch in topology.switches:
        lines += [
            f"NodeName={node.name} NodeAddr={node.management_address} CPUs={switch.cpus}"
            f" RealMemory={memory_mb}"
            for node in switch.nodes
        ]
    for number, switch in enumerate(topology.switches):
        lines.append(
            f"PartitionName={switch.name} Nodes={','.join(node.name for node in switch.nodes)}"
            f" Default={'YES' if number == 0 else 'NO'} MaxTime=INFINITE State=UP"
        )
    return "\n".join(lines) + "\n"


def has_tree(topology: Topology) -> bool:
    """Return whether a switch has leaves, which Slurm has to know."""
    return any(switch.leaves for switch in topology.switches)


def tree(topology: Topology) -> str:
    """Return topology.conf for topology/tree: leaves and spines; a switch without is a leaf."""
    lines = []
    for switch in topology.switches:
        for name, nodes in [(leaf.name, leaf.nodes) for leaf in switch.leaves] or [
            (switch.name, switch.nodes)
        ]:
            lines.append(f"SwitchName={name} Nodes={','.join(node.name for node in nodes)}")
        if switch.leaves:
            below = ",".join(leaf.name for leaf in switch.leaves)
            lines.append(f"SwitchName={switch.spine} Switches={below}")
    return "\n".join(lines) + "\n"


def database_configuration(state: StateFolder, host: str) -> str:
    """Return slurmdbd.conf for a MariaDB that is found by its socket."""
    lines = [
        f"DbdHost={host}",
        f"DbdAddr={CONTROLLER_ADDRESS}",
        f"DbdPort={DATABASE_PORT}",
        "SlurmUser=root",
        "AuthType=auth/munge",
        f"AuthInfo=socket={state / 'munge/socket'}",
        f"LogFile={state / 'log/slurmdbd.log'}",
        f"PidFile={state / 'database/slurmdbd.pid'}",
        "StorageType=accounting_storage/mysql",
        "StorageHost=localhost",
        "StorageUser=root",
        f"StorageLoc={DATABASE}",
    ]
    return "\n".join(lines) + "\n"


def task_prolog(cpus: list[int]) -> str:
    """Return the script that Slurm runs before each task, to bind it to one of ``cpus``.

    Neighbouring ranks get different CPUs if possible, on any nodes: a pair on one CPU has a fifth
    less of a fast link's rate. Without binding, the kernel sometimes puts both ends of a link on
    one CPU, which cuts the latency of that run to a tenth of others. A batch script is not bound,
    since it may start several programs; Slurm gives it a high step number.
    """
    return f"""#!/bin/sh
case "$SLURM_STEP_ID" in "" | -* | 42949672??) exit 0 ;; esac
set -- {" ".join(map(str, cpus))}
shift $(( SLURM_PROCID % $# ))
exec taskset --cpu-list --pid "$1" "$PPID" >/dev/null
"""


def hosts(topology: Topology, host: str) -> str:
    """Return the nodes' /etc/hosts: each node's name on its switch, not on Slurm's network."""
    lines = ["127.0.0.1 localhost", f"{CONTROLLER_ADDRESS} {host}"]
    lines += [f"{node.address} {node.name}" for node in topology.nodes]
    return "\n".join(lines) + "\n"
