"""``netproof judge`` on what people complained of in public: what is named, and what passes."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from netproof.commands.cli import app

COMPLAINTS = Path(__file__).parents[2] / "data" / "public" / "complaints"


def judge(*arguments: str) -> tuple[int, str]:
    """Judge with paths below the folder; return the exit status and the text, on one line."""
    paths = [str(COMPLAINTS / one) if (COMPLAINTS / one).exists() else one for one in arguments]
    ran = CliRunner().invoke(app, ["judge", *paths])
    return ran.exit_code, " ".join(ran.output.split())


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (
            "lnx-one-size/2.2 --against lnx-one-size/2.0 --fail-above 10%",
            1,
            "2.0 at 2097152 bytes, by 409 %; one launch each: repeat (fail: above 10 % is flagged)",
        ),
        (
            "lnx-one-size/2.2 --link 200G --transport slingshot",
            1,
            "4435 MB/s (35483 Mbit/s) of one launch is 18.0% of the line rate",
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
            "one-node/shm --against one-node/vader",
            0,
            "from 4 to 2048 bytes, by 90.7 to 261 %, 186 % on average, most at 4 bytes",
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
        (
            "gpudirect.out --link 200G --transport infiniband",
            0,
            "at 8192 bytes the bandwidth is 2133 MB/s (17066 Mbit/s), 0.34 of the lesser of",
        ),
        (
            "nvlink.out --link 800G --transport nvlink",
            0,
            "messages of 4096 and 8192 bytes took longer than larger ones",
        ),
        ("pingpong-crash.out", 2, "pingpong-crash.out:23: the run broke off here"),
        ("alltoallv-bus-error.out", 2, "alltoallv-bus-error.out:18: the run broke off here"),
    ],
)
def test_what_was_complained_of_is_named(arguments, status, said):
    ended, printed = judge(*arguments.split())
    assert ended == status, printed
    assert said in printed


@pytest.mark.parametrize("name", ["gpudirect.out", "nvlink.out"])
def test_a_copy_threshold_of_a_gpu_is_looked_for_there(name):
    assert "thresholds for copies of GPU memory" in judge(name)[1]


@pytest.mark.parametrize(
    "arguments",
    [
        "two-rails.out --link 200G --transport infiniband",
        "bibw-ucx.out --link 100G --transport infiniband",
        "nvlink.out --link 800G --transport nvlink --least 90%",
        "aries.out",
        "allgather-psm2.out",
    ],
)
def test_what_nobody_complained_of_passes(arguments):
    status, printed = judge(*arguments.split())
    assert status == 0, printed
    assert "FAIL" not in printed
