"""``ci/evaluate attacks``: nothing is read wrong, and its oracle sees what would be."""

from __future__ import annotations

import dataclasses
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ci.evaluation import attack_files, attack_inputs, attacks
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


@pytest.fixture
def known(tmp_path):
    return attacks.attacks(tmp_path)


def faked(attack, judge):
    return dataclasses.replace(attack, judge=judge)


def test_another_error_than_netproofs_own_is_wrong(known):
    def judge(given):
        raise TypeError("odd")

    given = attack_inputs.Input("", "made")
    assert attacks.outcome(faked(known["patterns"], judge), given) == "TypeError: odd"


def test_an_error_that_quotes_all_of_a_line_is_wrong(known):
    def judge(given):
        raise NetproofError("9" * 10_000)

    given = attack_inputs.Input("", "made")
    assert attacks.outcome(faked(known["patterns"], judge), given).startswith("an error of 10,000")


def test_what_had_to_be_refused_and_was_read_is_wrong(known):
    text = attack_files._some_checks((ROOT / "reference-values" / "testbed.yaml").read_text())
    given = attack_inputs.Input(text, "testbed.yaml", must_refuse=True)
    assert attacks.outcome(known["references"], given) == "was read, and has to be refused"


def test_a_value_that_stands_nowhere_is_wrong(known, monkeypatch):
    path = ROOT / "tests" / "data" / "netpipe" / "3.7.2" / "tcp.out"
    given = attack_inputs.Input(path.read_text(), str(path))
    assert attacks.outcome(known["NetPIPE file"], given) == attack_inputs.RIGHT
    # A reader that took another line's time.
    believed = attack_inputs._believed

    def lying(text, path):
        def row(one):
            values = {name: value + 1 for name, value in one.values.items()}
            return dataclasses.replace(one, time_us=one.time_us + 1, values=values)

        return [
            (ended, kind, dataclasses.replace(table, rows=tuple(map(row, table.rows))))
            for ended, kind, table in believed(text, path)
        ]

    monkeypatch.setattr(attack_inputs, "_believed", lying)
    assert "and read was" in attacks.outcome(known["NetPIPE file"], given)


def test_the_same_seed_makes_the_same_inputs(known):
    for attack in known.values():
        one, other = ([attack.make(random.Random(5)).text for _ in range(3)] for _ in range(2))
        assert one == other


@pytest.mark.slow
def test_an_input_that_never_ends_is_given_up(known, monkeypatch):
    monkeypatch.setattr(attacks, "ENDLESS_SECONDS", 0.2)
    before = signal.signal(signal.SIGPROF, attacks._give_up)

    def judge(given):
        while True:
            pass

    given = attack_inputs.Input("", "made")
    try:
        assert attacks.outcome(faked(known["patterns"], judge), given) == "_Endless: "
    finally:
        signal.signal(signal.SIGPROF, before)


def test_a_site_s_value_that_nobody_said_is_wrong(known, monkeypatch):
    load = attack_files.site.load

    def lying(path):
        found = load(path)
        found["systems"][0]["partitions"][0]["extras"]["mtu"] = 9001
        return found

    name, text = next(iter(attack_files._site_texts().items()))
    given = attack_inputs.Input(text, name)
    assert attacks.outcome(known["site file"], given) == attack_inputs.RIGHT
    monkeypatch.setattr(attack_files.site, "load", lying)
    assert "9001" in attacks.outcome(known["site file"], given)
