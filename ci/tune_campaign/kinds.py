"""Sweeps with a known, planted answer: the best value, or none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ci.campaigns.slow_mpi import slower

KIB = 1024
ALL = ("openmpi4", "openmpi5", "mpich", "intelmpi")
OPEN_MPI = ("openmpi4", "openmpi5")

EAGER = {
    **{name: "OMPI_MCA_btl_tcp_eager_limit" for name in OPEN_MPI},
    "mpich": "MPIR_CVAR_CH4_OFI_EAGER_THRESHOLD",
}
"""Environments with an eager limit over TCP, and the variable that sets it."""

LEAST_BUFFERS = {"OMPI_MCA_btl_tcp_sndbuf": "4608", "OMPI_MCA_btl_tcp_rcvbuf": "2304"}
"""Least values in Linux, in bytes."""

OVER_UCX = {
    "OMPI_MCA_pml": "ucx",
    # By default Open MPI uses UCX on InfiniBand cards only.
    "OMPI_MCA_pml_ucx_tls": "any",
    "OMPI_MCA_pml_ucx_devices": "any",
    "UCX_TLS": "tcp,self",
    "UCX_NET_DEVICES": "eth1",
}
"""Open MPI's variables for messages over UCX, and UCX's for TCP on the switch under test."""

ALGORITHM = "algorithm"
ALLREDUCE = {
    "mpich": "MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM",
    "intelmpi": "I_MPI_ADJUST_ALLREDUCE",
}
"""Environments with IMB, and the variable that chooses the algorithm of Allreduce."""
# On gige's link a KiB takes 8.7 µs, and a short message some 40 µs.
_MUCH_SLOWER = f"Allreduce:0-{1 << 40}:500:20"


@dataclass(frozen=True)
class Kind:
    """A sweep.

    ``said``: in words; ``parameter``, ``values``, ``protocol``: options of ``netproof measure
    tune``; ``function``: of IMB, whose algorithms are swept on two ranks, empty for NetPIPE;
    ``slow``: all its algorithms but ``best`` are made slower;
    ``environments``: one is drawn; ``best``: the right values, empty if nothing may be
    recommended; ``nodes``: fault of each node of ``partition``; ``variables``: planted settings of
    the library, by environment; ``steps``: whether each value shows as a step of its curve is
    judged, and not the recommendation.
    """

    said: str
    parameter: str
    values: tuple[str, ...]
    protocol: str
    environments: tuple[str, ...]
    function: str = ""
    slow: bool = False
    best: tuple[str, ...] = ()
    nodes: Mapping[str, object] = field(default_factory=dict)
    variables: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    topology: str = "topology.yaml"
    partition: str = "gige"
    steps: bool = False

    @property
    def swept(self) -> str:
        """The swept parameter, in words."""
        if self.function:
            return f"{self.parameter} of {self.function}"
        return f"{self.parameter} over {self.protocol.upper()}"

    @property
    def asked(self) -> tuple[str, ...]:
        """The verb of ``netproof measure`` and its arguments, without place and environment."""
        if self.function:
            words = ["algorithms", self.function, "--ranks", "2"]
        else:
            words = ["tune", self.parameter, "--protocol", self.protocol]
        if self.values:
            words += ["--values", ",".join(self.values)]
        return tuple(words)

    def variables_in(self, environment: str, library: str) -> dict[str, str]:
        """Return the variables planted in an environment; ``library``: slow_mpi.c, compiled."""
        if not self.slow:
            return dict(self.variables.get(environment, {}))
        (best,) = self.best
        return slower(library, _MUCH_SLOWER, "IMB-MPI1", (ALLREDUCE[environment], best))


def _sizes(*kib: int) -> tuple[str, ...]:
    return tuple(str(KIB * one) for one in kib)


def _each(environments: Mapping[str, str] | tuple[str, ...], value: str) -> dict:
    return {name: {environments[name]: value} for name in environments}


KINDS: Mapping[str, Kind] = {
    "nothing": Kind(
        "a variable that no library reads", "NETPROOF_UNREAD", ("1", "2", "3"), "mpi", ALL
    ),
    # Headers take under half a per cent more of 1,400-byte frames: not worth a setting.
    "mtu-alike": Kind("an MTU of nearly the same", "mtu", ("1450", "1400"), "tcp", ("mpich",)),
    "socket-buffer": Kind(
        "the least socket buffers, over TCP",
        "socket-buffer",
        _sizes(64, 128),
        "tcp",
        ("mpich",),
        best=_sizes(64, 128),
        # 8 KiB hold all data in flight on a link of 1 Gbit/s, and cost nothing.
        nodes={"net.ipv4.tcp_wmem": "4608 4608 4608", "net.ipv4.tcp_rmem": "2304 2304 2304"},
    ),
    "socket-buffer-mpi": Kind(
        "the least socket buffers, of Open MPI",
        "socket-buffer",
        _sizes(64, 128),
        "mpi",
        OPEN_MPI,
        best=_sizes(64, 128),
        variables={name: LEAST_BUFFERS for name in OPEN_MPI},
    ),
    "mtu": Kind(
        "an MTU of 576 bytes",
        "mtu",
        ("700", "1500"),
        "tcp",
        ("mpich",),
        best=("1500",),
        nodes={"mtu": 576},
    ),
    "eager-limit": Kind(
        "an eager limit of 512 bytes",
        "eager-limit",
        _sizes(1, 64),
        "mpi",
        tuple(EAGER),
        best=_sizes(64),
        variables=_each(EAGER, "512"),
    ),
    "coalescing": Kind(
        "packets gathered for 250 µs",
        "coalescing",
        ("0", "100"),
        "tcp",
        ("mpich",),
        best=("0",),
        # With an empty delay line every value takes the same path through its program.
        nodes={"delay": 0, "batch": 250},
    ),
    "rails": Kind(
        "one rail of two, of Open MPI",
        "rails",
        (),
        "mpi",
        ("openmpi5",),
        best=("eth1+eth2",),
        variables={"openmpi5": {"OMPI_MCA_btl_tcp_if_include": "eth1"}},
        topology="rails.yaml",
        partition="rails",
    ),
    # At 64 KiB a rendezvous' round trip is less than a tenth of the time here.
    "eager-steps": Kind(
        "eager limits of 1, 4, 8 and 16 KiB, where the curve steps",
        "eager-limit",
        _sizes(1, 4, 8, 16),
        "mpi",
        tuple(EAGER),
        steps=True,
    ),
    "eager-steps-ucx": Kind(
        "UCX's thresholds of 1, 4, 8 and 16 KiB below Open MPI, where the curve steps",
        "UCX_RNDV_THRESH",
        _sizes(1, 4, 8, 16),
        "mpi",
        ("openmpi4",),
        variables={"openmpi4": OVER_UCX},
        steps=True,
    ),
    "algorithm": Kind(
        "all algorithms of Allreduce but one made slower, MPICH",
        ALGORITHM,
        ("recursive_doubling", "reduce_scatter_allgather", "ring"),
        "mpi",
        ("mpich",),
        function="Allreduce",
        slow=True,
        best=("reduce_scatter_allgather",),
    ),
    "algorithm-preset": Kind(
        "all presets of Allreduce but one made slower, Intel MPI",
        ALGORITHM,
        ("1", "2", "3"),
        "mpi",
        ("intelmpi",),
        function="Allreduce",
        slow=True,
        best=("2",),
    ),
    "algorithm-alike": Kind(
        "MPICH's own choice, by its name",
        ALGORITHM,
        ("auto",),
        "mpi",
        ("mpich",),
        function="Allreduce",
    ),
}
