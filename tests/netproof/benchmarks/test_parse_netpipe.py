"""NetPIPE's output, as recorded from 3.7.2 and 5.x, is read whole or refused with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from netproof.benchmarks import netpipe, outputs
from netproof.errors import NetproofError, ParseError

DATA = Path(__file__).parents[2] / "data" / "netpipe" / "3.7.2"

FIVE = DATA.parent / "5.x"


@pytest.mark.parametrize(
    ("name", "both", "reason"),
    [
        ("tcp.out", True, "tcp.out:1: .*the run was one way"),
        ("tcp.stderr", True, "the rate does not follow"),
        ("openmpi-both-ways.stderr", False, "the rate does not follow"),
        # It says so.
        ("tcp-both-ways.stdout", False, "is a bidirectional run, read as one way"),
        ("../5.x/mpich-both-ways.out", False, "say --bidirectional if it was one"),
    ],
)
def test_one_way_is_not_read_as_both_ways_nor_the_other_way_round(name, both, reason) -> None:
    text = (DATA / name).read_text()
    if name.endswith(".stdout"):
        text += (DATA / name.replace("out", "err")).read_text()
    read = netpipe.read_file if name.endswith(".out") else netpipe.BENCHMARK.read
    with pytest.raises(ParseError, match=reason):
        read(text, name, bidirectional=both)


def test_sizes_that_netpipe_does_not_measure_are_refused() -> None:
    with pytest.raises(NetproofError, match="give 1 <= lower <= upper"):
        netpipe.sizes(64, 1, 0)
    # They would not increase.
    for asked in ((10, 50, 3), (8, 400, 5)):
        with pytest.raises(NetproofError, match="start at a power of two"):
            netpipe.sizes(*asked)


class TestRelease5:
    def test_a_shortest_time_that_was_taken_as_a_microsecond_is_no_error(self) -> None:
        row = "        8     0.128     0.120     0.064    0.50\n"
        output = netpipe.read_file(row, "np5.out", bidirectional=False)
        assert output.curve().bandwidth_mb_s == pytest.approx((16.0,))

    def test_rounded_sizes_alone_are_refused_with_what_to_give(self) -> None:
        row = "  1:   1.049 MB        10 times -->    1.000 Gbps  in    8.389 msecs\n"
        text = f"Start testing with 3 trials for each message size\n{row}"
        text += "\nCompleted with        max bandwidth  200.000 Mbps  8.389 msecs latency\n"
        with pytest.raises(ParseError, match=r"give the file that it wrote, np\.out unless"):
            outputs.read(text, "x")


@pytest.mark.parametrize(
    "path",
    [
        *(DATA / f"{name}.out" for name in ("tcp", "openmpi-from-64", "tcp-both-ways")),
        *(FIVE / f"{name}.out" for name in ("mpich", "testbed-tcp")),
    ],
)
def test_a_file_from_which_lines_are_missing_is_refused_with_their_sizes(path: Path) -> None:
    rows = path.read_text().splitlines(keepends=True)
    both = path.stem.endswith("both-ways")
    whole = netpipe.read_file("".join(rows), "x", bidirectional=both).curve().sizes
    for lost in range(1, len(rows) - 1):
        left = "".join(rows[:lost] + rows[lost + 1 :])
        with pytest.raises(ParseError, match=r"are missing: NetPIPE (3\.7\.2|5\.x) me") as error:
            netpipe.read_file(left, "x", bidirectional=both)
        assert f" {whole[lost]} " in str(error.value)
        assert error.value.line == lost + 1


def test_sizes_that_no_run_visits_are_refused() -> None:
    text = "".join(f"{size:8d} {size * 8 / 2**20 / 1e-3:f} {1e-3:12.8f}\n" for size in (5, 9, 77))
    with pytest.raises(ParseError, match=r"no run of NetPIPE 3\.7\.2 measures these sizes alone"):
        netpipe.read_file(text, "odd.out", bidirectional=False)


def test_behind_its_rows_nothing_may_follow_and_no_row_stands_before_the_main_loop():
    printed = (DATA / "tcp.stderr").read_text()
    with pytest.raises(ParseError, match="nothing may follow its rows"):
        netpipe.BENCHMARK.read(f"{printed}srun: job 17 queued\n", "x", bidirectional=False)
    row = next(line for line in printed.splitlines(True) if " times --> " in line)
    with pytest.raises(ParseError, match="a part of another output stands before"):
        netpipe.BENCHMARK.read(row + printed, "x", bidirectional=False)
