"""What one job runs: the launches of its benchmarks as job steps, in a shuffled order."""

from __future__ import annotations

import hashlib
import random
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from netproof.benchmarks import imb, netpipe
from netproof.benchmarks.catalogue import (
    NETPIPE_DIRECTIONS,
    NETPIPE_PATHS,
    NETPIPE_PROTOCOLS,
    ImbFunction,
)
from netproof.measurement import twin
from netproof.session import provenance
from netproof.site.site import Partition

SHELL_FILES = tuple(sorted((Path(__file__).parents[1] / "run" / "shell").glob("*.sh")))
"""What a job script sources and starts; copied beside it."""

SIZE_FILES = "sizes-*.txt"
"""The files beside it that list the message sizes asked for."""

RANK = ("bash", "./rank.sh")
NPTCP = ("bash", "./nptcp.sh")


@dataclass(frozen=True)
class Step:
    """One launch of one benchmark: a job step with output files of its own.

    ``subject`` names what is measured (an IMB function, a NetPIPE variant), ``launch`` counts
    from 1, ``command`` is shell text. Its files are ``name`` with .out, .err and, for NetPIPE,
    .np.
    """

    subject: str
    launch: int
    command: str

    @property
    def name(self) -> str:
        """Name of the step and stem of its files."""
        return f"{self.subject}.{self.launch}"


def job_name(contention_domain: str) -> str:
    """Name of the Slurm jobs that take turns in a contention domain, the same for each of them.

    sbatch reads it from a line of the job script, where quotes, ``#`` and white space mean
    something: of any other text than letters, digits and ``._-``, these and a checksum are taken.
    """
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", contention_domain)
    if plain != contention_domain:
        plain += f"-{hashlib.sha256(contention_domain.encode()).hexdigest()[:8]}"
    return f"netproof-{plain}"


def netpipe_subject(protocol: str, path: str, direction: str) -> str:
    """Name of a NetPIPE variant, ``tcp-between-oneway`` for instance."""
    return f"{protocol}-{path}-{direction}"


@dataclass(frozen=True)
class Sweep:
    """One call of NetPIPE: from ``lower`` to ``upper`` bytes, around each size ``perturbation``."""

    lower: int
    upper: int
    perturbation: int

    def sizes(self) -> tuple[int, ...]:
        """The message sizes in bytes that NetPIPE measures for it."""
        return netpipe.sizes(self.lower, self.upper, self.perturbation)


def imb_size_file(function: str) -> str:
    """Name of the file that lists a function's message sizes for IMB's ``-msglen``."""
    return f"sizes-{function}.txt"


def imb_size_files(sizes: Mapping[str, Sequence[int]]) -> dict[str, str]:
    """Name to text of the lists of message sizes, from function to its sizes."""
    return {
        imb_size_file(function): "".join(f"{size}\n" for size in listed)
        for function, listed in sizes.items()
    }


def imb_steps(
    functions: Sequence[ImbFunction],
    ranks: int,
    launches: int,
    partition: Partition,
    srun: Sequence[str],
    seed: int,
    suffix: str = "",
) -> tuple[Step, ...]:
    """Every launch of ``functions`` on ``ranks`` ranks, shuffled by ``seed``.

    Functions for two ranks run on one rank of each of two nodes. ``suffix``: what the names of
    steps and lists of sizes have behind the function's.
    """
    steps = []
    for function in functions:
        count, per_node = (2, 1) if function.pair else (ranks, partition.ranks_per_node)
        sized = function.least_bytes is not None
        subject = function.name + suffix
        sizes = ("-msglen", imb_size_file(subject)) if sized else ()
        command = shlex.join(
            [
                *srun,
                *_placement(count, per_node),
                *RANK,
                "IMB-MPI1",
                "-npmin",
                str(count),
                *sizes,
                *partition.imb_arguments,
                function.name,
            ]
        )
        steps += [Step(subject, launch, command) for launch in range(1, launches + 1)]
    random.Random(seed).shuffle(steps)
    return tuple(steps)


def netpipe_arguments(
    partition: Partition, protocol: str, path: str, sweep: Sweep
) -> tuple[str, ...]:
    """NetPIPE's options: sizes and round trips; the same at both ends."""
    arguments = ["-l", str(sweep.lower), "-u", str(sweep.upper), "-p", str(sweep.perturbation)]
    through_memory = (protocol, path) == ("mpi", "inside")
    repeats = partition.netpipe_mpi_inside_repeats if through_memory else partition.netpipe_repeats
    if repeats:
        arguments += ["-n", str(repeats)]
    return tuple(arguments)


def netpipe_steps(
    launches: int, partition: Partition, srun: Sequence[str], seed: int
) -> tuple[Step, ...]:
    """Every launch of every NetPIPE variant on two nodes.

    The variants' order is shuffled by ``seed``; within one, TCP and MPI take turns, so that
    their ratio is of the same minutes and the same nodes.
    """
    variants = [(path, direction) for path in NETPIPE_PATHS for direction in NETPIPE_DIRECTIONS]
    random.Random(seed).shuffle(variants)
    whole = Sweep(1, partition.max_message_bytes, 0)
    steps: list[Step] = []
    for path, direction in variants:
        for launch in range(1, launches + 1):
            for protocol in NETPIPE_PROTOCOLS:
                subject = netpipe_subject(protocol, path, direction)
                variant = (protocol, path, direction)
                step = netpipe_step(subject, launch, variant, whole, len(steps), partition, srun)
                steps.append(step)
                if has_twin(partition, "netpipe", path):
                    steps.append(twin_step(step, direction, partition))
    return tuple(steps)


def has_twin(partition: Partition, benchmark: str, path: str) -> bool:
    """Whether each launch has one over the link's healthy twin next to it."""
    return bool(partition.twin) and (benchmark, path) == ("netpipe", "between")


def twin_name(step: str) -> str:
    """Name of the step over the healthy twin that stands next to the step of this name."""
    subject, _, launch = step.rpartition(".")
    return f"{subject}-twin.{launch}"


def twin_sweep(partition: Partition) -> Sweep:
    """What is measured over the healthy twin."""
    largest = partition.max_message_bytes
    return Sweep(twin.sizes_from(largest), largest, 0)


def twin_step(step: Step, direction: str, partition: Partition) -> Step:
    """The launch over the healthy twin that stands next to ``step``: TCP in its direction."""
    name = twin_name(step.name)
    sweep = twin_sweep(partition)
    arguments = [*netpipe_arguments(partition, "tcp", "between", sweep), "-o", f"{name}.np"]
    arguments = [*_tcp_mode(direction, partition), *arguments]
    return Step(name.rpartition(".")[0], step.launch, shlex.join([*partition.twin, *arguments]))


def sweep_subject(subject: str, sweep: Sweep) -> str:
    """Name of one of the sweeps that make a launch of a NetPIPE variant together."""
    return f"{subject}-from-{sweep.lower}"


def netpipe_step(
    subject: str,
    launch: int,
    variant: tuple[str, str, str],
    sweep: Sweep,
    order: int,
    partition: Partition,
    srun: Sequence[str],
) -> Step:
    """One launch of a variant (protocol, path, direction) over a sweep.

    ``order``: its place among the job's steps, from 0, by which it finds its port.
    """
    output = f"{subject}.{launch}.np"
    return Step(subject, launch, _netpipe_command(*variant, sweep, output, order, partition, srun))


def _netpipe_command(
    protocol: str,
    path: str,
    direction: str,
    sweep: Sweep,
    output: str,
    order: int,
    partition: Partition,
    srun: Sequence[str],
) -> str:
    arguments = [*netpipe_arguments(partition, protocol, path, sweep), "-o", output]
    placement = [*_placement(2, 1 if path == "between" else 2)]
    if protocol == "mpi":
        if direction == "bidirectional":
            arguments = ["-2", "-a", *arguments]
        return _on_nodes(path, [*srun, *placement], [*RANK, "NPmpi", *arguments])
    arguments = [*_tcp_mode(direction, partition), *arguments]
    command = _on_nodes(path, [srun[0], "--mpi=none", *placement], [*RANK, *NPTCP, "run"])
    return f'{command} "$address" "${{ports[{order}]}}" {shlex.join(arguments)}'


def _tcp_mode(direction: str, partition: Partition) -> list[str]:
    """NPtcp's options for a direction."""
    if direction != "bidirectional":
        return []
    # It stops at the sum of its socket buffers in this mode, and -b asks for half of what Linux
    # then gives.
    return ["-2", "-b", str(2 * partition.max_message_bytes)]


def _on_nodes(path: str, srun: Sequence[str], command: Sequence[str]) -> str:
    nodes = "${nodes[0]},${nodes[1]}" if path == "between" else "${nodes[0]}"
    return f'{shlex.join(srun)} --nodelist="{nodes}" {shlex.join(command)}'


def _placement(ranks: int, per_node: int) -> tuple[str, ...]:
    return (
        f"--nodes={ranks // per_node}",
        f"--ntasks={ranks}",
        f"--ntasks-per-node={per_node}",
        "--kill-on-bad-exit=1",
    )


def script(
    steps: Sequence[Step], partition: Partition, *, over_tcp: bool, describe_nodes: bool
) -> str:
    """Text of the shell script that runs ``steps`` in their order inside a job.

    ``over_tcp``: find the first node's address on the partition's interface and a free port
    for each step before the first. ``describe_nodes``: have every node say what it is.
    A launch that crashes is started again, on a port of its own; see ``run/shell/steps.sh``.
    """
    lines = _head(partition, len(steps), over_tcp=over_tcp, describe_nodes=describe_nodes)
    lines += [_line(step, partition) for step in steps]
    return "\n".join(lines) + "\n"


def further_script(
    rounds: Sequence[Sequence[tuple[str, Step]]],
    partition: Partition,
    *,
    over_tcp: bool,
    decisions: Mapping[int, str] | None = None,
) -> str:
    """Text of the shell script that runs rounds of launches until all of them are closed.

    A round has steps with the label that closes each; ``decisions``: shell text that closes, by
    the number (from 1) of the round after which it is run.
    """
    count = sum(map(len, rounds))
    lines = _head(partition, count, over_tcp=over_tcp, describe_nodes=False)
    for number, steps in enumerate(rounds, 1):
        lines.append("made=")
        lines += [
            f"if wanted {quoted(label)}; then {_line(step, partition)}; made=1; fi"
            for label, step in steps
        ]
        lines.append('[ -n "$made" ] || exit 0')
        if decisions and number in decisions:
            lines.append(decisions[number])
    return "\n".join(lines) + "\n"


def quoted(text: str) -> str:
    """A word of shell text."""
    return shlex.quote(text)


def _line(step: Step, partition: Partition) -> str:
    return f"step {step.name} {partition.step_limit_s} {step.command}"


def _head(partition: Partition, count: int, *, over_tcp: bool, describe_nodes: bool) -> list[str]:
    """What a job's script does before its first step; ``count``: how many ports it needs."""
    lines = [
        "#!/bin/bash",
        ". ./steps.sh",
        f"crash_retries={partition.crash_retries}",
        f"figures_np={shlex.quote(netpipe.FIGURES)}",
        f"figures_out={shlex.quote(imb.FIGURES)}",
        f"job_nodes {provenance.JOB_NODES_FILE} || exit 3",
    ]
    if describe_nodes:
        lines.append(provenance.node_step(partition.interface))
    if over_tcp:
        ask = shlex.join(["srun", "--mpi=none", "--nodes=1", "--ntasks=1", "--ntasks-per-node=1"])
        listen = shlex.join([*NPTCP, "listen-on", partition.interface])
        on_first = f'{ask} --nodelist="${{nodes[0]}}" {listen}'
        lines += [
            f"read -r address rest < <({on_first} {count})",
            f"free_port() {{ {on_first} 1 | cut -d' ' -f2; }}",
            '[ -n "$address" ] || exit 3',
            'read -ra ports <<<"$rest"',
        ]
    return lines
