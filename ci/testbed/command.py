"""The testbed's verbs and their command line."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from ci import options
from ci.testbed import (
    cables,
    faults,
    mending,
    network,
    planting,
    processes,
    slurm,
    state,
    topology_reading,
)
from ci.testbed.daemons import Daemons, usable
from ci.testbed.errors import CannotRunError, StepFailedError
from ci.testbed.faults import FaultError, Faults
from ci.testbed.requirements import (
    PACKAGES,
    other_testbeds,
    refuse_another,
    require_files,
    require_priority,
    require_programs,
    require_root,
)
from ci.testbed.state import StateFolder
from ci.testbed.topology import Topology, TopologyError
from netproof.errors import NetproofError

DEFAULT_TOPOLOGY, VERBS = (
    Path(__file__).with_name(name) for name in ("topology.yaml", "verbs.yaml")
)
MACHINE_LOCK = "\0netproof-testbed"
LOCK_SECONDS = 180.0


def main(arguments: list[str]) -> int:
    """Run one verb; return 0 on success, 1 if something is down or failed, 2 if not possible."""
    where = os.environ.get(state.VARIABLE) or state.DEFAULT
    parser = options.verbs(VERBS, {"--state": Path(where), "--topology": DEFAULT_TOPOLOGY})
    given = parser.parse_args(arguments)
    try:
        require_root()
        folder = StateFolder(given.state)
        if given.verb == "up":
            return up(folder, given.topology)
        if given.verb == "down":
            return down(folder)
        if given.verb == "status":
            return status(folder)
        if given.verb == "plant":
            return plant(folder, given.place, given.faults, given.seconds)
        if given.verb == "lift":
            return lift(folder, given.place, given.keys)
        command = given.command[given.command[:1] == ["--"] :]
        if not command:
            parser.error("exec: name a command: exec NODE -- COMMAND")
        return run_in_node(folder, given.node, command)
    except (CannotRunError, FaultError, TopologyError) as error:
        print(f"testbed: {error}", file=sys.stderr)
        return 2
    except NetproofError as error:
        print(f"testbed: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("testbed: interrupted; up goes on from here, down takes it away", file=sys.stderr)
        return 130


def run_in_node(folder: StateFolder, name: str, command: list[str]) -> int:
    """Becomes ``command`` in the namespaces of the node ``name``; its exit status is ours."""
    require_programs({"nsenter": PACKAGES["nsenter"]})
    built = built_topology(folder)
    daemon = Daemons(folder, built).slurmd(built.node(name))
    if daemon is None:
        raise CannotRunError(f"node {name} is down: run 'testbed up'")
    namespaces = ["--net", "--uts", "--mount", "--ipc", f"--wdns={Path.cwd()}"]
    processes.go_first()
    os.environ["SLURM_CONF"] = str(folder / state.CONF)
    os.execvp("nsenter", ["nsenter", f"--target={daemon}", *namespaces, "--", *command])


@contextmanager
def machine_lock() -> Iterator[None]:
    """Allow one `up` or `down` at a time on this machine, whatever its state folder.

    A name in the kernel's abstract socket space ends with its process.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as lock:
        deadline = time.monotonic() + LOCK_SECONDS
        shown = False
        while True:
            try:
                lock.bind(MACHINE_LOCK)
                break
            except OSError as error:
                if time.monotonic() > deadline:
                    raise StepFailedError(
                        f"another testbed command is at work for {LOCK_SECONDS:g} s: {error}"
                    ) from error
            if not shown:
                print("waiting for another testbed command", file=sys.stderr)
                shown = True
            time.sleep(0.05)
        yield


def is_up(folder: StateFolder) -> bool:
    """Return whether there is a testbed in ``folder``."""
    return folder.is_marked() and (folder / "topology.yaml").is_file()


def built_topology(folder: StateFolder) -> Topology:
    """Return the topology of the testbed in ``folder``. Raises CannotRunError without one."""
    if not is_up(folder):
        raise CannotRunError(f"no testbed in {folder.path}: run 'testbed up'")
    return topology_reading.load(folder / "topology.yaml")


def up(folder: StateFolder, topology_file: Path) -> int:
    """Start the testbed, or restart dead parts and lift faults; leave the rest alone."""
    begun = time.monotonic()
    require_programs(PACKAGES)
    require_files()
    wanted = topology_reading.load(topology_file)
    with machine_lock():
        refuse_another(folder)
        network.probe()
        require_priority()
        _claim(folder, wanted, topology_file)
        _configure(folder, wanted)
        daemons = Daemons(folder, wanted)
        report = _Report()
        with ThreadPoolExecutor() as pool:
            begin = [
                pool.submit(report.step, "network", lambda: _connect(folder, wanted)),
                pool.submit(report.step, "munged", daemons.start_munged),
                pool.submit(report.step, "mariadbd", daemons.start_database),
            ]
            for future in begin:
                future.result()
        report.step("slurmdbd", daemons.start_accounting)
        report.step("slurmctld", daemons.start_controller)
        started = daemons.start_nodes()
        report.step(f"{len(wanted.nodes)} nodes", lambda: daemons.wait_for_nodes() or started)
        daemons.pass_over_lost_jobs()
        daemons.register_cluster()
        if wanted.faults or planting.load(folder, wanted) != planting.Record():
            planting.settle(folder, daemons, wanted, wanted.faults)
            _print_faults(wanted.faults)
    print(
        f"up in {time.monotonic() - begun:.1f} s; to use it: . ci/testbed/activate, or export"
        f" SLURM_CONF={folder / state.CONF}"
    )
    return 0


class _Report:
    """Prints a line for each step with its time."""

    def step(self, what: str, work: Callable[[], bool]) -> None:
        begun = time.monotonic()
        changed = work()
        outcome = "started" if changed else "was up"
        print(f"{what:<12}{outcome:<9}{time.monotonic() - begun:6.2f} s", flush=True)


def _claim(folder: StateFolder, wanted: Topology, topology_file: Path) -> None:
    """Make ``folder`` ready for the topology ``wanted``; wipe it if its files are stale."""
    folder.claim()
    ours = [p for p in processes.running() if p.state == str(folder.path)]
    if folder.survived_this_boot() and (folder / "topology.yaml").is_file():
        if topology_reading.load(folder / "topology.yaml") == wanted:
            return
        if ours:
            raise CannotRunError(
                f"the testbed is up with another topology than {topology_file} says: run"
                " 'testbed down' first"
            )
    processes.kill("testbed", lambda process: process.state == str(folder.path))
    _kill_in_namespaces()
    # Faults planted on its nodes would have no record.
    network.remove()
    folder.wipe()
    folder.write("topology.yaml", topology_file.read_text(encoding="utf-8"))
    folder.write("boot-id", state.boot_id())


def _configure(folder: StateFolder, wanted: Topology) -> None:
    """Write the configuration files. Raises CannotRunError if daemons run with different ones."""
    host = socket.gethostname().partition(".")[0]
    prolog = slurm.task_prolog(sorted(os.sched_getaffinity(0)))
    memory_mb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
    files = {
        state.CONF: (slurm.configuration(wanted, folder, host, memory_mb), 0o644),
        "cgroup.conf": (slurm.CGROUP_CONFIGURATION, 0o644),
        "slurmdbd.conf": (slurm.database_configuration(folder, host), 0o600),
        "hosts": (slurm.hosts(wanted, host), 0o644),
        **({slurm.TOPOLOGY_CONF: (slurm.tree(wanted), 0o644)} if slurm.has_tree(wanted) else {}),
        slurm.TASK_PROLOG: (prolog, 0o755),
    }
    stale = [n for n, (text, _) in files.items() if not folder.holds(n, text)]
    running = any(p.state == str(folder.path) for p in processes.running())
    if running and any((folder / name).exists() for name in stale):
        raise CannotRunError(
            f"the testbed is up with another {', '.join(stale)} than would be written now: run"
            " 'testbed down' first"
        )
    for name in stale:
        folder.write(name, *files[name])
    (folder / "log").mkdir(exist_ok=True)


def _connect(folder: StateFolder, wanted: Topology) -> bool:
    """Correct the network, or build a new one if that fails, and kill processes in the old one."""
    alias = f"netproof testbed {folder.path}"
    if network.built_for() == alias:
        try:
            return network.mend(wanted, wanted.faults)
        except StepFailedError as error:
            print(f"{error}: rebuilding it", file=sys.stderr)
    _kill_in_namespaces()
    network.remove()
    planting.forget(folder)
    if not network.NAMED_NAMESPACES.exists():
        (folder / state.MADE_NAMESPACE_FOLDER).touch()
    network.build(wanted, wanted.faults, alias)
    return True


def down(folder: StateFolder) -> int:
    """Remove the testbed: processes, network, folder, and the remains of a dead one."""
    require_programs({"ip": PACKAGES["ip"]})
    with machine_lock():
        others = other_testbeds(folder)
        killed = processes.kill("down", lambda process: process.state == str(folder.path))
        removed = 0
        if not others:
            killed += _kill_in_namespaces()
            removed = network.remove()
            if (folder / state.MADE_NAMESPACE_FOLDER).exists():
                network.forget_namespace_folder()
        was_ours = folder.remove()
    print(f"down: ended {killed} processes, removed {removed} namespaces and interfaces")
    if not was_ours:
        print(f"{folder.path} was left: no testbed made it")
    return 0


def _kill_in_namespaces() -> int:
    """Kill all processes in any testbed's node, whoever started them; return their number."""
    networks = network.inodes()
    return processes.kill("a node", lambda process: process.network in networks)


def plant(folder: StateFolder, place: str, given: list[str], seconds: float | None) -> int:
    """Plant faults on one place, and lift them after ``seconds`` if given."""
    built = built_topology(folder)
    wanted: dict[str, faults.Value] = {}
    for one in given:
        key, sign, text = one.partition("=")
        if not sign or key in wanted:
            raise FaultError(f"{one}: give each fault once, as KEY=VALUE")
        wanted[key] = built.checked_fault(place, key, faults.read_value(text))

    ours = False

    def with_it(planted: Faults) -> Faults:
        nonlocal ours
        there = planted.get(place, {})
        for key in wanted:
            if key in there:
                raise FaultError(f"{place}: {key} is planted already: run 'testbed lift {place}'")
        excluded = faults.contradiction(there | wanted)
        if excluded:
            raise FaultError(f"{place}: {excluded}")
        ours = True
        return planted | {place: there | wanted}

    def without_it(planted: Faults) -> Faults:
        # Somebody else may have lifted it and planted another one.
        left = {k: v for k, v in planted.get(place, {}).items() if wanted.get(k) != v}
        return planted | {place: left}

    if seconds is None:
        _change(folder, built, with_it)
        _print_faults({place: wanted})
        return 0
    # A signal to end also lifts the fault.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        _change(folder, built, with_it)
        _print_faults({place: wanted})
        time.sleep(seconds)
    finally:
        if ours and is_up(folder):
            _change(folder, built_topology(folder), without_it)
            _print_faults({place: wanted}, "lifted")
    return 0


def lift(folder: StateFolder, place: str | None, keys: list[str]) -> int:
    """Lift planted faults: all, all of a place, or only the faults ``keys`` of it."""
    built = built_topology(folder)
    lifted: Faults = {}

    def without(planted: Faults) -> Faults:
        nonlocal lifted
        lifted = planted if place is None else {place: dict(planted.get(place, {}))}
        if place is not None:
            if place not in built.places:
                raise FaultError(f"{place}: no node, leaf or switch of this testbed")
            for key in keys:
                if key not in lifted[place]:
                    there = " ".join(lifted[place]) or "nothing"
                    raise FaultError(f"{place}: {key} is not planted; {there} is")
            if keys:
                lifted = {place: {key: lifted[place][key] for key in keys}}
        return {
            where: {k: v for k, v in of_it.items() if k not in lifted.get(where, {})}
            for where, of_it in planted.items()
        }

    _change(folder, built, without)
    if not any(lifted.values()):
        print("nothing was planted")
    _print_faults(lifted, "lifted")
    return 0


def _change(folder: StateFolder, built: Topology, change: Callable[[Faults], Faults]) -> None:
    """Settle the faults after ``change``, or those before it if that fails."""
    require_programs(PACKAGES)
    with machine_lock():
        daemons = Daemons(folder, built)
        now = planting.load(folder, built).planted
        wanted = {place: keys for place, keys in change(now).items() if keys}
        try:
            planting.settle(folder, daemons, built, wanted)
        except StepFailedError as error:
            try:
                planting.settle(folder, daemons, built, now)
            except NetproofError as again:
                raise StepFailedError(
                    f"{error}; and not as before either: {again}; run 'testbed up'"
                ) from error
            raise


def _print_faults(planted: Faults, what: str = "planted") -> None:
    """Print a line for each fault."""
    for place, keys in planted.items():
        for line in faults.assignments(place, keys):
            print(f"{what} {line}", flush=True)


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
