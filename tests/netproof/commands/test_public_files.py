"""``netproof judge`` on outputs that people published: what it reads, refuses and answers."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from netproof.benchmarks import outputs
from netproof.commands.cli import app

DATA = Path(__file__).resolve().parents[2] / "data" / "public"


def judged(name: str, *options: str) -> tuple[int, str]:
    ran = CliRunner().invoke(app, ["judge", str(DATA / f"{name}.out"), *options])
    return ran.exit_code, ran.stdout


@pytest.mark.parametrize("name", sorted(path.stem for path in DATA.glob("*.out")))
def test_it_is_read_or_refused(name):
    _, out = judged(name)
    assert ("NOT READ" in out) is (name in ("crashed", "size-lost-a-digit"))
    assert (" of 1 curves passed" in out) is ("NOT READ" not in out)


def test_a_size_that_lost_a_digit_is_refused_by_its_line():
    status, out = judged("size-lost-a-digit")
    assert status == 2
    assert "lost-a-digit.out:7: 104857 bytes after 524288: sizes must increase" in " ".join(
        out.split()
    )


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("rank-before-lines", "'[0] ' before 6 lines was left out"),
        ("tag-before-lines", "'[1,0]<stdout>:' before 6 lines was left out"),
        ("time-after", "3 lines after the tables were left out, first 'real 0m2.194s'"),
        ("counters-after", "2 lines after the tables were left out, first 'cxi0 tx 115762638'"),
    ],
)
def test_what_was_left_out_is_said(name, said):
    assert said in " ".join(judged(name)[1].split())


READ_AS = {
    "put-bandwidth": ("put_bw", 2, "MPI_Win_allocate, MPI_Win_flush", {1: 1.27, 2: 2.53}),
    "get-bandwidth": ("get_bw", 2, "MPI_Win_allocate, MPI_Win_flush", {1: 1.27, 2: 2.53}),
    "multi-latency-7": ("multi_lat", None, "", {1: 4.35, 4: 4.23}),
    "multi-latency-5": ("multi_lat", None, "", {0: 0.98, 4: 1.04}),
    "iallreduce": ("iallreduce", None, "mean of the ranks", {4: 3.47, 8: 2.88}),
    "omb-3": ("mbw_mr", 4, "", {1048576: 226.20, 4194304: 1483.04}),
    "omb-4": ("latency", 2, "", {0: 2833.44, 4: 2632.88}),
    "rank-before-lines": ("latency", 2, "", {512: 53.57, 4096: 5.89}),
    "tag-before-lines": ("latency", 2, "", {0: 0.28, 4: 0.28}),
    "time-after": ("latency", 2, "", {0: 1.61, 8: 1.61}),
    "sendrecv-without-banner": ("Sendrecv", 2, "", {524288: 59.52, 4194304: 3076.62}),
    "biband-without-banner": ("Biband", 2, "", {64: 0.17, 256: 0.41}),
    "rate-of-0": ("bw", 2, "", {1: 200.00, 4096: 20.22}),
}
"""Function, ranks, remark, and µs at the first and the last size."""


@pytest.mark.parametrize("name", READ_AS)
def test_it_is_read_as_what_it_is(name):
    path = DATA / f"{name}.out"
    ((_, printed),) = outputs.read(outputs.text_of(path), path.name).printed()
    curve = printed.curve()
    points = list(zip(curve.sizes, curve.time_us, strict=True))
    times = {size: round(time, 2) for size, time in (points[0], points[-1])}
    assert (printed.function, printed.ranks, printed.remark, times) == READ_AS[name]


@pytest.mark.parametrize(
    "change",
    [
        ("real    0m2.194s", "Killed"),
        ("real    0m2.194s", "srun: error: node1: task 0: Killed"),
        ("[0] 1024                  102.97\n", "1024                  102.97\n"),
    ],
)
def test_other_words_after_or_within_a_table_are_refused(tmp_path, change):
    name = "rank-before-lines" if change[0].startswith("[0]") else "time-after"
    text = (DATA / f"{name}.out").read_text()
    assert change[0] in text
    path = tmp_path / "x.out"
    path.write_text(text.replace(*change))
    assert "NOT READ" in CliRunner().invoke(app, ["judge", str(path)]).stdout


@pytest.mark.parametrize(
    ("name", "rate", "share"),
    [
        ("third-of-the-link", "80G", "31.0%"),
        ("fortieth-of-the-link", "100G", "2.6%"),
        ("eighth-of-the-link", "200G", "12.8%"),
    ],
)
def test_a_small_share_of_the_link_fails_and_passes_only_where_that_is_asked_for(name, rate, share):
    link = ("--link", rate, "--transport", "infiniband")
    status, out = judged(name, *link)
    assert status == 1
    assert f"is {share} of the line rate" in " ".join(out.split())
    assert judged(name, *link, "--least", "2%")[0] == 0


def test_more_than_the_link_names_the_mtu():
    status, out = judged("slingshot", "--link", "200G", "--transport", "roce")
    assert status == 1
    assert "If the MTU is not 1500, say --mtu" in " ".join(out.split())
    assert judged("slingshot", "--link", "200G", "--transport", "roce", "--mtu", "9000")[0] == 0


def test_a_streams_share_of_time_is_no_latency():
    (row,) = [one for one in judged("rate-of-256-pairs")[1].splitlines() if "mbw_mr" in one]
    assert " 0.00 " not in row
