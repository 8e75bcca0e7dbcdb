"""OMB's output, as recorded from two releases, is read whole or refused with its line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_outputs import edited

from netproof.benchmarks import osu
from netproof.benchmarks.interface import Table
from netproof.errors import ParseError
from netproof.measurement.case import Case
from netproof.verdict import file_names, files

DATA = Path(__file__).parents[2] / "data" / "osu"


def read(text: str, name: str) -> Table:
    """The one table of an output."""
    (table,) = osu.BENCHMARK.read(text, name).tables
    return table


def recorded(name: str) -> Table:
    return read((DATA / name).read_text(), name)


def refused(text: str) -> ParseError:
    with pytest.raises(ParseError) as caught:
        read(text, "x.out")
    return caught.value


def test_wrong_data_fail_where_they_arrived():
    output = recorded("7.4/allreduce-fc-2.out")
    with pytest.raises(ParseError, match=r"fc-2\.out:\d+: allreduce moved wrong data at 16 bytes"):
        output.curve()
    assert recorded("7.4/latency-c.out").curve().sizes[-1] == 1024


def test_percentiles_are_read_and_not_judged():
    row = recorded("7.4/latency-z.out").rows[0]
    assert (row.time_us, row.values["P99 Tail Lat(us)"]) == (1698.12, 3999.6)
    header = "P50 Tail BW(MB/s) P90 Tail BW(MB/s) P99 Tail BW(MB/s)"
    text = edited("osu/7.4/bw.out", "Bandwidth (MB/s)", f"Bandwidth (MB/s) {header}")
    rows = re.sub(r"(?m)^(\d+ +[\d.]+)$", rf"\1{2.5:18.2f}{1.5:18.2f}{0:18.2f}", text)
    assert read(rows, "x.out").rows[-1].values["P90 Tail BW(MB/s)"] == 1.5


def with_type_last(name: str, datatype: str = "MPI_CHAR") -> str:
    """A recorded output as releases 7.1 to 7.3 print it."""
    text = (DATA / "7.4" / f"{name}.out").read_text()
    return re.sub(r"# Datatype: \S+\n(# Size.*\n)", rf"\1# Datatype: {datatype}.\n", text)


@pytest.mark.parametrize(
    "name",
    ["latency", "latency-c", "bw", "bibw", "mbw_mr-2", "mbw_mr-4", "allreduce-2", "alltoall-f-4"],
)
def test_it_says_which_memory_and_type_it_used_and_the_type_may_follow_the_header(name):
    own = recorded(f"7.4/{name}.out")
    for memory in ("CUDA", "CUDA MANAGED"):
        text = (DATA / "7.4" / f"{name}.out").read_text()
        there = read(text.replace("# OSU MPI ", f"# OSU MPI-{memory} "), "x.out")
        remark = ", ".join(filter(None, (own.remark, memory)))
        assert (there.facts["device"], there.remark) == (memory, remark)
        assert there.curve() == own.curve()
    output = read(with_type_last(name, "MPI_FLOAT"), "x.out")
    assert (output.facts["datatype"], output.curve()) == ("MPI_FLOAT", own.curve())


def test_between_two_ranks_older_releases_say_where_both_buffers_are():
    buffers = "# Send Buffer on DEVICE (D) and Receive Buffer on HOST (H)\n# Size"
    for text in ((DATA / "7.4" / "latency.out").read_text(), with_type_last("bw")):
        on_gpu = text.replace("# OSU MPI ", "# OSU MPI-CUDA ")
        output = read(on_gpu.replace("# Size", buffers), "x.out")
        assert output.remark == "CUDA, from DEVICE (D) to HOST (H)"
        assert output.facts["datatype"] == "MPI_CHAR"
    collective = (DATA / "7.4" / "allreduce-f-2.out").read_text()
    said = str(refused(collective.replace("# Size", buffers)))
    assert "is no header that OMB prints for allreduce" in said
    said = str(refused(with_type_last("bw").replace("# Size", "# Datatype: MPI_CHAR.\n# Size")))
    assert "the table has none: found '# Datatype: MPI_CHAR" in said


class TestARateOfZero:
    """OMB prints two decimals: of a rate below 0.005 nothing is left."""

    def test_the_curve_has_the_least_time_that_it_allows_and_a_run_refuses_it(self):
        output = recorded("5.1/bw-slow.out")
        assert output.at_least == (1, 2)
        assert output.curve().time_us[:3] == (200, 400, 400)
        case, text = Case("s", "p", "e", "osu", "bw", 2, 1), (DATA / "5.1/bw-slow.out").read_text()
        with pytest.raises(ParseError, match=r"x\.out:\d+: the rate is below 0\.005") as caught:
            osu.BENCHMARK.read_launch(text, Path("x.out"), case)
        assert caught.value.text == "1 bytes at 0.00"

    def test_the_messages_a_second_give_the_time_where_only_the_rate_is_zero(self):
        row = f"{1:<10}{0:18.2f}{3000:18.2f}\n"
        text = (DATA / "7.4/mbw_mr-2.out").read_text()
        output = read(re.sub(r"(?m)^1 .*\n", row, text), "x.out")
        assert output.at_least == ()
        assert output.curve().time_us[0] == pytest.approx(1e6 / 3000)
        none = re.sub(r"(?m)^1 .*\n", row.replace("3000.00", "   0.00"), text)
        assert read(none, "x.out").at_least == (1,)


def test_a_launch_says_which_sizes_and_asks_for_the_slowest_rank():
    function = osu.BENCHMARK.function("allreduce")
    command = osu.BENCHMARK.command(function, 8, function.sizes(8, 64), "s.txt", ["-i", "10"])
    assert command == ["osu_allreduce", "-m", "4:64", "-f", "-i", "10"]
    barrier = osu.BENCHMARK.function("barrier")
    assert osu.BENCHMARK.command(barrier, 8, (0,), "s.txt", []) == ["osu_barrier", "-f"]


@pytest.mark.parametrize(
    ("name", "ranks", "memory"),
    [("alltoall", 128, []), ("allgather", 129, ["-M", str(129 * 2**22)]), ("allreduce", 1024, [])],
)
def test_no_size_is_left_out_for_the_memory_that_omb_allows_itself(name, ranks, memory):
    function = osu.BENCHMARK.function(name)
    command = osu.BENCHMARK.command(function, ranks, function.sizes(ranks, 2**22), "", [])
    assert command == [f"osu_{name}", "-m", f"{function.least_bytes}:4194304", *memory, "-f"]


def test_in_the_time_of_a_message_both_ways_half_of_it_goes_each_way():
    for name, count in (("latency", 1), ("bw", 1), ("bibw", 0.5)):
        function = osu.BENCHMARK.function(name)
        assert function.messages_on_link(2, 1) == (count, count)
        assert function.direction == ("oneway" if count == 1 else "bidirectional")
    assert osu.BENCHMARK.function("mbw_mr").messages_on_link(16, 2) == (0.25, 0.25)


@given(st.sets(st.integers(1, 5000), min_size=1, max_size=12))
def test_calls_measure_the_sizes_asked_for_and_no_others(sizes: set[int]):
    runs = osu.BENCHMARK.parts(sorted(sizes))
    measured = [run[0] * 2**step for run in runs for step in range(len(run))]
    assert sorted(measured) == sorted(sizes)


def test_a_launch_of_another_case_is_refused():
    case = Case("s", "p", "e", "osu", "alltoall", 4, 2)
    text = (DATA / "7.4/alltoall-f-4.out").read_text()
    assert osu.BENCHMARK.read_launch(text, Path("x.out"), case).sizes[-1] == 16384
    for name in ("allgather-f-4", "allreduce-2"):
        text = (DATA / f"7.4/{name}.out").read_text()
        with pytest.raises(ParseError, match="alltoall on 4 ranks was asked for"):
            osu.BENCHMARK.read_launch(text, Path("x.out"), case)


def test_the_slowest_rank_and_the_mean_of_the_ranks_are_not_compared(tmp_path: Path):
    for mpi, name in (("one", "allreduce-f-2"), ("two", "allreduce-2")):
        (tmp_path / f"{mpi}.out").write_text((DATA / f"7.4/{name}.out").read_text())
    judged = files.judge(sorted(tmp_path.iterdir()), named=file_names.Pattern("{mpi}.out"))
    assert len(judged.curves) == 2
    assert not [f for one in judged.curves for f in one.findings if f.criterion == "envelope"]


ONE_SIDED = "# Window creation: MPI_Win_allocate\n# Synchronization: MPI_Win_flush\n"
WINDOW = "MPI_Win_allocate, MPI_Win_flush"
MEAN = "mean of the ranks"
OVERALL = "# Overall = Coll. Init + Compute + MPI_Test + MPI_Wait\n\n"


def table(title: str, columns: str, *rows: str, more: str = "", version: str = "5.6.3") -> str:
    return "\n".join([f"# OSU {title} Test v{version}", f"{more}{columns}", *rows, ""])


class TestOtherTests:
    """Tests that no run starts: their outputs are read."""

    @pytest.mark.parametrize(
        ("title", "function", "ranks", "remark"),
        [
            ("MPI Multi Latency", "multi_lat", None, ""),
            ("MPI Latency Persistent", "latency_persistent", 2, ""),
            ("MPI_Put Latency", "put_latency", 2, WINDOW),
            ("MPI_Get_accumulate latency", "get_acc_latency", 2, WINDOW),
            ("One Sided MPI_Put latency", "put_latency", 2, WINDOW),
            ("MPI_Get-CUDA Bandwidth", "get_bw", 2, f"{WINDOW}, CUDA"),
            ("MPI_Put Bi-directional Bandwidth", "put_bibw", 2, WINDOW),
            ("MPI Gather Latency", "gather", None, MEAN),
            ("MPI All-to-Allw Personalized Exchange Latency", "alltoallw", None, MEAN),
            ("MPI Neighborhood Allgather Latency", "neighbor_allgather", None, MEAN),
            ("MPI Broadcast Persistent Latency", "bcast_persistent", None, MEAN),
        ],
    )
    def test_it_is_read_by_its_title(self, title, function, ranks, remark):
        column = "Bandwidth (MB/s)" if "andwidth" in title else "Latency (us)"
        columns = f"# Size    {'Avg Latency(us)' if remark == MEAN else column:>18}"
        more = ONE_SIDED if "MPI_" in title else ""
        text = table(title, columns, f"{8:<10}{4.0:18.2f}", more=more)
        output = read(text, "x.out")
        assert (output.function, output.ranks, output.remark) == (function, ranks, remark)
        assert output.curve().time_us == ((2,) if "andwidth" in title else (4,))
        assert (output.curve().bandwidth_mb_s is None) is (
            remark == MEAN or function == "get_acc_latency"
        )
        known = osu.BENCHMARK.known(function)
        assert known is None or known.link_factor == (2 if "bibw" in function else 1)

    @pytest.mark.parametrize("extremes", [(), ("Min Comm.(us)", "Max Comm.(us)")])
    def test_with_all_columns_its_time_is_the_slowest_ranks_if_it_is_there(self, extremes):
        steps = ("Compute(us)", "Coll. Init(us)", "MPI_Test(us)", "MPI_Wait(us)")
        names = ("Overall(us)", *steps, "Pure Comm.(us)", *extremes, "Overlap(%)")
        figures = (7.55, 4.29, 0.5, 0.0, 0.4, 3.47, *((3.1, 3.9) if extremes else ()), 6.08)
        columns = "# Size    " + "".join(f"{name:>18}" for name in names)
        row = f"{4:<10}" + "".join(f"{value:18.2f}" for value in figures)
        text = table("MPI Non-blocking Reduce Latency", columns, row, more=OVERALL)
        output = read(text, "x.out")
        assert output.curve().time_us == ((3.9,) if extremes else (3.47,))
        assert output.curve().time_min_us == ((3.1,) if extremes else None)
        assert output.document([])["overlap_percent"] == [6.08]
        assert output.remark == ("" if extremes else "mean of the ranks")

    @pytest.mark.parametrize(
        ("first", "width"), [("       Overall(us)", 18), ("# Overall(us)", 13)]
    )
    def test_a_barrier_that_does_not_block(self, first, width):
        columns = first + "".join(
            f"{name:>18}" for name in ("Compute(us)", "Pure Comm.(us)", "Overlap(%)")
        )
        row = f"{8.85:{width}.2f}{5.04:18.2f}{4.02:18.2f}{5.04:18.2f}"
        text = table("MPI Non-blocking Barrier Latency", columns, row, more=OVERALL)
        assert read(text, "x.out").curve().time_us == (4.02,)
        assert "0 bytes after 0: sizes must increase" in str(refused(text + row + "\n"))

    def test_release_3_has_wider_columns(self):
        columns = "# Size            Latency (us)"
        row = f"{0:<10}{19.23:20.2f}"
        text = table("MPI Latency", columns, row, version="3.1.1")
        assert read(text, "x.out").curve().time_us == (19.23,)
        assert "is no row of columns" in str(refused(text.replace("    19.23", "   19.23")))
        columns = "# Size     Bi-Bandwidth (MB/s)"
        row = f"{8:<10}{4.0:20.2f}"
        title = "One Sided MPI_Put Bi-directional Bandwidth"
        assert read(table(title, columns, row, version="3.1.1"), "x.out").function == "put_bibw"

    def test_the_rate_of_pairs_may_stand_without_messages(self):
        columns = f"# [ pairs: 2 ] [ window size: 64 ]\n# Size    {'MB/s':>18}"
        text = table("MPI Multiple Bandwidth / Message Rate", columns, f"{8:<10}{4.0:18.2f}")
        assert read(text, "x.out").curve().time_us == (2,)
