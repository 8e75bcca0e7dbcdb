"""Make runs: measure the switch with a faulty library or links, and ask for its verdict."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import median

from ci.campaigns.altered_site import altered_site
from ci.campaigns.attempting import attempt, make_all
from ci.campaigns.cluster import Testbed
from ci.campaigns.errors import CannotRunError
from ci.campaigns.judged_run import REPORT, answered, measured
from ci.campaigns.keeping import ROOT, gone_on_with
from ci.campaigns.slow_mpi import compiled
from ci.missed_faults.judging import judge, not_judged
from ci.missed_faults.kinds import DERIVING, kind_of
from ci.missed_faults.records import Found, Judged, Result, Run, Settings, read
from netproof.session import session
from netproof.verdict.derive import LEAST_SESSIONS

TOPOLOGY = ROOT / "ci" / "testbed" / "topology.yaml"
PARTITION = "gige"
SYSTEM = f"testbed:{PARTITION}"
PREFIX = "RFM_REFERENCE_PREFIX"
"""Variable with the folder of references."""
LAUNCHES = 3
"""Launches of a run with derived references; with one, a slow launch would be its value."""
FLOOR = 0.025
"""Least tolerance of derived references: half the smallest planted loss of bandwidth."""

FAULTY = """for one in site_configuration["environments"]:
    if one["name"] == {environment!r}:
        one["env_vars"] = [*one.get("env_vars", []), *{variables!r}]
"""


def site_settings(
    run: Run, folder: Path, library: Path, latency_us: float | None = None
) -> dict[str, str]:
    """Return variables for a run's site, one of whose MPI libraries may have the fault.

    ``latency_us``: MPI's latency in the campaign's healthy runs, if any.
    """
    kind, environment = kind_of(run.kind), run.environments[0]
    variables = kind.variables_in(environment, str(library), latency_us) if kind else {}
    if not variables:
        return {}
    several = [[name, value] for name, value in variables.items()]
    return altered_site(folder, FAULTY.format(environment=environment, variables=several))


@dataclass(frozen=True)
class Agreed:
    """Results of the campaign's healthy runs.

    ``references``: the folder of their references; ``latency_us``: MPI's, their median.
    """

    references: Path
    latency_us: float


def agreed_by(folder: Path, results: Sequence[Result]) -> Agreed:
    """Derive references and the latency from the campaign's healthy runs, once.

    Raises CannotRunError if they suffice for none.
    """
    reports = [
        folder / one.run.folder / REPORT
        for one in results
        if one.run.kind == DERIVING and one.judged.found is Found.NAMED
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
    if not latencies:
        raise CannotRunError("no healthy run has measured a latency of MPI")
    place = folder / "reference-values"
    if not place.is_dir():
        _derive(reports, place)
    return Agreed(place, median(latencies))


def _derive(reports: Sequence[Path], place: Path) -> None:
    new = place.with_suffix(".new")
    shutil.rmtree(new, ignore_errors=True)
    shutil.copytree(ROOT / "reference-values", new)
    ran = subprocess.run(
        ["netproof", "references", "derive", *reports, "--write", "--floor", str(FLOOR)],
        env={**os.environ, PREFIX: str(new)},
        capture_output=True,
        text=True,
        check=False,
    )
    said = place.with_suffix(".err")
    said.write_text(ran.stderr)
    if ran.returncode:
        raise CannotRunError(f"no references: see {said}")
    new.rename(place)


def measure(
    run: Run, settings: Settings, folder: Path, library: Path, lock: int, agreed: Agreed | None
) -> Judged:
    """Run ReFrame and ask for the session's verdict; the report stays in ``folder``.

    ``agreed``: its references, None for the project's own. Raises NetproofError if ReFrame leaves
    no report.
    """
    several = "|".join(map(re.escape, run.environments))
    variables = site_settings(run, folder, library, agreed and agreed.latency_us)
    if agreed is not None:
        variables[PREFIX] = str(agreed.references)
    kind = kind_of(run.kind)
    launches = LAUNCHES if kind and kind.derived else 1
    report = measured(
        [
            *("--system", SYSTEM, "-S", f"launches={launches}", "-p", f"^({several})$"),
            *(("-n", kind.checks) if kind and kind.checks else ()),
        ],
        folder,
        settings=variables,
        lock=lock,
        patience_s=settings.run_limit_s,
    )
    command = ["verdict", str(report), SYSTEM]
    ran = answered(command, folder, "verdict", settings=variables)
    return judge(run, ran.returncode, ran.stdout, ran.stderr)


def go_on(folder: Path) -> None:
    """Make a campaign's runs that have no result or were not judged, and report each.

    Raises CannotRunError if it cannot continue; finished runs stay.
    """
    with gone_on_with(folder, read) as begun:
        if not begun.left:
            return
        library, settings = compiled(folder), begun.campaign.settings
        testbed = Testbed(folder / "testbed.log")

        @cache
        def agreed() -> Agreed:
            return agreed_by(folder, read(folder)[1])

        def made(run: Run, place: Path) -> Result:
            kind = kind_of(run.kind)
            by = agreed() if kind and kind.derived and run.kind != DERIVING else None
            return attempt(
                *(run, begun.campaign, testbed, TOPOLOGY),
                lambda: measure(run, settings, place, library, begun.lock, by),
                not_judged,
                testbed.planted_on_all(PARTITION, kind.links if kind else {}),
            )

        make_all(folder, begun.left, made, testbed, "nothing failed")
