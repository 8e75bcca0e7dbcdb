"""Plan of a job: the launches of its benchmarks as job steps, in a shuffled order."""

from __future__ import annotations

import hashlib
import json
import random
import re
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from netproof import codec
from netproof.benchmarks import netpipe, registry
from netproof.benchmarks.interface import Function
from netproof.errors import NetproofError, shortened
from netproof.intake import json_reading
from netproof.site.partition import Partition

SHELL_FILES = tuple(sorted((Path(__file__).parents[1] / "run" / "shell").glob("*.[sp][hy]")))
"""Files that steps start on each node, copied beside the job's script."""

SIZE_FILES = "sizes-*.txt"
"""The files next to it that list the message sizes asked for."""

PLAN_FILE = "plan.json"
"""File with the plan of a job, beside its output."""

SETUP_FILE = "setup.sh"
"""The file that sets up an environment, in its folder."""

SCRIPT = "launches.sh"
"""The file next to it that starts the program of the job."""

PACE_FILE = "pace.sh"
"""The file next to it that has the partition's ``pace``."""

RANK = ("bash", "./rank.sh")
NPTCP = ("bash", "./nptcp.sh")


FIRST, SECOND, ADDRESS, PORT = "{node-1}", "{node-2}", "{address}", "{port}"
"""Within a step's arguments: the job's first two nodes, the first one's address, a port there."""


@dataclass(frozen=True)
class Step:
    """One launch of one benchmark: a job step with output files of its own.

    ``subject`` names what is measured (a function, a NetPIPE variant), ``launch`` counts
    from 1, ``command``: its arguments. Its files are ``name`` with .out, .err and, for NetPIPE,
    .np. ``label``: what it is for, such as a value of a setting; ``hosts``: nodes in the order of
    its ranks, if it names them; ``limit_s``: by default the partition's.
    """

    subject: str
    launch: int
    command: tuple[str, ...]
    label: str = ""
    hosts: tuple[str, ...] = ()
    limit_s: int | None = None

    @property
    def name(self) -> str:
        """Name of the step and stem of its files."""
        return f"{self.subject}.{self.launch}"


@dataclass(frozen=True)
class JobPlan:
    """The task of ``python -m netproof.jobs``, in ``PLAN_FILE`` of the job's folder.

    ``task``: its kind; ``extras``: of the partition; ``rounds``: the steps in their order, all
    that are known before the job begins; ``describe_nodes``: whether nodes are described first;
    ``figures_at_once``: whether programs print a figure soon after they begin; ``transport``:
    arguments of the step in which the MPI library reports its transport; ``setup``: the file that
    sets up the environment of all steps, if that is not the job's; ``asked``: what the task judges.
    """

    seed: int
    extras: Mapping[str, Any]
    rounds: tuple[tuple[Step, ...], ...] = ()
    task: str = "launches"
    describe_nodes: bool = True
    figures_at_once: bool = True
    transport: tuple[str, ...] = ()
    setup: str = ""
    asked: Any = None

    @property
    def partition(self) -> Partition:
        """Return the partition as checks see it."""
        return Partition.model_validate(self.extras)

    def write(self, folder: Path) -> None:
        """Write it to the job's folder."""
        (folder / PLAN_FILE).write_text(json.dumps(codec.encode(self)) + "\n")

    @classmethod
    def read(cls, path: Path) -> JobPlan:
        """Return the plan in a file; NetproofError where it is damaged, and OSError."""
        planned = codec.decode(cls, json_reading.json_file(path), f"{path}: is no plan of a job")
        try:
            planned.partition  # noqa: B018
        except ValidationError as error:
            reason = shortened(repr(error))
            raise NetproofError(f"{path}: is no plan of a job: {reason}") from error
        return planned


def script(python: str, root: Path) -> str:
    """Return the text of ``SCRIPT``: it runs the plan by this Python, with netproof in ``root``."""
    there, path = shlex.quote(python), shlex.quote(str(root))
    return f"""#!/bin/bash
# Runs the launches of {PLAN_FILE} within a Slurm job. `bash {SCRIPT} --dry-run` prints them.
export PYTHONPATH={path}${{PYTHONPATH:+:$PYTHONPATH}}
if ! [ -x {there} ]; then
    node=${{SLURMD_NODENAME:-$(uname -n)}}
    echo "$node has no "{there}", and the Python that runs ReFrame has to be there" >&2
    exit 3
fi
exec {there} -P -m netproof.jobs {PLAN_FILE} "$@"
"""


def job_name(contention_domain: str) -> str:
    """Name of the Slurm jobs that take turns in a contention domain, the same for each of them.

    sbatch reads it from a line of the job script, where quotes, ``#`` and white space mean
    something: of any other text than letters, digits and ``._-``, these and a checksum are taken.
    """
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", contention_domain)
    if plain != contention_domain:
        plain += f"-{hashlib.sha256(contention_domain.encode()).hexdigest()[:8]}"
    return f"netproof-{plain}"


@dataclass(frozen=True)
class SizeSweep:
    """One call of NetPIPE: from ``lower`` to ``upper`` bytes, around each size ``perturbation``."""

    lower: int
    upper: int
    perturbation: int

    def sizes(self) -> tuple[int, ...]:
        """The message sizes in bytes that NetPIPE measures for it."""
        return netpipe.sizes(self.lower, self.upper, self.perturbation)


def size_file(function: str) -> str:
    """Name of the file that lists a function's message sizes, as IMB's ``-msglen`` takes it."""
    return f"sizes-{function}.txt"


def size_files(sizes: Mapping[str, Sequence[int]]) -> dict[str, str]:
    """Name to text of the lists of message sizes, from function to its sizes."""
    return {
        size_file(function): "".join(f"{size}\n" for size in listed)
        for function, listed in sizes.items()
    }


def sizes_asked(function: Function, ranks: int, partition: Partition) -> tuple[int, ...]:
    """Message sizes in bytes of a function's whole curve on ``ranks``; (0,) without any."""
    settings = partition.sizes_of(function.benchmark)
    return function.sizes(ranks, partition.max_message_bytes, settings)


def function_step(
    function: Function,
    ranks: int,
    launch: int,
    partition: Partition,
    srun: Sequence[str],
    subject: str = "",
    sizes: Sequence[int] | None = None,
) -> Step:
    """Return one launch of a function on the ranks that it uses in a job of ``ranks``.

    ``subject``: by default the function's name; ``sizes``: of the messages in bytes, by default
    those of a whole curve, whose list is the function's. Those of others is the subject's.
    """
    count, per_node = ranks_of(function, ranks, partition)
    subject = subject or function.name
    benchmark = registry.mpi(function.benchmark)
    program = benchmark.command(
        function,
        count,
        sizes_asked(function, count, partition) if sizes is None else sizes,
        size_file(function.name if sizes is None else subject),
        partition.arguments.get(benchmark.name, ()),
    )
    return Step(subject, launch, (*srun, *_placement(count, per_node), *RANK, *program))


def function_steps(
    functions: Sequence[Function],
    ranks: int,
    launches: int,
    partition: Partition,
    srun: Sequence[str],
    seed: int,
) -> tuple[Step, ...]:
    """Return every launch of ``functions`` on ``ranks`` ranks, shuffled by ``seed``.

    Functions for two ranks run on one rank of each of two nodes.
    """
    steps = [
        function_step(function, ranks, launch, partition, srun)
        for function in functions
        for launch in range(1, launches + 1)
    ]
    random.Random(seed).shuffle(steps)
    return tuple(steps)


def start_subject(benchmark: str, function: str, ranks: int, per_node: int) -> str:
    """Stem of the names of the steps that only start and end, on so many ranks."""
    by_protocol = registry.named(benchmark).by_protocol
    return f"start-{function if by_protocol else benchmark}-{ranks}x{per_node}"


def start_steps(
    functions: Sequence[Function],
    ranks: int,
    launches: int,
    partition: Partition,
    srun: Sequence[str],
) -> tuple[Step, ...]:
    """Launches that do little but start and end, on the ranks that ``functions`` use.

    What they take is no cost of the benchmark. None of a benchmark that has no such run.
    """
    steps: dict[str, Step] = {}
    for function in functions:
        count, per_node = ranks_of(function, ranks, partition)
        program = registry.named(function.benchmark).start(function.name, count)
        command = (*srun, *_placement(count, per_node), *RANK, *program)
        subject = start_subject(function.benchmark, function.name, count, per_node)
        for launch in range(1, launches + 1) if program else ():
            step = Step(subject, launch, command)
            steps.setdefault(step.name, step)
    return tuple(steps.values())


def netpipe_start_steps(
    launches: int,
    srun: Sequence[str],
    variants: Collection[tuple[str, str, str]] = netpipe.VARIANTS,
) -> tuple[Step, ...]:
    """The same of NetPIPE over TCP and over MPI, between nodes and inside one."""
    steps: list[Step] = []
    for protocol in netpipe.PROTOCOLS:
        _, *arguments = netpipe.BENCHMARK.start(protocol, 2)
        for path in netpipe.PATHS:
            if (protocol, path) not in {variant[:2] for variant in variants}:
                continue
            subject = start_subject("netpipe", protocol, 2, 1 if path == "inter-node" else 2)
            command = _netpipe_start(protocol, path, arguments, srun)
            steps += [Step(subject, launch, command) for launch in range(1, launches + 1)]
    return tuple(steps)


def netpipe_arguments(
    partition: Partition, protocol: str, path: str, sweep: SizeSweep
) -> tuple[str, ...]:
    """NetPIPE's options: sizes and round trips; the same at both ends."""
    arguments = ["-l", str(sweep.lower), "-u", str(sweep.upper), "-p", str(sweep.perturbation)]
    through_memory = (protocol, path) == ("mpi", "intra-node")
    repeats = partition.netpipe_mpi_inside_repeats if through_memory else partition.netpipe_repeats
    if repeats:
        arguments += ["-n", str(repeats)]
    return tuple(arguments)


def whole_sweep(partition: Partition) -> SizeSweep:
    """Return the sizes that NetPIPE measures for a whole curve."""
    perturbation = netpipe.perturbation_of(partition.sizes_of("netpipe"))
    return SizeSweep(1, partition.max_message_bytes, perturbation)


def netpipe_steps(
    launches: int,
    partition: Partition,
    srun: Sequence[str],
    seed: int,
    variants: Collection[tuple[str, str, str]] = netpipe.VARIANTS,
) -> tuple[Step, ...]:
    """Every launch of NetPIPE's ``variants`` on two nodes.

    The variants' order is shuffled by ``seed``; within one, TCP and MPI take turns, so that
    their ratio is of the same minutes and the same nodes.
    """
    return tuple(
        step for unit in netpipe_units(launches, partition, srun, seed, variants) for step in unit
    )


def netpipe_units(
    launches: int,
    partition: Partition,
    srun: Sequence[str],
    seed: int,
    variants: Collection[tuple[str, str, str]] = netpipe.VARIANTS,
) -> tuple[tuple[Step, ...], ...]:
    """Return the same, those together that are to follow each other; as many of any variants."""
    ordered = [(path, direction) for path in netpipe.PATHS for direction in netpipe.DIRECTIONS]
    random.Random(seed).shuffle(ordered)
    whole = whole_sweep(partition)
    units = []
    for path, direction in ordered:
        for launch in range(1, launches + 1):
            steps: list[Step] = []
            for protocol in netpipe.PROTOCOLS:
                variant = (protocol, path, direction)
                if variant not in variants:
                    continue
                subject = netpipe.subject(*variant)
                step = netpipe_step(subject, launch, variant, whole, partition, srun)
                steps.append(step)
                if has_twin(partition, 1 if path == "inter-node" else 2):
                    steps.append(twin_step(step, direction, partition))
            units.append(tuple(steps))
    return tuple(units)


def has_twin(partition: Partition, ranks_per_node: int) -> bool:
    """Whether each launch has one over the link's healthy twin next to it.

    Those of one rank a node: several of a node share its link, and send each other messages too.
    """
    return bool(partition.twin) and ranks_per_node == 1


def with_twins(
    steps: Iterable[Step], functions: Sequence[Function], ranks: int, partition: Partition
) -> tuple[tuple[Step, ...], ...]:
    """Return steps of ``functions``, of whole curves, each with the one over the twin after it."""
    by_name = {function.name: function for function in functions}
    return tuple((step, *twin_of(step, by_name[step.subject], ranks, partition)) for step in steps)


def twin_of(step: Step, function: Function, ranks: int, partition: Partition) -> tuple[Step, ...]:
    """The one over the twin that stands next to a step of ``function``; none where it has none."""
    if not has_twin(partition, ranks_of(function, ranks, partition)[1]):
        return ()
    return (twin_step(step, function.direction, partition, share=TWINS_SHARE),)


def ranks_of(function: Function, ranks: int, partition: Partition) -> tuple[int, int]:
    """The ranks of a function in a job of ``ranks``, and how many of them share a node."""
    return (2, 1) if function.pair else (ranks, partition.ranks_per_node)


def twin_name(step: str) -> str:
    """Name of the step over the healthy twin that stands next to the step of this name."""
    subject, _, launch = step.rpartition(".")
    return f"{subject}-twin.{launch}"


def twin_sweep(partition: Partition) -> SizeSweep:
    """Return the sizes measured over the healthy twin: the whole curve, without perturbation."""
    return SizeSweep(1, partition.max_message_bytes, 0)


TWINS_SHARE = 4
"""Next to a benchmark other than NetPIPE the twin has one in so many of NetPIPE's repetitions."""


def twin_step(step: Step, direction: str, partition: Partition, share: int = 1) -> Step:
    """The launch over the healthy twin that stands next to ``step``: TCP in its direction.

    ``share``: it has one in so many repetitions of NetPIPE's, and one at least.
    """
    name = twin_name(step.name)
    if partition.netpipe_repeats:
        fewer = max(1, partition.netpipe_repeats // share)
        partition = partition.model_copy(update={"netpipe_repeats": fewer})
    sweep = twin_sweep(partition)
    arguments = [*netpipe_arguments(partition, "tcp", "inter-node", sweep), "-o", f"{name}.np"]
    arguments = [*_tcp_mode(direction, partition), *arguments]
    return Step(name.rpartition(".")[0], step.launch, (*partition.twin, *arguments))


def sweep_subject(subject: str, sweep: SizeSweep) -> str:
    """Name of one of the sweeps that make a launch of a NetPIPE variant together."""
    return f"{subject}-from-{sweep.lower}"


def netpipe_step(
    subject: str,
    launch: int,
    variant: tuple[str, str, str],
    sweep: SizeSweep,
    partition: Partition,
    srun: Sequence[str],
) -> Step:
    """One launch of a variant (protocol, path, direction) over a sweep."""
    protocol, path, direction = variant
    output = ["-o", f"{subject}.{launch}.np"]
    arguments = [*netpipe_arguments(partition, protocol, path, sweep), *output]
    if protocol == "tcp":
        arguments = [*_tcp_mode(direction, partition), *arguments]
    elif direction == "bidirectional":
        arguments = ["-2", "-a", *arguments]
    return Step(subject, launch, _netpipe_start(protocol, path, arguments, srun))


def _netpipe_start(
    protocol: str, path: str, arguments: Sequence[str], srun: Sequence[str]
) -> tuple[str, ...]:
    """Return the arguments of a launch of NetPIPE with these of its own."""
    per_node, nodes = (1, f"{FIRST},{SECOND}") if path == "inter-node" else (2, FIRST)
    where = (*_placement(2, per_node), f"--nodelist={nodes}", *RANK)
    if protocol == "mpi":
        return (*srun, *where, "NPmpi", *arguments)
    return (srun[0], "--mpi=none", *where, *NPTCP, "run", ADDRESS, PORT, *arguments)


def _tcp_mode(direction: str, partition: Partition) -> list[str]:
    """NPtcp's options for a direction."""
    if direction != "bidirectional":
        return []
    # It stops at the sum of its socket buffers in this mode, and -b asks for half of what Linux
    # then gives.
    return ["-2", "-b", str(2 * max(whole_sweep(partition).sizes()))]


def _placement(ranks: int, per_node: int) -> tuple[str, ...]:
    return (
        f"--nodes={ranks // per_node}",
        f"--ntasks={ranks}",
        f"--ntasks-per-node={per_node}",
        "--kill-on-bad-exit=1",
    )
