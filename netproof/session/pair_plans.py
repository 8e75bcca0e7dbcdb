"""What a job of rounds of pairs is to launch: its script, and each launch as it was planned."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from netproof import codec
from netproof.benchmarks.registry import OF_PAIRS
from netproof.errors import NetproofError
from netproof.intake import json_reading, writing
from netproof.session import job_scripts, plan
from netproof.session.job_files import Incomplete
from netproof.site.partition import Partition

SUBJECT = "pairs"
"""Stem of the names of a job's rounds, and the label that closes them."""

NEXT_FILE = "next.txt"
"""The nodes of the next round in the order of ranks; written by whoever decides."""

STREAM_FILE = "stream.txt"
"""There where the next launch is a stream; written before ``NEXT_FILE``."""

BOTH_WAYS_FILE = "both-ways.txt"
"""There where both nodes of each pair send at once in the next launch; written as the other is."""

STREAM_SUBJECT = "stream"
"""Stem of the name of the file of a stream's message sizes."""

PLANNED_FILE = "planned.json"
"""Every launch that was planned so far, in their order, and whether these are all."""

SMALL_BYTES = 4
"""The message whose time is a latency."""


def sizes(most_bytes: int, *, stream: bool = False) -> tuple[int, ...]:
    """The message sizes in bytes of a round: one for latency, one for the rate.

    Of a stream it is one, of which all that are under way at once make the largest message.
    """
    if stream:
        return (max(SMALL_BYTES, most_bytes // OF_PAIRS.stream_window),)
    return (SMALL_BYTES, most_bytes)


def script(launches: int, partition: Partition, srun: Sequence[str], decider: str) -> str:
    """Text of the shell script that makes up to so many launches of pairs.

    ``decider``: shell text that starts what is told the number of launches made, and then writes
    ``NEXT_FILE`` or closes them. A launch for which nothing is written is not made, and the job
    fails.
    """
    settings = partition.pair_settings()
    most = partition.max_message_bytes
    (name, *in_turns), (_, *both_ways) = (
        OF_PAIRS.command(
            OF_PAIRS.function(function),
            2,
            sizes(most),
            plan.size_file(SUBJECT),
            settings.arguments or partition.arguments[OF_PAIRS.name],
        )
        for function in (OF_PAIRS.pairs_function, OF_PAIRS.both_ways_function)
    )
    _, *one_way = OF_PAIRS.command(
        OF_PAIRS.function(OF_PAIRS.stream_function),
        2,
        sizes(most, stream=True),
        plan.size_file(STREAM_SUBJECT),
        settings.stream_arguments,
    )
    # Slurm from 24.11 on refuses --nodes together with a file that names them.
    launch = (
        f"{shlex.join(srun)} --distribution=arbitrary --ntasks=$ranks"
        f' --kill-on-bad-exit=1 {shlex.join(plan.RANK)} {name} $multi "${{asked[@]}}"'
    )
    lines = job_scripts.head(partition, 0, over_tcp=False, describe_nodes=True, decider=decider)
    lines += [
        f"for ((launch = 1; launch <= {launches}; launch++)); do",
        "    decide $((launch - 1))",
        f"    wanted {SUBJECT} || break",
        f"    [ -s {NEXT_FILE} ] || exit 4",
        f"    mv {NEXT_FILE} {SUBJECT}.$launch.nodes",
        f"    ranks=$(wc -l <{SUBJECT}.$launch.nodes)",
        "    # A single pair is no group among several.",
        f"    multi={job_scripts.quoted(shlex.join(OF_PAIRS.several_pairs))}",
        '    [ "$ranks" -gt 2 ] || multi=',
        f"    asked=({shlex.join(in_turns)})",
        f"    [ ! -e {BOTH_WAYS_FILE} ] || asked=({shlex.join(both_ways)})",
        f"    [ ! -e {STREAM_FILE} ] || asked=({shlex.join(one_way)})",
        f"    export SLURM_HOSTFILE=$PWD/{SUBJECT}.$launch.nodes",
        f"    step {SUBJECT}.$launch {partition.step_limit_s} {launch}",
        "    unset SLURM_HOSTFILE",
        f'    [ -z "${{silent[{SUBJECT}]:-}}" ] || break',
        "done",
    ]
    return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class PlannedLaunch:
    """What a launch is to measure: its round, its pairs, whether alone, why, and in which ways."""

    round: int
    pairs: tuple[tuple[str, str], ...]
    alone: bool
    why: str
    stream: bool = False
    both_ways: bool = False

    @property
    def function(self) -> str:
        """What the benchmark calls it."""
        if self.stream:
            return OF_PAIRS.stream_function
        return OF_PAIRS.both_ways_function if self.both_ways else OF_PAIRS.pairs_function

    def nodes(self) -> tuple[str, ...]:
        """The nodes in the order of ranks."""
        return tuple(node for pair in self.pairs for node in pair)


@dataclass(frozen=True)
class Planned:
    """Every launch that was planned so far; ``last``: whether no other will be."""

    launches: tuple[PlannedLaunch, ...] = ()
    last: bool = False


def write_planned(folder: Path, planned: Planned) -> None:
    """Leave in a job's folder what was planned so far."""
    # A decision waits for it: json is ten times slower if it indents.
    document = json.dumps(codec.encode(planned))
    writing.replace(folder / PLANNED_FILE, document + "\n")


def read_planned(folder: Path) -> Planned:
    """What was planned so far, nothing where no launch was; Incomplete where it is damaged."""
    path = folder / PLANNED_FILE
    try:
        document = json_reading.json_file(path)
        return codec.decode(Planned, document, "a plan")
    except FileNotFoundError:
        return Planned()
    except (NetproofError, OSError) as error:
        raise Incomplete([f"{path}: what was planned cannot be read: {error}"]) from error


def write_next(folder: Path, launch: PlannedLaunch) -> None:
    """Leave in a job's folder what its next launch is."""
    for name, wanted in ((STREAM_FILE, launch.stream), (BOTH_WAYS_FILE, launch.both_ways)):
        if wanted:
            (folder / name).touch()
        else:
            (folder / name).unlink(missing_ok=True)
    (folder / NEXT_FILE).write_text("".join(f"{node}\n" for node in launch.nodes()))
