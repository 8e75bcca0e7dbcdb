"""``ci/evaluate attacks``: nothing is read wrong, and its oracle sees what would be."""

from __future__ import annotations

import dataclasses
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ci.evaluation import attacks
from netproof.errors import NetproofError

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.slow
def test_a_small_number_of_every_attack_is_refused_or_read_right():
    ran = subprocess.run(
        [sys.executable, "-m", "ci.evaluation", "attacks", "--tries", "30", "--seed", "7"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    rows = [line.split("|") for line in ran.stdout.splitlines() if " 30 " in line]
    assert len(rows) == len(attacks.MUTATED)
    for _, _, tries, refused, right, written, wrong, seconds, mib, _ in rows:
        assert (int(tries), int(wrong)) == (30, 0)
        assert int(refused) + int(right) + int(written) == 30
        assert int(refused) > 0
        assert float(seconds) <= attacks.SECONDS
        assert int(mib) <= attacks.MIB


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (TypeError("odd"), "TypeError: odd"),
        # One that quotes all of a line.
        (NetproofError("9" * 10_000), "an error of 10,000"),
    ],
)
def test_another_error_than_a_short_one_of_netproofs_own_is_wrong(error, said):
    def judge(text, origin):
        raise error

    assert attacks.outcome(judge, "", "made").startswith(said)


def test_a_value_that_stands_nowhere_is_wrong(monkeypatch):
    path = ROOT / "tests" / "data" / "netpipe" / "3.7.2" / "tcp.out"
    given, judge = (path.read_text(), str(path)), attacks.of_program("NetPIPE file").judge
    assert judge(*given) == attacks.RIGHT
    # A reader that took another line's time.
    believed = attacks._believed

    def lying(text, path):
        def row(one):
            values = {name: value + 1 for name, value in one.values.items()}
            return dataclasses.replace(one, time_us=one.time_us + 1, values=values)

        return [
            (ended, kind, dataclasses.replace(table, rows=tuple(map(row, table.rows))))
            for ended, kind, table in believed(text, path)
        ]

    monkeypatch.setattr(attacks, "_believed", lying)
    assert "and read was" in judge(*given)


def test_the_same_seed_makes_the_same_inputs(tmp_path):
    for name in attacks.MUTATED:
        make = attacks.attack_of(name, tmp_path).make
        one, other = ([make(random.Random(5)) for _ in range(3)] for _ in range(2))
        assert one == other


@pytest.mark.slow
def test_an_input_that_never_ends_is_given_up(monkeypatch):
    monkeypatch.setattr(attacks, "ENDLESS_SECONDS", 0.2)
    before = signal.signal(signal.SIGPROF, attacks._give_up)

    def judge(text, origin):
        while True:
            pass

    try:
        assert attacks.outcome(judge, "", "made") == "_Endless: "
    finally:
        signal.signal(signal.SIGPROF, before)


def test_a_site_s_value_that_nobody_said_is_wrong(tmp_path, monkeypatch):
    load, judge = attacks.site.load, attacks.of_sites(tmp_path).judge
    text = (ROOT / "site-config" / "example.py").read_text()
    assert judge(text, "two partitions") == attacks.WRITTEN

    def lying(path):
        found = load(path)
        found["systems"][0]["partitions"][0]["extras"]["mtu"] = 9001
        return found

    monkeypatch.setattr(attacks.site, "load", lying)
    assert "9001" in judge(text, "two partitions")
