"""Faults of an MPI library or of links to plant, and the cases that have to show each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ci.campaigns.slow_mpi import slower

KIB = 1024
ANY_SIZE = (0, 1 << 40)


@dataclass(frozen=True)
class Shows:
    """Cases of the faulty environment; one has to fail at one of these sizes.

    ``function``: empty for any; ``sizes``: least and most, bytes.
    """

    benchmark: str
    function: str = ""
    sizes: tuple[int, int] = ANY_SIZE

    def of(self, case: Mapping[str, object]) -> bool:
        """Check whether a case of a verdict's document is among them."""
        return (
            (case["benchmark"], case["path"]) == (self.benchmark, "inter-node")
            and self.function in ("", case["function"])
        )  # fmt: skip


@dataclass(frozen=True)
class Kind:
    """A fault.

    ``said``: in words; ``environments``: one, drawn, has it; ``shows``: affected cases; ``slow``:
    time that slow_mpi.c adds to calls, ``{latency_us}`` for the healthy runs' latency, only in
    ``program`` unless empty; ``variables``: a setting of the library instead, by environment;
    ``links``: fault of each node's link; ``checks``: pattern for ReFrame's ``-n``, empty for all;
    ``derived``: the environment is measured alone, against references of the campaign's healthy
    runs.
    """

    said: str
    environments: tuple[str, ...]
    shows: Shows
    slow: str = ""
    program: str = ""
    variables: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    links: Mapping[str, float] = field(default_factory=dict)
    checks: str = ""
    derived: bool = False

    def variables_in(
        self, environment: str, library: str, latency_us: float | None = None
    ) -> dict[str, str]:
        """Return the variables of the faulty environment.

        ``library``: slow_mpi.c, compiled; ``latency_us``: of healthy runs, where ``slow`` needs it.
        """
        if not self.slow:
            return dict(self.variables.get(environment, {}))
        return slower(library, self.slow.format(latency_us=latency_us), self.program)


IMB, NETPIPE = "IMB-MPI1", "NPmpi"
# Without the space that ReFrame shows.
OF_IMB, OF_NETPIPE, OF_TWO_RANKS = "^Imb", "^Netpipe", "^Imb.*%job_ranks=2$"
# Cases of one direction between nodes, and the checks that repeat launches.
OF_ONE_WAY = "^Netpipe(?!.*(%path=intra-node|%direction=bidirectional))"
WITH_IMB, WITH_NETPIPE = ("mpich", "intelmpi"), ("openmpi4", "openmpi5", "mpich", "intelmpi")

# On gige's link a KiB takes 8.7 µs, and a short message some 40 µs; add twice both.
_CALLS = (
    *("Send", "Isend", "Sendrecv", "Bcast", "Reduce", "Allreduce", "Reduce_scatter"),
    *("Gather", "Scatter", "Allgather", "Alltoall", "Barrier"),
)
_THREE_TIMES = ",".join(f"{call}:0-{ANY_SIZE[1]}:80:17.4" for call in _CALLS)


def _over_netpipe(said: str, least: int, most: int, us: int) -> Kind:
    shows = Shows("netpipe", "mpi", (least, most))
    slow = f"Send:{least}-{most}:{us}:0"
    return Kind(said, WITH_NETPIPE, shows, slow=slow, program=NETPIPE, checks=OF_NETPIPE)


def _set_in_open_mpi(said: str, **variables: str) -> Kind:
    set_in = {f"OMPI_MCA_btl_tcp_{name}": value for name, value in variables.items()}
    both = dict.fromkeys(("openmpi4", "openmpi5"), set_in)
    shows = Shows("netpipe", "mpi")
    return Kind(said, tuple(both), shows, variables=both, checks=OF_NETPIPE)


def _by_derived(said: str, shows: Shows, **fault: Any) -> Kind:
    return Kind(said, ("mpich",), shows, checks=OF_ONE_WAY, derived=True, **fault)


def _less_bandwidth(share: float) -> Kind:
    # At smaller sizes the latency hides part of the longer time per byte.
    shows = Shows("netpipe", sizes=(16 * KIB, ANY_SIZE[1]))
    return _by_derived(f"{share:.0%} less bandwidth", shows, links={"rate": 1 - share})


KINDS: Mapping[str, Kind] = {
    "imb-slower": Kind(
        "IMB 3 times slower",
        WITH_IMB,
        Shows("imb"),
        slow=_THREE_TIMES,
        program=IMB,
        # Calls of four sleeping ranks on two CPUs take very long.
        checks=OF_TWO_RANKS,
    ),
    "alltoall": Kind(
        "Alltoall 4 times slower from 32 to 64 KiB",
        WITH_IMB,
        Shows("imb", "Alltoall", (32 * KIB, 64 * KIB)),
        # Each of four ranks sends three messages over its link.
        slow=f"Alltoall:{32 * KIB}-{64 * KIB}:0:{3 * 3 * 8.7:g}",
        program=IMB,
        checks=OF_IMB,
    ),
    "at-2-kib": _over_netpipe("NetPIPE over MPI 20 times slower at 2 KiB", 2045, 2051, 1000),
    "at-16-kib": _over_netpipe("NetPIPE over MPI 6 times slower at 16 KiB", 16381, 16387, 900),
    "spike": _over_netpipe("a spike at 3,000 bytes, of 100 to either side", 2900, 3100, 500),
    "eager-limit": _set_in_open_mpi("a wrong eager limit", eager_limit="64"),
    "least-buffers": _set_in_open_mpi("buffers at the least", sndbuf="4608", rcvbuf="2304"),
    "bandwidth-5": _less_bandwidth(0.05),
    "bandwidth-10": _less_bandwidth(0.1),
    "bandwidth-20": _less_bandwidth(0.2),
    "latency": _by_derived(
        "latencies below 1 KiB doubled",
        Shows("netpipe", "mpi", (1, KIB - 1)),
        slow=f"Send:0-{KIB - 1}:{{latency_us}}:0",
        program=NETPIPE,
    ),
}
"""Faults by name."""
HEALTHY = "healthy"
DERIVING, HEALTHY_DERIVED = "deriving", "healthy-derived"
"""Healthy runs that make references, and healthy runs judged by them."""
ALONE = Kind("", ("mpich",), Shows("netpipe"), checks=OF_ONE_WAY, derived=True)
"""Measurement of both."""

SAID = {
    **{name: kind.said for name, kind in KINDS.items()},
    HEALTHY: HEALTHY,
    HEALTHY_DERIVED: "healthy, by derived references",
    DERIVING: "healthy, to derive references",
}


def kind_of(name: str) -> Kind | None:
    """Return how a run of this name is measured; None for HEALTHY, which runs all checks."""
    return ALONE if name in (DERIVING, HEALTHY_DERIVED) else KINDS.get(name)
