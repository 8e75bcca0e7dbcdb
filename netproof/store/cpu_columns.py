"""Columns on what launches cost the CPUs of their nodes."""

from __future__ import annotations

import pyarrow as pa

from netproof.measurement.cpu_use import FIGURES
from netproof.store.columns import (
    BYTES_TYPE,
    COUNT_TYPE,
    MAP_TYPE,
    NUMBER_TYPE,
    TEXT_TYPE,
    StoreColumn,
)

CPU = {
    "ranks_system_s": StoreColumn(
        pa.list_(NUMBER_TYPE),
        "of the CPU seconds of each of `ranks_used` those that the kernel took for it",
        True,
    ),
    "exchanged_messages": StoreColumn(
        BYTES_TYPE,
        "messages that the ranks had to send to each other at least; null: not known",
        True,
    ),
    "exchanged_bytes": StoreColumn(BYTES_TYPE, "bytes of these; null: not known", True),
    "exchanged_why": StoreColumn(TEXT_TYPE, "why that is not known; empty where it is", True),
}

CPU_COSTS = {
    "cpu_costs": StoreColumn(
        pa.list_(
            pa.struct(
                [
                    ("node", TEXT_TYPE),
                    *((name, COUNT_TYPE) for name in ("ranks", "sharing")),
                    *((name, NUMBER_TYPE) for name in FIGURES),
                    ("absent", MAP_TYPE),
                ]
            )
        ),
        "each node: CPU seconds of its ranks, less those of starting and ending, and what follows"
        " from them; `absent`: what is not known, and why",
        True,
    )
}
