"""Sweeps whose answer is known, since it is planted: which value is best, or that none is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

KIB = 1024
ALL = ("openmpi4", "openmpi5", "mpich", "intelmpi")
OPEN_MPI = ("openmpi4", "openmpi5")

EAGER = {
    **{name: "OMPI_MCA_btl_tcp_eager_limit" for name in OPEN_MPI},
    "mpich": "MPIR_CVAR_CH4_OFI_EAGER_THRESHOLD",
}
"""Environments whose library has an eager limit over TCP, and the variable that sets it."""

LEAST_BUFFERS = {"OMPI_MCA_btl_tcp_sndbuf": "4608", "OMPI_MCA_btl_tcp_rcvbuf": "2304"}
"""The least that Linux has, in bytes."""


@dataclass(frozen=True)
class Kind:
    """A sweep.

    ``said``: in words; ``parameter``, ``values``, ``protocol``: as ``netproof tune`` takes them;
    ``environments``: one of them, drawn; ``best``: the values any of which is the right one, empty
    where nothing may be recommended; ``nodes``: what is planted on each node of ``partition``;
    ``variables``: a setting of the library that is planted, by environment; ``steps``: not the
    recommendation is judged, but whether each value shows as a step of its curve.
    """

    said: str
    parameter: str
    values: tuple[str, ...]
    protocol: str
    environments: tuple[str, ...]
    best: tuple[str, ...] = ()
    nodes: Mapping[str, object] = field(default_factory=dict)
    variables: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    topology: str = "topology.yaml"
    partition: str = "gige"
    steps: bool = False


def _sizes(*kib: int) -> tuple[str, ...]:
    return tuple(str(KIB * one) for one in kib)


def _each(environments: Mapping[str, str] | tuple[str, ...], value: str) -> dict:
    return {name: {environments[name]: value} for name in environments}


KINDS: Mapping[str, Kind] = {
    "nothing": Kind(
        "a variable that no library reads", "NETPROOF_UNREAD", ("1", "2", "3"), "mpi", ALL
    ),
    # Headers take less than half a per cent more of frames of 1,400 bytes: not worth a setting.
    "mtu-alike": Kind("an MTU of nearly the same", "mtu", ("1450", "1400"), "tcp", ("mpich",)),
    "socket-buffer": Kind(
        "the least socket buffers, over TCP",
        "socket-buffer",
        _sizes(64, 128),
        "tcp",
        ("mpich",),
        best=_sizes(64, 128),
        # 8 KiB hold all that is under way on a link of 1 Gbit/s, and cost nothing.
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
        # With a line in which nothing waits every value goes the same way through its program.
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
    # At 64 KiB the round trip that a rendezvous takes is less than a tenth of the time here.
    "eager-steps": Kind(
        "eager limits of 1, 4, 8 and 16 KiB, where the curve steps",
        "eager-limit",
        _sizes(1, 4, 8, 16),
        "mpi",
        tuple(EAGER),
        steps=True,
    ),
}
