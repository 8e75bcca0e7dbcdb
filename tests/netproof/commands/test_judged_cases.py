"""``netproof judge`` on public outputs whose faults are known, or that have none.

Levels and figures of each are in the golden file.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from made_calls import called, in_words

PUBLIC = Path(__file__).parents[2] / "data" / "public"


def words(arguments: str) -> list[str | Path]:
    """Return the words of a command, those that are in the folder as paths."""
    places = {word: PUBLIC / word for word in arguments.split()}
    return ["judge", *(place if place.exists() else word for word, place in places.items())]


def judge(arguments: str) -> tuple[int, str]:
    return in_words(*words(arguments))


def curve(arguments: str) -> dict:
    (found,) = json.loads(called(*words(arguments), "--format=json")[1])["curves"]
    return found


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        # A finding names its range, and its advice the layer.
        (
            *("decline-sendrecv/sendrecv.out", 0),
            "and stays down from 1048576 bytes on: 3.93 times less … One launch was made: repeat "
            "it … the protocol of large messages",
        ),
        (
            *("small-alltoall/osu_alltoall.out", 1),
            "messages of 4 to 64 bytes took longer than larger ones, most at 64 bytes … One "
            "launch was made: repeat it … one took 22500 µs, 34 times the 662.3 µs of one of 128 "
            "bytes … the library's choice of algorithm",
        ),
        (
            *("device-copies/osu_bw.out", 0),
            "messages of 32 to 128 bytes took longer than larger ones, most at 128 bytes … One "
            "launch was made: repeat it … thresholds for copies of GPU memory",
        ),
        # A copy that moved nothing is too fast, and no yardstick.
        (
            "too-fast/cxi/osu_latency.out too-fast/lnx/osu_latency.out --as {provider}/{benchmark}",
            1,
            "FAIL lnx OSU latency 2 ranks … 735843 MB/s, too fast to be true … 2097152 bytes took "
            "2.85 µs, and 65536 bytes no less … 1 of 2 curves passed",
        ),
        # Shared memory against a network suspects the placement.
        (
            "places/intelmpi/osu_latency.out places/openmpi/osu_latency.out --as {mpi}/{benchmark}",
            3,
            "INCONCLUSIVE openmpi OSU latency … is as fast as shared memory: its ranks may have … "
            "compare the same placement … Likewise at 5 sizes in all: 4 to 64 bytes",
        ),
        (
            *("one-size/new/osu_allreduce.out", 3),
            "NOT JUDGED WHOLE: 0 of 1 curves passed … one size, 2048 bytes in 61.02 µs: compare "
            "it with --against",
        ),
        # Steady launches that lie apart, and one noisy point of one launch.
        (
            "placements/m/np.1.log placements/m/np.2.log placements/m/np.3.log --as "
            "{machine}/np.{launch}.log",
            0,
            "WARN m NetPIPE oneway: 3 launches lie 1.64 times apart, and each is steady … Look at "
            "where the ranks ran",
        ),
        (
            "one-launch/a/osu_alltoall.out one-launch/b/osu_alltoall.out --as {mpi}/{benchmark}",
            3,
            "22.05 µs at 8 bytes is 11.4 times the 1.93 µs of b … One launch was made of each, "
            "and sizes next to each other scatter by a factor",
        ),
        # What was complained of.
        (
            "complaints/lnx-one-size/2.2 --against complaints/lnx-one-size/2.0 --fail-above 10%",
            1,
            "by 409 %; one launch each: repeat (fail: above 10 % is flagged)",
        ),
        (
            "complaints/sockets-0-bytes/4.0.3 --against complaints/sockets-0-bytes/3.0.0 --link "
            "800G --transport shared-memory",
            0,
            "3.0.0, by 697 %; one launch each: repeat (warn: above 50 % is flagged)",
        ),
        (
            *("complaints/allreduce-han/han --against complaints/allreduce-han/tuned", 0),
            "by 18.2 to 261 %, 94 % on average, most at 16384 bytes",
        ),
        (
            "complaints/allreduce-han/tuned --against complaints/allreduce-han/han --fail-above "
            "70%",
            0,
            "from 32 to 128 bytes, by 16.6 to 62.3 %",
        ),
        (
            *("complaints/two-rails.out --link 400G --transport infiniband", 1),
            "is 43.0% of the line rate of 49685 MB/s",
        ),
        # What nobody complained of.
        ("complaints/bibw-ucx.out --link 100G --transport infiniband", 0, ""),
        ("complaints/nvlink.out --link 800G --transport nvlink --least 90%", 0, ""),
        # A share of the link fails, and passes where that is asked for.
        (
            *("fortieth-of-the-link.out --link 100G --transport infiniband", 1),
            "is 2.6% of the line rate",
        ),
        ("fortieth-of-the-link.out --link 100G --transport infiniband --least 2%", 0, ""),
        # More than the link names MTU and transport.
        (
            *("slingshot.out --link 200G --transport roce", 1),
            "103.8% of the line rate … too fast to be true … If the MTU is not 1500, say --mtu … "
            "if it is not roce, say --transport tcp or infiniband or slingshot or efa",
        ),
        # What was left out.
        ("rank-before-lines.out", 1, "'[0] ' before 6 lines was left out"),
        (
            *("counters-after.out", 3),
            "2 lines after the tables were left out, first 'cxi0 tx 115762638'",
        ),
    ],
)
def test_what_is_known_of_it_is_named(arguments, status, said):
    ended, printed = judge(arguments)
    assert [one for one in said.split(" … ") if one not in printed] == [], printed
    assert ended == status, printed


def test_the_spread_of_the_ranks_is_shown_where_columns_have_it():
    _, said = judge("rank-spread/osu_bcast.out")
    assert " 51.6" in said.split("OSU bcast")[1]
    assert "at 1600000 bytes the slowest rank took 37949 µs, 51.6 times the 736.1 µs" in said
    spreads = [
        curve(f"{name}/osu_bcast.out")["rank_spread"] for name in ("rank-spread", "one-machine")
    ]
    assert spreads == [pytest.approx(51.55, abs=0.01), None]


@pytest.mark.parametrize(
    ("arguments", "level", "said"),
    [
        ("--link 200G", "warn", "15566 MB/s (124526 Mbit/s) of one launch is 66.1%"),
        ("--link 100G", "fail", "too fast to be true"),
        ("--link 400G", "fail", "is 33.1% of the line rate"),
        ("--link 400G --least 30%", "pass", ""),
    ],
)
def test_a_link_judges_one_large_size(tmp_path, arguments, level, said):
    path = tmp_path / "osu_bw.out"
    head = f"# OSU MPI Bandwidth Test v5.8\n{'# Size':<10}{'Bandwidth (MB/s)':>18}\n"
    path.write_text(f"{head}{4194304:<10}{'15565.70':>18}\n")
    one = curve(f"{path} {arguments}")
    assert one["level"] == level
    assert any(said in finding["why"] for finding in one["findings"])


@pytest.mark.parametrize(("transport", "rate"), [("roce --mtu 9000", 24509), ("infiniband", 24842)])
def test_a_healthy_network_passes_by_the_transport_that_it_has(transport, rate):
    one = curve(f"slingshot.out --link 200G --transport {transport}")
    assert one["level"] == "pass"
    (share,) = (each for each in one["findings"] if each["criterion"] == "line rate")
    assert share["value"] == pytest.approx(24014.5 / rate, rel=1e-4)


def test_a_dip_that_repeats_says_in_how_many_launches(tmp_path):
    rows = (PUBLIC / "dip" / "osu_bw.out").read_text()
    for number, dip in enumerate(("807.29", "820.00", "798.00"), 1):
        (tmp_path / f"a.{number}.out").write_text(rows.replace("807.29", dip))
    _, said = judge(f"{tmp_path} --as {{name}}.{{launch}}")
    assert "0.64 of the lesser of" in said
    assert "So it is in 3 of 3 launches" in said


def test_a_streams_share_of_time_is_no_latency():
    printed = called(*words("rate-of-256-pairs.out"))[1]
    (row,) = [one for one in printed.splitlines() if "mbw_mr" in one]
    assert " 0.00 " not in row
