"""OMB's output, as recorded from two releases, is read whole or refused with its line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netproof.benchmarks import osu, outputs
from netproof.errors import ParseError
from netproof.measurement.case import Case
from netproof.verdict import files

DATA = Path(__file__).parents[2] / "data" / "osu"
REFUSED = ("latency-z.out", "foreign.out", "bibw-cuda-crashed.out")
WHOLE = sorted(
    path.relative_to(DATA).as_posix() for path in DATA.glob("*/*.out") if path.name not in REFUSED
)
COLLECTIVES = ("allreduce", "alltoall", "allgather", "bcast", "reduce_scatter", "barrier")


def recorded(name: str) -> osu.OsuOutput:
    return osu.read((DATA / name).read_text(), name)


def edited(name: str, old: str, new: str) -> str:
    text = (DATA / name).read_text()
    assert text.count(old) >= 1, f"{old!r} is not in {name}"
    return text.replace(old, new, 1)


def refused(text: str) -> ParseError:
    with pytest.raises(ParseError) as caught:
        osu.read(text, "x.out")
    return caught.value


@pytest.mark.parametrize("name", WHOLE)
def test_every_recorded_output_is_read_by_its_content(name: str) -> None:
    text = (DATA / name).read_text()
    (output,) = outputs.read(text, name).outputs
    assert isinstance(output, osu.OsuOutput)
    assert output.version == name.split("/", maxsplit=1)[0]
    assert Path(name).name.startswith(output.function)
    assert len(output.rows) == sum(
        line[:1].isdigit() or line[:3] == "   " for line in text.split("\n")
    )


@pytest.mark.parametrize("release", ["5.3", "7.4"])
@pytest.mark.parametrize("function", COLLECTIVES)
@pytest.mark.parametrize("ranks", [2, 4])
def test_a_collectives_time_is_that_of_its_slowest_rank(release: str, function: str, ranks: int):
    output = recorded(f"{release}/{function}-f-{ranks}.out")
    curve = output.curve()
    assert curve.bandwidth_mb_s is None
    assert curve.time_min_us is not None
    assert curve.time_avg_us is not None
    for least, mean, most in zip(curve.time_min_us, curve.time_avg_us, curve.time_us, strict=True):
        assert least <= mean + 0.01 <= most + 0.02
    assert curve.sizes[-1] == (0 if function == "barrier" else 16384)
    assert output.remark == ""


def test_without_the_slowest_rank_the_mean_is_the_time_and_said_to_be():
    output = recorded("7.4/allreduce-2.out")
    assert output.curve().time_us[0] == output.rows[0].values["Avg Latency(us)"]
    assert output.remark == "mean of the ranks"
    (printed,) = output.printed()
    assert osu.BENCHMARK.kind(printed, "") == "OSU allreduce, mean of the ranks"


def test_latency_is_one_way_and_makes_a_bandwidth():
    output = recorded("5.3/latency.out")
    curve = output.curve()
    assert curve.sizes == (0, *(2**power for power in range(23)))
    assert curve.bandwidth_mb_s is not None
    assert curve.bandwidth_mb_s[-1] == pytest.approx(4194304 / 934.22)


def test_a_bandwidth_is_in_megabytes_of_a_million_bytes_and_makes_the_time():
    output = recorded("7.4/bw.out")
    curve = output.curve()
    last = output.rows[-1]
    assert curve.bandwidth_mb_s is not None
    assert curve.bandwidth_mb_s[-1] == pytest.approx(last.values["Bandwidth (MB/s)"])
    assert curve.time_us[-1] == pytest.approx(65536 / last.values["Bandwidth (MB/s)"])


def test_message_rates_are_of_all_pairs_whose_ranks_are_printed():
    output = recorded("7.4/mbw_mr-4.out")
    assert output.ranks == 4
    assert output.curve().time_us[-1] == pytest.approx(1e6 / output.rows[-1].values["Messages/s"])


def test_ranks_that_are_not_printed_are_not_made_up():
    (printed,) = recorded("7.4/alltoall-f-4.out").printed()
    assert printed.ranks is None


def test_wrong_data_fail_where_they_arrived():
    output = recorded("7.4/allreduce-fc-2.out")
    with pytest.raises(ParseError, match=r"fc-2\.out:\d+: allreduce moved wrong data at 16 bytes"):
        output.curve()
    assert recorded("7.4/latency-c.out").curve().sizes[-1] == 1024


def test_what_others_printed_before_the_output_is_kept():
    text = (DATA / "7.4/latency.out").read_text()
    output = osu.read(f"[0] MPI startup(): ofi\n\n{text}\n", "x.out")
    assert output.preamble == ("[0] MPI startup(): ofi",)
    assert output.rows[0].line == recorded("7.4/latency.out").rows[0].line + 2


def test_the_first_foreign_line_inside_the_table_is_refused():
    lines = (DATA / "7.4/foreign.out").read_text().split("\n")
    foreign = [number for number, line in enumerate(lines, 1) if "MEMALIGN" in line]
    first = next(number for number in foreign if number > 6)
    fault = refused("\n".join(lines))
    assert fault.line == first
    assert "nothing may follow its rows: found '# HOST/POSIX_MEMALIGN" in str(fault)


def test_what_a_launcher_says_of_a_program_that_it_killed_is_no_epilogue():
    rows = (DATA / "7.4/latency.out").read_text().splitlines(keepends=True)
    fault = refused("".join([*rows[:-3], "mpirun noticed that rank 1 exited on signal 9\n"]))
    assert "nothing may follow its rows" in str(fault)


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        ("7.4/latency.out", "Avg Latency(us)", "Avg Latency(ms)", "is no header that OMB prints"),
        ("7.4/bw.out", "Bandwidth (MB/s)", "Bandwidth (Gb/s)", "is no header that OMB prints"),
        ("7.4/latency.out", "Latency Test v7.4", "Latency Test v8.0", "not one of OMB 3 to 7"),
        (
            "7.4/latency.out",
            "MPI Latency Test",
            "MPI Put Latency Test",
            "a test of OMB that is not read here",
        ),
        ("7.4/mbw_mr-2.out", "# [ pairs: 1 ]", "# [ pairs: 0 ]", "no pair measures nothing"),
        ("5.3/latency.out", "\n4   ", "\n3   ", "3 bytes after 2: OMB's sizes double"),
        ("5.3/latency.out", "\n4   ", "\n2   ", "2 bytes after 2: sizes must increase"),
        ("5.3/latency.out", "331.18", "  0.00", "is 0, which nothing takes"),
        ("5.3/latency.out", "331.18", "   nan", "which no measurement gives"),
        ("5.3/latency.out", "331.18", "-31.18", "is negative"),
        ("5.3/latency.out", "331.18", "31.180", "is no row of columns as OMB prints them"),
        ("5.3/mbw_mr-4.out", "237893.39", "537893.39", "does not follow from bytes"),
        ("5.3/alltoall-f-4.out", " 3590.77", "93590.77", "expected min <= avg <= max"),
        ("7.4/latency-c.out", "Pass", "Okay", "Validation is Okay"),
    ],
)
def test_what_contradicts_itself_is_refused(name: str, old: str, new: str, said: str):
    assert said in str(refused(edited(name, old, new)))


@pytest.mark.parametrize("name", ["5.3/latency.out", "7.4/alltoall-f-4.out", "7.4/mbw_mr-4.out"])
def test_a_row_that_is_missing_is_refused(name: str):
    rows = (DATA / name).read_text().splitlines(keepends=True)
    assert "a row is missing" in str(refused("".join([*rows[:-3], *rows[-2:]])))


def test_a_percentile_is_refused_by_its_header():
    fault = refused((DATA / "7.4/latency-z.out").read_text())
    assert "is no header that OMB prints for latency and that is read here" in str(fault)


def test_two_outputs_in_one_file_are_refused():
    text = (DATA / "7.4/latency.out").read_text()
    assert "nothing may follow its rows" in str(refused(text + text))


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(WHOLE), st.floats(0, 1))
def test_cut_at_any_byte_it_is_refused_or_a_true_beginning(name: str, where: float):
    text = (DATA / name).read_text()
    whole = osu.read(text, name).rows
    try:
        rows = osu.read(text[: int(where * len(text))], name).rows
    except ParseError:
        return
    assert rows == whole[: len(rows)]


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet="# OSUMPILatencyTs v7.4\n0123456789MB/s", max_size=200))
def test_no_text_makes_any_other_error(text: str):
    for start in ("", "\n# OSU MPI Latency Test v7.4\n# Size       Avg Latency(us)\n"):
        try:
            osu.read(start + text, "x.out").curve()
        except ParseError:
            continue


@pytest.mark.parametrize("memory", ["CUDA", "CUDA MANAGED", "ROCM"])
def test_a_collective_says_only_which_memory_it_used(memory):
    text = (DATA / "7.4" / "allreduce-f-2.out").read_text()
    there = osu.read(text.replace("# OSU MPI ", f"# OSU MPI-{memory} "), "x.out")
    assert (there.device, there.remark) == (memory, memory)
    assert there.curve() == osu.read(text, "x.out").curve()
    buffers = "# Send Buffer on DEVICE (D) and Receive Buffer on HOST (H)\n# Size"
    with pytest.raises(ParseError, match="is no header that OMB prints for allreduce"):
        osu.read(text.replace("# Size", buffers), "x.out")


def test_between_two_ranks_older_releases_say_where_both_buffers_are():
    text = (DATA / "7.4" / "latency.out").read_text().replace("# OSU MPI ", "# OSU MPI-CUDA ")
    buffers = "# Send Buffer on DEVICE (D) and Receive Buffer on HOST (H)\n# Size"
    there = osu.read(text.replace("# Size", buffers), "x.out")
    assert there.remark == "CUDA, from DEVICE (D) to HOST (H)"


@pytest.mark.parametrize("memory", ["CUDA", "CUDA MANAGED", "ROCM", "SYCL"])
@pytest.mark.parametrize("name", ["latency", "latency-c", "bw", "bibw", "mbw_mr-2"])
def test_newer_releases_do_not_say_where_the_buffers_are(name, memory):
    text = (DATA / "7.4" / f"{name}.out").read_text()
    there = osu.read(text.replace("# OSU MPI ", f"# OSU MPI-{memory} "), "x.out")
    assert there.remark == memory
    assert there.curve() == osu.read(text, "x.out").curve()


def with_type_last(name: str, datatype: str = "MPI_CHAR") -> str:
    """A recorded output as releases 7.1 to 7.3 print it."""
    text, found = re.subn(
        r"# Datatype: \S+\n(# Size.*\n)",
        rf"\1# Datatype: {datatype}.\n",
        (DATA / "7.4" / f"{name}.out").read_text(),
    )
    assert found == 1
    return text


@pytest.mark.parametrize("datatype", ["MPI_CHAR", "MPI_INT", "MPI_FLOAT"])
@pytest.mark.parametrize(
    "name",
    ["latency", "latency-c", "bw", "bibw", "mbw_mr-2", "mbw_mr-4", "allreduce-2", "alltoall-f-4"],
)
def test_the_type_may_follow_the_header(name, datatype):
    output = osu.read(with_type_last(name, datatype), "x.out")
    assert output.datatype == datatype
    assert output.curve() == recorded(f"7.4/{name}.out").curve()


def test_in_memory_of_a_gpu_too_the_type_may_follow_the_header():
    text = with_type_last("bw").replace("# OSU MPI ", "# OSU MPI-CUDA ")
    buffers = "# Send Buffer on DEVICE (D) and Receive Buffer on DEVICE (D)\n# Size"
    output = osu.read(text.replace("# Size", buffers), "x.out")
    assert (output.datatype, output.remark) == ("MPI_CHAR", "CUDA, from DEVICE (D) to DEVICE (D)")


def test_a_second_type_is_refused():
    text = with_type_last("bw")
    with pytest.raises(ParseError, match="the table has none: found '# Datatype: MPI_CHAR"):
        osu.read(text.replace("# Size", "# Datatype: MPI_CHAR.\n# Size"), "x.out")


def test_what_a_program_printed_as_it_crashed_is_named():
    with pytest.raises(ParseError, match=r"crashed\.out:5: .* found '\[node1:1\] \*\*\* Process"):
        recorded("7.5/bibw-cuda-crashed.out")


class TestARateOfZero:
    """OMB prints two decimals: of a rate below 0.005 nothing is left."""

    def rows(self, release: str, name: str, **figures: str) -> str:
        """A recorded output with other figures at some sizes: ``_8="0.00"``."""
        text = (DATA / release / f"{name}.out").read_text()
        for size, figure in figures.items():
            text, found = re.subn(
                rf"(?m)^({size[1:]} +?) *[0-9.]+( +Pass)?$",
                lambda at, figure=figure: f"{at[1].rstrip():<10}{figure:>18}{at[2] or ''}",
                text,
            )
            assert found == 1
        return text

    def test_the_curve_has_the_least_time_that_it_allows(self):
        output = recorded("5.1/bw-slow.out")
        assert output.at_least == (1, 2)
        assert output.curve().time_us[:3] == (200, 400, 400)

    @pytest.mark.parametrize("name", ["bw", "bibw"])
    def test_it_is_read_at_several_sizes_in_a_row(self, name):
        output = osu.read(self.rows("5.3", name, _1="0.00", _2="0.00", _4="0.00"), "x.out")
        assert output.at_least == (1, 2, 4)

    def test_the_messages_a_second_give_the_time_where_only_the_rate_is_zero(self):
        row = f"{1:<10}{0:18.2f}{3000:18.2f}\n"
        text = (DATA / "7.4/mbw_mr-2.out").read_text()
        output = osu.read(re.sub(r"(?m)^1 .*\n", row, text), "x.out")
        assert output.at_least == ()
        assert output.curve().time_us[0] == pytest.approx(1e6 / 3000)
        none = re.sub(r"(?m)^1 .*\n", row.replace("3000.00", "   0.00"), text)
        assert osu.read(none, "x.out").at_least == (1,)

    def test_no_time_is_zero(self):
        text = (DATA / "5.3/latency.out").read_text().replace("331.18", "  0.00")
        assert "is 0, which nothing takes" in str(refused(text))

    def test_a_run_refuses_it(self):
        case = Case("s", "p", "e", "osu", "bw", 2, 1)
        text = self.rows("5.3", "bw", _8="0.00")
        with pytest.raises(ParseError, match=r"x\.out:\d+: the rate is below 0\.005") as caught:
            osu.BENCHMARK.read_launch(text, Path("x.out"), case)
        assert caught.value.text == "8 bytes at 0.00"


def test_a_launch_says_which_sizes_and_asks_for_the_slowest_rank():
    function = osu.BENCHMARK.function("allreduce")
    command = osu.BENCHMARK.command(function, 8, function.sizes(8, 64), "s.txt", ["-i", "10"])
    assert command == ["osu_allreduce", "-m", "4:64", "-f", "-i", "10"]
    barrier = osu.BENCHMARK.function("barrier")
    assert osu.BENCHMARK.command(barrier, 8, (0,), "s.txt", []) == ["osu_barrier", "-f"]
    latency = osu.BENCHMARK.function("latency")
    assert osu.BENCHMARK.command(latency, 2, (1, 2), "", []) == ["osu_latency", "-m", "1:2"]


@pytest.mark.parametrize(
    ("name", "ranks", "memory"),
    [
        ("alltoall", 128, []),
        ("alltoall", 256, ["-M", str(256 * 2**22)]),
        ("allgather", 129, ["-M", str(129 * 2**22)]),
        ("allreduce", 1024, []),
    ],
)
def test_no_size_is_left_out_for_the_memory_that_omb_allows_itself(name, ranks, memory):
    function = osu.BENCHMARK.function(name)
    command = osu.BENCHMARK.command(function, ranks, function.sizes(ranks, 2**22), "", [])
    assert command == [f"osu_{name}", "-m", f"{function.element_bytes}:4194304", *memory, "-f"]


def test_in_the_time_of_a_message_both_ways_half_of_it_goes_each_way():
    for name, count in (("latency", 1), ("bw", 1), ("bibw", 0.5)):
        assert osu.BENCHMARK.function(name).messages_on_link(2, 1) == (count, count)
    assert osu.BENCHMARK.function("mbw_mr").messages_on_link(16, 2) == (0.25, 0.25)


@given(st.sets(st.integers(1, 5000), min_size=1, max_size=12))
def test_calls_measure_the_sizes_asked_for_and_no_others(sizes: set[int]):
    runs = osu.doubling(sorted(sizes))
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


def test_judge_takes_them_and_compares_like_with_like(tmp_path: Path):
    for mpi, name in (("one", "allreduce-f-2"), ("two", "allreduce-2")):
        (tmp_path / mpi).mkdir()
        (tmp_path / mpi / "allreduce.out").write_text((DATA / f"7.4/{name}.out").read_text())
    judged = files.judge(sorted(tmp_path.glob("*/*.out")), named=files.Pattern("{mpi}/{benchmark}"))
    assert judged.faults == ()
    assert [str(one.kind) for one in judged.curves] == [
        "OSU allreduce (allreduce)",
        "OSU allreduce, mean of the ranks (allreduce)",
    ]
    assert not [
        finding
        for one in judged.curves
        for finding in one.findings
        if finding.criterion == "envelope"
    ]
