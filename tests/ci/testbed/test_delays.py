"""Which nodes have a delay line, what it is asked for, and what is said where there can be none."""

import os
from pathlib import Path

import pytest

from ci.testbed import delays, faults, topology, topology_reading
from ci.testbed.delays import Line
from ci.testbed.errors import CannotRunError
from ci.testbed.faults import NODE, FaultError
from ci.testbed.topology import TopologyError

TWO = topology_reading.load(Path(topology.__file__).with_name("topology.yaml"))
SWITCHES = "switches:\n  one: {{link_mbps: 10, mtu: 1500, buffer: 9000, nodes: 2, cpus: 1, {}}}\n"


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("delay", -1, "found -1; write µs, a whole number from 0 to 100000"),
        ("delay", 0.5, "found 0.5"),
        ("jitter", 0, "found 0; write µs, a whole number from 1"),
        ("batch", 100001, "found 100001"),
        ("reorder", 1, "found 1; write a share of packets"),
    ],
)
def test_what_no_line_can_do_is_refused(key, value, says):
    with pytest.raises(FaultError, match=says):
        faults.checked(NODE, key, value)


def test_a_switch_s_line_is_that_of_all_its_nodes():
    found = delays.lines(TWO, {"gige": {"delay": 100, "buffer": 20000}})
    assert found == {f"gige-{number}": Line(delay=100) for number in range(1, 5)}


def test_what_a_node_says_goes_before_what_its_switch_says():
    found = delays.lines(
        TWO, {"gige": {"delay": 100, "jitter": 5}, "gige-2": {"delay": 0, "reorder": 0.01}}
    )
    assert found["gige-1"] == Line(delay=100, jitter=5)
    assert found["gige-2"] == Line(delay=0, jitter=5, reorder=10_000)


def test_reordering_where_nothing_waits_is_refused():
    with pytest.raises(FaultError, match="gige-1: reorder lets packets overtake those that wait"):
        delays.lines(TWO, {"gige-1": {"reorder": 0.01, "delay": 0}})
    assert delays.lines(TWO, {"gige": {"batch": 50}, "gige-1": {"reorder": 0.01}})


def test_a_file_that_asks_for_it_is_refused_with_its_line(tmp_path):
    file = tmp_path / "topology.yaml"
    file.write_text(SWITCHES.format("faults: {one-2: {reorder: 0.1}}"))
    with pytest.raises(TopologyError, match=r"topology.yaml:2: faults: one-2: reorder lets"):
        topology_reading.load(file)
    file.write_text(SWITCHES.format("faults: {one-2: {reorder: 0.1}, one: {delay: 50}}"))
    assert topology_reading.load(file).faults == {"one-2": {"reorder": 0.1}, "one": {"delay": 50}}


def test_the_program_gets_the_same_draws_for_a_node_each_time():
    line = Line(delay=100, jitter=20, batch=50, reorder=10_000)
    first, again = line.command("gige-1"), line.command("gige-1")
    assert first == again
    assert first[1:-1] == ["7", "100", "20", "50", "10000"]
    assert first[-1] != line.command("gige-2")[-1]


def test_without_the_program_setup_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(delays, "PROGRAM", tmp_path / "delay")
    with pytest.raises(CannotRunError, match=r"delay: is not there, .* run 'ci/setup'"):
        delays.probe()


@pytest.mark.parametrize(
    "said",
    [
        "iptables v1.8.9 (nf_tables): RULE_APPEND failed (No such file or directory): rule in"
        " chain OUTPUT",
        "delay: cannot go before others: Operation not permitted",
    ],
)
def test_what_the_kernel_does_not_have_is_one_sentence(monkeypatch, tmp_path, said):
    fake = tmp_path / "unshare"
    fake.write_text(f"#!/bin/sh\necho '{said}' >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(delays, "PROGRAM", fake)
    with pytest.raises(CannotRunError) as refused:
        delays.probe()
    assert str(refused.value).startswith("this kernel cannot delay packets for us: boot one with")
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)
