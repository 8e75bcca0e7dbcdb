"""Acceptance runs of the healthy testbed under conditions of the machine, and of a sick switch.

Each run is what ``ci/quickstart`` does. No healthy one may be red, and every sick one has to be.
What is missing or cannot be understood of a run counts against it, whichever way it was to end.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import random
import subprocess
import sys
import tempfile
import textwrap
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from pathlib import Path
from statistics import median
from typing import Any

from ci import campaigns, machine_load
from ci.campaigns import (
    CONFIDENCE,
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
    pressure_seconds,
    row,
    this_machine,
    upper_limit,
    wait_until_quiet,
)
from netproof.commands.nightly import measuring
from netproof.criteria import Level
from netproof.errors import NetproofError
from netproof.measurement.case import Case
from netproof.present import documents
from netproof.session import job_files
from netproof.site import site
from netproof.site.site_file import JUDGE_ENVIRONMENT
from netproof.verdict.judged import CANNOT_JUDGE, FAILED, PASSED

HEALTHY_TOPOLOGY = ROOT / "ci" / "testbed" / "topology.yaml"
SICK_TOPOLOGY = ROOT / "docs" / "criteria" / "sick-switch.yaml"
SITE = ROOT / "site-config" / "testbed.py"

LEAST_HEALTHY, LEAST_QUIET, LEAST_SICK = 30, 10, 20
"""Aim: so many healthy runs of which none is red, so many of them quiet, so many sick."""
MOST_INCONCLUSIVE = 0.1
"""Aim: the share of quiet runs that may be inconclusive."""

SENTENCE = 200
"""Characters that are kept of a sentence on a case."""
MOST_CASES = 6
"""Cases of a run that a table names."""


class Condition(StrEnum):
    """What the machine or the switch is like during a run."""

    QUIET = "quiet"
    ONE_CPU = "one-cpu"
    BURSTS = "bursts"
    COMPILER = "compiler"
    SICK = "sick"


SAID = {
    Condition.QUIET: "quiet",
    Condition.ONE_CPU: "one CPU taken throughout",
    Condition.BURSTS: "all CPUs taken in bursts",
    Condition.COMPILER: "a compiler beside",
    Condition.SICK: "sick switch, quiet",
}
COUNTS = {
    Condition.QUIET: 10,
    Condition.ONE_CPU: 7,
    Condition.BURSTS: 7,
    Condition.COMPILER: 6,
    Condition.SICK: 20,
}


class Outcome(StrEnum):
    """How a run ended. Only what netproof itself says of a whole session is more than unjudged."""

    GREEN = "green"
    INCONCLUSIVE = "inconclusive"
    RED = "red"
    NOT_JUDGED = "not judged"


@dataclass(frozen=True)
class Settings:
    """What all runs of a campaign have in common, chosen when it begins.

    ``whole``: all launches and both switches, as ``ci/quickstart``, and not as its ``--smoke``;
    ``burst_s`` and ``pause_s``: means; ``quiet_share``: the most that others may use of all CPUs
    over ``quiet_s`` seconds before a run begins, for which it waits ``quiet_limit_s``;
    ``run_limit_s``: after which a run is ended and counts as not judged.
    """

    seed: int
    whole: bool
    burst_s: float
    pause_s: float
    quiet_share: float
    quiet_s: float
    quiet_limit_s: float
    run_limit_s: float


@dataclass(frozen=True)
class Run:
    """One run to make: its number from 1 in the order, and the seed of what is beside it."""

    number: int
    condition: Condition
    seed: int

    @property
    def sick(self) -> bool:
        """Whether it has to be red."""
        return self.condition is Condition.SICK

    @property
    def folder(self) -> str:
        """Name of its folder in the campaign's."""
        return f"{self.number:03}-{self.condition}"


@dataclass(frozen=True)
class FlaggedCase:
    """A case that failed or is inconclusive: its name, the criteria that say so, and why."""

    name: str
    level: Level
    criteria: tuple[str, ...]
    sentences: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.name}: {'; '.join(self.sentences) or self.level}"


@dataclass(frozen=True)
class Judged:
    """What became of a run: ``reason`` where it was not judged, ``faults`` beyond a case."""

    outcome: Outcome
    reason: str = ""
    cases: tuple[FlaggedCase, ...] = ()
    faults: tuple[str, ...] = ()

    @property
    def by_criterion(self) -> tuple[str, ...]:
        """The criteria by which cases failed."""
        failed = (case.criteria for case in self.cases if case.level is Level.FAIL)
        return tuple(sorted(set(chain.from_iterable(failed))))


@dataclass(frozen=True)
class Machine:
    """The machine around a run.

    ``before`` and ``after``: load averages over 1, 5 and 15 minutes; ``waited_s`` for it to be
    quiet, ``others`` share of all CPUs then; ``pressure_s``: seconds of the run in which some task
    waited for a CPU, None where the kernel does not tell; ``load_cpu_s``: CPU seconds of the
    program beside it; ``cpu``: the one that it took, where it took one.
    """

    before: tuple[float, ...]
    after: tuple[float, ...]
    waited_s: float
    others: float
    pressure_s: float | None
    load_cpu_s: float
    cpu: int | None


@dataclass(frozen=True)
class Launches:
    """Launches that a run made, how many ended with an error, their seconds; seeds of its jobs.

    Each job draws the order of its launches from a seed of its own, and writes it down.
    """

    made: int
    failed: int
    seconds: float
    seeds: tuple[int, ...]


@dataclass(frozen=True)
class Result:
    """A run with what became of it; ``machine`` and ``launches`` None where it came not so far."""

    run: Run
    judged: Judged
    started: str
    wall_s: float
    machine: Machine | None
    launches: Launches | None

    @property
    def wrong(self) -> bool:
        """Whether it counts against the aims: red or not judged; a sick one, anything but red."""
        if self.run.sick:
            # A switch is not found sick by a job that did not start.
            return self.judged.outcome is not Outcome.RED or not self.judged.by_criterion
        return self.judged.outcome in (Outcome.RED, Outcome.NOT_JUDGED)


@dataclass(frozen=True)
class Campaign:
    """What a campaign is to do: its settings, its runs in order, its code and its machine."""

    settings: Settings
    runs: tuple[Run, ...]
    code: str
    machine: Mapping[str, Any]


def planned(counts: Mapping[Condition, int], seed: int) -> tuple[Run, ...]:
    """So many runs of each condition, in an order and with seeds that ``seed`` draws."""
    drawn = random.Random(seed)
    conditions = [condition for condition in Condition for _ in range(counts.get(condition, 0))]
    drawn.shuffle(conditions)
    return tuple(
        Run(number, condition, drawn.randrange(1, 2**31))
        for number, condition in enumerate(conditions, 1)
    )


def judge(status: int, text: str, errors: str) -> Judged:
    """What ``netproof verdict --json`` said: its exit status, its document, its errors.

    Where they do not fit together, or are not what docs/operation.md describes, the run was not
    judged.
    """
    try:
        document = json.loads(text)
    except ValueError:
        said = " ".join(errors.split()) or "nothing else was said"
        return _not_judged(f"netproof verdict ended with {status} and left no JSON: {said}")
    try:
        return _judge(status, document)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        return _not_judged(f"what netproof verdict printed is no verdict: {error!r}")


def _judge(status: int, document: Mapping[str, Any]) -> Judged:
    if document["format"] != documents.FORMAT:
        return _not_judged(f"the verdict's format is {document['format']}, not {documents.FORMAT}")
    found = [_flagged(case, document["system"]) for case in document["cases"]]
    if not found:
        return _not_judged("the verdict has no cases")
    cases = tuple(case for case in found if case is not None)
    faults = tuple(_short(fault) for fault in document["faults"])
    failed = bool(faults) or any(case.level is Level.FAIL for case in cases)
    left, word = bool(document["left"]), document["verdict"]
    if status == PASSED and word == "pass" and not (cases or faults or left):
        return Judged(Outcome.GREEN)
    if status == FAILED and word == "fail" and failed:
        return Judged(Outcome.RED, "", cases, faults)
    undecided = cases and not (failed or left) and word not in ("pass", "fail")
    if status == CANNOT_JUDGE and undecided:
        return Judged(Outcome.INCONCLUSIVE, "", cases)
    return dataclasses.replace(
        _not_judged(
            f"netproof verdict ended with {status} and says {word!r}, with {len(cases)} of"
            f" {len(found)} cases failed or inconclusive, {len(faults)} faults beyond a case"
            f"{' and cases that were left' if left else ''}"
        ),
        cases=cases,
        faults=faults,
    )


def _flagged(case: Mapping[str, Any], system: str) -> FlaggedCase | None:
    """A case of the document that failed or is inconclusive; None for one that passed."""
    word = Level(case["verdict"])
    levels = {Level(finding["level"]) for finding in case["findings"]}
    if word is Level.FAIL or case["faults"] or Level.FAIL in levels:
        level = Level.FAIL
    elif Level.INCONCLUSIVE in {word, *levels}:
        level = Level.INCONCLUSIVE
    elif word in (Level.PASS, Level.WARN):
        return None
    else:
        raise ValueError(f"a case is {word!r}")
    counted = [finding for finding in case["findings"] if finding["level"] == level]
    fields = [field.name for field in dataclasses.fields(Case) if field.name != "system"]
    what = Case(system, *(case[name] for name in fields))
    sentences = (*case["faults"], *(finding["why"] for finding in counted))
    return FlaggedCase(
        f"{what.partition} {what.environment} {what.what()}",
        level,
        tuple(sorted({finding["criterion"] for finding in counted})),
        tuple(_short(_without(str(what), sentence)) for sentence in sentences),
    )


def _without(case: str, sentence: str) -> str:
    """A sentence without the case and its switch, where it begins with them."""
    return sentence.partition("): ")[2] or sentence if sentence.startswith(case) else sentence


def _short(sentence: str) -> str:
    return textwrap.shorten(sentence, SENTENCE, placeholder=" …")


def _not_judged(reason: str) -> Judged:
    return Judged(Outcome.NOT_JUDGED, _short(reason))


def launches_in(folder: Path) -> Launches | None:
    """The launches that jobs below a run's ``folder`` recorded; None where they cannot be read.

    A job whose checks did not all pass is in ``stage`` and perhaps in ``output`` as well.
    """
    jobs: dict[Path, Path] = {}
    for place in ("output", "stage"):
        for path in (folder / place).rglob(job_files.LAUNCHES_FILE):
            jobs[path.parent.relative_to(folder / place)] = path.parent
    made, failed, seconds, seeds = 0, 0, 0.0, set()
    try:
        for job in jobs.values():
            records = job_files.records(job).values()
            made += len(records)
            failed += sum(record.status != 0 for record in records)
            seconds += sum(record.wall_s for record in records)
            seeds.add(json.loads((job / "plan.json").read_text())["seed"])
    except (NetproofError, OSError, ValueError, KeyError, TypeError):
        return None
    return Launches(made, failed, seconds, tuple(sorted(seeds))) if made else None


def load_of(run: Run, settings: Settings, folder: Path) -> tuple[list[str] | None, int | None]:
    """Arguments of the program that a run has beside it, and the one CPU that it takes."""
    cpus = sorted(os.sched_getaffinity(0))
    if run.condition is Condition.ONE_CPU:
        cpu = random.Random(run.seed).choice(cpus)
        return ["one-cpu", "--cpu", str(cpu)], cpu
    if run.condition is Condition.BURSTS:
        means = ["--burst", str(settings.burst_s), "--pause", str(settings.pause_s)]
        return ["bursts", "--seed", str(run.seed), *means, "--cpus", *map(str, cpus)], None
    if run.condition is Condition.COMPILER:
        return ["compiler", "--seed", str(run.seed), "--folder", str(folder)], None
    return None, None


def make(run: Run, campaign: Campaign, testbed: Testbed, folder: Path, lock: int) -> Result:
    """Make one run, all of it in ``folder``. Raises CannotRunError where none can be made."""
    settings, started = campaign.settings, now()
    topology = SICK_TOPOLOGY if run.sick else HEALTHY_TOPOLOGY
    machine, wall_s = None, 0.0
    try:
        testbed.up(topology)
        waited, others = wait_until_quiet(settings)
        with ExitStack() as stack:
            place = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=folder)))
            arguments, cpu = load_of(run, settings, place)
            load = stack.enter_context(machine_load.running(arguments)) if arguments else None
            before, pressure = os.getloadavg(), pressure_seconds()
            begun = time.monotonic()
            try:
                with limited(settings.run_limit_s):
                    judged = measure(run, settings, folder, lock)
            finally:
                wall_s = time.monotonic() - begun
            after, later = os.getloadavg(), pressure_seconds()
            waiting = None if None in (pressure, later) else later - pressure
            used = load.cpu_seconds() if load else 0.0
        machine = Machine(before, after, waited, others, waiting, used, cpu)
        if load and not used:
            judged = _not_judged("the program beside the run used no CPU")
    except CannotRunError:
        raise
    except (NetproofError, TooLongError, OSError) as error:
        judged = _not_judged(str(error))
        # Of what went wrong nothing may be left to disturb the next run.
        testbed.begin_anew()
    return Result(run, judged, started, wall_s, machine, launches_in(folder))


def sick_environment(run: Run, site_file: Path = SITE) -> str:
    """The one environment that a run on the sick switch measures, drawn by its seed.

    A whole run has all of them to be found red by: it is red wherever one of them is.
    """
    (system,) = site.load(site_file)["systems"]
    several = {name for partition in system["partitions"] for name in partition["environs"]}
    return random.Random(run.seed).choice(sorted(several - {JUDGE_ENVIRONMENT}))


def measure(run: Run, settings: Settings, folder: Path, lock: int) -> Judged:
    """ReFrame and the verdict on it, as ``ci/quickstart`` has them; the report stays in ``folder``.

    Raises NetproofError where ReFrame leaves no report.
    """
    system = "testbed" if settings.whole and not run.sick else "testbed:gige"
    options = [] if settings.whole else ["-S", "launches=1"]
    if run.sick:
        options += ["-p", f"^{sick_environment(run)}$"]
    report = folder / "run-0.json"
    measuring.measure(
        ["--system", system, *options, "--exec-policy=serial", "-c", str(ROOT / "checks"), "-r"],
        folder=folder,
        report=report,
        log=folder / "reframe.log",
        settings={},
        lock=lock,
        patience_s=settings.run_limit_s,
    )
    ran = subprocess.run(
        ["netproof", "verdict", str(report), "--system", system, "--json"],
        cwd=folder,
        env={**os.environ, "RFM_REPORT_FILE": str(report)},
        capture_output=True,
        text=True,
        check=False,
    )
    (folder / "verdict.json").write_text(ran.stdout)
    (folder / "verdict.err").write_text(ran.stderr)
    return judge(ran.returncode, ran.stdout, ran.stderr)


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
    return Run(document["number"], Condition(document["condition"]), document["seed"])


def _result(document: Mapping[str, Any]) -> Result:
    judged, machine, launches = (document[name] for name in ("judged", "machine", "launches"))
    return Result(
        _run(document["run"]),
        Judged(
            Outcome(judged["outcome"]),
            judged["reason"],
            tuple(
                FlaggedCase(
                    case["name"],
                    Level(case["level"]),
                    tuple(case["criteria"]),
                    tuple(case["sentences"]),
                )
                for case in judged["cases"]
            ),
            tuple(judged["faults"]),
        ),
        document["started"],
        document["wall_s"],
        machine
        and Machine(
            **{**machine, "before": tuple(machine["before"]), "after": tuple(machine["after"])}
        ),
        launches and Launches(**{**launches, "seeds": tuple(launches["seeds"])}),
    )


def go_on(folder: Path) -> list[Result]:
    """Make the runs of a campaign that have no result yet, and say how each ends.

    Raises CannotRunError where it cannot go on; what was made until then stays.
    """
    campaign, results = read(folder)
    insist_on_code(folder, campaign)
    missing = machine_load.missing_packages()
    if missing and any(run.condition is Condition.COMPILER for run in campaign.runs):
        raise CannotRunError(
            f"the condition 'compiler' takes what is not here: apt-get install {' '.join(missing)}"
        )
    with locked(folder) as lock:
        done = {result.run for result in results}
        left = [run for run in campaign.runs if run not in done]
        if not left:
            return results
        testbed = Testbed(folder / "testbed.log")

        def tell(result: Result) -> None:
            results.append(result)
            print(_line(result, len(campaign.runs)), flush=True)

        try:
            make_each(
                folder, left, lambda run, place: make(run, campaign, testbed, place, lock), tell
            )
        finally:
            testbed.restore()
    return results


def _line(result: Result, runs: int) -> str:
    said = _said(result.judged)
    return (
        f"{result.run.number}/{runs} {SAID[result.run.condition]}: {result.judged.outcome},"
        f" {result.wall_s:.0f} s{'; ' if said else ''}{said}"
    )


def _said(judged: Judged) -> str:
    """Why a run is not green, on one line; what was measured before what was not."""
    parts = [*([judged.reason] if judged.reason else []), *judged.faults]
    ordered = sorted(judged.cases, key=lambda case: not case.criteria)
    parts += [str(case) for case in ordered[:MOST_CASES]]
    more = len(judged.cases) - MOST_CASES
    return " · ".join([*parts, *([f"and {more} more cases"] if more > 0 else [])])


def missed(campaign: Campaign, results: Sequence[Result]) -> list[str]:
    """A sentence for each aim that was missed, or that so many runs cannot show."""
    sentences = []
    if len(results) < len(campaign.runs):
        sentences.append(f"{len(results)} of {len(campaign.runs)} runs were made")
    healthy = [result for result in results if not result.run.sick]
    sick = [result for result in results if result.run.sick]
    quiet = [result for result in healthy if result.run.condition is Condition.QUIET]
    for what, made, least in (
        ("healthy runs", healthy, LEAST_HEALTHY),
        ("quiet runs", quiet, LEAST_QUIET),
        ("runs on the sick switch", sick, LEAST_SICK),
    ):
        if len(made) < least:
            sentences.append(f"{what}: {len(made)} of the {least} that it takes")
    of_a_kind = Counter(result.run.condition for result in results)
    sentences += [
        f"no run was made with this: {SAID[one]}" for one in Condition if not of_a_kind[one]
    ]
    wrong = sum(result.wrong for result in healthy)
    if wrong:
        sentences.append(f"{wrong} of {len(healthy)} healthy runs were red or not judged")
    undecided = sum(result.judged.outcome is Outcome.INCONCLUSIVE for result in quiet)
    if undecided > MOST_INCONCLUSIVE * len(quiet):
        sentences.append(f"{undecided} of {len(quiet)} quiet runs were inconclusive")
    unseen = sum(result.wrong for result in sick)
    if unseen:
        sentences.append(f"{unseen} of {len(sick)} sick runs were not red by a criterion")
    return sentences


HEAD = (
    *("condition", "runs", "green", "inconclusive", "red", "not judged"),
    f"wrong at most ({CONFIDENCE:.0%})",
    *("median s", "longest s", "CPUs taken beside", "waiting for a CPU"),
)


def table(campaign: Campaign, results: Sequence[Result]) -> str:
    """What a campaign found, as Markdown."""
    groups = [(SAID[one], [r for r in results if r.run.condition is one]) for one in Condition]
    groups.insert(
        len(groups) - 1, ("all healthy", [result for result in results if not result.run.sick])
    )
    lines = [_described(campaign, results), "", row(HEAD), row(["---"] * len(HEAD))]
    lines += [row([name, *_cells(several)]) for name, several in groups if several]
    odd = [
        result
        for result in results
        if result.wrong or (not result.run.sick and result.judged.outcome is not Outcome.GREEN)
    ]
    lines += ["", "Not as it should be:" if odd else "All runs ended as they should."]
    if odd:
        lines += ["", *(f"- {_told(result)}" for result in odd)]
    found = Counter(
        criterion
        for result in results
        if result.run.sick
        for criterion in result.judged.by_criterion
    )
    if found:
        said = ", ".join(f"{name} in {count}" for name, count in found.most_common())
        lines += ["", f"The sick switch was red by: {said}."]
    aims = missed(campaign, results)
    lines += ["", *(f"- MISSED: {sentence}." for sentence in aims)] if aims else ["", "Aims met."]
    return "\n".join(lines)


def _described(campaign: Campaign, results: Sequence[Result]) -> str:
    settings, machine = campaign.settings, campaign.machine
    kind = "whole runs" if settings.whole else "smoke runs"
    groups = {True: "on", False: "off", None: "not there"}[machine["autogroup"]]
    days = sorted({result.started[:10] for result in results})
    when = f", {' to '.join(dict.fromkeys((days[0], days[-1])))}" if days else ""
    return (
        f"{kind.capitalize()}, seed {settings.seed}, {machine['cpus']} CPUs, Linux"
        f" {machine['kernel']}, autogroup {groups}, code {campaign.code}{when}. Bursts of"
        f" {settings.burst_s:g} s and pauses of {settings.pause_s:g} s on average."
    )


def _cells(results: Sequence[Result]) -> list[str]:
    outcomes = Counter(result.judged.outcome for result in results)
    seconds = [result.wall_s for result in results]
    known = [result for result in results if result.machine and result.wall_s]
    taken = [result.machine.load_cpu_s / result.wall_s for result in known]
    waiting = [
        result.machine.pressure_s / result.wall_s
        for result in known
        if result.machine.pressure_s is not None
    ]
    order = (Outcome.GREEN, Outcome.INCONCLUSIVE, Outcome.RED, Outcome.NOT_JUDGED)
    return [
        str(len(results)),
        *(str(outcomes[outcome]) for outcome in order),
        f"{100 * upper_limit(sum(result.wrong for result in results), len(results)):.0f} %",
        f"{median(seconds):.0f}",
        f"{max(seconds):.0f}",
        f"{median(taken):.2f}" if taken else "not available",
        f"{100 * median(waiting):.0f} %" if waiting else "not available",
    ]


def _told(result: Result) -> str:
    machine, launches = result.machine, result.launches
    facts = [f"seed {result.run.seed}", f"{result.started}", f"{result.wall_s:.0f} s"]
    if machine:
        loads = " to ".join(f"{average[0]:.1f}" for average in (machine.before, machine.after))
        facts.append(f"load average {loads}")
    if machine and machine.cpu is not None:
        facts.append(f"CPU {machine.cpu} taken")
    if launches:
        facts.append(f"{launches.failed} of {launches.made} launches failed")
    said = _said(result.judged) or "nothing was found"
    return (
        f"run {result.run.number}, {SAID[result.run.condition]} ({', '.join(facts)}):"
        f" **{result.judged.outcome}**: {said}"
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="ci/false-reds", description=__doc__, allow_abbrev=False)
    add_where(parser)
    counts = parser.add_argument_group("runs of each condition, with --out")
    for condition, count in COUNTS.items():
        counts.add_argument(
            f"--{condition}",
            type=number(int, 0),
            default=count,
            metavar="N",
            help=f"{SAID[condition]} (default: %(default)s)",
        )
    settings = parser.add_argument_group("what all runs have in common, with --out")
    kind = settings.add_mutually_exclusive_group()
    kind.add_argument(
        "--smoke", dest="whole", action="store_false", help="as ci/quickstart --smoke (the default)"
    )
    kind.add_argument("--whole", action="store_true", help="as ci/quickstart")
    parser.set_defaults(whole=False)
    settings.add_argument(
        "--seed", type=int, help="of the order and of all loads; drawn by default"
    )
    add_limits(
        settings,
        ("burst", 2.0, "mean seconds of a burst"),
        ("pause", 2.0, "mean seconds between bursts"),
    )
    return parser


def _campaign(options: argparse.Namespace) -> Campaign:
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(1, 2**31)
    settings = Settings(
        seed,
        options.whole,
        options.burst,
        options.pause,
        options.quiet_share,
        options.quiet_seconds,
        options.quiet_limit,
        options.run_limit,
    )
    counts = {one: getattr(options, one.replace("-", "_")) for one in Condition}
    runs = planned(counts, seed)
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
        "ci/false-reds", options, lambda folder: begin(folder, _campaign(options)), go_on, found
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
