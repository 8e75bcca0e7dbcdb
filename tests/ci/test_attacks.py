"""``ci/attacks``: nothing that it tries is read wrong, and its oracle sees what would be."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "ci"))

import attacks  # noqa: E402

from netproof.errors import NetproofError  # noqa: E402


def test_a_small_number_of_every_attack_is_refused_or_read_right():
    ran = subprocess.run(
        [sys.executable, ROOT / "ci" / "attacks.py", "--tries", "60", "--seed", "7"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    rows = [line.split() for line in ran.stdout.splitlines() if " 60 " in line]
    assert len(rows) == 7
    for *_, tries, refused, right, written, wrong, seconds, mib in rows:
        assert (tries, wrong) == ("60", "0")
        assert int(refused) + int(right) + int(written) == 60
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

    given = attacks.Input("", "made")
    assert attacks.outcome(faked(known["patterns"], judge), given) == "TypeError: odd"


def test_an_error_that_quotes_all_of_a_line_is_wrong(known):
    def judge(given):
        raise NetproofError("9" * 10_000)

    given = attacks.Input("", "made")
    assert attacks.outcome(faked(known["patterns"], judge), given).startswith("an error of 10,000")


def test_what_had_to_be_refused_and_was_read_is_wrong(known):
    path = ROOT / "reference-values" / "testbed.yaml"
    given = attacks.Input(path.read_text(), str(path), must_refuse=True)
    assert attacks.outcome(known["references"], given) == "was read, and has to be refused"


def test_a_value_that_stands_nowhere_is_wrong(known):
    path = ROOT / "tests" / "data" / "netpipe" / "3.7.2" / "tcp.out"
    text = path.read_text()
    assert attacks.outcome(known["NetPIPE file"], attacks.Input(text, str(path))) == attacks.RIGHT
    # A reader that took another line's time.
    read = attacks.netpipe.read_file

    def lying(text, path, *, bidirectional):
        output = read(text, path, bidirectional=bidirectional)
        points = tuple(dataclasses.replace(one, time_us=one.time_us + 1) for one in output.points)
        return dataclasses.replace(output, points=points)

    judge = attacks._netpipe(lying)
    other = path.with_name("mpich.out")
    swapped = attacks.Input(other.read_text(), str(path))
    assert "and read was" in attacks.outcome(faked(known["NetPIPE file"], judge), swapped)


def test_the_same_seed_makes_the_same_inputs(known):
    for attack in known.values():
        one, other = (
            [attack.make(attacks.random.Random(5)).text for _ in range(3)] for _ in range(2)
        )
        assert one == other
