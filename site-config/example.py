"""A real cluster to copy from: two switch partitions, MPI libraries from modules.

Copy this file to site-config/<your cluster>.py and change what it says. The format is ReFrame's
own; netproof adds the keys under `extras`, which docs/reference/keys.md lists. A mistake in them
is an error with file, partition, key and remedy, as soon as ReFrame or netproof reads the file.
"""

# What all switches of this cluster have in common.
_partition = {
    "scheduler": "slurm",
    "launcher": "srun",
    "environs": ["openmpi-gcc", "mpich-gcc"],
    # Jobs that ReFrame keeps in the queue at a time.
    "max_jobs": 20,
    "time_limit": "1h",
    "processor": {"num_cpus": 32},
}

# What netproof needs to know about each switch.
_extras = {
    "nic": "Broadcom BCM5720",
    "driver": "tg3 3.137",
    "link_mbit_s": 1000,
    "mtu": 1500,
    # The nodes' interface that is connected to the switch under test.
    "interface": "eno1",
    # The most nodes that one job of the partition can have.
    "nodes": 64,
    "ranks_per_node": 2,
    # Each has to be a multiple of ranks_per_node and span at least two nodes.
    "rank_counts": [16, 32, 64],
    # The largest message in bytes; 4194304 by default.
    "max_message_bytes": 4194304,
}

site_configuration = {
    "systems": [
        {
            "name": "example",
            "descr": "a cluster with an old and a new switch",
            # Regular expressions for the host names of the login nodes.
            "hostnames": [r"login\d\.example"],
            "modules_system": "lmod",
            "partitions": [
                {
                    **_partition,
                    "name": "summit",
                    "descr": "nodes on the Summit X450",
                    "access": ["--partition=summit", "--account=netproof"],
                    # Keeps MPI on the switch under test if nodes have more than one network.
                    "env_vars": [
                        ["OMPI_MCA_btl_tcp_if_include", "eno1"],
                        ["UCX_NET_DEVICES", "eno1"],
                    ],
                    # The score baseline of the whole system: this environment on this partition.
                    "extras": {**_extras, "switch": "Summit X450", "baseline": "openmpi-gcc"},
                },
                # The new switch: what differs, and nothing else.
                {
                    **_partition,
                    "name": "nexus",
                    "descr": "nodes on the Nexus 9300",
                    "access": ["--partition=nexus", "--account=netproof"],
                    "env_vars": [
                        ["OMPI_MCA_btl_tcp_if_include", "eno2"],
                        ["UCX_NET_DEVICES", "eno2"],
                    ],
                    "extras": {
                        **_extras,
                        "switch": "Nexus 9300",
                        "nic": "Intel X710",
                        "driver": "i40e 6.1",
                        "link_mbit_s": 10000,
                        "mtu": 9000,
                        "interface": "eno2",
                    },
                },
            ],
        }
    ],
    "environments": [
        {
            "name": "openmpi-gcc",
            "modules": ["gcc/13", "openmpi/4.1", "imb/2021.7", "netpipe/3.7.2", "osu/7.4"],
            # The benchmarks that the environment has, under the names that checks use.
            "features": ["mpi", "openmpi", "netpipe-tcp", "netpipe-mpi", "imb", "osu"],
            "extras": {"mpi": "Open MPI 4.1.6", "pmi": "pmix"},
        },
        {
            "name": "mpich-gcc",
            "modules": ["gcc/13", "mpich/4.2", "netpipe/3.7.2"],
            "features": ["mpi", "mpich", "netpipe-tcp", "netpipe-mpi"],
            "extras": {
                "mpi": "MPICH 4.2.1",
                "pmi": "pmi2",
                # List what it does not have, so that no matrix is silently smaller.
                "absent": {
                    "imb": "IMB is not built for MPICH here yet",
                    "osu": "OMB is not built for MPICH here yet",
                },
            },
        },
    ],
}
