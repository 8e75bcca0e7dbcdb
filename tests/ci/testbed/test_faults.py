"""Which faults there are, and what is refused in words."""

import pytest

from ci.testbed import faults
from ci.testbed.faults import LEAF, NODE, SWITCH, FaultError


@pytest.mark.parametrize(
    ("place", "key", "value", "kept"),
    [
        (NODE, "rate", 0.5, 0.5),
        (LEAF, "send_rate", 0.1, 0.1),
        (NODE, "loss", 0.005, 0.005),
        (NODE, "mtu", 1400, 1400),
        (LEAF, "link", "down", "down"),
        (SWITCH, "buffer", 20000, 20000),
        (NODE, "net.ipv4.tcp_sack", 0, "0"),
        (NODE, "net.ipv4.tcp_rmem", "4096\t16384  32768", "4096 16384 32768"),
    ],
)
def test_what_can_be_planted(place, key, value, kept):
    assert faults.checked(place, key, value) == kept


@pytest.mark.parametrize(
    ("place", "key", "value", "says"),
    [
        (NODE, "rate", 1, "found 1; write a share of its rate"),
        (NODE, "rate", True, "found True"),
        (NODE, "loss", 0, "found 0; write a share of frames"),
        (NODE, "loss", float("nan"), "found nan"),
        (NODE, "link", "up", "found 'up'; write 'down'"),
        (LEAF, "mtu", 1400, "mtu: no fault of a leaf; its faults are rate, send_rate"),
        (LEAF, "net.ipv4.tcp_sack", 0, "no fault of a leaf"),
        (SWITCH, "rate", 0.5, "no fault of a switch; its faults are buffer, mgmt_mbps"),
        (NODE, "kernel.panic", 1, "no fault of a node"),
        (NODE, "net.ipv4.../../kernel/panic", 1, "no fault of a node"),
        (NODE, "net.ipv4.tcp_sack", "1; reboot", "found '1; reboot'; write a sysctl's value"),
        (NODE, 7, 1, "7: no fault of a node"),
        (NODE, "delay", -1, "found -1; write µs, a whole number from 0 to 100000"),
        (NODE, "delay", 0.5, "found 0.5"),
        (NODE, "jitter", 0, "found 0; write µs, a whole number from 1"),
        (NODE, "reorder", 1, "found 1; write a share of packets"),
    ],
)
def test_what_cannot_is_refused_with_what_would_be_right(place, key, value, says):
    with pytest.raises(FaultError) as refused:
        faults.checked(place, key, value)
    assert says in str(refused.value)


def test_a_fault_is_read_and_reported_as_plant_takes_it():
    for value in (0.5, 1400, 0.001, "down", "4096 87380 1"):
        assert faults.read_value(str(value)) == value
    keys = {"rate": 0.5, "net.ipv4.tcp_rmem": "1 2 3"}
    said = ["one-1 rate=0.5", "one-1 'net.ipv4.tcp_rmem=1 2 3'"]
    assert faults.assignments("one-1", keys) == said
    assert faults.contradiction({"rate": 0.5, "receive_rate": 0.1})
    assert faults.contradiction({"send_rate": 0.5, "receive_rate": 0.1}) is None
