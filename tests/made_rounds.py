"""Recorded rounds of pairs of four nodes, as often as asked for."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from netproof.intake import disk
from netproof.measurement.disturbance import DisturbanceSettings
from netproof.session import pair_rounds
from netproof.session.pair_rounds import PairRounds
from netproof.site.partition import Partition

RECORDED = Path(__file__).parent / "data" / "jobs" / "pairs"
NODES = tuple(f"fast-ethernet-{n}" for n in range(1, 5))
EXTRAS = disk.json_file(RECORDED / "plan.json")["extras"]
PARTITION = Partition.model_validate(EXTRAS)
BUSY = DisturbanceSettings(others=1.0, steal=1.0)
"""By which a machine that was busy throughout was not disturbed."""


def recorded(times: int = 1, partition: str = "fast-ethernet", **values: Any) -> PairRounds:
    """The rounds of the recorded job so often, on a partition, with other values."""
    where = ("testbed", partition, "mpich")
    launches, faults, _ = pair_rounds.read(RECORDED, where, PARTITION.max_message_bytes)
    several = tuple(
        dataclasses.replace(one, number=one.number + 3 * n, round=one.round + 3 * n)
        for n in range(times)
        for one in launches
    )
    made = PairRounds(*where, NODES, several, "7", "quick", 1, faults=faults)
    return dataclasses.replace(made, **values)
