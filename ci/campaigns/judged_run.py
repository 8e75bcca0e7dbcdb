"""Run the project's own checks, and a netproof command on the session."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from ci.campaigns.keeping import ROOT
from netproof.commands import night

REPORT = "run-0.json"
"""File name of a run's report in its folder."""


def measured(
    options: Sequence[str],
    folder: Path,
    *,
    settings: Mapping[str, str],
    lock: int,
    patience_s: float,
    checks: str = "",
) -> Path:
    """Run checks by ReFrame with ``options``; return the report, a file in ``folder``.

    ``settings``: ReFrame's variables; ``lock``: held by the campaign; ``checks``: their file, all
    by default. Raises NetproofError if ReFrame leaves no report or takes longer than
    ``patience_s``.
    """
    report = folder / REPORT
    night.measure(
        [*options, "--exec-policy=serial", "-c", str(ROOT / "checks" / checks), "-r"],
        folder=folder,
        report=report,
        log=folder / "reframe.log",
        settings=dict(settings),
        lock=lock,
        patience_s=patience_s,
    )
    return report


def answered(
    command: Sequence[str],
    folder: Path,
    name: str,
    *,
    settings: Mapping[str, str],
    without: Sequence[str] = (),
) -> subprocess.CompletedProcess[str]:
    """Run a netproof command with ``--format json`` on the session in ``folder``.

    Its output stays as ``name``.json and .err; ``without``: variables that it must not see.
    """
    ours = {key: value for key, value in os.environ.items() if key not in without}
    ran = subprocess.run(
        ["netproof", *command, "--format", "json"],
        cwd=folder,
        env={**ours, **settings, "RFM_REPORT_FILE": str(folder / REPORT)},
        capture_output=True,
        text=True,
        check=False,
    )
    (folder / f"{name}.json").write_text(ran.stdout)
    (folder / f"{name}.err").write_text(ran.stderr)
    return ran
