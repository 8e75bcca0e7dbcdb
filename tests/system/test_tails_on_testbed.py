"""Single calls on the testbed: a link that was down for a second is a pause at its time."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

import pytest
from made_site import settings_of
from made_testbed import verb

pytestmark = [pytest.mark.testbed, pytest.mark.nightly]

ROOT = Path(__file__).resolve().parents[2]
COMMAND = ("netproof", "measure", "tails", "testbed:gige", "--environment", "mpich")
DOWN_S = 1.0


def rows(folder: Path) -> int:
    """How many calls the long launch below has printed."""
    return sum(path.read_text(errors="replace").count("\n") for path in folder.rglob("tail.1.out"))


def take_down_later(folder: Path, moments: list[float], said: list[str]) -> None:
    deadline = time.monotonic() + 180
    while rows(folder) < 2000:
        if time.monotonic() > deadline:
            return
        time.sleep(0.1)
    moments.append(time.time())
    ran = verb("plant", "gige-2", "link=down", "--for", f"{DOWN_S:g}")
    said.append(f"{ran.returncode} {ran.stdout}{ran.stderr}")


def test_a_link_that_went_down_is_a_pause_at_its_time(testbed, run, tmp_path):
    settings, moments, said = settings_of(tmp_path), [], []
    settings |= {"RFM_PREFIX": str(tmp_path / "prefix")}
    planting = threading.Thread(target=take_down_later, args=(tmp_path, moments, said))
    planting.start()
    try:
        ran = run(tmp_path, *COMMAND, "--seconds", "12", "--format=json", **settings)
    finally:
        planting.join()
        verb("lift")
    assert said[0].startswith("0 "), said
    assert ran.returncode == 0, ran.stdout + ran.stderr
    (told,) = json.loads(ran.stdout)["tails"]
    assert told["nodes"] == ["gige-1", "gige-2"]
    assert told["calls"] > 2000
    assert 6 < told["seconds"] < 40
    longest = told["pauses"][0]
    (moment,) = moments
    # TCP waits ever longer before it sends again.
    assert 0.5e6 < longest["took_us"] < 6e6
    assert 0 < longest["until"] - moment < 5
    changes = {(one["node"], one["interface"]) for one in told["carrier_changes"]}
    assert ("gige-2", "eth1") in changes
    (kept,) = (tmp_path / "tails").glob("run-gige-*.json")
    again = run(tmp_path, "netproof", "measure", "tails", str(kept), "--format=json", **settings)
    assert (again.returncode, again.stdout) == (0, ran.stdout)
