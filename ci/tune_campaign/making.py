"""Make runs: plant a setting, and sweep it."""

from __future__ import annotations

from pathlib import Path

from ci.campaigns.altered_site import altered_site
from ci.campaigns.attempting import attempt, make_all
from ci.campaigns.cluster import Testbed
from ci.campaigns.judged_run import answered
from ci.campaigns.keeping import ROOT, gone_on_with
from ci.campaigns.slow_mpi import compiled
from ci.tune_campaign.judging import judge, not_judged
from ci.tune_campaign.kinds import KINDS, Kind
from ci.tune_campaign.records import Judged, Result, Run, read

ALTERED = """for partition in site_configuration["systems"][0]["partitions"]:
    # Programs of delay lines use CPUs while packets pass.
    partition["extras"]["criteria"]["disturbance"] = {disturbance!r}
for one in site_configuration["environments"]:
    if one["name"] == {environment!r}:
        one["env_vars"] = [*one.get("env_vars", []), *{variables!r}]
"""


def topology(kind: Kind) -> Path:
    """Return the topology file of a kind's testbed."""
    return ROOT / "ci" / "testbed" / kind.topology


def site_settings(run: Run, folder: Path, library: Path) -> dict[str, str]:
    """Return variables for a run's testbed, and for its site with the planted setting."""
    kind, (environment, *_) = KINDS[run.kind], run.environments
    variables = [list(one) for one in kind.variables_in(environment, str(library)).items()]
    disturbance = {"others": 1, "steal": 1} if "delay" in kind.nodes else {}
    alteration = ALTERED.format(
        disturbance=disturbance, environment=environment, variables=variables
    )
    return {
        **altered_site(folder, alteration),
        "NETPROOF_TOPOLOGY": str(topology(kind)),
    }


def measure(run: Run, folder: Path, library: Path) -> Judged:
    """Sweep, and grade the answer; the report stays in ``folder``."""
    kind, (environment, *_) = KINDS[run.kind], run.environments
    settings = site_settings(run, folder, library)
    verb, *asked = kind.asked
    words = (f"testbed:{kind.partition}", *asked, "--environment", environment)
    ran = answered(["measure", verb, *words], folder, "tune", settings=settings)
    return judge(run, ran.returncode, ran.stdout, ran.stderr)


def go_on(folder: Path) -> None:
    """Make a campaign's runs that have no result or were not judged, and report each.

    Raises CannotRunError if it cannot continue; finished runs stay.
    """
    with gone_on_with(folder, read) as begun:
        if not begun.left:
            return
        testbed, library = Testbed(folder / "testbed.log"), compiled(folder)

        def made(run: Run, place: Path) -> Result:
            kind = KINDS[run.kind]
            return attempt(
                *(run, begun.campaign, testbed, topology(kind)),
                lambda: measure(run, place, library),
                not_judged,
                testbed.planted_on_all(kind.partition, kind.nodes),
            )

        make_all(folder, begun.left, made, testbed, "nothing was said")
