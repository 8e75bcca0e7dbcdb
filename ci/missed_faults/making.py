"""Making runs: the switch measured with an MPI library that has a fault, and its verdict."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from ci.campaigns.altered_site import altered_site
from ci.campaigns.attempting import attempt
from ci.campaigns.cluster import Testbed
from ci.campaigns.errors import CannotRunError
from ci.campaigns.judged_run import answered, measured
from ci.campaigns.keeping import ROOT, insist_on_code, locked, make_each
from ci.missed_faults.judging import judge, not_judged
from ci.missed_faults.kinds import HEALTHY, KINDS
from ci.missed_faults.records import Found, Judged, Result, Run, Settings, read

TOPOLOGY = ROOT / "ci" / "testbed" / "topology.yaml"
SOURCE = Path(__file__).with_name("slow_mpi.c")
SYSTEM = "testbed:gige"

FAULTY = """for one in site_configuration["environments"]:
    if one["name"] == {environment!r}:
        one["env_vars"] = [*one.get("env_vars", []), *{variables!r}]
"""


def compiled(folder: Path) -> Path:
    """The library that makes MPI slower. Raises CannotRunError where it cannot be compiled."""
    library = folder / "libslow_mpi.so"
    command = ["cc", "-std=c11", "-O2", "-Wall", "-Wextra", "-shared", "-fPIC"]
    try:
        ran = subprocess.run(
            [*command, "-o", library, SOURCE], capture_output=True, text=True, check=False
        )
    except OSError as error:
        raise CannotRunError(f"cc: {error.strerror}; apt-get install gcc libc6-dev") from error
    if ran.returncode:
        raise CannotRunError(f"{SOURCE} cannot be compiled: {ran.stderr.strip()}")
    return library


def site_settings(run: Run, folder: Path, library: Path) -> dict[str, str]:
    """Variables for the site of a run, one of whose MPI libraries has the fault."""
    if run.kind == HEALTHY:
        return {}
    environment = run.environments[0]
    variables = KINDS[run.kind].variables_in(environment, str(library))
    several = [[name, value] for name, value in variables.items()]
    return altered_site(folder, FAULTY.format(environment=environment, variables=several))


def measure(run: Run, settings: Settings, folder: Path, library: Path, lock: int) -> Judged:
    """ReFrame and the verdict on its session; the report stays in ``folder``.

    Raises NetproofError where ReFrame leaves no report.
    """
    several = "|".join(map(re.escape, run.environments))
    variables = site_settings(run, folder, library)
    checks = KINDS[run.kind].checks if run.kind != HEALTHY else ""
    report = measured(
        [
            *("--system", SYSTEM, "-S", "launches=1", "-p", f"^({several})$"),
            *(("-n", checks) if checks else ()),
        ],
        folder,
        settings=variables,
        lock=lock,
        patience_s=settings.run_limit_s,
    )
    command = ["verdict", str(report), "--system", SYSTEM]
    ran = answered(command, folder, "verdict", settings=variables)
    return judge(run, ran.returncode, ran.stdout, ran.stderr)


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
        library, settings = compiled(folder), campaign.settings
        testbed = Testbed(folder / "testbed.log")

        def made(run: Run, place: Path) -> Result:
            one = attempt(
                f"{run.number}/{len(campaign.runs)} {run}",
                settings,
                testbed,
                TOPOLOGY,
                lambda: measure(run, settings, place, library, lock),
                not_judged,
            )
            return Result(run, one.judged, one.started, one.wall_s, one.before, one.after)

        def tell(result: Result) -> None:
            said = " · ".join(result.judged.said) or "nothing failed"
            print(f"  {result.judged.found}, {result.wall_s:.0f} s: {said}", flush=True)

        try:
            make_each(folder, left, made, tell)
        finally:
            testbed.restore()
