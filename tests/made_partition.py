"""A site's partition for tests that need any."""

from __future__ import annotations

from netproof.site.partition import Partition

PARTITION = Partition(
    switch="Summit",
    nic="BCM5720",
    driver="tg3",
    link_mbit_s=1000,
    mtu=1500,
    interface="eno1",
    nodes=8,
    ranks_per_node=2,
    rank_counts=[4, 8],
    max_message_bytes=4096,
    contention_domain="Summit",
    netpipe_repeats=10,
    netpipe_mpi_inside_repeats=100,
    line_rate_from_bytes=0,
    step_limit_s=60,
)
