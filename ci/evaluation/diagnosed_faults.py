"""Planted faults of a switch, its links and its nodes, against ``netproof diagnose``'s answers.

Each run is a smoke run of one switch with one fault, or rounds of pairs alone. The diagnosis has to
name the planted fault with its place, and nothing else; on a healthy testbed it may name nothing. A
run that broke is not judged, and repeated.
"""

from __future__ import annotations

import random
import re
from argparse import _ArgumentGroup
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ci.evaluation import engine
from ci.evaluation.engine import HEALTHY, Answer, Evaluation, Grade, Plant, Run, not_judged, short
from ci.evaluation.missed_faults import WITH_IMB
from ci.testbed.faults import LEAF, NODE, SWITCH
from netproof.diagnosis.causes import TEXTS
from netproof.diagnosis.diagnosis import (
    INCONCLUSIVE,
    NOTHING_WRONG,
    SOMETHING_WRONG,
    DiagnosisOutcome,
)
from netproof.diagnosis.evidence import PlaceKind
from netproof.pairs.model import UPLINK_OF
from netproof.present import documents

FLAP_WITHIN_S, FLAP_WITHIN_PAIRS_S = 30.0, 3.0
"""Seconds after the first launch within which a link goes down; a run lasts longer."""
UNDER_TEST, MANAGEMENT = "eth1", "mgmt0"
KINDS = engine.faults("diagnose-campaign")

MISLED = """(system,) = site_configuration["systems"]
for one in [*system["partitions"], *site_configuration["environments"]]:
    one["env_vars"] = [
        [name, {wrong!r} if value == {right!r} else value]
        for name, value in one.get("env_vars", [])
    ]
"""

_OUTCOMES = {
    NOTHING_WRONG: DiagnosisOutcome.NOTHING,
    SOMETHING_WRONG: DiagnosisOutcome.FOUND,
    INCONCLUSIVE: DiagnosisOutcome.INCONCLUSIVE,
}


class DiagnosedFaults(Evaluation):
    """Runs of the testbed with one planted fault each, by what their diagnosis names."""

    name = "diagnose-campaign"
    verb = "diagnose"
    grades = (Grade.RIGHT, Grade.HALF, Grade.MISSED, Grade.FALSE, Grade.NOT_JUDGED)

    def add_settings(self, parser: _ArgumentGroup) -> None:
        """Add what a run measures."""
        parser.add_argument(
            "--pairs",
            action="store_true",
            help="a run measures rounds of pairs alone, as netproof diagnose --measure does",
        )

    def drawn(self, number: int, kind: str, seed: int, settings: Mapping[str, Any]) -> Run:
        """Draw environments, place and fault; a healthy run is like a kind, without its fault."""
        drawn, healthy = random.Random(seed), kind == HEALTHY
        kinds = [name for name in KINDS if name in settings["kinds"]]
        plant = KINDS[drawn.choice(kinds) if healthy else kind]
        several = plant.environments
        if settings["pairs"]:
            several = tuple(one for one in several if one in WITH_IMB)
        if settings["pairs"] or not plant.together:
            several = (drawn.choice(several),)
        places = () if healthy else (drawn.choice(plant.places()),)
        fault = {} if healthy else dict(drawn.choice(plant.faults))
        return Run(number, kind, seed, several, plant.topology, plant.switch, places, fault)

    def name_of(self, run: Run) -> str:
        """Describe a run in words."""
        fault = " ".join(f"{key}={value}" for key, value in run.fault.items())
        said = self.plants[run.kind].said
        return " ".join(filter(None, (said, place_of(run) or run.switch, fault)))

    def begin_s(self, run: Run, settings: Mapping[str, Any]) -> float:
        """Draw when a link goes down."""
        within_s = FLAP_WITHIN_PAIRS_S if settings["pairs"] else FLAP_WITHIN_S
        return random.Random(run.seed).uniform(0, within_s)

    def site(self, run: Run, folder: Path) -> dict[str, str]:
        """Mislead MPI, if the fault is that."""
        misled = MISLED.format(wrong=MANAGEMENT, right=UNDER_TEST)
        return self.site_with(run, folder, misled if self.plants[run.kind].misleads else "")

    def question(self, run: Run, settings: Mapping[str, Any], report: Path) -> list[str]:
        """Ask for the diagnosis by this session alone."""
        return [*super().question(run, settings, report), "--back", "0"]

    def judge(self, run: Run, status: int, document: Any) -> Answer:
        """Grade ``netproof diagnose --format json``.

        The run is not judged where status and document contradict each other or
        docs/reference/json.md.
        """
        if document["format"] != documents.FORMAT:
            return not_judged(f"its format is {document['format']}, not {documents.FORMAT}")
        (partition,) = document["partitions"]
        culprits, outcome = partition["culprits"], DiagnosisOutcome(partition["outcome"])
        fits = _OUTCOMES.get(status) is outcome and bool(culprits) is (
            outcome is DiagnosisOutcome.FOUND
        )
        known = TEXTS.keys() >= {culprit["cause"] for culprit in culprits}
        if partition["partition"] != run.switch or not (fits and known):
            return not_judged(
                f"netproof diagnose ended with {status} and says {outcome.value!r} of"
                f" {partition['partition']}, with {len(culprits)} culprits"
            )
        said, by = [culprit["sentence"] for culprit in culprits], ()
        if outcome is DiagnosisOutcome.INCONCLUSIVE:
            said, by = [f"inconclusive: {'; '.join(partition['incomplete'])}"], (outcome.value,)
        return Answer(_worth(run, culprits), tuple(map(short, said)), by)


EVALUATION = DiagnosedFaults()


def place_of(run: Run) -> str:
    """Return where a run's fault is, empty without one."""
    return next(iter(run.places), "")


def _worth(run: Run, culprits: Sequence[Mapping[str, Any]]) -> Grade:
    """Grade all culprits together: nothing else may be accused."""
    if run.kind == HEALTHY:
        return Grade.FALSE if culprits else Grade.RIGHT
    named = [one for one in culprits if not _names_no_kind(run, one)]
    worth = [_worth_of(run, culprit) for culprit in named]
    if Grade.FALSE in worth:
        return Grade.FALSE
    elsewhere = any(
        one is Grade.HALF and place_of(run) not in culprit["place"]["nodes"]
        for one, culprit in zip(worth, named, strict=True)
    )
    if Grade.RIGHT in worth and not elsewhere:
        return Grade.RIGHT
    return Grade.HALF if worth else Grade.MISSED


def _names_no_kind(run: Run, culprit: Mapping[str, Any]) -> bool:
    """Check whether a culprit only says that something failed, or that it did around the place."""
    cause = culprit["cause"]
    around = KINDS[run.kind].place != NODE or place_of(run) in culprit["place"]["nodes"]
    return cause == "unexplained" or (
        cause == "one or two nodes or what is between them" and around
    )


def _worth_of(run: Run, culprit: Mapping[str, Any]) -> Grade:
    """Grade one culprit: ``RIGHT``, ``HALF`` or ``FALSE``."""
    fault, cause = KINDS[run.kind], culprit["cause"]
    here = _is_here(run, culprit)
    if cause in fault.causes:
        return Grade.RIGHT if here else Grade.HALF
    if cause in fault.wider or (here and _fits_alike(fault, culprit["alternatives"])):
        return Grade.HALF
    return Grade.FALSE


def _is_here(run: Run, culprit: Mapping[str, Any]) -> bool:
    """Check that a culprit has the place of the fault, as precisely as the fault has one."""
    fault, place, planted_at = KINDS[run.kind], culprit["place"], place_of(run)
    name, nodes, of = place["name"], place["nodes"], PlaceKind(place["kind"])
    if fault.misleads:
        mine = {*name.split(", ")} == {*run.environments}
        return of is PlaceKind.ENVIRONMENT and mine and place["interface"] == MANAGEMENT
    if fault.place == SWITCH:
        return of is PlaceKind.WHOLE
    if fault.place == LEAF:
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


def _fits_alike(fault: Plant, alternatives: Sequence[str]) -> bool:
    """Check whether an alternative has the headline of one of the causes."""
    forms = [
        re.escape(TEXTS[cause]["headline"])
        .replace(re.escape("{place}"), ".+")
        .replace(re.escape("{detail}"), ".*")
        for cause in fault.causes
    ]
    return any(re.fullmatch(form, one) for form in forms for one in alternatives)
