"""Planted faults of a switch, its links and its nodes, against ``netproof diagnose``'s answers."""

from __future__ import annotations

import argparse
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from ci.evaluation import command, engine
from ci.evaluation import testbed as machine
from ci.evaluation.engine import (
    HEALTHY,
    RUNS,
    Answer,
    Evaluation,
    Grade,
    Plant,
    Result,
    Run,
    not_judged,
    short,
)
from ci.evaluation.markdown import AT_MOST
from ci.evaluation.testbed import ROOT, SITE, CannotRunError
from ci.testbed.faults import LEAF, NODE, SWITCH
from netproof.commands.sessions import PAIRS
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
from netproof.site import site
from netproof.site.site import JUDGE_ENVIRONMENT

HEALTHY_RUNS = 30
FLAP_WITHIN_S, FLAP_WITHIN_PAIRS_S = 30.0, 3.0
"""Seconds after the first launch within which a link goes down; a run lasts longer."""
LEAVES = "ci/testbed/leaves.yaml"
UNDER_TEST, MANAGEMENT = "eth1", "mgmt0"


class Measured(StrEnum):
    """MPI environments of a run.

    ``ANY``: one, drawn from all; ``ONE_IMB``: one, drawn from those with IMB, since the others
    measure two nodes only; ``ALL_IMB``: all with IMB, for faults that only all nodes together show.
    """

    ANY = "one of all"
    ONE_IMB = "one with IMB"
    ALL_IMB = "all with IMB"


@dataclass(frozen=True, kw_only=True)
class Fault(Plant):
    """A fault and its right diagnosis.

    ``causes``: the right ones; ``wider``: less precise ones; ``misleads``: MPI is set to
    MANAGEMENT.
    """

    place: str = NODE
    measured: Measured
    causes: frozenset[str]
    wider: frozenset[str] = frozenset()
    misleads: bool = False


def _fault(
    said: str, fault: Mapping[str, Any], measured: Measured, *causes: str, **more: Any
) -> Fault:
    return Fault(said=said, faults=(fault,), measured=measured, causes=frozenset(causes), **more)


def _on_tree(said: str, place: str, fault: Mapping[str, Any], *causes: str) -> Fault:
    where = {"topology": LEAVES, "switch": "tree", "place": place}
    return _fault(said, fault, Measured.ALL_IMB, *causes, **where)


def _misled(said: str, switch: str, mgmt_mbps: int) -> Fault:
    fault = {"mgmt_mbps": mgmt_mbps}
    where = {"switch": switch, "place": SWITCH, "misleads": True}
    return _fault(said, fault, Measured.ANY, "messages took another network", **where)


_ONE, _ALL = Measured.ONE_IMB, Measured.ALL_IMB
# A pair alone gets the full rate of its links, even across half an uplink.
_UPLINK = ("uplink or leaf slow", "oversubscribed")
# If all nodes lose packets, a diagnosis of loss on all of them is also right.
_BUFFER = ("the switch as a whole", "packets lost")
KINDS: Mapping[str, Fault] = {
    "half-rate": _fault("port at half rate", {"rate": 0.5}, _ALL, "port slower than the others"),
    "tenth-rate": _fault(
        "port at a tenth of the rate", {"rate": 0.1}, _ALL, "port slower than the others"
    ),
    "little-loss": _fault("0.2 % loss at a port", {"loss": 0.002}, _ONE, "packets lost"),
    "loss": _fault("1 % loss at a port", {"loss": 0.01}, _ONE, "packets lost"),
    "mtu": _fault("MTU 1400 on a node", {"mtu": 1400}, _ONE, "MTU differs"),
    "small-buffer": _fault(
        *("16,000 bytes of buffer on the whole switch", {"buffer": 16000}, _ALL, *_BUFFER),
        place=SWITCH,
    ),
    "busy-cpu": _fault(
        "a busy CPU on a node", {"busy_cpus": 1}, _ONE, "CPUs taken by something else"
    ),
    "link-flap": _fault("a link down for 2 s", {"link": "down"}, _ONE, "link flapped", seconds=2.0),
    "link-down": _fault("a link down for good", {"link": "down"}, _ONE, "link down"),
    "faster-network": _misled("MPI on a faster management network", "fast-ethernet", 1000),
    "slower-network": _misled("MPI on a slower management network", "gige", 100),
    "sysctl": Fault(
        said="a TCP sysctl that differs",
        faults=(
            {"net.ipv4.tcp_sack": 0},
            {"net.ipv4.tcp_timestamps": 0},
            {"net.ipv4.tcp_rmem": "4096 16384 16384"},
        ),
        measured=_ONE,
        causes=frozenset({"setting differs"}),
    ),
    "uplink": _on_tree("an uplink at half rate", LEAF, {"rate": 0.5}, *_UPLINK),
    "quarter-uplink": _on_tree(
        "an uplink at a quarter of the rate", LEAF, {"rate": 0.25}, *_UPLINK
    ),
    "port-of-a-leaf": _on_tree(
        "a port of a leaf at half rate", NODE, {"rate": 0.5}, "port slower than the others"
    ),
    "buffers-of-leaves": _on_tree(
        "16,000 bytes of buffer on all leaves and the spine", SWITCH, {"buffer": 16000}, *_BUFFER
    ),
    "one-direction": Fault(
        said="one direction of a link at half rate",
        faults=({"send_rate": 0.5}, {"receive_rate": 0.5}),
        measured=_ALL,
        causes=frozenset({"one direction slow"}),
        wider=frozenset({"port slower than the others"}),
    ),
}
"""Kinds of faults by name."""

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
    """Runs of the testbed with one planted fault each, against ``netproof diagnose``'s answers.

    Each run is a smoke run of one switch, or rounds of pairs alone. The diagnosis has to name the
    planted fault with its place, and nothing else; on a healthy testbed it may name nothing. A run
    that broke is not judged, and repeated.
    """

    name = "diagnose-campaign"
    verb = "diagnose"
    plants: Mapping[str, Plant] = {
        **KINDS,
        HEALTHY: Plant(said=HEALTHY, least_runs=HEALTHY_RUNS, least_good=1.0),
    }
    faults = KINDS
    counts = (
        ("runs", RUNS, "runs of each kind of fault"),
        ("healthy", HEALTHY_RUNS, "runs without a fault"),
    )
    heads = (
        *("planted", "on", "runs"),
        *(Grade.RIGHT, Grade.HALF, Grade.MISSED, Grade.FALSE, Grade.NOT_JUDGED),
        *("inconclusive", f"not right{AT_MOST}", "median s", "longest s"),
    )

    def add_options(self, parser: argparse._ArgumentGroup) -> None:
        """Add what a run measures."""
        parser.add_argument(
            "--pairs",
            action="store_true",
            help="a run measures rounds of pairs alone, as netproof diagnose --measure does",
        )
        parser.add_argument(
            "--flap-within",
            type=command.number(float, 0.01),
            metavar="N",
            help="seconds after the first launch in which a link goes down for 2 s (default:"
            f" {FLAP_WITHIN_S:g}, with --pairs {FLAP_WITHIN_PAIRS_S:g}, which are over sooner)",
        )

    def plan(self, settings: Mapping[str, Any]) -> tuple[Run, ...]:
        """Plan runs of each kind and healthy ones; ``seed`` draws their order and places.

        A healthy run is like one of the kinds, without its fault.
        """
        kinds = [name for name in KINDS if name in settings["kinds"]]
        names = self.names(settings) + [HEALTHY] * settings["healthy"]
        there = environments()
        if settings["pairs"]:
            there = dict.fromkeys(there, there[Measured.ONE_IMB])
        drawn = engine.numbered(random.Random(settings["seed"]), names)
        return tuple(_drawn(*one, kinds, there, one_only=settings["pairs"]) for one in drawn)

    def name_of(self, run: Run) -> str:
        """Describe a run in words."""
        fault = " ".join(f"{key}={value}" for key, value in run.fault.items())
        said = self.plants[run.kind].said
        return " ".join(filter(None, (said, place_of(run) or run.switch, fault)))

    def begin_s(self, run: Run, settings: Mapping[str, Any]) -> float:
        """Draw when a link goes down."""
        within_s = settings["flap_within"]
        if within_s is None:
            within_s = FLAP_WITHIN_PAIRS_S if settings["pairs"] else FLAP_WITHIN_S
        return random.Random(run.seed).uniform(0, within_s)

    def site(self, run: Run, folder: Path) -> dict[str, str]:
        """Return variables for a run's topology, and for a site that misleads MPI."""
        variables = {"NETPROOF_TOPOLOGY": str(ROOT / run.topology)}
        if run.kind != HEALTHY and KINDS[run.kind].misleads:
            alteration = MISLED.format(wrong=MANAGEMENT, right=UNDER_TEST)
            variables |= machine.altered_site(folder, alteration)
        return variables

    def reframe(self, run: Run, settings: Mapping[str, Any]) -> tuple[list[str], str]:
        """Return a smoke run of the switch, or its rounds of pairs."""
        several = "|".join(map(re.escape, run.environments))
        options = ["--system", f"testbed:{run.switch}", "-p", f"^({several})$"]
        if settings["pairs"]:
            return options, PAIRS
        return [*options, "-S", "launches=1"], ""

    def question(self, run: Run, settings: Mapping[str, Any], report: Path) -> list[str]:
        """Ask for the diagnosis."""
        return ["diagnose", str(report), f"testbed:{run.switch}", "--back", "0"]

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
        said = [culprit["sentence"] for culprit in culprits]
        if outcome is DiagnosisOutcome.INCONCLUSIVE:
            said = [f"inconclusive: {'; '.join(partition['incomplete'])}"]
        return Answer(_worth(run, culprits), tuple(map(short, said)), outcome=outcome.value)

    def cells(self, results: Sequence[Result]) -> dict[str, str]:
        """Return the switches of a kind, and how many diagnoses were inconclusive."""
        undecided = DiagnosisOutcome.INCONCLUSIVE.value
        return {
            "on": ", ".join(sorted({one.run.switch for one in results})),
            "inconclusive": str(sum(one.judged.outcome == undecided for one in results)),
        }

    def of_settings(self, settings: Mapping[str, Any]) -> str:
        """Return what a run measures."""
        return "Rounds of pairs" if settings["pairs"] else "Smoke runs"


EVALUATION = DiagnosedFaults()


def place_of(run: Run) -> str:
    """Return where a run's fault is, empty without one."""
    return next(iter(run.places), "")


def environments(site_file: Path = SITE) -> dict[Measured, tuple[str, ...]]:
    """Return the site's MPI environments for runs: all, and those with IMB."""
    configuration = site.load(site_file)
    (system,) = configuration["systems"]
    several = {name for partition in system["partitions"] for name in partition["environs"]}
    features = {one["name"]: one["features"] for one in configuration["environments"]}
    names = tuple(sorted(several - {JUDGE_ENVIRONMENT}))
    with_imb = tuple(name for name in names if "imb" in features[name])
    return {Measured.ANY: names, Measured.ONE_IMB: with_imb, Measured.ALL_IMB: with_imb}


def _drawn(
    number: int,
    name: str,
    seed: int,
    kinds: Sequence[str],
    there: Mapping[Measured, tuple[str, ...]],
    *,
    one_only: bool,
) -> Run:
    drawn = random.Random(seed)
    plant = KINDS[name if name != HEALTHY else drawn.choice(list(kinds))]
    several = there[plant.measured]
    if not several:
        raise CannotRunError(f"{SITE}: no MPI environment has IMB, which measures all nodes")
    if one_only or plant.measured is not Measured.ALL_IMB:
        several = (drawn.choice(several),)
    places = (drawn.choice(plant.places()),) if name != HEALTHY else ()
    fault = dict(drawn.choice(plant.faults)) if name != HEALTHY else {}
    return Run(number, name, seed, several, plant.topology, plant.switch, places, fault)


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


def _fits_alike(fault: Fault, alternatives: Sequence[str]) -> bool:
    """Check whether an alternative has the headline of one of the causes."""
    forms = [
        re.escape(TEXTS[cause]["headline"])
        .replace(re.escape("{place}"), ".+")
        .replace(re.escape("{detail}"), ".*")
        for cause in fault.causes
    ]
    return any(re.fullmatch(form, one) for form in forms for one in alternatives)
