"""Acceptance runs of a healthy network, alongside other programs too, and of a sick switch."""

from __future__ import annotations

import argparse
import os
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from statistics import median
from typing import Any

from ci.evaluation import command, engine, load
from ci.evaluation.engine import (
    Answer,
    Evaluation,
    Grade,
    Plant,
    Result,
    Run,
    not_judged,
)
from ci.evaluation.table import AT_MOST
from ci.evaluation.testbed import CannotRunError, site_environments
from netproof.criteria import Level
from netproof.measurement.case import Case
from netproof.present import documents
from netproof.verdict import FAILED, INCONCLUSIVE, PASSED

QUIET, ONE_CPU, BURSTS, COMPILER, SICK = "quiet", "one-cpu", "bursts", "compiler", "sick"
CONDITIONS = engine.plants("false-reds")
SHOWN = 6
"""Largest number of a run's sentences in a table."""
MOST_INCONCLUSIVE = 0.1
"""Aim: largest share of quiet runs that may be inconclusive."""


class FalseReds(Evaluation):
    """Acceptance runs of the healthy testbed under conditions of the machine, and of a sick switch.

    Each run is that of ci/quickstart. No healthy one may be red, and every sick one has to be.
    Anything missing or unreadable counts against a run, whichever way it was to end.
    """

    name = "false-reds"
    counts = tuple((name, plant.least_runs, plant.said) for name, plant in CONDITIONS.items())
    heads = (
        *("condition", "runs"),
        *(Grade.GREEN, Grade.INCONCLUSIVE, Grade.RED, Grade.NOT_JUDGED),
        *(f"wrong{AT_MOST}", "median s", "longest s", "CPUs taken alongside", "waiting for a CPU"),
    )
    repeats_broken = False

    def add_options(self, parser: argparse._ArgumentGroup) -> None:
        """Add the kind of run, and the lengths of bursts."""
        kind = parser.add_mutually_exclusive_group()
        kind.add_argument(
            "--smoke", dest="whole", action="store_false", help="as ci/quickstart --smoke (default)"
        )
        kind.add_argument("--whole", action="store_true", help="as ci/quickstart")
        parser.set_defaults(whole=False)
        command.add_numbers(
            *(parser, float, 0.01),
            ("burst", 2.0, "mean seconds of a burst"),
            ("pause", 2.0, "mean seconds between bursts"),
        )

    def drawn(self, number: int, kind: str, seed: int, settings: Mapping[str, Any]) -> Run:
        """Draw the environment of a sick run; a whole run measures all, and is red if one is."""
        sick = kind == SICK
        several = (random.Random(seed).choice([*site_environments()]),) if sick else ()
        return CONDITIONS[kind].drawn(number, kind, seed, several)

    def name_of(self, run: Run) -> str:
        """Describe a run in words."""
        return CONDITIONS[run.kind].said

    def prepare(self, folder: Path, runs: Sequence[Run]) -> None:
        """Raise CannotRunError if the compiler's load lacks a program."""
        missing = load.missing_packages()
        if missing and any(run.kind == COMPILER for run in runs):
            raise CannotRunError(
                "the condition 'compiler' takes what is not here: apt-get install"
                f" {' '.join(missing)}"
            )

    def load(self, run: Run, settings: Mapping[str, Any], folder: Path) -> list[str]:
        """Return the load program's arguments."""
        cpus = sorted(os.sched_getaffinity(0))
        bursts = {"burst_s": settings["burst"], "pause_s": settings["pause"], "seed": run.seed}
        return {
            ONE_CPU: load.words(ONE_CPU, cpu=random.Random(run.seed).choice(cpus)),
            BURSTS: load.words(BURSTS, cpus=cpus, **bursts),
            COMPILER: load.words(COMPILER, folder=str(folder), seed=run.seed),
        }.get(run.kind, [])

    def site(self, run: Run, folder: Path) -> dict[str, str]:
        """The site is that of the healthy testbed, or another one's."""
        return {}

    def system(self, run: Run, settings: Mapping[str, Any]) -> str:
        """Return what ci/quickstart measures."""
        return "testbed" if settings["whole"] and run.kind != SICK else "testbed:gige"

    def launches(self, run: Run, settings: Mapping[str, Any]) -> int | None:
        """A whole run has as many as an acceptance takes."""
        return None if settings["whole"] else 1

    def judge(self, run: Run, status: int, document: Any) -> Answer:
        """Return the verdict's own word, if all of it agrees."""
        return judge(status, document)

    def is_wrong(self, result: Result) -> bool:
        """Red or not judged; on a sick switch, anything but red by a criterion."""
        return _is_wrong(result.judged, result.run.kind == SICK)

    def is_odd(self, result: Result) -> bool:
        """A healthy run is also listed if it is inconclusive."""
        green = result.judged.found is Grade.GREEN
        return self.is_wrong(result) or (result.run.kind != SICK and not green)

    def groups(self, results: Sequence[Result]) -> Iterator[tuple[str, list[Result]]]:
        """Yield each condition, with all healthy runs before the sick ones."""
        rows = list(super().groups(results))
        healthy = [one for one in results if one.run.kind != SICK]
        yield from [*rows[:-1], ("all healthy", healthy), rows[-1]]

    def cells(self, results: Sequence[Result]) -> dict[str, str]:
        """Return the CPUs taken alongside, and the share of waiting, both medians."""
        known = [one for one in results if one.after and one.wall_s]
        taken = [one.load_cpu_s / one.wall_s for one in known]
        waiting = [one.pressure_s / one.wall_s for one in known if one.pressure_s is not None]
        unknown = "not available"
        return {
            "CPUs taken alongside": f"{median(taken):.2f}" if taken else unknown,
            "waiting for a CPU": f"{100 * median(waiting):.0f} %" if waiting else unknown,
        }

    def notes(self, results: Sequence[Result]) -> list[str]:
        """Return the criteria by which the sick switch was red."""
        sick = (one.judged.by for one in results if one.run.kind == SICK)
        found = Counter(chain.from_iterable(sick)).most_common()
        said = ", ".join(f"{name} in {count}" for name, count in found)
        return [f"The sick switch was red by: {said}."] if found else []

    def of_settings(self, settings: Mapping[str, Any]) -> str:
        """Return the kind of runs, and the lengths of bursts."""
        kind = "Whole" if settings["whole"] else "Smoke"
        return (
            f"{kind} runs, bursts of {settings['burst']:g} s and pauses of {settings['pause']:g} s"
            " on average"
        )

    def aim(self, plant: Plant, judged: Sequence[Answer]) -> str | None:
        """No healthy run is wrong, few quiet ones are inconclusive, and every sick one is red."""
        sick, runs = plant is CONDITIONS[SICK], len(judged)
        if wrong := sum(_is_wrong(one, sick) for one in judged):
            how = "not red by a criterion" if sick else "red or not judged"
            return f"{plant.said}: {wrong} of {runs} runs were {how}"
        undecided = sum(one.found is Grade.INCONCLUSIVE for one in judged)
        if plant is CONDITIONS[QUIET] and undecided > MOST_INCONCLUSIVE * runs:
            return f"{plant.said}: {undecided} of {runs} runs were inconclusive"
        return None


def _is_wrong(judged: Answer, sick: bool) -> bool:
    """Red or not judged; on a sick switch, anything but red by a criterion."""
    if sick:
        # A job that did not start does not show a sick switch.
        return judged.found is not Grade.RED or not judged.by
    return judged.found in (Grade.RED, Grade.NOT_JUDGED)


def judge(status: int, document: Mapping[str, Any]) -> Answer:
    """Read ``netproof verdict --format json`` with its exit status: green, inconclusive or red.

    It is not judged where they contradict each other or docs/reference/json.md.
    """
    if document["format"] != documents.FORMAT:
        return not_judged(f"the verdict's format is {document['format']}, not {documents.FORMAT}")
    levels = [(_level(case), case) for case in document["cases"]]
    if not levels:
        return not_judged("the verdict has no cases")
    cases = [(level, case) for level, case in levels if level is not Level.PASS]
    faults, beyond = document["faults"], document["undecided"]
    failed = bool(faults) or any(level is Level.FAIL for level, _ in cases)
    left, word = bool(document["skipped"]), document["verdict"]
    # Measured cases come first.
    flagged = sorted(
        (_flagged(level, case, document["system"]) for level, case in cases),
        key=lambda one: not one[0],
    )
    said = [sentence for _, sentence in flagged]
    more = [f"and {len(said) - SHOWN} more cases"] if len(said) > SHOWN else []
    sentences = (*map(engine.short, [*faults, *beyond]), *said[:SHOWN], *more)
    if status == PASSED and word == "pass" and not (cases or faults or beyond or left):
        return Answer(Grade.GREEN)
    if status == FAILED and word == "fail" and failed:
        by = sorted({name for names, _ in flagged for name in names})
        return Answer(Grade.RED, sentences, tuple(by))
    is_open = (cases or beyond) and not (failed or left) and word not in ("pass", "fail")
    if status == INCONCLUSIVE and is_open:
        return Answer(Grade.INCONCLUSIVE, sentences)
    reason = (
        f"netproof verdict ended with {status} and says {word!r}, with {len(cases)} of"
        f" {len(levels)} cases failed or inconclusive, {len(faults)} faults and {len(beyond)}"
        f" undecided beyond a case{' and cases that were left' if left else ''}"
    )
    return Answer(Grade.NOT_JUDGED, (engine.short(reason), *sentences))


def _level(case: Mapping[str, Any]) -> Level:
    """Return whether a case of the document failed, is inconclusive, or passed."""
    word = Level(case["verdict"])
    levels = {Level(finding["level"]) for finding in case["findings"]}
    if word is Level.FAIL or case["faults"] or Level.FAIL in levels:
        return Level.FAIL
    if Level.INCONCLUSIVE in {word, *levels}:
        return Level.INCONCLUSIVE
    if word in (Level.PASS, Level.WARN):
        return Level.PASS
    raise ValueError(f"a case is {word!r}")


def _flagged(level: Level, case: Mapping[str, Any], system: str) -> tuple[tuple[str, ...], str]:
    """Return the criteria by which a case failed, and its name with the sentences."""
    counted = [finding for finding in case["findings"] if finding["level"] == level]
    fields = [name for name in Case.__dataclass_fields__ if name != "system"]
    what = Case(system, *(case[name] for name in fields))
    sentences = [*case["faults"], *(finding["why"] for finding in counted)]
    said = "; ".join(engine.short(_without(str(what), one)) for one in sentences) or level
    criteria = tuple(finding["criterion"] for finding in counted if level is Level.FAIL)
    return criteria, f"{what.partition} {what.environment} {what.what()}: {said}"


def _without(case: str, sentence: str) -> str:
    """Return a sentence without the case and switch at its beginning."""
    return sentence.partition("): ")[2] or sentence if sentence.startswith(case) else sentence


EVALUATION = FalseReds()
