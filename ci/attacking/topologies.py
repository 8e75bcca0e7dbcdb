"""Mutated topologies of the testbed, and the judge of their reader."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path

import yaml

from ci.attacking.inputs import RIGHT, ROOT, WRITTEN, Attack, Input, Judge, of_files
from ci.attacking.references import bomb
from ci.testbed import topology, topology_reading


def _topology(folder: Path) -> Judge:
    path = folder / "topology.yaml"

    @cache
    def truth(origin: str) -> topology.Topology:
        return topology_reading.load(Path(origin))

    def judge(given: Input) -> str:
        path.write_text(given.text, errors="surrogatepass")
        found = topology_reading.load(path)
        if found == truth(given.origin):
            return RIGHT
        # Read all as text: the digits decide, and not another reader of numbers.
        stated = yaml.load(given.text, yaml.CBaseLoader)["switches"]
        for switch in found.switches:
            values = (switch.link_mbps, switch.mtu, switch.buffer, switch.cpus, len(switch.nodes))
            there = stated[switch.name]
            keys = ("link_mbps", "mtu", "buffer", "cpus", "nodes")
            if values != tuple(_whole(there[key]) for key in keys):
                return f"{switch} is not what the file says"
        return WRITTEN

    return judge


def _whole(digits: str) -> int:
    try:
        return int(digits)
    except ValueError:
        return int(digits, 0)


def _bomb_of_topology(text: str, origin: str, draw: random.Random) -> Input | None:
    return Input(text + bomb(draw).replace(".b", "b"), origin, must_refuse=True)


def attacks(folder: Path) -> tuple[Attack, ...]:
    """Return the attack on the reader of topologies, by the testbed's; ``folder`` gets inputs."""
    paths = sorted((ROOT / "ci" / "testbed").glob("*.yaml"))
    return (Attack("topology", of_files(paths, _bomb_of_topology), _topology(folder)),)
