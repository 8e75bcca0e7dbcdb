"""Counters of nodes around a launch, as real steps printed them; unknown is never 0."""

from __future__ import annotations

from pathlib import Path

import pytest

from netproof.errors import ParseError
from netproof.measurement.counters import Counters, counters, of_crash

JOBS = Path(__file__).resolve().parents[2] / "data" / "jobs"
TWO = ["gige-1", "gige-2"]


def text(job: str, step: str) -> str:
    return (JOBS / f"counters-{job}" / f"{step}.1.err").read_text()


def counted(said: str, nodes=TWO) -> Counters:
    found = counters(Path("x.err"), said, nodes)
    assert found is not None
    return found


def test_what_both_nodes_counted_is_read_and_what_did_not_change_is_0_and_not_stored():
    healthy = counted(text("healthy", "tcp-inter-node-oneway"))
    sent = healthy.value("gige-1", "interface", "eth1", "tx_bytes")
    assert sent == healthy.value("gige-2", "interface", "eth1", "rx_bytes") == 57767821
    assert healthy.value("gige-2", "tcp", "", "Tcp.RetransSegs") == 98
    assert healthy.value("gige-2", "tcp", "", "Tcp.OutSegs") == 40634
    assert healthy.value("gige-1", "interface", "eth1", "rx_errs") == 0
    assert healthy.value("gige-1", "tcp", "", "TcpExt.TCPTimeouts") == 0
    assert "rx_errs" not in healthy.source("gige-1", "interface", "eth1").counted
    assert len(healthy.names) == 3
    # What is not there is not known.
    assert healthy.value("gige-1", "tcp", "", "TcpExt.NoSuchCounter") is None
    assert healthy.value("gige-1", "interface", "eth7", "rx_errs") is None
    assert healthy.value("gige-9", "interface", "eth1", "rx_errs") is None
    assert "gige-9" in healthy.why("gige-9", "interface", "eth1", "rx_errs")
    assert "driver_counters" in healthy.why("gige-1", "driver", "eth1", "rx_discards_phy")
    assert counters(Path("x.err"), (JOBS / "link-down.err").read_text(), TWO) is None


def test_of_a_crash_the_nodes_that_still_reported_are_known(tmp_path):
    errors, said = tmp_path / "x.err", text("carrier", "tcp-inter-node-oneway")
    lines = said.splitlines(keepends=True)
    of_first = [line for line in lines if "counters on gige-1\t" in line]
    errors.write_text("".join(line for line in lines if line != of_first[-1]))
    found = of_crash(errors)
    assert [*found.sources] == ["gige-2"]
    assert found.value("gige-2", "interface", "eth1", "carrier_changes") == 2
    errors.write_text("".join(line for line in lines if " counters on " not in line))
    assert of_crash(errors) is None
    errors.write_text(said.replace("counters on gige-2\t3", "counters on gige-2\t4"))
    assert of_crash(errors) is None
    assert of_crash(tmp_path / "none.err") is None


def test_a_counter_that_went_back_is_not_known():
    lines = text("healthy", "tcp-inter-node-oneway").splitlines()
    (number,) = [n for n, one in enumerate(lines) if "on gige-1" in one and "after softnet" in one]
    lines[number] = "\t".join([*lines[number].split("\t")[:3], "1 9999 0", "end"])
    found = counted("\n".join(lines) + "\n")
    assert found.value("gige-1", "softnet", "", "processed") is None
    assert "it was reset, or passed its end" in found.why("gige-1", "softnet", "", "processed")
    assert found.value("gige-1", "softnet", "", "time_squeeze") is None
    assert found.value("gige-1", "softnet", "", "dropped") > 0


def test_another_namespaces_sysfs_counts_no_carriers():
    said = text("healthy", "tcp-inter-node-oneway")
    lines = [
        line.replace("eth1 ", "eth1 9") if "carriers\t" in line else line
        for line in said.splitlines()
    ]
    found = counted("\n".join(lines) + "\n")
    assert found.value("gige-1", "interface", "eth1", "carrier_changes") is None
    why = found.why("gige-1", "interface", "eth1", "carrier_changes")
    assert why == "/sys/class/net/eth1 counts other bytes than /proc/net/dev"
    assert found.value("gige-1", "interface", "eth0", "carrier_changes") == 0


PORT = """
netproof counters on n1\t1\tbefore infiniband mlx5_0/1\t\tInfiniBand ib0\
\tcounters/port_xmit_data: 100\tcounters/link_downed: 255\tcounters/symbol_error: 7\
\thw_counters/out_of_sequence: -\tend
netproof counters on n1\t2\tafter infiniband mlx5_0/1\t\tInfiniBand ib0\
\tcounters/port_xmit_data: 350\tcounters/link_downed: 255\tcounters/symbol_error: 7\
\thw_counters/out_of_sequence: -\tend
netproof counters on n1\t3\tbefore devices\t\tend
netproof counters on n1\t4\tsame\t\tdevices\tend
netproof counters on n1\t5\tlast\t900\tend
"""
"""As counters.sh prints a port; no machine here has one."""


def test_a_port_counts_words_and_a_counter_at_its_end_or_in_a_file_not_read_is_not_known():
    found = counted(PORT, ["n1"])
    port = found.source("n1", "infiniband", "mlx5_0/1")
    assert (port.layer, port.interfaces) == ("InfiniBand", ("ib0",))
    assert port.counted == {"counters/port_xmit_data": 250}
    assert found.value("n1", "infiniband", "mlx5_0/1", "counters/symbol_error") == 0
    assert port.absent == {
        "counters/link_downed": "stands at its end, 255",
        "hw_counters/out_of_sequence": "cannot be read",
    }
    assert found.absent["n1"]["interface"] == "/proc/net/dev cannot be read"
    assert found.value("n1", "tcp", "", "Tcp.RetransSegs") is None
    assert found.why("n1", "tcp", "", "Tcp.RetransSegs") == "/proc/net/snmp cannot be read"


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("\tend\n", "\n", "was to follow, whole"),
        ("counters on gige-1\t2\t", "counters on gige-1\t3\t", "was to follow"),
        ("counters on gige-2\t", "counters on gige-7\t", "ranks ran on"),
        ("\tlast\t", "\tlost\t", "the last line is missing"),
        ("\tsame\t", "\tsame\tno such reading", "is the same as nothing"),
        ("\tbefore softnet\t", "\tbefore carriers\t", "is no reading, or the second"),
        ("TcpExt: SyncookiesSent ", "TcpExt: ", "cannot be read"),
        ("\tbefore carriers\t", "\tbefore carriers\tlo 0 0\t", "'lo 0 0' is not an interface"),
    ],
)
def test_damaged_lines_are_refused(old, new, fault):
    said = text("healthy", "tcp-inter-node-oneway")
    assert old in said
    with pytest.raises(ParseError, match=fault):
        counters(Path("x.err"), said.replace(old, new), TWO)
