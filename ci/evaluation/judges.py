"""Grade netproof's answers by what was planted.

An answer whose status and document contradict each other or docs/reference/json.md is not judged,
and a document of another form than expected may raise what reading it raises.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ci.evaluation.machine import CANNOT
from ci.evaluation.plants import (
    DERIVING,
    HEALTHY,
    MANAGEMENT,
    Answer,
    Evaluation,
    Grade,
    Plant,
    Run,
    answer,
    short,
)
from ci.testbed.faults import LEAF, NODE, SWITCH
from netproof import verdict
from netproof.criteria import Level
from netproof.criteria.findings import REFERENCE
from netproof.diagnosis.causes import TEXTS
from netproof.diagnosis.diagnosis import (
    INCONCLUSIVE,
    NOTHING_WRONG,
    SOMETHING_WRONG,
    DiagnosisOutcome,
)
from netproof.diagnosis.evidence import PlaceKind
from netproof.measurement.case import Case
from netproof.pairs.model import UPLINK_OF
from netproof.present import documents
from netproof.verdict.verdict import NOT_IN_SESSION

Document = Mapping[str, Any]


def graded(evaluation: Evaluation, run: Run, status: int, text: str, errors: str) -> Answer:
    """Grade an answer by exit status, output and errors."""
    what = f"netproof {evaluation.verb}"
    try:
        document = json.loads(text)
    except ValueError:
        said = [line for line in errors.splitlines() if line.startswith("netproof: ")]
        if evaluation.verb == "measure" and status == CANNOT and said:
            # A sweep that cannot tell says why.
            return answer(Grade.INCONCLUSIVE, said[-1])
        why = " ".join(errors.split()) or "nothing else was said"
        return answer(Grade.NOT_JUDGED, f"{what} ended with {status} and left no JSON: {why}")
    try:
        if evaluation.verb != "measure" and document["format"] != documents.FORMAT:
            return answer(
                Grade.NOT_JUDGED, f"its format is {document['format']}, not {documents.FORMAT}"
            )
        return JUDGES[evaluation.name](evaluation.plants[run.kind], run, status, document)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        return answer(Grade.NOT_JUDGED, f"what {what} printed cannot be read: {error!r}")


# Acceptance runs: the verdict's own word.

SHOWN = 6
"""Largest number of a run's sentences in a table."""
GRADES = {
    (verdict.PASSED, "pass"): Grade.GREEN,
    (verdict.FAILED, "fail"): Grade.RED,
    (verdict.INCONCLUSIVE, "inconclusive"): Grade.INCONCLUSIVE,
}
"""Grades by exit status and word of a verdict."""


def of_acceptance(plant: Plant, _: Run, status: int, document: Document) -> Answer:
    """Return the verdict's own word; a sick switch has to be red by a criterion of a case."""
    found = of_verdict(status, document)
    # A job that did not start does not show a sick switch.
    otherwise = plant.good[0] is Grade.RED is found.found and not found.by
    return replace(found, found=Grade.OTHERWISE) if otherwise else found


def of_verdict(status: int, document: Document) -> Answer:
    """Read ``netproof verdict --format json`` with its exit status: green, inconclusive or red."""
    cases, word = document["cases"], document["verdict"]
    failed, undecided = (
        [case for case in cases if case["verdict"] == level]
        for level in (Level.FAIL, Level.INCONCLUSIVE)
    )
    said = [_sentence(case, document["system"]) for case in (*failed, *undecided)]
    more = [f"and {len(said) - SHOWN} more cases"] if len(said) > SHOWN else []
    sentences = *map(short, [*document["faults"], *document["undecided"]]), *said[:SHOWN], *more
    by = {one["criterion"] for case in failed for one in _flagged(case, Level.FAIL)}
    wrong = [*document["faults"], *document["undecided"], *document["skipped"], *failed, *undecided]
    grade = GRADES.get((status, word))
    if grade and cases and not (grade is Grade.GREEN and wrong):
        return Answer(grade, sentences, tuple(sorted(by)))
    reason = f"netproof verdict ended with {status} and says {word!r} of {len(cases)} cases"
    return Answer(Grade.NOT_JUDGED, (reason, *sentences))


def _flagged(case: Document, level: Level) -> list[Document]:
    return [finding for finding in case["findings"] if finding["level"] == level]


def _reasons(case: Document, level: Level = Level.FAIL) -> list[str]:
    """Return why a case has a level: faults, such as bounds of references, and criteria."""
    return [*case["faults"], *(finding["why"] for finding in _flagged(case, level))]


def _sentence(case: Document, system: str) -> str:
    """Return a flagged case's name with its sentences."""
    level = Level(case["verdict"])
    fields = [name for name in Case.__dataclass_fields__ if name != "system"]
    what = Case(system, *(case[name] for name in fields))
    why = _reasons(case, level)
    # A sentence may begin with the case and its switch.
    own = [one.partition("): ")[2] or one if one.startswith(str(what)) else one for one in why]
    said = "; ".join(map(short, own)) or level
    return f"{what.partition} {what.environment} {what.what()}: {said}"


# Faults of an MPI library or of links: the sentences of a verdict.


def of_fault(plant: Plant, run: Run, status: int, document: Document) -> Answer:
    """Grade a verdict by what a run measured, which is not all that its site has."""
    whole = of_verdict(status, document)
    if whole.found is Grade.NOT_JUDGED:
        return replace(whole, said=whole.said[:1])
    cases = [
        case
        for case in document["cases"]
        if case["environment"] in run.environments and NOT_IN_SESSION not in case["faults"]
    ]
    if {case["environment"] for case in cases} != {*run.environments}:
        return answer(Grade.NOT_JUDGED, "the verdict does not have all environments of the run")
    if plant.counted in (HEALTHY, DERIVING):
        if failed := [why for case in cases for why in _reasons(case)]:
            return answer(Grade.FALSE, *failed)
        undecided = [one["why"] for case in cases for one in _flagged(case, Level.INCONCLUSIVE)]
        # An inconclusive run makes no references.
        open_ = run.kind == DERIVING and undecided
        return answer(Grade.INCONCLUSIVE, *undecided) if open_ else Answer(Grade.RIGHT)
    faulty = [case for case in cases if case["environment"] == run.environments[0]]
    concerned = [
        case
        for case in faulty
        if (case["benchmark"], case["path"]) == (plant.benchmark, "inter-node")
        and plant.function in ("", case["function"])
    ]
    if not concerned:
        return answer(Grade.NOT_JUDGED, "the verdict has none of the cases that the fault concerns")
    if named := list(_naming(concerned, plant.sizes, Level.FAIL)):
        criteria = sorted({finding["criterion"] for finding in named})
        return answer(Grade.RIGHT, *(one["why"] for one in named), by=criteria)
    if failed := [why for case in faulty for why in _reasons(case)]:
        return answer(Grade.OTHERWISE, *failed)
    if undecided := list(_naming(concerned, plant.sizes, Level.INCONCLUSIVE)):
        return answer(Grade.INCONCLUSIVE, *(one["why"] for one in undecided))
    return Answer(Grade.MISSED)


def _naming(cases: Sequence[Document], sizes: tuple[int, int], level: Level) -> Iterator[Document]:
    """Yield findings of a level whose sentence names a size within ``sizes``, in bytes.

    A reference has sizes in words or in its name.
    """
    for finding in (one for case in cases for one in _flagged(case, level)):
        why = finding["why"]
        if finding["criterion"] == REFERENCE:
            named = {1024 * int(kib) for kib in re.findall(r"rate_(\d+)_kib", why)}
            words = r"(?:at|messages of|to) (\d+)(?= bytes| to \d+ bytes)"
            named |= set(map(int, re.findall(words, why)))
        else:
            of = {finding["size_bytes"], *(finding["sizes_bytes"] or ())} - {None}
            named = {size for size in of if str(size) in why}
        if any(sizes[0] <= size <= sizes[1] for size in named):
            yield finding


# Planted faults: the culprits of a diagnosis.

_OUTCOMES = {
    NOTHING_WRONG: DiagnosisOutcome.NOTHING,
    SOMETHING_WRONG: DiagnosisOutcome.FOUND,
    INCONCLUSIVE: DiagnosisOutcome.INCONCLUSIVE,
}


def of_diagnosis(plant: Plant, run: Run, status: int, document: Document) -> Answer:
    """Grade ``netproof diagnose --format json``."""
    (partition,) = document["partitions"]
    culprits, outcome = partition["culprits"], DiagnosisOutcome(partition["outcome"])
    if _OUTCOMES.get(status) is not outcome:
        why = f"netproof diagnose ended with {status} and says {outcome.value!r}"
        return answer(Grade.NOT_JUDGED, why)
    if outcome is DiagnosisOutcome.INCONCLUSIVE:
        said, by = [f"inconclusive: {'; '.join(partition['incomplete'])}"], (outcome.value,)
    else:
        said, by = [culprit["sentence"] for culprit in culprits], ()
    return answer(_worth(plant, run, culprits), *said, by=by)


def _worth(plant: Plant, run: Run, culprits: Sequence[Document]) -> Grade:
    """Grade all culprits together: nothing else may be accused."""
    if run.kind == HEALTHY:
        return Grade.FALSE if culprits else Grade.RIGHT
    (place,) = run.places
    worth, elsewhere = set[Grade](), False
    for culprit in culprits:
        cause, nodes = culprit["cause"], culprit["place"]["nodes"]
        around = cause == "one or two nodes or what is between them"
        if cause == "unexplained" or (around and (plant.place != NODE or place in nodes)):
            # It only says that something failed, or that it did around the place.
            continue
        here = _is_here(plant, run, culprit)
        grade = Grade.FALSE
        if cause in plant.causes:
            grade = Grade.RIGHT if here else Grade.HALF
        elif cause in plant.wider or (here and _fits_alike(plant, culprit["alternatives"])):
            grade = Grade.HALF
        worth.add(grade)
        elsewhere |= grade is Grade.HALF and place not in nodes
    if Grade.FALSE in worth:
        return Grade.FALSE
    if Grade.RIGHT in worth and not elsewhere:
        return Grade.RIGHT
    return Grade.HALF if worth else Grade.MISSED


def _is_here(plant: Plant, run: Run, culprit: Document) -> bool:
    """Check that a culprit has the place of the fault, as precisely as the fault has one."""
    place, (planted_at,) = culprit["place"], run.places
    name, nodes, of = place["name"], place["nodes"], PlaceKind(place["kind"])
    if plant.misleads:
        mine = {*name.split(", ")} == {*run.environments}
        return of is PlaceKind.ENVIRONMENT and mine and place["interface"] == MANAGEMENT
    if plant.place == SWITCH:
        return of is PlaceKind.WHOLE
    if plant.place == LEAF:
        return of is PlaceKind.UPLINK and name == UPLINK_OF + planted_at
    if nodes != [planted_at]:
        return False
    sentences = [culprit["sentence"], name, *(one["sentence"] for one in culprit["evidence"])]
    if culprit["cause"] == "setting differs":
        words = {word.rstrip(",;:") for sentence in sentences for word in sentence.split()}
        return of is PlaceKind.SETTING and not words.isdisjoint(run.fault)
    if culprit["cause"] == "one direction slow":
        slow = "sends" if "send_rate" in run.fault else "receives"
        return culprit["sentence"].endswith(f"what it {slow}")
    return of is PlaceKind.NODE


def _fits_alike(plant: Plant, alternatives: Sequence[str]) -> bool:
    """Check whether an alternative has the headline of one of the causes."""
    forms = [
        ".*".join(map(re.escape, re.split(r"{\w+}", TEXTS[cause]["headline"])))
        for cause in plant.causes
    ]
    return any(re.fullmatch(form, one) for form in forms for one in alternatives)


# Sweeps: what is recommended.


def of_sweep(plant: Plant, _: Run, status: int, document: Document) -> Answer:
    """Grade ``netproof measure``."""
    if status != 0:
        return answer(Grade.NOT_JUDGED, f"netproof measure ended with {status}")
    (sweep,) = document["sweeps"]
    if plant.steps:
        return _steps(plant, sweep)
    if plant.function:
        # The planted algorithm has to win at all sizes, or none anywhere without one.
        chosen, said = {row["winner"] for row in sweep["sizes"]}, sweep["conclusion"]
        right = chosen == set(plant.best or [None])
    else:
        best = sweep["recommended"] or {"value": None, "sentence": "nothing recommended"}
        chosen, said = {best["value"]}, best["sentence"]
        right = chosen <= set(plant.best or [None])
    if chosen - {None} - set(plant.best):
        return answer(Grade.WRONG, said)
    return answer(Grade.RIGHT if right else Grade.MISSED, said)


def _steps(plant: Plant, sweep: Document) -> Answer:
    """Check that each limit shows between the right sizes, give or take one size."""
    sizes = [size for size, _ in sweep["values"][0]["by_size"]]
    seen_at, seen = list[str](), 0
    steps = {step["value"]: step["sizes"] for step in sweep["eager_steps"]}
    for value in plant.values:
        between = steps[value]
        if between is not None and between[1] in sizes:
            # The first size that is not sent eagerly.
            seen += abs(sizes.index(between[1]) - bisect_right(sizes, int(value))) <= 1
        seen_at.append(f"{value}: {'none' if between is None else f'{between[0]} to {between[1]}'}")
    found = Grade.RIGHT if seen == len(plant.values) else Grade.MISSED
    return answer(found, ", ".join(seen_at))


JUDGES: Mapping[str, Callable[[Plant, Run, int, Document], Answer]] = {
    "false-reds": of_acceptance,
    "missed-faults": of_fault,
    "diagnose-campaign": of_diagnosis,
    "tune-campaign": of_sweep,
}
"""Judges by their evaluations' names in plants.yaml."""
