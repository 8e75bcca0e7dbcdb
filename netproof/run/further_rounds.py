"""Rounds of a repeat job: steps, lists of sizes, and when it asks what is decided."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from netproof.benchmarks import registry
from netproof.run.further_cases import DENSE, FurtherCase
from netproof.session import job_scripts, plan
from netproof.session.plan import PeerEnvironment, Step
from netproof.site.partition import Partition


def environments(asked: Iterable[FurtherCase]) -> tuple[str, ...]:
    """Return the environments that cases of a job are interleaved with, in order of place."""
    return tuple(sorted({name for one in asked for name in one.paired}))


def netpipe_rounds(
    asked: Sequence[FurtherCase],
    whole: Iterable[tuple],
    around: Iterable[tuple],
    srun: Sequence[str],
    seed: int,
    partition: Partition,
    peers: Sequence[PeerEnvironment] = (),
) -> list[list[tuple[str, Step]]]:
    """Return the steps of each round for cases of NetPIPE, each with the label that closes it.

    ``whole`` and ``around``: keys of the cases to repeat whole or around sizes. In a round, TCP
    and MPI of one path and direction alternate, and the rest is shuffled by ``seed``. ``peers``:
    environments interleaved with launches of whole curves, before them in every other round.
    """
    whole, around = set(whole), set(around)
    shuffle = random.Random(seed)
    rounds: list[list[tuple[str, Step]]] = []
    order = 0
    for number in range(1, max(one.rounds() for one in asked) + 1):
        units: dict[tuple, list[tuple[str, str, tuple, plan.SizeSweep]]] = {}
        alongside: dict[str, list[PeerEnvironment]] = {}
        for one in asked:
            case, key = one.case, one.case.key()
            variant = (case.function, case.path, case.direction)
            if number > one.rounds():
                continue
            if key in whole:
                sweep = plan.whole_sweep(partition)
                units.setdefault(variant[1:], []).append((one.step, one.step, variant, sweep))
                alongside[one.step] = [peer for peer in peers if peer.name in one.paired]
            if key in around:
                units[(key,)] = [
                    (f"{one.step}{DENSE}", plan.sweep_subject(one.step, sweep), variant, sweep)
                    for sweep in one.sweeps()
                ]
        steps: list[tuple[str, Step]] = []
        shuffled = list(units.values())
        shuffle.shuffle(shuffled)
        for label, subject, variant, sweep in (part for unit in shuffled for part in unit):
            step = plan.netpipe_step(subject, number, variant, sweep, order, partition, srun)
            own = [(label, step)]
            order += 1
            ranks_per_node = 1 if variant[1] == "between" else 2
            if not label.endswith(DENSE) and plan.has_twin(partition, ranks_per_node):
                own.append((label, plan.twin_step(step, variant[2], partition)))
            others = []
            for peer in alongside.get(subject, ()):
                place = (subject + peer.suffix, number, variant, sweep, order, partition)
                others.append((label, peer.step(plan.netpipe_step(*place, peer.srun))))
                order += 1
            steps += own + others if number % 2 else others + own
        rounds.append(steps)
    return rounds


def imb_rounds(
    asked: Sequence[FurtherCase],
    whole: Iterable[tuple],
    around: Iterable[tuple],
    srun: Sequence[str],
    seed: int,
    partition: Partition,
    ranks: int,
    peers: Sequence[PeerEnvironment] = (),
) -> list[list[tuple[str, Step]]]:
    """Return the steps of each round for IMB on a job's ``ranks``, as ``netpipe_rounds``."""
    most = max(one.rounds() for one in asked)
    rounds: list[list[list[tuple[str, Step]]]] = [[] for _ in range(most)]
    for keys, suffix in ((set(whole), ""), (set(around), DENSE)):
        for one in asked:
            if one.case.key() not in keys:
                continue
            label = one.step + suffix
            function = registry.function_of(one.case)
            place = ([function], ranks, one.rounds(), partition)
            together: dict[int, list[tuple[str, Step]]] = defaultdict(list)
            # A launch around flagged sizes may take several calls of the benchmark.
            for subject, sizes in one.dense() if suffix else ((one.step, None),):
                behind = subject.removeprefix(one.step)
                steps = plan.function_steps(*place, srun, seed, suffix=behind, sizes=sizes)
                for step in steps:
                    # The twin runs before it, since the compared environments run after it.
                    alongside = () if suffix else plan.twin_of(step, function, ranks, partition)
                    together[step.launch] += [(label, one) for one in (*alongside, step)]
            for peer in peers if not suffix else ():
                if peer.name not in one.paired:
                    continue
                for step in plan.function_steps(*place, peer.srun, seed, suffix=peer.suffix):
                    together[step.launch].append((label, peer.step(step)))
            for number, steps in together.items():
                rounds[number - 1].append(steps if number % 2 else steps[::-1])
    shuffle = random.Random(seed)
    for units in rounds:
        shuffle.shuffle(units)
    return [[step for unit in units for step in unit] for units in rounds]


def imb_files(
    asked: Sequence[FurtherCase],
    whole: Iterable[tuple],
    around: Iterable[tuple],
    peers: Sequence[PeerEnvironment] = (),
) -> dict[str, str]:
    """Return name to text of the message size lists that the steps of ``imb_rounds`` need."""
    whole_keys, around_keys = set(whole), set(around)
    sizes: dict[str, Sequence[int]] = {}
    for one in asked:
        curve = one.subject.measured.curve
        if one.case.key() in whole_keys and curve.sizes != (0,):
            sizes[one.step] = curve.sizes
            here = [peer for peer in peers if peer.name in one.paired]
            sizes |= {one.step + peer.suffix: curve.sizes for peer in here}
        if one.case.key() in around_keys:
            sizes |= dict(one.dense())
    return plan.size_files(sizes)


def decisions(asked: Sequence[FurtherCase], rounds: int, folder: Path) -> dict[int, str]:
    """Return the shell text that closes decided cases, by the round after which it runs.

    Fewer rounds than confirming takes close nothing. If all cases are compared with repeats of
    other jobs, all rounds are made, unless every launch was disturbed by then. The text does
    nothing on a node without netproof.
    """
    start = job_scripts.decider("netproof.run.further", folder)
    first = min((one.subject.settings.confirm.launches for one in asked), default=1)
    last = first if all(one.elsewhere for one in asked) else rounds
    # It starts between two rounds, where it disturbs no launch, and once.
    return {number: f"{start}\ndecide {number}" for number in range(first, last + 1)}
