"""Programs that netproof does not start: what people published is read whole or refused."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from made_outputs import edited

from netproof.benchmarks import outputs
from netproof.benchmarks.interface import Table
from netproof.errors import NetproofError, ParseError

DATA = Path(__file__).parents[2] / "data" / "formats"
REFUSED = ("nccl-foreign-line.out", "perftest-two-processes.out")
FILES = sorted(
    path.name for path in DATA.iterdir() if path.suffix != ".md" and path.name not in REFUSED
)


def tables(name: str, form: str | None = None) -> list[tuple[str, Table]]:
    """Return the benchmark and each table of a recorded output."""
    how = None if form is None else outputs.form(form)
    log = outputs.read(outputs.text_of(DATA / name), name, form=how)
    assert log.faults == ()
    return log.printed()


def refused(text: str) -> str:
    with pytest.raises(ParseError) as caught:
        outputs.read(text.expandtabs(), "x.out")
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "number", "function", "ranks", "last"),
    [
        # Bytes, µs, MB/s of the last row.
        ("nccl-two-nodes.out", 2, "all_reduce", 2, (2**30, 1752724, 612.613)),
        ("nccl-allreduce.out", 2, "all_reduce", 8, (2**33, 63896, 235263.3)),
        ("nccl-reduce-scatter.out", 2, "reduce_scatter", 8, (2**33, 32464, 231523.9)),
        ("nccl-slow-middle.out", 2, "all_reduce", 16, (2**33, 324761, 49593.8)),
        ("nccl-allreduce.json", 2, "all_reduce", 4, (2**22, 90, 69905.1)),
        ("perftest-both-sides.out", 2, "write_bw", 2, (2**23, 332.547, 25225.3)),
        ("perftest-sweep.out", 1, "write_bw", 2, (2**23, 344.224, 24369.6)),
        ("perftest-small.out", 1, "write_bw", 2, (8, 0.133358, 59.9889)),
        ("perftest-read-lat.out", 1, "read_lat", 2, (2, 1.79, 1.11732)),
        ("perftest-bibw.json", 1, "write_bibw", 2, (65536, 1.345, 48726.2)),
        ("iperf3-ten-kilobytes.json", 1, "tcp", 2, (131072, 828904, 0.158129)),
        ("iperf3-both-ways.json", 2, "tcp", 2, (131072, 112.475, 1165.34)),
        ("gpcnet-network-test.out", 8, "RR Two-sided Lat", 2048, (8, 2.9, 0)),
        ("gpcnet-network-load-test.out", 6, "RR Two-sided Lat", 416, (8, 2.9, 0)),
        ("mpigraph.out", 2, "send", 4, (2**20, 368.986, 2841.77)),
        ("linktest.out", 1, "pingpong", 4, (131072, 90.25, 1452.32)),
        ("gpcnet-verbose.out", 6, "RR Two-sided Lat", 128, (8, 2.9, 0)),
        ("nccl-without-sizes.out", 2, "all_reduce", None, (2**28, 11812, 42610.6)),
        ("nccl-all-gather-2020.out", 2, "all_gather", 2, (2**18, 31.38, 4176.9)),
        ("netpipe-5-print.out", 1, "netpipe", 2, (2**22, 58212.52, 72.0516)),
        ("imb-rma.out", 1, "One_put_all", 2, (1, 10.01, 0.0999001)),
        ("imb-show-tail.out", 1, "PingPong", 2, (1024, 1.8, 568.889)),
        ("imb-ext-modes.out", 2, "Unidir_Put", 2, (64, 3.32, 19.2771)),
        ("nccl-less-memory.out", 2, "alltoall", 2, (2**34, 236433, 36331.4)),
        ("perftest-atomic.out", 1, "atomic_bw", 2, (8, 4.56855, 1.7511)),
    ],
)
def test_units_and_ranks_are_those_of_the_program(name, number, function, ranks, last):
    found = tables(name)
    assert len(found) == number
    _, table = found[0]
    assert (table.function, table.ranks) == (function, ranks)
    curve = table.curve()
    rate = curve.bandwidth_mb_s[-1] if curve.bandwidth_mb_s else 0
    assert (curve.sizes[-1], curve.time_us[-1], rate) == pytest.approx(last, rel=1e-4)


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("nccl-allreduce.out", "CUDA device memory, 8 GPUs inside one node"),
        ("nccl-slow-middle.out", "CUDA device memory, 16 GPUs on 2 nodes"),
        ("nccl-allreduce.json", "CUDA device memory, 4 GPUs on 2 nodes"),
        ("perftest-bibw.json", "2 QPs, device memory"),
        ("gpcnet-network-test.out", "mean of the ranks"),
        ("nccl-without-sizes.out", "CUDA device memory, guessed"),
        ("imb-ext-modes.out", "aggregate"),
    ],
)
def test_it_is_kept_what_was_measured(name, place):
    assert tables(name)[0][1].remark.startswith(place)


def test_what_no_line_names_is_guessed_and_called_a_guess_or_said():
    ((_, table), _) = tables("nccl-alltoall.out")
    assert (table.function, "guessed" in table.remark) == ("all_gather", True)
    ((_, table), _) = tables("nccl-alltoall.out", "nccl alltoall")
    assert (table.function, "guessed" in table.remark) == ("alltoall", False)
    text = "mpirun ./build/alltoall_perf -b 1 -e 8G\n" + (DATA / "nccl-alltoall.out").read_text()
    assert outputs.read(text, "x").printed()[0][1].function == "alltoall"
    rows = outputs.text_of(DATA / "perftest-small.out").splitlines(keepends=True)[-3:]
    ((_, table),) = outputs.read("".join(rows), "x").printed()
    assert (table.function, table.remark) == ("send_bw", "guessed")


def test_json_names_the_program_and_has_tables_where_it_can_print_several():
    names = {}
    for name in [*FILES, "../osu/7.4/bw.out", "../imb/2018/all.txt", "../netpipe/3.7.2/tcp.out"]:
        for output in outputs.read(outputs.text_of(DATA / name), name).outputs:
            content = output.document([])
            names[content["benchmark"]] = "tables" in content
    several = ("nccl-tests", "iperf3", "GPCNeT", "mpiGraph", "IMB-MPI1")
    one = ("perftest", "LinkTest", "NetPIPE", "OSU Micro-Benchmarks")
    assert names == dict.fromkeys(several, True) | dict.fromkeys(one, False)


def test_perftest_names_the_gpu_above_its_title_or_below():
    text = outputs.text_of(DATA / "perftest-small.out")
    for said in ("allocated GPU buffer address at 00007f3fa4000000", "deallocating GPU buffer"):
        ((_, table),) = outputs.read(f"{said}\n{text}", "x").printed()
        assert ("device memory" in table.remark) is said.startswith("allocated")


def test_of_all_pairs_the_slowest_is_named_and_the_fastest_stands_beside_it():
    (_, table), _ = tables("mpigraph.out")
    assert table.facts["slowest"] == ("n3:2", "n1:0")
    curve = table.curve()
    assert curve.time_min_us[0] < curve.time_avg_us[0] < curve.time_us[0]
    (note,) = outputs.read(outputs.text_of(DATA / "mpigraph.out"), "x").notes
    assert "the slowest pair is n3:2 to n1:0" in note


@pytest.mark.parametrize("name", FILES)
def test_a_foreign_line_within_it_is_refused_or_changes_nothing(name):
    text = outputs.text_of(DATA / name)
    lines = text.splitlines(keepends=True)
    whole = {(one.function, one.curve()) for _, one in outputs.read(text, name).printed()}
    for place in range(0, len(lines), 1 + len(lines) // 40):
        torn = "".join([*lines[:place], "[n1:12] a warning\n", *lines[place:]])
        try:
            found = outputs.read(torn, name).printed()
        except NetproofError:
            continue
        assert {(one.function, one.curve()) for _, one in found} <= whole


@pytest.mark.parametrize(
    ("form", "text", "function"),
    [
        ("osu allreduce", "4    1.20\n8    1.25\n", "allreduce"),
        ("osu:latency", "# Size  Latency (us)\n4 1.20\n8 1.25\n", "latency"),
        ("imb Allreduce", "4 1000 1.20 1.30 1.25\n8 1000 1.20 1.30 1.25\n", "Allreduce"),
        ("perftest read_bw", " 4 100 5.32 5.30 1.389363\n", "read_bw"),
    ],
)
def test_rows_without_a_header_are_read_as_what_they_are_said_to_be(form, text, function):
    if form.startswith("perftest"):
        text = " #bytes #iterations BW peak[MB/sec] BW average[MB/sec] MsgRate[Mpps]\n" + text
    ((_, table),) = outputs.read(text, "x", form=outputs.form(form)).printed()
    assert (table.function, table.remark.endswith("guessed")) == (function, False)


@pytest.mark.parametrize(
    ("form", "said"), [("nosuch", "'nosuch' is no benchmark"), ("osu nosuch", "OSU has ")]
)
def test_an_unknown_form_names_the_known_ones(form, said):
    with pytest.raises(NetproofError, match=said):
        outputs.form(form)


def test_json_between_lines_and_tables_of_others_is_read_object_by_object():
    one, other = ((DATA / name).read_text() for name in FILES if name.startswith("iperf3"))
    log = outputs.read(f"Warning: a host was added\n{one}\n{other}\niperf Done.\n", "x")
    assert [len(output.tables) for output in log.outputs] == [2, 1]
    assert log.outputs[0].preamble == ("Warning: a host was added",)
    assert log.outputs[1].epilogue == ("iperf Done.",)
    one, table = (outputs.text_of(DATA / name) for name in ("nccl-allreduce.json", "imb-rma.out"))
    event = '{"timestamp":1.5,"name":"shell.task-exit","context":{"exitcode":0,"signaled":0}}\n'
    for text in (f"{one}\n{event}{table}", f"{event}{table}\n{one}\n{event}"):
        names = [name for name, _ in outputs.read(text, "x").printed()]
        assert names == ["nccl", "nccl", "imb"]


def test_json_that_says_the_same_twice_is_read():
    name, twice = "iperf3-both-ways.json", '"start": {"sock": 0, "sock": 0, '
    text = edited(f"formats/{name}", '"start": {', twice)
    assert outputs.read(text, name).printed() == tables(name)
    other = text.replace('"sock": 0, "sock": 0', '"sock": 0, "sock": 1')
    assert "duplicate key 'sock'" in refused(other)


NCCL = outputs.text_of(DATA / "nccl-two-nodes.out")


@pytest.mark.parametrize(
    ("text", "mark"),
    [
        (
            re.sub("(?m)^(?=.* float | *# Out)", "[1,6]<stdout>:n2:3:3 [6] NCCL INFO a\n", NCCL),
            "[1,0]<stdout>:",
        ),
        (re.sub(r"(?m)^( +\d+ +\d+ +float +sum)", r"\1[1,0]<stdout>:", NCCL), "[1,0]<stdout>:"),
        (NCCL.replace("# Using devices", "rccl-tests: Version develop:8\n# Using devices"), ""),
        (re.sub("(?m)^#+", "", NCCL), ""),
    ],
    ids=["other ranks", "torn rows", "rccl", "without signs"],
)
def test_what_nccl_and_open_mpi_add_changes_nothing(text, mark):
    marked = re.sub("(?m)^(?!.1,6)(?=.)", mark, text)
    whole = [table.curve() for _, table in tables("nccl-two-nodes.out")]
    assert [table.curve() for _, table in outputs.read(marked, "x").printed()] == whole
    if "sum[1,0]" in text:
        assert "is no row that nccl-tests" in refused(marked.replace("sum[1,0]", "sum[1,1]", 1))


def test_a_run_both_ways_that_netpipe_5_printed_says_what_to_give():
    rows = (DATA / "netpipe-5-print.out").read_text().splitlines(keepends=True)
    first = next(number for number, line in enumerate(rows) if line.startswith("  1: "))
    rate = rows[first].split(">  ")[1].split(" Kbps")[0]
    rows[first] = rows[first].replace(rate, f"{2 * float(rate):7.3f}")
    assert "is a run both ways: say --bidirectional" in refused("".join(rows))


def test_json_of_iperf3_says_how_long_and_how_often_again():
    document = json.loads((DATA / "iperf3-both-ways.json").read_text())
    document["intervals"] = document["intervals"][:5]
    assert "intervals are not the 10 s" in refused(json.dumps(document))
    ((_, table), _) = tables("iperf3-both-ways.json")
    assert (table.facts["retransmits"], len(table.facts["intervals_mb_s"])) == (3, 10)
