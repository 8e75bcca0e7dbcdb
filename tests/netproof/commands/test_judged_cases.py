"""``netproof judge`` on public outputs whose faults are known, or that have none.

Levels and figures of each are in the golden file.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
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


CASES = yaml.safe_load(Path(__file__).with_name("judged.yaml").read_text())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["judge"])
def test_what_is_known_of_it_is_named(case):
    ended, printed = judge(case["judge"])
    assert [one for one in case.get("says", ()) if one not in printed] == [], printed
    assert ended == case["status"], printed


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
        ("--link 200G", "warn", "15566 MB/s of one launch is 66.1%"),
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
