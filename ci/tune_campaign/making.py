"""Making runs: a setting is planted, and swept."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ci.campaigns.altered_site import altered_site
from ci.campaigns.attempting import attempt
from ci.campaigns.cluster import Testbed
from ci.campaigns.judged_run import answered
from ci.campaigns.keeping import ROOT, insist_on_code, locked, make_each
from ci.testbed import topology_reading
from ci.tune_campaign.judging import judge, not_judged
from ci.tune_campaign.kinds import KINDS, Kind
from ci.tune_campaign.records import Found, Judged, Result, Run, read

ALTERED = """for partition in site_configuration["systems"][0]["partitions"]:
    # The programs of delay lines use CPUs as long as packets pass.
    partition["extras"]["criteria"]["disturbance"] = {disturbance!r}
for one in site_configuration["environments"]:
    if one["name"] == {environment!r}:
        one["env_vars"] = [*one.get("env_vars", []), *{variables!r}]
"""


def topology(kind: Kind) -> Path:
    """The file of the testbed that a kind is measured on."""
    return ROOT / "ci" / "testbed" / kind.topology


def site_settings(run: Run, folder: Path) -> dict[str, str]:
    """Variables for the site of a run, which has what is planted in a library, and its testbed."""
    kind, (environment, *_) = KINDS[run.kind], run.environments
    variables = [[name, value] for name, value in kind.variables.get(environment, {}).items()]
    disturbance = {"others": 1, "steal": 1} if "delay" in kind.nodes else {}
    alteration = ALTERED.format(
        disturbance=disturbance, environment=environment, variables=variables
    )
    return {
        **altered_site(folder, alteration),
        "NETPROOF_TOPOLOGY": str(topology(kind)),
    }


@contextmanager
def planted(kind: Kind, testbed: Testbed) -> Iterator[None]:
    """What is done within meets what is planted on nodes, which is gone afterwards."""
    if not kind.nodes:
        yield
        return
    switches = {one.name: one for one in topology_reading.load(topology(kind)).switches}
    try:
        for node in switches[kind.partition].nodes:
            testbed.plant(node.name, kind.nodes)
        yield
    finally:
        testbed.lift()


def measure(run: Run, folder: Path) -> Judged:
    """The sweep, and what its answer is worth; the report stays in ``folder``."""
    kind, (environment, *_) = KINDS[run.kind], run.environments
    command = [
        *("tune", kind.parameter, "--system", f"testbed:{kind.partition}"),
        *("--environment", environment, "--protocol", kind.protocol),
        *(("--values", ",".join(kind.values)) if kind.values else ()),
    ]
    ran = answered(command, folder, "tune", settings=site_settings(run, folder))
    return judge(run, ran.returncode, ran.stdout, ran.stderr)


def go_on(folder: Path) -> None:
    """Make the runs of a campaign that have no result yet or were not judged, and tell of each.

    Raises CannotRunError where it cannot go on; what was made until then stays.
    """
    with locked(folder):
        campaign, results = read(folder)
        insist_on_code(folder, campaign)
        done = {one.run.number for one in results if one.judged.found is not Found.NOT_JUDGED}
        left = [run for run in campaign.runs if run.number not in done]
        if not left:
            return
        testbed = Testbed(folder / "testbed.log")

        def made(run: Run, place: Path) -> Result:
            kind = KINDS[run.kind]
            one = attempt(
                f"{run.number}/{len(campaign.runs)} {run}",
                campaign.settings,
                testbed,
                topology(kind),
                lambda: measure(run, place),
                not_judged,
                planted(kind, testbed),
            )
            return Result(run, one.judged, one.started, one.wall_s, one.before, one.after)

        def tell(result: Result) -> None:
            said = " · ".join(result.judged.said)
            print(f"  {result.judged.found}, {result.wall_s:.0f} s: {said}", flush=True)

        try:
            make_each(folder, left, made, tell)
        finally:
            testbed.restore()
