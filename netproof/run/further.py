"""Launching on until what is judged is decided: what to launch, what came of it, when to stop.

The first launches of a job may leave a judged quantity beyond its bound, or its interval astride
it. Then a further job on the same nodes launches those cases again in rounds: whole, and around
the sizes that a criterion flagged. After each round the job's script starts this module, which
reads what is there and closes what is decided. Where a node cannot run it, all rounds are made.
"""

from __future__ import annotations

import dataclasses
import json
import os
import random
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from netproof.benchmarks.catalogue import imb_function
from netproof.criteria import Finding, Level
from netproof.errors import NetproofError
from netproof.intake import loading
from netproof.measurement.case import Case
from netproof.measurement.curve import Curve
from netproof.session import again, measured, plan
from netproof.session.again import MeasuredAgain
from netproof.session.measured import Crash, Incomplete, Launch, Measured, StepRecord
from netproof.session.plan import Step
from netproof.session.session import MEASURED_FORMAT
from netproof.site.site import Partition, ScoreBaseline
from netproof.verdict import confirming, judgement, limits
from netproof.verdict.judgement import Ruling, Subject
from netproof.verdict.limits import Limits

QUESTION_FILE = "question.json"
"""What the first launches left undecided, in the further job's folder."""

CLOSED_FILE = "closed.txt"
"""The labels of what is decided and launched no more, a line each."""

AGAINST = (Level.FAIL, Level.INCONCLUSIVE)
"""What a ruling has to be for its case to be measured further."""

DENSE = "-dense"
"""What the subjects of IMB's launches around flagged sizes end with."""


@dataclass(frozen=True)
class FurtherCase:
    """A case that may be measured further, as its first launches have it.

    ``limits``: of its references; ``extras``: of its partition, for the further job itself;
    ``peers``: the cases of other configurations that it is compared with, where that is what
    is asked; ``baseline``: the configuration that their scores are relative to.
    """

    subject: Subject
    limits: Mapping[str, Limits]
    extras: Mapping[str, Any]
    peers: tuple[Subject, ...] = ()
    baseline: ScoreBaseline | None = None

    @property
    def case(self) -> Case:
        """The case."""
        return self.subject.case

    @property
    def step(self) -> str:
        """Subject of the steps that launch its whole curve."""
        case = self.case
        if case.benchmark == "netpipe":
            return plan.netpipe_subject(case.function, case.path, case.direction)
        return case.function

    def flags(self) -> tuple[Finding, ...]:
        """What is to be measured again around its size."""
        return judgement.flagged(judgement.smoothness(self.subject))

    def sweeps(self) -> tuple[plan.Sweep, ...]:
        """The calls of NetPIPE that make one launch around the flagged sizes."""
        return again.netpipe_sweeps(self.flags(), self.subject.confirm_settings())

    def dense(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """The steps that make one launch around the flagged sizes, each with its sizes in bytes."""
        if not self.flags():
            return ()
        if self.case.benchmark == "netpipe":
            sweeps = self.sweeps()
            return tuple((plan.sweep_subject(self.step, one), one.sizes()) for one in sweeps)
        return ((self.step + DENSE, judgement.dense_sizes(self.subject, self.flags())),)

    def rounds(self) -> int:
        """How many further launches there may be."""
        confirm = self.subject.settings.confirm
        return max(confirm.most_launches - len(self.subject.measured.launches), confirm.launches)

    def as_json(self) -> dict[str, Any]:
        """Plain values for ``json``; a bound that is not there is None."""
        ends = {
            name: [_finite(limit.low), _finite(limit.high)] for name, limit in self.limits.items()
        }
        return {
            "measured": self.subject.measured.as_json(),
            "known": dict(self.subject.known),
            "limits": ends,
            "extras": dict(self.extras),
            "peers": [_peer(one) for one in self.peers],
            "baseline": None if self.baseline is None else dataclasses.asdict(self.baseline),
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> FurtherCase:
        """Of the plain values that ``as_json`` gave."""
        found = {
            name: Limits(
                -float("inf") if low is None else low, float("inf") if high is None else high
            )
            for name, (low, high) in values["limits"].items()
        }
        subject = Subject.of_extras(
            Measured.from_json(values["measured"]), values["extras"], values["known"]
        )
        peers = tuple(
            dataclasses.replace(
                Subject.of_extras(
                    Measured.from_json(peer["measured"]),
                    {**values["extras"], "link_mbit_s": peer["link"][0], "mtu": peer["link"][1]},
                    peer["known"],
                ),
                switch=peer["switch"],
            )
            for peer in values["peers"]
        )
        named = values["baseline"]
        baseline = None if named is None else ScoreBaseline(**named)
        return cls(subject, found, values["extras"], peers, baseline)


@dataclass(frozen=True)
class Done:
    """What a further job has measured of a case so far.

    ``launches``: of the whole curve, ``crashes`` the attempts at them that crashed; ``again``:
    around flagged sizes, None where none was asked for; ``faults``: why launches of the whole
    curve are not complete, a sentence each.
    """

    asked: FurtherCase
    launches: tuple[Launch, ...] = ()
    again: MeasuredAgain | None = None
    faults: tuple[str, ...] = ()
    crashes: tuple[Crash, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The case, its further launches, crashes and faults, as plain values for ``json``."""
        return {
            "case": dataclasses.asdict(self.asked.case),
            "launches": [
                dataclasses.asdict(launch, dict_factory=measured.plain) for launch in self.launches
            ],
            "crashes": [dataclasses.asdict(crash) for crash in self.crashes],
            "faults": list(self.faults),
        }

    def subject(self) -> Subject:
        """The case with its further launches."""
        subject = self.asked.subject
        if not self.launches:
            return subject
        whole = subject.measured.with_launches([*subject.measured.launches, *self.launches])
        return dataclasses.replace(subject, measured=whole)


@dataclass(frozen=True)
class Undecided:
    """What has to be launched on, by the case's key, each with why: whole, and around flags."""

    whole: dict[tuple, tuple[str, ...]] = field(default_factory=dict)
    around: dict[tuple, tuple[str, ...]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.whole or self.around)


def undecided(several: Sequence[Done]) -> Undecided:
    """What is not decided of the cases of one job.

    A quantity is decided when its interval lies within its bounds, or wholly beyond them, on
    launches that nothing disturbed; of a case that is launched on, after at least as many further
    launches as confirming takes. It is decided as well, and stays inconclusive, when by then
    something else ran beside every launch, or a healthy twin was too slow to tell anything by. A
    case that has failed by one quantity is decided as a whole. A flagged size is decided as
    ``confirming.settled`` says. What MPI loses is of two cases, and both are launched on.

    Where configurations are compared, every round is made: the interval is of both sides'
    launches, and the other side's are made by another job.
    """
    subjects = {done.asked.case.key(): done.subject() for done in several}
    found = Undecided()
    for done in several:
        key = done.asked.case.key()
        subject = subjects[key]
        other = subjects.get(judgement.other_protocol(subject.case))
        confirm = subject.settings.confirm
        enough = len(done.launches) >= confirm.launches
        if done.asked.peers:
            if len(done.launches) < done.asked.rounds() and not (
                enough and judgement.never_calm(subject)
            ):
                whys = _against(_comparing(subject, done.asked.peers, done.asked.baseline))
                if done.launches:
                    # What the others' launches will say is not known here.
                    whys = (f"{len(done.launches)} further launches of {subject} are made",)
                if whys:
                    found.whole[key] = whys
            continue
        if failed(done, other):
            continue
        flags = done.asked.flags()
        if flags and not confirming.settled(subject, flags, done.again, done.asked.rounds()):
            found.around[key] = tuple(flag.why for flag in flags)
        if len(done.launches) >= done.asked.rounds():
            continue
        if done.launches and not enough:
            found.whole[key] = (
                *found.whole.get(key, ()),
                f"{len(done.launches)} further launches of {subject} are made",
            )
            continue
        for name, ruling in _of_whole(done, other):
            if ruling.level not in AGAINST:
                continue
            of_both = ruling.finding.criterion.startswith("MPI loss") and other is not None
            sides = (subject, other) if of_both else (subject,)
            in_vain = any(map(judgement.never_calm, sides)) or (
                name == "twin_share" and limits.twin_too_slow(subject.measured)
            )
            if enough and in_vain:
                continue
            for one in sides:
                of_one = one.case.key()
                found.whole[of_one] = (*found.whole.get(of_one, ()), ruling.why)
    return found


def failed(done: Done, other: Subject | None, *, ended: bool = False) -> bool:
    """Whether a case has failed by what is judged of it alone, whatever more launches would say.

    ``other``: of NetPIPE over MPI, the case over TCP, where that is complete; ``ended``: its
    launches are all made.
    """
    subject = done.subject()
    most = 0 if ended else done.asked.rounds()
    if confirming.failed(subject, done.asked.flags(), done.again, most):
        return True
    further = sum(launch.further for launch in subject.measured.launches)
    # What is undefined may be defined by more launches.
    return further >= subject.settings.confirm.launches and any(
        ruling.level is Level.FAIL and ruling.finding.level is Level.FAIL
        for _, ruling in _of_whole(done, other)
    )


def _of_whole(done: Done, other: Subject | None) -> list[tuple[str, Ruling]]:
    """The rulings on what is judged by all launches of a whole curve, with a reference's name."""
    subject = done.subject()
    findings = [("", finding) for finding in judgement.rates(subject, other)]
    findings += judgement.references(subject, done.asked.limits).items()
    return [(name, judgement.rule(subject, finding, None)) for name, finding in findings]


def _against(rulings: Sequence[Ruling]) -> tuple[str, ...]:
    return tuple(ruling.why for ruling in rulings if ruling.level in AGAINST)


def _comparing(
    subject: Subject, peers: Sequence[Subject], baseline: ScoreBaseline | None
) -> list[Ruling]:
    """The rulings that a case has a part in, on either side: sizes of the envelope, and scores."""
    label, members = str(subject), [subject, *peers]
    rulings = [ruling for several in judgement.envelopes(members).values() for ruling in several]
    if baseline is not None:
        rulings += [
            ruling
            for several in judgement.across(members, baseline).values()
            for ruling in several
            if ruling.finding.criterion == "score"
        ]
    return [ruling for ruling in rulings if label in (ruling.finding.where, ruling.finding.against)]


def compared(
    everyone: Sequence[Done], own: Sequence[FurtherCase], baseline: ScoreBaseline | None
) -> list[FurtherCase]:
    """Those of a job's ``own`` cases that comparing configurations leaves undecided.

    They are flagged themselves, or another case is in comparison with them. Each comes with those
    of ``everyone`` that it is compared with. What is flagged of a case that has failed by itself
    asks for nothing. ``baseline``: what scores are relative to.
    """
    by_key = {done.asked.case.key(): done.asked.subject for done in everyone}
    red = {
        str(done.asked.subject)
        for done in everyone
        if failed(done, by_key.get(judgement.other_protocol(done.asked.case)), ended=True)
    }
    groups: dict[tuple, list[Subject]] = {}
    for subject in by_key.values():
        if subject.measured.curve.sizes != (0,):
            groups.setdefault(judgement.group(subject.case), []).append(subject)
    found = []
    for one in own:
        key = one.case.key()
        members = groups.get(judgement.group(one.case), [])
        peers = tuple(member for member in members if member.case.key() != key)
        if not peers:
            continue
        rulings = _comparing(one.subject, peers, baseline)
        if any(ruling.level in AGAINST and ruling.finding.where not in red for ruling in rulings):
            found.append(dataclasses.replace(one, peers=peers, baseline=baseline))
    return found


def netpipe_rounds(
    asked: Sequence[FurtherCase],
    whole: Iterable[tuple],
    around: Iterable[tuple],
    srun: Sequence[str],
    seed: int,
    partition: Partition,
) -> list[list[tuple[str, Step]]]:
    """The steps of each round for cases of NetPIPE, each with the label that closes it.

    ``whole`` and ``around``: the keys of the cases to launch so. In a round, TCP and MPI of one
    path and direction take turns, and the rest is shuffled by ``seed``.
    """
    whole, around = set(whole), set(around)
    shuffle = random.Random(seed)
    rounds: list[list[tuple[str, Step]]] = []
    order = 0
    for number in range(1, max(one.rounds() for one in asked) + 1):
        units: dict[tuple, list[tuple[str, str, tuple, plan.Sweep]]] = {}
        for one in asked:
            case, key = one.case, one.case.key()
            variant = (case.function, case.path, case.direction)
            if number > one.rounds():
                continue
            if key in whole:
                sweep = plan.Sweep(1, partition.max_message_bytes, 0)
                units.setdefault(variant[1:], []).append((one.step, one.step, variant, sweep))
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
            steps.append((label, step))
            order += 1
            if not label.endswith(DENSE) and plan.has_twin(partition, "netpipe", variant[1]):
                steps.append((label, plan.twin_step(step, variant[2], partition)))
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
) -> list[list[tuple[str, Step]]]:
    """The steps of each round for functions of IMB on a job's ``ranks``, as ``netpipe_rounds``."""
    most = max(one.rounds() for one in asked)
    rounds: list[list[tuple[str, Step]]] = [[] for _ in range(most)]
    for keys, suffix in ((set(whole), ""), (set(around), DENSE)):
        for one in asked:
            if one.case.key() not in keys:
                continue
            function = imb_function(one.case.function)
            for step in plan.imb_steps(
                [function], ranks, one.rounds(), partition, srun, seed, suffix=suffix
            ):
                rounds[step.launch - 1].append((one.step + suffix, step))
    shuffle = random.Random(seed)
    for steps in rounds:
        shuffle.shuffle(steps)
    return rounds


def imb_files(
    asked: Sequence[FurtherCase], whole: Iterable[tuple], around: Iterable[tuple]
) -> dict[str, str]:
    """Name to text of the lists of message sizes that the steps of ``imb_rounds`` need."""
    whole_keys, around_keys = set(whole), set(around)
    sizes: dict[str, Sequence[int]] = {}
    for one in asked:
        curve = one.subject.measured.curve
        if one.case.key() in whole_keys and curve.sizes != (0,):
            sizes[one.step] = curve.sizes
        if one.case.key() in around_keys:
            sizes |= dict(one.dense())
    return plan.imb_size_files(sizes)


def decisions(asked: Sequence[FurtherCase], rounds: int, folder: Path) -> dict[int, str]:
    """Shell text that closes what is decided, by the round after which there is something to say.

    Fewer rounds than confirming takes close nothing; and where configurations are compared, all
    of them are made, unless by then something else ran beside every launch. The text does nothing
    where the node has no netproof.
    """
    text = (
        f"decide {plan.quoted(sys.executable)} -m netproof.run.further {plan.quoted(str(folder))}"
    )
    first = min((one.subject.settings.confirm.launches for one in asked), default=1)
    last = first if any(one.peers for one in asked) else rounds
    return dict.fromkeys(range(first, last + 1), text)


def write_question(folder: Path, asked: Sequence[FurtherCase]) -> None:
    """Leave in a further job's folder what ``decide`` has to know."""
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
) -> Done:
    """What a further job's folder has of a case; ``running``: rounds to come are no fault.

    A launch that was not made since its case was closed is none either.
    """
    case = asked.case
    reader = _reader(folder, case)
    try:
        recorded = measured.records(folder)
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
            crashes += measured.crashes(folder, step, number, recorded)
            try:
                launch = measured.read_launch(
                    folder,
                    step,
                    number,
                    recorded,
                    case,
                    asked.subject.measured.curve.sizes,
                    reader,
                )
                partition = Partition.from_extras(asked.extras)
                launch = measured.with_twin(launch, folder, step, case, partition, recorded)
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


def _made(
    asked: FurtherCase,
    label: str,
    recorded: Mapping[str, StepRecord],
    closed: set[str],
    subject: str = "",
    *,
    running: bool,
) -> range:
    """Numbers of the launches that have to be there."""
    subject = subject or label
    if running or label in closed:
        number = 0
        while f"{subject}.{number + 1}" in recorded:
            number += 1
        return range(1, number + 1)
    return range(1, asked.rounds() + 1)


def _reader(folder: Path, case: Case) -> Callable[[str], Curve]:
    if case.benchmark == "netpipe":
        return measured.netpipe_reader(folder, case)
    return measured.imb_reader(folder, case)


def _closed(folder: Path) -> set[str]:
    path = folder / CLOSED_FILE
    return set(path.read_text().split("\n")) - {""} if path.exists() else set()


def _peer(subject: Subject) -> dict[str, Any]:
    return {
        "measured": subject.measured.as_json(),
        "known": dict(subject.known),
        "switch": subject.switch,
        "link": None if subject.link is None else [subject.link.mbit_s, subject.link.mtu],
    }


def _finite(end: float) -> float | None:
    return end if abs(end) < float("inf") else None


def decide(folder: Path) -> None:
    """Close what is decided, by what the job in ``folder`` has measured so far.

    Raises NetproofError, OSError and what else a damaged file leads to; the rounds go on then.
    """
    document = loading.json_file(folder / QUESTION_FILE)
    asked = [FurtherCase.from_json(values) for values in document["cases"]]
    jobid = os.environ["SLURM_JOB_ID"]
    done = [
        read(folder, one, whole=True, around=bool(one.flags()), jobid=jobid, running=True)
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
    decide(Path(sys.argv[1]))
