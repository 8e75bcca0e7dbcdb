"""IMB's output, as recorded from four releases, is read whole or refused with its line."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_outputs import edited

from netproof.benchmarks.imb import BENCHMARK
from netproof.benchmarks.interface import Output
from netproof.errors import ParseError

DATA = Path(__file__).parents[2] / "data" / "imb"


def recorded(name: str) -> Output:
    return BENCHMARK.read((DATA / name).read_text(), name)


def test_one_table_is_not_picked_out_of_two_or_none() -> None:
    output = recorded("2021.11/multi-1.txt")
    with pytest.raises(ParseError, match="holds 2 tables of Sendrecv at 2 ranks, not one"):
        output.table("Sendrecv", 2)
    with pytest.raises(ParseError, match=r"holds 0 tables of Bcast at 4 ranks.*Sendrecv at 2"):
        output.table("Bcast", 4)


@pytest.mark.parametrize(
    ("name", "function"),
    [("2018/out-of-mem.txt", "Alltoall"), ("2021.11/int-overflow.txt", "Alltoallv")],
)
def test_a_failed_size_is_kept_and_makes_no_curve(name: str, function: str) -> None:
    table = recorded(name).table(function, 4)
    failure = next(row for row in table.rows if not row.values)
    with pytest.raises(ParseError) as caught:
        table.curve()
    assert (caught.value.line, caught.value.text) == (failure.line, failure.failure)


@pytest.mark.parametrize("name", ["2018/checked.txt", "2021.11/map.txt"])
def test_without_the_blanks_that_mail_and_editors_strip_it_is_the_same_output(name: str) -> None:
    lines = (DATA / name).read_text().split("\n")
    assert BENCHMARK.read("\n".join(map(str.strip, lines)), name) == recorded(name)


def test_wrong_data_make_no_curve() -> None:
    lines = (DATA / "2021.11/checked.txt").read_text().split("\n")
    row = recorded("2021.11/checked.txt").table("Alltoall", 4).rows[2]
    lines[row.line - 1] = lines[row.line - 1][:-4] + "1.00"
    table = BENCHMARK.read("\n".join(lines), "wrong.txt").table("Alltoall", 4)
    with pytest.raises(ParseError, match="moved wrong data at 2 bytes") as caught:
        table.curve()
    assert caught.value.line == row.line


def test_a_collective_of_no_bytes_may_take_no_time() -> None:
    row = f"{0:13}{50:13}" + f"{0.03:13}" * 3
    text = edited("imb/2018/all.txt", row, row.replace("0.03", "0.00"))
    assert 0.0 in {table.curve().time_us[0] for table in BENCHMARK.read(text, "zero.txt").tables}


def test_a_benchmark_has_to_come_to_all_processes() -> None:
    lines = (DATA / "2018/all.txt").read_text().split("\n")
    table = recorded("2018/all.txt").table("Alltoall", 4)
    del lines[table.first_line - 2 : table.rows[-1].line + 1]
    with pytest.raises(ParseError, match="Alltoall with all processes at once is not there"):
        BENCHMARK.read("\n".join(lines), "lost.txt")


@pytest.mark.parametrize("part", ["# Benchmarking PingPong \n", "# #processes = 2 \n"])
def test_a_part_of_another_output_is_refused_on_either_side(part):
    text = (DATA / "2021.11/all.txt").read_text()
    with pytest.raises(ParseError, match="a part of another output stands before IMB's name"):
        BENCHMARK.read(part + text, "x")
    with pytest.raises(ParseError, match="a second output follows the first"):
        BENCHMARK.read(text + part, "x")


REPEATED = DATA.parent / "jobs" / "load" / "bandwidth-across-beside-one-to-one.1.out"


def test_the_same_size_several_times_in_a_row_is_a_time_each_and_no_curve():
    text = REPEATED.read_text()
    times = BENCHMARK.read_repetitions(text, "x", "PingPong", 2, 16384)
    printed = [line.split() for line in text.splitlines() if line.strip().startswith("16384")]
    assert times == tuple(float(row[2]) for row in printed)
    assert len(times) == 16
    with pytest.raises(ParseError, match="16384 bytes after 16384: sizes must increase"):
        BENCHMARK.read(text, "x")
    less = "         8192            1     13000.00         0.63\n"
    at = text.index("\n\n\n# All processes") + 1
    with pytest.raises(ParseError, match="8192 bytes after 16384"):
        BENCHMARK.read(text[:at] + less + text[at:], "x", repeated=True)


@pytest.mark.parametrize(
    ("function", "ranks", "size"),
    [("Allreduce", 2, 16384), ("PingPong", 4, 16384), ("PingPong", 2, 8)],
)
def test_repetitions_that_were_not_asked_for_are_refused(function, ranks, size):
    with pytest.raises(ParseError):
        BENCHMARK.read_repetitions(REPEATED.read_text(), "x", function, ranks, size)
