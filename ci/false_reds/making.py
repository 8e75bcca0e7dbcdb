"""Make runs: ReFrame and the verdict, while the condition's program runs."""

from __future__ import annotations

import dataclasses
import json
import os
import random
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from ci import machine_load
from ci.campaigns.altered_site import SITE
from ci.campaigns.cluster import Testbed
from ci.campaigns.errors import CannotRunError, TooLongError
from ci.campaigns.judged_run import REPORT, answered, measured
from ci.campaigns.keeping import ROOT, code_digest, insist_on_code, locked, make_each
from ci.campaigns.machine import limited, pressure_seconds, wait_until_quiet
from ci.campaigns.telling import now
from ci.false_reds.judging import judge, not_judged
from ci.false_reds.records import (
    SAID,
    Campaign,
    Condition,
    Judged,
    Launches,
    Machine,
    Result,
    Run,
    Settings,
    read,
)
from ci.false_reds.table import said
from netproof.errors import NetproofError
from netproof.session import job_files
from netproof.site import site
from netproof.site.site_file import JUDGE_ENVIRONMENT

HEALTHY_TOPOLOGY = ROOT / "ci" / "testbed" / "topology.yaml"
SICK_TOPOLOGY = ROOT / "docs" / "criteria" / "sick-switch.yaml"


def launches_in(folder: Path) -> Launches | None:
    """Read the launches that jobs below a run's ``folder`` recorded; None if that fails.

    A job with a failed check is in ``stage``, and perhaps in ``output`` as well.
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
    """Return the load program's arguments, and the single CPU that it takes."""
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
    """Make one run in ``folder``. Raises CannotRunError if no run is possible."""
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
            judged = not_judged("the program alongside the run used no CPU")
    except CannotRunError:
        raise
    except (NetproofError, TooLongError, OSError) as error:
        judged = not_judged(str(error))
        # Nothing of the failure may disturb the next run.
        testbed.rebuild()
    return Result(run, judged, started, wall_s, machine, launches_in(folder))


def sick_environment(run: Run, site_file: Path = SITE) -> str:
    """Return the environment of a run on the sick switch, drawn by its seed.

    A whole run measures all of them, and is red if one is.
    """
    (system,) = site.load(site_file)["systems"]
    several = {name for partition in system["partitions"] for name in partition["environs"]}
    return random.Random(run.seed).choice(sorted(several - {JUDGE_ENVIRONMENT}))


def measure(run: Run, settings: Settings, folder: Path, lock: int) -> Judged:
    """Run ReFrame and the verdict like ``ci/quickstart``; the report stays in ``folder``.

    Raises NetproofError if ReFrame leaves no report.
    """
    system = _system(run, settings)
    options = [] if settings.whole else ["-S", "launches=1"]
    if run.sick:
        options += ["-p", f"^{sick_environment(run)}$"]
    report = measured(
        ["--system", system, *options],
        folder,
        settings={},
        lock=lock,
        patience_s=settings.run_limit_s,
    )
    return _verdict(report, system, folder, "verdict")


def _system(run: Run, settings: Settings) -> str:
    return "testbed" if settings.whole and not run.sick else "testbed:gige"


def _verdict(report: Path, system: str, folder: Path, name: str) -> Judged:
    ran = answered(["verdict", str(report), system], folder, name, settings={})
    return judge(ran.returncode, ran.stdout, ran.stderr)


def read_judged_again(folder: Path) -> tuple[Campaign, list[Result]]:
    """Return a campaign with its reports rejudged by the present code; stored results stay.

    A run without a report keeps its result. Raises CannotRunError as ``read``.
    """
    campaign, results = read(folder)
    again = []
    for result in results:
        place = folder / result.run.folder
        report = place / REPORT
        if report.is_file():
            system = _system(result.run, campaign.settings)
            judged = _verdict(report, system, place, "verdict-again")
            result = dataclasses.replace(result, judged=judged)
        again.append(result)
    return dataclasses.replace(campaign, code=f"{campaign.code}, judged by {code_digest()}"), again


def go_on(folder: Path) -> list[Result]:
    """Make a campaign's runs that have no result, and report each.

    Raises CannotRunError if it cannot continue; finished runs stay.
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

        def report(result: Result) -> None:
            results.append(result)
            print(_line(result, len(campaign.runs)), flush=True)

        try:
            make_each(
                folder, left, lambda run, place: make(run, campaign, testbed, place, lock), report
            )
        finally:
            testbed.restore()
    return results


def _line(result: Result, runs: int) -> str:
    why = said(result.judged)
    return (
        f"{result.run.number}/{runs} {SAID[result.run.condition]}: {result.judged.outcome},"
        f" {result.wall_s:.0f} s{'; ' if why else ''}{why}"
    )
