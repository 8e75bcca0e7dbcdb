"""The job script of a load test, and its plan of who measures with whom.

A job's nodes are known only within it. There ``python -m netproof.congestion.planning FOLDER``
draws the launches, and writes them as a plan and as lines of the script.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from netproof import codec
from netproof.benchmarks.registry import OF_PAIRS
from netproof.congestion.turns import Aggressor, Victim, VictimTurn, turns
from netproof.errors import NetproofError
from netproof.session import job_scripts, node_facts, plan
from netproof.session.labelled import Question, read_json
from netproof.session.labelled import write_question as write_question
from netproof.site.partition import Partition

QUESTION_FILE = "load.json"
"""Task of the job, in the folder of its script."""

TURNS_FILE = "load-turns.json"
"""Launches in their order."""

LINES_FILE = "load-turns.sh"
"""The launches as lines of the script."""

NODE_LISTS = "*.nodes"
"""Nodes of each step in the order of ranks."""

ROW_S = 0.25
"""Seconds per row of an aggressor: its rows show that it sends."""

THROUGHOUT = ("-iter", "1000000,1000000", "-time", str(ROW_S), "-root_shift", "off")
"""Arguments of an aggressor: only its seconds end a row, and the root is always the same rank."""


ONE_CALL = ("-iter", "1")
"""Arguments of a victim: a row is one call."""


@dataclass(frozen=True)
class LoadQuestion(Question):
    """The task of a job: where, with what, how often, started by ``srun``."""

    FILE = QUESTION_FILE

    leaves: Mapping[str, tuple[str, ...]]
    victims: tuple[Victim, ...]
    aggressors: tuple[Aggressor, ...]
    rounds: int
    seed: int
    srun: tuple[str, ...]


def read_turns(folder: Path) -> tuple[VictimTurn, ...]:
    """Read the drawn launches; NetproofError where there are none, or the file is damaged."""
    path = folder / TURNS_FILE
    if not path.exists():
        raise NetproofError(
            f"{path}: the job did not come to draw its launches; see {folder}'s *.err"
        )
    return read_json(tuple[VictimTurn, ...], path)


def script(partition: Partition, folder: Path) -> str:
    """Return the job script, which draws and runs the launches."""
    lines = job_scripts.head(
        partition, 0, over_tcp=False, describe_nodes=True, figures_at_once=False
    )
    ask = shlex.join([sys.executable, "-m", "netproof.congestion.planning", str(folder)])
    lines += [". ./alongside.sh", f"{ask} || exit 4", f". ./{LINES_FILE}"]
    return "\n".join(lines) + "\n"


def size_files(
    partition: Partition, victims: Sequence[Victim], aggressors: Sequence[Aggressor]
) -> dict[str, str]:
    """Return the lists of message sizes by name: a line for each row that a step must print."""
    settings = partition.load_settings()
    # Longer than any victim may take.
    rows = int(4 * partition.step_limit_s / ROW_S)
    asked = {
        f"load-{one}": [one.size(partition.max_message_bytes)] * settings.repetitions
        for one in victims
    }
    asked |= {f"load-{one}": [aggressor_bytes(partition)] * rows for one in aggressors}
    return plan.size_files(asked)


def aggressor_bytes(partition: Partition) -> int:
    """Return the bytes of an aggressor's message."""
    return min(partition.load_settings().bytes, partition.max_message_bytes)


def lines(several: Sequence[VictimTurn], question: LoadQuestion) -> str:
    """Return shell lines that run the launches, each once."""
    partition = question.partition
    limit = partition.step_limit_s
    found = []
    for turn in several:
        size = turn.victim.size(partition.max_message_bytes)
        victim = _program(turn.victim, 2, size, ONE_CALL, partition)
        launch = (
            f"SLURM_HOSTFILE=$PWD/{turn.step}.nodes step {turn.step} {limit}"
            f" {_srun(question, 2)} {shlex.join([*plan.RANK, *victim])}"
        )
        if not turn.beside:
            found.append(launch)
            continue
        ranks, size = len(turn.others), aggressor_bytes(partition)
        name, *words = _program(turn.aggressor, ranks, size, THROUGHOUT, partition)
        # With a single pair IMB prints no groups.
        if turn.aggressor is Aggressor.ONE_TO_ONE and ranks > 2:
            words = [*OF_PAIRS.several_pairs, *words]
        found += [
            f"SLURM_HOSTFILE=$PWD/{turn.aggressor_step}.nodes begin_aggressor"
            f" {turn.aggressor_step} {limit} {_srun(question, ranks)}"
            f" {shlex.join([name, *words])} && {launch}",
            f"end_aggressor {limit}",
        ]
    return "\n".join(found) + "\n"


def _srun(question: LoadQuestion, ranks: int) -> str:
    # Slurm from 24.11 on refuses --nodes together with a file of them.
    words = ["--distribution=arbitrary", f"--ntasks={ranks}", "--kill-on-bad-exit=1"]
    return shlex.join([*question.srun, *words])


def _program(
    one: Victim | Aggressor, ranks: int, size: int, arguments: Sequence[str], partition: Partition
) -> list[str]:
    """Return the command of a step, whose messages have one size in bytes."""
    return OF_PAIRS.command(
        OF_PAIRS.function(one.function),
        ranks,
        (size,),
        plan.size_file(f"load-{one}"),
        [*arguments, *partition.load_settings().arguments],
    )


def write_turns(folder: Path, jobid: str) -> None:
    """Draw the launches of the job, on its own nodes, and write them to its folder.

    Raise NetproofError for too few nodes or damaged files.
    """
    question = LoadQuestion.read(folder)
    nodes = node_facts.nodes_of_job(folder, jobid)
    drawn = turns(
        nodes,
        question.leaves,
        question.victims,
        question.aggressors,
        question.rounds,
        question.seed,
    )
    for turn in drawn:
        (folder / f"{turn.step}.nodes").write_text(_listed(turn.nodes))
        if turn.beside:
            (folder / f"{turn.aggressor_step}.nodes").write_text(_listed(turn.others))
    (folder / LINES_FILE).write_text(lines(drawn, question))
    document = json.dumps(codec.encode(drawn), indent=1)
    (folder / TURNS_FILE).write_text(document + "\n")


def _listed(nodes: Sequence[str]) -> str:
    return "".join(f"{node}\n" for node in nodes)


if __name__ == "__main__":
    try:
        write_turns(Path(sys.argv[1]), os.environ["SLURM_JOB_ID"])
    except NetproofError as error:
        sys.exit(f"load: {error}")
