"""Runs of the testbed with one planted fault each, held against what ``netproof diagnose`` says.

Each run is a smoke run of one switch. What was planted has to be named, with its place, and nothing
else; on a healthy testbed nothing may be named. A run that broke is not judged, and made again.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import subprocess
import sys
import textwrap
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from statistics import median
from typing import Any

from ci import campaigns
from ci.campaigns import (
    ROOT,
    CannotRunError,
    Testbed,
    TooLongError,
    add_limits,
    add_where,
    begin,
    carry_out,
    code_digest,
    insist_on_code,
    limited,
    locked,
    make_each,
    now,
    number,
    options_of,
    row,
    this_machine,
    upper_limit,
    wait_until_quiet,
)
from ci.testbed import topology as topologies
from ci.testbed.faults import LEAF, NODE, SWITCH, Value
from netproof.commands.nightly import measuring
from netproof.diagnosis.causes import BY_NAME
from netproof.diagnosis.diagnosis import CANNOT_TELL, NOTHING_WRONG, SOMETHING_WRONG, Outcome
from netproof.diagnosis.evidence import PlaceKind
from netproof.diagnosis.evidence_for import CauseName
from netproof.errors import NetproofError
from netproof.localization.topology import UPLINK_OF
from netproof.present import documents
from netproof.site import site
from netproof.site.site_file import JUDGE_ENVIRONMENT

TWO_SWITCHES, LEAVES = "topology.yaml", "leaves.yaml"
SITE = ROOT / "site-config" / "testbed.py"
UNDER_TEST, MANAGEMENT = "eth1", "mgmt0"

RUNS, HEALTHY_RUNS = 10, 30
"""Aim: so many runs of each kind of fault, and so many healthy ones."""
LEAST_RIGHT = 0.9
"""Aim: the share of a kind's runs that are right; no healthy run accuses anything."""

SENTENCE = 200
"""Characters that are kept of a sentence on a run."""
POLL_S = 0.2


class Measured(StrEnum):
    """With which MPI environments a run is made.

    ``ANY``: one of all, drawn; ``ONE_IMB``: one of those with IMB, drawn, since all others measure
    two nodes only; ``ALL_IMB``: all of those, for what only all nodes together tell.
    """

    ANY = "one of all"
    ONE_IMB = "one with IMB"
    ALL_IMB = "all with IMB"


@dataclass(frozen=True)
class Kind:
    """A kind of fault.

    ``said``: in words; ``topology`` and ``switch``: where it is planted; ``place``: on which kind
    of place of that switch, one drawn; ``faults``: key and value as ``testbed plant`` takes them,
    one drawn; ``causes``: which diagnosis is right, and which names it less precisely, ``wider``;
    ``seconds``: for so long only, while the run is made; ``misleads``: MPI is set to MANAGEMENT.
    """

    said: str
    topology: str
    switch: str
    place: str
    faults: tuple[Mapping[str, Value], ...]
    measured: Measured
    causes: frozenset[CauseName]
    wider: frozenset[CauseName] = frozenset()
    seconds: float | None = None
    misleads: bool = False


def _on_gige(
    said: str,
    fault: Mapping[str, Value],
    measured: Measured,
    cause: CauseName,
    seconds: float | None = None,
) -> Kind:
    causes = frozenset({cause})
    return Kind(said, TWO_SWITCHES, "gige", NODE, (fault,), measured, causes, seconds=seconds)


KINDS: Mapping[str, Kind] = {
    "half-rate": _on_gige(
        "port at half rate", {"rate": 0.5}, Measured.ALL_IMB, CauseName.SLOW_PORT
    ),
    "tenth-rate": _on_gige(
        "port at a tenth of the rate", {"rate": 0.1}, Measured.ALL_IMB, CauseName.SLOW_PORT
    ),
    "little-loss": _on_gige(
        "0.2 % loss at a port", {"loss": 0.002}, Measured.ONE_IMB, CauseName.LOSS
    ),
    "loss": _on_gige("1 % loss at a port", {"loss": 0.01}, Measured.ONE_IMB, CauseName.LOSS),
    "mtu": _on_gige("MTU 1400 on a node", {"mtu": 1400}, Measured.ONE_IMB, CauseName.MTU),
    "small-buffer": Kind(
        "8,000 bytes of buffer on the whole switch",
        *(TWO_SWITCHES, "gige", SWITCH, ({"buffer": 8000},), Measured.ALL_IMB),
        # Where all nodes lose, that packets are lost is as right, if it is said of all.
        frozenset({CauseName.WHOLE, CauseName.LOSS}),
    ),
    "busy-cpu": _on_gige(
        "a busy CPU on a node", {"busy_cpus": 1}, Measured.ONE_IMB, CauseName.CPU_TAKEN
    ),
    "link-flap": _on_gige(
        "a link down for 2 s", {"link": "down"}, Measured.ONE_IMB, CauseName.LINK_FLAPPED, 2.0
    ),
    "link-down": _on_gige(
        "a link down for good", {"link": "down"}, Measured.ONE_IMB, CauseName.LINK_DOWN
    ),
    "faster-network": Kind(
        "MPI on a faster management network",
        *(TWO_SWITCHES, "fast-ethernet", SWITCH, ({"mgmt_mbps": 1000},), Measured.ANY),
        frozenset({CauseName.OTHER_NETWORK}),
        misleads=True,
    ),
    "slower-network": Kind(
        "MPI on a slower management network",
        *(TWO_SWITCHES, "gige", SWITCH, ({"mgmt_mbps": 100},), Measured.ANY),
        frozenset({CauseName.OTHER_NETWORK}),
        misleads=True,
    ),
    "sysctl": Kind(
        "a TCP sysctl that differs",
        *(TWO_SWITCHES, "gige", NODE),
        (
            {"net.ipv4.tcp_sack": 0},
            {"net.ipv4.tcp_timestamps": 0},
            {"net.ipv4.tcp_rmem": "4096 16384 16384"},
        ),
        Measured.ONE_IMB,
        frozenset({CauseName.SETTING}),
    ),
    "uplink": Kind(
        "an uplink at half rate",
        *(LEAVES, "tree", LEAF, ({"rate": 0.5},), Measured.ALL_IMB),
        # A pair alone has all that its own links carry, across half an uplink too.
        frozenset({CauseName.SLOW_UPLINK, CauseName.OVERSUBSCRIBED}),
    ),
    "one-direction": Kind(
        "one direction of a link at half rate",
        *(TWO_SWITCHES, "gige", NODE, ({"send_rate": 0.5}, {"receive_rate": 0.5})),
        Measured.ALL_IMB,
        frozenset({CauseName.ONE_DIRECTION}),
        frozenset({CauseName.SLOW_PORT}),
    ),
}
"""Each kind of fault by its name."""

HEALTHY = "healthy"
SAID = {**{name: kind.said for name, kind in KINDS.items()}, HEALTHY: HEALTHY}


class Found(StrEnum):
    """What a diagnosis is worth, held against what was planted.

    ``RIGHT``: kind and place, or nothing on a healthy testbed; ``HALF``: the kind, at a wrong or
    wider place, or as one of what fits alike; ``MISSED``: nothing is named; ``FALSE``: something
    else is accused, also beside what is right.
    """

    RIGHT = "right"
    HALF = "half right"
    MISSED = "missed"
    FALSE = "false"
    NOT_JUDGED = "not judged"


@dataclass(frozen=True)
class Settings:
    """What all runs of a campaign have in common, chosen when it begins.

    ``flap_within_s``: a fault of seconds begins at a moment drawn from so many after the first
    launch on its node; the others as in ``campaigns.Settings``.
    """

    seed: int
    flap_within_s: float
    quiet_share: float
    quiet_s: float
    quiet_limit_s: float
    run_limit_s: float


@dataclass(frozen=True)
class Run:
    """One run to make, with all that its seed drew.

    ``kind``: one of KINDS or HEALTHY; ``place`` and ``fault``: empty on a healthy testbed.
    """

    number: int
    kind: str
    seed: int
    topology: str
    switch: str
    environments: tuple[str, ...]
    place: str
    fault: Mapping[str, Value]

    @property
    def folder(self) -> str:
        """Name of its folder in the campaign's."""
        return f"{self.number:03}-{self.kind}"

    def __str__(self) -> str:
        fault = " ".join(f"{key}={value}" for key, value in self.fault.items())
        return " ".join(filter(None, (SAID[self.kind], self.place or self.switch, fault)))


@dataclass(frozen=True)
class Judged:
    """What a diagnosis is worth, its headlines or why there is none, and its own outcome."""

    found: Found
    said: tuple[str, ...] = ()
    outcome: str = ""


@dataclass(frozen=True)
class Result:
    """A run with what became of it.

    ``wall_s``: seconds of ReFrame and the diagnosis; ``before`` and ``after``: load averages over
    1, 5 and 15 minutes, () where it came not so far.
    """

    run: Run
    judged: Judged
    started: str
    wall_s: float
    before: tuple[float, ...]
    after: tuple[float, ...]


@dataclass(frozen=True)
class Campaign:
    """What a campaign is to do: its settings, its runs in order, its code and its machine."""

    settings: Settings
    runs: tuple[Run, ...]
    code: str
    machine: Mapping[str, Any]


def environments(site_file: Path = SITE) -> dict[Measured, tuple[str, ...]]:
    """The MPI environments of the site that a run can be made with: all, and those with IMB."""
    configuration = site.load(site_file)
    (system,) = configuration["systems"]
    several = {name for partition in system["partitions"] for name in partition["environs"]}
    features = {one["name"]: one["features"] for one in configuration["environments"]}
    names = tuple(sorted(several - {JUDGE_ENVIRONMENT}))
    with_imb = tuple(name for name in names if "imb" in features[name])
    return {Measured.ANY: names, Measured.ONE_IMB: with_imb, Measured.ALL_IMB: with_imb}


def places(kind: Kind) -> list[str]:
    """Where a kind of fault can be planted."""
    there = topologies.load(_topology(kind.topology)).places
    return sorted(
        name
        for name, (of, switch) in there.items()
        if (of, switch.name) == (kind.place, kind.switch)
    )


def _topology(name: str) -> Path:
    return ROOT / "ci" / "testbed" / name


def planned(kinds: Sequence[str], runs: int, healthy: int, seed: int) -> tuple[Run, ...]:
    """So many runs of each kind and healthy ones, in an order and at places that ``seed`` draws.

    A healthy run is made as one of ``kinds``, without its fault.
    """
    drawn, there = random.Random(seed), environments()
    names = [name for name in kinds for _ in range(runs)] + [HEALTHY] * healthy
    drawn.shuffle(names)
    seeds = [drawn.randrange(1, 2**31) for _ in names]
    return tuple(
        _run_of(position, name, one, kinds, there)
        for position, (name, one) in enumerate(zip(names, seeds, strict=True), 1)
    )


def _run_of(
    position: int,
    name: str,
    seed: int,
    kinds: Sequence[str],
    there: Mapping[Measured, tuple[str, ...]],
) -> Run:
    drawn = random.Random(seed)
    kind = KINDS[name if name != HEALTHY else drawn.choice(list(kinds))]
    several = there[kind.measured]
    if not several:
        raise CannotRunError(f"{SITE}: no MPI environment has IMB, which measures all nodes")
    if kind.measured is not Measured.ALL_IMB:
        several = (drawn.choice(several),)
    place = drawn.choice(places(kind)) if name != HEALTHY else ""
    fault = dict(drawn.choice(kind.faults)) if name != HEALTHY else {}
    return Run(position, name, seed, kind.topology, kind.switch, several, place, fault)


def judge(run: Run, status: int, text: str, errors: str) -> Judged:
    """What ``netproof diagnose --json`` is worth: its exit status, its document, its errors.

    Where they do not fit together, or are not what docs/diagnose.md describes, the run was not
    judged.
    """
    try:
        document = json.loads(text)
    except ValueError:
        said = " ".join(errors.split()) or "nothing else was said"
        return _not_judged(f"netproof diagnose ended with {status} and left no JSON: {said}")
    try:
        return _judge(run, status, document)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        return _not_judged(f"what netproof diagnose printed is no diagnosis: {error!r}")


_OUTCOMES = {
    NOTHING_WRONG: Outcome.NOTHING,
    SOMETHING_WRONG: Outcome.FOUND,
    CANNOT_TELL: Outcome.UNKNOWN,
}


def _judge(run: Run, status: int, document: Mapping[str, Any]) -> Judged:
    if document["format"] != documents.FORMAT:
        return _not_judged(f"its format is {document['format']}, not {documents.FORMAT}")
    (partition,) = document["partitions"]
    culprits, outcome = partition["culprits"], Outcome(partition["outcome"])
    fits = _OUTCOMES.get(status) is outcome and bool(culprits) is (outcome is Outcome.FOUND)
    if partition["partition"] != run.switch or not fits:
        return _not_judged(
            f"netproof diagnose ended with {status} and says {outcome.value!r} of"
            f" {partition['partition']}, with {len(culprits)} culprits"
        )
    said = [culprit["sentence"] for culprit in culprits]
    if outcome is Outcome.UNKNOWN:
        said = [f"it cannot be told: {'; '.join(partition['incomplete'])}"]
    return Judged(_worth(run, culprits), tuple(map(_short, said)), outcome.value)


def _worth(run: Run, culprits: Sequence[Mapping[str, Any]]) -> Found:
    """What all culprits together are worth: nobody may be accused of anything else."""
    if run.kind == HEALTHY:
        return Found.FALSE if culprits else Found.RIGHT
    # What failed and is not explained accuses nobody.
    named = [one for one in culprits if CauseName(one["cause"]) is not CauseName.UNEXPLAINED]
    worth = [worth_of(run, culprit) for culprit in named]
    if Found.FALSE in worth:
        return Found.FALSE
    elsewhere = any(
        one is Found.HALF and run.place not in culprit["place"]["nodes"]
        for one, culprit in zip(worth, named, strict=True)
    )
    if Found.RIGHT in worth and not elsewhere:
        return Found.RIGHT
    return Found.HALF if worth else Found.MISSED


def worth_of(run: Run, culprit: Mapping[str, Any]) -> Found:
    """What one culprit is worth: ``RIGHT``, ``HALF`` or ``FALSE``."""
    kind, cause = KINDS[run.kind], CauseName(culprit["cause"])
    here = _is_here(run, culprit)
    if cause in kind.causes:
        return Found.RIGHT if here else Found.HALF
    if cause in kind.wider or (here and _fits_alike(kind, culprit["alternatives"])):
        return Found.HALF
    return Found.FALSE


def _is_here(run: Run, culprit: Mapping[str, Any]) -> bool:
    """Whether it is at the place that was planted on, as precisely as the fault has one."""
    kind, place = KINDS[run.kind], culprit["place"]
    name, nodes, of = place["name"], place["nodes"], PlaceKind(place["kind"])
    if kind.misleads:
        mine = {*name.split(", ")} == {*run.environments}
        return of is PlaceKind.ENVIRONMENT and mine and place["interface"] == MANAGEMENT
    if kind.place == SWITCH:
        return of is PlaceKind.WHOLE
    if kind.place == LEAF:
        return of is PlaceKind.UPLINK and name == UPLINK_OF + run.place
    if nodes != [run.place]:
        return False
    told = [culprit["sentence"], name, *(one["sentence"] for one in culprit["evidence"])]
    if CauseName(culprit["cause"]) is CauseName.SETTING:
        words = {word.rstrip(",;:") for sentence in told for word in sentence.split()}
        return of is PlaceKind.SETTING and not words.isdisjoint(run.fault)
    if CauseName(culprit["cause"]) is CauseName.ONE_DIRECTION:
        slow = "sends" if "send_rate" in run.fault else "receives"
        return culprit["sentence"].endswith(f"what it {slow}")
    return of is PlaceKind.NODE


def _fits_alike(kind: Kind, alternatives: Sequence[str]) -> bool:
    """Whether one of the causes is among what fits alike, by its headline."""
    forms = [
        re.escape(BY_NAME[cause].headline)
        .replace(re.escape("{place}"), ".+")
        .replace(re.escape("{detail}"), ".*")
        for cause in kind.causes
    ]
    return any(re.fullmatch(form, one) for form in forms for one in alternatives)


def _short(sentence: str) -> str:
    return textwrap.shorten(sentence, SENTENCE, placeholder=" …")


def _not_judged(reason: str) -> Judged:
    return Judged(Found.NOT_JUDGED, (_short(reason),))


@contextmanager
def planted(run: Run, testbed: Testbed, settings: Settings) -> Iterator[None]:
    """What is done within meets the run's fault, which is gone afterwards whatever happens.

    Raises NetproofError where the testbed does not get so, and where a fault of seconds did not
    begin and end within.
    """
    if run.kind == HEALTHY:
        yield
        return
    seconds = KINDS[run.kind].seconds
    try:
        if seconds is None:
            testbed.plant(run.place, run.fault)
            yield
        else:
            with _for_a_while(run, testbed, seconds, settings.flap_within_s):
                yield
    except BaseException:
        # The testbed is begun anew or taken down after this; the first error is the one to tell.
        with suppress(NetproofError):
            testbed.lift()
        raise
    testbed.lift()


@contextmanager
def _for_a_while(run: Run, testbed: Testbed, seconds: float, within_s: float) -> Iterator[None]:
    """A fault of so many seconds, at a drawn moment after the first launch on its node."""
    over, ended = threading.Event(), []

    def plant() -> None:
        while not launching_on(run.place):
            if over.wait(POLL_S):
                return
        if over.wait(random.Random(run.seed).uniform(0, within_s)):
            return
        process = testbed.plant_for(run.place, run.fault, seconds)
        while process.poll() is None:
            if over.wait(POLL_S):
                process.terminate()
                process.wait()
                return
        ended.append(process.returncode)

    thread = threading.Thread(target=plant)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
    if ended != [0]:
        raise NetproofError(
            f"{run.place}: the fault did not come and go while the run was made"
            f" ({f'testbed plant ended with {ended[0]}' if ended else 'the run ended before'})"
        )


def launching_on(node: str) -> bool:
    """Whether a launch runs on a node now."""
    command = ["squeue", "--noheader", "--steps", "--nodelist", node, "--format", "%i"]
    asked = subprocess.run(command, capture_output=True, text=True, check=False)
    # The job's own script is a step too, with a word for a number.
    return any(re.fullmatch(r"\d+\.\d+", step) for step in asked.stdout.split())


MISLED = """import runpy

site_configuration = runpy.run_path({site!r})["site_configuration"]
(system,) = site_configuration["systems"]
for one in [*system["partitions"], *site_configuration["environments"]]:
    one["env_vars"] = [
        [name, {wrong!r} if value == {right!r} else value]
        for name, value in one.get("env_vars", [])
    ]
"""


def site_settings(run: Run, folder: Path) -> dict[str, str]:
    """Variables for the topology of a run, and for a site that leads MPI astray where it has to."""
    settings = {"NETPROOF_TOPOLOGY": str(_topology(run.topology))}
    if run.kind != HEALTHY and KINDS[run.kind].misleads:
        place = folder / "site-config"
        place.mkdir()
        (place / "settings.py").write_text(SITE.with_name("settings.py").read_text())
        text = MISLED.format(site=str(SITE), wrong=MANAGEMENT, right=UNDER_TEST)
        (place / SITE.name).write_text(text)
        settings["RFM_CONFIG_PATH"] = str(place)
    return settings


def measure(run: Run, settings: Settings, folder: Path, lock: int) -> Judged:
    """ReFrame and the diagnosis of its session; the report stays in ``folder``.

    Raises NetproofError where ReFrame leaves no report.
    """
    system, report = f"testbed:{run.switch}", folder / "run-0.json"
    several = "|".join(map(re.escape, run.environments))
    variables = site_settings(run, folder)
    measuring.measure(
        [
            *("--system", system, "-S", "launches=1", "-p", f"^({several})$"),
            *("--exec-policy=serial", "-c", str(ROOT / "checks"), "-r"),
        ],
        folder=folder,
        report=report,
        log=folder / "reframe.log",
        settings=variables,
        lock=lock,
        patience_s=settings.run_limit_s,
    )
    # Since when is asked of no other session.
    ours = {name: value for name, value in os.environ.items() if name != "NETPROOF_STORE"}
    ran = subprocess.run(
        [
            *("netproof", "diagnose", run.switch, "--session", str(report)),
            *("--system", system, "--back", "0", "--json"),
        ],
        cwd=folder,
        env={**ours, **variables, "RFM_REPORT_FILE": str(report)},
        capture_output=True,
        text=True,
        check=False,
    )
    (folder / "diagnosis.json").write_text(ran.stdout)
    (folder / "diagnosis.err").write_text(ran.stderr)
    return judge(run, ran.returncode, ran.stdout, ran.stderr)


def make(run: Run, campaign: Campaign, testbed: Testbed, folder: Path, lock: int) -> Result:
    """Make one run, all of it in ``folder``. Raises CannotRunError where none can be made."""
    settings, started = campaign.settings, now()
    wall_s, before, after = 0.0, (), ()
    try:
        testbed.up(_topology(run.topology))
        # A busy CPU that is planted is no noise.
        wait_until_quiet(settings)
        before = os.getloadavg()
        average = ", ".join(f"{one:.2f}" for one in before)
        print(f"{run.number}/{len(campaign.runs)} {run}: load average {average}", flush=True)
        with planted(run, testbed, settings):
            begun = time.monotonic()
            try:
                with limited(settings.run_limit_s):
                    judged = measure(run, settings, folder, lock)
            finally:
                wall_s, after = time.monotonic() - begun, os.getloadavg()
    except CannotRunError:
        raise
    except (NetproofError, TooLongError, OSError) as error:
        judged = _not_judged(str(error))
        # Of what went wrong nothing may be left to disturb the next run.
        testbed.begin_anew()
    return Result(run, judged, started, wall_s, before, after)


def read(folder: Path) -> tuple[Campaign, list[Result]]:
    """A campaign, and the results of the runs that it made, in their order.

    Raises CannotRunError where the folder has none, or a file of it cannot be understood.
    """
    return campaigns.read(folder, _campaign_of, _result)


def _campaign_of(document: Mapping[str, Any]) -> Campaign:
    return Campaign(
        Settings(**document["settings"]),
        tuple(_run(run) for run in document["runs"]),
        document["code"],
        document["machine"],
    )


def _run(document: Mapping[str, Any]) -> Run:
    run = Run(**{**document, "environments": tuple(document["environments"])})
    if run.kind not in SAID:
        raise ValueError(f"{run.kind!r} is no kind of fault")
    return run


def _result(document: Mapping[str, Any]) -> Result:
    judged = document["judged"]
    return Result(
        _run(document["run"]),
        Judged(Found(judged["found"]), tuple(judged["said"]), judged["outcome"]),
        document["started"],
        document["wall_s"],
        tuple(document["before"]),
        tuple(document["after"]),
    )


def go_on(folder: Path) -> None:
    """Make the runs of a campaign that have no result yet or were not judged, and tell of each.

    Raises CannotRunError where it cannot go on; what was made until then stays.
    """
    with locked(folder) as lock:
        campaign, results = read(folder)
        insist_on_code(folder, campaign)
        done = {one.run.number for one in results if one.judged.found is not Found.NOT_JUDGED}
        left = [run for run in campaign.runs if run.number not in done]
        if not left:
            return
        testbed = Testbed(folder / "testbed.log")

        def made(run: Run, place: Path) -> Result:
            return make(run, campaign, testbed, place, lock)

        def tell(result: Result) -> None:
            said = " · ".join(result.judged.said) or "nothing was found"
            print(f"  {result.judged.found}, {result.wall_s:.0f} s: {said}", flush=True)

        try:
            make_each(folder, left, made, tell)
        finally:
            testbed.restore()


def missed(campaign: Campaign, results: Sequence[Result]) -> list[str]:
    """A sentence for each aim that was missed, or that so many runs cannot show."""
    sentences = []
    if len(results) < len(campaign.runs):
        sentences.append(f"{len(results)} of {len(campaign.runs)} runs were made")
    broken = sum(result.judged.found is Found.NOT_JUDGED for result in results)
    if broken:
        sentences.append(f"{broken} runs were not judged; --resume makes them again")
    for name, said in SAID.items():
        found = [one.judged.found for one in results if one.run.kind == name]
        judged = [one for one in found if one is not Found.NOT_JUDGED]
        least = HEALTHY_RUNS if name == HEALTHY else RUNS
        right = judged.count(Found.RIGHT)
        if len(judged) < least:
            sentences.append(f"{said}: {len(judged)} of the {least} runs that it takes")
        if name == HEALTHY and right < len(judged):
            sentences.append(
                f"{len(judged) - right} of {len(judged)} healthy runs accuse something"
            )
        elif right < LEAST_RIGHT * len(judged):
            sentences.append(f"{said}: {right} of {len(judged)} right")
    return sentences


HEAD = (
    *("planted", "on", "runs", *Found, "cannot be told", "not right at most (95 %)"),
    *("median s", "longest s"),
)


def table(campaign: Campaign, results: Sequence[Result]) -> str:
    """What a campaign found, as Markdown."""
    lines = [_described(campaign, results), "", row(HEAD), row(["---"] * len(HEAD))]
    for name, said in SAID.items():
        several = [one for one in results if one.run.kind == name]
        if several:
            on = ", ".join(sorted({one.run.switch for one in several}))
            lines.append(row([said, on, *_cells(several)]))
    odd = [one for one in results if one.judged.found is not Found.RIGHT]
    lines += ["", "Not right:" if odd else "All runs that were made are right."]
    if odd:
        lines += ["", *map(_told, odd)]
    aims = missed(campaign, results)
    lines += ["", *(f"- MISSED: {sentence}." for sentence in aims)] if aims else ["", "Aims met."]
    return "\n".join(lines)


def _described(campaign: Campaign, results: Sequence[Result]) -> str:
    settings, machine = campaign.settings, campaign.machine
    days = sorted({result.started[:10] for result in results})
    when = f", {' to '.join(dict.fromkeys((days[0], days[-1])))}" if days else ""
    loads = [result.before[0] for result in results if result.before]
    load = f" Load average before a run: {min(loads):.2f} to {max(loads):.2f}." if loads else ""
    return (
        f"Smoke runs, seed {settings.seed}, {machine['cpus']} CPUs, Linux {machine['kernel']}, code"
        f" {campaign.code}{when}.{load}"
    )


def _cells(results: Sequence[Result]) -> list[str]:
    found = Counter(result.judged.found for result in results)
    judged = len(results) - found[Found.NOT_JUDGED]
    unknown = sum(result.judged.outcome == Outcome.UNKNOWN.value for result in results)
    limit = upper_limit(judged - found[Found.RIGHT], judged) if judged else None
    seconds = [result.wall_s for result in results]
    return [
        *(str(count) for count in (len(results), *(found[one] for one in Found), unknown)),
        "not known" if limit is None else f"{100 * limit:.0f} %",
        f"{median(seconds):.0f}",
        f"{max(seconds):.0f}",
    ]


def _told(result: Result) -> str:
    run = result.run
    facts = [f"seed {run.seed}", result.started, f"{result.wall_s:.0f} s"]
    facts.append(", ".join(run.environments))
    if result.before and result.after:
        facts.append(f"load average {result.before[0]:.1f} to {result.after[0]:.1f}")
    said = " · ".join(result.judged.said) or "nothing was found"
    return f"- run {run.number}, {run} ({', '.join(facts)}): **{result.judged.found}**: {said}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ci/diagnose-campaign", description=__doc__, allow_abbrev=False
    )
    add_where(parser)
    settings = parser.add_argument_group("with --out")
    settings.add_argument(
        "--runs",
        type=number(int, 0),
        default=RUNS,
        metavar="N",
        help="runs of each kind of fault (default: %(default)s)",
    )
    settings.add_argument(
        "--healthy",
        type=number(int, 0),
        default=HEALTHY_RUNS,
        metavar="N",
        help="runs without a fault (default: %(default)s)",
    )
    settings.add_argument(
        "--kinds",
        nargs="+",
        choices=list(KINDS),
        default=list(KINDS),
        metavar="KIND",
        help=f"only these kinds of faults: {', '.join(KINDS)}",
    )
    settings.add_argument(
        "--seed", type=int, help="of the order, the places and all else; drawn by default"
    )
    flap = ("flap-within", 30.0, "seconds after the first launch in which a link goes down for 2 s")
    add_limits(settings, flap)
    return parser


def _campaign(options: argparse.Namespace) -> Campaign:
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(1, 2**31)
    settings = Settings(
        seed,
        options.flap_within,
        options.quiet_share,
        options.quiet_seconds,
        options.quiet_limit,
        options.run_limit,
    )
    kinds = [name for name in KINDS if name in options.kinds]
    runs = planned(kinds, options.runs, options.healthy, seed)
    if not runs:
        raise CannotRunError("no run was asked for")
    return Campaign(settings, runs, code_digest(), this_machine())


def main(arguments: Sequence[str]) -> int:
    """Make a campaign, go on with one, or print one: 0 aims met, 1 one missed, 2 not done."""
    options = options_of(_parser(), arguments)

    def found(folder: Path) -> tuple[str, bool]:
        campaign, results = read(folder)
        return table(campaign, results), not missed(campaign, results)

    return carry_out(
        "ci/diagnose-campaign",
        options,
        lambda folder: begin(folder, _campaign(options)),
        go_on,
        found,
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
