"""Make runs: plant a fault, measure a switch, and diagnose it."""

from __future__ import annotations

import dataclasses
import random
import re
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from ci.campaigns.altered_site import altered_site
from ci.campaigns.attempting import attempt, make_all
from ci.campaigns.cluster import Testbed
from ci.campaigns.judged_run import REPORT, answered, measured
from ci.campaigns.keeping import code_digest, gone_on_with
from ci.diagnose_campaign.judging import judge, not_judged
from ci.diagnose_campaign.kinds import HEALTHY, KINDS, MANAGEMENT, UNDER_TEST
from ci.diagnose_campaign.records import (
    Campaign,
    Found,
    Judged,
    Result,
    Run,
    Settings,
    read,
    topology_file,
)
from netproof.commands.sessions import PAIRS
from netproof.errors import NetproofError

POLL_S = 0.2


@contextmanager
def planted(run: Run, testbed: Testbed, settings: Settings) -> Iterator[None]:
    """Plant the run's fault, and lift it at the end of the block in any case.

    Raises NetproofError if that fails, or if a temporary fault did not begin and end in the block.
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
        # The testbed is rebuilt or taken down after this; report the first error.
        with suppress(NetproofError):
            testbed.lift()
        raise
    testbed.lift()


@contextmanager
def _for_a_while(run: Run, testbed: Testbed, seconds: float, within_s: float) -> Iterator[None]:
    """Plant a fault for ``seconds``, at a drawn moment after its node's first launch."""
    over, ended = threading.Event(), []

    def plant() -> None:
        while not has_launch(run.place):
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


def has_launch(node: str) -> bool:
    """Check whether a launch runs on a node now."""
    command = ["squeue", "--noheader", "--steps", "--nodelist", node, "--format", "%i"]
    asked = subprocess.run(command, capture_output=True, text=True, check=False)
    # The job's own script is a step too, with a word instead of a number.
    return any(re.fullmatch(r"\d+\.\d+", step) for step in asked.stdout.split())


MISLED = """(system,) = site_configuration["systems"]
for one in [*system["partitions"], *site_configuration["environments"]]:
    one["env_vars"] = [
        [name, {wrong!r} if value == {right!r} else value]
        for name, value in one.get("env_vars", [])
    ]
"""


def site_settings(run: Run, folder: Path) -> dict[str, str]:
    """Return variables for a run's topology, and for a site that misleads MPI if the fault does."""
    settings = {"NETPROOF_TOPOLOGY": str(topology_file(run.topology))}
    if run.kind != HEALTHY and KINDS[run.kind].misleads:
        settings |= altered_site(folder, MISLED.format(wrong=MANAGEMENT, right=UNDER_TEST))
    return settings


def measure(run: Run, settings: Settings, folder: Path, lock: int) -> Judged:
    """Run ReFrame and diagnose its session; the report stays in ``folder``.

    Raises NetproofError if ReFrame leaves no report.
    """
    system = f"testbed:{run.switch}"
    several = "|".join(map(re.escape, run.environments))
    variables = site_settings(run, folder)
    report = measured(
        [
            *("--system", system, "-p", f"^({several})$"),
            *(() if settings.pairs else ("-S", "launches=1")),
        ],
        folder,
        settings=variables,
        lock=lock,
        patience_s=settings.run_limit_s,
        checks=PAIRS if settings.pairs else "",
    )
    return _ask(run, report, folder, "diagnosis", variables)


def _ask(run: Run, report: Path, folder: Path, name: str, variables: Mapping[str, str]) -> Judged:
    system = f"testbed:{run.switch}"
    command = ["diagnose", str(report), system, "--back", "0"]
    # No other session may date the fault.
    without = ["NETPROOF_STORE"]
    ran = answered(command, folder, name, settings=variables, without=without)
    return judge(run, ran.returncode, ran.stdout, ran.stderr)


def read_judged_again(folder: Path) -> tuple[Campaign, list[Result]]:
    """Return a campaign with its reports rejudged by the present code; stored results stay.

    A run that was not judged or left no report keeps its result. Raises CannotRunError as ``read``.
    """
    campaign, results = read(folder)
    again = []
    for result in results:
        place = folder / result.run.folder
        report = place / REPORT
        if report.is_file() and result.judged.found is not Found.NOT_JUDGED:
            variables = site_settings(result.run, place)
            judged = _ask(result.run, report, place, "diagnosis-again", variables)
            result = dataclasses.replace(result, judged=judged)
        again.append(result)
    return dataclasses.replace(campaign, code=f"{campaign.code}, judged by {code_digest()}"), again


def go_on(folder: Path) -> None:
    """Make a campaign's runs that have no result or were not judged, and report each.

    Raises CannotRunError if it cannot continue; finished runs stay.
    """
    with gone_on_with(folder, read) as begun:
        if not begun.left:
            return
        settings, testbed = begun.campaign.settings, Testbed(folder / "testbed.log")

        def made(run: Run, place: Path) -> Result:
            return attempt(
                *(run, begun.campaign, testbed, topology_file(run.topology)),
                lambda: measure(run, settings, place, begun.lock),
                not_judged,
                planted(run, testbed, settings),
            )

        make_all(folder, begun.left, made, testbed, "nothing was found")
