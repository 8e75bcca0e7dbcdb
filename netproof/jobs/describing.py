"""Nodes of a job, described by themselves: what they are, and the paths between them."""

from __future__ import annotations

import itertools
import json
import shutil
import sys
import time
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress

from netproof.benchmarks import registry
from netproof.errors import NetproofError
from netproof.jobs.job import RunningJob
from netproof.session import node_facts

_SCRIPT = (sys.executable, "-IS", "./node.py")

_UNKNOWN = "-"
"""Sign of an unknown address."""


def describe(job: RunningJob, *others: RunningJob) -> None:
    """Have every node describe itself, then test the paths; readers report what is missing.

    ``others``: the job's other environments, on the same nodes and so with the same paths.
    """
    for one in (job, *others):
        began = time.time()
        one.everywhere(*_SCRIPT, "node", job.partition.interface, *registry.PROGRAMS, kind="node")
        if not one.dry:
            # Every node has read its clock between these two moments of this node's clock.
            text = json.dumps([round(began, 6), round(time.time(), 6)])
            (one.folder / node_facts.CLOCK_FILE).write_text(text + "\n")
    try_paths(job)
    for one, kind in itertools.product(others, (node_facts.RING_FILE, "path.*")):
        for path in job.folder.glob(kind):
            shutil.copy(path, one.folder)


def try_paths(job: RunningJob, pairs: Iterable[tuple[str, str]] = ()) -> None:
    """Test the path of each node to its neighbours, and those between the nodes of pairs."""
    if job.dry:
        return
    nodes, addresses = job.nodes, _addresses(job)
    partners: defaultdict[str, list[str]] = defaultdict(list)
    for one, other in pairs:
        partners[one].append(other)
        partners[other].append(one)
    lines = []
    for place, node in enumerate(nodes if len(nodes) > 1 else ()):
        others = [nodes[(place + 1) % len(nodes)], nodes[place - 1], *partners[node]]
        words = [word for one in others for word in (one, addresses.get(one, _UNKNOWN))]
        lines.append("\t".join([node, *words]) + "\n")
    (job.folder / node_facts.RING_FILE).write_text("".join(lines))
    if lines:
        job.everywhere(*_SCRIPT, "path", job.partition.interface, kind="path")


def _addresses(job: RunningJob) -> dict[str, str]:
    """Return the IPv4 addresses that nodes found on their interface."""
    found = {}
    for node in job.nodes:
        with suppress(NetproofError):
            path = job.folder / node_facts.NODE_FILES.replace("*", node)
            facts = node_facts.facts_of(path, node_facts.NODE_HEADER)
            if facts.get("address"):
                found[facts.get("node", node)] = facts["address"]
    return found
