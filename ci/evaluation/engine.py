"""Plan the runs of an evaluation of plants.yaml, make them one by one, and say what they found.

An evaluation is a folder. Its settings and all planned runs are written when it begins, and each
run has a folder with its result, so that an interrupted one can resume.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain
from pathlib import Path
from statistics import median
from typing import Any

from ci.evaluation import judges, machine
from ci.evaluation.machine import ROOT, CannotRunError, Testbed, TooLongError, now
from ci.evaluation.plants import (
    DERIVING,
    EVALUATIONS,
    FLAP_WITHIN_PAIRS_S,
    FLAP_WITHIN_S,
    Answer,
    Evaluation,
    Grade,
    Run,
    answer,
)
from ci.evaluation.table import counted, markdown, upper_limit
from netproof import codec
from netproof.commands import reframe
from netproof.errors import NetproofError
from netproof.intake import disk
from netproof.session import session
from netproof.verdict.derive import LEAST_SESSIONS

CAMPAIGN_FILE, RESULT_FILE, REPORT = "campaign.json", "result.json", "run-0.json"
SILENT = "nothing was found"
PREFIX = "RFM_REFERENCE_PREFIX"
"""Variable with the folder of references."""
FLOOR = 0.025
"""Least tolerance of derived references: half the smallest planted loss of bandwidth."""


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
        done = {one.run.number for one in counting(evaluation, results)}
        runs = [run for run in campaign.runs if run.number not in done]
        if not runs:
            return
        if any(evaluation.plants[run.kind].slow for run in runs):
            machine.compiled_slow_mpi(folder)
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
    evaluation: Evaluation, run: Run, campaign: Campaign, testbed: Testbed, folder: Path, lock: int
) -> Result:
    """Make one run in ``folder``. Raises CannotRunError if no run is possible at all."""
    settings, plant = campaign.settings, evaluation.plants[run.kind]
    result = Result(run, Answer(Grade.NOT_JUDGED), now(), 0.0)
    within_s = FLAP_WITHIN_PAIRS_S if settings.get("pairs") else FLAP_WITHIN_S
    begin_s = random.Random(run.seed).uniform(0, within_s)
    try:
        testbed.up(ROOT / run.topology)
        # Wait before planting: a planted busy CPU is not noise.
        machine.wait_until_quiet(settings)
        with ExitStack() as stack:
            # A compiler that is killed may have just written there.
            scratch = tempfile.TemporaryDirectory(dir=folder, ignore_cleanup_errors=True)
            own = Path(stack.enter_context(scratch))
            load = stack.enter_context(machine.alongside(plant.load, run.seed, own))
            result = replace(result, before=os.getloadavg())
            waited = machine.pressure_seconds()
            averages = ", ".join(f"{one:.2f}" for one in result.before)
            what = f"{run.number}/{len(campaign.runs)} {evaluation.name_of(run)}"
            print(f"{what}: load average {averages}", flush=True)
            stack.enter_context(
                testbed.planted(run.places, run.fault, seconds=plant.seconds, begin_s=begin_s)
            )
            begun = time.monotonic()
            try:
                with machine.limited(settings["run_limit"]):
                    judged = measure(evaluation, run, settings, folder, lock)
            finally:
                wall_s = time.monotonic() - begun
                result = replace(result, wall_s=wall_s, after=os.getloadavg())
            later = machine.pressure_seconds()
            waiting = None if None in (waited, later) else later - waited
            used = machine.cpu_seconds(load)
            result = replace(result, pressure_s=waiting, load_cpu_s=used)
            if load and not used:
                judged = answer(Grade.NOT_JUDGED, "the program alongside the run used no CPU")
    except CannotRunError:
        raise
    except (NetproofError, TooLongError, OSError) as error:
        judged = answer(Grade.NOT_JUDGED, str(error))
        testbed.rebuild()  # Nothing of the failure may disturb the next run.
    return replace(result, judged=judged)


def measure(
    evaluation: Evaluation, run: Run, settings: Mapping[str, Any], folder: Path, lock: int
) -> Answer:
    """Run the project's checks, if the verb does not measure, and ask; the report stays.

    Raises NetproofError if ReFrame leaves no report or takes longer than a run may.
    """
    variables = site(evaluation, run, folder)
    if evaluation.verb != "measure":
        reframe.measure(
            evaluation.reframe(run, settings),
            folder / REPORT,
            folder / "reframe.log",
            folder=folder,
            settings=variables,
            lock=[lock],
            patience_s=settings["run_limit"],
        )
    return ask(evaluation, run, folder, "answer", variables)


def ask(
    evaluation: Evaluation, run: Run, folder: Path, name: str, variables: Mapping[str, str]
) -> Answer:
    """Ask netproof, and grade its answer, which stays as ``name``.json and .err."""
    # No stored session may date a fault.
    ours = {key: value for key, value in os.environ.items() if key != "NETPROOF_STORE"}
    ran = machine.answered(
        [*evaluation.question(run, folder / REPORT), "--format", "json"],
        folder,
        {**ours, **variables, "RFM_REPORT_FILE": str(folder / REPORT)},
    )
    (folder / f"{name}.json").write_text(ran.stdout)
    (folder / f"{name}.err").write_text(ran.stderr)
    return judges.graded(evaluation, run, ran.returncode, ran.stdout, ran.stderr)


def judged_again(evaluation: Evaluation, folder: Path) -> tuple[Campaign, list[Result]]:
    """Return an evaluation with its reports rejudged by the present code; stored results stay.

    A run without a report, or one that would be repeated, keeps its result.
    """
    campaign, results = read(evaluation, folder)
    again, counted = [], counting(evaluation, results)
    for result in results:
        place = folder / result.run.folder
        if (place / REPORT).is_file() and result in counted:
            variables = site(evaluation, result.run, place)
            judged = ask(evaluation, result.run, place, "answer-again", variables)
            result = replace(result, judged=judged)
        again.append(result)
    code = f"{campaign.code}, judged by {machine.code_digest()}"
    return replace(campaign, code=code), again


def site(evaluation: Evaluation, run: Run, folder: Path) -> dict[str, str]:
    """Return variables for a run's topology, its references, and its site with what it planted.

    Raises CannotRunError if there are no references yet.
    """
    plant, latency_us, variables = evaluation.plants[run.kind], None, dict[str, str]()
    if plant.derived and run.kind != DERIVING:
        references, latency_us = derived(folder.parent)
        variables[PREFIX] = str(references)
    if not plant.unknown:
        variables["NETPROOF_TOPOLOGY"] = str(ROOT / run.topology)
    alteration = evaluation.alteration(run, folder.parent / machine.LIBRARY, latency_us)
    return variables | machine.altered_site(folder, alteration)


@cache
def derived(folder: Path) -> tuple[Path, float]:
    """Derive references from a campaign's healthy runs; return their folder, and MPI's latency.

    The latency is the median of these runs, µs. Raises CannotRunError if they are too few.
    """
    reports = [
        folder / one.run.folder / REPORT
        for one in read(EVALUATIONS["missed-faults"], folder)[1]
        if one.run.kind == DERIVING and one.judged.found is Grade.RIGHT
    ]
    if len(reports) < LEAST_SESSIONS:
        raise CannotRunError(
            f"{len(reports)} runs are good enough to derive references, and it takes"
            f" {LEAST_SESSIONS}; begin a campaign with a larger --deriving"
        )
    latencies = [
        result.measured.landmarks.latency_us
        for report in reports
        for result in session.load(report).results
        if result.case is not None and result.case.function == "mpi" and result.measured
    ]
    place = folder / "reference-values"
    if not place.is_dir():
        new = place.with_suffix(".new")
        shutil.rmtree(new, ignore_errors=True)
        shutil.copytree(ROOT / "reference-values", new)
        words = ["references", "derive", *map(str, reports), "--write", "--floor", str(FLOOR)]
        ran = machine.answered(words, folder, {**os.environ, PREFIX: str(new)})
        place.with_suffix(".err").write_text(ran.stderr)
        if ran.returncode:
            raise CannotRunError(f"no references: see {place.with_suffix('.err')}")
        new.rename(place)
    return place, median(latencies)


def counting(evaluation: Evaluation, results: Sequence[Result]) -> list[Result]:
    """Return the results that count: a run that is to be repeated does not."""
    broken = Grade.NOT_JUDGED if evaluation.repeats_broken else None
    return [one for one in results if one.judged.found is not broken]


def missed(evaluation: Evaluation, campaign: Campaign, results: Sequence[Result]) -> list[str]:
    """Return a sentence for each aim that was missed or that takes more runs."""
    sentences, counted = [], counting(evaluation, results)
    if len(results) < len(campaign.runs):
        sentences.append(f"{len(results)} of {len(campaign.runs)} runs were made")
    if broken := len(results) - len(counted):
        sentences.append(f"{broken} runs were not judged; --resume makes them again")
    for kind, plant in evaluation.plants.items():
        judged = [one.judged.found for one in counted if one.run.kind == kind]
        runs, good = len(judged), sum(one in plant.good for one in judged)
        undecided = judged.count(Grade.INCONCLUSIVE)
        if runs < plant.least_runs:
            sentences.append(f"{plant.said}: {runs} of the {plant.least_runs} runs it takes")
        if good < plant.least_good * runs:
            sentences.append(f"{plant.said}: {good} of {runs} {' or '.join(plant.good)}")
        if undecided > plant.most_inconclusive * runs:
            sentences.append(f"{plant.said}: {undecided} of {runs} inconclusive")
    return sentences


def table(evaluation: Evaluation, campaign: Campaign, results: Sequence[Result]) -> str:
    """Return an evaluation's results as Markdown, with its missed aims."""
    plants, host, settings = evaluation.plants, campaign.machine, campaign.settings
    groups = {True: "on", False: "off", None: "not there"}[host["autogroup"]]
    days = sorted({result.started[:10] for result in results})
    when = f", {' to '.join(dict.fromkeys((days[0], days[-1])))}" if days else ""
    before = [result.before[0] for result in results if result.before]
    load = f" Load average before a run: {min(before):.2f} to {max(before):.2f}." if before else ""
    pairs = " --pairs" if settings.get("pairs") else ""
    of_each = {
        plant.said: [one for one in results if one.run.kind == kind]
        for kind, plant in plants.items()
    }
    rows = [_row(evaluation, said, some) for said, some in of_each.items() if some]
    rows += [_row(evaluation, "all", results)] if len(rows) > 1 else []
    # A column in which no row has anything is left out.
    heads = [head for head in rows[0] if any(row[head] != "-" for row in rows)] if rows else []
    odd = [one for one in results if one.judged.found is not plants[one.run.kind].good[0]]
    lines = [
        f"{evaluation.name}{pairs}, seed {settings['seed']}, {host['cpus']} CPUs, Linux"
        f" {host['kernel']}, autogroup {groups}, code {campaign.code}{when}.{load}\n",
        *(markdown([heads, *([row[head] for head in heads] for row in rows)]) if rows else []),
        "\nNot as it should be:\n" if odd else "\nAll runs ended as they should.",
        *(_line(evaluation, one) for one in odd),
        "",
    ]
    aims = [f"- MISSED: {sentence}." for sentence in missed(evaluation, campaign, results)]
    return "\n".join([*lines, *(aims or ["Aims met."])])


def _row(evaluation: Evaluation, name: str, results: Sequence[Result]) -> dict[str, str]:
    found, seconds = Counter(one.judged.found for one in results), [one.wall_s for one in results]
    limit = "not known"
    if judged := counting(evaluation, results):
        good = sum(one.judged.found in evaluation.plants[one.run.kind].good for one in judged)
        limit = f"{100 * upper_limit(len(judged) - good, len(judged)):.0f} %"
    known = [one for one in results if one.after and one.wall_s]
    taken = [one.load_cpu_s / one.wall_s for one in known]
    waiting = [one.pressure_s / one.wall_s for one in known if one.pressure_s is not None]
    return {
        "planted": name,
        "on": ", ".join(sorted({one.run.switch for one in results})),
        "runs": str(len(results)),
        **{grade: str(found[grade]) for grade in evaluation.grades},
        "wrong at most (95%)": limit,
        "by": counted(chain.from_iterable(one.judged.by for one in results)),
        "CPUs taken alongside": f"{median(taken):.2f}" if any(taken) else "-",
        "waiting for a CPU": f"{100 * median(waiting):.0f} %" if waiting else "-",
        "median s": f"{median(seconds):.0f}",
        "longest s": f"{max(seconds):.0f}",
    }


def _line(evaluation: Evaluation, result: Result) -> str:
    run, judged = result.run, result.judged
    facts = [f"seed {run.seed}", result.started, f"{result.wall_s:.0f} s"]
    facts += [", ".join(run.environments)] if run.environments else []
    if result.before and result.after:
        facts.append(f"load average {result.before[0]:.1f} to {result.after[0]:.1f}")
    said = " · ".join(judged.said) or SILENT
    return (
        f"- run {run.number}, {evaluation.name_of(run)} ({', '.join(facts)}):"
        f" **{judged.found}**: {said}"
    )
