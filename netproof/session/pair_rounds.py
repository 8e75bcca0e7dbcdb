"""Rounds of pairs: all nodes of a job measured two by two; their launches and what they left.

In a round each node has one partner. It is one launch of IMB's PingPong in groups of two ranks, a
rank on each node; or several, where a site lets fewer pairs measure at once. Who is paired with
whom is a list of nodes, in the order of ranks. A PingPong goes one way at a time; where pairs share
uplinks, PingPing goes both ways at once. Last come streams, from the first node of a pair to the
second, which tell the direction in which an accused node is slow.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from netproof import codec
from netproof.benchmarks.outputs import text_of
from netproof.benchmarks.registry import OF_PAIRS
from netproof.errors import NetproofError
from netproof.intake import disk
from netproof.measurement.case import Case, Curve
from netproof.session import plan
from netproof.session.job_files import Incomplete, JobFolder
from netproof.session.measured import Launch
from netproof.session.plan import Step
from netproof.site.partition import Partition

SUBJECT = "pairs"
"""Stem of the names of a job's rounds, and the label that closes them."""

STREAM_SUBJECT = "stream"
"""Stem of the name of the file of a stream's message sizes."""

PLANNED_FILE = "planned.json"
"""Every launch that was planned so far, in their order, and whether these are all."""

SMALL_BYTES = 4
"""The message whose time is a latency."""


def sizes(most_bytes: int, *, stream: bool = False) -> tuple[int, ...]:
    """The message sizes in bytes of a round: one for latency, one for the rate.

    Of a stream it is one message; all that are under way at once make the largest.
    """
    if stream:
        return (max(SMALL_BYTES, most_bytes // OF_PAIRS.stream_window),)
    return (SMALL_BYTES, most_bytes)


def step(launch: Launch, number: int, partition: Partition, srun: Sequence[str]) -> Step:
    """Return the step of a launch of pairs; ``number``: from 1."""
    settings, nodes = partition.pair_settings(), launch.nodes()
    arguments = settings.arguments or partition.arguments[OF_PAIRS.name]
    if launch.stream:
        arguments = settings.stream_arguments
    name, *words = OF_PAIRS.command(
        OF_PAIRS.function(launch.function),
        2,
        sizes(partition.max_message_bytes, stream=launch.stream),
        plan.size_file(STREAM_SUBJECT if launch.stream else SUBJECT),
        arguments,
    )
    # A single pair is no group among several.
    groups = OF_PAIRS.several_pairs if len(nodes) > 2 else ()
    # Slurm from 24.11 on refuses --nodes together with a file that names them.
    placed = ("--distribution=arbitrary", f"--ntasks={len(nodes)}", "--kill-on-bad-exit=1")
    command = (*srun, *placed, *plan.RANK, name, *groups, *words)
    return Step(SUBJECT, number, command, hosts=nodes)


def planned(pairs: Iterable[tuple[str, str]], why: str, **how: Any) -> Launch:
    """Return a launch of pairs that has not run yet."""
    return Launch(0, 0, 0.0, 0.0, (), (), pairs=tuple(pairs), why=why, **how)


Planned = tuple[tuple[Launch, ...], bool]
"""Every launch that was planned so far, and whether no other will be."""


def write_planned(folder: Path, planned: Planned) -> None:
    """Leave in a job's folder what was planned so far."""
    # A decision waits for it: json is ten times slower if it indents.
    document = json.dumps(codec.encode(planned))
    disk.replace(folder / PLANNED_FILE, document + "\n")


def read_planned(folder: Path) -> Planned:
    """Return the rounds planned so far, none without a launch; raise Incomplete if damaged."""
    path = folder / PLANNED_FILE
    try:
        document = disk.json_file(path)
        return codec.decode(tuple[tuple[Launch, ...], bool], document, "a plan")
    except FileNotFoundError:
        return (), False
    except (NetproofError, OSError) as error:
        raise Incomplete(f"{path}: what was planned cannot be read: {error}") from error


@dataclass(frozen=True)
class PairRounds:
    """All rounds of a job.

    ``nodes``: those of the job, by its own word; ``leaves``: switch to its nodes, as Slurm knows
    them, empty where it knows none; ``parents``: switch to the one above it; ``faults``: why rounds
    are not complete, a sentence each; ``crashes``: launches that were made again; ``deferred``:
    nodes of the partition that other jobs held for longer than the site waits, and ``waited_s``:
    for how many seconds its jobs waited.
    """

    system: str
    partition: str
    environment: str
    nodes: tuple[str, ...]
    launches: tuple[Launch, ...]
    jobid: str
    mode: str
    seed: int
    leaves: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    parents: Mapping[str, str] = dataclasses.field(default_factory=dict)
    faults: tuple[str, ...] = ()
    crashes: tuple[Launch, ...] = ()
    deferred: tuple[str, ...] = ()
    waited_s: float = 0.0

    def __post_init__(self) -> None:
        for one in self.launches:
            if len(one.curves) != len(one.pairs):
                found = f"{len(one.curves)} curves of {len(one.pairs)} pairs"
                raise NetproofError(f"launch {one.number} has {found}")

    def without(self, busy: Iterable[str], waited_s: float) -> PairRounds:
        """Return the rounds, the ``busy`` nodes that the job did not get as deferred."""
        deferred = tuple(sorted(set(busy) - set(self.nodes)))
        return dataclasses.replace(self, deferred=deferred, waited_s=waited_s)

    def measured(self) -> frozenset[str]:
        """The nodes that were measured in some round."""
        return frozenset(node for one in self.launches for node in one.nodes())


def read(
    folder: Path,
    where: tuple[str, str, str],
    most_bytes: int,
    known: Mapping[int, Launch] | None = None,
) -> tuple[tuple[Launch, ...], tuple[str, ...], tuple[Launch, ...]]:
    """The complete launches of a job's folder, why others are not, and those that crashed.

    ``where``: system, partition and environment; ``known``: launches by number that were read
    before and are not read again. Raises Incomplete where the job left no record.
    """
    job = JobFolder(folder)
    planned, _ = read_planned(folder)
    done: list[Launch] = []
    faults: list[str] = []
    crashes: list[Launch] = []
    made = [name for name in job.recorded if name.startswith(f"{SUBJECT}.") and "~" not in name]
    if len(made) > len(planned):
        faults.append(
            f"{folder / PLANNED_FILE}: has {len(planned)} launches, and {len(made)} were made"
        )
    for number, launch in enumerate(planned[: len(made)], 1):
        step = f"{SUBJECT}.{number}"
        crashes += job.crashes(step)
        if known and number in known:
            done.append(known[number])
            continue
        try:
            nodes = launch.nodes()
            case = Case(*where, OF_PAIRS.name, launch.function, len(nodes), 1)
            asked = sizes(most_bytes, stream=launch.stream)
            ran = job.launch(step, case, asked, partial(_read_pairs, folder, launch))
            ran_on = ", ".join(ran.ranks)
            if ran_on != (planned_on := ", ".join(nodes)):
                order = f"was to run on {planned_on}, in this order"
                raise Incomplete(f"{step} ran on {ran_on}, and {order}")
            as_it_ran = {name: getattr(ran, name) for name in _AS_IT_RAN}
            done.append(dataclasses.replace(launch, **as_it_ran))
        except (NetproofError, OSError) as error:
            # Of several pairs it is not known which one failed.
            of_pair = f"{' – '.join(launch.nodes())}: " if len(launch.pairs) == 1 else ""
            faults.append(f"{of_pair}{error}")
    return tuple(done), tuple(faults), tuple(crashes)


def _read_pairs(folder: Path, launch: Launch, step: str) -> tuple[tuple[Curve, ...], int]:
    """Return the curves of a step of a launch, one a pair, and the bytes that all had to send."""
    path = folder / f"{step}.{OF_PAIRS.suffix}"
    return OF_PAIRS.read_pairs(text_of(path), str(path), launch.function, len(launch.pairs))


_AS_IT_RAN = (
    *("number", "order", "start", "wall_s", "ranks", "curves", "loads", "used"),
    *("counters", "payload"),
)
