"""`netproof judge --parse` prints the curves as JSON, or the fault with its place and exit 2."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from made_calls import called

DATA = Path(__file__).parents[2] / "data"
BARRIER = DATA / "imb/2021.11/out-of-mem.txt"
LARGE = DATA / "imb/2021.11-intel/large.txt"
STOPPED = DATA / "imb/2021.11-intel/stopped.txt"
TCP = DATA / "netpipe/3.7.2/tcp.out"
BOTH_WAYS = DATA / "netpipe/3.7.2/tcp-both-ways.out"


def run(*arguments: str | Path) -> tuple[int, list[dict[str, Any]], str]:
    status, out, faults = called("judge", "--parse", *arguments)
    return status, json.loads(out), faults


def test_what_was_read_has_names_and_units() -> None:
    code, entries, faults = run(LARGE, TCP)
    assert (code, faults) == (0, "")
    imb, netpipe = entries
    assert imb["file"] == str(LARGE)
    assert (imb["benchmark"], imb["version"]) == ("IMB-MPI1", "2021.11")
    assert imb["units"] == {"sizes": "bytes", "time": "us", "bandwidth": "MB/s of 10^6 bytes"}
    sendrecv = next(t for t in imb["tables"] if t["function"] == "Sendrecv")
    assert sendrecv["ranks"] == 2
    assert sendrecv["sizes_bytes"][:3] == [0, 4096, 8192]
    assert sendrecv["bandwidth_mb_s"][1] == pytest.approx(2 * 4096 / sendrecv["time_us"][1])
    assert sendrecv["messages_s"] is None
    assert (netpipe["benchmark"], netpipe["bidirectional"]) == ("NetPIPE", False)
    assert netpipe["sizes_bytes"][:4] == [1, 2, 3, 4]
    assert netpipe["bandwidth_both_ways_mb_s"] is None


def test_both_directions_are_named() -> None:
    code, [entry], faults = run("--bidirectional", BOTH_WAYS, LARGE)
    assert code == 2
    assert "IMB's output has no direction" in faults
    assert entry["sizes_bytes"][0] == 1
    assert entry["bandwidth_both_ways_mb_s"][-1] == 2 * entry["bandwidth_mb_s"][-1]


def test_a_faulty_file_does_not_hide_the_others(tmp_path: Path) -> None:
    binary = tmp_path / "binary.txt"
    binary.write_bytes(b"#---\n\xff\xfe\n")
    code, entries, faults = run(STOPPED, tmp_path / "missing.txt", TCP, binary, tmp_path)
    assert code == 2
    assert [entry["file"] for entry in entries] == [str(TCP)]
    assert (
        f"{STOPPED}:47: the file ends here, cut short: the row of 1024 bytes is missing" in faults
    )
    assert f"{tmp_path / 'missing.txt'}: cannot be read: No such file or directory" in faults
    assert f"{binary}:1: expected the output of NetPIPE" in faults
    assert faults.count("\n") == 3


def test_a_measurement_that_failed_is_shown_and_exits_2() -> None:
    code, [entry], faults = run(BARRIER)
    assert code == 2
    alltoall, barrier = entry["tables"]
    assert alltoall["failures"][0]["size_bytes"] == 524288
    assert alltoall["sizes_bytes"] == [0, 65536, 131072, 262144]
    assert barrier["failures"] == []
    assert f"{BARRIER}:40: Alltoall at 4 ranks failed at 524288 bytes" in faults
