"""A night tells what its history says, alongside what the verdict says of it alone."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from made_nights import MadeNights, by
from made_reports import altered, another, cases_in

from netproof import codec
from netproof.commands import night as command
from netproof.commands.night import Night, summary
from netproof.session import session
from netproof.session.measured import Measured
from netproof.verdict import FAILED, power

ROOT = Path(__file__).resolve().parents[3]
NIGHTS, SLOWER_FROM = 24, 16


def twice_as_long(values: dict[str, Any]) -> None:
    """Double the times of a case, and all that follows from them."""
    measured = codec.decode_part(Measured, values, "a case")
    launches = []
    for launch in measured.launches:
        curve = power.with_times(launch.curve, [2 * time for time in launch.curve.time_us])
        launches.append(replace(launch, curves=(curve,)))
    values |= codec.encode(measured.with_launches(launches))


def tonight(folder: Path, night: int, nights: MadeNights) -> Path:
    """The recorded session's report as that of a night, with times twice as long."""

    def made(document: dict[str, Any]) -> None:
        another(document, night)
        start = nights.stored(night).start.replace(tzinfo=UTC).timestamp()
        document["session_info"] |= {"time_start_unix": start, "time_end_unix": start + 600}
        for test in cases_in(document):
            if test.get("netproof_measured"):
                twice_as_long(test["netproof_measured"])

    return altered(folder, made, "ranges", "run-nightly-testbed.json")


@pytest.mark.slow
def test_a_change_for_the_worse_fails_the_night_and_is_told(nights, tmp_path, monkeypatch):
    monkeypatch.setenv("RFM_CONFIG_PATH", str(ROOT / "site-config"))
    monkeypatch.setenv("RFM_REPORT_FILE", str(tmp_path / "reports" / "run-0.json"))
    nights.add_many(NIGHTS, {SLOWER_FROM: by(2.0, environment="mpich")})
    report = tonight(tmp_path, NIGHTS, nights)
    now = datetime.now(UTC)
    folders = (nights.store.folder, tmp_path / "pages")
    night = Night("testbed:gige", *folders, started=now, ended=now)
    command._judge(night, nights.store, session.load(report), partial=False)
    assert night.faults == []
    assert night.status == FAILED
    (worse,) = night.worse
    since = f"{nights.stored(SLOWER_FROM).start:%Y-%m-%d %H:%M}"
    assert worse.startswith(f"gige mpich is worse since {since}")
    assert f"WORSE {worse}" in summary(night)
    assert night.page.is_file()
    assert (tmp_path / "pages" / "latest").resolve().name == night.stored
