"""The text of an output file is what a terminal would show of it."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest

from netproof.benchmarks import outputs, registry
from netproof.benchmarks.fixed import BEGINS, ENDED, ROW, of_program
from netproof.benchmarks.interface import Output
from netproof.errors import ParseError
from netproof.measurement.case import Case, Curve

DATA = Path(__file__).parents[2] / "data"
SHOWN = [
    "imb/2018/all.txt",
    "imb/2021.11/multi-1.txt",
    "netpipe/3.7.2/openmpi.out",
    "netpipe/3.7.2/openmpi.stderr",
    "osu/5.3/bw.out",
    "osu/5.3/barrier-f-2.out",
    "osu/7.4/mbw_mr-4.out",
    "osu/7.4/latency-c.out",
]


@pytest.fixture
def shown(tmp_path: Path):
    """Read an output of these bytes, under the name of the recorded one."""

    def of(content: bytes, name: str) -> Output:
        path = tmp_path / "x.out"
        path.write_bytes(content)
        log = outputs.read(outputs.text_of(path), name)
        if log.faults:
            raise ParseError(name, 0, "", log.faults[0])
        (output,) = log.outputs
        return output

    return of


def whole(name: str) -> Output:
    (output,) = outputs.read((DATA / name).read_text(), name).outputs
    return output


@pytest.mark.parametrize("name", SHOWN)
def test_line_ends_of_windows_are_line_ends_and_a_last_line_without_is_cut_short(shown, name):
    content = (DATA / name).read_bytes()
    for end in (b"\r\n", b"\r\r\n"):
        assert shown(content.replace(b"\n", end), name) == whole(name)
    content = content.rstrip().replace(b"\n", b"\r\n")
    for end in (b"", b"\r"):
        with pytest.raises(ParseError, match="the last line has no end"):
            shown(content + end, name)


@pytest.mark.parametrize("name", SHOWN[:2])
def test_tabs_stand_for_the_blanks_that_they_show(shown, name):
    text = (DATA / name).read_text()
    tabs = re.sub("(?m)^(?: {8})+", lambda found: "\t" * (len(found[0]) // 8), text)
    assert "\t" in tabs
    assert shown(tabs.encode(), name) == whole(name)


BEFORE = [
    "backing_directory=/run/flux/jobtmp-0-\u01924bo9NTSf\n".encode(),
    "n\u0153ud-1: caf\u00e9\n".encode("latin-1", "replace"),
    "\ufeff".encode(),
    "\ufeffhost\n".encode(),
    b"pulling 10 %\rpulling 100 %\r\n",
    b"pulling 10 %\rpulling 100 %\r",
    b"\tnode\t1\n",
    b"\0\x1b[0m\n",
]


@pytest.mark.parametrize("before", BEFORE, ids=ascii)
@pytest.mark.parametrize(
    "name", ["imb/2018/all.txt", "osu/5.3/bw.out", "osu/7.4/mbw_mr-4.out", "osu/7.4/latency.out"]
)
def test_before_the_header_anything_may_stand(shown, name, before):
    output = shown(before + (DATA / name).read_bytes(), name)
    assert [one.curve() for one in output.tables] == [one.curve() for one in whole(name).tables]


@pytest.mark.parametrize("letter", ["\r", "\u0192", "\ufeff", "\u00a0", "\0"])
@pytest.mark.parametrize(
    "name", ["osu/5.3/bw.out", "netpipe/3.7.2/openmpi.out", "imb/2018/all.txt"]
)
def test_within_a_table_nothing_foreign_is_accepted(shown, name, letter):
    rows = (DATA / name).read_text().splitlines()
    at = max(number for number, line in enumerate(rows) if line[-1:].isdigit())
    row = rows[at]
    for place in range(0, len(row), 3):
        rows[at] = row[:place] + letter + row[place:]
        with pytest.raises(ParseError):
            shown(("\n".join(rows) + "\n").encode(), name)


@pytest.mark.parametrize("name", SHOWN)
@pytest.mark.parametrize("code", ["utf-16", "utf-16-le", "utf-16-be"])
def test_what_powershell_redirects_to_a_file_is_utf_16(shown, name, code):
    text = (DATA / name).read_text()
    mark = "" if code == "utf-16" else "\ufeff"
    content = (mark + text).encode(code)
    assert shown(content, name) == whole(name)
    with pytest.raises(ParseError):
        shown(content[: len(content) // 2 | 1], name)


def test_a_compressed_file_is_refused_with_the_program_that_unpacks_it(shown):
    with pytest.raises(ParseError, match="is compressed: unpack it first, with gunzip"):
        shown(gzip.compress(b"hello\n"), "x.gz")


# What prologs, epilogs, wrappers and modules print around a launch's program is no part of it.

JOBS = Path(__file__).parents[2] / "data" / "jobs"
RECORDED = [
    ("imb", "Alltoall", 2, "imb-faulty/Alltoall.1.out"),
    ("osu", "allgather", 4, "osu-7.4/allgather.1.out"),
    ("osu", "barrier", 4, "osu-7.4/barrier.1.out"),
]
GREETING = "Welcome to kestrel, see https://kestrel.hpc/help\n"


@pytest.fixture(params=RECORDED, ids=["imb", "osu", "barrier"])
def recorded(request) -> tuple[Case, str, Curve]:
    """A case, what its program printed, and the curve of that alone."""
    benchmark, function, ranks, name = request.param
    case, text = Case("s", "p", "e", benchmark, function, ranks, 1), (JOBS / name).read_text()
    return case, text, curve(case, text)


def rows(text: str) -> str:
    return "".join(line for line in text.splitlines(keepends=True) if ROW.fullmatch(line.rstrip()))


def curve(case: Case, printed: str) -> Curve:
    return registry.of(case).read_launch(printed, Path("x.out"), case)


def test_rows_and_whole_outputs_around_the_program_enter_no_curve(recorded):
    case, text, alone = recorded
    for noise in (GREETING, GREETING.rstrip(), rows(text), text, text[: len(text) // 2]):
        assert curve(case, f"{noise}{BEGINS}{text}{ENDED}{noise}") == alone
    # Prologs of other ranks print when rank 0 has begun.
    for noise in (GREETING, rows(text)):
        assert curve(case, f"{BEGINS}{noise}{text}{ENDED}") == alone
    log = outputs.read(f"{rows(text)}{BEGINS}{text}{ENDED}{rows(text)}", "x.out")
    ((_, table),) = log.printed()
    assert (table.curve(), log.notes) == (alone, ())


def test_what_others_print_behind_the_rows_is_no_row_or_the_launch_is_refused(recorded):
    case, text, alone = recorded
    assert curve(case, f"{BEGINS}{text}{GREETING}{ENDED}") == alone
    row = f"{text.splitlines()[-1]}\n{rows(text)}".splitlines(keepends=True)[-1]
    with pytest.raises(ParseError):
        curve(case, f"{BEGINS}{text}{row}{ENDED}")
    # A table without a last line is whole only if the program ended.
    if case.benchmark == "osu":
        with pytest.raises(ParseError, match="nothing may follow its rows"):
            curve(case, f"{BEGINS}{text}{GREETING}")


def test_a_fault_names_the_line_of_the_file():
    assert of_program(f"one\ntwo\n{BEGINS}x\n{ENDED}y\n") == (
        f"   \n   \n{' ' * (len(BEGINS) - 1)}\nx\n",
        True,
    )
    assert of_program("x\n") == ("x\n", False)
