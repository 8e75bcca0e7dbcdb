"""Outputs that contradict themselves, or are not whole, are refused with the reason."""

from __future__ import annotations

import pytest
from made_outputs import DATA, edited

from netproof.benchmarks import outputs, registry
from netproof.errors import ParseError


def refused(text: str, folder: str = "formats") -> ParseError:
    """Read a text as an output of this folder of recorded ones; return why it is refused."""
    whole = folder in ("formats", "public")
    read = outputs.read if whole else registry.named(folder).read
    with pytest.raises(ParseError) as caught:
        read(text.expandtabs(), "x.out")
    return caught.value


FORMATS = DATA / "formats"
STOPPED = DATA / "netpipe" / "3.7.2" / "stopped.stderr"
LAST = "# Maximum message length in bytes:   "
LAST_ROW = (FORMATS / "netpipe-5-print.out").read_text().splitlines(keepends=True)[-5]
SECOND = next(
    line
    for line in (FORMATS / "perftest-sweep.out").read_text().splitlines(keepends=True)
    if line.startswith(" 4 ")
)
EDITS = {
    # Recorded as they are.
    "imb/2018/one-rank.txt": [("", "", "IMB did not run PingPong")],
    "imb/2018/truncated.txt": [("", "", "another size than it was asked for")],
    "imb/2021.11/twice.txt": [("", "", "a second table of PingPong at 2 ranks")],
    "netpipe/3.7.2/stopped.stderr": [("", "", "cut short")],
    "public/iallreduce.out": [
        ("6.08", "9.08", "Overlap(%) does not follow from the times"),
    ],
    "formats/gpcnet-network-test.out": [
        ("|          99% |", "|          98% |", "is not the title"),
        ("4975.3", "  0.00", "is no test"),
        ("Two-sided Lat (8 B)", "Two-sided Lat (8)", "such as (8 B)"),
    ],
    "formats/gpcnet-verbose.out": [
        ("         20.1 |", "         40.1 |", "min <= avg"),
    ],
    "formats/imb-rma.out": [
        ("10.01         0.10", "10.01         0.90", "does not follow"),
    ],
    "formats/iperf3-both-ways.json": [
        ('"seconds": 10.04', '"seconds": 5.04', "does not follow"),
        ('"end": {', '"error": "refused", "end": {', "broke off"),
    ],
    "formats/linktest.out": [
        ("step     1:   avg=    44.1", "step     1:   avg=    44.2", "of its"),
        ("(1385.04 MB/s)", "(1375.04 MB/s)", "no size of messages"),
        ("RESULT: Max", "RESULT: Min", "expected `RESULT: Max Time`"),
    ],
    "formats/mpigraph.out": [
        ("n2:1 to", "n2:2 to", "expected the rates of n2:1"),
        ("2710.125", "3710.125", "rates have the mean"),
        ("Procs\t4", "Procs\t5", "expected 5 ranks of `Send`"),
    ],
    "formats/nccl-allreduce.json": [
        ('"end_time"', '"end_times"', "the run broke off"),
    ],
    "formats/nccl-less-memory.out": [
        ("265496", "965496", "3 sizes are there, and 4 were"),
    ],
    "formats/nccl-slow-middle.out": [
        (": 0 OK", ": 3 FAILED", "3 FAILED"),
    ],
    "formats/nccl-two-nodes.out": [
        ("#   Rank  1", "#   Rank  2", "is of another run"),
        ("0.565546", "0.665546", "a row is missing"),
        ("14868    0.56", "14868    0.66", "algbw does not follow"),
        ("maxBytes 1073741824", "maxBytes 536870912", "asked for"),
    ],
    "formats/nccl-without-sizes.out": [
        (": 25.6327", ": 26.6327", "a row is missing"),
        ("    33554432 ", "    33554431 ", "constant step"),
    ],
    "formats/netpipe-5-print.out": [
        ("  1.573 MB", "  1.574 MB", "visits these sizes"),
        ("\n 10: ", "\n 11: ", "a row is missing"),
        (LAST_ROW, "", "a row is missing"),
        ("Completed with", "Killed", "the run broke off here"),
    ],
    "formats/perftest-bibw.json": [
        ('"MsgRate": 0.7435', '"MsgRate": 0.9', "MsgRate"),
    ],
    "formats/perftest-read-lat.out": [
        ("6.12         1.79", "1.12         1.79", "t_min <="),
    ],
    "formats/perftest-sweep.out": [
        ("5118.18", "9118.18", "does not follow from MsgRate"),
        (SECOND, "", "a row is missing"),
    ],
    "imb/2018/all.txt": [
        ("# ( 2 additional", "# ( 3 additional", "processes, those that wait included"),
        (
            "            1           50         1.79         0.56\n",
            "",
            "2 bytes follow 0, and not 1",
        ),
        ("1.80         2.22", " nan         2.22", "t[usec] is nan, and not a finite number"),
        ("1.80         2.22", "0.00         2.22", "a time of 0 for PingPong at 4 bytes"),
        ("     1.80         2.22", "123456.00         2.22", "does not follow from bytes"),
        ("50         1.80         2.22", " 0         1.80         2.22", "0 repetitions measure"),
        (
            "  50         1.80         2.22",
            "50.5         1.80         2.22",
            "is no row of columns as IMB prints them",
        ),
        ("26.58      6643856", " 0.01      6643856", "does not follow from bytes and time"),
        ("    0.13         4.12", "99999.00         4.12", "expected t_min <= t_avg <= t_max"),
        ("0.13         4.12", "0.00         4.12", "a time of 0 for Bcast at 4 bytes"),
        (
            "4           50         0.13         4.12",
            "2           50         0.13         4.12",
            "2 bytes after 2: sizes must increase",
        ),
        (
            "            4           50         0.13         4.12         1.15\n",
            "",
            "8 bytes after 2: IMB's sizes double",
        ),
    ],
    "imb/2018/checked.txt": [
        ("ALL BENCHMARKS SUCCESSFUL", "1  BENCHMARK FAILED", "expected the rule above a t"),
    ],
    "imb/2018/lengths.txt": [
        ("# Alltoall\n", "# Alltoall\n# Barrier\n", "announced and not there: Barrier"),
    ],
    "imb/2021.11/all.txt": [
        ("t_max[usec]", "t_top[usec]", "is no header that IMB prints for Sendrecv"),
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
    "imb/2021.11/multi-1.txt": [
        (
            "            1            4           50         3.70",
            "            0            4           50         3.70",
            "expected the row of group 1",
        ),
        (
            "            1            8           50         3.69         2.17\n",
            "",
            "expected the 5 columns Group",
        ),
    ],
    "imb/4.1-format/mebibytes.txt": [
        ("Benchmarks 4.1,", "Benchmarks 2018,", "megabytes of 10^6 bytes, as IMB 2018"),
        ("4623.85", "4848.46", "does not follow from bytes and time"),
    ],
    "netpipe/3.7.2/tcp.out": [
        ("0.00000263", "0.00000000", "a time of 0, which no message takes"),
        ("11.583710   0", "11.583710 0", "is no row as NetPIPE 3.7.2 writes it"),
        ("11.583710", "12.583710", "the rate does not follow from 4 bytes and time"),
        ("11.583710   0.00000263", "11.583710", "expected the 3 columns"),
        ("4 11.583710", "3 8.687783", "3 bytes after 3: sizes must increase"),
        ("4 11.583710", "0 0.000000", "a message of 0 bytes"),
    ],
    "netpipe/3.7.2/tcp.stderr": [
        (
            "  7:      13 bytes     30 times -->     38.64 Mbps in       2.57 usec\n",
            "",
            "is no row 7 as NetPIPE 3.7.2 prints it",
        ),
    ],
    "netpipe/5.x/testbed-tcp.out": [
        ("0.565     0.515", "0.565     0.566", "minimum <= average <= maximum"),
        ("0.613 5569.45", "0.564 5569.45", "minimum <= average <= maximum"),
        ("0.565     0.515", "0.595     0.515", "0.564818 Gbit/s would"),
        ("0.613 5569.45", "0.613 569.45", "is no row as NetPIPE 5.x writes"),
    ],
    "osu/5.3/alltoall-f-4.out": [
        (" 3590.77", "93590.77", "expected min <= avg <= max"),
    ],
    "osu/5.3/bw.out": [
        ("\n1    ", "\n0    ", "a rate of messages of 0 bytes"),
    ],
    "osu/5.3/latency.out": [
        ("\n4   ", "\n3   ", "3 bytes after 2: OMB's sizes double"),
        ("\n4   ", "\n2   ", "2 bytes after 2: sizes must increase"),
        ("331.18", "  0.00", "is 0, which nothing takes"),
        ("331.18", "31.180", "is no row of columns as OMB prints them, which"),
    ],
    "osu/5.3/mbw_mr-4.out": [
        ("237893.39", "537893.39", "does not follow from bytes"),
    ],
    "osu/7.4/bw.out": [
        ("Bandwidth (MB/s)", "Bandwidth (Gb/s)", "is no header that OMB prints"),
    ],
    "osu/7.4/latency-c.out": [
        ("Pass", "Okay", "Validation is Okay"),
    ],
    "osu/7.4/latency.out": [
        ("Avg Latency(us)", "Avg Latency(ms)", "is no header that OMB prints"),
        ("Latency Test v7.4", "Latency Test v8.0", "not one of OMB 3 to 7"),
        ("MPI Latency", "MPI Put Latency", "a test of OMB that is not read"),
    ],
    "osu/7.4/mbw_mr-2.out": [
        ("# [ pairs: 1 ]", "# [ pairs: 0 ]", "no pair measures nothing"),
    ],
}


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [(name, *edit) for name, several in EDITS.items() for edit in several],
)
def test_what_contradicts_itself_is_refused(name, old, new, said):
    folder, text = name.partition("/")[0], (DATA / name).read_text()
    error = refused(edited(name, old, new), folder)
    assert (said in str(error), error.path) == (True, "x.out"), error
    # What many lines contradict is known at the last of them.
    changed = 1 + text[: text.index(old)].count("\n") + old.startswith("\n")
    assert error.line == changed or folder in ("formats", "imb") or not old
    assert error.line >= changed or folder == "formats"


ONE_GPU = """# nThread 1 nGpus 1 minBytes 8 maxBytes 8 step: 2(factor) warmup iters: 5 iters: 20
# Using devices
#  Rank  0 Group  0 Pid   1320 on n1 device  0 [0x07] NVIDIA A10G
#       size         count      type   redop    root     time   algbw   busbw  error     time\
   algbw   busbw  error
           8             2     float     sum      -1     4.10    0.00    0.00  0e+00     0.40\
    0.02    0.00  0e+00
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 0
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ((FORMATS / "nccl-foreign-line.out").read_text(), "x.out:35: is no row that nccl-tests"),
        ((FORMATS / "perftest-two-processes.out").read_text(), "x.out:11: the table of this test"),
        ("\n", "x.out: is empty: the benchmark printed nothing"),
        ("9" * 5000 + " 1 1\n", "x.out:1: bytes is 999"),
        (ONE_GPU, "one GPU has no bus: build nccl-tests with MPI=1"),
        (ONE_GPU.partition("#  ")[0] + ONE_GPU, "is of another run: build nccl-tests"),
        ('a line\n{\n"start": {\n', "x.out:2: has no end: the file is cut short"),
        ('{"test_info": {}, "results": {}}', "is no result of perftest that is read: KeyError"),
        ('{"a": 1}', "is JSON of no benchmark"),
        ('["# OSU MPI Latency Test v5.8", "# Size Latency (us)", "1  2.30"]', "is JSON of no"),
        ('{"start": {', "the file is cut short or damaged"),
        ("Now starting the main loop\n", "the first size is missing"),
        (STOPPED.read_text() + "\n", "a size without its result: the run was cut short"),
        ("0: node1\n", "expected"),
    ],
)
def test_what_is_no_whole_output_is_refused(text, said):
    text = text if isinstance(text, str) else text.read_text()
    assert said in str(refused(text))
