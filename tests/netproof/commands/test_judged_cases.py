"""``netproof judge`` on public outputs of which it is known what is wrong with them, or nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from netproof.commands.cli import app

PUBLIC = Path(__file__).parents[2] / "data" / "public"
ONE = "One launch was made: repeat it"


def ran(folder: str, files: str, *arguments: str) -> Result:
    """Judge with words of which those that are below the folder are paths."""
    places = {word: PUBLIC / folder / word for word in files.split()}
    words = [str(place) if place.exists() else word for word, place in places.items()]
    return CliRunner().invoke(app, ["judge", *words, *arguments])


def judge(folder: str, files: str, *arguments: str) -> tuple[int, str]:
    """Return the exit status and what is printed, on one line."""
    ended = ran(folder, files, *arguments)
    return ended.exit_code, " ".join(ended.output.split())


def curves(folder: str, files: str, *arguments: str) -> list[dict]:
    return json.loads(ran(folder, files, *arguments, "--format=json").stdout)["curves"]


def findings(curve: dict, criterion: str) -> list[dict]:
    return [finding for finding in curve["findings"] if finding["criterion"] == criterion]


@pytest.mark.parametrize(
    ("file", "said", "advice"),
    [
        (
            "decline-sendrecv/sendrecv.out",
            "and stays down from 1048576 bytes on: 3.93 times less",
            "the protocol of large messages",
        ),
        (
            "small-alltoall/osu_alltoall.out",
            "messages of 4 to 64 bytes took longer than larger ones, most at 64 bytes: one took"
            " 22500 µs, 34 times the 662.3 µs of one of 128 bytes",
            "the library's choice of algorithm",
        ),
        (
            "device-copies/osu_bw.out",
            "messages of 32 to 128 bytes took longer than larger ones, most at 128 bytes",
            "thresholds for copies of GPU memory",
        ),
    ],
)
def test_a_finding_names_its_range_and_its_advice_the_layer(file, said, advice):
    """Levels and figures are in the golden file."""
    printed = judge(".", file)[1]
    assert said in printed
    assert advice in printed
    assert ONE in printed


def test_a_copy_that_moved_nothing_is_too_fast_and_no_yardstick():
    files = "cxi/osu_latency.out lnx/osu_latency.out"
    status, said = judge("too-fast", files, "--as", "{provider}/{benchmark}")
    assert status == 1
    assert "FAIL lnx OSU latency 2 ranks" in said
    assert "2097152 bytes took 2.85 µs, and 65536 bytes no less" in said
    assert "735843 MB/s, too fast to be true" in said
    assert "1 of 2 curves passed" in said


def test_the_spread_of_the_ranks_is_shown_where_columns_have_it():
    _, said = judge("rank-spread", "osu_bcast.out")
    assert "rank spread" in said
    assert " 51.6" in said.split("OSU bcast")[1]
    assert "at 1600000 bytes the slowest rank took 37949 µs, 51.6 times the 736.1 µs" in said
    spreads = [
        curves(name, "osu_bcast.out")[0]["rank_spread"] for name in ("rank-spread", "one-machine")
    ]
    assert spreads == [pytest.approx(51.55, abs=0.01), None]


def test_shared_memory_against_a_network_suspects_the_placement():
    files = "intelmpi/osu_latency.out openmpi/osu_latency.out"
    status, said = judge("places", files, "--as", "{mpi}/{benchmark}")
    assert status == 3
    assert "INCONCLUSIVE openmpi OSU latency" in said
    assert "is as fast as shared memory: its ranks may have run on one node, and these" in said
    assert "compare the same placement" in said
    assert "avoid or mend" not in said
    assert "Likewise at 5 sizes in all: 4 to 64 bytes" in said


class TestOneSize:
    """It is shown, compared and judged by bounds, in one sentence."""

    FILES = "new/osu_allreduce.out old/osu_allreduce.out"

    def test_two_of_them_are_compared(self):
        status, said = judge("one-size", self.FILES, "--as", "{version}/{benchmark}")
        assert status == 0
        assert "slower than old at 2048 bytes, by 244 %; one launch each: repeat" in said
        assert said.count("one size, 2048 bytes") == 2
        assert "undefined" not in said
        assert "NOT JUDGED" not in said

    def test_alone_it_is_not_judged_and_one_sentence_says_what_would(self):
        status, said = judge("one-size", "new/osu_allreduce.out")
        assert status == 3
        assert said.startswith("NOT JUDGED WHOLE: 0 of 1 curves passed")
        assert said.count("NOT JUDGED ") == 3
        assert "one size, 2048 bytes in 61.02 µs: compare it with --against" in said

    @pytest.mark.parametrize(
        ("arguments", "level", "said"),
        [
            (["--link", "200G"], "warn", "15566 MB/s (124526 Mbit/s) of one launch is 66.1%"),
            (["--link", "100G"], "fail", "too fast to be true"),
            (["--link", "400G"], "fail", "is 33.1% of the line rate"),
            (["--link", "400G", "--least", "30%"], "pass", ""),
        ],
    )
    def test_a_link_judges_a_large_one(self, tmp_path, arguments, level, said):
        path = tmp_path / "osu_bw.out"
        head = f"# OSU MPI Bandwidth Test v5.8\n{'# Size':<10}{'Bandwidth (MB/s)':>18}\n"
        path.write_text(f"{head}{4194304:<10}{'15565.70':>18}\n")
        (one,) = curves(".", str(path), *arguments)
        assert one["level"] == level
        assert any(said in finding["why"] for finding in one["findings"])


def test_steady_launches_that_lie_apart_are_named():
    files = "m/np.1.log m/np.2.log m/np.3.log"
    status, said = judge("placements", files, "--as", "{machine}/np.{launch}.log")
    assert status == 0
    assert "WARN m NetPIPE oneway: 3 launches lie 1.64 times apart, and each is steady" in said
    assert "Look at where the ranks ran" in said


@pytest.mark.parametrize(
    ("transport", "rate"),
    [
        (["roce", "--mtu", "9000"], 24509),
        (["infiniband"], 24842),
    ],
)
def test_a_healthy_network_passes_by_the_transport_that_it_has(transport, rate):
    given = ("--link", "200G", "--transport", *transport)
    status, said = judge(".", "slingshot.out", *given)
    assert status == 0, said
    (one,) = curves(".", "slingshot.out", *given)
    (share,) = findings(one, "line rate")
    assert share["value"] == pytest.approx(24014.5 / rate, rel=1e-4)


def test_a_dip_that_repeats_says_in_how_many_launches(tmp_path):
    rows = (PUBLIC / "dip" / "osu_bw.out").read_text()
    for number, dip in enumerate(("807.29", "820.00", "798.00"), 1):
        changed = rows.replace("807.29", dip)
        (tmp_path / f"a.{number}.out").write_text(changed)
    files = " ".join(str(tmp_path / f"a.{number}.out") for number in (1, 2, 3))
    _, said = judge("dip", files, "--as", "{name}.{launch}")
    assert "0.64 of the lesser of" in said
    assert "So it is in 3 of 3 launches" in said


def test_one_noisy_point_of_one_launch_fails_no_configuration():
    files = "a/osu_alltoall.out b/osu_alltoall.out"
    status, said = judge("one-launch", files, "--as", "{mpi}/{benchmark}")
    assert status == 3
    assert "22.05 µs at 8 bytes is 11.4 times the 1.93 µs of b" in said
    assert "One launch was made of each, and sizes next to each other scatter by a factor" in said


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (
            "lnx-one-size/2.2 --against lnx-one-size/2.0 --fail-above 10%",
            1,
            "2.0 at 2097152 bytes, by 409 %; one launch each: repeat (fail: above 10 % is flagged)",
        ),
        (
            "sockets-0-bytes/4.0.3 --against sockets-0-bytes/3.0.0",
            0,
            "3.0.0, by 697 %; one launch each: repeat (warn: above 50 % is flagged)",
        ),
        (
            "sockets-0-bytes/4.0.3 --against sockets-0-bytes/3.0.0 --fail-above 10%"
            " --link 800G --transport shared-memory",
            1,
            "3.0.0, by 697 %; one launch each: repeat (fail: above 10 % is flagged)",
        ),
        (
            "allreduce-han/han --against allreduce-han/tuned",
            0,
            "from 4096 to 16777216 bytes, by 18.2 to 261 %, 94 % on average, most at 16384 bytes",
        ),
        (
            "allreduce-han/tuned --against allreduce-han/han --fail-above 70%",
            0,
            "from 32 to 128 bytes, by 16.6 to 62.3 %",
        ),
        (
            "two-rails.out --link 400G --transport infiniband",
            1,
            "is 43.0% of the line rate of 49685 MB/s",
        ),
        ("pingpong-crash.out", 2, "pingpong-crash.out:23: the run broke off here"),
    ],
)
def test_what_was_complained_of_is_named(arguments, status, said):
    ended, printed = judge("complaints", arguments)
    assert ended == status, printed
    assert said in printed


@pytest.mark.parametrize(
    "arguments",
    [
        "bibw-ucx.out --link 100G --transport infiniband",
        "nvlink.out --link 800G --transport nvlink --least 90%",
    ],
)
def test_what_nobody_complained_of_passes(arguments):
    status, printed = judge("complaints", arguments)
    assert status == 0, printed
    assert "FAIL" not in printed


def judged(name: str, *options: str) -> tuple[int, str]:
    return judge(".", f"{name}.out", *options)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("rank-before-lines", "'[0] ' before 6 lines was left out"),
        ("counters-after", "2 lines after the tables were left out, first 'cxi0 tx 115762638'"),
    ],
)
def test_what_was_left_out_is_said(name, said):
    assert said in judged(name)[1]


def test_a_small_share_of_the_link_fails_and_passes_only_where_that_is_asked_for():
    link = ("--link", "100G", "--transport", "infiniband")
    status, out = judged("fortieth-of-the-link", *link)
    assert status == 1
    assert "is 2.6% of the line rate" in out
    assert judged("fortieth-of-the-link", *link, "--least", "2%")[0] == 0


def test_more_than_the_link_names_mtu_and_transport():
    status, out = judged("slingshot", "--link", "200G", "--transport", "roce")
    assert status == 1
    assert "103.8% of the line rate" in out
    assert "too fast to be true" in out
    assert "if it is not roce, say --transport tcp or infiniband or slingshot or efa" in out
    assert "If the MTU is not 1500, say --mtu" in out
    assert judged("slingshot", "--link", "200G", "--transport", "roce", "--mtu", "9000")[0] == 0


def test_a_streams_share_of_time_is_no_latency():
    printed = ran(".", "rate-of-256-pairs.out").stdout
    (row,) = [one for one in printed.splitlines() if "mbw_mr" in one]
    assert " 0.00 " not in row
