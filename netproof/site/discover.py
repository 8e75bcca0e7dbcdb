"""A site's files from what Slurm, a short job in each partition, and modules say of a cluster.

What is not certain becomes a question, in the file and on the terminal.
"""

from __future__ import annotations

import getpass
import re
import shutil
import socket
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from netproof.benchmarks import registry
from netproof.errors import NetproofError, shortened
from netproof.measurement import twin
from netproof.measurement.landmarks import LANDMARKS
from netproof.site import slurm
from netproof.site.look import (
    Interface,
    Looked,
    LookedEnvironment,
    look,
    setup_of,
    without_python,
)

MOST_ENVIRONMENTS = 8
RATES_GBIT_S = (0.01, 0.1, 1, 2.5, 5, 10, 20, 25, 40, 50, 56, 100, 200, 400, 800)
_MPI = re.compile(
    r"(?i)^(?:.*/)?(open-?mpi\d*|ompi|mpich|mvapich2?|hpcx|intel-?(?:oneapi-)?mpi|impi|cray-mpich)"
    r"(?!-abi|[a-z])"
)
_COMPILER = re.compile(
    r"(?i)^(?:.*/)?(gcc|gnu|intel(?:-oneapi)?(?:-compilers)?|oneapi|aocc|nvhpc|llvm|clang"
    r"|PrgEnv-\w+|foss|gompi)(?=(?:[-_]?v?\d[^/]*)?(?:/[^/]*)?$)"
)
_BENCHMARK = re.compile(
    r"(?i)^(?:.*/)?(imb|osu|omb|netpipe|osu-micro-benchmarks|intel-mpi-benchmarks)\b"
)
OF_INTERFACES = ("OMPI_MCA_btl_tcp_if_include", "UCX_NET_DEVICES", "FI_TCP_IFACE")
"""Variables that keep an MPI library on interfaces."""
_VIRTUAL = ("veth", "virtio_net", "tun", "bridge")
_NOT_OF_A_SWITCH = re.compile(r"docker|podman|virbr|br-|cni|cilium|cali|flannel|vxlan|kube|tun|tap")


Candidate = dict[str, list[Any]]
"""Modules, or variables with folders of PATH, that make an environment, as in the site's file."""


@dataclass
class DiscoveredPartition:
    """A partition that can be measured: what the site's file will say, and what is not certain.

    ``looked``: nothing before its job; ``interface``: the one that the user names.
    """

    name: str
    access: list[str]
    nodes: int
    usable: int
    time_limit: str
    looked: Looked = field(default_factory=lambda: Looked((), {}, {}))
    interface: str = ""
    questions: list[str] = field(default_factory=list)


@dataclass
class Discovered:
    """A site: partitions, environments with their candidates, what was left out, questions."""

    partitions: list[DiscoveredPartition]
    environments: dict[str, tuple[Candidate, LookedEnvironment]]
    modules_system: str
    left_out: list[str]
    questions: list[str]


def plugins_of(said: str) -> list[str]:
    """Return the PMI plugins in the output of ``srun --mpi=list``, those to try first before."""
    words = re.findall(
        r"\b(pmix(?:_v\d+)?|pmi2|cray_shasta|openmpi|none)\b", said.partition("\n")[2]
    )
    order = ("pmix", "pmi2", "cray_shasta")
    return sorted(set(words), key=lambda one: (order.index(one) if one in order else 9, one))


def modules_of(said: str) -> list[str]:
    """Return the modules in the output of ``module -t avail``."""
    names = []
    for line in said.splitlines():
        name = re.sub(r"(\s*[(<].*|/?\s*)$", "", line.strip())
        if name and not line.rstrip().endswith((":", "/")) and re.fullmatch(r"[\w.+/@=-]+", name):
            names.append(name)
    return list(dict.fromkeys(names))


def module_says(*commands: str) -> str:
    """Return what a login shell prints for commands of ``module``; empty where it hangs."""
    script = "; ".join(commands)
    try:
        ran = subprocess.run(
            ["bash", "-lc", f"{{ {script}; }} 2>&1"],
            capture_output=True,
            text=True,
            timeout=slurm.ANSWER_S,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        return ""
    return ran.stdout


def _available(loaded: Sequence[str]) -> list[str]:
    return modules_of(
        module_says(*(f"module load {one} >/dev/null" for one in loaded), "module -t avail")
    )


def candidates() -> Iterator[tuple[str, Candidate]]:
    """Yield environments that modules and PATH may make, by name, the newest version of each.

    Below each compiler the MPI libraries of a hierarchy are looked for too.
    """
    first = _available(())
    chains: dict[tuple[str, str], tuple[str, ...]] = {}
    for compiler in ("", *_newest(first, _COMPILER).values()):
        there = _available((compiler,)) if compiler else first
        for base, name in _newest(there, _MPI).items():
            if compiler and name in first:
                continue
            kind = _COMPILER.match(compiler)
            chains[base, kind[1] if kind else ""] = tuple(filter(None, (compiler, name)))
    for (base, compiler), chain in list(chains.items())[:MOST_ENVIRONMENTS]:
        below = _available(chain)
        benchmarks = [
            name
            for name in _newest(below, _BENCHMARK).values()
            if name not in first or base.lower().replace("-", "") in name.lower().replace("-", "")
        ]
        name = "-".join(filter(None, (base.lower(), compiler.lower())))
        yield name, {"modules": [*chain, *benchmarks]}
    folders = dict.fromkeys(
        str(Path(found).parent) for found in map(shutil.which, registry.PROBES) if found is not None
    )
    if folders:
        own = [one for one in folders if one not in ("/usr/bin", "/bin", "/usr/local/bin")]
        libraries = [str(Path(one).parent / "lib") for one in own]
        variables = {"PATH": own, "LD_LIBRARY_PATH": libraries}.items()
        longer = [[name, ":".join([*one, f"${name}"])] for name, one in variables]
        yield "path", {"env_vars": longer} if own else {}


def setup_of_candidate(candidate: Candidate) -> list[str]:
    """Return the commands of a job that set it up; a job's shell may not know ``module``."""
    profile = ["type -t module >/dev/null || . /etc/profile"] if "modules" in candidate else []
    return profile + setup_of({}, {}, candidate)


def _newest(names: Iterable[str], pattern: re.Pattern[str]) -> dict[str, str]:
    """Return the newest module of each kind that the pattern names."""
    found: dict[str, str] = {}
    for name in names:
        if (kind := pattern.match(name)) and _version(name) >= _version(found.get(kind[1], "")):
            found[kind[1]] = name
    return found


def _version(name: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", name.rpartition("/")[2])]


def modules_system() -> str:
    """Return ReFrame's name of the modules that a login shell has."""
    said = module_says("echo LMOD=$LMOD_CMD", "module --version")
    tcl = "tmod4" if "Modules Release" in said else "nomod"
    return "lmod" if re.search(r"LMOD=\S", said) else tcl


def admitted(
    name: str, nodes: int, accounts: Sequence[tuple[str, str, tuple[str, ...]]]
) -> tuple[list[str], str]:
    """Return the options by which Slurm takes an exclusive job there, or none and its refusal.

    Without account and QOS first, then each account, then its QOS.
    """
    there = [(f"--account={one}", several) for one, on, several in accounts if on in ("", name)]
    with_qos = ([account, f"--qos={qos}"] for account, several in there for qos in several)
    refusal = ""
    for further in ([], *([account] for account, _ in there), *with_qos):
        access = [f"--partition={name}", *further]
        try:
            slurm.test([*access, "--exclusive", f"--nodes={nodes}"])
        except NetproofError as error:
            refusal = str(error).rpartition("--wrap=true: ")[2]
        else:
            return access, ""
    return [], refusal


def associations() -> list[tuple[str, str, tuple[str, ...]]]:
    """Return account, partition (empty for any) and QOS, the default first, of the user's ones.

    None without accounting.
    """
    try:
        shown = slurm.ask(
            *("sacctmgr", "-nP", "show", "assoc", f"user={getpass.getuser()}"),
            "format=account,partition,qos,defaultqos",
        )
    except NetproofError:
        return []
    found = []
    for line in filter(None, shown.splitlines()):
        account, partition, several, default, *_ = (*line.split("|"), "", "", "")
        names = [name for name in several.split(",") if name]
        found.append((account, partition, tuple(sorted(names, key=lambda one: one != default))))
    return found


def usable_partitions(asked: Sequence[str]) -> tuple[list[DiscoveredPartition], list[str]]:
    """Return the partitions to measure, and a sentence for each that is left out.

    ``asked``: their names; without any, the least number of partitions that have all nodes.
    """
    accounts = associations()
    known = slurm.partitions()
    for name in asked:
        if name not in known:
            raise NetproofError(f"Slurm has no partition {name}; it has {', '.join(known)}")
    left_out, usable = [], []
    for name, one in known.items():
        if (name not in asked) if asked else one.hidden:
            continue
        nodes = {node for node, state in one.nodes.items() if slurm.usable(state)}
        least = min(2, len(one.nodes))
        if reason := one.cannot_run(least):
            left_out.append(f"{name}: {reason}")
            continue
        access, refusal = admitted(name, least, accounts)
        if not access:
            left_out.append(f"{name}: Slurm takes no exclusive job of {least} nodes: {refusal}")
            continue
        most, _ = slurm.most_nodes([*access, "--exclusive"], len(nodes))
        minutes = 60 if one.limit_s is None else min(60, one.limit_s // 60)
        time_limit = "1h" if minutes == 60 else f"{minutes}m"
        partition = DiscoveredPartition(name, access, most, len(nodes), time_limit)
        others = [account for account, on, _ in accounts if on in ("", name)]
        if len(access) > 1 and len(others) > 1:
            partition.questions.append(f"access: which account pays? {', '.join(others)}")
        usable.append((nodes, partition))
    # Those with most nodes first.
    chosen: list[DiscoveredPartition] = []
    covered: set[str] = set()
    for nodes, partition in sorted(usable, key=lambda one: -len(one[0])):
        if nodes <= covered and not asked:
            left_out.append(f"{partition.name}: its nodes are those of partitions above")
            continue
        covered |= nodes
        chosen.append(partition)
    return chosen, left_out


def discover(
    folder: Path, asked: Sequence[str] = (), interface: str = "", wait_s: float = 600
) -> Discovered:
    """Ask Slurm, modules and a job in each partition. ``folder``: seen by the nodes.

    ``interface``: on the switch under test; without it the fastest network is taken.
    Raises NetproofError where Slurm does not answer, or no partition can be measured.
    """
    slurm.answers()
    partitions, left_out = usable_partitions(asked)
    if not partitions:
        raise NetproofError(f"no partition can be measured: {'; '.join(left_out)}")
    plugins = plugins_of(slurm.ask("srun", "--mpi=list", merged=True))
    trying_pmi = [one for one in plugins if one in ("pmix", "pmi2", "cray_shasta")] or ["none"]
    possible = dict(candidates())
    found = Discovered([], {}, modules_system(), left_out, [])
    for partition in partitions:
        partition.interface = interface
        # The first tries all environments, the others one that measures their networks.
        trying = possible
        if found.environments:
            tcp = (name for name, (_, one) in found.environments.items() if "NPtcp" in one.programs)
            trying = {name: possible[name] for name in islice(tcp, 1)}
        try:
            partition.looked = look(
                folder,
                [*partition.access, "--exclusive"],
                partition.nodes,
                {name: (setup_of_candidate(one), trying_pmi) for name, one in trying.items()},
                wait_s,
            )
        except NetproofError as error:
            left_out.append(f"{partition.name}: {error}")
            continue
        found.partitions.append(partition)
        for name, one in partition.looked.environments.items():
            if one.mbit_s or "NPtcp" in one.programs:
                found.environments.setdefault(name, (trying[name], one))
        found.questions += [
            f"environment {name}: no benchmark of it ran:"
            f" {'; '.join(one.said.values()) or 'none is there'}"
            for name, one in partition.looked.environments.items()
            if not one.mbit_s and name != "path"
        ]
    if not found.partitions:
        raise NetproofError(f"no partition can be measured: {'; '.join(left_out)}")
    # NetPIPE over TCP alone is the same in any environment.
    tcp_alone = [name for name, (_, one) in found.environments.items() if not one.mbit_s]
    if "path" in tcp_alone and len(found.environments) > 1:
        del found.environments["path"]
    if not found.environments:
        found.questions.append(
            "no benchmark was found, neither by modules nor in PATH: build NetPIPE, IMB or OMB with"
            " your MPI library (docs/spack-sites.md), put its folder into PATH and discover again"
        )
    return found


def interface_of(partition: DiscoveredPartition) -> tuple[Interface | None, int]:
    """Return the interface that leads over the switch, and its rate in Mbit/s; asks what is unsure.

    The fastest by TCP between two nodes, then by ethtool, then the one with the larger MTU.
    """
    looked, questions = partition.looked, partition.questions
    everywhere = set.intersection(
        *({one.name for one in node.interfaces} for node in looked.described)
    )
    there = [
        one
        for one in looked.described[0].interfaces
        if one.name in everywhere and one.address and not _NOT_OF_A_SWITCH.match(one.name)
    ]
    if not there:
        questions.append("interface: no interface with an IPv4 address is on all nodes")
        return None, 1000

    def order(one: Interface) -> tuple[float, int, int]:
        return looked.tcp_mbit_s(one.name) or 0.0, one.link_mbit_s or 0, one.mtu

    best, *others = sorted(there, key=order, reverse=True)
    if partition.interface:
        named = [one for one in there if one.name == partition.interface]
        if not named:
            questions.append(f"interface: {partition.interface} is not on all nodes")
        best, others = (named or [best])[0], []
    if others:
        spoken = ", ".join(f"{one.name} (MTU {one.mtu}, {_rates(one, looked)})" for one in others)
        questions.append(
            f"interface: is {best.name} on the switch under test? there is also {spoken};"
            " --interface NAME chooses"
        )
    measured, stated = looked.tcp_mbit_s(best.name), best.link_mbit_s
    virtual = best.driver.startswith(_VIRTUAL)
    if measured and (stated is None or (virtual and measured < stated / 2)):
        several = (round(1000 * one) for one in RATES_GBIT_S)
        rate = next((one for one in several if one >= 0.97 * measured), 800000)
        questions.append(f"link_mbit_s: a guess, from {_rates(best, looked)}")
        return best, rate
    if measured and stated and measured < stated / 2:
        questions.append(f"link_mbit_s: {_rates(best, looked)}: is that the link's rate?")
    if not stated:
        questions.append(
            f"link_mbit_s: {best.name} does not say, and NPtcp has not measured it: it takes two"
            " nodes"
        )
    return best, stated or 1000


def _rates(one: Interface, looked: Looked) -> str:
    stated = f"{one.link_mbit_s} Mbit/s by ethtool" if one.link_mbit_s else "no rate by ethtool"
    measured = looked.tcp_mbit_s(one.name)
    return f"{stated}, {measured:.0f} Mbit/s by TCP" if measured else stated


def extras_of(partition: DiscoveredPartition) -> dict[str, Any]:
    """Return the partition's extras that deviate from defaults."""
    looked, questions = partition.looked, partition.questions
    chosen, rate = interface_of(partition)
    devices = [one for one in looked.described[0].devices if one.active]
    extras: dict[str, Any] = {
        "switch": partition.name,
        "nic": (chosen.card if chosen else "") or "unknown",
        "driver": (chosen.driver if chosen else "") or "unknown",
        "link_mbit_s": rate,
        "mtu": chosen.mtu if chosen else 1500,
        "interface": chosen.name if chosen else "eth0",
        "nodes": partition.nodes,
        "ranks_per_node": 1,
        "rank_counts": [2**power for power in range(1, 7) if 2**power <= partition.nodes],
    }
    layers = {"InfiniBand": "infiniband", "Ethernet": "roce"}
    # That of the interface first: other cards may have RDMA too.
    several = sorted(
        (one for one in devices if one.link_layer in layers),
        key=lambda one: (extras["interface"] not in one.interfaces, one.link_layer == "Ethernet"),
    )
    if several:
        layer, mbit_s = several[0].link_layer, several[0].mbit_s
        extras["rdma"], extras["link_mbit_s"] = layers[layer], mbit_s or rate
        of_rate = [one for one in several if (one.link_layer, one.mbit_s) == (layer, mbit_s)]
        if len(of_rate) > 1:
            extras["rails"] = [one.name for one in of_rate]
            numa = ", ".join(f"{one.name} at NUMA node {one.numa_node or '?'}" for one in of_rate)
            questions.append(f"rails: does MPI use all of {numa}? If it uses one, leave one")
    elif devices:
        questions.append(
            f"{', '.join(one.name for one in devices)}: a fabric whose line rate is not known here;"
            " set mpi_over_tcp to False in the environments that use it"
        )
    # NetPIPE's own choice measures each launch for minutes.
    extras["netpipe_repeats"] = 10 if extras["link_mbit_s"] < 10000 else 50
    extras["netpipe_mpi_inside_repeats"] = 100
    virtual = chosen is not None and chosen.driver.startswith(_VIRTUAL)
    # The largest message takes a tenth of a second at most.
    largest = 1 << (extras["link_mbit_s"] * 12500).bit_length() - 1
    if largest < 4194304:
        extras["max_message_bytes"] = largest
    if chosen and (least := looked.line_rate_from_bytes(chosen.name, rate, chosen.mtu)):
        extras["line_rate_from_bytes"] = min(least, largest)
    if virtual:
        # Its nodes share CPUs: fewer calls.
        extras["imb_arguments"], extras["osu_arguments"] = ["-iter", "60"], ["-i", "5", "-x", "1"]
        extras["pairs"] = {
            "together": 1,
            "arguments": ["-iter", "60,16", "-time", "3"],
        }
        questions.append(
            "pairs: nodes of virtual links may share CPUs, whose noise is no node's: 'slower' is"
            " what a node has to lose to be named, and 'quantities': ['rate'] judges the rate alone"
        )
        if chosen and chosen.link_mbit_s != rate:
            extras["may_differ"] = {"link_mbit_s": "a virtual link has no rate of its own"}
    if partition.nodes < 2:
        questions.append("nodes: a job has one node, so NetPIPE is measured inside it, and no link")
    if partition.nodes < partition.usable:
        questions.append(
            f"nodes: a job can have {partition.nodes} of {partition.usable}: rounds of pairs take"
            f" {-(-partition.usable // partition.nodes)} jobs to measure all"
        )
    return extras


def site_text(system: str, found: Discovered) -> str:
    """Return the text of the site's file, with each question as a comment where it belongs."""
    names = list(found.environments)
    partitions, environments = [], []
    for partition in found.partitions:
        extras = extras_of(partition)
        asked = [*partition.questions, *filter(None, [without_python(partition.looked.nodes)])]
        if printed := [line for node in partition.looked.nodes for line in node.printed]:
            said = shortened(printed[0], 80)
            asked.append(f"a prolog or a wrapper prints in each task, and is read past: {said!r}")
        entry: dict[str, Any] = {
            "name": re.sub(r"[^A-Za-z0-9_-]", "-", partition.name),
            "descr": f"nodes of partition {partition.name}",
            "scheduler": "slurm",
            "launcher": "srun",
            "access": partition.access,
            "environs": names,
            "time_limit": partition.time_limit,
        }
        # Keep MPI on the interface where nodes have several networks.
        networks = sum(bool(one.address) for one in partition.looked.described[0].interfaces)
        if networks > 1 and "rdma" not in extras:
            entry["env_vars"] = [[one, extras["interface"]] for one in OF_INTERFACES]
        partitions.append(({**entry, "extras": extras}, asked))
        found.questions += [f"{partition.name}: {one}" for one in asked]
    over_rdma = any("rdma" in entry["extras"] for entry, _ in partitions)
    for name, (candidate, one) in found.environments.items():
        asked = [f"{what}: {words}" for what, words in one.said.items()]
        features = [
            registry.PROBES[program]
            for program in one.programs
            if program == "NPtcp" or program in one.mbit_s
        ]
        extras = {"mpi": _called(one), "pmi": one.pmi or "none"}
        if over_rdma:
            extras["mpi_over_tcp"] = False
            asked.append("mpi_over_tcp: does its MPI use RDMA? Otherwise leave the line out")
        entry = {"name": name, "features": features, **candidate, "extras": extras}
        environments.append((entry, asked))
        found.questions += [f"environment {name}: {one}" for one in asked]
    return _rendered(
        "site.py.j2",
        system=system,
        host=re.escape(socket.gethostname()),
        modules_system=found.modules_system,
        left_out=found.left_out,
        partitions=partitions,
        environments=environments,
    )


def _rendered(template: str, **values: object) -> str:
    """Return the text of a template of this folder, with ``python`` as the filter of literals."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
        autoescape=False,
    )
    environment.filters["python"] = _plain
    return environment.get_template(template).render(**values)


def _called(one: LookedEnvironment) -> str:
    path, version = one.library
    number = re.search(r"\d+(\.\d+)+\S*", version)
    name = "MPICH"
    if re.search(r"(?i)open.?mpi|open mpi", version) or re.search(r"libmpi\.so\.[234]\d", path):
        name = "Open MPI"
    elif "intel" in (path + version).lower() or "impi" in path:
        name = "Intel MPI"
    if not path:
        return "no MPI"
    return f"{name} {number[0]}" if number else f"{name}, {path}"


def _plain(value: object) -> str:
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_plain, value))}]"
    return repr(value)


def references_text(system: str) -> str:
    """Return references by physics alone, for all checks."""
    several = (one for one in LANDMARKS.items() if one[0] not in twin.NAMES)
    checks = [
        (registry.check_name(benchmark.name, function.name), benchmark.by_protocol)
        for benchmark in registry.STARTED
        for function in benchmark.functions
    ]
    landmarks = [(name, one.unit) for name, one in several]
    return _rendered("references.yaml.j2", system=system, landmarks=landmarks, checks=checks)
