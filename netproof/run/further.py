"""Repeat launches until every judged quantity is decided: what to launch, results, when to stop.

After a job's first launches a judged quantity may lie outside its bound, or its interval may
contain the bound. Then a repeat job on the same nodes launches those cases in rounds: whole
curves, and the sizes around those that a criterion flagged. After each round its script asks this
module, which reads the results and closes what is decided. If a node cannot run it, all rounds are
made.
"""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from netproof.errors import NetproofError
from netproof.intake import json_reading
from netproof.measurement.case import Case
from netproof.measurement.curve import Curve
from netproof.measurement.disturbance import others_share
from netproof.run.answering import answer
from netproof.run.deciding import undecided
from netproof.run.further_cases import DENSE, Done, FurtherCase
from netproof.run.further_rounds import environments
from netproof.session import again, job_files, plan
from netproof.session.again import MeasuredAgain
from netproof.session.job_files import Incomplete, StepRecord
from netproof.session.measured import Crash, Launch, Peer
from netproof.session.session import MEASURED_FORMAT
from netproof.site.partition import Partition

QUESTION_FILE = "question.json"
"""The undecided cases, in the repeat job's folder."""

CLOSED_FILE = "closed.txt"
"""Labels of decided cases, which are launched no more, a line each."""


def write_question(folder: Path, asked: Sequence[FurtherCase]) -> None:
    """Write the undecided cases into a repeat job's folder, for ``decide``."""
    document = {"format": MEASURED_FORMAT, "cases": [one.as_json() for one in asked]}
    (folder / QUESTION_FILE).write_text(json.dumps(document) + "\n")


def read(
    folder: Path,
    asked: FurtherCase,
    *,
    whole: bool,
    around: bool,
    jobid: str,
    running: bool = False,
    places: Sequence[str] = (),
) -> Done:
    """Return the results of a case in a repeat job's folder.

    ``running``: rounds to come are no fault. Launches skipped after the case was closed are no
    fault either. ``places``: the interleaved environments, as ``environments`` returns them.
    """
    case = asked.case
    reader = _reader(folder, case)
    try:
        recorded = job_files.records(folder)
    except Incomplete as error:
        none = MeasuredAgain(case, (), error.reasons, (), jobid) if around else None
        return Done(asked, (), none, error.reasons if whole else ())
    closed = _closed(folder)
    launches: list[Launch] = []
    faults: list[str] = []
    crashes: list[Crash] = []
    if whole:
        wanted = _made(asked, asked.step, recorded, closed, running=running)
        for number in wanted:
            step = f"{asked.step}.{number}"
            crashes += job_files.crashes(folder, step, number, recorded)
            try:
                launch = job_files.read_launch(
                    folder,
                    step,
                    number,
                    recorded,
                    case,
                    asked.subject.measured.curve.sizes,
                    reader,
                )
                partition = Partition.model_validate(asked.extras)
                launch = job_files.with_twin(launch, folder, step, case, partition, recorded)
                job_files.insist_on_pace(launch, folder, step, case, partition)
                launch = _with_peers(launch, folder, asked, recorded, places, partition)
                launches.append(dataclasses.replace(launch, further=True))
            except Incomplete as error:
                faults += error.reasons
            except (NetproofError, OSError) as error:
                faults.append(str(error))
    measured_again = None
    if around:
        parts = asked.dense()
        label = asked.step + DENSE
        wanted = _made(asked, label, recorded, closed, parts[-1][0], running=running)
        measured_again = again.read(folder, case, parts, wanted, reader, jobid=jobid)
    return Done(asked, tuple(launches), measured_again, tuple(faults), tuple(crashes))


def _with_peers(
    launch: Launch,
    folder: Path,
    asked: FurtherCase,
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
        case = dataclasses.replace(asked.case, environment=name)
        step = f"{asked.step}{plan.peer_suffix(places.index(name))}.{launch.number}"
        sizes, reader = launch.curve.sizes, _reader(folder, case)
        alongside = job_files.read_launch(
            folder, step, launch.number, recorded, case, sizes, reader
        )
        job_files.insist_on_pace(alongside, folder, step, case, partition)
        crashed = job_files.crashes(folder, step, launch.number, recorded)
        peers.append(Peer(name, alongside.curve, crashed, alongside.counters))
        loads.append(alongside.loads)
        paces += alongside.paces
    noisiest = max(loads, key=others_share)
    return dataclasses.replace(launch, peers=tuple(peers), loads=noisiest, paces=tuple(paces))


def _made(
    asked: FurtherCase,
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


def _reader(folder: Path, case: Case) -> Callable[[str], Curve]:
    return job_files.reader(folder, case)


def _closed(folder: Path) -> set[str]:
    path = folder / CLOSED_FILE
    return set(path.read_text().split("\n")) - {""} if path.exists() else set()


def decide(folder: Path) -> None:
    """Close the cases that the job in ``folder`` has decided so far.

    Raises NetproofError, OSError and other errors of damaged files; the rounds go on then.
    """
    document = json_reading.json_file(folder / QUESTION_FILE)
    asked = [FurtherCase.from_json(values) for values in document["cases"]]
    jobid = os.environ["SLURM_JOB_ID"]
    places = environments(asked)
    done = [
        read(
            folder,
            one,
            whole=True,
            around=bool(one.dense()),
            jobid=jobid,
            running=True,
            places=places,
        )
        for one in asked
    ]
    still = undecided(done)
    lines = []
    for one in asked:
        key = one.case.key()
        if key not in still.whole:
            lines.append(one.step)
        if key not in still.around:
            lines.append(one.step + DENSE)
    (folder / CLOSED_FILE).write_text("".join(f"{line}\n" for line in lines))


if __name__ == "__main__":
    of_job = Path(sys.argv[1])
    answer(lambda _: decide(of_job))
