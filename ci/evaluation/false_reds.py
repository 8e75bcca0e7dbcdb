"""Acceptance runs of the healthy testbed under conditions of the machine, and of a sick switch.

Each run is that of ci/quickstart. No healthy one may be red, and every sick one has to be. Anything
missing or unreadable counts against a run, whichever way it was to end.
"""

from __future__ import annotations

from argparse import _ArgumentGroup
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ci.evaluation import engine
from ci.evaluation.engine import Answer, Evaluation, Grade, Run, not_judged
from netproof.benchmarks import registry  # noqa: F401 - Cases have names of benchmarks.
from netproof.criteria import Level
from netproof.measurement.case import Case
from netproof.present import documents
from netproof.verdict import FAILED, INCONCLUSIVE, PASSED

SICK = "sick"
SHOWN = 6
"""Largest number of a run's sentences in a table."""
GRADES = {
    (PASSED, "pass"): Grade.GREEN,
    (FAILED, "fail"): Grade.RED,
    (INCONCLUSIVE, "inconclusive"): Grade.INCONCLUSIVE,
}
"""Grades by exit status and word of a verdict."""


class FalseReds(Evaluation):
    """Acceptance runs, by the word of their verdict."""

    name = "false-reds"
    grades = (Grade.GREEN, Grade.INCONCLUSIVE, Grade.RED, Grade.OTHERWISE, Grade.NOT_JUDGED)
    repeats_broken = False

    def add_settings(self, parser: _ArgumentGroup) -> None:
        """Add the kind of run."""
        parser.add_argument(
            "--whole", action="store_true", help="as ci/quickstart, and not with --smoke"
        )

    def name_of(self, run: Run) -> str:
        """Describe a run in words."""
        return self.plants[run.kind].said

    def site(self, run: Run, folder: Path) -> dict[str, str]:
        """The site is that of the healthy testbed, or another one's."""
        return {}

    def system(self, run: Run, settings: Mapping[str, Any]) -> str:
        """Return what ci/quickstart measures."""
        return "testbed" if settings["whole"] and run.kind != SICK else "testbed:gige"

    def judge(self, run: Run, status: int, document: Any) -> Answer:
        """Return the verdict's own word; a sick switch has to be red by a criterion of a case."""
        found = judge(status, document)
        if run.kind == SICK and found.found is Grade.RED and not found.by:
            # A job that did not start does not show a sick switch.
            return replace(found, found=Grade.OTHERWISE)
        return found


EVALUATION = FalseReds()


def judge(status: int, document: Mapping[str, Any]) -> Answer:
    """Read ``netproof verdict --format json`` with its exit status: green, inconclusive or red.

    It is not judged where they contradict each other or docs/reference/json.md.
    """
    if document["format"] != documents.FORMAT:
        return not_judged(f"the verdict's format is {document['format']}, not {documents.FORMAT}")
    levels = [(_level(case), case) for case in document["cases"]]
    failed = [case for level, case in levels if level is Level.FAIL]
    undecided = [case for level, case in levels if level is Level.INCONCLUSIVE]
    faults, beyond, word = document["faults"], document["undecided"], document["verdict"]
    expected = "pass"
    if failed or faults:
        expected = "fail"
    elif undecided or beyond:
        expected = "inconclusive"
    said = [_sentence(case, document["system"]) for case in (*failed, *undecided)]
    more = [f"and {len(said) - SHOWN} more cases"] if len(said) > SHOWN else []
    sentences = (*map(engine.short, [*faults, *beyond]), *said[:SHOWN], *more)
    by = {one["criterion"] for case in failed for one in _flagged(case, Level.FAIL)}
    grade = GRADES.get((status, word))
    skips = bool(document["skipped"]) and word != "fail"
    if grade and document["cases"] and word == expected and not skips:
        return Answer(grade, sentences, tuple(sorted(by)))
    reason = (
        f"netproof verdict ended with {status} and says {word!r}, with {len(failed)} of"
        f" {len(document['cases'])} cases failed and {len(undecided)} inconclusive, {len(faults)}"
        f" faults and {len(beyond)} undecided beyond a case{', and cases skipped' if skips else ''}"
    )
    return Answer(Grade.NOT_JUDGED, (engine.short(reason), *sentences))


def _level(case: Mapping[str, Any]) -> Level:
    """Return whether a case of the document failed, is inconclusive, or passed."""
    word = Level(case["verdict"])
    levels = {word, *(Level(finding["level"]) for finding in case["findings"])}
    if case["faults"] or Level.FAIL in levels:
        return Level.FAIL
    if Level.INCONCLUSIVE in levels:
        return Level.INCONCLUSIVE
    if word in (Level.PASS, Level.WARN):
        return Level.PASS
    raise ValueError(f"a case is {word!r}")


def _flagged(case: Mapping[str, Any], level: Level) -> list[Mapping[str, Any]]:
    return [finding for finding in case["findings"] if finding["level"] == level]


def _sentence(case: Mapping[str, Any], system: str) -> str:
    """Return a flagged case's name with its sentences."""
    level = _level(case)
    fields = [name for name in Case.__dataclass_fields__ if name != "system"]
    what = Case(system, *(case[name] for name in fields))
    why = [*case["faults"], *(finding["why"] for finding in _flagged(case, level))]
    # A sentence may begin with the case and its switch.
    own = [one.partition("): ")[2] or one if one.startswith(str(what)) else one for one in why]
    said = "; ".join(map(engine.short, own)) or level
    return f"{what.partition} {what.environment} {what.what()}: {said}"
