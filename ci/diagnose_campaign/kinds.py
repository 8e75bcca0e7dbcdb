"""Kinds of faults to plant, and the right diagnosis of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from ci.testbed.faults import LEAF, NODE, SWITCH, Value
from netproof.diagnosis.evidence import CauseName

TWO_SWITCHES, LEAVES = "topology.yaml", "leaves.yaml"
UNDER_TEST, MANAGEMENT = "eth1", "mgmt0"


class Measured(StrEnum):
    """MPI environments of a run.

    ``ANY``: one, drawn from all; ``ONE_IMB``: one, drawn from those with IMB, since the others
    measure two nodes only; ``ALL_IMB``: all with IMB, for faults that only all nodes together show.
    """

    ANY = "one of all"
    ONE_IMB = "one with IMB"
    ALL_IMB = "all with IMB"


@dataclass(frozen=True)
class Kind:
    """A kind of fault.

    ``said``: in words; ``topology`` and ``switch``: where it is planted; ``place``: kind of place
    of the switch, one drawn; ``faults``: key and value for ``testbed plant``, one drawn;
    ``causes``: the right diagnoses; ``wider``: less precise ones; ``seconds``: duration of a
    temporary fault during the run; ``misleads``: MPI is set to MANAGEMENT.
    """

    said: str
    topology: str
    switch: str
    place: str
    faults: tuple[Mapping[str, Value], ...]
    measured: Measured
    causes: frozenset[CauseName]
    wider: frozenset[CauseName] = frozenset()
    seconds: float | None = None
    misleads: bool = False


def _on_gige(
    said: str,
    fault: Mapping[str, Value],
    measured: Measured,
    cause: CauseName,
    seconds: float | None = None,
) -> Kind:
    causes = frozenset({cause})
    return Kind(said, TWO_SWITCHES, "gige", NODE, (fault,), measured, causes, seconds=seconds)


def _uplink(said: str, rate: float) -> Kind:
    return Kind(
        said,
        *(LEAVES, "tree", LEAF, ({"rate": rate},), Measured.ALL_IMB),
        # A pair alone gets the full rate of its links, even across half an uplink.
        frozenset({CauseName.SLOW_UPLINK, CauseName.OVERSUBSCRIBED}),
    )


KINDS: Mapping[str, Kind] = {
    "half-rate": _on_gige(
        "port at half rate", {"rate": 0.5}, Measured.ALL_IMB, CauseName.SLOW_PORT
    ),
    "tenth-rate": _on_gige(
        "port at a tenth of the rate", {"rate": 0.1}, Measured.ALL_IMB, CauseName.SLOW_PORT
    ),
    "little-loss": _on_gige(
        "0.2 % loss at a port", {"loss": 0.002}, Measured.ONE_IMB, CauseName.LOSS
    ),
    "loss": _on_gige("1 % loss at a port", {"loss": 0.01}, Measured.ONE_IMB, CauseName.LOSS),
    "mtu": _on_gige("MTU 1400 on a node", {"mtu": 1400}, Measured.ONE_IMB, CauseName.MTU),
    "small-buffer": Kind(
        "16,000 bytes of buffer on the whole switch",
        *(TWO_SWITCHES, "gige", SWITCH, ({"buffer": 16000},), Measured.ALL_IMB),
        # If all nodes lose packets, a diagnosis of loss on all of them is also right.
        frozenset({CauseName.WHOLE, CauseName.LOSS}),
    ),
    "busy-cpu": _on_gige(
        "a busy CPU on a node", {"busy_cpus": 1}, Measured.ONE_IMB, CauseName.CPU_TAKEN
    ),
    "link-flap": _on_gige(
        "a link down for 2 s", {"link": "down"}, Measured.ONE_IMB, CauseName.LINK_FLAPPED, 2.0
    ),
    "link-down": _on_gige(
        "a link down for good", {"link": "down"}, Measured.ONE_IMB, CauseName.LINK_DOWN
    ),
    "faster-network": Kind(
        "MPI on a faster management network",
        *(TWO_SWITCHES, "fast-ethernet", SWITCH, ({"mgmt_mbps": 1000},), Measured.ANY),
        frozenset({CauseName.OTHER_NETWORK}),
        misleads=True,
    ),
    "slower-network": Kind(
        "MPI on a slower management network",
        *(TWO_SWITCHES, "gige", SWITCH, ({"mgmt_mbps": 100},), Measured.ANY),
        frozenset({CauseName.OTHER_NETWORK}),
        misleads=True,
    ),
    "sysctl": Kind(
        "a TCP sysctl that differs",
        *(TWO_SWITCHES, "gige", NODE),
        (
            {"net.ipv4.tcp_sack": 0},
            {"net.ipv4.tcp_timestamps": 0},
            {"net.ipv4.tcp_rmem": "4096 16384 16384"},
        ),
        Measured.ONE_IMB,
        frozenset({CauseName.SETTING}),
    ),
    "uplink": _uplink("an uplink at half rate", 0.5),
    "quarter-uplink": _uplink("an uplink at a quarter of the rate", 0.25),
    "port-of-a-leaf": Kind(
        "a port of a leaf at half rate",
        *(LEAVES, "tree", NODE, ({"rate": 0.5},), Measured.ALL_IMB),
        frozenset({CauseName.SLOW_PORT}),
    ),
    "buffers-of-leaves": Kind(
        "16,000 bytes of buffer on all leaves and the spine",
        *(LEAVES, "tree", SWITCH, ({"buffer": 16000},), Measured.ALL_IMB),
        frozenset({CauseName.WHOLE, CauseName.LOSS}),
    ),
    "one-direction": Kind(
        "one direction of a link at half rate",
        *(TWO_SWITCHES, "gige", NODE, ({"send_rate": 0.5}, {"receive_rate": 0.5})),
        Measured.ALL_IMB,
        frozenset({CauseName.ONE_DIRECTION}),
        frozenset({CauseName.SLOW_PORT}),
    ),
}
"""Kinds of faults by name."""
HEALTHY = "healthy"


SAID = {**{name: kind.said for name, kind in KINDS.items()}, HEALTHY: HEALTHY}
