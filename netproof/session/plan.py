"""Plan of a job: the launches of its benchmarks as job steps, in a shuffled order."""

from __future__ import annotations

import hashlib
import json
import random
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from netproof import codec
from netproof.benchmarks import netpipe, registry
from netproof.errors import NetproofError, shortened
from netproof.intake import disk, trust
from netproof.measurement.case import Case
from netproof.site.partition import Partition

T = TypeVar("T")

SHELL_FILES = tuple(sorted((Path(__file__).parents[1] / "run" / "shell").glob("*.[sp][hy]")))
"""Files that steps start on each node, copied beside the job's script."""

SIZE_FILES = "sizes-*.txt"
"""The files beside it that list the message sizes asked for."""

PLAN_FILE = "plan.json"
"""File with the plan of a job, beside its output."""

SETUP_FILE = "setup.sh"
"""The file that sets up an environment, in its folder."""

SCRIPT = "launches.sh"
"""The file beside it that starts the program of the job."""

PACE_FILE = "pace.sh"
"""The file beside it that has the partition's ``pace``."""

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

    ``task``: its kind; ``extras``: of the partition; ``where``: system, partition and environment;
    ``srun``: how steps begin; ``rounds``: the steps in their order, all that are known before the
    job begins; ``describe_nodes``: whether nodes are described first; ``figures_at_once``: whether
    programs print a figure soon after they begin; ``transport``: arguments of the step in which the
    MPI library reports its transport; ``setup``: the file that sets up the environment of all
    steps, if that is not the job's; ``environments``: names of the folders of its parts;
    ``environment_extras``, ``cases``, ``launches``: of a part, and how often each case is launched;
    ``asked``: what else the task judges.
    """

    seed: int
    extras: Mapping[str, Any]
    rounds: tuple[tuple[Step, ...], ...] = ()
    where: tuple[str, str, str] = ("", "", "")
    srun: tuple[str, ...] = ()
    task: str = "launches"
    describe_nodes: bool = True
    figures_at_once: bool = True
    transport: tuple[str, ...] = ()
    setup: str = ""
    environments: tuple[str, ...] = ()
    environment_extras: Mapping[str, Any] = field(default_factory=dict)
    cases: tuple[Case, ...] = ()
    launches: int = 0
    asked: Any = None

    @property
    def partition(self) -> Partition:
        """Return the partition as checks see it."""
        return partition_of(self.extras, PLAN_FILE)

    def task_of(self, kind: type[T]) -> T:
        """Return what the task judges; NetproofError where it is damaged."""
        return codec.decode(kind, self.asked, f"{PLAN_FILE}: its task")

    def write(self, folder: Path) -> None:
        """Write it to the job's folder."""
        (folder / PLAN_FILE).write_text(json.dumps(codec.encode(self)) + "\n")

    @classmethod
    def read(cls, path: Path) -> JobPlan:
        """Return the plan in a file; NetproofError where it is damaged, and OSError."""
        planned = codec.decode(cls, disk.json_file(path), f"{path}: is no plan of a job")
        partition_of(planned.extras, f"{path}: is no plan of a job")
        return planned


def partition_of(extras: Mapping[str, Any], place: str) -> Partition:
    """Return a partition by the extras that checks see; NetproofError, with ``place``."""
    try:
        partition: Partition = Partition.model_validate(extras)
    except ValidationError as error:
        raise NetproofError(f"{place}: {shortened(repr(error))}") from error
    return partition


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


def sizes_asked(case: Case, partition: Partition) -> tuple[int, ...]:
    """Return the message sizes in bytes of a case's whole curve; (0,) without any."""
    settings = partition.sizes_of(case.benchmark)
    return registry.of(case).asked(case, partition.max_message_bytes, settings)


def whole_sweep(partition: Partition) -> SizeSweep:
    """Return the sizes that NetPIPE measures for a whole curve."""
    perturbation = netpipe.perturbation_of(partition.sizes_of("netpipe"))
    return SizeSweep(1, partition.max_message_bytes, perturbation)


def step_of(
    case: Case,
    launch: int,
    partition: Partition,
    srun: Sequence[str],
    subject: str = "",
    sizes: Sequence[int] | SizeSweep | None = None,
) -> Step:
    """Return one launch of a case.

    ``subject``: by default the case's; ``sizes``: of the messages in bytes, of NetPIPE a sweep, by
    default those of a whole curve. Sizes of other curves have a list of the subject's name.
    """
    benchmark = registry.of(case)
    subject = subject or benchmark.subject(case)
    if benchmark.by_protocol:
        sweep = sizes if isinstance(sizes, SizeSweep) else whole_sweep(partition)
        words = [*netpipe_arguments(partition, case.function, case.path, sweep)]
        if case.function == "tcp":
            words = [*_tcp_mode(case.direction, partition), *words]
        elif case.direction == "bidirectional":
            words = ["-2", "-a", *words]
        words += ["-o", f"{subject}.{launch}.np"]
        return Step(subject, launch, _netpipe_command(case, words, srun))
    listed = sizes_asked(case, partition) if sizes is None else sizes
    program = registry.mpi(case.benchmark).command(
        registry.function_of(case),
        case.ranks,
        listed.sizes() if isinstance(listed, SizeSweep) else listed,
        size_file(case.function if sizes is None else subject),
        partition.arguments.get(benchmark.name, ()),
    )
    return Step(subject, launch, (*srun, *_placement(case), *RANK, *program))


def units(
    cases: Sequence[Case], launches: int, partition: Partition, srun: Sequence[str], seed: int
) -> tuple[tuple[Step, ...], ...]:
    """Return every launch of a benchmark's cases, those together that are to follow each other.

    Each has the one over the healthy twin behind it, if any. They are shuffled by ``seed``, of
    NetPIPE as a path and direction: within one, TCP and MPI take turns, so that their ratio is of
    the same minutes and the same nodes. There are as many units of any of NetPIPE's cases. Last
    come launches that only start and end.
    """
    draw, numbers = random.Random(seed), range(1, launches + 1)
    if registry.of(cases[0]).by_protocol:
        ways = [(path, direction) for path in netpipe.PATHS for direction in netpipe.DIRECTIONS]
        draw.shuffle(ways)
        by_protocol = sorted(cases, key=lambda case: netpipe.PROTOCOLS.index(case.function))
        grouped = [
            [case for case in by_protocol if (case.path, case.direction) == way] for way in ways
        ]
        several = [(group, number) for group in grouped for number in numbers]
    else:
        several = [([case], number) for case in cases for number in numbers]
        draw.shuffle(several)
    measuring = []
    for group, number in several:
        steps = ((case, step_of(case, number, partition, srun)) for case in group)
        measuring.append(
            tuple(one for case, step in steps for one in (step, *twin_of(step, case, partition)))
        )
    return (*measuring, *((step,) for step in start_steps(cases, srun)))


def start_subject(case: Case) -> str:
    """Stem of the names of the steps that only start and end, on the ranks of a case."""
    named = case.function if registry.of(case).by_protocol else case.benchmark
    return f"start-{named}-{case.ranks}x{case.ranks_per_node}"


def start_steps(cases: Iterable[Case], srun: Sequence[str]) -> tuple[Step, ...]:
    """A launch that only starts and ends on each of the ranks: no cost of the benchmark."""
    steps: dict[str, Step] = {}
    for case in cases:
        benchmark = registry.of(case)
        program = benchmark.start(case.function, case.ranks)
        if benchmark.by_protocol:
            command = _netpipe_command(case, program[1:], srun)
        else:
            command = (*srun, *_placement(case), *RANK, *program)
        if program:
            step = Step(start_subject(case), 1, command)
            steps.setdefault(step.name, step)
    return tuple(steps.values())


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


def has_twin(partition: Partition, ranks_per_node: int) -> bool:
    """Check whether a launch has one over the twin: one rank a node has a link of its own."""
    return bool(partition.twin) and ranks_per_node == 1


def twin_name(step: str) -> str:
    """Name of the step over the healthy twin that stands next to the step of this name."""
    subject, _, launch = step.rpartition(".")
    return f"{subject}-twin.{launch}"


def twin_sweep(partition: Partition) -> SizeSweep:
    """Return the sizes measured over the healthy twin: the whole curve, without perturbation."""
    return SizeSweep(1, partition.max_message_bytes, 0)


TWINS_SHARE = 4
"""Next to a benchmark other than NetPIPE the twin has one in so many of NetPIPE's repetitions."""


def twin_of(step: Step, case: Case, partition: Partition) -> tuple[Step, ...]:
    """The launch over the healthy twin next to a case's ``step``: TCP in its direction; if any."""
    if not has_twin(partition, case.ranks_per_node):
        return ()
    direction, repeats = case.direction, partition.netpipe_repeats
    if not registry.of(case).by_protocol:
        direction = registry.function_of(case).direction
        repeats = max(1, repeats // TWINS_SHARE) if repeats else repeats
    fewer = partition.model_copy(update={"netpipe_repeats": repeats})
    name = twin_name(step.name)
    options = netpipe_arguments(fewer, "tcp", "inter-node", twin_sweep(partition))
    arguments = (*_tcp_mode(direction, partition), *options, "-o", f"{name}.np")
    return (Step(name.rpartition(".")[0], step.launch, (*partition.twin, *arguments)),)


def _netpipe_command(case: Case, arguments: Sequence[str], srun: Sequence[str]) -> tuple[str, ...]:
    """Return the arguments of a launch of NetPIPE with these of its own."""
    nodes = f"{FIRST},{SECOND}" if case.path == "inter-node" else FIRST
    where = (*_placement(case), f"--nodelist={nodes}", *RANK)
    if case.function == "mpi":
        return (*srun, *where, "NPmpi", *arguments)
    return (srun[0], "--mpi=none", *where, *NPTCP, "run", ADDRESS, PORT, *arguments)


def _tcp_mode(direction: str, partition: Partition) -> list[str]:
    """NPtcp's options for a direction."""
    if direction != "bidirectional":
        return []
    # It stops at the sum of its socket buffers in this mode, and -b asks for half of what Linux
    # then gives.
    return ["-2", "-b", str(2 * max(whole_sweep(partition).sizes()))]


def _placement(case: Case) -> tuple[str, ...]:
    return (
        f"--nodes={case.ranks // case.ranks_per_node}",
        f"--ntasks={case.ranks}",
        f"--ntasks-per-node={case.ranks_per_node}",
        "--kill-on-bad-exit=1",
    )


LEFT = "NETPROOF_LEFT"
"""Variable of a run of ReFrame that names the file with the cases that it leaves.

A job whose cases are all left is skipped, and its report says why.
"""


def write_left(path: Path, cases: Mapping[Case, tuple[str, bool]]) -> None:
    """Write the file: why each case is left, and whether that is planned.

    Nothing is wrong with what is planned, since it is another night's turn. A run that leaves
    anything else cannot be judged whole. OSError where the file cannot be written.
    """
    entries = [[case.key(), *left] for case, left in cases.items()]
    disk.replace(path, json.dumps(entries, indent=1) + "\n")


def read_left(path: Path) -> dict[tuple[Any, ...], tuple[str, bool]]:
    """The cases to leave by key, and why; NetproofError if damaged or others can write it."""
    trust.insist(path, f"{LEFT}'s file")
    try:
        entries = disk.json_file(path)
        left = codec.decode(
            list[tuple[tuple[str | int, ...], str, bool]], entries, "cases to leave"
        )
        return {case: (why, planned) for case, why, planned in left}
    except (NetproofError, OSError) as error:
        raise NetproofError(
            f"{path}: does not tell what to leave ({error!r}); unset {LEFT} to measure all"
        ) from error
