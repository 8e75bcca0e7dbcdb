"""The site's file of kestrel, written by hand: what `netproof site discover` should come to."""

_RANKS = {"ranks_per_node": 1, "contention_domain": "kestrel"}
# The links are emulated, and two CPUs are all nodes: little is measured.
_EMULATED = {
    "max_message_bytes": 262144,
    "line_rate_from_bytes": 131072,
    "netpipe_repeats": 4,
    "netpipe_mpi_inside_repeats": 50,
    "imb_arguments": ["-iter", "30,1"],
    "step_limit_s": 120,
    "first_figure_s": 60,
    "driver_counters": False,
    "may_differ": {"link_mbit_s": "ethtool has a rate of its own for a veth"},
    "criteria": {"floor": {"warn": None}, "curves": {"least_size": 4096}},
    "pairs": {
        "together": 1,
        "arguments": ["-iter", "30,8", "-time", "2"],
        "quantities": ["rate"],
        "slower": 0.2,
    },
}


def _partition(name, descr, nodes, ranks=(2,), access=(), **extras):
    return {
        "name": name,
        "descr": descr,
        "scheduler": "slurm",
        "launcher": "srun",
        "environs": ["mpich", "openmpi"],
        "max_jobs": 4,
        "time_limit": "20m",
        "processor": {"num_cpus": 4},
        "access": [f"--partition={name}", "--account=net", *access],
        "env_vars": [["OMPI_MCA_btl_tcp_if_include", "ens1f0"], ["FI_TCP_IFACE", "ens1f0"]],
        "extras": {
            "switch": "leaves",
            "nic": "veth",
            "driver": "veth",
            "link_mbit_s": 1000,
            "mtu": 9000,
            "interface": "ens1f0",
            "nodes": nodes,
            "rank_counts": list(ranks),
            **_RANKS,
            **_EMULATED,
            **extras,
        },
    }


def _environment(name, mpi, pmi, modules, *features):
    return {
        "name": name,
        "modules": ["gcc/12.2", *modules],
        "features": ["mpi", name, "netpipe-tcp", "netpipe-mpi", *features],
        "extras": {"mpi": mpi, "pmi": pmi},
    }


site_configuration = {
    "general": [
        {
            "poll_rate_max": 50,
            "poll_rate_decay": 0.6,
            "poll_rate_min": 1,
            "target_systems": ["kestrel"],
        }
    ],
    "systems": [
        {
            "name": "kestrel",
            "descr": "a cluster that knows nothing of netproof",
            "hostnames": ["login1"],
            "modules_system": "envmod",
            "partitions": [
                _partition("batch", "all; a job can have four", 4, (2, 4)),
                _partition("debug", "two nodes", 2),
                _partition("rack2", "three nodes", 3),
                _partition("shared", "nodes that are shared", 2, access=["--oversubscribe"]),
                _partition("wide", "a hidden partition", 7, (4,)),
            ],
        }
    ],
    "environments": [
        _environment(
            "mpich", "MPICH 5.0.2", "pmi2", ["mpich/5.0.2", "imb/2021.7", "netpipe/3.7.2"], "imb"
        ),
        _environment("openmpi", "Open MPI 4.1.4", "pmix", ["openmpi/4.1.4"]),
    ],
}
