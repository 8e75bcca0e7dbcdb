"""What prologs, epilogs, wrappers and modules print around a launch's program is no part of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from netproof.benchmarks import outputs, registry
from netproof.benchmarks.fixed import BEGINS, ENDED, ROW, of_program
from netproof.errors import ParseError
from netproof.measurement.case import Case, Curve

JOBS = Path(__file__).parents[2] / "data" / "jobs"
RECORDED = [
    ("imb", "Alltoall", 2, "imb-faulty/Alltoall.1.out"),
    ("osu", "allgather", 4, "osu-7.4/allgather.1.out"),
    ("osu", "barrier", 4, "osu-7.4/barrier.1.out"),
]
GREETING = "Welcome to kestrel, see https://kestrel.hpc/help\n"


@pytest.fixture(params=RECORDED, ids=["imb", "osu", "barrier"])
def recorded(request) -> tuple[Case, str]:
    """A case, and what its program printed."""
    benchmark, function, ranks, name = request.param
    return Case("s", "p", "e", benchmark, function, ranks, 1), (JOBS / name).read_text()


def rows(text: str) -> str:
    return "".join(line for line in text.splitlines(keepends=True) if ROW.fullmatch(line.rstrip()))


def curve(case: Case, printed: str) -> Curve:
    return registry.of(case).read_launch(printed, Path("x.out"), case)


def test_rows_and_whole_outputs_around_the_program_enter_no_curve(recorded):
    case, text = recorded
    alone = curve(case, text)
    for noise in (GREETING, GREETING.rstrip(), rows(text), text, text[: len(text) // 2]):
        assert curve(case, f"{noise}{BEGINS}{text}{ENDED}{noise}") == alone


def test_prologs_of_other_ranks_print_when_rank_0_has_begun(recorded):
    case, text = recorded
    alone = curve(case, text)
    for noise in (GREETING, rows(text)):
        assert curve(case, f"{BEGINS}{noise}{text}{ENDED}") == alone


def test_what_others_print_behind_the_rows_is_no_row_or_the_launch_is_refused(recorded):
    case, text = recorded
    assert curve(case, f"{BEGINS}{text}{GREETING}{ENDED}") == curve(case, text)
    row = f"{text.splitlines()[-1]}\n{rows(text)}".splitlines(keepends=True)[-1]
    with pytest.raises(ParseError):
        curve(case, f"{BEGINS}{text}{row}{ENDED}")


def test_a_table_without_a_last_line_is_whole_only_if_the_program_ended(recorded):
    case, text = recorded
    if case.benchmark == "osu":
        with pytest.raises(ParseError, match="nothing may follow its rows"):
            curve(case, f"{BEGINS}{text}{GREETING}")


def test_what_a_cluster_printed_around_imb_enters_no_curve():
    printed = (JOBS / "printed-around" / "PingPong.1.out").read_text()
    assert printed.count(" 999.00 ") == 4
    found = curve(Case("s", "p", "e", "imb", "PingPong", 2, 1), printed)
    assert (len(found.sizes), found.sizes[-1], found.time_us[-1]) == (19, 262144, 2885.22)


def test_a_file_of_a_launch_is_judged_like_its_program_alone(recorded):
    case, text = recorded
    log = outputs.read(f"{rows(text)}{BEGINS}{text}{ENDED}{rows(text)}", "x.out")
    ((_, table),) = log.printed()
    assert (table.curve(), log.notes) == (curve(case, text), ())


def test_a_fault_names_the_line_of_the_file():
    assert of_program(f"one\ntwo\n{BEGINS}x\n{ENDED}y\n") == (
        f"   \n   \n{' ' * (len(BEGINS) - 1)}\nx\n",
        True,
    )
    assert of_program("x\n") == ("x\n", False)
