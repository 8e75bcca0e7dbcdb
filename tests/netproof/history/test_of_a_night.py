"""A night reports what its history says, beside what the verdict says of it alone."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from made_nights import MadeNights, by
from made_reports import altered, another

from netproof.commands import night as command
from netproof.commands.night import Night, summary
from netproof.session import session
from netproof.verdict import FAILED

ROOT = Path(__file__).resolve().parents[3]
NIGHTS, SLOWER_FROM = 24, 16


def tonight(folder: Path, night: int, nights: MadeNights) -> Path:
    """The recorded session's report as that of a night: back as before, for once."""

    def made(document: dict[str, Any]) -> None:
        another(document, night)
        start = nights.stored(night).start.replace(tzinfo=UTC).timestamp()
        document["session_info"] |= {"time_start_unix": start, "time_end_unix": start + 600}

    return altered(folder, made, "ranges", "run-nightly-testbed.json")


@pytest.mark.slow
def test_a_change_for_the_worse_fails_the_night(nights, tmp_path, monkeypatch):
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
