"""Logs of jobs: what stands around outputs is left out, and no table that broke off is believed."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netproof.benchmarks import logs, outputs
from netproof.benchmarks.outputs import Log
from netproof.errors import ParseError

DATA = Path(__file__).parents[2] / "data"
LATENCY = (DATA / "osu/7.4/latency.out").read_text().lstrip()
BW = (DATA / "osu/5.3/bw.out").read_text().lstrip()
BARRIER = (DATA / "osu/5.3/barrier-f-2.out").read_text().lstrip()
IMB = (DATA / "imb/2018/all.txt").read_text()
NETPIPE = (DATA / "netpipe/3.7.2/openmpi.stderr").read_text()
SHORT = "".join(LATENCY.splitlines(keepends=True)[:9])
"""The first rows of a run, which may have been killed there, or stopped on purpose."""


def read(text: str) -> Log:
    return outputs.read(text, "x.log")


def curves(log: Log) -> list[tuple]:
    return [(name, one.function, one.ranks, one.curve()) for name, one in log.printed()]


def refused(text: str) -> ParseError:
    with pytest.raises(ParseError) as caught:
        read(text)
    return caught.value


PREFIXES = [
    "[0] ",
    " 3: ",
    "[1,0]<stdout>:",
    "[prterun-node1-1234@1,0]<stdout>: ",
    "osu-launcher-1  | ",
    "[pod/osu-worker-0/main] ",
    ">> ",
    "    ",
]
TIMES = [
    "2023-05-05T10:10:{:02d}.1234567Z ",
    "[2023-05-05 10:10:{:02d},123] ",
    "10:10:{:02d} ",
    "Jan 06 10:10:{:02d} ",
    "Mon Jan  6 10:10:{:02d} 2020[1,0]<stdout>:",
    "[   12.0{:02d}00] 0: ",
]


@pytest.mark.parametrize("prefix", [*PREFIXES, *TIMES])
@pytest.mark.parametrize("text", [LATENCY, BARRIER, IMB, NETPIPE], ids=["osu", "one", "imb", "np"])
def test_the_same_prefix_before_each_line_is_left_out_and_said(text, prefix):
    for blank_too in (True, False):
        marked = [
            prefix.format(number % 60) + line if blank_too or line else line
            for number, line in enumerate(text.splitlines())
        ]
        log = read("\n".join([*marked, ""]))
        assert curves(log) == curves(read(text))
        (note,) = log.notes
        assert note.startswith("x.log: ")
        assert note.endswith(" lines was left out")


@pytest.mark.parametrize("other", ["", "[1] "])
@pytest.mark.parametrize("prefix", PREFIXES)
def test_a_line_of_a_table_without_its_prefix_or_of_another_rank_is_refused(prefix, other):
    lines = [prefix + line for line in LATENCY.splitlines()]
    for number in range(3, len(lines) - 1):
        changed = [*lines]
        changed[number] = other + changed[number].removeprefix(prefix)
        assert refused("\n".join([*changed, ""])).line <= number + (2 if other else 1)


ENDINGS = [
    "\nreal\t0m2.194s\nuser\t0m0.077s\nsys\t0m0.024s".expandtabs(),
    "real 2.19\nuser 0.07\nsys 0.02",
    "0.07user 0.02system 0:02.19elapsed 4%CPU (0avgtext+0avgdata 9000maxresident)k\n"
    "0inputs+0outputs (0major+2000minor)pagefaults 0swaps",
    "mpirun -n 2 ./osu_latency  0.07s user 0.02s system 4% cpu 2.194 total",
    "0.077u 0.024s 0:02.19 4.1%      0+0k 0+0io 0pf+0w",
    "[user@login dir]$ ",
    "user@login:~/x$ mpirun -n 2 ./osu_bw",
    "[root_at_node05 pt2pt]# exit",
    "$ echo",
    "+ date",
    "cxi0 tx 115762638\ncxi0 rx 115940582",
    "port_xmit_data: 1234\nrx_errors: 0\nlocal_link_integrity_errors 3",
    "Job ID: 123\nCluster: tiger\nUser/Group: a/b\nState: COMPLETED (exit code 0)\nCores: 2\n"
    "CPU Efficiency: 12.34% of 00:10:00 core-walltime",
    "Mon Jan  6 10:00:00 UTC 2020",
    "Job finished at Mon Jan  6 10:00:00 CET 2020",
    "--- END POSTRUN CMDS ---",
    "================",
    "exit code: 0",
    "0 errors",
    "Connection to node1 closed.",
]


@pytest.mark.parametrize("ending", ENDINGS)
def test_what_is_known_to_follow_a_run_that_ended_is_left_out_and_said(ending):
    for line_end in ("\n", ""):
        log = read(SHORT + ending + line_end)
        assert (curves(log), log.faults) == (curves(read(SHORT)), ())
        lines = tuple(line for line in ending.split("\n") if line.strip())
        assert log.outputs[0].epilogue == lines
        (note,) = log.notes
        assert "after the tables" in note


FAILURES = [
    "Killed",
    "[node1:1] Signal: Segmentation fault (11)",
    "srun: error: node2: task 1: Exited with exit code 1",
    "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.",
    "slurmstepd: error: *** JOB 12 ON n1 CANCELLED AT 2020-01-06T10:00:00 DUE TO TIME LIMIT ***",
    "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES",
    "mpirun noticed that process rank 1 with PID 12 on node n1 exited on signal 9 (Killed).",
    "MPI_ABORT was invoked on rank 0 in communicator MPI_COMM_WORLD",
    "[proxy:0:0@n1] HYD_pmcd_pmip_control_cmd_cb: assert (!closed) failed",
    "==== backtrace (tid: 12) ====",
    "[n1:12:0:12] Caught signal 11 (Segmentation fault: address not mapped)",
    "=>> PBS: job killed: walltime 610 exceeded limit 600",
    "Bus error",
    "State: TIMEOUT (exit code 0)",
    "Exited with exit code 137.",
    "command terminated with exit code 137",
    "ORTE has lost communication with a remote daemon.",
    "client_loop: send disconnect: Broken pipe",
    "exit status: 1",
    "DATA VALIDATION ERROR: osu_latency exited with status 1 on message size 8.",
]
UNKNOWN = ["hello", "[n1:12] mca_btl: something", "node2 is quiet", "8192", "8192     "]


@pytest.mark.parametrize("words", FAILURES)
@pytest.mark.parametrize("table", [SHORT, BW], ids=["short", "whole"])
def test_a_table_that_broke_off_is_refused_by_its_last_words(table, words):
    for before in ("", "\n", "\nreal    0m2.194s\n"):
        for after in ("", "user@login:~$ \n", "Done\n", "\nreal    0m2.194s\n", LATENCY):
            text = f"{table}{before}{words}\n{after}"
            if after == LATENCY:
                log = read(text)
                assert [one.tables[0].function for one in log.outputs] == ["latency"]
                (fault,) = log.faults
            else:
                fault = str(refused(text))
            line = table.count("\n") + before.count("\n") + 1
            assert fault.startswith(f"x.log:{line}: the run broke off here")
            assert repr(words) in fault


@pytest.mark.parametrize("words", UNKNOWN)
def test_words_that_nothing_is_known_of_refuse_a_table_that_may_be_longer(words):
    fault = refused(f"{SHORT}{words}\n")
    assert "may be of a run that broke off: OSU prints no last line" in str(fault)
    assert len(read(f"{BW}{words}\n").outputs) == 1
    assert len(read(f"{BARRIER}{words}\n").outputs) == 1


def test_a_foreign_line_within_a_table_is_refused_and_the_others_of_the_log_are_read():
    rows = LATENCY.splitlines(keepends=True)
    for place in range(4, len(rows)):
        for line in ("[n1:12] a warning\n", "\n", "cxi0 tx 12\n", "user@login:~$ ls\n"):
            text = "".join([*rows[:place], line, *rows[place:]])
            log = read(f"{BARRIER}{text}{BW}")
            assert [one.tables[0].function for one in log.outputs] == ["barrier", "bw"]
            (fault,) = log.faults
            assert "stands within a table" in fault


def test_several_programs_in_a_log_are_several_tables():
    between = "user@n1:~$ mpirun -n 2 something\nno table\n"
    log = read(f"module load x\n{LATENCY}{between}{IMB}\n{BW}== next ==\n{BARRIER}Done\n")
    tables = len(read(IMB).printed())
    assert [name for name, _ in log.printed()] == ["osu", *["imb"] * tables, "osu", "osu"]
    assert [one.tables[0].function for one in log.outputs if one.of.name == "osu"] == [
        *("latency", "bw", "barrier")
    ]
    assert log.outputs[0].preamble == ("module load x",)
    assert log.outputs[1].preamble[:2] == ("user@n1:~$ mpirun -n 2 something", "no table")
    assert log.outputs[-1].preamble == ("== next ==",)
    assert log.outputs[-1].epilogue == ("Done",)
    assert log.faults == ()


def test_tables_of_one_test_are_numbered():
    log = read(LATENCY + BW + LATENCY)
    assert [(one.function, one.remark) for _, one in log.printed()] == [
        ("latency", "1 of 2 in its file"),
        ("bw", ""),
        ("latency", "2 of 2 in its file"),
    ]


def test_rows_of_no_table_refuse_the_whole_file():
    rows = LATENCY.splitlines(keepends=True)
    for orphan in (rows[5], rows[-1]):
        for text in (orphan + BW, BW + orphan, BW + "x\n" + orphan + BARRIER, IMB + orphan):
            assert orphan.split()[0] in str(refused(text))


def test_imb_that_another_program_interrupts_refuses_the_file():
    part = IMB[: IMB.index("# Benchmarking Bcast")]
    refused(part + BW + IMB[len(part) :])
    refused(part + "\n" + IMB)


def test_a_row_s_digits_are_no_prefix_of_the_next_output():
    log = read(BW.rstrip("\n") + LATENCY)
    assert [one.tables[0].function for one in log.outputs] == ["bw"]
    (fault,) = log.faults
    assert "the line above it is missing that names the function" in fault


class TestATableWithoutItsBanner:
    def table(self, function: str, skipped: int = 0) -> str:
        """A recorded table from its title on, or without some of its first lines."""
        start = IMB.index(f"# Benchmarking {function} ")
        return "\n".join(IMB[start:].split("\n\n")[0].split("\n")[skipped:]) + "\n"

    @pytest.mark.parametrize("skipped", [1, 4])
    @pytest.mark.parametrize(
        ("function", "guess", "ranks"),
        [
            ("PingPong", "PingPong", 2),
            ("Exchange", "Exchange", None),
            ("Biband", "Uniband", None),
            ("Barrier", "Barrier", None),
        ],
    )
    def test_its_function_is_guessed_by_its_columns_and_called_a_guess(
        self, function, guess, ranks, skipped
    ):
        log = read(self.table(function, skipped))
        ((_, printed),) = log.printed()
        assert (printed.function, printed.remark) == (guess, "guessed")
        assert printed.ranks == (2 if skipped == 1 else ranks)
        (note,) = log.notes
        assert f"its columns are those of {guess}, which is a guess" in note

    def test_an_impossible_row_of_one_that_is_guessed_is_refused_by_its_line(self):
        fault = refused(self.table("PingPong", 4).replace("16           50", "17           50"))
        assert "17 bytes after 8: IMB's sizes double" in str(fault)

    def test_a_collective_without_its_name_is_refused_with_what_is_missing(self):
        omb = "# Size       Avg Latency(us)\n4                       3.61\n"
        for text in (self.table("Allreduce", 4), omb):
            fault = refused(text)
            assert "the line above it is missing that names the function" in str(fault)


def test_collapsed_blanks_are_read_where_the_header_lost_them_too():
    collapsed = "\n".join(" ".join(line.split()) for line in BW.split("\n"))
    assert curves(read(collapsed)) == curves(read(BW))
    refused("\n".join([*BW.split("\n")[:2], *collapsed.split("\n")[2:]]))


BASES = tuple(
    (DATA / name).read_text()
    for name in (
        *("osu/5.3/bw.out", "osu/7.4/latency.out", "osu/7.4/allreduce-f-2.out"),
        *("osu/7.4/mbw_mr-2.out", "imb/2018/all.txt", "imb/2021.11/checked.txt"),
        *("netpipe/3.7.2/openmpi.stderr", "netpipe/3.7.2/tcp.stderr"),
        *("public/iallreduce.out", "public/biband-without-banner.out"),
    )
)


def believed(text: str) -> set[tuple]:
    """The tables in a text that is read, with all points; none of one that is refused."""
    try:
        several = read(text).printed()
    except ParseError:
        return set()
    return {
        (name, one.function, one.ranks, one.group, one.curve().sizes, one.curve().time_us)
        for name, one in several
        if "guessed" not in one.remark
    }


@pytest.mark.slow
@given(st.randoms(use_true_random=False))
def test_of_two_outputs_that_are_mixed_whole_tables_are_believed_or_none(chosen):
    for _ in range(10):
        one, other = (chosen.choice(BASES).split("\n") for _ in range(2))
        first, second = sorted(chosen.randrange(len(one)) for _ in range(2))
        place = chosen.randrange(len(other))
        mixed = "\n".join(
            [*one[:first], *other[:place], *one[first:second], *other[place:], *one[second:]]
        )
        assert believed(mixed) <= believed("\n".join(one)) | believed("\n".join(other))


@pytest.mark.parametrize(
    "line",
    [
        *("+" * 499 + "x", "-" * 499 + "x", "0" * 499, "[" * 499, "/" * 499, "x" * 10**5),
        *("a." * 249, "a@" * 249, "1:" * 249, "# " * 249, "a b " * 120 + ":", "a_1 " * 124 + "x"),
        "time " * 99 + "x",
    ],
)
def test_no_line_takes_long(line):
    began = time.process_time()
    logs.failed(line)
    logs.is_ending(line)
    assert time.process_time() - began < 30
