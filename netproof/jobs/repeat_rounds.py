"""A repeat job: the steps of its rounds, their results, and when it stops.

After a job's first launches a judged quantity may lie outside its bound, or its interval may
contain the bound. Then a repeat job on the same nodes launches those cases in rounds: whole
curves, and the sizes around those that a criterion flagged. After each round it reads the results
and closes what is decided.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from netproof.benchmarks import registry
from netproof.errors import NetproofError
from netproof.jobs import launches
from netproof.jobs.job import RunningJob
from netproof.jobs.repeat_cases import DENSE, RepeatCase, undecided
from netproof.measurement.disturbance import others_share
from netproof.session import again, job_files, plan
from netproof.session.again import MeasuredAgain
from netproof.session.job_files import Incomplete, JobReport, StepRecord
from netproof.session.measured import Crash, Launch, Peer
from netproof.session.plan import PeerEnvironment, Step
from netproof.site.partition import Partition


def environments(asked: Iterable[RepeatCase]) -> tuple[str, ...]:
    """Return the environments that cases of a job are interleaved with, in order of place."""
    return tuple(sorted({name for one in asked for name in one.paired}))


def netpipe_rounds(
    asked: Sequence[RepeatCase],
    srun: Sequence[str],
    seed: int,
    partition: Partition,
    peers: Sequence[PeerEnvironment] = (),
) -> list[list[Step]]:
    """Return the steps of each round for cases of NetPIPE, each with the label that closes it.

    In a round, TCP and MPI of one path and direction alternate, and the rest is shuffled by
    ``seed``. ``peers``: environments interleaved with launches of whole curves, before them in
    every other round.
    """
    shuffle = random.Random(seed)
    rounds: list[list[Step]] = []
    for number in range(1, max(one.rounds() for one in asked) + 1):
        units: dict[tuple, list[tuple[str, str, tuple, plan.SizeSweep]]] = {}
        paired: dict[str, list[PeerEnvironment]] = {}
        for one in asked:
            case = one.case
            variant = (case.function, case.path, case.direction)
            if number > one.rounds():
                continue
            if one.whole:
                sweep = plan.whole_sweep(partition)
                units.setdefault(variant[1:], []).append((one.step, one.step, variant, sweep))
                paired[one.step] = [peer for peer in peers if peer.name in one.paired]
            if one.around:
                units[(one.key,)] = [
                    (f"{one.step}{DENSE}", plan.sweep_subject(one.step, sweep), variant, sweep)
                    for sweep in one.sweeps()
                ]
        steps: list[Step] = []
        shuffled = list(units.values())
        shuffle.shuffle(shuffled)
        for label, subject, variant, sweep in (part for unit in shuffled for part in unit):
            place = (number, variant, sweep, partition)
            step = replace(plan.netpipe_step(subject, *place, srun), label=label)
            own = [step]
            ranks_per_node = 1 if variant[1] == "inter-node" else 2
            if not label.endswith(DENSE) and plan.has_twin(partition, ranks_per_node):
                own.append(plan.twin_step(step, variant[2], partition))
            others = [
                replace(
                    peer.step(plan.netpipe_step(subject + peer.suffix, *place, peer.srun)),
                    label=label,
                )
                for peer in paired.get(subject, ())
            ]
            steps += own + others if number % 2 else others + own
        rounds.append(steps)
    return rounds


def imb_rounds(
    asked: Sequence[RepeatCase],
    srun: Sequence[str],
    seed: int,
    partition: Partition,
    ranks: int,
    peers: Sequence[PeerEnvironment] = (),
) -> list[list[Step]]:
    """Return the steps of each round for IMB on a job's ``ranks``, as ``netpipe_rounds``."""
    most = max(one.rounds() for one in asked)
    rounds: list[list[list[Step]]] = [[] for _ in range(most)]
    for suffix in ("", DENSE):
        for one in asked:
            if not (one.around if suffix else one.whole):
                continue
            label = one.step + suffix
            function = registry.function_of(one.case)
            place = ([function], ranks, one.rounds(), partition)
            together: dict[int, list[Step]] = defaultdict(list)
            # A launch around flagged sizes may take several calls of the benchmark.
            for subject, sizes in one.dense() if suffix else ((one.step, None),):
                behind = subject.removeprefix(one.step)
                steps = plan.function_steps(*place, srun, seed, suffix=behind, sizes=sizes)
                for step in steps:
                    # The twin runs before it, since the compared environments run after it.
                    twins = () if suffix else plan.twin_of(step, function, ranks, partition)
                    together[step.launch] += [replace(one, label=label) for one in (*twins, step)]
            for peer in peers if not suffix else ():
                if peer.name not in one.paired:
                    continue
                for step in plan.function_steps(*place, peer.srun, seed, suffix=peer.suffix):
                    together[step.launch].append(replace(peer.step(step), label=label))
            for number, steps in together.items():
                rounds[number - 1].append(steps if number % 2 else steps[::-1])
    shuffle = random.Random(seed)
    for units in rounds:
        shuffle.shuffle(units)
    return [[step for unit in units for step in unit] for units in rounds]


def imb_files(asked: Sequence[RepeatCase], peers: Sequence[PeerEnvironment] = ()) -> dict[str, str]:
    """Return name to text of the message size lists that the steps of ``imb_rounds`` need."""
    sizes: dict[str, Sequence[int]] = {}
    for one in asked:
        curve = one.subject.measured.curve
        if one.whole and curve.sizes != (0,):
            sizes[one.step] = curve.sizes
            here = [peer for peer in peers if peer.name in one.paired]
            sizes |= {one.step + peer.suffix: curve.sizes for peer in here}
        if one.around:
            sizes |= dict(one.dense())
    return plan.size_files(sizes)


def read(
    folder: Path,
    asked: RepeatCase,
    *,
    jobid: str,
    running: bool = False,
    places: Sequence[str] = (),
) -> RepeatCase:
    """Return a case with its results in a repeat job's folder.

    ``running``: rounds to come are no fault. Launches skipped after the case was closed are no
    fault either. ``places``: the interleaved environments, as ``environments`` returns them.
    """
    case = asked.case
    reader = job_files.reader(folder, case)
    try:
        recorded = job_files.records(folder)
    except Incomplete as error:
        none = MeasuredAgain(case, (), error.reasons, (), jobid) if asked.around else None
        faults = error.reasons if asked.whole else ()
        return replace(asked, again=none, faults=faults)
    try:
        closed = set() if running else set(JobReport.read(folder).closed)
    except (NetproofError, OSError):
        # It was ended before it could leave one.
        closed = set()
    partition = Partition.model_validate(asked.extras)
    launches: list[Launch] = []
    faults: list[str] = []
    crashes: list[Crash] = []
    if asked.whole:
        wanted = _made(asked, asked.step, recorded, closed, running=running)
        for number in wanted:
            step = f"{asked.step}.{number}"
            crashes += job_files.crashes(folder, step, number, recorded)
            try:
                sizes = asked.subject.measured.curve.sizes
                launch = job_files.read_launch(folder, step, number, recorded, case, sizes, reader)
                launch = job_files.with_twin(launch, folder, step, case, partition, recorded)
                job_files.insist_on_pace(launch, folder, step, case, partition)
                launch = _with_peers(launch, folder, asked, recorded, places, partition)
                launches.append(replace(launch, further=True))
            except Incomplete as error:
                faults += error.reasons
            except (NetproofError, OSError) as error:
                faults.append(str(error))
    measured_again = None
    if asked.around:
        parts = asked.dense()
        label = asked.step + DENSE
        wanted = _made(asked, label, recorded, closed, parts[-1][0], running=running)
        measured_again = again.read(folder, case, parts, wanted, reader, jobid=jobid)
    return replace(
        asked,
        launches=tuple(launches),
        again=measured_again,
        faults=tuple(faults),
        crashes=tuple(crashes),
    )


def _with_peers(
    launch: Launch,
    folder: Path,
    asked: RepeatCase,
    recorded: Mapping[str, StepRecord],
    places: Sequence[str],
    partition: Partition,
) -> Launch:
    """Return a launch with those interleaved with it in other environments.

    Its loads are those of the most disturbed one. Raises Incomplete if one of them is not complete,
    ParseError and OSError.
    """
    peers, loads, paces = [], [launch.loads], list(launch.paces)
    for name in asked.paired:
        case = replace(asked.case, environment=name)
        step = f"{asked.step}{plan.peer_suffix(places.index(name))}.{launch.number}"
        sizes, reader = launch.curve.sizes, job_files.reader(folder, case)
        paired = job_files.read_launch(folder, step, launch.number, recorded, case, sizes, reader)
        job_files.insist_on_pace(paired, folder, step, case, partition)
        crashed = job_files.crashes(folder, step, launch.number, recorded)
        peers.append(Peer(name, paired.curve, crashed, paired.counters))
        loads.append(paired.loads)
        paces += paired.paces
    noisiest = max(loads, key=others_share)
    return replace(launch, peers=tuple(peers), loads=noisiest, paces=tuple(paces))


def _made(
    asked: RepeatCase,
    label: str,
    recorded: Mapping[str, StepRecord],
    closed: set[str],
    subject: str = "",
    *,
    running: bool,
) -> range:
    """Return the numbers of the launches that have to be there."""
    subject = subject or label
    if running or label in closed:
        number = 0
        while f"{subject}.{number + 1}" in recorded:
            number += 1
        return range(1, number + 1)
    return range(1, asked.rounds() + 1)


def decided(folder: Path, asked: Sequence[RepeatCase], jobid: str) -> set[str]:
    """Return the labels of what the job in ``folder`` has decided so far.

    Raises NetproofError, OSError and other errors of damaged files.
    """
    places = environments(asked)
    every = [replace(one, whole=True, around=bool(one.dense())) for one in asked]
    still = undecided(
        [read(folder, one, jobid=jobid, running=True, places=places) for one in every]
    )
    labels = {one.step for one in still if not one.whole}
    return labels | {one.step + DENSE for one in still if not one.around}


def run(job: RunningJob) -> None:
    """Launch the rounds of the plan until every case that it asks for is decided.

    Fewer rounds than confirming takes close nothing. If all cases are compared with repeats of
    other jobs, all rounds are made, unless every launch was disturbed by then.
    """
    asked = [RepeatCase.from_json(values) for values in job.plan.asked]
    first = min((one.subject.settings.confirm.launches for one in asked), default=1)
    last = first if all(one.elsewhere for one in asked) else len(job.plan.rounds)

    def decide(number: int) -> Collection[str]:
        return decided(job.folder, asked, job.jobid) if first <= number <= last else job.closed

    launches.run(job, decide)
