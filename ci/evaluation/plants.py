"""The tables of plants.yaml: what is planted where, the right answer, and what a run asks."""

from __future__ import annotations

import random
import re
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from ci.evaluation.machine import ROOT, CannotRunError, slower
from ci.testbed import topology_reading
from ci.testbed.faults import NODE
from netproof import codec
from netproof.commands.sessions import PAIRS
from netproof.verdict.derive import LEAST_SESSIONS

HEALTHY, DERIVING = "healthy", "deriving"
"""Kinds of runs without a fault; the second ones make references."""
RUNS = "runs"
"""Option that counts the runs of each fault."""
SENTENCE = 200
"""Longest sentence in characters; the rest is cut."""
DERIVED_LAUNCHES = 3
FLAP_WITHIN_S, FLAP_WITHIN_PAIRS_S = 30.0, 3.0
"""Seconds after the first launch within which a link goes down; a run lasts longer."""
UNDER_TEST, MANAGEMENT = "eth1", "mgmt0"
WITH_IMB = ("mpich", "intelmpi")

MISLED = f"""(system,) = site_configuration["systems"]
for one in [*system["partitions"], *site_configuration["environments"]]:
    one["env_vars"] = [
        [name, {MANAGEMENT!r} if value == {UNDER_TEST!r} else value]
        for name, value in one.get("env_vars", [])
    ]
"""
DISTURBED = """for partition in site_configuration["systems"][0]["partitions"]:
    # Programs of delay lines use CPUs while packets pass.
    partition["extras"]["criteria"]["disturbance"] = {"others": 1, "steal": 1}
"""


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


@dataclass(frozen=True)
class Answer:
    """Grade of an answer, its sentences, and the criteria that named the fault."""

    found: Grade
    said: tuple[str, ...] = ()
    by: tuple[str, ...] = ()


def answer(found: Grade, *said: str, by: Iterable[str] = ()) -> Answer:
    """Return an answer with its sentences cut short."""
    return Answer(found, tuple(map(short, said)), tuple(by))


def short(sentence: str) -> str:
    """Cut a sentence to SENTENCE characters at most."""
    return textwrap.shorten(sentence, SENTENCE, placeholder=" …")


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


_topology = cache(topology_reading.load)


@dataclass(frozen=True, kw_only=True)
class Plant:
    """A row of plants.yaml: what is planted where, and the right answer.

    ``said``: in words; ``counted``: the option that says how many runs it has; ``topology``: file
    of the testbed, below the checkout, which the site does not have if it is ``unknown``; ``load``:
    program that runs alongside; ``place``: kind of place of ``switch``, one drawn by the diagnoses,
    and all of them by others; ``faults``: keys and values for ``testbed plant``; ``seconds``:
    duration of a temporary fault; ``environments``: one, drawn, is measured, or all ``together``,
    by default those with IMB; ``partner``: next to another one with IMB, which lets collectives be
    compared; ``variables``: planted settings of its library, by environment; ``slow``: time that
    slow_mpi.c adds to calls instead, where ``{latency_us}`` is their latency, only in ``program``
    and not where the variable ``unless`` has the ``best`` value; ``checks``: pattern for ReFrame's
    ``-n``, empty for all. The aim: of ``least_runs`` judged ones a share of ``least_good`` has a
    grade of ``good``, the first of which is as it should be, and one of ``most_inconclusive`` at
    most is inconclusive.

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
    unknown: bool = False
    switch: str = "gige"
    load: str = ""
    place: str = NODE
    faults: tuple[Mapping[str, Any], ...] = ({},)
    seconds: float | None = None
    environments: tuple[str, ...] = WITH_IMB[::-1]
    together: bool = False
    partner: bool = False
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

    def variables_in(
        self, environment: str, library: Path, latency_us: float | None = None
    ) -> Mapping[str, str]:
        """Return the variables planted in an environment; ``library``: slow_mpi.c, compiled."""
        if not self.slow:
            return self.variables.get(environment, {})
        unless = (self.unless, self.best[0]) if self.unless else None
        return slower(library, self.slow.format(latency_us=latency_us), self.program, unless)


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """A table of plants, and how its runs are made and judged.

    ``about``: what --help says; ``verb``: netproof's, which answers, and measures itself if it is
    that; ``grades``: in the order of the table; ``one_place``: place and fault are drawn, and a
    healthy run is one of a drawn fault without it; ``repeats_broken``: a run that was not judged
    counts for nothing, and --resume makes it again.
    """

    name: str
    about: str
    grades: tuple[Grade, ...]
    plants: Mapping[str, Plant]
    verb: str = "verdict"
    one_place: bool = False
    repeats_broken: bool = True

    @property
    def faults(self) -> Mapping[str, Plant]:
        """Plants that ``--kinds`` selects."""
        return {kind: plant for kind, plant in self.plants.items() if plant.counted == RUNS}

    def plan(self, settings: Mapping[str, Any]) -> tuple[Run, ...]:
        """Plan the runs in an order that ``seed`` draws, as it does all that is drawn.

        If derived references judge a fault, the deriving runs come first, and healthy runs are
        judged by them; other healthy runs are only planned for other faults. Raises CannotRunError
        if the deriving ones are too few.
        """
        if settings.get(DERIVING, LEAST_SESSIONS) < LEAST_SESSIONS:
            raise CannotRunError(
                f"--deriving {settings[DERIVING]}: references take {LEAST_SESSIONS} runs"
            )
        kinds = settings.get("kinds", ())
        by_derived = {self.plants[kind].derived for kind in kinds} or {False}
        names = [
            kind
            for kind, plant in self.plants.items()
            if plant.derived in by_derived and (plant.counted != RUNS or kind in kinds)
            for _ in range(settings[plant.counted.replace("-", "_")])
        ]
        others = [kind for kind in names if kind != DERIVING]
        first = [kind for kind in names if kind == DERIVING] if others else []
        drawn = random.Random(settings["seed"])
        drawn.shuffle(others)
        return tuple(
            self.drawn(number, kind, drawn.randrange(1, 2**31), settings)
            for number, kind in enumerate([*first, *others], 1)
        )

    def drawn(self, number: int, kind: str, seed: int, settings: Mapping[str, Any]) -> Run:
        """Return a run of a kind, with all that its seed draws."""
        drawn, plant, pairs = random.Random(seed), self.plants[kind], settings.get("pairs")
        if self.one_place and kind == HEALTHY:
            plant = self.plants[
                drawn.choice([one for one in self.faults if one in settings["kinds"]])
            ]
        several = [one for one in plant.environments if not pairs or one in WITH_IMB]
        if several and (pairs or not plant.together):
            several = [drawn.choice(several)]
        if plant.partner:
            several.append(drawn.choice([one for one in WITH_IMB if one not in several]))
        places, fault = (), dict[str, Any]()
        if kind != HEALTHY and plant.faults != ({},):
            places = plant.places()
            if self.one_place:
                places = (drawn.choice(places),)
            fault = dict(drawn.choice(plant.faults))
        where = plant.topology, plant.switch
        return Run(number, kind, seed, tuple(several), *where, places, fault)

    def name_of(self, run: Run) -> str:
        """Describe a run in words."""
        where = ", ".join(run.places) or run.switch
        fault = (f"{key}={value}" for key, value in run.fault.items())
        return " ".join((self.plants[run.kind].said, where, *fault))

    def alteration(self, run: Run, library: Path, latency_us: float | None) -> str:
        """Return the Python that plants into ``site_configuration`` what a run has there."""
        plant, altered = self.plants[run.kind], ""
        for environment in run.environments[:1]:
            if variables := plant.variables_in(environment, library, latency_us):
                altered = (
                    'for one in site_configuration["environments"]:\n'
                    f'    if one["name"] == {environment!r}:\n'
                    f'        one["env_vars"] = [*one.get("env_vars", []),'
                    f" *{[list(one) for one in variables.items()]!r}]\n"
                )
        return altered + MISLED * plant.misleads + DISTURBED * ("delay" in run.fault)

    def reframe(self, run: Run, settings: Mapping[str, Any]) -> list[str]:
        """Return ReFrame's options with the project's checks."""
        several, plant = "|".join(map(re.escape, run.environments)), self.plants[run.kind]
        options, pairs = ["--system", f"testbed:{run.switch}"], settings.get("pairs")
        if not pairs:
            # By one launch alone, a slow one would be the value of derived references.
            options += ["-S", f"launches={DERIVED_LAUNCHES if plant.derived else 1}"]
        options += ["-p", f"^({several})$"] if several else []
        options += ["-n", plant.checks] if plant.checks else []
        checks = ROOT / "checks" / (PAIRS if pairs else "")
        return [*options, "--exec-policy=serial", "-c", str(checks)]

    def question(self, run: Run, report: Path) -> list[str]:
        """Return the arguments of the netproof command that answers."""
        place, plant = f"testbed:{run.switch}", self.plants[run.kind]
        if self.verb == "measure":
            asked = ["tune", place, plant.parameter, "--protocol", plant.protocol]
            if plant.function:
                asked = ["algorithms", place, plant.function, "--ranks", "2"]
            asked += ["--values", ",".join(plant.values)] if plant.values else []
            return [self.verb, *asked, "--environment", run.environments[0]]
        # No earlier session may date a fault.
        alone = ["--back", "0"] if self.verb == "diagnose" else []
        return [self.verb, str(report), place, *alone]


TABLES = {
    path.stem: yaml.safe_load(path.read_text())
    for path in map(Path(__file__).with_name, ("evaluations.yaml", "plants.yaml"))
}
CAMPAIGN, REPLAYS = (TABLES["evaluations"][name] for name in ("campaign", "replays"))
"""Options of evaluations on the testbed, and those by recorded and simulated data."""
EVALUATIONS: Mapping[str, Evaluation] = {
    name: codec.decode(
        Evaluation,
        {**head, "name": name, "plants": TABLES["plants"][name]},
        f"plants.yaml: {name}",
    )
    for name, head in TABLES["evaluations"]["planted"].items()
}
