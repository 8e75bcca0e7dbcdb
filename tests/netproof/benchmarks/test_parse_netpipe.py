"""NetPIPE's output, as recorded from 3.7.2 and 5.x, is read whole or refused with its line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from netproof.benchmarks import netpipe, outputs
from netproof.benchmarks.interface import Output
from netproof.errors import NetproofError, ParseError

DATA = Path(__file__).parents[2] / "data" / "netpipe" / "3.7.2"

FIVE = DATA.parent / "5.x"


def recorded(name: str, *, bidirectional: bool = False) -> Output:
    read = netpipe.read_file if name.endswith(".out") else netpipe.BENCHMARK.read
    return read((DATA / name).read_text(), name, bidirectional=bidirectional)


@pytest.mark.parametrize("name", ["tcp-both-ways", "openmpi-both-ways", "testbed-gige-both-ways"])
def test_both_ways_the_size_is_that_of_a_message_and_the_bandwidth_one_way(name: str) -> None:
    of_file = recorded(f"{name}.out", bidirectional=True)
    curve, both = of_file.curve(), of_file.tables[0].facts["bandwidth_both_ways_mb_s"]
    rows = [line.split() for line in (DATA / f"{name}.out").read_text().splitlines()]
    assert curve.sizes == tuple(int(row[0]) // 2 for row in rows)
    assert curve == recorded(f"{name}.stderr", bidirectional=True).curve()
    assert both[-1] == 2 * curve.bandwidth_mb_s[-1]
    assert both[-1] == pytest.approx(float(rows[-1][1]) * 2**20 / 8e6, rel=1e-3)


@pytest.mark.parametrize(
    ("name", "both", "reason"),
    [
        ("tcp.out", True, "tcp.out:1: .*the run was one way"),
        ("tcp.stderr", True, "the rate does not follow"),
        ("openmpi-both-ways.stderr", False, "the rate does not follow"),
        # It says so.
        ("tcp-both-ways.stdout", False, "is a bidirectional run, read as one way"),
    ],
)
def test_one_way_is_not_read_as_both_ways_nor_the_other_way_round(name, both, reason) -> None:
    text = (DATA / name).read_text()
    if name.endswith(".stdout"):
        text += (DATA / name.replace("out", "err")).read_text()
    read = netpipe.read_file if name.endswith(".out") else netpipe.BENCHMARK.read
    with pytest.raises(ParseError, match=reason):
        read(text, name, bidirectional=both)


class TestSizes:
    @pytest.mark.parametrize(
        ("path", "lower", "upper", "perturbation"),
        [
            (DATA / "tcp.out", 1, 16384, 3),
            (DATA / "openmpi.out", 1, 4194304, 3),
            (DATA / "openmpi-from-64.out", 64, 4096, 3),
            (DATA / "mpich.out", 1, 4096, 0),
            # TCP stops at its socket buffers.
            (DATA / "tcp-both-ways.out", 1, 147456, 0),
            (FIVE / "mpich.out", 1, 65536, 3),
            (FIVE / "mpich-from-64.out", 64, 4096, 0),
            (FIVE / "testbed-tcp.out", 1, 524288, 0),
            (FIVE / "testbed-tcp-both-ways.out", 1, 65536, 0),
        ],
    )
    def test_the_sizes_of_a_message_are_those_that_netpipe_visits(
        self, path: Path, lower: int, upper: int, perturbation: int
    ) -> None:
        both = "both-ways" in path.name
        output = netpipe.read_file(path.read_text(), "x", bidirectional=both)
        assert output.version == path.parent.name[0]
        assert output.curve().sizes == netpipe.sizes(lower, upper, perturbation)

    @pytest.mark.parametrize(
        ("asked", "reason"),
        [
            ((0, 64, 0), "give 1 <= lower <= upper"),
            ((64, 1, 0), "give 1 <= lower <= upper"),
            ((1, 64, -1), "give 1 <= lower <= upper"),
            # They would not increase.
            ((10, 50, 3), "start at a power of two"),
            ((8, 400, 5), "start at a power of two"),
        ],
    )
    def test_sizes_that_netpipe_does_not_measure_are_refused(self, asked, reason) -> None:
        with pytest.raises(NetproofError, match=reason):
            netpipe.sizes(*asked)


class TestPrint:
    def test_a_killed_run_is_an_error_at_its_last_line(self) -> None:
        text = (DATA / "stopped.stderr").read_text()
        for found in (text, text + "\n"):
            with pytest.raises(ParseError, match="cut short") as caught:
                netpipe.BENCHMARK.read(found, "stopped.stderr", bidirectional=False)
            assert caught.value.line == text.count("\n") + 1

    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            ("Now starting the main loop\n", "the first size is missing"),
            ("0: node1\n", "expected NetPIPE's main loop"),
            (
                re.sub(r"  7: .*\n", "", (DATA / "tcp.stderr").read_text()),
                r"x:11: is no row 7 as NetPIPE 3\.7\.2 prints it",
            ),
        ],
    )
    def test_a_run_that_lacks_a_row_is_an_error(self, text: str, reason: str) -> None:
        with pytest.raises(ParseError, match=reason):
            netpipe.BENCHMARK.read(text, "x", bidirectional=False)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("       4 0.909090   0.00000000", "a time of 0, which no message takes"),
        ("       4      nan   0.00003357", "Mbps is nan, and not a finite number"),
        ("       4 0.909090  -0.00003357", "seconds is -0.00003357, and not"),
        ("       4 0.909090 0.00003357", "is no row as NetPIPE 3.7.2 writes it"),
        ("       4 0.953674   0.00003357", "the rate does not follow from 4 bytes and time"),
        ("       4 0.909090", "expected the 3 columns"),
        ("       3 0.681818   0.00003357", "3 bytes after 3: sizes must increase"),
        ("       0 0.000000   0.00003357", "a message of 0 bytes"),
    ],
)
def test_an_impossible_row_is_refused_with_its_line(row: str, reason: str) -> None:
    text = f"       3 {3 * 8 / 2**20 / 3.357e-05:f}   0.00003357\n{row}\n"
    with pytest.raises(ParseError, match=reason) as caught:
        netpipe.read_file(text, "row.out", bidirectional=False)
    assert (caught.value.path, caught.value.line) == ("row.out", 2)


class TestRelease5:
    def text(self, name: str) -> str:
        return (FIVE / f"{name}.out").read_text()

    def test_both_ways_halves_bytes_and_rate(self) -> None:
        text = self.text("testbed-tcp-both-ways")
        (table,) = netpipe.read_file(text, "np5.out", bidirectional=True).tables
        moved, gbit_s, *_, time_us = self.text("testbed-tcp-both-ways").splitlines()[-1].split()
        row, both = table.rows[-1], table.facts["bandwidth_both_ways_mb_s"]
        assert (row.size, row.time_us) == (int(moved) // 2, float(time_us))
        assert both[-1] == pytest.approx(float(gbit_s) * 125, rel=2e-3)
        with pytest.raises(ParseError, match="say --bidirectional if it was one"):
            netpipe.read_file(self.text("mpich-both-ways"), "x", bidirectional=False)

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
        ("row", "reason"),
        [
            ("   393216     0.565     0.566     0.613 5569.45", "minimum <= average <= maximum"),
            ("   393216     0.565     0.515     0.564 5569.45", "minimum <= average <= maximum"),
            ("   393216     0.595     0.515     0.613 5569.45", "0.564818 Gbit/s would"),
            ("   393216     0.565     0.515     0.613 569.45", "is no row as NetPIPE 5.x writes"),
            ("   393216.5   0.565     0.515     0.613 5569.45", "is no row as NetPIPE 5.x writes"),
        ],
    )
    def test_an_impossible_row_is_refused_with_its_line(self, row: str, reason: str) -> None:
        rows = self.text("testbed-tcp").splitlines(keepends=True)[:-2]
        with pytest.raises(ParseError, match=reason) as caught:
            netpipe.read_file("".join([*rows, f"{row}\n"]), "np5.out", bidirectional=False)
        assert caught.value.line == len(rows) + 1


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
