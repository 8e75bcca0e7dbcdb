"""IMB's output, as recorded from four releases, is read whole or refused with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from netproof.benchmarks.fixed import Row
from netproof.benchmarks.imb import BENCHMARK
from netproof.benchmarks.interface import Output
from netproof.errors import ParseError

DATA = Path(__file__).parents[2] / "data" / "imb"


def recorded(name: str) -> Output:
    return BENCHMARK.read((DATA / name).read_text(), name)


def edited(name: str, old: str, new: str) -> str:
    text = (DATA / name).read_text()
    assert text.count(old) >= 1, f"{old!r} is not in {name}"
    return text.replace(old, new, 1)


def with_row(row: Row, columns: list[str] | None, name: str = "2018/all.txt") -> str:
    """A recorded output with other columns in a row, or without it."""
    lines = (DATA / name).read_text().split("\n")
    lines[row.line - 1 : row.line] = (
        [] if columns is None else ["".join(f"{c:>13}" for c in columns)]
    )
    return "\n".join(lines)


@pytest.mark.parametrize(
    "name",
    [
        *("2018/all.txt", "2019.6/all.txt", "2021.11/all.txt", "2021.11-intel/large.txt"),
        *("2018/checked.txt", "4.1-format/mebibytes.txt", "2021.1/window.txt", "2021.11/map.txt"),
    ],
)
def test_every_row_in_the_file_is_in_one_table_and_holds_what_its_line_says(name: str) -> None:
    lines = (DATA / name).read_text().split("\n")
    there = {at for at, line in enumerate(lines, 1) if line[:1] == " " and "#" not in line}
    tables = recorded(name).tables
    rows = {row.line: row for table in tables for row in table.rows}
    assert set(rows) == {at for at in there if lines[at - 1].strip()}
    assert len(rows) == sum(len(table.rows) for table in tables)
    for at, row in rows.items():
        printed = [float(token) for token in lines[at - 1].split()]
        assert printed[-len(row.values) :] == list(row.values.values())
        assert printed[: -len(row.values)] in ([row.size], [])
    for table in tables:
        assert lines[table.first_line - 1].startswith(f"# Benchmarking {table.function}")


def test_one_file_does_not_mix_both_megabytes() -> None:
    name = "4.1-format/mebibytes.txt"
    row = next(one for one in recorded(name).tables[0].rows if one.size == 32768)
    columns = (DATA / name).read_text().split("\n")[row.line - 1].split()
    columns[3] = f"{float(columns[3]) * 1.048576:.2f}"
    with pytest.raises(ParseError, match="does not follow from bytes and time") as caught:
        BENCHMARK.read(with_row(row, columns, name), "mixed.txt")
    assert caught.value.line == row.line


@pytest.mark.parametrize(
    ("start", "new", "reason"),
    [
        (["1", "4", "50"], "0", "expected the row of group 1"),
        (["1", "8", "50"], None, "expected the 5 columns Group"),
    ],
)
def test_the_row_of_another_group_or_a_lost_one_is_refused(start, new, reason) -> None:
    text = (DATA / "2021.11/multi-1.txt").read_text().split("\n")
    row = next(n for n, line in enumerate(text) if line.split()[:3] == start)
    text[row : row + 1] = [] if new is None else [text[row].replace("1", new, 1)]
    with pytest.raises(ParseError, match=reason) as caught:
        BENCHMARK.read("\n".join(text), "groups.txt")
    assert caught.value.line == row + 1


def test_one_table_is_not_picked_out_of_two_or_none() -> None:
    output = recorded("2021.11/multi-1.txt")
    with pytest.raises(ParseError, match="holds 2 tables of Sendrecv at 2 ranks, not one"):
        output.table("Sendrecv", 2)
    with pytest.raises(ParseError, match=r"holds 0 tables of Bcast at 4 ranks.*Sendrecv at 2"):
        output.table("Bcast", 4)


@pytest.mark.parametrize(
    ("name", "function", "words"),
    [
        ("2018/out-of-mem.txt", "Alltoall", "out-of-mem.; needed X="),
        ("2019.6/time-out.txt", "Alltoall", "time-out.; Time limit"),
        ("2018/int-overflow.txt", "Alltoallv", "int-overflow.; The production"),
        ("2021.11/int-overflow.txt", "Alltoallv", "int-overflow; The production"),
    ],
)
def test_a_failed_size_is_kept_and_makes_no_curve(name: str, function: str, words: str) -> None:
    table = recorded(name).table(function, 4)
    failure = next(row for row in table.rows if not row.values)
    assert failure.failure.startswith(words)
    line = (DATA / name).read_text().split("\n")[failure.line - 1]
    assert line.split()[0] == str(failure.size)
    with pytest.raises(ParseError) as caught:
        table.curve()
    assert (caught.value.path, caught.value.line) == (name, failure.line)
    assert caught.value.text == failure.failure


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("2018/one-rank.txt", "IMB did not run PingPong"),
        ("2018/truncated.txt", "another size than it was asked for"),
        ("2021.11/twice.txt", "a second table of PingPong at 2 ranks"),
    ],
)
def test_what_was_not_measured_as_asked_is_an_error(name: str, reason: str) -> None:
    with pytest.raises(ParseError, match=reason):
        recorded(name)


def test_wrong_data_make_no_curve() -> None:
    lines = (DATA / "2021.11/checked.txt").read_text().split("\n")
    row = recorded("2021.11/checked.txt").table("Alltoall", 4).rows[2]
    lines[row.line - 1] = lines[row.line - 1][:-4] + "1.00"
    table = BENCHMARK.read("\n".join(lines), "wrong.txt").table("Alltoall", 4)
    with pytest.raises(ParseError, match="moved wrong data at 2 bytes") as caught:
        table.curve()
    assert caught.value.line == row.line


LAST = "# Maximum message length in bytes:   "


@pytest.mark.parametrize(
    ("old", "new", "reason", "name"),
    [
        (old, new, reason, name)
        for name, several in {
            "2021.11/all.txt": [
                ("t_max[usec]", "t_top[usec]", "is no header that IMB prints for Sendrecv"),
                ("repetitions      t[usec]", "repetitions  t_min[usec]", "is no header"),
                (" Benchmarks 2021.11", " Benchmarks beta", "expected IMB's name, a version such"),
                (", MPI-1 part", ", MPI-IO part", "and one of MPI-1"),
                ("# Benchmarking Bcast", "# Benchmarking Jbcast", "no benchmark of IMB that"),
                ("# PingPong\n", "# Windows\n", "no benchmark of IMB that"),
                ("# PingPong\n", "", "PingPong is not in the list of benchmarks to run"),
                ("# #processes = 2", "# #processes = 3", "PingPong runs between 2 ranks"),
                (f"{LAST}16", "# Maximum: 16", "the least and the largest message length are not"),
                (f"{LAST}16", f"{LAST}8", "past"),
                (f"{LAST}16", f"{LAST}32", "ends"),
                ("# All processes entering MPI_Finalize", "", "cut short"),
                ("#\n# MPI_Datatype  ", "libfabric: no\n# MPI_Datatype  ", "expected the list"),
            ],
            "2018/all.txt": [
                ("# ( 2 additional", "# ( 3 additional", "processes, those that wait included"),
                (f"{' ':12}1{' ':11}50{' ':9}1.79{' ':9}0.56\n", "", "2 bytes follow 0, and not 1"),
            ],
            "2018/checked.txt": [
                ("ALL BENCHMARKS SUCCESSFUL", "1  BENCHMARK FAILED", "expected the rule above a t"),
            ],
            "2018/lengths.txt": [
                ("# Alltoall\n", "# Alltoall\n# Barrier\n", "announced and not there: Barrier"),
            ],
            "4.1-format/mebibytes.txt": [
                ("Benchmarks 4.1,", "Benchmarks 2018,", r"megabytes of 10\^6 bytes, as IMB 2018"),
            ],
        }.items()
        for old, new, reason in several
    ],
)
def test_what_imb_does_not_print_is_refused_with_its_line(old, new, reason, name) -> None:
    with pytest.raises(ParseError, match=reason) as caught:
        BENCHMARK.read(edited(name, old, new), "edited.txt")
    assert caught.value.path == "edited.txt"
    assert caught.value.line > 0


@pytest.mark.parametrize(
    ("function", "column", "value", "reason"),
    [
        ("PingPong", 2, "nan", r"t\[usec\] is nan, and not a finite number"),
        ("PingPong", 2, "-1.00", r"t\[usec\] is -1.00, and not"),
        ("PingPong", 2, "0.00", "a time of 0 for PingPong at 4 bytes"),
        ("PingPong", 2, "1e5", r"t\[usec\] is 1e5, and not"),
        ("PingPong", 2, "123456.00", "does not follow from bytes and time"),
        ("PingPong", 3, "0.00", "does not follow from bytes and time"),
        ("PingPong", 1, "0", "0 repetitions measure nothing"),
        ("PingPong", 1, "50.5", "is no row of columns as IMB prints them"),
        ("Uniband", 2, "0.01", "does not follow from bytes and time"),
        ("Bcast", 2, "99999.00", "expected t_min <= t_avg <= t_max"),
        ("Bcast", 2, "0.00", "a time of 0 for Bcast at 4 bytes"),
        ("Bcast", 0, "2", "2 bytes after 2: sizes must increase"),
        ("Bcast", 0, "1", "1 bytes after 2: sizes must increase"),
        ("Bcast", 0, None, "8 bytes after 2: IMB's sizes double"),
    ],
)
def test_an_impossible_row_is_refused_with_its_line(function, column, value, reason) -> None:
    row = recorded("2018/all.txt").table(function, 4 if function == "Bcast" else 2).rows[3]
    columns = (DATA / "2018/all.txt").read_text().split("\n")[row.line - 1].split()
    columns[column] = value
    with pytest.raises(ParseError, match=reason) as caught:
        BENCHMARK.read(with_row(row, columns if value else None), "impossible.txt")
    assert caught.value.line == row.line


def test_a_collective_of_no_bytes_may_take_no_time() -> None:
    row = recorded("2018/all.txt").table("Bcast", 4).rows[0]
    text = with_row(row, ["0", "50", "0.00", "0.00", "0.00"])
    assert BENCHMARK.read(text, "zero.txt").table("Bcast", 4).curve().time_us[0] == 0


def test_a_benchmark_has_to_come_to_all_processes() -> None:
    lines = (DATA / "2018/all.txt").read_text().split("\n")
    table = recorded("2018/all.txt").table("Alltoall", 4)
    del lines[table.first_line - 2 : table.rows[-1].line + 1]
    with pytest.raises(ParseError, match="Alltoall with all processes at once is not there"):
        BENCHMARK.read("\n".join(lines), "lost.txt")


@pytest.mark.parametrize(
    "name",
    [
        *("2018/all.txt", "2018/checked.txt", "2019.6/all.txt", "2021.1/window.txt"),
        *("2021.11/multi-0.txt", "2021.11/multi-1.txt", "2021.11/lengths.txt", "2021.11/map.txt"),
        *("2021.11/time-out.txt", "4.1-format/mebibytes.txt"),
    ],
)
def test_without_the_blanks_that_mail_and_editors_strip_it_is_the_same_output(name: str) -> None:
    lines = (DATA / name).read_text().split("\n")
    for strip in (str.lstrip, str.rstrip, str.strip, lambda line: line.removeprefix(" ")):
        assert BENCHMARK.read("\n".join(map(strip, lines)), name) == recorded(name)


def test_a_row_that_may_have_lost_digits_with_them_is_refused() -> None:
    lines = (DATA / "2021.11/lengths.txt").read_text().split("\n")
    row = recorded("2021.11/lengths.txt").table("Alltoall", 4).rows[-2]
    assert lines[row.line - 1].split()[0] == "1000"
    lines[row.line - 1] = lines[row.line - 1].split("1", 1)[1]
    with pytest.raises(ParseError, match="is no row of columns as IMB prints them") as caught:
        BENCHMARK.read("\n".join(lines), "cut.txt")
    assert caught.value.line == row.line


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
