"""A short job that looks at nodes and environments before anything is measured.

``site discover`` makes a site of what it finds, and ``site check --job`` compares it with one.
"""

from __future__ import annotations

import shlex
import shutil
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from netproof import codec
from netproof.benchmarks import registry
from netproof.criteria.rate import LineRateSettings
from netproof.errors import NetproofError, shortened
from netproof.measurement.links import Link
from netproof.site import slurm
from netproof.site.site import OWN_ENVIRONMENT
from netproof.site.slurm import fold

SCRIPTS = (
    Path(__file__).parent / "shell" / "look_job.py",
    Path(__file__).parents[1] / "run" / "shell" / "node.py",
)
HEADER = "netproof-look-1 "
JOB_LIMIT_MIN = 15
MOST_NODES = 16
_POLL_S = 2
_MESSAGE = 1048576
"""Bytes of a message of the programs that the job starts."""


@dataclass(frozen=True)
class Interface:
    """An interface of a node that is up; ``link_mbit_s``: by ethtool; None for what is unknown."""

    name: str
    mtu: int
    link_mbit_s: int | None
    address: str
    driver: str
    card: str


@dataclass(frozen=True)
class Device:
    """An RDMA device of a node, with the interfaces that belong to it."""

    name: str
    link_layer: str
    mbit_s: int | None
    active: bool
    numa_node: str
    interfaces: tuple[str, ...]


@dataclass(frozen=True)
class LookedNode:
    """A node as the job found it.

    ``python_fault``: why it cannot start netproof, empty if it can; ``printed``: what a prolog or
    wrapper printed there.
    """

    name: str
    python_fault: str
    interfaces: tuple[Interface, ...]
    devices: tuple[Device, ...]
    printed: tuple[str, ...] = ()


@dataclass(frozen=True)
class LookedEnvironment:
    """An environment as the job found it.

    ``programs``: path of each; ``library``: path and version of the MPI library that they load;
    ``pmi``: the plugin by which two ranks of a program found each other, empty where none did;
    ``mbit_s``: bandwidth of 1 MiB of each program that ran; ``said``: last words of what failed;
    ``failed``: a command that sets it up and its status, if one failed; ``carried``: bytes that
    each interface of the first node sent while a program ran.
    """

    programs: Mapping[str, str]
    library: tuple[str, str]
    pmi: str
    mbit_s: Mapping[str, float]
    said: Mapping[str, str] = field(default_factory=dict)
    failed: str = ""
    carried: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


@dataclass(frozen=True)
class Looked:
    """Findings of a job: its nodes, and environments by name.

    ``tcp``: Mbit/s of TCP over each interface, by the bytes of a message.
    """

    nodes: tuple[LookedNode, ...]
    tcp: Mapping[str, Mapping[int, float]]
    environments: Mapping[str, LookedEnvironment]

    @property
    def described(self) -> list[LookedNode]:
        """Nodes that had a Python to describe them."""
        return [one for one in self.nodes if one.interfaces or not one.python_fault]

    def tcp_mbit_s(self, interface: str) -> float | None:
        """Return the rate of the largest message; None where TCP was not measured."""
        rates = self.tcp.get(interface)
        return rates[max(rates)] if rates else None

    def line_rate_from_bytes(self, interface: str, link_mbit_s: int, mtu: int) -> int:
        """Return from which power of two on no message is faster than the link; 0 if none is.

        Only the token bucket of an emulated link lets small messages pass faster.
        """
        most = 8 * Link(link_mbit_s, mtu).line_rate_mb_s() * (LineRateSettings().fail or 1)
        faster = [size for size, rate in self.tcp.get(interface, {}).items() if rate > most]
        return 1 << max(faster).bit_length() if faster else 0


def look(
    folder: Path,
    access: Sequence[str],
    most: int,
    environments: Mapping[str, tuple[Sequence[str], Sequence[str]]],
    wait_s: float,
) -> Looked:
    """Submit the job, wait for it, and return what it found.

    ``folder``: seen by the nodes; ``most``: nodes that a job can have, of which the free ones are
    taken; ``environments``: commands that set each up, and PMI plugins to try. Raises NetproofError
    with Slurm's reason where the job does not run or leaves nothing.
    """
    free, _ = slurm.free_and_busy(slurm.names_in(access), slurm.partitions())
    nodes = min(most, MOST_NODES, max(2, len(free)))
    place = Path(tempfile.mkdtemp(prefix=".netproof-look-", dir=folder))
    try:
        for script in SCRIPTS:
            shutil.copy(script, place)
        (place / "look-job.sh").write_text(_script(environments))
        submitted = slurm.ask(
            *("sbatch", "--parsable", f"--chdir={place}", f"--output={place}/job.out"),
            *("--job-name=netproof-look", f"--time={JOB_LIMIT_MIN}", f"--nodes={nodes}"),
            *("--ntasks-per-node=1", "--no-requeue"),
            *(word for option in access for word in shlex.split(option)),
            str(place / "look-job.sh"),
        )
        job = submitted.strip().splitlines()[-1].partition(";")[0]
        try:
            _wait(job, wait_s)
        except BaseException:
            slurm.ask("scancel", job)
            raise
        return _read(place, environments, job)
    finally:
        shutil.rmtree(place, ignore_errors=True)


_NOTE = 'status=$? && [ "$status" -eq 0 ] || netproof_failed "status $status"'
"""Notes a command of the set-up that failed."""


def _script(environments: Mapping[str, tuple[Sequence[str], Sequence[str]]]) -> str:
    python = shlex.join([sys.executable, "-Es"])
    root = shlex.quote(str(Path(__file__).resolve().parents[2]))
    lines = [
        "#!/bin/bash",
        OWN_ENVIRONMENT,
        "mapfile -t names < <(scontrol show hostnames)",
        'pair=$(IFS=,; echo "${names[*]:0:2}")',
        "srun --mpi=none --ntasks-per-node=1 --kill-on-bad-exit=0"
        f" --output=node.%N.txt --error=node.%N.err {python} look_job.py node {root}",
    ]
    for number, (setup, pmis) in enumerate(environments.values()):
        lines += [
            f"(mkdir -p env-{number} && cd env-{number} && exec 2>setup.err >setup.out",
            "netproof_folder=$PWD",
            # What a module says stands above what its system makes of it.
            'netproof_failed() { echo "$netproof_at: $1: $(tail -n 5 "$netproof_folder/setup.err"'
            " | tr -s '[:space:]' ' ')\" >>\"$netproof_folder/failed\"; }",
            "trap 'netproof_failed \"it ended the shell\"' EXIT",
            *(text for line in setup for text in (f"netproof_at={shlex.quote(line)}", line, _NOTE)),
            "trap - EXIT",
            f'{python} ../look_job.py environment "$pair" {shlex.join(pmis)} >programs.txt'
            " 2>programs.err)",
        ]
    return "\n".join([*lines, "touch done", ""])


def _wait(job: str, wait_s: float) -> None:
    """Wait until a job has ended. Raises NetproofError where it will not begin in time."""
    began = time.monotonic()
    running_limit = wait_s + 60 * JOB_LIMIT_MIN
    while slurm.is_queued(job):
        reason = slurm.pending_reason(job)
        waited = time.monotonic() - began
        if reason and (slurm.never_ends(reason) or waited > wait_s):
            raise NetproofError(f"job {job} waits: {reason}; it was cancelled after {waited:.0f} s")
        if waited > running_limit:
            raise NetproofError(f"job {job} did not end in {waited / 60:.0f} minutes")
        time.sleep(_POLL_S)


def _read(place: Path, environments: Mapping[str, object], job: str) -> Looked:
    # Files of other machines come late over NFS.
    for _ in range(10):
        if (place / "done").exists():
            break
        time.sleep(0.5)
    else:
        said = last_words(place / "job.out")
        raise NetproofError(
            f"job {job} left nothing in {place.parent}: {said or 'is that folder on the nodes?'}"
        )
    nodes = tuple(map(node_of, sorted(place.glob("node.*.txt"))))
    if not Looked(nodes, {}, {}).described:
        said = without_python(nodes) or last_words(place / "job.out")
        raise NetproofError(f"job {job} described no node: {said}")
    rates = place / "networks.json"
    there = rates.read_bytes() if rates.exists() else b"{}"
    tcp = codec.decode(dict[str, dict[int, float]], there, str(rates))
    printed = {line for node in nodes for line in node.printed}
    found = {
        name: environment_of(place / f"env-{number}", printed)
        for number, name in enumerate(environments)
    }
    return Looked(nodes, tcp, found)


def last_words(path: Path, printed: Collection[str] = ()) -> str:
    """Return the last line of a file that says something; ``printed``: lines of others in it."""
    said = [line for line in _said(path) if line not in printed]
    return shortened(said[-1]) if said else ""


def _said(path: Path) -> list[str]:
    """Return the lines of a file that say something, none where it cannot be read."""
    try:
        lines = path.read_text(errors="replace").splitlines()
    except OSError:
        return []
    return [line.strip() for line in lines if line.strip()]


def _described(path: Path) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return what ``look_job.py`` printed into a file, empty for nothing, and the lines around."""
    lines = _said(path)
    own = [line for line in lines if line.startswith(HEADER)]
    text = own[-1].removeprefix(HEADER) if own else "{}"
    described = codec.decode(dict[str, Any], text.encode(), f"{path}: is cut short")
    return described, tuple(line for line in lines if line not in own)


def node_of(path: Path) -> LookedNode:
    """Return a node from the file ``node.NAME.txt``; one that says nothing has no Python."""
    described, printed = _described(path)
    if not described:
        fault = last_words(path.with_suffix(".err"), printed) or "it said nothing"
        return LookedNode(path.name.split(".", 1)[1].removesuffix(".txt"), fault, (), (), printed)
    return codec.decode(LookedNode, {**described, "printed": printed}, str(path))


def environment_of(folder: Path, printed: Collection[str] = ()) -> LookedEnvironment:
    """Return an environment from what ``look_job.py environment`` left in its folder.

    ``printed``: lines of a prolog or wrapper.
    """
    setup = last_words(folder / "setup.err") or last_words(folder / "setup.out")
    failed = next(iter(_said(folder / "failed")), "")
    described, _ = _described(folder / "programs.txt")
    if not described:
        said = {"setup": setup or last_words(folder / "programs.err") or "left nothing"}
        return LookedEnvironment({}, ("", ""), "", {}, said, failed)
    said = {}
    for program, (began, otherwise, *lines) in described["said"].items():
        words = [line for line in lines if line not in printed]
        said[program] = began + shortened(words[-1] if words else otherwise)
    if setup and not described["mbit_s"]:
        said["setup"] = setup
    values = {**described, "said": said, "failed": failed}
    return codec.decode(LookedEnvironment, values, str(folder))


def setup_of(
    system: Mapping[str, Any], partition: Mapping[str, Any], environment: Mapping[str, Any]
) -> list[str]:
    """Return the commands that set up an environment of a partition, in ReFrame's order."""
    lines = [one for one in partition.get("prepare_cmds", []) if one != OWN_ENVIRONMENT]
    for entry in (system, partition, environment):
        lines += [
            f"module load {one if isinstance(one, str) else one['name']}"
            for one in entry.get("modules", [])
        ]
        lines += [f'export {name}="{value}"' for name, value in entry.get("env_vars", [])]
    return lines


def without_python(nodes: Sequence[LookedNode]) -> str:
    """Return which nodes lack the Python that runs jobs, with the remedy; empty where all have."""
    without = {node.name: node.python_fault for node in nodes if node.python_fault}
    if not without:
        return ""
    *_, why = without.values()
    return (
        f"{fold(without)} cannot start {sys.executable}, which runs every job:"
        f" {why.rpartition(f'{sys.executable}: ')[2]}; install netproof with a Python that the"
        " nodes have at the same path, in a folder that they see"
    )


def differing(extras: Mapping[str, Any], looked: Looked) -> Iterator[tuple[str, str]]:
    """Yield where nodes differ from what the site says of a partition: key and reason."""
    if reason := without_python(looked.nodes):
        yield "Python", reason
    name, mtu, rate = extras["interface"], extras["mtu"], extras["link_mbit_s"]
    rates_differ = "link_mbit_s" not in extras["may_differ"] and not extras["rdma"]
    by_fault: dict[tuple[str, str], list[str]] = defaultdict(list)
    for node in looked.described:
        there = {one.name: one for one in node.interfaces}
        if name not in there:
            has = f"{name} is not there or down; there are {', '.join(there) or 'none'}"
            by_fault["extras['interface']", has].append(node.name)
            continue
        if there[name].mtu != mtu and "mtu" not in extras["may_differ"]:
            by_fault["extras['mtu']", f"{name} has {there[name].mtu}, not {mtu}"].append(node.name)
        own = there[name].link_mbit_s
        if own and own != rate and rates_differ:
            has = f"{name} has {own} Mbit/s by ethtool, not {rate}"
            by_fault["extras['link_mbit_s']", has].append(node.name)
    without = [one.name for one in looked.described if not any(two.active for two in one.devices)]
    if extras["rdma"] and without:
        where = f"on {fold(without)} no RDMA device is there and active; leave rdma out"
        yield "extras['rdma']", f"is {extras['rdma']}, and {where}"
    for (key, reason), nodes in by_fault.items():
        yield key, f"on {fold(nodes)} {reason}"
    carried = looked.tcp_mbit_s(name)
    if carried and not extras["rdma"] and not rate / 3 < carried < 1.1 * rate:
        yield (
            "extras['link_mbit_s']",
            f"is {rate}, and TCP carried {carried:.0f} Mbit/s over {name} between two nodes: is it"
            " the rate of a link, in Mbit/s, and the interface on the switch?",
        )


def lacking(
    entry: Mapping[str, Any], found: LookedEnvironment, extras: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    """Yield what an environment says that it has and a job did not find: key and reason.

    ``extras``: of the partition.
    """
    setup = found.said.get("setup", "")
    if found.failed:
        loads = found.failed.startswith("module load ")
        remedy = "mend it" if loads else "mend it, or end it with '|| true' if it may fail"
        if "module: command not found" in found.failed:
            remedy = "'. /etc/profile.d/modules.sh' in prepare_cmds may define it"
        yield ("modules" if loads else "prepare_cmds"), f"{found.failed.rstrip(': ')}; {remedy}"
        if not found.programs:
            return
    rails = extras["rails"] or (extras["interface"],)
    # On one node nothing has to leave it.
    between = extras["nodes"] > 1 and not extras["rdma"]
    for program, sent in found.carried.items() if between else ():
        most = max(sent, key=lambda one: sent[one])
        own = sum(sent.get(one, _MESSAGE) for one in rails)
        if own < _MESSAGE and sent[most] > 10 * _MESSAGE:
            yield (
                "env_vars",
                f"two ranks of {program} sent {sent[most] / 1e6:.0f} MB over {most} and none over"
                f" {' and '.join(rails)}: name the interface to MPI, as by FI_TCP_IFACE,"
                " OMPI_MCA_btl_tcp_if_include or UCX_NET_DEVICES",
            )
            break
    for program, feature in registry.PROBES.items():
        if feature not in entry.get("features", []):
            continue
        if program not in found.programs:
            more = f": {setup}" if setup else ""
            yield "features", f"there is no {program} in PATH for {feature!r}{more}"
        elif program != "NPtcp" and program not in found.mbit_s:
            pmi = entry["extras"]["pmi"]
            words = found.said.get(program, "it did not run")
            yield "extras['pmi']", f"two ranks of {program} did not meet by {pmi}: {words}"
