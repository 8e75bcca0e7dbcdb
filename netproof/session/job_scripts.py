"""The scripts of jobs, made of the steps that are planned."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from netproof.benchmarks import registry
from netproof.session import node_facts
from netproof.session.plan import NPTCP, PACE_FILE, Step
from netproof.site.partition import Partition


def script(
    steps: Sequence[Step],
    partition: Partition,
    *,
    over_tcp: bool,
    describe_nodes: bool,
    ask: str = "",
) -> str:
    """Text of the shell script that runs ``steps`` in their order inside a job.

    ``over_tcp``: find the first node's address on the partition's interface and a free port
    for each step before the first. ``describe_nodes``: have every node say what it is.
    ``ask``: shell text of ``transport.step``, by which the MPI library is asked for its transport
    after the last step. A launch that crashes is started again, on a port of its own; see
    ``run/shell/steps.sh``.
    """
    lines = head(partition, len(steps), over_tcp=over_tcp, describe_nodes=describe_nodes)
    lines += [line(step, partition) for step in steps]
    lines += [ask] if ask else []
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
    lines = head(partition, count, over_tcp=over_tcp, describe_nodes=False)
    for number, steps in enumerate(rounds, 1):
        lines.append("made=")
        lines += [
            f"if wanted {quoted(label)}; then {line(step, partition)}; made=1; fi"
            for label, step in steps
        ]
        lines.append('[ -n "$made" ] || exit 0')
        if decisions and number in decisions:
            lines.append(decisions[number])
    return "\n".join(lines) + "\n"


def decider(module: str, folder: Path) -> str:
    """Shell text that starts what answers ``decide``: a module of this Python, told the folder."""
    return shlex.join(["decider", sys.executable, "-m", module, str(folder)])


def quoted(text: str) -> str:
    """A word of shell text."""
    return shlex.quote(text)


def line(step: Step, partition: Partition) -> str:
    """Shell text that launches a step within the partition's limit."""
    return f"step {step.name} {partition.step_limit_s} {step.command}"


def head(
    partition: Partition,
    count: int,
    *,
    over_tcp: bool,
    describe_nodes: bool,
    decider: str = "",
    figures_at_once: bool = True,
) -> list[str]:
    """What a job's script does before its first step; ``count``: how many ports it needs.

    ``decider``: shell text that starts what decides, while nothing is measured yet;
    ``figures_at_once``: its programs print a figure soon after they begin, if they do at all.
    """
    lines = [
        "#!/bin/bash",
        ". ./steps.sh",
        # See paired.sh.
        "export netproof_job_script=$PPID",
        # See counters.sh.
        f"export netproof_rails={shlex.quote(' '.join(partition.rails_or_interface()))}",
        f"export netproof_driver_counters={int(partition.driver_counters)}",
        f"crash_retries={partition.crash_retries}",
        f"first_figure_s={partition.first_figure_s if figures_at_once else 0}",
        f"figures_np={shlex.quote(registry.figures('np'))}",
        f"figures_out={shlex.quote(registry.figures('out'))}",
        f"job_nodes {node_facts.JOB_NODES_FILE} || exit 3",
    ]
    if partition.pace:
        # A file, since a launch in another environment has none of the job's variables.
        command = f'{shlex.join(partition.pace)} "$@"'
        lines.append(f"printf '%s\\n' {shlex.quote(command)} >{PACE_FILE}")
    lines += [decider] if decider else []
    if describe_nodes:
        lines.append(node_facts.node_step(partition.interface))
    if over_tcp:
        ask = shlex.join(["srun", "--mpi=none", "--nodes=1", "--ntasks=1", "--ntasks-per-node=1"])
        listen = shlex.join([*NPTCP, "listen-on", partition.interface])
        lines += [
            f'on_first=({ask} --nodelist="${{nodes[0]}}" {listen})',
            f"listen {count} || exit 3",
            'address=${listening[0]} ports=("${listening[@]:1}")',
        ]
    return lines
