"""Evaluate netproof on the testbed by plants.yaml: what is planted where, and the right answer.

An evaluation is a folder. Its settings and all planned runs are written when it begins, and each
run has a folder with its result, so that an interrupted one can resume.
"""

from __future__ import annotations

import dataclasses
import json
import os
import random
import re
import shutil
import tempfile
import textwrap
import time
from argparse import _ArgumentGroup
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from ci.evaluation import load as loads
from ci.evaluation import testbed as machine
from ci.evaluation.testbed import ROOT, CannotRunError, Testbed, TooLongError, now
from ci.testbed import topology_reading
from ci.testbed.faults import NODE
from netproof import codec
from netproof.commands import reframe
from netproof.commands.sessions import PAIRS
from netproof.errors import NetproofError
from netproof.intake import disk

TABLE = Path(__file__).with_name("plants.yaml")
CAMPAIGN_FILE, RESULT_FILE, REPORT = "campaign.json", "result.json", "run-0.json"
SENTENCE = 200
"""Longest sentence in characters; the rest is cut."""
HEALTHY = "healthy"
RUNS = "runs"
"""Option that counts the runs of each fault."""
SILENT = "nothing was found"
DERIVED_LAUNCHES = 3


class Grade(StrEnum):
    """Grade of an answer; each evaluation has some of them, and says what they mean there."""

    GREEN = "green"
    RED = "red"
    RIGHT = "right"
    HALF = "half right"
    OTHERWISE = "red otherwise"
    WRONG = "wrong"
    MISSED = "missed"
    INCONCLUSIVE = "inconclusive"
    FALSE = "false"
    NOT_JUDGED = "not judged"


_topology = cache(topology_reading.load)


@dataclass(frozen=True, kw_only=True)
class Plant:
    """A row of plants.yaml: what is planted where, and the right answer.

    ``said``: in words; ``counted``: the option that says how many runs it has; ``topology``: file
    of the testbed, below the checkout; ``load``: program that runs alongside; ``place``: kind of
    place of ``switch``, one drawn by the diagnoses, and all of them by others; ``faults``: keys and
    values for ``testbed plant``; ``seconds``: duration of a temporary fault; ``environments``: one,
    drawn, is measured, or all ``together``, by default those with IMB; ``variables``: planted
    settings of its library, by environment; ``slow``: time that slow_mpi.c adds to calls instead,
    where ``{latency_us}`` is their latency, only in ``program`` and not where the variable
    ``unless`` has the ``best`` value; ``checks``: pattern for ReFrame's ``-n``, empty for all. The
    aim: of ``least_runs`` judged ones a share of ``least_good`` has a grade of ``good``, the first
    of which is as it should be, and one of ``most_inconclusive`` at most is inconclusive.

    Diagnoses: ``causes`` are right, ``wider`` ones less precise; ``misleads``: MPI is set to the
    management network. Verdicts: a case of this ``benchmark``, ``function``, any if empty, and path
    inter-node has to fail by a sentence that names a size of ``sizes``, least and most in bytes;
    ``derived``: by references of the campaign's healthy runs. Sweeps: options of ``netproof measure
    tune``, or of algorithms of IMB's ``function`` on two ranks; ``best``: the right values, empty
    if nothing may be recommended; ``steps``: whether each value shows as a step of its curve is
    judged, and not the recommendation.
    """

    said: str
    counted: str = RUNS
    topology: str = "ci/testbed/topology.yaml"
    switch: str = "gige"
    load: str = ""
    place: str = NODE
    faults: tuple[Mapping[str, Any], ...] = ({},)
    seconds: float | None = None
    environments: tuple[str, ...] = ("intelmpi", "mpich")
    together: bool = False
    variables: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    slow: str = ""
    program: str = ""
    unless: str = ""
    checks: str = ""
    least_runs: int = 10
    least_good: float = 0.9
    good: tuple[Grade, ...] = (Grade.RIGHT,)
    most_inconclusive: float = 1.0
    causes: tuple[str, ...] = ()
    wider: tuple[str, ...] = ()
    misleads: bool = False
    benchmark: str = "netpipe"
    function: str = ""
    sizes: tuple[int, int] = (0, 1 << 40)
    derived: bool = False
    parameter: str = ""
    values: tuple[str, ...] = ()
    protocol: str = "mpi"
    best: tuple[str, ...] = ()
    steps: bool = False

    def places(self) -> tuple[str, ...]:
        """Return where its fault can be planted, sorted."""
        several, where = _topology(ROOT / self.topology).places.items(), (self.place, self.switch)
        return tuple(sorted(name for name, (kind, on) in several if (kind, on.name) == where))

    def drawn(self, number: int, kind: str, seed: int, environments: tuple[str, ...]) -> Run:
        """Return a run with this plant's fault at each of its places."""
        (fault,) = self.faults
        places = self.places() if fault else ()
        return Run(number, kind, seed, environments, self.topology, self.switch, places, fault)

    def variables_in(
        self, environment: str, library: Path, latency_us: float | None = None
    ) -> Mapping[str, str]:
        """Return the variables planted in an environment; ``library``: slow_mpi.c, compiled."""
        if not self.slow:
            return self.variables.get(environment, {})
        unless = (self.unless, self.best[0]) if self.unless else None
        rules = self.slow.format(latency_us=latency_us)
        return machine.slower(library, rules, self.program, unless)


@cache
def plants(name: str) -> Mapping[str, Plant]:
    """Return an evaluation's rows of plants.yaml by their kind."""
    table = yaml.safe_load(TABLE.read_text())[name]
    return codec.decode(dict[str, Plant], table, f"{TABLE}: {name}")


def faults(name: str) -> Mapping[str, Plant]:
    """Return those of an evaluation's plants that ``--kinds`` selects."""
    return {kind: plant for kind, plant in plants(name).items() if plant.counted == RUNS}


@dataclass(frozen=True)
class Run:
    """One planned run, with its seed's choices; a fault is planted at each of ``places``."""

    number: int
    kind: str
    seed: int
    environments: tuple[str, ...]
    topology: str
    switch: str
    places: tuple[str, ...]
    fault: Mapping[str, Any]

    @property
    def folder(self) -> str:
        """Name of its folder in the evaluation's."""
        return f"{self.number:03}-{self.kind}"


@dataclass(frozen=True)
class Answer:
    """Grade of an answer, its sentences, and the criteria that named the fault."""

    found: Grade
    said: tuple[str, ...] = ()
    by: tuple[str, ...] = ()


def not_judged(reason: str) -> Answer:
    """Return the result of a run without an answer, with the reason."""
    return Answer(Grade.NOT_JUDGED, (short(reason),))


@dataclass(frozen=True)
class Result:
    """A run with its result.

    ``wall_s``: seconds to measure and judge it; ``before`` and ``after``: load averages over 1, 5
    and 15 minutes, () if it ended before; ``pressure_s``: seconds of the run in which a task waited
    for a CPU, None if the kernel has none; ``load_cpu_s``: CPU seconds of the load program.
    """

    run: Run
    judged: Answer
    started: str
    wall_s: float
    before: tuple[float, ...] = ()
    after: tuple[float, ...] = ()
    pressure_s: float | None = None
    load_cpu_s: float = 0.0


@dataclass(frozen=True)
class Campaign:
    """An evaluation's settings, its runs in order, its code's digest and its machine."""

    settings: Mapping[str, Any]
    runs: tuple[Run, ...]
    code: str
    machine: Mapping[str, Any]


class Evaluation:
    """Measurements, questions and expectations of a program's runs; plants.yaml has its table."""

    name = ""
    verb = "verdict"
    """The netproof command that answers."""
    grades: tuple[Grade, ...]
    """Grades of its answers, in the order of the table."""
    repeats_broken = True
    rejudges = True

    @property
    def plants(self) -> Mapping[str, Plant]:
        """All kinds of runs."""
        return plants(self.name)

    def add_settings(self, parser: _ArgumentGroup) -> None:
        """Add the options of a new evaluation besides counts and kinds."""

    def plan(self, settings: Mapping[str, Any]) -> tuple[Run, ...]:
        """Plan the runs in an order that ``seed`` draws, as it does all that is drawn."""
        drawn = numbered(random.Random(settings["seed"]), self.names(settings))
        return tuple(self.drawn(*one, settings) for one in drawn)

    def names(self, settings: Mapping[str, Any]) -> list[str]:
        """Return the selected kinds, each as often as it is to run."""
        return [
            name
            for name, plant in self.plants.items()
            if plant.counted != RUNS or name in settings["kinds"]
            for _ in range(settings[plant.counted.replace("-", "_")])
        ]

    def drawn(self, number: int, kind: str, seed: int, settings: Mapping[str, Any]) -> Run:
        """Return a run of a kind, with its fault at each place, and all that its seed draws."""
        plant = self.plants[kind]
        several = plant.environments
        if several and not plant.together:
            several = (random.Random(seed).choice(several),)
        return plant.drawn(number, kind, seed, several)

    def name_of(self, run: Run) -> str:
        """Describe a run in words."""
        return f"{self.plants[run.kind].said}, {' alongside '.join(run.environments)}"

    def prepare(self, folder: Path, runs: Sequence[Run]) -> None:
        """Make what these runs need, once. Raises CannotRunError if it cannot be made."""
        several = [self.plants[run.kind] for run in runs]
        if any(plant.slow for plant in several):
            machine.compiled_slow_mpi(folder)
        missing = loads.missing_packages()
        if missing and any(plant.load for plant in several):
            raise CannotRunError(
                f"a program alongside takes what is not here: apt-get install {' '.join(missing)}"
            )

    def begin_s(self, run: Run, settings: Mapping[str, Any]) -> float:
        """Return the seconds after the first launch after which a temporary fault begins."""
        return 0.0

    def site(self, run: Run, folder: Path) -> dict[str, str]:
        """Return variables for a run's site, which may have a fault. Raises CannotRunError."""
        return self.site_with(run, folder)

    def site_with(
        self, run: Run, folder: Path, alteration: str = "", latency_us: float | None = None
    ) -> dict[str, str]:
        """Return variables for a run's topology, and for its site with what is planted there."""
        for environment in run.environments[:1]:
            library = folder.parent / machine.LIBRARY
            set_in = self.plants[run.kind].variables_in(environment, library, latency_us)
            alteration = machine.with_variables(environment, set_in) + alteration
        altered = machine.altered_site(folder, alteration) if alteration else {}
        return {**altered, "NETPROOF_TOPOLOGY": str(ROOT / run.topology)}

    def system(self, run: Run, settings: Mapping[str, Any]) -> str:
        """Return the system, or its partition, that a run measures."""
        return f"testbed:{run.switch}"

    def reframe(self, run: Run, settings: Mapping[str, Any]) -> tuple[list[str], str] | None:
        """Return ReFrame's options and its checks; None if the question itself measures."""
        several, plant = "|".join(map(re.escape, run.environments)), self.plants[run.kind]
        options = ["--system", self.system(run, settings)]
        pairs, whole = settings.get("pairs"), settings.get("whole")
        if not (pairs or whole):
            # By one launch alone, a slow one would be the value of derived references.
            options += ["-S", f"launches={DERIVED_LAUNCHES if plant.derived else 1}"]
        options += ["-p", f"^({several})$"] if several else []
        options += ["-n", plant.checks] if plant.checks else []
        return options, PAIRS if pairs else ""

    def question(self, run: Run, settings: Mapping[str, Any], report: Path) -> list[str]:
        """Return the arguments of the netproof command that answers."""
        return [self.verb, str(report), self.system(run, settings)]

    def judge(self, run: Run, status: int, document: Any) -> Answer:
        """Grade an answer by exit status and document; one that contradicts itself is not judged.

        A document of another form than expected may raise what reading it raises.
        """
        raise NotImplementedError

    def without_document(self, status: int, errors: str) -> Answer:
        """Grade an answer that is no JSON."""
        said = " ".join(errors.split()) or "nothing else was said"
        return not_judged(f"netproof {self.verb} ended with {status} and left no JSON: {said}")

    def graded(self, run: Run, status: int, text: str, errors: str) -> Answer:
        """Grade an answer by exit status, output and errors."""
        try:
            document = json.loads(text)
        except ValueError:
            return self.without_document(status, errors)
        try:
            return self.judge(run, status, document)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            return not_judged(f"what netproof {self.verb} printed cannot be read: {error!r}")

    def missed(self, campaign: Campaign, results: Sequence[Result]) -> list[str]:
        """Return a sentence for each aim that was missed or that takes more runs."""
        sentences = []
        if len(results) < len(campaign.runs):
            sentences.append(f"{len(results)} of {len(campaign.runs)} runs were made")
        if broken := len(results) - len(self.counting(results)):
            sentences.append(f"{broken} runs were not judged; --resume makes them again")
        for kind, plant in self.plants.items():
            judged = [one.judged.found for one in self.counting(results) if one.run.kind == kind]
            runs, good = len(judged), sum(one in plant.good for one in judged)
            undecided = judged.count(Grade.INCONCLUSIVE)
            if runs < plant.least_runs:
                sentences.append(f"{plant.said}: {runs} of the {plant.least_runs} runs it takes")
            if good < plant.least_good * runs:
                sentences.append(f"{plant.said}: {good} of {runs} {' or '.join(plant.good)}")
            if undecided > plant.most_inconclusive * runs:
                sentences.append(f"{plant.said}: {undecided} of {runs} inconclusive")
        return sentences

    def counting(self, results: Sequence[Result]) -> list[Result]:
        """Return the results that count: a run that is to be repeated does not."""
        broken = Grade.NOT_JUDGED if self.repeats_broken else None
        return [one for one in results if one.judged.found is not broken]


def short(sentence: str) -> str:
    """Cut a sentence to SENTENCE characters at most."""
    return textwrap.shorten(sentence, SENTENCE, placeholder=" …")


def numbered(
    drawn: random.Random, kinds: list[str], first: Sequence[str] = ()
) -> Iterator[tuple[int, str, int]]:
    """Yield number, kind and seed of each run: ``first``, then ``kinds`` in a drawn order."""
    drawn.shuffle(kinds)
    for number, kind in enumerate([*first, *kinds], 1):
        yield number, kind, drawn.randrange(1, 2**31)


def begin(folder: Path, campaign: Campaign) -> None:
    """Write the plan. Raises CannotRunError if ``folder`` is not empty, or without runs."""
    if not campaign.runs:
        raise CannotRunError("no run was asked for")
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise CannotRunError(f"{folder}: is not empty; give --out another, or --resume this one")
    write(folder / CAMPAIGN_FILE, campaign)


def read(evaluation: Evaluation, folder: Path) -> tuple[Campaign, list[Result]]:
    """Return an evaluation's plan and the results of its finished runs, in their order.

    Raises NetproofError if the folder has none, or a file is damaged.
    """
    path = folder / CAMPAIGN_FILE
    campaign = codec.decode(Campaign, disk.json_file(path), str(path))
    results = []
    for run in campaign.runs:
        if run.kind not in evaluation.plants:
            raise CannotRunError(f"{path}: {run.kind!r} is no kind of run")
        if (file := folder / run.folder / RESULT_FILE).is_file():
            results.append(codec.decode(Result, disk.json_file(file), str(file)))
    return campaign, results


def write(path: Path, record: Campaign | Result) -> None:
    """Write a record whole or not at all."""
    disk.replace(path, json.dumps(codec.encode(record), indent=1) + "\n")


def go_on(evaluation: Evaluation, folder: Path) -> None:
    """Make the runs that have no result, and those not judged, and report each.

    Raises NetproofError if it cannot continue; finished runs stay.
    """
    at_work = f"{folder}: is being worked on by another process"
    with disk.locked(folder / "lock", f"process {os.getpid()}", at_work) as lock:
        campaign, results = read(evaluation, folder)
        if campaign.code != machine.code_digest():
            raise CannotRunError(
                f"{folder}: was begun with other code or configuration than is here now; runs of"
                " both are no one evaluation"
            )
        done = {one.run.number for one in evaluation.counting(results)}
        runs = [run for run in campaign.runs if run.number not in done]
        if not runs:
            return
        evaluation.prepare(folder, runs)
        testbed = Testbed(folder / "testbed.log")
        try:
            for run in runs:
                place = folder / run.folder
                # An interrupted run's files are not a result.
                shutil.rmtree(place, ignore_errors=True)
                place.mkdir()
                result = attempt(evaluation, run, campaign, testbed, place, lock)
                write(place / RESULT_FILE, result)
                said = " · ".join(result.judged.said) or SILENT
                print(f"  {result.judged.found}, {result.wall_s:.0f} s: {said}", flush=True)
        finally:
            testbed.restore()


def attempt(
    evaluation: Evaluation,
    run: Run,
    campaign: Campaign,
    testbed: Testbed,
    folder: Path,
    lock: int,
) -> Result:
    """Make one run in ``folder``. Raises CannotRunError if no run is possible at all."""
    settings, plant, started = campaign.settings, evaluation.plants[run.kind], now()
    result = Result(run, Answer(Grade.NOT_JUDGED), started, 0.0)
    begin_s = evaluation.begin_s(run, settings)
    try:
        testbed.up(ROOT / run.topology)
        # Wait before planting: a planted busy CPU is not noise.
        machine.wait_until_quiet(settings)
        with ExitStack() as stack:
            # A compiler that is killed may have just written there.
            scratch = stack.enter_context(
                tempfile.TemporaryDirectory(dir=folder, ignore_cleanup_errors=True)
            )
            load = None
            if plant.load:
                load = stack.enter_context(loads.running(plant.load, run.seed, Path(scratch)))
            result = dataclasses.replace(result, before=os.getloadavg())
            waited = machine.pressure_seconds()
            print(
                f"{run.number}/{len(campaign.runs)} {evaluation.name_of(run)}: load average"
                f" {', '.join(f'{one:.2f}' for one in result.before)}",
                flush=True,
            )
            stack.enter_context(
                machine.planted(
                    testbed, run.places, run.fault, seconds=plant.seconds, begin_s=begin_s
                )
            )
            begun = time.monotonic()
            try:
                with machine.limited(settings["run_limit"]):
                    judged = measure(evaluation, run, settings, folder, lock)
            finally:
                wall_s = time.monotonic() - begun
                result = dataclasses.replace(result, wall_s=wall_s, after=os.getloadavg())
            later = machine.pressure_seconds()
            waiting = None if None in (waited, later) else later - waited
            used = load.cpu_seconds() if load else 0.0
            result = dataclasses.replace(result, pressure_s=waiting, load_cpu_s=used)
            if load and not used:
                judged = not_judged("the program alongside the run used no CPU")
    except CannotRunError:
        raise
    except (NetproofError, TooLongError, OSError) as error:
        judged = not_judged(str(error))
        testbed.rebuild()  # Nothing of the failure may disturb the next run.
    return dataclasses.replace(result, judged=judged)


def measure(
    evaluation: Evaluation, run: Run, settings: Mapping[str, Any], folder: Path, lock: int
) -> Answer:
    """Run the project's checks, if the run takes any, and ask; the report stays in ``folder``.

    Raises NetproofError if ReFrame leaves no report or takes longer than a run may.
    """
    variables = evaluation.site(run, folder)
    if wanted := evaluation.reframe(run, settings):
        options, checks = wanted
        reframe.measure(
            [*options, "--exec-policy=serial", "-c", str(ROOT / "checks" / checks)],
            folder / REPORT,
            folder / "reframe.log",
            folder=folder,
            settings=variables,
            lock=[lock],
            patience_s=settings["run_limit"],
        )
    return ask(evaluation, run, settings, folder, "answer", variables)


def ask(
    evaluation: Evaluation,
    run: Run,
    settings: Mapping[str, Any],
    folder: Path,
    name: str,
    variables: Mapping[str, str],
) -> Answer:
    """Ask netproof, and grade its answer, which stays as ``name``.json and .err."""
    # No stored session may date a fault.
    ours = {key: value for key, value in os.environ.items() if key != "NETPROOF_STORE"}
    ran = machine.answered(
        [*evaluation.question(run, settings, folder / REPORT), "--format", "json"],
        folder,
        {**ours, **variables, "RFM_REPORT_FILE": str(folder / REPORT)},
    )
    (folder / f"{name}.json").write_text(ran.stdout)
    (folder / f"{name}.err").write_text(ran.stderr)
    return evaluation.graded(run, ran.returncode, ran.stdout, ran.stderr)


def judged_again(evaluation: Evaluation, folder: Path) -> tuple[Campaign, list[Result]]:
    """Return an evaluation with its reports rejudged by the present code; stored results stay.

    A run without a report, or one that would be repeated, keeps its result.
    """
    campaign, results = read(evaluation, folder)
    again, counting = [], evaluation.counting(results)
    for result in results:
        place = folder / result.run.folder
        if (place / REPORT).is_file() and result in counting:
            variables, settings = evaluation.site(result.run, place), campaign.settings
            judged = ask(evaluation, result.run, settings, place, "answer-again", variables)
            result = dataclasses.replace(result, judged=judged)
        again.append(result)
    code = f"{campaign.code}, judged by {machine.code_digest()}"
    return dataclasses.replace(campaign, code=code), again
