"""The verb status: state of each switch and node."""

from __future__ import annotations

from collections.abc import Mapping

from ci.testbed import cables, faults, mending, network, planting, state
from ci.testbed.built import built_topology
from ci.testbed.daemons import Daemons, usable
from ci.testbed.requirements import PACKAGES, require_programs
from ci.testbed.state import StateFolder


def status(folder: StateFolder) -> int:
    """Print a line for each switch, node, planted fault, and daemon that is down."""
    require_programs(PACKAGES)
    built = built_topology(folder)
    planted = planting.load(folder, built).planted
    daemons = Daemons(folder, built)
    links = cables.cables(built, planted)
    seen = network.read(links)
    missing = daemons.missing()
    wrong = [f"{role}: not running" for role in missing]
    # Slurm's commands would try for a minute to reach a missing controller.
    reachable = not {"munged", "slurmctld"} & set(missing)
    states = daemons.node_states() if reachable else {}
    partitions = daemons.partition_states() if reachable else {}
    wrong += mending.differences(links, seen)
    wrong += planting.differences(folder, built, planted)
    lines = {link.name: _cells(link, seen) for link in links}
    print(_line("", "address", "Mbit/s", "MTU", "Slurm"))
    for number, switch in enumerate(built.with_switch_faults(planted).switches, 1):
        said = partitions.get(switch.name, "unknown")
        if reachable and said != "up":
            wrong.append(f"{switch.name}: Slurm calls the partition {said}")
        subnet = f"{switch.nodes[0].address.rpartition('.')[0]}.0/24"
        print(_line(switch.name, subnet, switch.link_mbps, switch.mtu, f"partition {said}"))
        if switch.mgmt_mbps is not None:
            subnet = f"{cables.mgmt_network(number)}0/24"
            said = f"second management network, {cables.MGMT}"
            print(_line("  " + cables.MGMT, subnet, switch.mgmt_mbps, cables.MGMT_MTU, said))
        for leaf in switch.leaves:
            said = f"uplink to {switch.spine}; {leaf.nodes[0].name} to {leaf.nodes[-1].name}"
            print(_line(f"  {leaf.name}", *lines[leaf.name], said))
        for node in switch.nodes:
            said = states.get(node.name, "unknown")
            if reachable and not usable(said):
                wrong.append(f"{node.name}: Slurm calls it {said}")
            print(_line(f"  {node.name}", *lines[node.name], said))
            if switch.rails > 1:
                print(_line(f"    {cables.RAIL}", *lines[f"{node.name} {cables.RAIL}"], "rail 2"))
    for twin in built.twins:
        one = twin.ends[0]
        said = f"healthy twin of {twin.switch.name}, no nodes of Slurm's"
        subnet = f"{one.address.rpartition('.')[0]}.0/24"
        print(_line(twin.healthy.name, subnet, *lines[one.name][1:], said))
    if not wrong and not daemons.accounting_answers():
        wrong.append("slurmdbd: does not answer")
    for place, keys in planted.items():
        for line in faults.assignments(place, keys):
            print(f"FAULT {line}")
    for sentence in wrong:
        print(f"DOWN {sentence}")
    print(f"SLURM_CONF={folder / state.CONF}")
    return 1 if wrong else 0


def _cells(
    link: cables.Cable, seen: Mapping[tuple[str, str], mending.Seen]
) -> tuple[str | None, str | None, int | None]:
    """Return the kernel's address, rate of the slower end in Mbit/s, and MTU."""
    ends = [seen[end.place] for end in link.ends if end.place in seen]
    near = seen.get(link.near.place)
    rates = [end.bucket.mbps for end in ends if end.bucket]
    on = near is not None and near.carrier
    return (
        near.address if near and on else None,
        f"{min(rates):g}" if rates else None,
        near.mtu if near and on else None,
    )


def _line(name: str, *cells: str | int | None) -> str:
    address, rate, mtu, said = ("-" if cell is None else cell for cell in cells)
    return f"{name:<19}{address:<16}{rate:>8}{mtu:>6}  {said}"
